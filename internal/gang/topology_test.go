package gang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/internal/placer"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// switched is a cluster of two spines with two switches each, and so many nodes of four CPUs behind every switch. Node
// s0-1 is the second node behind switch s0.
func switched(t harness.TB, perSwitch int, plugins ...string) *harness.Model {
	w := placing(t, append(plugins, "gang", "predicates", "nodeorder", "network-topology-aware")...)
	for i := range 4 {
		name := fmt.Sprintf("s%d", i)
		for k := range perSwitch {
			w.Set(fixture.Node(fmt.Sprintf("%s-%d", name, k), "cpu=4 memory=16Gi"))
		}
		w.Set(fixture.HyperNode(name, 1, "~^"+name+"-"))
	}
	return w.Set(fixture.HyperNode("left", 2, "@s0", "@s1"), fixture.HyperNode("right", 2, "@s2", "@s3"), fixture.HyperNode("core", 3, "@left", "@right"))
}

// gangWith is a gang of pods of one CPU that must all start.
func gangWith(name string, size int, options ...func(*schedulingv1beta1.PodGroup)) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, "default", int32(size), options...)}
	for i := range size {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i)))
	}
	return objects
}

// fill puts a pod of so many CPUs on each of some nodes.
func fill(w *harness.Model, cpus int, nodes ...string) {
	for _, n := range nodes {
		w.Set(fixture.Pod("filler-"+n, fixture.On(n), fixture.Asks(fmt.Sprintf("cpu=%d", cpus))))
	}
}

// switches lists the switches that the pods of a job are behind, each once.
func switches(w *harness.Model, job string) string {
	var names []string
	for _, t := range w.JobNamed(job).Tasks() {
		if t.Node != nil {
			name, _, _ := strings.Cut(t.Node.Name, "-")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func TestAGangIsPlacedInTheLowestTierThatHoldsIt(t *testing.T) {
	for name, test := range map[string]struct {
		size  int
		limit func(*schedulingv1beta1.PodGroup)
		full  map[int][]string // nodes, by the number of CPUs that are taken on each
		want  string           // the switches
	}{
		"one switch":                       {8, fixture.Within(3), nil, "s0"},
		"the fullest that it fits behind":  {4, fixture.Within(3), map[int][]string{2: {"s2-0", "s2-1"}, 4: {"s3-0", "s3-1"}}, "s2"},
		"one spine if no switch does":      {9, fixture.Within(3), nil, "s0 s1"},
		"the other spine if one is full":   {9, fixture.Within(3), map[int][]string{3: {"s0-0", "s0-1", "s1-0"}}, "s2 s3"},
		"all if no spine does":             {17, fixture.Within(3), nil, "s0 s1 s2 s3"},
		"close if it can be":               {8, fixture.Close, nil, "s0"},
		"in one spine if it can be":        {9, fixture.Close, nil, "s0 s1"},
		"anywhere if it cannot":            {13, fixture.Close, map[int][]string{3: {"s0-0", "s1-0", "s2-0", "s3-0"}}, "s0 s1 s2 s3"},
		"a tier by name is a tier as well": {8, named("switch"), nil, "s0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := switched(t, 2)
			for i := range 4 {
				h := fixture.HyperNode(fmt.Sprintf("s%d", i), 1, fmt.Sprintf("~^s%d-", i))
				h.Spec.TierName = "switch"
				w.Set(h)
			}
			for cpus, nodes := range test.full {
				fill(w, cpus, nodes...)
			}
			w.Set(gangWith("g", test.size, test.limit))
			if placed := placeAll(t, w, "g"); len(placed) != test.size || switches(w, "g") != test.want {
				t.Errorf("%d pods are behind %s, want %d behind %s", len(placed), switches(w, "g"), test.size, test.want)
			}
		})
	}
}

func named(tier string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) {
		g.Spec.NetworkTopology = &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierName: tier}
	}
}

