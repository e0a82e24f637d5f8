package propose_test

import (
	"testing"

	"hekla.sh/hekla/internal/explain/propose"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// Of a gang that was evicted some pods are there again before it is admitted.
func TestWhatIsAssumedIsOfThePodsThatDoNotExist(t *testing.T) {
	for want, more := range map[string][]any{
		"its pods, which do not exist yet, request equal parts of its minResources":       nil,
		"those of its pods that do not exist yet request equal parts of its minResources": {fixture.Pod("p", fixture.In("door"), fixture.Asks("cpu=2"))},
	} {
		a := waiting(t, 1, 1, "cpu=1", append([]any{fixture.Group("door", "default", 3, fixture.PendingAdmission, fixture.Wanting("cpu=6"))}, more...)...)
		found, why := a.propose(func(j *propose.Job) {
			j.Job, j.Code, j.IsRefused = a.JobNamed("door"), string(verdict.OverCommitted), false
			j.Job.Verdict = &verdict.Verdict{Code: verdict.OverCommitted, Shortages: []verdict.Shortage{{Resource: "cpu", Need: 6000, Have: 1000}}}
		})
		if len(found) == 0 || found[0].Assumes != want {
			t.Errorf("of a job of which %d pods exist it is said %+v %s, want %q", len(more), found, why, want)
		}
	}
}
