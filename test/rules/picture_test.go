package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// amounts are quantities by resource, in thousandths.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	a := amounts{}
	for name, quantity := range list {
		a[name] = quantity.MilliValue()
	}
	return a
}

func (a amounts) add(b amounts, times int64) {
	for name, value := range b {
		a[name] += times * value
	}
}

func (a amounts) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != 0 {
			parts = append(parts, fmt.Sprintf("%s=%g", name, float64(a[name])/1000))
		}
	}
	return strings.Join(parts, " ")
}

// state is where a pod stands, as far as it matters here.
type state string

const (
	waiting   state = "waiting"
	gated     state = "gated"
	promised  state = "promised"
	binding   state = "binding"
	placed    state = "placed"
	leaving   state = "leaving"
	lingering state = "lingering" // should be gone, and is not
	over      state = "over"
)

func (s state) holds() bool  { return s == binding || s == placed || s == leaving || s == lingering }
func (s state) counts() bool { return s == promised || s == binding || s == placed }
func (s state) asks() bool   { return s.counts() || s == waiting || s == gated }

// pod is one pod in a picture.
type pod struct {
	name   string
	object *corev1.Pod
	job    *job // nil: not ours
	wants  amounts
	rank   int32 // among the pods of its job
	state  state
	node   string // that it holds or is promised
	done   bool   // has succeeded
}

func (p *pod) uid() types.UID { return p.object.UID }

func (p *pod) role() string {
	return cmp.Or(p.object.Annotations[batchv1alpha1.TaskSpecKey], batchv1alpha1.DefaultTaskSpec)
}

// bestEffort pods request nothing but a place.
func (p *pod) bestEffort() bool { return len(p.wants) == 1 }

// job is one gang in a picture.
type job struct {
	name     string
	object   *schedulingv1beta1.PodGroup
	queue    *queue // nil if there is none of the name
	priority int32
	never    bool // never preempts
	lone     bool
	pods     []*pod // by name
}

// queue is one queue in a picture.
type queue struct {
	name                            string
	object                          *schedulingv1beta1.Queue
	parent                          *queue // nil where queues are flat, and for the root
	children                        []*queue
	jobs                            []*job
	deserved, guarantee, capability amounts
}

func (q *queue) open() bool {
	state := q.object.Status.State
	return state == "" || state == schedulingv1beta1.QueueStateOpen
}

func (q *queue) reclaimable() bool {
	return q.object.Spec.Reclaimable == nil || *q.object.Spec.Reclaimable
}

// upwards are a queue and all above it.
func (q *queue) upwards() []*queue {
	var all []*queue
	for ; q != nil; q = q.parent {
		all = append(all, q)
	}
	return all
}

// sum adds up what the pods of a queue, and of all below it, want, of those that are counted.
func (q *queue) sum(counted func(state) bool) amounts {
	total := amounts{}
	for _, j := range q.jobs {
		for _, p := range j.pods {
			if counted(p.state) {
				total.add(p.wants, 1)
			}
		}
	}
	for _, child := range q.children {
		total.add(child.sum(counted), 1)
	}
	return total
}

func (q *queue) allocated() amounts { return q.sum(state.counts) }

// picture is what a judge sees.
type picture struct {
	setting setting
	now     time.Time
	nodes   map[string]*corev1.Node
	queues  map[string]*queue
	jobs    map[string]*job
	pods    map[string]*pod
	budgets map[string]*policyv1.PodDisruptionBudget
	plans   map[string]*plan // in force, by ID
}

// plan is a plan that a scheduler has made.
type plan struct {
	id, preemptor, action string
	victims               map[types.UID]string // name by UID
	nominated             map[types.UID]string // node by UID
}

// objects are all objects of a cluster, by name. All that has a namespace lives in one.
type objects struct {
	nodes   map[string]*corev1.Node
	queues  map[string]*schedulingv1beta1.Queue
	groups  map[string]*schedulingv1beta1.PodGroup
	pods    map[string]*corev1.Pod
	classes map[string]*schedulingv1.PriorityClass
	budgets map[string]*policyv1.PodDisruptionBudget
}

// memory is what a scheduler has decided and the objects do not show yet, and what it has promised.
type memory struct {
	bound map[types.UID]string // node by UID
	plans map[string]*plan
}

func newMemory() *memory { return &memory{bound: map[types.UID]string{}, plans: map[string]*plan{}} }

// lingersAfter is how long after its time a pod that is being deleted is still expected to go.
const lingersAfter = 30 * time.Second

// take draws the picture of a cluster as a scheduler knows it.
func take(s setting, o *objects, m *memory, now time.Time) *picture {
	p := &picture{setting: s, now: now, nodes: o.nodes, queues: map[string]*queue{}, jobs: map[string]*job{},
		pods: map[string]*pod{}, budgets: o.budgets, plans: m.plans}
	for name, object := range o.queues {
		p.queues[name] = &queue{name: name, object: object, deserved: amountsOf(object.Spec.Deserved),
			guarantee: amountsOf(object.Spec.Guarantee.Resource), capability: amountsOf(object.Spec.Capability)}
	}
	for _, name := range slices.Sorted(maps.Keys(p.queues)) {
		q := p.queues[name]
		if above := p.queues[q.object.Spec.Parent]; above != nil && s.tree {
			q.parent, above.children = above, append(above.children, q)
		}
	}
	for name, object := range o.groups {
		j := &job{name: name, object: object, queue: p.queues[object.Spec.Queue]}
		if class := o.classes[object.Spec.PriorityClassName]; class != nil {
			j.priority = class.Value
			j.never = class.PreemptionPolicy != nil && *class.PreemptionPolicy == corev1.PreemptNever
		}
		owner := metav1.GetControllerOf(object)
		j.lone = owner != nil && owner.Kind == "Pod"
		p.jobs[name] = j
	}
	for _, name := range slices.Sorted(maps.Keys(p.jobs)) {
		if j := p.jobs[name]; j.queue != nil {
			j.queue.jobs = append(j.queue.jobs, j)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.pods)) {
		p.add(o.pods[name], m)
	}
	return p
}

