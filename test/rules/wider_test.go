package rules

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// Clusters with more around the scheduler. Shares are guaranteed together with capacity, and queues give back what is
// beyond their capability. Policies restart jobs of which a pod is evicted. Roles need device claims that never come.
// Nodes of plans are cordoned while victims leave.

// wider is what a cluster has in addition to what others have.
type wider struct {
	restarts map[string]restart // by job
	// within are the plans that evicted pods of a job for it, after which it restarted, by job, since the cluster is
	// left alone.
	within map[string]map[string]bool
	vain   harness.Vain
	rests  int
	cycles int

	cordons int    // that are still to come
	node    string // of a plan, that is cordoned or about to be
	closeIn int    // rounds until it is
	openIn  int    // rounds from then until it is opened, 0 for never
	closed  bool
}

// restart is which pods of a job begin again when one of it is evicted, in addition to that pod.
type restart string

const (
	restartNone    restart = ""
	restartJob     restart = "all"
	restartRunning restart = "those with nodes"
	restartTask    restart = "those of its role"
)

// wideSettings are settings for these clusters.
func wideSettings() []setting {
	vary := func(how func(*setting)) setting {
		s := plain
		how(&s)
		return s
	}
	return []setting{
		vary(func(s *setting) {
			s.sharer, s.actions = guaranteedShares, words("enqueue allocate preempt reclaim backfill shuffle")
		}),
		vary(func(s *setting) {
			s.sharer, s.tree, s.actions = guaranteedShares, true, words("enqueue allocate preempt reclaim backfill shuffle")
		}),
		vary(func(s *setting) { s.subtrees, s.tree = true, true }),
		vary(func(s *setting) {
			s.subtrees, s.tree, s.actions = true, true, words("enqueue allocate reclaim backfill shuffle")
		}),
		plain,
		vary(func(s *setting) { s.sharer, s.actions = "", words("allocate preempt backfill") }),
	}
}

// wideCluster is a random cluster with all that.
func wideCluster(s setting, choose chooser) *testCluster {
	w := newTestCluster(s, choose)
	w.wide = &wider{restarts: map[string]restart{}, within: map[string]map[string]bool{}, cordons: choose(3)}
	w.populate()
	return w
}

// widenQueue makes a queue give back what is beyond its capability.
func (w *testCluster) widenQueue(q *schedulingv1beta1.Queue) {
	if w.wide == nil || !w.setting.guarantees() && !w.setting.subtrees || !w.choose.once(2) {
		return
	}
	metav1.SetMetaDataAnnotation(&q.ObjectMeta, schedulingv1beta1.QuotaPreemptionDelayKey, w.choose.oneOf("1s", "3s", "30s"))
	q.Spec.Capability = fixture.List(w.choose.oneOf("cpu=1", "cpu=2", "pods=1"))
}

// widenJob gives a job a policy, and a role that it needs a device claim that never comes.
func (w *testCluster) widenJob(g *schedulingv1beta1.PodGroup, pods []*corev1.Pod, runs bool) {
	if w.wide == nil {
		return
	}
	if w.choose.once(3) {
		w.wide.restarts[g.Name] = restart(w.choose.oneOf(string(restartJob), string(restartRunning), string(restartTask)))
	}
	if !runs && w.choose.once(4) {
		fixture.NeedingOf("master", 1)(g)
		for _, p := range pods {
			if p.Annotations[batchv1alpha1.TaskSpecKey] == "master" {
				fixture.Using("missing")(p)
			}
		}
	}
}

// restart applies the policy of a job after the eviction of a pod.
func (w *testCluster) restart(victim *corev1.Pod, e decision.Eviction) {
	if w.wide == nil {
		return
	}
	group := groupOf(victim)
	how, others := w.wide.restarts[group], false
	for _, p := range w.podsOf(group) {
		isOther := p.UID != victim.UID && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
		switch {
		case how == restartNone || !isOther || how == restartRunning && p.Spec.NodeName == "" ||
			how == restartTask && p.Annotations[batchv1alpha1.TaskSpecKey] != victim.Annotations[batchv1alpha1.TaskSpecKey]:
		case p.Spec.NodeName == "":
			w.drop(p)
			w.set(w.again(p))
			w.wide.vain.ForgetJob(group)
		default:
			others = true
			w.end(p)
			w.wide.vain.ForgetJob(group)
		}
	}
	if !others || !w.calm || e.For.Name != group {
		return
	}
	if w.wide.within[group] == nil {
		w.wide.within[group] = map[string]bool{}
	}
	if w.wide.within[group][e.Plan] = true; len(w.wide.within[group]) > maxWithin {
		w.judge.breach("S2", "%d plans evicted pods of %s for pods of it, and after each of them it restarted", len(w.wide.within[group]), group)
	}
}

// maxWithin is how many plans may evict pods of a job for the job itself that restarts each time.
const maxWithin = 3

// podsOf returns the pods of a job, by name.
func (w *testCluster) podsOf(group string) (pods []*corev1.Pod) {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[name]; groupOf(p) == group {
			pods = append(pods, p)
		}
	}
	return pods
}

