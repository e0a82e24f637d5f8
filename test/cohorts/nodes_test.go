package cohorts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/harness"
)

// grid is a small cluster in which pods need a node with the labels of their flavors and room. It finds a place for all
// pods if there is one, and so says what the decisions should be.
type grid struct {
	index *resources.Index
	nodes []*gridNode
	pods  map[*workload.Workload][]gridPod
	away  map[*workload.Workload]bool
}

type gridNode struct {
	name    string
	flavors map[string]bool
	all     resources.Vector
	used    resources.Vector
}

type gridPod struct {
	node     *gridNode
	requests resources.Vector
}

func newGrid(m *model, c *theCase) *grid {
	g := &grid{index: m.index, pods: map[*workload.Workload][]gridPod{}, away: map[*workload.Workload]bool{}}
	for _, s := range c.Nodes {
		n := &gridNode{name: s.Name, flavors: map[string]bool{}}
		for _, f := range s.Flavors {
			n.flavors[f] = !s.Unschedulable
		}
		n.all = m.vector(s.Allocatable)
		g.nodes = append(g.nodes, n)
	}
	for _, p := range c.OtherPods {
		g.put(nil, p.Node, m.vector(p.Requests))
	}
	for _, a := range c.Admitted {
		for _, p := range a.Pods {
			g.put(m.workloads[a.Name], p.Node, m.vector(p.Requests))
		}
	}
	return g
}

func (m *model) vector(amounts map[string]string) resources.Vector {
	var v resources.Vector
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		v.Set(m.index.Dim(corev1.ResourceName(name)), quantity(name, amounts[name]))
	}
	return v
}

func (g *grid) put(w *workload.Workload, node string, requests resources.Vector) {
	for _, n := range g.nodes {
		if n.name == node {
			n.used.Add(requests)
			g.pods[w] = append(g.pods[w], gridPod{n, requests})
		}
	}
}

// drop removes a Workload for good.
func (g *grid) drop(w *workload.Workload) {
	g.Leave(w)
	delete(g.pods, w)
	delete(g.away, w)
}

func (g *grid) Stays(*workload.Workload) bool { return false }

func (g *grid) Leave(w *workload.Workload)  { g.move(w, true) }
func (g *grid) Return(w *workload.Workload) { g.move(w, false) }

func (g *grid) move(w *workload.Workload, away bool) {
	if g.away[w] == away {
		panic("invariant: " + w.Name + " leaves or returns twice")
	}
	g.away[w] = away
	for _, p := range g.pods[w] {
		if away {
			p.node.used.Sub(p.requests)
		} else {
			p.node.used.Add(p.requests)
		}
	}
}

// wanted is one pod to be placed.
type wanted struct {
	requests resources.Vector
	flavors  []*workload.Flavor
}

func pods(w *workload.Workload, parts []workload.Part) (all []wanted) {
	for _, part := range parts {
		var v resources.Vector
		for _, r := range w.PodSets[part.PodSet].Requests {
			v.Set(r.Dim, r.Value)
		}
		for range part.Count {
			all = append(all, wanted{v, part.Flavors})
		}
	}
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(size(b.requests), size(a.requests)) })
	return all
}

func size(v resources.Vector) (sum int64) {
	for _, value := range v {
		sum += value
	}
	return sum
}

func (n *gridNode) holds(p wanted, used resources.Vector) bool {
	for _, f := range p.flavors {
		if !n.flavors[f.Name] {
			return false
		}
	}
	for d, value := range p.requests {
		if value > 0 && used.At(resources.Dim(d))+value > n.all.At(resources.Dim(d)) {
			return false
		}
	}
	return true
}

// place finds nodes for all pods, nil if there are none. used says what is taken of each node.
func (g *grid) place(all []wanted, used map[*gridNode]resources.Vector) []*gridNode {
	if len(all) == 0 {
		return []*gridNode{}
	}
	for _, n := range g.nodes {
		if !n.holds(all[0], used[n]) {
			continue
		}
		before := used[n]
		after := before.Clone()
		after.Add(all[0].requests)
		used[n] = after
		if rest := g.place(all[1:], used); rest != nil {
			return append([]*gridNode{n}, rest...)
		}
		used[n] = before
	}
	return nil
}

