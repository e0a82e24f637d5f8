package shares_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/cli/shares"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const on = "actions: allocate, reclaim\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: guaranteed-shares, arguments: {subtrees: [corp], preemptionDelay: 40s}}]"

// queue is a Queue that is guaranteed and holds some CPUs; "" names none.
func queue(name, parent, guaranteed, held string, annotations ...string) scheduling.Queue {
	q := scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u-" + "", Annotations: map[string]string{}}}
	q.Spec.Parent, q.Status.State = parent, scheduling.QueueStateOpen
	for i := 0; i < len(annotations); i += 2 {
		q.Annotations[annotations[i]] = annotations[i+1]
	}
	if guaranteed != "" {
		q.Spec.Guarantee.Resource = corev1.ResourceList{"cpu": resource.MustParse(guaranteed)}
	}
	q.Status.Allocated = corev1.ResourceList{"cpu": resource.MustParse(held), "memory": resource.MustParse("2Gi")}
	return q
}

func TestAQueueIsExplainedByWhatIsAboveIt(t *testing.T) {
	queues := []scheduling.Queue{
		queue("corp", "root", "50", "12"),
		queue("tenant", "corp", "8", "6", "hekla.sh/preemption.policy", "fence", "hekla.sh/preemption.delay", "5s", "hekla.sh/priority.offset", "3"),
		queue("team", "tenant", "", "4", "hekla.sh/priority.offset", "-1"),
		queue("other", "corp", "4", "6", "hekla.sh/preemption.policy", "disabled", "hekla.sh/priority.policy", "fence"),
		queue("free", "corp", "1", "6"), queue("outside", "root", "1", "6"),
	}
	s, err := shares.New(on, queues)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]shares.Explained{
		"team": {Top: "corp", Amounts: []shares.Amount{{"cpu", "8", "tenant", "4", "2", "0"}, {"memory", "", "", "2Gi", "", "2Gi"}}, Settings: []shares.Setting{
			{"takes room", "below queue tenant only", "queue tenant (fence)"}, {"gives room", "above its guarantee", "default"},
			{"preemption delay", "5s", "queue tenant"}, {"priority of jobs", "+2", "queue team, queue tenant"}}},
		"other": {Top: "corp", Amounts: []shares.Amount{{"cpu", "4", "other", "6", "0", "0"}, {"memory", "", "", "2Gi", "", "0"}}, Settings: []shares.Setting{
			{"takes room", "in the whole subtree", "default"}, {"gives room", "never", "queue other (disabled)"},
			{"preemption delay", "40s", "configuration of the scheduler"}, {"priority of jobs", "0, whatever they have", "queue other"}}},
		"free": {Top: "corp", Amounts: []shares.Amount{{"cpu", "1", "free", "6", "0", "5"}, {"memory", "", "", "2Gi", "", "2Gi"}}, Settings: []shares.Setting{
			{"takes room", "in the whole subtree", "default"}, {"gives room", "above its guarantee", "default"},
			{"preemption delay", "40s", "configuration of the scheduler"}, {"priority of jobs", "as they have", "default"}}},
	} {
		got, isInside := s.Explain(name)
		if diff := cmp.Diff(want, got); diff != "" || !isInside {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"outside", "unknown"} {
		if e, isInside := s.Explain(name); isInside || s.Guaranteed(name) != nil {
			t.Errorf("%s is explained by %+v", name, e)
		}
	}
}

func TestAQueueThatChangesIsReadAgain(t *testing.T) {
	s, err := shares.New(on, []scheduling.Queue{queue("corp", "root", "", "0"), queue("a", "corp", "5", "2")})
	if err != nil {
		t.Fatal(err)
	}
	remaining := func() string { amount := s.Remaining("a")["cpu"]; return amount.String() }
	if got := remaining(); got != "3" {
		t.Errorf("%s remain, want 3", got)
	}
	changed := queue("a", "corp", "5", "4")
	changed.ResourceVersion = "2"
	s.Note(&changed)
	if got := remaining(); got != "1" {
		t.Errorf("%s remain, want 1", got)
	}
}

func TestWithoutThePluginThereAreNoShares(t *testing.T) {
	s, err := shares.New("actions: allocate\ntiers: [{plugins: [{name: gang}]}]", nil)
	if s != nil || err != nil {
		t.Errorf("there are %v, %v", s, err)
	}
	if _, err := shares.New("actions: dance", nil); err == nil {
		t.Error(fmt.Errorf("a configuration that cannot be read is read"))
	}
}
