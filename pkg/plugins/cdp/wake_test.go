package cdp

import (
	"testing"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

func TestWhoWasRefusedIsLookedAtWhenTheFirstCoolDownEnds(t *testing.T) {
	p := &plugin{now: fixture.Birth}
	if !p.WakeAt().IsZero() {
		t.Error("it wakes though nobody was refused")
	}
	task := func(name, coolDown string) *cluster.Task {
		pod := fixture.Pod(name, fixture.On("n0"))
		pod.CreationTimestamp.Time, pod.Status.StartTime, pod.Status.Conditions = fixture.Birth, nil, nil
		pod.Annotations = map[string]string{schedulingv1beta1.CooldownTimeKey: coolDown}
		return &cluster.Task{Pod: pods.New(pod)}
	}
	for _, coolDown := range []string{"2m", "1m", "3m"} {
		if vote, _ := p.VotePreempt(&framework.VictimProposal{Victims: []*cluster.Task{task("p", coolDown)}}); vote != framework.Reject {
			t.Fatalf("a pod leaves within its cool-down of %s", coolDown)
		}
	}
	if want := fixture.Birth.Add(time.Minute); !p.WakeAt().Equal(want) {
		t.Errorf("it wakes at %s, want %s", p.WakeAt(), want)
	}
}
