package conditions_test

import (
	"testing"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
)

func TestAPreemptionIsReadAsItIsWritten(t *testing.T) {
	for name, p := range map[string]conditions.Preemption{
		"whole":                       {UID: "u-1", JobUID: "j-1", Reason: "reclamation within the cohort", Preemptor: "/all/team-a", Preemptee: "/all/team-b"},
		"of a Workload without a job": {UID: "u-1", Reason: "prioritization in the ClusterQueue", Preemptor: "/all", Preemptee: "/all"},
		"of queues that are gone":     {UID: "u-1", JobUID: "j-1", Reason: "Fair Sharing within the cohort"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := conditions.PreemptionOf(p.String()); got != p {
				t.Errorf("%q is read as %+v, want %+v", p, got, p)
			}
		})
	}
	const kueues = "Preempted to accommodate a workload (UID: u-1, JobUID: j-1) due to prioritization in the ClusterQueue; preemptor path: /all/a; preemptee path: /all/b"
	if got := conditions.PreemptionOf(kueues); got.String() != kueues || got.PreemptorQueue() != "a" {
		t.Errorf("the message of Kueue is read as %+v", got)
	}
	for _, other := range []string{"", "Preempted", "(UID: u-1", "no preemptor path"} {
		if got := conditions.PreemptionOf(other); got != (conditions.Preemption{}) || got.PreemptorQueue() != "UNKNOWN" {
			t.Errorf("%q is read as %+v", other, got)
		}
	}
}
