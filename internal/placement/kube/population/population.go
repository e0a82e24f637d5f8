package population

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	fwk "k8s.io/kube-scheduler/framework"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/pkg/cluster"
)

// Population are the pods on nodes. A class that is new finds those that matter to it by namespace and label. Then it
// follows what comes and goes. A pod that the plugins do not see, because it is to be evicted, stays in the indexes:
// most evictions that are tried are undone.
type Population struct {
	spaces map[string]*namespaceIndex
	owners map[ownerKey]pods // of affinity terms, by what these select
	asked  uint64            // counts the searches

	indexed int // pods in indexes by label, each as often as it is there

	changes []Change
	dropped uint64 // how many of the changes were dropped
	pods    int
	nodes   int // up to the last slot of which a change was noted
}

// maxChanges bounds the changes that are kept. A class that is further behind is counted again.
const maxChanges = 1 << 14

// Worth is how many changes at most are followed in less time than it takes to count so many pods on so many nodes
// again.
func Worth(pods, nodes int) int { return 2*pods + nodes/8 + 64 }

// maxIndexed bounds the pods in indexes by label, at some 30 bytes each. Beyond it these indexes are made again when
// they are asked for.
const maxIndexed = 1 << 20

// Change says that a node or a pod on it has come or gone.
type Change struct {
	Node *corev1.Node // as it was then
	Slot int32
	Pod  fwk.PodInfo // nil if it is the node
	By   int32       // +1 or -1
	// IsNominee is as in [Pod].
	IsNominee bool
}

// Pod is a pod on a node.
type Pod struct {
	fwk.PodInfo
	Object  *cluster.Pod
	Slot    int32
	IsShown bool   // the plugins see it
	IsStill bool   // space to work in for the owner
	asked   uint64 // the last search that has found it
	// IsNominee says that another scheduler has nominated it to the node. It may never come.
	IsNominee bool
}

// namespaceIndex are the pods of a namespace.
type namespaceIndex struct {
	pods    pods
	having  map[string]int             // how many of them have a label, by its key
	byLabel map[string]map[string]pods // by key and value; keys that were asked for
}

// pods is a set of pods.
type pods map[*Pod]struct{}

// ownerKey is what a term selects: one of the labels that it demands, none if it demands none, in a namespace, "" if
// any.
type ownerKey struct{ namespace, key, value string }

// New returns an empty population.
func New() *Population {
	return &Population{spaces: map[string]*namespaceIndex{}, owners: map[ownerKey]pods{}}
}

// End is the position after the last change.
func (p *Population) End() uint64 { return p.dropped + uint64(len(p.changes)) }

// Since returns the changes since a position. ok is false if some of them were dropped.
func (p *Population) Since(position uint64) (changes []Change, ok bool) {
	if position < p.dropped {
		return nil, false
	}
	return p.changes[position-p.dropped:], true
}

// Note notes a change. Those that no class would follow any more are dropped, with the pods that they name.
func (p *Population) Note(c Change) {
	p.nodes = max(p.nodes, int(c.Slot)+1)
	if len(p.changes) >= min(maxChanges, 2*Worth(p.pods, p.nodes)) {
		half := len(p.changes) / 2
		p.dropped += uint64(half)
		p.changes = slices.Delete(p.changes, 0, half)
	}
	p.changes = append(p.changes, c)
}

// Add adds a pod to the indexes.
func (p *Population) Add(r *Pod) {
	pod := r.GetPod()
	s := p.spaces[pod.Namespace]
	if s == nil {
		s = &namespaceIndex{pods: pods{}, having: map[string]int{}, byLabel: map[string]map[string]pods{}}
		p.spaces[pod.Namespace] = s
	}
	s.pods[r] = struct{}{}
	p.pods++
	for key := range pod.Labels {
		s.having[key]++
	}
	for key, values := range s.byLabel {
		if value, ok := pod.Labels[key]; ok {
			p.index(values, value, r)
		}
	}
	p.forTerms(r, func(key ownerKey) {
		if p.owners[key] == nil {
			p.owners[key] = pods{}
		}
		p.owners[key][r] = struct{}{}
	})
}

