package gang

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// MaxAnchors limits on how many nodes, or in how many topology domains, the pod is tried that decides where others of
// its gang may be. Each try costs as much as the gang.
const MaxAnchors = 8

// anchored places a gang in which the place of one pod decides where others may be: pods share an unbound claim, whose
// volume or device is where the first of them is placed, or have a required affinity to each other. The best node for
// one pod may be too small for all, as is common with binpack. So that pod is tried on several nodes, those with room
// for most of the others first, and in several topology domains. lacks is how many tasks are needed. It reports whether
// they are placed. If not, nothing has changed.
func anchored(s *framework.Session, tasks []*cluster.Task, lacks int, try try) bool {
	if shared := sharing(s.Cluster, tasks); len(shared) > 1 {
		shared = firstOf(shared, lacks)
		return anchoredOn(s, tasks, shared[0], eachAlone(roomiest(s, shared)), try)
	}
	first, domains := AnchorOf(s, tasks, lacks, (*cluster.Node).Free)
	return first != nil && anchoredOn(s, tasks, first, domains, try)
}

// AnchorOf returns the first of some tasks that must be in one topology domain, since they have a required affinity to
// it, and the nodes of each domain that has room for as many of them as are needed. It returns nil if there is none, or
// no other task. free is what a node has left of a resource.
func AnchorOf(s *framework.Session, tasks []*cluster.Task, lacks int, free func(*cluster.Node, resources.Dim) int64) (first *cluster.Task, domains [][]*cluster.Node) {
	if len(tasks) < 2 {
		return nil, nil
	}
	near, key := attracting(tasks)
	if len(near) == 0 {
		return nil, nil
	}
	near = firstOf(near, lacks)
	return near[0], domainsFor(s, near, key, free)
}

// firstOf returns as many tasks as are needed.
func firstOf(tasks []*cluster.Task, lacks int) []*cluster.Task {
	if lacks > 0 && lacks < len(tasks) {
		return tasks[:lacks]
	}
	return tasks
}

// anchoredOn tries the tasks with the first placed on a node of one domain after the other. It reports whether that was
// successful. If not, nothing has changed.
func anchoredOn(s *framework.Session, tasks []*cluster.Task, first *cluster.Task, domains [][]*cluster.Node, try try) bool {
	if s.MayAllocate(first) != nil || s.MayBind(first) != nil {
		return false
	}
	tried := 0
	for _, nodes := range domains {
		if tried == MaxAnchors {
			return false
		}
		fits := func(n *cluster.Node) bool { return s.Placer.Fits(first, n) && s.Placer.Veto(first, n) == "" }
		i := slices.IndexFunc(nodes, fits)
		if i < 0 {
			continue
		}
		tried++
		x := s.Begin()
		x.Place(first, nodes[i])
		if v, _ := try(tasks); v == nil {
			return true
		}
		x.Undo()
	}
	return false
}

// attracting returns those of some tasks that must be in one topology domain, and the key of its label: each of them
// has a required affinity to pods like the first. It is the first such group that a task belongs to.
func attracting(tasks []*cluster.Task) (near []*cluster.Task, key string) {
	for _, t := range tasks {
		if t.Status != cluster.Pending {
			continue
		}
		if near == nil {
			if term := attractsItself(t); term != nil {
				near, key = append(near, t), term.TopologyKey
			}
			continue
		}
		if slices.ContainsFunc(requiredAffinity(t), func(a corev1.PodAffinityTerm) bool { return a.TopologyKey == key && selects(&a, near[0]) }) {
			near = append(near, t)
		}
	}
	return near, key
}

func requiredAffinity(t *cluster.Task) []corev1.PodAffinityTerm {
	if a := t.Pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// attractsItself returns a required affinity of a pod to pods like itself in its namespace, nil if it has none.
func attractsItself(t *cluster.Task) *corev1.PodAffinityTerm {
	terms := requiredAffinity(t)
	for i := range terms {
		if a := &terms[i]; len(a.Namespaces) == 0 && a.NamespaceSelector == nil && selects(a, t) {
			return a
		}
	}
	return nil
}

// attractorsOf returns one of some tasks for each required affinity of a pod: the first of another class that it is
// attracted to, if possible none of those that attract others already.
func attractorsOf(t *cluster.Task, tasks, taken []*cluster.Task) (attractors []*cluster.Task) {
	terms := requiredAffinity(t)
	for i := range terms {
		var best *cluster.Task
		for _, u := range tasks {
			if u.Class == t.Class || u.Status != cluster.Pending || !selects(&terms[i], u) {
				continue
			}
			if isTaken := slices.Contains(taken, u); best == nil || !isTaken {
				if best = u; !isTaken {
					break
				}
			}
		}
		if best != nil && !slices.Contains(attractors, best) {
			attractors = append(attractors, best)
		}
	}
	return attractors
}

// selects reports whether the selector of a term selects a pod.
func selects(a *corev1.PodAffinityTerm, t *cluster.Task) bool {
	selector, err := metav1.LabelSelectorAsSelector(a.LabelSelector)
	return err == nil && selector.Matches(labels.Set(t.Pod.Labels))
}

// domainsFor returns the nodes of each topology domain that has room for all of some tasks, as if it were one node.
func domainsFor(s *framework.Session, tasks []*cluster.Task, key string, left func(*cluster.Node, resources.Dim) int64) [][]*cluster.Node {
	wanted := cluster.RequestOf(tasks)
	var names []string
	nodes, free := map[string][]*cluster.Node{}, map[string]resources.Vector{}
	for _, n := range s.Cluster.NodesIn(s.Domain()) {
		if n.Object == nil {
			continue // only its pods are known
		}
		name, ok := n.Object.Labels[key]
		if !ok {
			continue
		}
		if nodes[name] == nil {
			names = append(names, name)
		}
		nodes[name] = append(nodes[name], n)
		sum := free[name]
		for i, amount := range wanted {
			if d := resources.Dim(i); amount > 0 {
				sum.Set(d, sum.At(d)+max(left(n, d), 0))
			}
		}
		free[name] = sum
	}
	var domains [][]*cluster.Node
	for _, name := range names {
		if wanted.LessEqual(free[name]) {
			domains = append(domains, nodes[name])
		}
	}
	return domains
}

// eachAlone returns each node as a domain of its own.
func eachAlone(nodes []*cluster.Node) [][]*cluster.Node {
	domains := make([][]*cluster.Node, len(nodes))
	for i := range nodes {
		domains[i] = nodes[i : i+1 : i+1]
	}
	return domains
}

// roomiest returns the nodes of the current domain, those first that have room for the largest part of some tasks.
func roomiest(s *framework.Session, tasks []*cluster.Task) []*cluster.Node {
	nodes := s.Cluster.NodesIn(s.Domain())
	wanted := cluster.RequestOf(tasks)
	part := make(map[*cluster.Node]resources.Ratio, len(nodes))
	for _, n := range nodes {
		part[n] = resources.Ratio{Num: 1, Den: 1}
		for i, amount := range wanted {
			d := resources.Dim(i)
			if ratio := (resources.Ratio{Num: max(n.Free(d), 0), Den: amount}); amount > 0 && ratio.Compare(part[n]) < 0 {
				part[n] = ratio
			}
		}
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(m, n *cluster.Node) int { return part[n].Compare(part[m]) })
	return nodes
}
