package cluster

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// Event is one thing that happened outside the model: [Set], [Delete], [Measured], [BindFailed] or [PlanFailed].
type Event interface{ apply(*Cluster) }

// Set says that an object exists and looks like this. Kinds that the model does not hold are ignored.
type Set struct{ Object runtime.Object }

// Delete says that an object is gone. Only its name, namespace and UID are read.
type Delete struct{ Object runtime.Object }

// BindFailed says that a binding was refused for good: the pod was not bound and no attempt is under way. The job backs
// off until a time that grows with each failure in a row.
type BindFailed struct {
	Pod    types.NamespacedName
	UID    types.UID
	At     time.Time
	Reason string // what the API server said, a clause
}

// Apply takes in what happened. [Cluster.Settle] must follow before the next decision.
func (c *Cluster) Apply(events ...Event) {
	invariant(len(c.log) == 0, "events are applied inside a transaction")
	for _, e := range events {
		e.apply(c)
	}
}

func (e Set) apply(c *Cluster) {
	switch object := e.Object.(type) {
	case *corev1.Pod:
		c.setPod(object)
	case *corev1.Node:
		c.setNode(object)
	case *schedulingv1beta1.PodGroup:
		c.setGroup(object)
	case *schedulingv1beta1.Queue:
		c.setQueue(object)
	case *schedulingv1.PriorityClass:
		c.priorities[object.Name] = object
		c.reprioritize()
	case *policyv1.PodDisruptionBudget:
		c.setBudget(object)
	case *corev1.ResourceQuota:
		c.setQuota(object)
	case *topologyv1alpha1.HyperNode:
		c.topology.Set(object)
	case *corev1.Namespace:
		before := c.namespaces[object.Name]
		c.namespaces[object.Name] = object
		if before == nil || !maps.Equal(before.Labels, object.Labels) {
			if before != nil { // policies and webhooks select by them
				c.reconsider(func(t *Task) bool { return t.Pod.Namespace == object.Name })
			}
			c.namespacesGeneration++
			c.world.Note(wake.NamespaceShown)
		}
	default:
		if kind := supplies.KindOf(object); kind != supplies.None {
			c.setSupply(kind, object.(supplies.Object))
		}
	}
}

func (e Delete) apply(c *Cluster) {
	switch object := e.Object.(type) {
	case *corev1.Pod:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		if t := c.tasks[key]; t != nil && t.UID() == object.UID {
			c.dropTask(t)
		}
		if c.strangers[key].uid == object.UID {
			c.dropStranger(key)
		}
	case *corev1.Node:
		c.dropNode(object)
	case *schedulingv1beta1.PodGroup:
		c.dropGroup(object)
	case *schedulingv1beta1.Queue:
		c.dropQueue(object)
	case *schedulingv1.PriorityClass:
		if p := c.priorities[object.Name]; p != nil && p.UID == object.UID {
			delete(c.priorities, object.Name)
			c.reprioritize()
		}
	case *policyv1.PodDisruptionBudget:
		c.dropBudget(object)
	case *corev1.ResourceQuota:
		c.dropQuota(object)
	case *topologyv1alpha1.HyperNode:
		if h := c.topology.Get(object.Name); h != nil && h.Object.UID == object.UID {
			c.topology.Delete(object.Name)
		}
	case *corev1.Namespace:
		if before := c.namespaces[object.Name]; before != nil && before.UID == object.UID {
			delete(c.namespaces, object.Name)
			c.namespacesGeneration++
			c.world.Note(wake.NamespaceShown)
		}
	default:
		if kind := supplies.KindOf(object); kind != supplies.None {
			c.dropSupply(kind, object.(supplies.Object))
		}
	}
}

