package gang_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func distinct(places map[string]string) int {
	nodes := map[string]bool{}
	for _, n := range places {
		nodes[n] = true
	}
	return len(nodes)
}

func TestPodsOfAGangThatKeepApartSeeEachOther(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.Node("n2", "cpu=8"))
	w.Set(gangOf("g", 3, fixture.ApartFrom("app", "g")))
	if places := placeAll(t, w, "g"); len(places) != 3 || distinct(places) != 3 {
		t.Errorf("placed %v", places)
	}
}

func TestAGangThatKeepsApartIsNotPlacedOnTooFewNodes(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"))
	w.Set(gangOf("g", 3, fixture.ApartFrom("app", "g")))
	s := w.Open()
	v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g")))
	want := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode, Placed: 2, Wanted: 3, Fitting: []string{"g-0", "g-1"},
		Nodes: []verdict.NodeReason{{Kind: verdict.NodePods, Reason: "node(s) didn't match pod anti-affinity rules", Nodes: 2, Example: "n0"}}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("the verdict differs (-want +got):\n%s", diff)
	}
	for _, task := range w.JobNamed("g").Tasks() {
		if task.Status != cluster.Pending {
			t.Errorf("task %s is left %s", task.Key().Name, task.Status)
		}
	}
}

func TestPodsOfAGangSpreadOverZones(t *testing.T) {
	w := placing(t).Set(fixture.Node("a0", "cpu=9", fixture.InZone("a")), fixture.Node("a1", "cpu=9", fixture.InZone("a")), fixture.Node("b0", "cpu=4", fixture.InZone("b")))
	w.Set(gangOf("g", 6, fixture.Spreading("zone", "g")))
	zones := map[byte]int{}
	for _, n := range placeAll(t, w, "g") {
		zones[n[0]]++
	}
	if zones['a'] != 3 || zones['b'] != 3 {
		t.Errorf("placed %v", zones)
	}
}

func near(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		fixture.Near("app", "g")(p)
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = key
	}
}

// The best node for the first pod is in a place that is too small for all.
func TestPodsThatAttractEachOtherGoWhereAllOfThemFit(t *testing.T) {
	packing := []string{"gang", "predicates", "binpack"}
	zones := func(w *harness.Model) *harness.Model {
		return w.Set(fixture.Node("a0", "cpu=1", fixture.InZone("a")), fixture.Node("b0", "cpu=2", fixture.InZone("b")), fixture.Node("b1", "cpu=2", fixture.InZone("b")))
	}
	t.Run("to a zone", func(t *testing.T) {
		w := zones(placing(t, packing...)).Set(gangOf("g", 3, near("zone")))
		for pod, n := range placeAll(t, w, "g") {
			if n[0] != 'b' {
				t.Errorf("%s is on %s", pod, n)
			}
		}
	})
	t.Run("to a node", func(t *testing.T) {
		w := zones(placing(t, packing...)).Set(gangOf("g", 2, near(corev1.LabelHostname)))
		if places := placeAll(t, w, "g"); distinct(places) != 1 || places["g-0"] == "a0" {
			t.Errorf("placed %v", places)
		}
	})
	t.Run("and leave a node to one that keeps apart", func(t *testing.T) {
		w := placing(t, packing...).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=2"))
		w.Set(gangOf("g", 2, near(corev1.LabelHostname)))
		w.Set(fixture.Pod("g-1", fixture.In("g"), fixture.Labelled("app", "g"), fixture.ApartFrom("app", "g"), fixture.Selecting(corev1.LabelHostname, "n1")))
		if places := placeAll(t, w, "g"); places["g-0"] != "n2" || places["g-1"] != "n1" {
			t.Errorf("placed %v", places)
		}
	})
	t.Run("also those of a subgroup", func(t *testing.T) {
		w := zones(placing(t, packing...)).Set(inParts("g", 1, 3, fixture.Parts("part", 3, 1, nil)))
		for i := range 3 {
			w.Set(fixture.Pod(fmt.Sprintf("g-%d", i), fixture.In("g"), partOf(0), fixture.Labelled("app", "g"), near("zone")))
		}
		for pod, n := range placeAll(t, w, "g") {
			if n[0] != 'b' {
				t.Errorf("%s is on %s", pod, n)
			}
		}
	})
	t.Run("or nowhere", func(t *testing.T) {
		w := zones(placing(t, packing...)).Set(gangOf("g", 5, near("zone")), fixture.Pod("other", fixture.On("unknown")))
		v := try(w, "g")
		if v == nil || v.Code != verdict.NotEnoughResources {
			t.Errorf("the verdict is %v", v)
		}
		for _, task := range w.JobNamed("g").Tasks() {
			if task.Status != cluster.Pending {
				t.Errorf("task %s is left %s", task.Key().Name, task.Status)
			}
		}
	})
}

