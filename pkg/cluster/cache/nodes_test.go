package cache

import (
	"testing"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"

	"hekla.sh/hekla/pkg/verdict"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/resources"
)

// oneOnN is a model of one node, n, with one running pod that takes a quarter of it.
func oneOnN() *Cache {
	return newCluster(Set{node("n", "cpu=4 pods=10")}, Set{pod("p", on("n"), phase(corev1.PodRunning))})
}

func TestANodeIsCountedAsItIsNow(t *testing.T) {
	for name, test := range map[string]struct {
		events      []Event
		ready       bool
		total, used string // of the cluster
		free        int64  // milli-CPU on the node
	}{
		"it stays as it was":                {nil, true, "cpu=4 pods=10", "cpu=1 pods=1", 3000},
		"it is cordoned":                    {[]Event{Set{node("n", "cpu=4 pods=10", cordoned)}}, true, "", "", 3000},
		"it shrinks below what it holds":    {[]Event{Set{node("n", "cpu=500m pods=10")}}, true, "cpu=500m pods=10", "cpu=1 pods=1", -500},
		"it loses a resource":               {[]Event{Set{node("n", "pods=10")}}, true, "pods=10", "cpu=1 pods=1", -1000},
		"it grows":                          {[]Event{Set{node("n", "cpu=8 pods=10")}}, true, "cpu=8 pods=10", "cpu=1 pods=1", 7000},
		"it is not ready":                   {[]Event{Set{node("n", "cpu=4 pods=10", notReady)}}, false, "", "", 3000},
		"it was not ready and is again":     {[]Event{Set{node("n", "cpu=4 pods=10", notReady)}, Set{node("n", "cpu=4 pods=10")}}, true, "cpu=4 pods=10", "cpu=1 pods=1", 3000},
		"it is gone, its pods are not":      {[]Event{Delete{node("n", "")}}, false, "", "", -1000},
		"it is gone while it was not ready": {[]Event{Set{node("n", "cpu=4 pods=10", notReady)}, Delete{node("n", "")}}, false, "", "", -1000},
		"it is gone and came back":          {[]Event{Delete{node("n", "")}, Set{node("n", "cpu=8 pods=10", reborn)}}, true, "cpu=8 pods=10", "cpu=1 pods=1", 7000},
		"it came back and nobody saw it go": {[]Event{Set{node("n", "cpu=8 pods=10", reborn)}}, true, "cpu=8 pods=10", "cpu=1 pods=1", 7000},
		"it came back, and the deletion of the first comes late": {
			[]Event{Set{node("n", "cpu=8 pods=10", reborn)}, Delete{node("n", "")}}, true, "cpu=8 pods=10", "cpu=1 pods=1", 7000},
	} {
		t.Run(name, func(t *testing.T) {
			c := oneOnN()
			for _, event := range test.events {
				c.Apply(event)
				sound(t, c)
			}
			c.Settle()
			n := c.Node("n")
			if n.Ready() != test.ready {
				t.Errorf("ready is %t", n.Ready())
			}
			amounts(t, c, "the total", c.Total, test.total)
			amounts(t, c, "what is used of it", c.Used, test.used)
			amounts(t, c, "what is used on the node", n.Used, "cpu=1 pods=1")
			if have := n.Free(resources.CPU); have != test.free {
				t.Errorf("free is %d, want %d", have, test.free)
			}
			sound(t, c)
		})
	}
}

func TestANodeIsForgottenWithTheLastThatSpeaksOfIt(t *testing.T) {
	c := oneOnN()
	slot := c.Node("n").Slot
	c.Apply(Delete{node("n", "")})
	if c.Node("n") == nil {
		t.Fatal("the node is forgotten while a pod is on it")
	}
	c.Apply(Delete{pod("p")})
	c.Settle()
	if c.Node("n") != nil || len(c.Nodes()) != 0 {
		t.Error("the node is remembered though nothing is left of it")
	}
	c.Apply(Set{node("other", "cpu=1")})
	if have := c.Node("other").Slot; have != slot {
		t.Errorf("the next node has slot %d, not the one that is free, %d", have, slot)
	}
	sound(t, c)
}

func TestAFinishedPodDoesNotBringItsNodeBack(t *testing.T) {
	for name, event := range map[string]Event{
		"seen finished only":         Set{pod("p", on("gone"), phase(corev1.PodSucceeded))},
		"of another scheduler":       Set{pod("p", on("gone"), phase(corev1.PodFailed), scheduler("other"))},
		"finished while it was left": Set{pod("p", on("gone"), phase(corev1.PodFailed), deleting)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(event)
			if len(c.Nodes()) != 0 {
				t.Error("a node is known that neither exists nor holds anything")
			}
			sound(t, c)
		})
	}
}

