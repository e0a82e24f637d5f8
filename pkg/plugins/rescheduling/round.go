package rescheduling

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// criticalPriority is the lower of the two critical priorities, which every cluster has.
const criticalPriority = 2_000_000_000

// round is one check of all nodes.
type round struct {
	*plugin
	*strategy
	below     int64 // pods of this priority and above stay
	levels    map[*cluster.Node]levels
	low, high []*cluster.Node
	wanted    map[*cluster.Node]bool // nodes on which a pending pod fits
}

func (p *plugin) newRound(s *strategy) *round {
	r := &round{plugin: p, strategy: s, levels: map[*cluster.Node]levels{}, wanted: map[*cluster.Node]bool{}}
	for _, n := range p.session.Cluster.Nodes() {
		level, isKnown := p.level(n)
		if !isKnown {
			continue
		}
		r.levels[n] = level
		switch {
		case level.isWithin(s.low) && !n.Object.Spec.Unschedulable:
			r.low = append(r.low, n)
		case !level.isWithin(s.target):
			r.high = append(r.high, n)
		}
	}
	// The busiest comes first.
	slices.SortStableFunc(r.high, func(a, b *cluster.Node) int {
		return cmp.Compare(r.levels[b][0]+r.levels[b][1], r.levels[a][0]+r.levels[a][1])
	})
	r.below = r.limit()
	return r
}

// limit is the priority from which pods stay. If the PriorityClass does not exist, all pods stay.
func (r *round) limit() int64 {
	switch {
	case r.hasPriority:
		return min(r.priority, criticalPriority)
	case r.className == "system-cluster-critical" || r.className == "system-node-critical":
		return criticalPriority
	}
	if class := r.session.Cluster.PriorityClass(r.className); class != nil {
		return min(int64(class.Value), criticalPriority)
	}
	return -1 << 62
}

// choose names pods of the high nodes, and counts them as gone.
func (r *round) choose(x framework.Transaction) []framework.Chosen {
	if len(r.low) <= r.numberOfNodes || len(r.high) == 0 {
		return nil
	}
	var chosen []framework.Chosen
	for _, n := range r.high {
		if slices.ContainsFunc(r.moves, func(m move) bool { return m.from == n.Name && !m.at.Equal(r.session.Now) }) {
			continue
		}
		for _, t := range r.candidates(n) {
			if r.levels[n].isWithin(r.target) {
				break
			}
			if !r.mayLeave(t) {
				continue
			}
			to := r.moveTo(x, t)
			if to == nil {
				continue
			}
			chosen = append(chosen, framework.Chosen{Task: t, Why: fmt.Sprintf("node %s is busier than it should be (%s), and %s has room", n.Name, r.levels[n], to.Name)})
			r.note(t, n, to)
		}
	}
	return chosen
}

// String formats the load of a node.
func (l levels) String() string {
	const percent = resources.Million / 100
	return fmt.Sprintf("CPU %d%%, memory %d%%, pods %d%%", l[0]/percent, l[1]/percent, l[2]/percent)
}

// candidates returns the pods of a node that may be named, the least important first.
func (r *round) candidates(n *cluster.Node) []*cluster.Task {
	tasks := slices.DeleteFunc(slices.Clone(n.Tasks()), func(t *cluster.Task) bool { return !t.Status.Evictable() })
	slices.SortFunc(tasks, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(priorityOf(a), priorityOf(b)), cmp.Compare(quality(a), quality(b)), b.Started().Compare(a.Started()),
			cmp.Compare(a.UID(), b.UID()))
	})
	return tasks
}

func priorityOf(t *cluster.Task) int64 {
	if p := t.Pod.Spec.Priority; p != nil {
		return int64(*p)
	}
	return 0
}

// quality ranks the QoS class of a pod: BestEffort, Burstable, Guaranteed.
func quality(t *cluster.Task) int {
	switch {
	case t.BestEffort():
		return 0
	case slices.ContainsFunc(t.Pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Resources.Limits.Cpu().Cmp(*c.Resources.Requests.Cpu()) != 0 || c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()) != 0
	}):
		return 1
	}
	return 2
}