func TestWhatCannotBeCloseIsToldWhereItComesClosest(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		limit  func(*schedulingv1beta1.PodGroup)
		want   string
		placed int
	}{
		"no switch is large enough": {9, fixture.Within(1), "all must be within one HyperNode of tier 1 or lower, and the best is s1 of tier 1; " +
			"cpu: needs 9, has 8, short by 1", 8},
		"no tier is that low":            {2, fixture.Within(0), "there is no HyperNode of tier 0 or lower, which the job must stay within", 0},
		"no tier is called that":         {2, named("rack"), `no HyperNode has the tierName "rack", which the job must stay within`, 0},
		"a bound without a tier is none": {99, named(""), "", 31},
	} {
		t.Run(name, func(t *testing.T) {
			w := switched(t, 2)
			fill(w, 1, "s0-0")
			w.Set(gangWith("g", test.size, test.limit))
			s := w.Open()
			v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g")))
			if v == nil || v.Code != verdict.NotEnoughResources || v.Detail != test.want || v.Placed != test.placed {
				t.Errorf("the verdict is %+v", v)
			}
			if s.Domain() != nil || s.Cluster.Mark() != 0 {
				t.Error("an attempt has left something behind")
			}
		})
	}
}

func TestAHardBoundWaitsWhereNoPluginSeesToIt(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=4")).Set(gangWith("g", 1, fixture.Within(1))).Set(gangWith("h", 1, fixture.Close))
	s := w.Open()
	if v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))); v == nil || v.Code != verdict.Refused || !strings.Contains(v.Detail, "network-topology-aware") {
		t.Errorf("the verdict is %+v", v)
	}
	if v := gang.Place(s, w.JobNamed("h"), s.Pending(w.JobNamed("h"))); v != nil {
		t.Errorf("what need not be close is refused: %s", v.Sentence())
	}
}

func TestPodsThatComeLaterStayWithThoseThatRun(t *testing.T) {
	for name, test := range map[string]struct {
		limit func(*schedulingv1beta1.PodGroup)
		runs  string // the node of the running pod
		full  []string
		want  string // the switches of both, "" if the second waits
	}{
		"behind the same switch":                    {fixture.Within(3), "s2-0", nil, "s2"},
		"then in the same spine":                    {fixture.Within(3), "s2-0", []string{"s2-1"}, "s2 s3"},
		"not beyond the tier":                       {fixture.Within(1), "s2-0", []string{"s2-1"}, ""},
		"beyond it if it need not be":               {fixture.Close, "s2-0", []string{"s2-1", "s3-0", "s3-1"}, "s0 s2"},
		"never if the first is where it is in none": {fixture.Within(3), "stray", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := switched(t, 2).Set(fixture.Node("stray", "cpu=4"))
			w.Set(fixture.Group("g", "default", 1, test.limit), fixture.Pod("g-0", fixture.In("g"), fixture.As("worker", 0), fixture.On(test.runs),
				fixture.Asks("cpu=4")), fixture.Pod("g-1", fixture.In("g"), fixture.As("worker", 1)))
			fill(w, 4, test.full...)
			s := w.Open()
			v := gang.PlaceOne(s, s.Begin(), w.TaskNamed("g-1"))
			if (v == nil) != (test.want != "") || v == nil && switches(w, "g") != test.want {
				t.Errorf("the pods are behind %q, want %q; the verdict is %+v", switches(w, "g"), test.want, v)
			}
		})
	}
}

func TestAJobComesBackToWhereItWas(t *testing.T) {
	w := switched(t, 2)
	w.Set(gangWith("g", 4, fixture.Within(2), func(g *schedulingv1beta1.PodGroup) {
		g.Annotations = map[string]string{schedulingv1beta1.JobAllocatedHyperNodeKey: "s3"}
	}))
	if placeAll(t, w, "g"); switches(w, "g") != "s3" {
		t.Errorf("it is behind %s", switches(w, "g"))
	}
}