func (g *grid) now() map[*gridNode]resources.Vector {
	used := map[*gridNode]resources.Vector{}
	for _, n := range g.nodes {
		used[n] = n.used
	}
	return used
}

func (g *grid) CanPlace(w *workload.Workload, parts []workload.Part) bool {
	return g.place(pods(w, parts), g.now()) != nil
}

func (g *grid) CouldPlace(w *workload.Workload, parts []workload.Part) bool {
	return g.place(pods(w, parts), map[*gridNode]resources.Vector{}) != nil
}

func (g *grid) Opens(victim, w *workload.Workload, parts []workload.Part) bool {
	for _, p := range g.pods[victim] {
		for _, wants := range pods(w, parts) {
			if p.node.holds(wants, nil) {
				return true
			}
		}
	}
	return false
}

func (g *grid) Promise(w *workload.Workload, parts []workload.Part) bool {
	all := pods(w, parts)
	nodes := g.place(all, g.now())
	for i, n := range nodes {
		n.used.Add(all[i].requests)
		g.pods[w] = append(g.pods[w], gridPod{n, all[i].requests})
	}
	return nodes != nil
}

func TestOneRoundWithNodes(t *testing.T) {
	cases(t, "nodes.json", func(t *testing.T, c *theCase) {
		m := build(t, c)
		g := newGrid(m, c)
		m.cycle.Use(g)
		expectRound(t, m, c)
	})
}

// The same on nodes and pods of the scheduler's model.
func TestOneRoundOnACluster(t *testing.T) {
	cases(t, "nodes.json", func(t *testing.T, c *theCase) {
		m := build(t, c)
		h := clusterOf(t, m, c)
		p := onCluster(m, h)
		expectRound(t, m, c)
		p.End()
		h.Check()
		isHeld(t, m, h)
	})
}

// isHeld checks that each Workload that was admitted or planned has a node for each pod, and no other has any.
func isHeld(t *testing.T, m *model, h *harness.Model) {
	t.Helper()
	for _, w := range m.workloads {
		j := h.Job(cluster.WorkloadID(w.Namespace, w.Name))
		if len(w.PodSets) == 0 {
			continue // it was admitted before
		}
		held, want := 0, 0
		if j != nil {
			held = j.Count(cluster.Awaited) + j.Count(cluster.Pipelined)
		}
		if w.IsCharged() {
			want = held
			if held == 0 || j.Count(cluster.Pending) > 0 {
				t.Errorf("workload %s is charged and has no nodes", w.Name)
			}
		}
		if held != want || j != nil && len(j.Tasks()) != held {
			t.Errorf("workload %s holds %d nodes, want %d", w.Name, held, want)
		}
	}
}

// expectRound runs one round and compares what it decides.
func expectRound(t *testing.T, m *model, c *theCase) {
	t.Helper()
	var expect decided
	decode(t, c.Expect, &expect)
	got, preempted := map[string]*workload.Nomination{}, map[string]workload.Why{}
	m.cycle.Decided = func(n *workload.Nomination) {
		if m.note != nil {
			m.note(n)
		}
		got[n.Name] = n
		countEvicted(preempted, n)
	}
	m.cycle.MaxRounds = 1 // a round of one head of each queue, as the cases have it
	m.cycle.Round()
	for name, want := range expect.Workloads {
		n := got[name]
		if n == nil || n.Outcome != want.Outcome {
			t.Errorf("workload %s: %s, want %s", name, outcome(n), want.Outcome)
			continue
		}
		for i := range n.Assignment.PodSets {
			p := &n.Assignment.PodSets[i]
			if len(want.Counts) > 0 && p.Count != want.Counts[i] {
				t.Errorf("workload %s: pod set %d gets %d pods, want %d", name, i, p.Count, want.Counts[i])
			}
			for _, f := range p.Flavors {
				if want.Flavor != "" && f.Flavor.Name != want.Flavor {
					t.Errorf("workload %s: flavor %s, want %s", name, f.Flavor.Name, want.Flavor)
				}
			}
		}
	}
	if !maps.Equal(preempted, expect.Preempted) {
		t.Errorf("evicted are %v, want %v", preempted, expect.Preempted)
	}
}

