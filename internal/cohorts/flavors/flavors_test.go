package flavors_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// none is an oracle by which no eviction helps.
type none struct{}

func (none) Ask(*workload.Workload, resources.FR, int64) (workload.Mode, int) {
	return workload.NoCandidates, 0
}

func TestAssign(t *testing.T) {
	w := trees.New()
	q := w.Queue("q", "all", 2)
	w.Queue("idle", "all", 1)
	w.Grow()
	a := flavors.Assigner{Index: w.Index, Oracle: none{}, Nodes: trees.Room{}}
	for name, test := range map[string]struct {
		pods  int32
		mode  workload.Mode
		level int
		why   workload.Code // of the first reason
	}{
		"within its quota":           {2, workload.Fit, 0, 0},
		"by what it borrows":         {3, workload.Fit, 1, 0},
		"never, with all that it is": {4, workload.NoFit, 0, workload.ExceedsMaxQuota},
	} {
		t.Run(name, func(t *testing.T) {
			asked := w.Workload(q, name, test.pods, 0)
			got := a.Assign(asked, flavors.Counts(asked), nil)
			var why workload.Code
			if reasons := got.PodSets[0].Reasons; len(reasons) > 0 {
				why = reasons[0].Code
			}
			if got.Mode != test.mode || got.Level != test.level || why != test.why {
				t.Errorf("the mode is %d at level %d for %v, want %d at %d for %v", got.Mode, got.Level, why, test.mode, test.level, test.why)
			}
		})
	}

	t.Run("what is held is asked for at the nodes, and in turn", func(t *testing.T) {
		w.Hold(q, "held", 3, 0)
		asked := w.Workload(q, "waits", 1, 0)
		got := a.Assign(asked, flavors.Counts(asked), nil)
		if got.Mode != workload.NoCandidates || len(got.Lacks) != 1 || got.Lacks[0] != w.FR() {
			t.Errorf("the mode is %d, and it lacks %v", got.Mode, got.Lacks)
		}
	})
}

// A pod set is too large only beside another, which may take another flavor once that has room. So a change of any
// flavor may help. Nothing helps one that is too large by itself.
func TestAWorkloadThatIsTooLargeByItsOtherPodSetsLacksRoom(t *testing.T) {
	w := trees.New()
	q := w.Queue("q", "", 3)
	w.Grow()
	a := flavors.Assigner{Index: w.Index, Oracle: none{}, Nodes: trees.Room{}}
	for pods, want := range map[int32]int{3: 1, 4: 0} {
		asked := w.Workload(q, "asked", pods, 0)
		asked.PodSets = append([]workload.PodSet{{Name: "before", Count: 1, MinCount: 1, Requests: asked.PodSets[0].Requests}}, asked.PodSets...)
		got := a.Assign(asked, flavors.Counts(asked), nil)
		if code, _ := got.Refusal(); got.Mode != workload.NoFit || code != workload.ExceedsMaxQuota || len(got.Lacks) != want {
			t.Errorf("%d pods: the mode is %d by %v, and it lacks %v", pods, got.Mode, code, got.Lacks)
		}
	}
}

func TestWhichPodsCanUseAFlavor(t *testing.T) {
	spot := &workload.Flavor{Name: "spot", NodeLabels: map[string]string{"kind": "spot"},
		NodeTaints: []corev1.Taint{{Key: "spot", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}}
	tolerant := corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}}
	selecting := func(key, value string) corev1.PodSpec {
		spec := *tolerant.DeepCopy()
		spec.NodeSelector = map[string]string{key: value}
		return spec
	}
	for name, test := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"they tolerate its taint":          {tolerant, ""},
		"they do not":                      {corev1.PodSpec{}, "untolerated taint {spot yes NoSchedule <nil>} in flavor spot"},
		"they select its label":            {selecting("kind", "spot"), ""},
		"they select another value":        {selecting("kind", "owned"), "flavor spot doesn't match node affinity"},
		"a label of which it says nothing": {selecting("zone", "a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := flavors.Unusable(spot, &corev1.PodTemplateSpec{Spec: test.spec}); got != test.want {
				t.Errorf("said is %q, want %q", got, test.want)
			}
		})
	}
}