// mayLeave reports whether neither a rule nor a plan protects a task.
func (r *round) mayLeave(t *cluster.Task) bool {
	j := t.Job
	if j == nil || j.Group == nil || j.Queue == nil || !j.Queue.Open() || !isReclaimable(j.Queue) {
		return false
	}
	if priorityOf(t) >= r.below || t.Pod.Namespace == metav1.NamespaceSystem || !t.IsMarked(r.byDefault) {
		return false
	}
	if metav1.GetControllerOfNoCopy(t.Pod) == nil || r.session.Now.Sub(t.Started()) < r.period {
		return false
	}
	for _, b := range r.session.Cluster.Budgets(t) {
		if b.Left() <= 0 {
			return false
		}
	}
	// The job already counts without the pods that were named.
	return j.KeepsMinimum(t, cluster.Leaving{}) || isAlone(t)
}

// isReclaimable reports whether a queue and all above it are reclaimable. The root does not count, because no queue is
// outside it.
func isReclaimable(q *cluster.Queue) bool {
	for ; q != nil && q.Name != schedulingv1beta1.RootQueue; q = q.Parent {
		if !q.Reclaimable {
			return false
		}
	}
	return true
}

// isAlone reports whether a task is the only one of its job.
func isAlone(t *cluster.Task) bool {
	return !slices.ContainsFunc(t.Job.Tasks(), func(other *cluster.Task) bool { return other != t && !other.Status.Finished() })
}

// moveTo counts a task as gone and returns the low node on which its replacement would run. If there is none the task
// stays.
func (r *round) moveTo(x framework.Transaction, t *cluster.Task) *cluster.Node {
	s, from := r.session, t.Node
	x.Evict(t)
	var to *cluster.Node
	s.Cluster.AsPending(t, func(again *cluster.Task) {
		if s.Overused(t.Job.Queue) != nil || s.MayAllocate(again) != nil {
			return
		}
		best := s.Outlook.Best(again)
		if best == nil || best == from || !slices.Contains(r.low, best) || r.isWanted(best) {
			return
		}
		if r.levels[best].plus(partOf(t, best), +1).isWithin(r.target) && r.hasRoom(best, t) {
			to = best
		}
	})
	if to == nil {
		x.Spare(t)
	}
	return to
}

// hasRoom reports whether a task fits on a node in addition to those that this round moves there.
func (r *round) hasRoom(n *cluster.Node, t *cluster.Task) bool {
	for d, need := range t.Request() {
		free := n.Future(resources.Dim(d))
		for i := range r.moves {
			if m := &r.moves[i]; m.to == n.Name && m.at.Equal(r.session.Now) {
				free -= m.request.At(resources.Dim(d))
			}
		}
		if need > 0 && need > free {
			return false
		}
	}
	return true
}

// isWanted reports whether a pending pod fits on a node, so that it would be placed before the replacement.
func (r *round) isWanted(n *cluster.Node) bool {
	isWanted, isKnown := r.wanted[n]
	if isKnown {
		return isWanted
	}
	seen := map[*cluster.Class]bool{}
	for _, j := range r.session.Cluster.Waiting() {
		for _, t := range j.Tasks() {
			if t.Status != cluster.Pending || seen[t.Class] {
				continue
			}
			seen[t.Class] = true
			isWanted = isWanted || r.session.Outlook.Fits(t, n)
		}
	}
	r.wanted[n] = isWanted
	return isWanted
}

// note stores the move of a task.
func (r *round) note(t *cluster.Task, from, to *cluster.Node) {
	amount := partOf(t, to)
	r.levels[from] = r.levels[from].plus(partOf(t, from), -1)
	r.levels[to] = r.levels[to].plus(amount, +1)
	r.plugin.moves = append(r.plugin.moves, move{from: from.Name, to: to.Name, amount: amount, request: t.Request(), at: r.session.Now})
}