func (p *picture) add(object *corev1.Pod, m *memory) {
	t := &pod{name: object.Name, object: object, wants: amountsOf(object.Spec.Containers[0].Resources.Requests),
		node: object.Spec.NodeName, done: object.Status.Phase == corev1.PodSucceeded}
	t.wants[corev1.ResourcePods] = 1000
	if object.Spec.SchedulerName == "volcano" {
		t.job = p.jobs[object.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]]
	} else if t.node == "" {
		return
	}
	if object.Spec.Priority != nil {
		t.rank = *object.Spec.Priority
	}
	if rank, err := strconv.ParseInt(object.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey], 10, 32); err == nil {
		t.rank = int32(rank)
	}
	t.state = p.stateOf(t, m)
	p.pods[t.name] = t
	if t.job != nil {
		t.job.pods = append(t.job.pods, t)
	}
}

func (p *picture) stateOf(t *pod, m *memory) state {
	phase, deleted := t.object.Status.Phase, t.object.DeletionTimestamp
	switch {
	case phase == corev1.PodSucceeded || phase == corev1.PodFailed:
		return over
	case deleted != nil && t.node == "":
		return over // it holds nothing, and never will
	case deleted != nil && !p.now.Before(deleted.Add(lingersAfter)):
		return lingering
	case deleted != nil:
		return leaving
	case t.node != "":
		for _, plan := range m.plans {
			if plan.victims[t.uid()] != "" {
				return leaving
			}
		}
		return placed
	case len(t.object.Spec.SchedulingGates) > 0:
		return gated
	case m.bound[t.uid()] != "":
		t.node = m.bound[t.uid()]
		return binding
	}
	for _, plan := range m.plans {
		if node := plan.nominated[t.uid()]; node != "" {
			t.node = node
			return promised
		}
	}
	return waiting
}

// on adds up what is on a node or promised there, of those that are counted.
func (p *picture) on(node string, counted func(state) bool) amounts {
	total := amounts{}
	for _, t := range p.pods {
		if t.node == node && counted(t.state) {
			total.add(t.wants, 1)
		}
	}
	return total
}

// over says which resource of a node is over-committed by pods of these states, "" if none is.
func (p *picture) tooFull(node string, counted func(state) bool) string {
	n := p.nodes[node]
	if n == nil {
		return "node " + node + " does not exist"
	}
	room := amountsOf(n.Status.Allocatable)
	total := p.on(node, counted)
	for _, name := range slices.Sorted(maps.Keys(total)) {
		if total[name] > room[name] {
			return fmt.Sprintf("node %s has %s and would hold %s", node, room, total)
		}
	}
	return ""
}

// now are the pods that hold room, later those that will once what leaves has left.
func now(s state) bool   { return s.holds() }
func later(s state) bool { return s.counts() || s == lingering }

// admits reports whether a node takes a pod, whatever room it has.
func admits(n *corev1.Node, t *corev1.Pod) bool {
	if n == nil {
		return false
	}
	if n.Spec.Unschedulable && !tolerates(t, corev1.TaintNodeUnschedulable) {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	for key, value := range t.Spec.NodeSelector {
		if n.Labels[key] != value {
			return false
		}
	}
	for _, taint := range n.Spec.Taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(t, taint.Key) {
			return false
		}
	}
	return true
}

func tolerates(t *corev1.Pod, taint string) bool {
	return slices.ContainsFunc(t.Spec.Tolerations, func(o corev1.Toleration) bool {
		return o.Operator == corev1.TolerationOpExists && (o.Key == "" || o.Key == taint)
	})
}

// ready is how many pods of a job have a node to stay on or have succeeded, of a role or, if it is "", of all.
func (j *job) ready(role string) int {
	return j.count(role, func(t *pod) bool { return t.done || t.state == binding || t.state == placed })
}

func (j *job) count(role string, which func(*pod) bool) int {
	count := 0
	for _, t := range j.pods {
		if (role == "" || t.role() == role) && which(t) {
			count++
		}
	}
	return count
}

// enough reports whether a job may run, given how many pods of each role it has; "" asks for all.
func (j *job) enough(has func(role string) int) bool {
	sum := int32(0)
	for _, minimum := range j.object.Spec.MinTaskMember {
		sum += minimum
	}
	if has("") < int(j.object.Spec.MinMember) {
		return false
	}
	if j.object.Spec.MinMember < sum {
		return true // then any pods will do
	}
	for role, minimum := range j.object.Spec.MinTaskMember {
		if has(role) < int(minimum) {
			return false
		}
	}
	return true
}