// partOf labels a pod with its part.
func partOf(part int) func(*corev1.Pod) { return fixture.Labelled("part", fmt.Sprint(part)) }

// inParts is a gang of pods of one CPU in parts of equal size.
func inParts(name string, parts, size int, options ...func(*schedulingv1beta1.PodGroup)) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, "default", int32(parts*size), options...)}
	for i := range parts * size {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), partOf(i/size)))
	}
	return objects
}

func TestEachPartOfAGangHasItsOwnSwitch(t *testing.T) {
	one := 1
	bound := &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode, HighestTierAllowed: &one}
	for name, test := range map[string]struct {
		parts, size int
		options     []func(*schedulingv1beta1.PodGroup)
		full        []string
		want        string // the switches of each part
	}{
		"behind one switch if they fit": {2, 4, []func(*schedulingv1beta1.PodGroup){fixture.Within(2), fixture.Parts("part", 4, 2, bound)}, nil, "s0, s0"},
		"in one spine": {2, 8, []func(*schedulingv1beta1.PodGroup){fixture.Within(2), fixture.Parts("part", 8, 2, bound)},
			[]string{"s0-0"}, "s2, s3"},
		"anywhere if only the parts are bound": {3, 8, []func(*schedulingv1beta1.PodGroup){fixture.Parts("part", 8, 3, bound)}, []string{"s1-0"}, "s0, s2, s3"},
		"some are enough": {4, 8, []func(*schedulingv1beta1.PodGroup){fixture.Parts("part", 8, 2, bound),
			func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 16 }}, []string{"s0-0", "s3-0"}, "s1, s2, , "},
	} {
		t.Run(name, func(t *testing.T) {
			w := switched(t, 2)
			fill(w, 4, test.full...)
			w.Set(inParts("g", test.parts, test.size, test.options...))
			placeAll(t, w, "g")
			places := make([]string, test.parts)
			for part := range test.parts {
				var names []string
				for i := range test.size {
					if n := w.TaskNamed(fmt.Sprintf("g-%d", part*test.size+i)).Node; n != nil {
						name, _, _ := strings.Cut(n.Name, "-")
						names = append(names, name)
					}
				}
				slices.Sort(names)
				places[part] = strings.Join(slices.Compact(names), "+")
			}
			if got := strings.Join(places, ", "); got != test.want {
				t.Errorf("the parts are behind %s, want %s", got, test.want)
			}
			if problems := w.Audit(); len(problems) > 0 {
				t.Error(problems)
			}
		})
	}
}

func TestAPartIsPlacedWholeOrNotAtAll(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=5"))
	w.Set(inParts("g", 2, 3, fixture.Parts("part", 3, 1, nil), func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 3 }))
	s := w.Open()
	j := w.JobNamed("g")
	if v := gang.Place(s, j, s.Pending(j)); v != nil {
		t.Fatal(v.Sentence())
	}
	if j.Ready() != 3 || !j.KeepsSubgroupsWhole() {
		t.Errorf("%d pods are placed", j.Ready())
	}
	x := s.Begin()
	if v := gang.PlaceNext(s, x, s.Pending(j)[0], s.Pending(j)); v == nil || v.Subject != "subgroup part/1" || j.Ready() != 3 {
		t.Errorf("%d pods are placed, and the verdict is %+v", j.Ready(), v)
	}
}

// anySwitched draws such a cluster with some pods in it.
func anySwitched(t *rapid.T) *harness.Model {
	w := switched(t, 2)
	for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
		node := fmt.Sprintf("s%d-%d", rapid.IntRange(0, 3).Draw(t, "switch"), rapid.IntRange(0, 1).Draw(t, "node"))
		w.Set(fixture.Pod(fmt.Sprintf("p%d", i), fixture.On(node), fixture.Asks(fmt.Sprintf("cpu=%d", rapid.IntRange(0, 5).Draw(t, "cpu")))))
	}
	return w
}