// Remove removes a pod from the indexes.
func (p *Population) Remove(r *Pod) {
	pod := r.GetPod()
	s := p.spaces[pod.Namespace]
	p.pods--
	if delete(s.pods, r); len(s.pods) == 0 {
		for key := range s.byLabel {
			p.drop(s, key)
		}
		delete(p.spaces, pod.Namespace)
	}
	for key := range pod.Labels {
		if s.having[key]--; s.having[key] == 0 {
			delete(s.having, key)
		}
	}
	for key, values := range s.byLabel {
		value, ok := pod.Labels[key]
		if !ok {
			continue
		}
		p.indexed--
		if delete(values[value], r); len(values[value]) == 0 {
			delete(values, value)
		}
	}
	p.forTerms(r, func(key ownerKey) {
		if delete(p.owners[key], r); len(p.owners[key]) == 0 {
			delete(p.owners, key)
		}
	})
}

func (p *Population) index(values map[string]pods, value string, r *Pod) {
	p.indexed++
	if values[value] == nil {
		values[value] = pods{}
	}
	values[value][r] = struct{}{}
}

// drop drops an index.
func (p *Population) drop(s *namespaceIndex, key string) {
	for _, pods := range s.byLabel[key] {
		p.indexed -= len(pods)
	}
	delete(s.byLabel, key)
}

// forTerms calls a function with what the affinity terms of a pod select.
func (p *Population) forTerms(r *Pod, do func(ownerKey)) {
	add := func(term *fwk.AffinityTerm) {
		key, values := demanded(term.Selector)
		if len(values) == 0 {
			values = []string{""}
		}
		namespaces := term.Namespaces.UnsortedList()
		if _, selects := term.NamespaceSelector.Requirements(); selects {
			namespaces = []string{""}
		}
		for _, namespace := range namespaces {
			for _, value := range values {
				do(ownerKey{namespace, key, value})
			}
		}
	}
	for _, terms := range [][]fwk.AffinityTerm{r.GetRequiredAffinityTerms(), r.GetRequiredAntiAffinityTerms()} {
		for i := range terms {
			add(&terms[i])
		}
	}
	for _, terms := range [][]fwk.WeightedAffinityTerm{r.GetPreferredAffinityTerms(), r.GetPreferredAntiAffinityTerms()} {
		for i := range terms {
			add(&terms[i].AffinityTerm)
		}
	}
}

// demanded returns a label key, and the values of which a selector demands one, none if it has no such demand.
func demanded(selector labels.Selector) (key string, values []string) {
	requirements, _ := selector.Requirements()
	for i := range requirements {
		switch r := &requirements[i]; r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if these := r.ValuesUnsorted(); values == nil || len(these) < len(values) {
				key, values = r.Key(), these
			}
		}
	}
	return key, values
}

// Search calls a function once for each pod that may be selected, or have a term about a pod with some labels. It may
// call it for others.
func (p *Population) Search(pod *corev1.Pod, wants []domains.Want, do func(*Pod)) {
	p.asked++
	visit := func(pods pods) {
		for r := range pods {
			if r.asked != p.asked {
				r.asked = p.asked
				do(r)
			}
		}
	}
	for _, namespace := range []string{"", pod.Namespace} {
		visit(p.owners[ownerKey{namespace, "", ""}])
		for key, value := range pod.Labels {
			visit(p.owners[ownerKey{namespace, key, value}])
		}
	}
	for i := range wants {
		w := &wants[i]
		if w.Namespaces == nil {
			for _, s := range p.spaces {
				p.visitWanted(s, w.Selector, visit)
			}
			continue
		}
		for namespace := range w.Namespaces {
			if s := p.spaces[namespace]; s != nil {
				p.visitWanted(s, w.Selector, visit)
			}
		}
	}
}

// fewPods is a number of pods of a namespace that are quicker read than indexed.
const fewPods = 64

// visitWanted visits the pods of a namespace that a selector may select.
func (p *Population) visitWanted(s *namespaceIndex, selector labels.Selector, visit func(pods)) {
	key, values := demanded(selector)
	if _, selects := selector.Requirements(); !selects {
		return
	}
	switch {
	case len(values) == 0 || len(s.pods) <= fewPods:
		visit(s.pods)
		return
	case s.having[key] == 0: // labels that no pod has are not worth an index
		return
	}
	if s.byLabel[key] == nil {
		if p.indexed+len(s.pods) > maxIndexed {
			for _, other := range p.spaces {
				clear(other.byLabel)
			}
			p.indexed = 0
		}
		index := map[string]pods{}
		s.byLabel[key] = index
		for r := range s.pods {
			if value, ok := r.GetPod().Labels[key]; ok {
				p.index(index, value, r)
			}
		}
	}
	for _, value := range slices.Compact(slices.Sorted(slices.Values(values))) {
		visit(s.byLabel[key][value])
	}
}