// watch looks at the decisions of a cycle: whether a pod is evicted in vain, and which node of a plan is to be
// cordoned.
func (w *testCluster) watch(d *decision.Decisions) {
	if w.wide == nil {
		return
	}
	w.wide.cycles++
	if pod := w.wide.vain.Observe(w.wide.cycles, d); pod != "" {
		w.judge.breach("S1", "%s", pod)
	}
	for _, p := range d.Plans {
		if w.wide.node == "" && w.wide.cordons > 0 && len(p.Nominations) > 0 && len(p.Evictions) > 0 && w.choose.once(2) {
			w.wide.cordons--
			w.wide.node, w.wide.closed = p.Nominations[w.choose(len(p.Nominations))].Node, false
			w.wide.closeIn, w.wide.openIn = 1+w.choose(8), 12*w.choose(3)
		}
	}
}

// forget notes that something has happened apart from what was decided.
func (w *testCluster) forget() {
	if w.wide != nil {
		w.wide.vain.Forget()
	}
}

// cordon cordons a node of a plan when its time has come, and opens it again.
func (w *testCluster) cordon() {
	if !w.isCordoning() {
		return
	}
	o := w.wide
	change := func(isCordoned bool) {
		if n := w.nodes[o.node]; n != nil {
			n = n.DeepCopy()
			n.Spec.Unschedulable = isCordoned
			w.set(n)
			w.forget()
		}
	}
	switch {
	case !o.closed:
		if o.closeIn--; o.closeIn == 0 {
			o.closed = true
			change(true)
		}
	case o.openIn > 0:
		if o.openIn--; o.openIn == 0 {
			change(false)
		}
	}
	if o.closed && o.openIn == 0 {
		o.node = ""
	}
}

// isCordoning reports whether a node is still to be cordoned or opened.
func (w *testCluster) isCordoning() bool { return w.wide != nil && w.wide.node != "" }

// quietEnough is how many cycles that decide nothing are a rest. With more around the scheduler, more is due at some
// later time.
func (w *testCluster) quietEnough() int {
	if w.wide != nil {
		return 20
	}
	return 6
}

// restsAgain reports whether a decision at rest follows from time alone, such as that a plan ends whose pods do not
// leave: then the cluster comes to rest again.
func (w *testCluster) restsAgain(d *decision.Decisions) bool {
	if w.wide == nil || !decidesAnything(d) || w.wide.rests == maxRests {
		return false
	}
	w.wide.rests++
	return true
}

// maxRests is how often that may be.
const maxRests = 5

// isGuaranteed reports whether guaranteed shares decide between two queues.
func (p *picture) isGuaranteed(q, other *queue) bool {
	isBelow := func(q *queue) bool {
		return slices.ContainsFunc(q.upwards(), func(above *queue) bool { return above.name == subtree })
	}
	return p.setting.guarantees() || p.setting.subtrees && isBelow(q) && isBelow(other)
}

// subtree is the queue below which shares are guaranteed next to others.
const subtree = "above"

// cuts judges a plan of shuffle: Q2, J2, P4 and G12.
func (h *planCheck) cuts() {
	if len(h.decision.Nominations) > 0 || len(h.decision.Evictions) == 0 || !h.parties() {
		h.breach("A1", "plan %s of no job promises %d nodes and evicts %d pods", h.plan.id, len(h.decision.Nominations), len(h.decision.Evictions))
		return
	}
	for _, v := range h.victims {
		if v.state != placed {
			h.breach("P4", "plan %s evicts %s, which is %s", h.plan.id, v.name, v.state)
		}
		if value := mark(v); value != "" && value != "true" {
			h.breach("G1", "plan %s evicts %s, which is marked %s", h.plan.id, v.name, value)
		}
	}
	for _, g := range h.giving() {
		if !slices.ContainsFunc(h.victims, func(v *pod) bool { return v.job == g && v.isBeyond() }) {
			h.breach("G12", "plan %s evicts pods of %s, and no queue above it holds more of what they hold than its capability", h.plan.id, g.name)
		}
		if was := h.before.jobs[g.name]; was.enough(was.ready) && !h.after.kept(g.name, true) {
			h.breach("J2", "plan %s leaves %s broken", h.plan.id, g.name)
		}
	}
	h.floors()
}

// isBeyond reports whether a queue above a pod holds more than its capability of something that the pod holds.
func (p *pod) isBeyond() bool {
	return slices.ContainsFunc(p.job.queue.upwards(), func(q *queue) bool {
		held := q.allocated()
		return slices.ContainsFunc(slices.Sorted(maps.Keys(q.capability)), func(name corev1.ResourceName) bool {
			return p.wants[name] > 0 && held[name] > q.capability[name]
		})
	})
}

// The rules hold there as well. The judge does not say what may be taken between a subtree of guaranteed shares and the
// queues next to it.
func TestTheRulesHoldWithMoreAroundTheScheduler(t *testing.T) {
	holds(t, clustersOf(t, plainWideClusters), wideSettings(), wideCluster)
}

// plainWideClusters is how many of these clusters are led without clustersEnv.
const plainWideClusters = 2_500