// The back-off after refused bindings: a second, doubled by each failure in a row, at most a minute. Long enough that a
// job that can never be bound costs little, short enough that one that can again does not wait long.
const (
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

func (e BindFailed) apply(c *Cluster) {
	t := c.tasks[e.Pod]
	if t == nil || t.UID() != e.UID || t.Status != Binding {
		return
	}
	c.release(t, Pending)
	j := t.Job
	if j == nil {
		return
	}
	c.plans.unpromise(t, e.At, "the pod could not be bound")
	j.version++
	// The bindings of a gang are under way together: what is refused while it backs off already is the same failure.
	if !e.At.Before(j.NotBefore) {
		c.backOff(j, e.At)
		c.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Subject: e.Pod.Name, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
	}
}

// backOff keeps a job waiting after a failure.
func (c *Cluster) backOff(j *Job, at time.Time) {
	pause := lastBackOff
	if j.failures < 6 {
		pause = firstBackOff << j.failures
	}
	j.failures++
	j.NotBefore = at.Add(min(pause, lastBackOff))
}

// setPod takes in a pod. What is assumed of it stands until the pod shows otherwise.
func (c *Cluster) setPod(pod *corev1.Pod) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	t := c.tasks[key]
	if t != nil && t.UID() != pod.UID {
		// Deleted and made again under the same name.
		c.dropTask(t)
		t = nil
	}
	ours := c.isOurs(pod)
	if !ours && pod.Spec.NodeName == "" {
		if t != nil {
			c.dropTask(t)
		}
		c.setStranger(key, pod)
		return
	}
	c.dropStranger(key)
	if t == nil {
		t = &Task{inJob: -1}
		c.tasks[key] = t
		t.Status = Failed // holds and counts nothing until it is moved
		c.setClass(t, c.classes.Held(pod, nil))
		c.enroll(t, pod, true)
		c.updateTask(t, pod)
		c.recall(t)
		return
	}
	c.updateTask(t, pod)
}

func (c *Cluster) isOurs(pod *corev1.Pod) bool {
	for _, name := range c.options.SchedulerNames {
		if pod.Spec.SchedulerName == name {
			return true
		}
	}
	return false
}

func (c *Cluster) updateTask(t *Task, pod *corev1.Pod) {
	status, node := c.statusOf(pod), (*Node)(nil)
	switch {
	case status.Finished():
		// It holds nothing; the node it was on may be long gone.
	case pod.Spec.NodeName != "":
		node = c.nodeNamed(pod.Spec.NodeName)
	case t.Status == Pipelined && (t.Job == nil || t.Job.ID != groupOf(pod)):
		// The promise was made to the job it was of.
	case t.Status.Assumed() && status == Pending:
		status, node = t.Status, t.Node
	}
	shown := Pending
	switch {
	case t.Status == Evicting && t.Node == node && (status == Bound || status == Running || status == Unknown):
		shown, status = status, Evicting // decided, and on its way
	case t.Status == Lingering && status == Releasing:
		status = Lingering
	}
	t.was = shown
	before := t.weight()
	was, from := before.status, before.node
	if t.Pod != nil && same.Pod(t.Pod, pod) && from == node && was.Weighs(status) && before.request.Equal(c.classes.Request(pod)) {
		c.restate(t, pod, status)
		return
	}
	switch {
	case status.Evictable() && !was.Evictable(), status.Holds() && from != node:
		c.world.Note(wake.PodPlaced)
	case (status.Holds() || status == Pipelined) && t.Pod != nil && !same.PodAsVictim(c.classes.Keys(), t.Pod, pod):
		c.world.Note(wake.PodRelabelled)
	}
	if t.Status == Evicting {
		c.spend(t, -1)
	}
	if t.Refusal != nil && (status.Finished() || status == Releasing || !same.PodAsVictim(c.classes.Keys(), t.Pod, pod)) {
		c.reconsider(func(other *Task) bool { return other == t })
	}
	// Everything the totals depend on changes between taking the task out of them and putting it back.
	c.account(t, -1)
	if t.Job != nil {
		c.settleJob(t.Job)
	}
	t.terms = c.classes.CountTerms(t.terms, pod, !status.Finished())
	if c.isOurs(pod) && !status.Finished() {
		c.tolerate(t, pod.Spec.Tolerations)
	} else {
		c.tolerate(t, nil)
	}
	t.read(pod)
	c.leave(t)
	c.joinJob(t)
	if status == Pending || status == Gated || status.Assumed() {
		c.setClass(t, c.classOf(t))
	} else {
		c.setClass(t, c.classes.Held(pod, t.Class))
	}
	if node != nil {
		t.Node, t.inNode = node, len(node.tasks)
		node.tasks = append(node.tasks, t)
	}
	t.Status = status
	c.account(t, +1)
	if !status.Assumed() {
		c.letGo(t, pod.Spec.NodeName != "")
	}
	if status == Evicting {
		c.spend(t, +1)
	}
	c.follow(t)
	if !status.Leaves() && status != Lingering {
		c.plans.outlive(t)
	}
	if t.Job == nil && status == Pending {
		c.ungrouped = append(c.ungrouped, t)
	}
	if j := t.Job; j != nil {
		j.version++
		if was.Assumed() && (status == Bound || status == Running) {
			j.failures = 0
		}
		c.settleJob(j)
	}
	c.noteWeight(t, before)
	if from != nil {
		c.forgetEmpty(from)
	}
}

