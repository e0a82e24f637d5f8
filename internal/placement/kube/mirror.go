package kube

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/internal/placement/kube/nodelabels"
	"hekla.sh/hekla/internal/placement/kube/population"
	"hekla.sh/hekla/internal/placement/supply"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// mirror is the model as the plugins see it. Objects and pods are updated separately, since most questions need no
// pods.
type mirror struct {
	cluster    *model.Cluster
	shows      func(cluster.Status) bool // whether a task in a status is on its node
	bySlot     []*reflection             // nil if there is no node, or it was not needed yet
	stock      stock                     // container images on all nodes
	softTaints int                       // on all nodes
	taints     taints
	labels     nodelabels.Index

	terms map[*pods.Template]*framework.PodInfo // a pod of each template that has affinity

	objectsSeen uint64 // how far Cluster.Changes has been followed for node objects
	podsSeen    uint64 // and for pods
	epoch       uint64 // grows when a node object is added, changed or removed

	own        lister // all nodes, when listed
	listed     uint64 // the epoch of own
	topology   domains.Topology
	population *population.Population // nil until a class depends on pods elsewhere
	informers  informers.SharedInformerFactory
	spaces     cache.Indexer // the namespaces in the plugins' lister
	spacesAre  uint64        // the NamespacesGeneration of spaces
	shelf      *supply.Shelf // the volumes and devices in the plugins' listers
	ledger     *supply.Ledger
}

// reflection is one node as the plugins see it.
type reflection struct {
	node       *cluster.Node
	info       *framework.NodeInfo // without Node while the node has no object
	object     uint64              // the SpecGeneration that it shows
	pods       uint64              // the Generation of its pods, 0 if they were never needed
	residents  []*population.Pod   // all pods on the node, shown or not, because evictions may be undone
	spare      []*population.Pod   // memory for the next of these
	softTaints int
	taintSet   int // equal for nodes with the same taints, cordoned or not; -1 if it has no number
}

// exists reports whether the node is there for the plugins.
func (r *reflection) exists() bool { return r != nil && r.info.Node() != nil }

// isThere reports whether a task in a status holds resources on its node now.
func isThere(s cluster.Status) bool { return s.Holds() }

// willBeThere reports whether it will, once leaving pods are gone and pipelined tasks are placed.
func willBeThere(s cluster.Status) bool { return s.Holds() && !s.Leaves() || s == cluster.Pipelined }

func newMirror(c *model.Cluster, shows func(cluster.Status) bool) *mirror {
	// Neither a client nor a resync: the factory only has to make listers.
	factory := informers.NewSharedInformerFactory(nil, 0)
	m := &mirror{
		cluster:   c,
		shows:     shows,
		stock:     stock{},
		taints:    newTaints(),
		terms:     map[*pods.Template]*framework.PodInfo{},
		epoch:     1,
		informers: factory,
		spaces:    factory.Core().V1().Namespaces().Informer().GetIndexer(),
	}
	m.shelf, m.ledger = supply.NewShelf(c, factory), &supply.Ledger{}
	return m
}

// followObjects updates all node objects and the list of nodes.
func (m *mirror) followObjects() {
	slots, next, ok := m.cluster.Changes(m.objectsSeen)
	m.objectsSeen = next
	if ok {
		for _, slot := range slots {
			m.show(int(slot))
		}
	} else {
		for slot := range max(len(m.cluster.BySlot()), len(m.bySlot)) {
			m.show(slot)
		}
	}
	if m.listed == m.epoch {
		return
	}
	m.own.all = m.own.all[:0]
	for _, n := range m.cluster.Nodes() {
		if r := m.of(n); r.exists() {
			m.own.all = append(m.own.all, r.info)
		}
	}
	m.listed = m.epoch
}

