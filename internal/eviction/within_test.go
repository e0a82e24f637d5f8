package eviction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func never(p *corev1.Pod) {
	policy := corev1.PreemptNever
	p.Spec.PreemptionPolicy = &policy
}

// One job with pods of one cpu, on full nodes of one cpu. Which of its pods are evicted for which?
func TestInsideAJobHigherPodsTakeFromLowerOnes(t *testing.T) {
	const byAge = "- plugins:\n  - name: priority\n    enableTaskOrder: false\n"
	for name, test := range map[string]struct {
		minimum       int
		pods          string
		options       []option
		configuration string
		want          string
	}{
		"the higher from the lower": {pods: "n1 n2 -", options: []option{one(0, ranking("2")), one(1, ranking("1")), one(2, ranking("3"))},
			want: "job-1 leaves n2 for job by P1; job-2 is nominated to n2"},
		"not from equals": {pods: "n1 n2 -", options: []option{each(ranking("1"))}},
		"each from one that ranks lower than itself": {pods: "n1 n2 - -", options: []option{one(0, ranking("1")), one(1, ranking("3")), one(2, ranking("2")), one(3, ranking("3"))},
			want: "job-0 leaves n1 for job by P1; job-3 is nominated to n1"},
		"the higher though the lower is asked first and finds nobody": {pods: "n1 n2 - -", configuration: byAge,
			options: []option{one(0, ranking("1")), one(1, ranking("3")), one(2, ranking("1")), one(3, ranking("3"))},
			want:    "job-0 leaves n1 for job by P1; job-3 is nominated to n1"},
		"not below the minimum": {minimum: 2, pods: "n1 n2 -", options: []option{one(0, ranking("2")), one(1, ranking("1")), one(2, ranking("3"))}},
		"a pod that preempts nobody leaves it to another": {pods: "n1 n2 - -", options: []option{one(0, ranking("1")), one(1, ranking("3")), one(2, ranking("5")), one(3, ranking("2")), one(2, never)},
			want: "job-0 leaves n1 for job by P1; job-3 is nominated to n1"},
		"not from a pod that is not marked": {pods: "n1 n2 -", options: []option{one(0, ranking("2")), one(1, ranking("1")), one(1, unmarked), one(2, ranking("3"))},
			want: "job-0 leaves n1 for job by P1; job-2 is nominated to n1"},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := everything
			if test.configuration != "" {
				configuration = with(everything, "- plugins:\n  - name: priority\n", test.configuration)
			}
			w := start(t, configuration).Set(nodes("cpu=1", "n1", "n2"), job("job", "default", "low", test.minimum, test.pods, test.options...))
			w.Expect(test.want)
		})
	}
}

func TestAGangEvictsOnlyForItsPodsThatMayPreempt(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1 n2"), job("preemptor", "default", "high", 2, "- -", one(1, never)))
	w.Expect("").RemovePods("victim-1").Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
}