// restate takes in a pod that takes and asks what it did: most updates are of conditions. Neither its node nor, unless it
// got on, its job has changed, so nothing that was worked out of them is out of date.
func (c *Cluster) restate(t *Task, pod *corev1.Pod, status Status) {
	t.Pod = pod
	if t.Status == status {
		return
	}
	if status.Evictable() && !t.Status.Evictable() {
		c.world.Note(wake.PodPlaced) // a preemptor may look at it now
	}
	assumed := t.Status.Assumed()
	c.move(t, status, t.Node)
	if j := t.Job; j != nil {
		j.version++
		if assumed {
			j.failures = 0
		}
	}
}

// groupOf is the job that a pod names, zero if it names none.
func groupOf(pod *corev1.Pod) JobID {
	group := pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
	if group == "" {
		return JobID{}
	}
	return JobID{Namespace: pod.Namespace, Name: group}
}

// joinJob makes the task a member of the job its pod names.
func (c *Cluster) joinJob(t *Task) {
	var j *Job
	if id := groupOf(t.Pod); id != (JobID{}) {
		j = c.jobNamed(id)
	}
	if t.Job == j {
		if j != nil {
			j.assign(t) // its labels may be others
			c.reenlist(t)
			c.rerank(t)
		}
		return
	}
	c.leaveJob(t)
	if j != nil {
		t.Job, t.inJob = j, len(j.tasks)
		j.tasks = append(j.tasks, t)
		j.assign(t)
		t.scheduler = t.Pod.Spec.SchedulerName
		c.enlist(j, t.scheduler, +1)
		c.rank(t, +1)
	}
}

func (c *Cluster) leaveJob(t *Task) {
	j := t.Job
	if j == nil {
		return
	}
	last := j.tasks[len(j.tasks)-1]
	j.tasks[t.inJob], last.inJob = last, t.inJob
	j.tasks = j.tasks[:len(j.tasks)-1]
	j.Unassign(t.Subgroup)
	t.Subgroup = nil
	c.rank(t, -1)
	t.Job = nil
	j.version++
	c.attend(j)
	c.enlist(j, t.scheduler, -1)
	c.dropIfEmpty(j)
}

// release frees what a task held.
func (c *Cluster) release(t *Task, status Status) {
	before := t.weight()
	c.move(t, status, nil)
	c.noteWeight(t, before)
	if before.node != nil {
		c.forgetEmpty(before.node)
	}
}