// checked is a queue whose Workloads do not start before a check is ready.
const checked = `
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: AdmissionCheck, metadata: {name: check}, spec: {controllerName: example.com/c}, status: {conditions: [{type: Active, status: 'True', reason: Active, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: check}]},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}`

func TestANodeThatIsCordonedBeforeItsPodsComeIsReplaced(t *testing.T) {
	for name, cordons := range map[string]func(w *world.World){
		"it is cordoned": func(w *world.World) {
			o := w.Object("v1.Node/n1").DeepCopyObject().(*corev1.Node)
			o.Spec.Unschedulable = true
			w.Replace(o)
		},
		"it is deleted": func(w *world.World) { w.RemoveNode("n1") },
	} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(checked)
			w.Apply(workloadOf("a", "q", 0, 1, "4")).Rest(20)
			nodes := func() string {
				all, _ := settings.Nodes(w.Workload("a").Status.Admission.PodSetAssignments[0].TopologyAssignment)
				return fmt.Sprint(all)
			}
			if got := nodes(); got != "[{n1 1}]" {
				t.Fatal("it holds ", got)
			}
			w.AddNode("n2", "cpu=4")
			w.Step()
			cordons(w)
			if w.Rest(20); nodes() != "[{n2 1}]" || w.Evictions > 0 {
				t.Errorf("it holds %s after %d evictions", nodes(), w.Evictions)
			}
		})
	}
}

// A Workload of two pods that has not started is to get one pod only, and a node of it is cordoned for a while.
func TestASchedulerThatBeginsLeavesAWorkloadWhereItMoved(t *testing.T) {
	for name, isMovedFirst := range map[string]bool{"one pod less, then the other's node is cordoned": false,
		"a node is cordoned, then one pod less": true} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=2").AddNode("n2", "cpu=2").Apply(checked)
			w.Apply(workloadOf("a", "q", 0, 2, "2")).Rest(20)
			w.AddNode("n0", "cpu=2")
			standing := func() (nodes []string) {
				for _, task := range w.Job(cluster.WorkloadID(world.Namespace, "a")).Tasks() {
					nodes = append(nodes, task.Node.Name)
				}
				return nodes
			}
			cordon := func(node string, isCordoned bool) {
				o := w.Object("v1.Node/" + node).DeepCopyObject().(*corev1.Node)
				o.Spec.Unschedulable = isCordoned
				w.Replace(o)
				w.Rest(20)
			}
			reclaim := func() {
				w.Edit("a", func(o *v1beta2.Workload) {
					o.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: o.Spec.PodSets[0].Name, Count: 1}}
				})
				w.Rest(20)
			}
			if !isMovedFirst {
				reclaim()
			}
			closed := standing()[0]
			if cordon(closed, true); isMovedFirst {
				reclaim()
			}
			cordon(closed, false)
			before := standing()
			if len(before) != 1 || before[0] == closed {
				t.Fatalf("%s was cordoned, and it has stand-ins on %v", closed, before)
			}
			if wrong := unread(w, w.Workload("a")); wrong != "" {
				t.Error(wrong)
			}
			if w.Restart(nil).Rest(20); !slices.Equal(standing(), before) {
				t.Errorf("a scheduler that begins puts it on %v, it was on %v", standing(), before)
			}
		})
	}
}

func TestANodeThatIsLostAfterItsPodHasEndedEvictsNone(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=2").AddNode("n2", "cpu=2").Apply(one(4, "Never"))
	w.Apply(workloadOf("a", "q", 0, 2, "2")).Rest(20)
	node := w.Job(cluster.WorkloadID(world.Namespace, "a")).Tasks()[0].Node.Name
	w.Succeed("a-main-0")
	o := w.Object("v1.Node/" + node).DeepCopyObject().(*corev1.Node)
	o.Spec.Unschedulable = true
	w.Replace(o)
	w.Rest(20)
	w.RemovePod("a-main-1") // the node of this one is still there
	if w.Rest(20); w.Evictions > 0 || len(w.Running("a")) != 1 {
		t.Errorf("after %d evictions pods run on %v", w.Evictions, w.Running("a"))
	}
}