// followPods updates node objects, namespaces and the pods of all nodes.
func (m *mirror) followPods() {
	m.followObjects()
	if m.population == nil {
		m.population = population.New()
		for _, r := range m.bySlot {
			if r != nil {
				for _, p := range r.residents {
					m.population.Add(p)
				}
			}
		}
	}
	slots, next, ok := m.cluster.Changes(m.podsSeen)
	m.podsSeen = next
	if ok {
		for _, slot := range slots {
			m.fill(m.bySlot[slot])
		}
	} else {
		for _, r := range m.bySlot {
			m.fill(r)
		}
	}
	generation := m.cluster.NamespacesGeneration()
	if generation == m.spacesAre {
		return
	}
	m.spacesAre = generation
	var spaces []any
	for _, namespace := range m.cluster.Namespaces() {
		spaces = append(spaces, namespace)
	}
	if err := m.spaces.Replace(spaces, ""); err != nil {
		panic("invariant: namespaces cannot be indexed: " + err.Error())
	}
}

// of returns the reflection of a node, with its object up to date.
func (m *mirror) of(n *cluster.Node) *reflection {
	if n.Slot >= len(m.bySlot) || !m.bySlot[n.Slot].shows(n) {
		m.show(n.Slot)
	}
	return m.bySlot[n.Slot]
}

// shows reports whether the reflection is of this node with its current object.
func (r *reflection) shows(n *cluster.Node) bool {
	return r != nil && r.node == n && r.object == n.SpecGeneration
}

// show updates the reflection of a slot, without its pods.
func (m *mirror) show(slot int) {
	for len(m.bySlot) <= slot {
		m.bySlot = append(m.bySlot, nil)
	}
	var n *cluster.Node
	if nodes := m.cluster.BySlot(); slot < len(nodes) {
		n = nodes[slot]
	}
	r := m.bySlot[slot]
	switch {
	case n != nil && r.shows(n):
		return
	case r.exists():
		m.hide(slot, r)
	}
	if r != nil && r.node != n && m.population != nil {
		for _, p := range r.residents {
			m.population.Remove(p)
		}
	}
	switch {
	case n == nil:
		m.bySlot[slot] = nil
		return
	case r == nil || r.node != n:
		r = &reflection{node: n, info: framework.NewNodeInfo()}
		m.bySlot[slot] = r
	}
	r.object = n.SpecGeneration
	if n.Object == nil {
		return
	}
	m.epoch++
	r.info.SetNode(n.Object)
	r.info.ImageStates = m.stock.add(slot, n.Object.Status.Images)
	for t := range n.Object.Spec.Taints {
		if n.Object.Spec.Taints[t].Effect == corev1.TaintEffectPreferNoSchedule {
			r.softTaints++
		}
	}
	m.softTaints += r.softTaints
	r.taintSet = m.taints.setOf(n.Object)
	m.topology.Show(slot, n.Object)
	m.labels.Show(slot, n.Object)
	if m.population == nil {
		return
	}
	m.population.Note(population.Change{Node: n.Object, Slot: int32(slot), By: +1})
	for _, p := range r.residents {
		if p.IsShown {
			m.population.Note(population.Change{Node: n.Object, Slot: p.Slot, Pod: p.PodInfo, By: +1, IsNominee: p.IsNominee})
		}
	}
}

// hide removes a node from everything that is counted over nodes.
func (m *mirror) hide(slot int, r *reflection) {
	if m.population != nil {
		for _, p := range r.residents {
			if p.IsShown {
				m.population.Note(population.Change{Node: r.info.Node(), Slot: p.Slot, Pod: p.PodInfo, By: -1, IsNominee: p.IsNominee})
			}
		}
		m.population.Note(population.Change{Node: r.info.Node(), Slot: int32(slot), By: -1})
	}
	m.topology.Show(slot, nil)
	m.labels.Show(slot, nil)
	m.stock.remove(slot, r.info.ImageStates)
	m.softTaints -= r.softTaints
	r.softTaints = 0
	r.info.RemoveNode()
	m.epoch++
}