// Only with the pod that attracts and the one that is attracted first does the second find room next to the first.
func TestAPodComesTogetherWithTheOneThatItMustBeNear(t *testing.T) {
	attracts, isNear := fixture.Labelled("app", "g"), near(corev1.LabelHostname)
	for name, pods := range map[string]map[int][]func(*corev1.Pod){
		"a pod that is like no other":       {3: {attracts}, 4: {isNear}},
		"one that others may be near to":    {3: {attracts}, 4: {isNear, attracts}},
		"two, each with one of its own":     {0: {attracts}, 2: {attracts}, 3: {isNear}, 4: {isNear}},
		"two, one of which attracts others": {0: {attracts}, 2: {attracts}, 3: {isNear}, 4: {isNear, attracts}},
	} {
		t.Run(name, func(t *testing.T) {
			w := placing(t).Set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"), fixture.Node("n3", "cpu=2"))
			w.Set(fixture.Node("full", "cpu=1"), fixture.Pod("elsewhere", fixture.On("full"), fixture.Asks("cpu=1"), fixture.Labelled("app", "g")))
			w.Set(fixture.Group("g", "default", 6))
			for i := range 6 {
				w.Set(fixture.Pod(fmt.Sprintf("g-%d", i), append([]func(*corev1.Pod){fixture.In("g"), fixture.As("worker", i), fixture.Asks("cpu=1")}, pods[i]...)...))
			}
			if places := placeAll(t, w, "g"); len(places) != 6 {
				t.Errorf("placed %v", places)
			}
		})
	}
}

func TestPodsOfAGangDoNotShareAPortOfTheHost(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"))
	w.Set(gangOf("g", 2, fixture.OnPort(8080)))
	s := w.Open()
	x := s.Begin()
	if v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))); v != nil {
		t.Fatal(v.Sentence())
	}
	x.Commit()
	if s.Binds[0].Node == s.Binds[1].Node {
		t.Errorf("decided %v", s.Binds)
	}
	w.Set(gangOf("h", 1, fixture.OnPort(8080)))
	w.Open()
	reasons, _ := w.Engine.Explain(w.TaskNamed("h-0"))
	want := []verdict.NodeReason{{Kind: verdict.NodePorts, Reason: "node(s) didn't have free ports for the requested pod ports", Nodes: 2, Example: "n0"}}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("the reasons differ (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatMustStartTogetherIsPlaced(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"))
	w.Set(gangOf("g", 4)).Set(fixture.Group("g", "default", 2))
	if places := placeAll(t, w, "g"); len(places) != 2 {
		t.Errorf("placed %v, want the minimum", places)
	}
}

func TestTheMinimumOfEveryRoleIsPlacedFirst(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=4"))
	w.Set(fixture.Group("g", "default", 3, fixture.NeedingOf("worker", 2), fixture.NeedingOf("master", 1)))
	for i := range 5 {
		w.Set(fixture.Pod(fmt.Sprintf("worker-%d", i), fixture.In("g"), fixture.As("worker", i)))
	}
	w.Set(fixture.Pod("master-0", fixture.In("g"), fixture.As("master", 9)))
	places := placeAll(t, w, "g")
	if len(places) != 3 || places["master-0"] == "" || places["worker-0"] == "" || places["worker-1"] == "" {
		t.Errorf("placed %v", places)
	}
}

func TestASurplusOfOneRoleIsNotCountedForAnother(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=3"))
	w.Set(fixture.Group("g", "default", 3, fixture.NeedingOf("worker", 2), fixture.NeedingOf("master", 1)))
	for i := range 3 {
		w.Set(fixture.Pod(fmt.Sprintf("worker-%d", i), fixture.In("g"), fixture.As("worker", i), fixture.On("n0")))
	}
	w.Set(fixture.Pod("master-0", fixture.In("g"), fixture.As("master", 0)))
	s := w.Open()
	if v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))); v == nil || v.Placed != 2 || v.Wanted != 3 {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestTheRoomOfARoleThatCannotBePlacedIsGivenBack(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=4"))
	w.Set(fixture.Group("g", "default", 3, fixture.NeedingOf("worker", 2), fixture.NeedingOf("master", 1)))
	w.Set(fixture.Pod("worker-0", fixture.In("g"), fixture.As("worker", 0)), fixture.Pod("worker-1", fixture.In("g"), fixture.As("worker", 1)))
	w.Set(fixture.Pod("master-0", fixture.In("g"), fixture.As("master", 0), fixture.Asks("cpu=3")))
	s := w.Open()
	v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g")))
	if v == nil || v.Code != verdict.NotEnoughResources || v.Wanted != 3 {
		t.Fatalf("the verdict is %+v", v)
	}
	if used := w.Cluster.Node("n0").Used; !used.IsZero() {
		t.Errorf("the node still holds %v", used)
	}
	if problems := w.Audit(); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestWhoCanGoToOneNodeOnlyIsNotKeptFromItByTheirOwnGang(t *testing.T) {
	only := func(zones ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: zones}}}}}}}
		}
	}
	for name, zones := range map[string][][]string{
		"one of two":       {{"a", "b"}, {"b"}},
		"each one after":   {{"a", "b", "c"}, {"b", "c"}, {"b"}},
		"nobody of it can": {{"a", "b"}, {"d"}},
	} {
		t.Run(name, func(t *testing.T) {
			// With binpack the small nodes are the best for every pod.
			w := placing(t, "gang", "predicates", "binpack").Set(fixture.Node("a", "cpu=9", fixture.InZone("a")),
				fixture.Node("b", "cpu=1", fixture.InZone("b")), fixture.Node("c", "cpu=1", fixture.InZone("c")))
			w.Set(fixture.Group("g", "default", int32(len(zones))))
			for i, of := range zones {
				w.Set(fixture.Pod(fmt.Sprintf("g-%d", i), fixture.In("g"), only(of...)))
			}
			s := w.Open()
			v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g")))
			if mayBe := name != "nobody of it can"; (v == nil) != mayBe {
				t.Errorf("placed: %t, %v", v == nil, v)
			}
		})
	}
}