func TestALateNodeFindsItsPods(t *testing.T) {
	c := newCluster(Set{pod("p", on("n"))})
	if n := c.Node("n"); n == nil || n.Ready() || n.Object != nil {
		t.Fatalf("the node of a pod, not known yet, is %v", n)
	}
	amounts(t, c, "the total before the node is known", c.Total, "")
	amounts(t, c, "what is used of it", c.Used, "")
	sound(t, c)
	c.Apply(Set{node("n", "cpu=4")})
	c.Settle()
	amounts(t, c, "the total", c.Total, "cpu=4")
	amounts(t, c, "what is used of it", c.Used, "cpu=1 pods=1")
	sound(t, c)
}

func TestWhatLeavesHoldsItsRoomAndMayBePromised(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{pod("leaving", on("n"), asks("cpu=3"), deleting)}, Set{group("g", "")},
		Set{pod("waits", in("g"), asks("cpu=3"))})
	n := c.Node("n")
	if free := n.Free(resources.CPU); free != 1000 {
		t.Errorf("free is %d, want 1000: what leaves still holds its room", free)
	}
	c.promise("waits", "n")
	for amount, fits := range map[string]bool{"cpu=1": true, "cpu=1001m": false} {
		if have := n.Room(c.vector(amount)); have != fits {
			t.Errorf("room for %s next to a promise of 3 to come out of what leaves: %t", amount, have)
		}
	}
	sound(t, c)
	// A promise that does not come out of what leaves comes out of what is free.
	c.Apply(Delete{pod("leaving")})
	if free := n.Free(resources.CPU); free != 1000 {
		t.Errorf("free is %d, want 1000: three of four are promised", free)
	}
	// A node that vanishes keeps no promise.
	c.Apply(Delete{node("n", "")})
	status(t, c, "waits", cluster.Pending, "")
	sound(t, c)
}

func TestAPromiseKeptElsewhereIsRoomThatHelps(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=4")}, Set{group("g", "")}, Set{pod("p", in("g"))}, Set{group("h", "")}, Set{pod("q", in("h"))})
	c.promise("p", "n")
	before := countOf(counts(c), verdict.HelpNode)
	c.Apply(Set{pod("p", in("g"), on("m"))})
	if countOf(counts(c), verdict.HelpNode) == before {
		t.Error("the room promised on the node is free, and nobody who waits for room will look")
	}
	sound(t, c)
	c.promise("q", "n")
	before = countOf(counts(c), verdict.HelpNode)
	c.Apply(Set{pod("q", in("h"), labelled("a", "b"))})
	if countOf(counts(c), verdict.HelpNode) != before {
		t.Error("a promise that stands as it was is taken for room")
	}
}

func TestARequestForNothingFitsOnAFullNode(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=1")}, Set{pod("p", on("n"), asks("cpu=2"))})
	if !c.Node("n").Room(c.vector("")) || c.Node("n").Room(c.vector("cpu=1m")) || c.Node("n").Room(c.vector("nvidia.com/gpu=1")) {
		t.Error("a node that is over-full takes what asks for nothing, and nothing else")
	}
}

func TestAHeartbeatChangesNothing(t *testing.T) {
	c := oneOnN()
	generation, world := c.Node("n").Generation, counts(c)
	_, since, _ := c.Changes(0)
	beat := node("n", "cpu=4000m pods=10")
	beat.ResourceVersion = "2"
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.Apply(Set{beat})
	if slots, _, _ := c.Changes(since); len(slots) != 0 || c.Node("n").Generation != generation || counts(c) != world {
		t.Error("a heartbeat counts as a change of the node")
	}
	if c.Node("n").Object != beat {
		t.Error("the object is not the last one seen")
	}
}

func TestEveryChangeOfANodeThatADecisionRestsOnIsSeen(t *testing.T) {
	for name, change := range map[string]func(*corev1.Node){
		"cordon":    cordoned,
		"not ready": notReady,
		"a label":   func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} },
		"an image":  func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"a"}}} },
		"a taint":   func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} },
		"annotations": func(n *corev1.Node) {
			n.Annotations = map[string]string{schedulingv1beta1.OversubscriptionMemoryKey: "1"}
		},
		"size":      func(n *corev1.Node) { n.Status.Allocatable = list("cpu=5") },
		"a new UID": reborn,
	} {
		t.Run(name, func(t *testing.T) {
			c := oneOnN()
			was := *c.Node("n")
			_, since, _ := c.Changes(0)
			c.Apply(Set{node("n", "cpu=4 pods=10", change)})
			n := c.Node("n")
			slots, _, _ := c.Changes(since)
			if n.Generation == was.Generation || n.SpecGeneration == was.SpecGeneration || len(slots) == 0 {
				t.Error("the change shows nowhere")
			}
		})
	}
}

