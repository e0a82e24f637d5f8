package kube

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"hekla.sh/hekla/internal/placement/supply"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
)

// mirror is the model as the plugins see it. Objects and pods are updated separately, since most questions need no pods.
type mirror struct {
	cluster    *model.Cluster
	shows      func(cluster.Status) bool // whether a task in a status is on its node
	bySlot     []*reflection             // nil if there is no node, or it was not needed yet
	stock      stock                     // container images on all nodes
	softTaints int                       // on all nodes
	taintSets  map[string]int            // numbers of the sets of taints that nodes have, or had

	objectsSeen uint64 // how far Cluster.Changes has been followed for node objects
	podsSeen    uint64 // and for pods
	epoch       uint64 // grows when a node object or a namespace is added, changed or removed

	own       lister  // all nodes, when listed
	listed    uint64  // the epoch of own
	shown     *lister // what the plugins see now
	informers informers.SharedInformerFactory
	spaces    cache.Indexer // the namespaces in the plugins' lister
	spacesAre uint64        // the NamespacesGeneration of spaces
	shelf     *supply.Shelf // the volumes and devices in the plugins' listers
	ledger    *supply.Ledger
}

// reflection is one node as the plugins see it.
type reflection struct {
	node       *cluster.Node
	info       *framework.NodeInfo // without Node while the node has no object
	object     uint64              // the SpecGeneration that it shows
	pods       uint64              // the Generation of its pods, 0 if they were never needed
	made       []fwk.PodInfo       // of all pods on the node, shown or not, because evictions may be undone
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
		taintSets: map[string]int{},
		epoch:     1,
		informers: factory,
		spaces:    factory.Core().V1().Namespaces().Informer().GetIndexer(),
	}
	m.shown = &m.own
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
	m.epoch++
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
		m.hide(r)
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
	r.info.ImageStates = m.stock.add(n.Object.Status.Images)
	for t := range n.Object.Spec.Taints {
		if n.Object.Spec.Taints[t].Effect == corev1.TaintEffectPreferNoSchedule {
			r.softTaints++
		}
	}
	m.softTaints += r.softTaints
	r.taintSet = m.taintSetOf(n.Object)
}

// maxTaintSets bounds the sets of taints that have numbers. The nodes of a cluster have a few.
const maxTaintSets = 1 << 10

// taintSetOf returns the number of the set of taints that a node has, -1 if there are too many.
func (m *mirror) taintSetOf(n *corev1.Node) int {
	key := strconv.FormatBool(n.Spec.Unschedulable)
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		key += fmt.Sprintf(" %q %q %q", taint.Key, taint.Value, taint.Effect)
	}
	number, isKnown := m.taintSets[key]
	if !isKnown {
		if number = len(m.taintSets); number >= maxTaintSets {
			return -1
		}
		m.taintSets[key] = number
	}
	return number
}

// hide removes a node from everything that is counted over nodes.
func (m *mirror) hide(r *reflection) {
	m.stock.remove(r.info.ImageStates)
	m.softTaints -= r.softTaints
	r.softTaints = 0
	r.info.RemoveNode()
	m.epoch++
}

// fill updates the pods of a node. It sets only those parts of a NodeInfo that the supported plugins read, pods and ports.
// Adding up requests, as AddPodInfo does, would take most of the time.
func (m *mirror) fill(r *reflection) {
	if r == nil || r.pods == r.node.Generation {
		return
	}
	r.pods = r.node.Generation
	info := r.info
	info.Pods = info.Pods[:0]
	clear(info.UsedPorts)
	before := r.made
	r.made = make([]fwk.PodInfo, 0, len(r.node.Tasks()))
	for _, t := range r.node.Tasks() {
		if !t.Status.Holds() && t.Status != cluster.Pipelined {
			continue
		}
		made := podInfo(before, len(r.made), t.Pod)
		r.made = append(r.made, made)
		if !m.shows(t.Status) {
			continue
		}
		info.Pods = append(info.Pods, made)
		for _, port := range util.GetHostPorts(t.Pod) {
			info.UsedPorts.Add(port.HostIP, string(port.Protocol), port.HostPort)
		}
	}
	clear(info.Pods[len(info.Pods):cap(info.Pods)])
}

// podInfo returns the PodInfo of a pod, the one made before if there is one. Pods mostly keep their places.
func podInfo(before []fwk.PodInfo, likely int, pod *corev1.Pod) fwk.PodInfo {
	if likely < len(before) && before[likely].GetPod() == pod {
		return before[likely]
	}
	for _, info := range before {
		if info.GetPod() == pod {
			return info
		}
	}
	// A term that cannot be read matches nothing, as in kube-scheduler; the rest of the pod counts.
	made, _ := framework.NewPodInfo(pod)
	return made
}

// lister shows the plugins nodes: all, those that have pods with terms, and with required anti-affinity.
type lister struct{ all, withTerms, withAntiTerms []fwk.NodeInfo }

func (l *lister) List() ([]fwk.NodeInfo, error)                     { return l.all, nil }
func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return l.withTerms, nil }

func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return l.withAntiTerms, nil
}

func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range l.all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("node %q is not known", name)
}
