package domains

import corev1 "k8s.io/api/core/v1"

// Topology says in which topology domains the nodes are. What is asked of it is kept by topology key, as a number for
// each domain.
type Topology struct {
	nodes []*corev1.Node // by slot, nil where there is none
	keys  map[string]*Key
	// Generation grows when keys are read again. Counts that were made before are of no use then.
	Generation uint64

	work func(steps int) // nil if the work is not counted
}

// Meter reports the work for answers to a function, see [Counts].
func (t *Topology) Meter(work func(steps int)) { t.work = work }

// stepsIn is how many nodes, terms or constraints are looked at in a step.
const stepsIn = 16

// does tells of the work that looks at so many things.
func (t *Topology) does(looks int) {
	if t.work != nil {
		t.work(1 + looks/stepsIn)
	}
}

// Key is a topology key, with the domains that its values make.
type Key struct {
	name  string
	ids   map[string]int32 // the number of a domain by the value of the label
	of    []int32          // by slot: the domain, -1 for a node without the label
	sizes []int32          // by domain: how many nodes are in it
}

// maxKeys bounds the topology keys that are kept. A cluster has a few, but a pod may name any.
const maxKeys = 1 << 10

// Show puts a node into a slot, nil if there is none any more.
func (t *Topology) Show(slot int, node *corev1.Node) {
	for len(t.nodes) <= slot {
		t.nodes = append(t.nodes, nil)
	}
	t.nodes[slot] = node
	for _, k := range t.keys {
		k.show(slot, node)
		// Domains of which all nodes are gone keep their number until there are too many of them.
		if len(k.sizes) > 2*len(t.nodes)+maxKeys {
			t.forget()
			return
		}
	}
}

func (t *Topology) forget() {
	clear(t.keys)
	t.Generation++
}

// Key returns a topology key.
func (t *Topology) Key(name string) *Key {
	k := t.keys[name]
	if k != nil {
		return k
	}
	if len(t.keys) >= maxKeys {
		t.forget()
	}
	k = &Key{name: name, ids: map[string]int32{}}
	t.does(len(t.nodes))
	for slot, node := range t.nodes {
		k.show(slot, node)
	}
	if t.keys == nil {
		t.keys = map[string]*Key{}
	}
	t.keys[name] = k
	return k
}

func (k *Key) show(slot int, node *corev1.Node) {
	for len(k.of) <= slot {
		k.of = append(k.of, -1)
	}
	if before := k.of[slot]; before >= 0 {
		k.sizes[before]--
	}
	k.of[slot] = k.domainOf(node)
	if now := k.of[slot]; now >= 0 {
		k.sizes[now]++
	}
}

// domainOf returns the number of the domain of a node, -1 if it has none. The node may be one that was in a slot
// before.
func (k *Key) domainOf(node *corev1.Node) int32 {
	if node == nil {
		return -1
	}
	value, ok := node.Labels[k.name]
	if !ok {
		return -1
	}
	id, isKnown := k.ids[value]
	if !isKnown {
		id = int32(len(k.sizes))
		k.ids[value] = id
		k.sizes = append(k.sizes, 0)
	}
	return id
}

// at returns the number of the domain of the node in a slot, -1 if it has none.
func (k *Key) at(slot int32) int32 { return k.of[slot] }

// tally is a number for each domain. Those at its end that are missing are 0.
type tally []int32

func (t tally) at(domain int32) int32 {
	if int(domain) >= len(t) {
		return 0
	}
	return t[domain]
}

// add changes the number of a domain.
func (t *tally) add(k *Key, domain, change int32) {
	if int(domain) >= len(*t) {
		*t = append(*t, make([]int32, len(k.sizes)-len(*t))...)
	}
	(*t)[domain] += change
}