func (c *Cluster) dropTask(t *Task) {
	c.release(t, Failed)
	c.account(t, -1)
	t.terms = c.classes.CountTerms(t.terms, t.Pod, false)
	c.tolerate(t, nil)
	c.enroll(t, t.Pod, false)
	c.supplies.Forget(supplies.Pod{NamespacedName: t.Key(), UID: t.UID()})
	c.plans.outlive(t)
	c.leaveJob(t)
	c.setClass(t, nil)
	delete(c.tasks, t.Key())
	delete(c.refused, t.Key())
	c.forgotten.Tasks = append(c.forgotten.Tasks, t)
	c.world.Note(wake.UsageFreed) // its queue asks for less, which may leave more to others
}

// jobNamed returns a job, a placeholder if its PodGroup is not known yet.
func (c *Cluster) jobNamed(id JobID) *Job {
	j := c.jobs[id]
	if j == nil {
		j = &Job{ID: id}
		c.jobs[id] = j
	}
	return j
}

func (c *Cluster) setGroup(group *schedulingv1beta1.PodGroup) {
	id := JobID{Namespace: group.Namespace, Name: group.Name}
	j := c.jobNamed(id)
	// The phase is decided here; what the API shows is an echo, except of what was decided before this process began.
	switch {
	case j.Group == nil || j.Group.UID != group.UID:
		if j.Plan != nil {
			c.Plans().Cancel(j.Plan, "the job is gone")
		}
		j.Phase = group.Status.Phase
		c.forget(j)
		c.questionOwner(j)
	case same.Group(j.Group, group):
		j.Group = group
		c.followPhase(j)
		return
	case j.Group.Generation != group.Generation:
		// What made a binding fail may have been mended.
		j.NotBefore = time.Time{}
	}
	if j.Group == nil && !j.Usage.Allocated.IsZero() || j.Group != nil && !same.GroupAsVictim(c.classes.Keys(), j.Group, group) {
		c.world.Note(wake.VictimsChanged) // its pods may be evicted now, or no more
	}
	if j.Group != nil && j.Group.Annotations[schedulingv1beta1.SchedulerNameKey] != group.Annotations[schedulingv1beta1.SchedulerNameKey] {
		c.questionOwner(j)
	}
	needed := j.MinResources
	j.read(c, group)
	c.followPhase(j)
	if !needed.LessEqual(j.MinResources) {
		c.world.Note(wake.UsageFreed) // less of its queue is spoken for
	}
	queue := group.Spec.Queue
	if queue == "" {
		queue = c.options.DefaultQueue
	}
	c.assignQueue(j, queue)
	c.belong(j)
	j.version++
	c.settleJob(j)
}

func (c *Cluster) dropGroup(group *schedulingv1beta1.PodGroup) {
	j := c.jobs[JobID{Namespace: group.Namespace, Name: group.Name}]
	if j == nil || j.Group == nil || j.Group.UID != group.UID {
		return
	}
	if j.Plan != nil {
		c.Plans().Cancel(j.Plan, "the job is gone")
	}
	c.assignQueue(j, "")
	j.read(c, &schedulingv1beta1.PodGroup{})
	j.Group, j.Phase, j.Priority, j.NeverPreempts, j.IsForeign = nil, "", 0, false, false
	c.forget(j)
	c.belong(j)
	c.settleJob(j)
	c.world.Note(wake.UsageFreed)
	c.dropIfEmpty(j)
}

// assignQueue moves a job, with all it has and wants, to the queue of a name, which need not exist.
func (c *Cluster) assignQueue(j *Job, name string) {
	q := c.Queue(name)
	if j.QueueName == name && j.Queue == q {
		return
	}
	if old := j.Queue; old != nil {
		c.quota.BookAll(&old.Node, &j.Usage, -1)
		old.Jobs--
		c.world.Note(wake.UsageFreed)
	}
	j.QueueName, j.Queue = name, q
	if q != nil {
		c.quota.BookAll(&q.Node, &j.Usage, +1)
		q.Jobs++
	}
	j.version++
	c.touch(j)
}
