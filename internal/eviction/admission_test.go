package eviction_test

import (
	"testing"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// pendingAdmission is a job pending admission that has no pods yet.
func pendingAdmission(name, queue, class, wants string, options ...option) *schedulingv1beta1.PodGroup {
	group := fixture.Group(name, queue, 1, fixture.PendingAdmission, fixture.Wanting(wants))
	group.Spec.PriorityClassName = class
	for _, option := range options {
		option(group, nil)
	}
	return group
}

// A cluster of two cpus, all held by job victim. Which jobs are admitted though the cluster is full?
func TestAdmissionCountsRoomOfVictimsThatRulesAllow(t *testing.T) {
	never := fixture.NeverPreempting("never", 100)
	victim := job("victim", "default", "low", 0, "n1 n1")
	for name, test := range map[string]struct {
		configuration string
		things        []any
		job           *schedulingv1beta1.PodGroup
		want          bool
	}{
		"a higher job of the queue":                          {job: pendingAdmission("k", "default", "high", "cpu=1"), want: true},
		"not an equal one":                                   {job: pendingAdmission("k", "default", "low", "cpu=1")},
		"not one that wants more than could leave":           {job: pendingAdmission("k", "default", "high", "cpu=3")},
		"not one that preempts nobody":                       {job: pendingAdmission("k", "default", "never", "cpu=1")},
		"not where preempt is not in the pipeline":           {configuration: with(everything, "preempt, ", ""), job: pendingAdmission("k", "default", "high", "cpu=1")},
		"one of a higher queue":                              {things: []any{queue("ours", 1, "", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1"), want: true},
		"one of an equal queue that has not its share":       {things: []any{queue("ours", 0, "cpu=1", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1"), want: true},
		"not one that goes beyond the share of its queue":    {things: []any{queue("ours", 0, "cpu=1", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=2")},
		"not one whose queue deserves nothing":               {things: []any{queue("ours", 0, "", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1")},
		"not one for which a guarantee would be broken":      {things: []any{queue("default", 0, "", "cpu=2", ""), queue("ours", 1, "", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1")},
		"not where reclaim is not in the pipeline":           {configuration: with(everything, "reclaim, ", ""), things: []any{queue("ours", 1, "", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1")},
		"a lone pod of higher priority than a job elsewhere": {configuration: with(everything, "reclaim, ", ""), things: []any{queue("ours", 0, "cpu=1", "", "")}, job: pendingAdmission("k", "ours", "high", "cpu=1", lone), want: true},
		"not a lone pod of no higher priority":               {configuration: with(everything, "reclaim, ", ""), things: []any{queue("ours", 0, "cpu=1", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1", lone)},
		"not where shares do not exist":                      {configuration: with(everything, "  - name: capacity\n", ""), things: []any{queue("ours", 0, "", "", "")}, job: pendingAdmission("k", "ours", "low", "cpu=1")},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := everything
			if test.configuration != "" {
				configuration = test.configuration
			}
			w := start(t, configuration).Set(never, fixture.Node("n1", "cpu=2"), victim).Set(test.things...).Set(test.job).Expect("")
			if got := !w.Job(cluster.GroupID(fixture.Key("k"))).IsPendingAdmission(); got != test.want {
				t.Errorf("it is let in: %t, should be %t: %s", got, test.want, w.Why("k"))
			}
		})
	}
}

func TestAJobNotAdmittedHoldsUpNoneThatWantsLess(t *testing.T) {
	w := start(t, everything).Set(fixture.Node("n1", "cpu=2"), job("victim", "default", "low", 0, "n1"), job("stays", "default", "high", 0, "n1"),
		pendingAdmission("a", "default", "high", "cpu=2"), pendingAdmission("b", "default", "high", "cpu=2"), pendingAdmission("c", "default", "high", "cpu=1")).Expect("")
	for name, want := range map[string]bool{"a": true, "b": true, "c": false} {
		if got := w.Job(cluster.GroupID(fixture.Key(name))).IsPendingAdmission(); got != want {
			t.Errorf("%s is at the door: %t, should be %t", name, got, want)
		}
	}
}

func TestAJobNotAdmittedHoldsUpNoneThatMayPreempt(t *testing.T) {
	// Queue theirs exceeds its share of cpu only with pods that also hold devices. Those are evicted for a job that
	// wants a device.
	things := []any{fixture.Node("n1", "cpu=2 nvidia.com/gpu=2"), queue("theirs", 0, "cpu=2 nvidia.com/gpu=1", "", ""), queue("ours", 0, "cpu=2 nvidia.com/gpu=2", "", ""),
		job("victim", "theirs", "low", 0, "n1 n1", asking("cpu=1 nvidia.com/gpu=1"))}
	w := start(t, everything).Set(things...).Set(pendingAdmission("a", "ours", "low", "cpu=1"), pendingAdmission("b", "ours", "low", "cpu=1 nvidia.com/gpu=1")).Expect("")
	for name, want := range map[string]bool{"a": true, "b": false} {
		if got := w.Job(cluster.GroupID(fixture.Key(name))).IsPendingAdmission(); got != want {
			t.Errorf("%s is at the door: %t, should be %t", name, got, want)
		}
	}
}