func TestNodesAreListedByName(t *testing.T) {
	c := newCluster(Set{node("b", "")}, Set{pod("p", on("d"))}, Set{node("c", "")}, Set{node("a", "")})
	c.Apply(Delete{node("b", "")})
	c.Settle()
	for rank, want := range []string{"a", "c", "d"} {
		if n := c.Nodes()[rank]; n.Name != want || n.Rank != rank {
			t.Errorf("node %d is %s of rank %d, want %s", rank, n.Name, n.Rank, want)
		}
	}
}

// A node that takes fewer pods helps those who count pods by topology domain, and tells others that they have less.
func TestANodeThatTakesFewerPodsWakesOnlyWhomThatMayHelp(t *testing.T) {
	const no, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	labelled := func(n *corev1.Node) { n.Labels = map[string]string{"pool": "b"} }
	tainted := withTaint("a", no)
	for name, test := range map[string]struct {
		before  []func(*corev1.Node)
		event   Event
		isRoom  bool // for jobs that wait for nodes
		isPods  bool // for those that wait for pods elsewhere
		isFewer bool // for those of which some pods had a place
	}{
		"it is removed":                  {nil, Delete{node("n", "")}, false, true, true},
		"it is cordoned":                 {nil, Set{node("n", "cpu=4", cordoned)}, false, true, true},
		"it is not ready":                {nil, Set{node("n", "cpu=4", notReady)}, false, true, true},
		"it has a taint":                 {nil, Set{node("n", "cpu=4", tainted)}, false, true, true},
		"it has less":                    {nil, Set{node("n", "cpu=3")}, false, false, true},
		"it is cordoned and has less":    {nil, Set{node("n", "cpu=3", cordoned)}, false, true, true},
		"it is cordoned and has more":    {nil, Set{node("n", "cpu=5", cordoned)}, true, false, true},
		"it is cordoned and relabelled":  {nil, Set{node("n", "cpu=4", cordoned, labelled)}, true, true, true},
		"it is not cordoned any more":    {[]func(*corev1.Node){cordoned}, Set{node("n", "cpu=4")}, true, false, true},
		"it is ready again":              {[]func(*corev1.Node){notReady}, Set{node("n", "cpu=4")}, true, false, true},
		"its taint is removed":           {[]func(*corev1.Node){tainted}, Set{node("n", "cpu=4")}, true, false, true},
		"it has another taint instead":   {[]func(*corev1.Node){tainted}, Set{node("n", "cpu=4", withTaint("b", no))}, true, false, true},
		"its taint has another effect":   {[]func(*corev1.Node){tainted}, Set{node("n", "cpu=4", withTaint("a", noExecute))}, true, false, true},
		"it has a taint more":            {[]func(*corev1.Node){tainted}, Set{node("n", "cpu=4", tainted, withTaint("b", no))}, false, true, true},
		"it is cordoned without a taint": {[]func(*corev1.Node){tainted}, Set{node("n", "cpu=4", cordoned)}, true, false, true},
		"it has more of one, less of other": {[]func(*corev1.Node){func(n *corev1.Node) { n.Status.Allocatable = list("cpu=3 memory=2Gi") }},
			Set{node("n", "cpu=4 memory=1Gi")}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			selects := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "a"} }
			c := newCluster(Set{node("n", "cpu=4", test.before...)}, Set{group("g", "")}, Set{pod("p", in("g"), selects)})
			c.Settle()
			j := c.Job(jobID("g"))
			before := c.Present(j)
			c.Apply(test.event)
			c.Settle()
			now := c.Present(j)
			for help, want := range map[verdict.Help]bool{verdict.HelpNode: test.isRoom, verdict.HelpEmptyNodes: test.isRoom, verdict.HelpPod: test.isPods, verdict.HelpPlaces: test.isFewer} {
				if is := before.Counts.Differ(&now.Counts, help); is != want {
					t.Errorf("a job that hopes for %b is looked at: %t", help, is)
				}
			}
		})
	}
}