// fill updates the pods of a node. It sets only those parts of a NodeInfo that the supported plugins read, pods and
// ports. Adding up requests, as AddPodInfo does, would take most of the time.
func (m *mirror) fill(r *reflection) {
	if r == nil || r.pods == r.node.Generation {
		return
	}
	r.pods = r.node.Generation
	info := r.info
	info.Pods = info.Pods[:0]
	clear(info.UsedPorts)
	before := r.residents
	for _, p := range before {
		p.IsStill = false
	}
	r.residents = slices.Grow(r.spare[:0], len(r.node.Tasks()))
	next := 0
	for _, t := range r.node.Tasks() {
		if !t.Status.Holds() && t.Status != cluster.Pipelined {
			continue
		}
		var p *population.Pod
		if p, next = residentOf(before, next, t.Pod); p == nil {
			p = &population.Pod{PodInfo: m.infoOf(t.Pod), Object: t.Pod, Slot: int32(r.node.Slot), IsNominee: t.IsNominee()}
			if m.population != nil {
				m.population.Add(p)
			}
		}
		p.IsStill = true
		r.residents = append(r.residents, p)
		m.showPod(r, p, m.shows(t.Status))
		if !p.IsShown {
			continue
		}
		info.Pods = append(info.Pods, p.PodInfo)
		for _, port := range util.GetHostPorts(p.GetPod()) {
			info.UsedPorts.Add(port.HostIP, string(port.Protocol), port.HostPort)
		}
	}
	clear(info.Pods[len(info.Pods):cap(info.Pods)])
	for _, p := range before {
		if p.IsStill {
			continue
		}
		m.showPod(r, p, false)
		if m.population != nil {
			m.population.Remove(p)
		}
	}
	clear(before)
	r.spare = before[:0]
}

// maxTermsStored is for how many templates of pods the affinity terms are stored: those of the jobs whose pods come at
// one time.
const maxTermsStored = 1 << 12

// infoOf returns a pod as the plugins see it. The affinity terms of equal pods are read once.
func (m *mirror) infoOf(pod *cluster.Pod) *framework.PodInfo {
	known := m.terms[pod.Template]
	if known != nil && known.Pod.Namespace == pod.Namespace {
		return &framework.PodInfo{Pod: pod.Object(), RequiredAffinityTerms: known.RequiredAffinityTerms,
			RequiredAntiAffinityTerms: known.RequiredAntiAffinityTerms, PreferredAffinityTerms: known.PreferredAffinityTerms,
			PreferredAntiAffinityTerms: known.PreferredAntiAffinityTerms}
	}
	// A term that cannot be read matches nothing, as in kube-scheduler; the rest of the pod counts.
	info, _ := framework.NewPodInfo(pod.Object())
	if pod.Spec.Affinity != nil {
		if len(m.terms) >= maxTermsStored {
			clear(m.terms)
		}
		m.terms[pod.Template] = info
	}
	return info
}

// showPod notes whether the plugins see a pod.
func (m *mirror) showPod(r *reflection, p *population.Pod, isShown bool) {
	if p.IsShown == isShown {
		return
	}
	p.IsShown = isShown
	if m.population == nil || !r.exists() {
		return
	}
	c := population.Change{Node: r.info.Node(), Slot: p.Slot, Pod: p.PodInfo, By: -1, IsNominee: p.IsNominee}
	if isShown {
		c.By = +1
	}
	m.population.Note(c)
}

// residentOf returns what there is of a pod, nil if there is nothing, and where the pod after it is likely to be. Pods
// mostly keep their order.
func residentOf(all []*population.Pod, likely int, pod *cluster.Pod) (*population.Pod, int) {
	if likely < len(all) && all[likely].Object == pod {
		return all[likely], likely + 1
	}
	for i, p := range all {
		if p.Object == pod {
			return p, i + 1
		}
	}
	return nil, likely
}

// lister shows the plugins all nodes.
type lister struct{ all []fwk.NodeInfo }

func (l *lister) List() ([]fwk.NodeInfo, error) { return l.all, nil }

// HavePodsWithAffinityList returns none: the plugins that ask are only asked what is wrong with a pod.
func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return nil, nil }

// HavePodsWithRequiredAntiAffinityList returns none, in the same way.
func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) { return nil, nil }

func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range l.all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("node %q is not known", name)
}