func TestAHardGangNeverSpansAndASoftOneIsNeverRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anySwitched(t)
		size, minimum, tier := rapid.IntRange(1, 20).Draw(t, "size"), rapid.IntRange(0, 20).Draw(t, "minimum"), rapid.IntRange(1, 3).Draw(t, "tier")
		asks := make([]string, size)
		for i := range asks {
			asks[i] = rapid.SampledFrom([]string{"cpu=1", "cpu=2", "cpu=500m"}).Draw(t, "asks")
		}
		gang := func(name string, options ...func(*schedulingv1beta1.PodGroup)) *verdict.Verdict {
			w.Set(fixture.Group(name, "default", int32(min(minimum, size)), options...))
			for i, text := range asks {
				w.Set(fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), fixture.Asks(text)))
			}
			s := w.Open()
			j := w.JobNamed(name)
			v := gang.Place(s, j, s.Pending(j))
			for _, task := range s.Pending(j) {
				if v == nil {
					gang.PlaceOne(s, s.Begin(), task) // the rest as far as possible
				}
			}
			return v
		}
		hard := gang("hard", fixture.Within(tier))
		nodes := w.JobNamed("hard").Nodes(nil)
		if common := cluster.Common(nodes); len(nodes) > 0 && (len(common) == 0 || common[0].Tier > tier) {
			t.Fatalf("a gang that must stay within tier %d is behind %s", tier, switches(w, "hard"))
		}
		if hard != nil && len(nodes) > 0 {
			t.Fatalf("%d pods are placed of a gang that is refused", len(nodes))
		}
		w.Cluster.Undo(0)
		plain := gang("plain")
		w.Cluster.Undo(0)
		soft := gang("soft", fixture.Close)
		if plain == nil && soft != nil {
			t.Fatalf("refused is what could be placed without a wish: %s", soft.Sentence())
		}
		before := switches(w, "soft")
		w.Cluster.Undo(0)
		if again := gang("soft", fixture.Close); (again == nil) != (soft == nil) || switches(w, "soft") != before {
			t.Fatalf("placed behind %s, and the second time behind %s", before, switches(w, "soft"))
		}
		w.Cluster.Undo(0)
		if hard == nil && plain != nil {
			t.Fatalf("placed close, and not at all otherwise: %s", plain.Sentence())
		}
		if problems := w.Audit(); len(problems) > 0 {
			t.Fatal(problems)
		}
	})
}

func TestTheBestNodeOfAHyperNodeIsThatOfAFreshSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anySwitched(t)
		w.Set(gangWith("g", 12))
		s := w.Open()
		x := s.Begin()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			pending := s.Pending(w.JobNamed("g"))
			if len(pending) == 0 {
				break
			}
			if rapid.IntRange(0, 5).Draw(t, "undo") == 5 {
				x.Undo()
				x = s.Begin()
				continue
			}
			domains := []*cluster.Domain{nil, cluster.NewDomain(s.Cluster.Nodes()[1:])}
			for _, h := range s.Cluster.HyperNodes() {
				domains = append(domains, h.Domain, h.Domain.Intersect(domains[1]))
			}
			domain := rapid.SampledFrom(domains).Draw(t, "domain")
			fresh, err := placer.New(w.Cluster, w.Policy)
			if err != nil {
				t.Fatal(err)
			}
			fresh.Confine(domain)
			want := fresh.Best(pending[0])
			s.Within(domain, func() {
				got := s.Placer.Best(pending[0])
				if got != want {
					t.Fatalf("the engine says %s, a fresh one %s", nameOf(got), nameOf(want))
				}
				if got == nil {
					return
				}
				if !domain.Holds(got) || !s.Placer.Fits(pending[0], got) {
					t.Fatalf("%s is not to be had", got.Name)
				}
				x.Place(pending[0], got)
			})
		}
		w.Cluster.Undo(0)
	})
}
