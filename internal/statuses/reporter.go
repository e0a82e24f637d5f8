package statuses

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/gang"
)

// Reporter decides what is written to PodGroups, queues and pods. One goroutine uses it.
type Reporter struct {
	cycle        uint64
	policy       *framework.Policy
	placedReason string // the reason of pods that fit although their gang does not; see gang.PlacedPodReasonKey
	memory       memory
	arriving     []*cluster.Job // jobs that lack pods, and whose status does not say so yet
	touched      []*cluster.Job // the jobs of the last run, by name
	Places       Places
	revisits     *framework.Heap[revisit]
	ungrouped    []ungrouped // pods without a PodGroup whose condition does not say so yet, in the order of their times
}

// New returns a reporter without any decisions.
func New() *Reporter {
	r := &Reporter{memory: newMemory(), revisits: framework.NewHeap(nil, compareRevisits)}
	r.Places.memory = &r.memory
	return r
}

// Use applies a policy to the conditions of pods, also to those that are written already.
func (r *Reporter) Use(policy *framework.Policy, c *model.Cluster) {
	r.policy = policy
	reason := gang.PlacedPodReason(policy.Configuration)
	if reason == r.placedReason {
		return
	}
	r.placedReason = reason
	for _, j := range c.Waiting() {
		c.TouchJob(j)
	}
}

// Forget drops the decisions about objects that the model has forgotten, and adds to the decisions that earlier ones
// about them are void. It must be called first after the actions of a cycle.
func (r *Reporter) Forget(c *cache.Cache, d *decision.Decisions) {
	if r.memory.forget(c, d) {
		r.Places.areStale = true
	}
}

// Touched returns the jobs that the last call of Statuses has read, by name.
func (r *Reporter) Touched() []*cluster.Job { return r.touched }

// Statuses adds every status that differs from the last decision. It reads only jobs and queues that have changed.
func (r *Reporter) Statuses(c *cache.Cache, now time.Time, d *decision.Decisions) {
	r.cycle++
	r.warnOfMarks(c, d)
	r.touchArrived(c, now)
	r.touchDamped(c, now)
	r.writeUngrouped(c, now, d)
	r.touched = c.TakeTouchedJobs()
	for _, j := range r.touched {
		arriving := r.isArriving(j, now)
		if j.Group != nil && !j.IsForeign {
			for phase := phaseOf(j); phase != j.Phase; phase = phaseOf(j) {
				c.SetPhase(j, phase) // what follows from a phase may be another
			}
			r.writeGroup(j, arriving, now, d)
			r.writePlace(j, d)
			r.writeStandIns(j, d)
		}
		if !arriving {
			r.writePods(j, now, d)
		}
	}
	for _, j := range r.Places.moved {
		if c.Job(j.ID) == j && j.Group != nil && !j.IsForeign {
			r.writeGroup(j, r.isArriving(j, now), now, d)
		}
	}
	r.Places.moved = nil
	r.Places.follow(c, len(r.touched) > 0, now)
	// Setting phases has touched some jobs again, which are written already.
	c.TakeTouchedJobs()
	for _, q := range c.TakeTouchedQueues() {
		r.writeQueue(c.Cluster, q, d)
		r.warnOfProperties(q, d)
	}
}

// phaseOf works out the phase of a job from the statuses of its tasks (source: Volcano's PodGroup phases).
func phaseOf(j *cluster.Job) schedulingv1beta1.PodGroupPhase {
	finished := j.Count(cluster.Succeeded) + j.Count(cluster.Failed)
	terminating := terminating(j)
	scheduled := finished + j.Count(cluster.Running) + j.Count(cluster.Bound) + j.Count(cluster.Unknown) +
		j.Count(cluster.Awaited) + terminating
	switch {
	case j.Count(cluster.Running) > 0 && j.IsBlocked() && !j.IsPendingAdmission() && j.Lacks() > terminating:
		return schedulingv1beta1.PodGroupUnknown
	case j.Over():
		return schedulingv1beta1.PodGroupCompleted
	case scheduled >= max(j.MinMember, 1) && scheduled == finished && finished == j.Ended():
		return schedulingv1beta1.PodGroupCompleted
	case scheduled >= max(j.MinMember, 1):
		return schedulingv1beta1.PodGroupRunning
	case j.Phase == schedulingv1beta1.PodGroupInqueue:
		return j.Phase
	case j.Count(cluster.Binding)+j.Count(cluster.Awaited)+j.Count(cluster.Pipelined) > 0:
		// Also while a plan is in force: the job needs no second admission while it has nominated nodes.
		return schedulingv1beta1.PodGroupInqueue
	}
	return schedulingv1beta1.PodGroupPending
}

// terminating is the number of pods of a job that are leaving their nodes. They count as scheduled until they are gone,
// because their replacements may exist before.
func terminating(j *cluster.Job) int {
	if j.Count(cluster.Evicting)+j.Count(cluster.Releasing)+j.Count(cluster.Lingering) == 0 {
		return 0
	}
	scheduled := 0
	for _, t := range j.Tasks() {
		if t.Node != nil && (t.Status.Leaves() || t.Status == cluster.Lingering) {
			scheduled++
		}
	}
	return scheduled
}

func (r *Reporter) writeGroup(j *cluster.Job, arriving bool, now time.Time, d *decision.Decisions) {
	last := r.memory.group(j)
	status := schedulingv1beta1.PodGroupStatus{
		Phase:     j.Phase,
		Running:   int32(j.Count(cluster.Running)),
		Succeeded: int32(j.Count(cluster.Succeeded)),
		Failed:    int32(j.Count(cluster.Failed)),
	}
	status.Conditions = r.conditions(j, arriving, last.Conditions, now)
	of := r.memory.of(j)
	if equality.Semantic.DeepEqual(&status, last) {
		of.damped.agrees()
		return
	}
	refreshes := isRefresh(last, &status)
	switch {
	case !refreshes:
		of.damped.reset()
	case placeIn(last) == placeIn(&status): // places have a budget of their own
		if write, due := of.damped.differs(now); !write {
			r.revisitAt(j, due)
			return
		}
	}
	r.announce(j, last.Conditions, status.Conditions, d)
	r.memory.setGroup(j, &status)
	d.Groups = append(d.Groups, decision.GroupStatus{Job: j.ID, UID: j.UID(), Status: status,
		Queue: j.QueueName, IsAdmission: isPending(last.Phase) && !isPending(status.Phase),
		AwaitsPods: awaitsPods(j),
		IsRefresh:  refreshes})
}

// isPending reports whether a phase says that a job waits for admission.
func isPending(phase schedulingv1beta1.PodGroupPhase) bool {
	return phase == "" || phase == schedulingv1beta1.PodGroupPending
}

// placeIn is the message about the place of the job in a status, "" if there is none.
func placeIn(status *schedulingv1beta1.PodGroupStatus) string {
	for _, c := range status.Conditions {
		if c.Type == schedulingv1beta1.PodGroupQueuedType {
			return c.Message
		}
	}
	return ""
}

// awaitsPods reports whether a controller may create pods once it sees that the job is admitted.
func awaitsPods(j *cluster.Job) bool {
	return j.Phase == schedulingv1beta1.PodGroupInqueue && len(j.Tasks()) < max(int(j.MinMember), 1) &&
		j.Group != nil && metav1.GetControllerOfNoCopy(j.Group) != nil
}

// isRefresh reports whether two statuses differ only in the messages of their conditions, and in the place of the job.
func isRefresh(a, b *schedulingv1beta1.PodGroupStatus) bool {
	return a.Phase == b.Phase && a.Running == b.Running && a.Succeeded == b.Succeeded && a.Failed == b.Failed &&
		slices.EqualFunc(withoutPlace(a.Conditions), withoutPlace(b.Conditions), func(a, b schedulingv1beta1.PodGroupCondition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
		})
}

func withoutPlace(conditions []schedulingv1beta1.PodGroupCondition) []schedulingv1beta1.PodGroupCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c schedulingv1beta1.PodGroupCondition) bool {
		return c.Type == schedulingv1beta1.PodGroupQueuedType
	})
}

// writePlace writes to a PodGroup with a network topology in which HyperNode its pods are. While none has a node, the
// old HyperNode stays, so that new pods are placed there if possible.
func (r *Reporter) writePlace(j *cluster.Job, d *decision.Decisions) {
	if !j.IsPlaced() {
		return
	}
	nodes := j.Nodes(nil)
	if len(nodes) == 0 {
		return
	}
	place := ""
	if common := cluster.Common(nodes); len(common) > 0 {
		place = common[0].Name
	}
	if place != r.memory.place(j) {
		r.memory.of(j).place = &place
		d.Places = append(d.Places, decision.GroupPlace{Job: j.ID, UID: j.UID(), HyperNode: place})
	}
}

// isScheduled is of the condition that a job has its nodes.
func isScheduled(c schedulingv1beta1.PodGroupCondition) bool {
	return c.Type == schedulingv1beta1.PodGroupScheduledType
}

// conditions returns what is to be stated of a job: Unschedulable while something keeps it from starting, Scheduled
// once its pods are bound, and Nominated while room is being made for it. Scheduled stays while more pods are being
// bound later. Queued says at which place it waits. Evicted names the pods that it lost last. A condition that does not
// change keeps its time. The condition about missing pods does not change while pods are being created.
func (r *Reporter) conditions(j *cluster.Job, arriving bool, last []schedulingv1beta1.PodGroupCondition, now time.Time) []schedulingv1beta1.PodGroupCondition {
	var conditions []schedulingv1beta1.PodGroupCondition
	state := func(c schedulingv1beta1.PodGroupCondition) {
		c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(now.Truncate(time.Second))
		for _, old := range last {
			if old.Type == c.Type && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
				c.LastTransitionTime = old.LastTransitionTime
				if c.Type != schedulingv1beta1.PodGroupNominatedType {
					c.TransitionID = old.TransitionID
				}
			}
		}
		conditions = append(conditions, c)
	}
	reason, sentence := j.Reason()
	transition := strconv.FormatUint(r.cycle, 10)
	switch {
	case j.IsBlocked() && arriving:
		for _, old := range last {
			if old.Type == schedulingv1beta1.PodGroupUnschedulableType && old.Reason == string(reason) {
				conditions = append(conditions, old)
			}
		}
	case j.IsBlocked():
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupUnschedulableType, TransitionID: transition,
			Reason: string(reason), Message: sentence()})
	case j.Lacks() == 0 && j.Ready() > 0 && (j.Count(cluster.Binding) == 0 || slices.ContainsFunc(last, isScheduled)):
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupScheduledType, TransitionID: transition,
			Reason: schedulingv1beta1.PodGroupReadyReason})
	}
	if p := j.Plan; p != nil {
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupNominatedType, TransitionID: p.ID,
			Reason: p.Action, Message: nominated(p)})
	}
	if message := r.Places.of(j, last); message != "" && j.IsBlocked() && !arriving {
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupQueuedType, TransitionID: transition,
			Reason: queuedReason, Message: message})
	}
	if j.RestartsWhenEvicted() {
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupRestartsType, TransitionID: transition, Reason: restartsReason,
			Message: "other pods of the job are deleted when one is evicted for another, so no pods of it are evicted for its own pods any more (rule P1)"})
	}
	if message := r.evictionsOf(j, last); message != "" {
		state(schedulingv1beta1.PodGroupCondition{Type: schedulingv1beta1.PodGroupEvictedType, TransitionID: transition,
			Reason: evictedReason, Message: message})
	}
	return conditions
}

// nominated describes a plan. The text does not change while the plan is in force.
func nominated(p *cluster.Plan) string {
	if p.Evictions == 0 {
		return "nominated to nodes; pods that were being deleted before are leaving them"
	}
	if p.Evictions == 1 {
		return "nominated to nodes; 1 pod is evicted from them (rule " + p.Rule + ")"
	}
	return fmt.Sprintf("nominated to nodes; %d pods are evicted from them (rule %s)", p.Evictions, p.Rule)
}

// announce makes an Event when the reason of a job's condition changes, not with every number. Evictions have Events of
// the pods, places none.
func (r *Reporter) announce(j *cluster.Job, last, next []schedulingv1beta1.PodGroupCondition, d *decision.Decisions) {
	for _, c := range next {
		if c.Type != schedulingv1beta1.PodGroupEvictedType && c.Type != schedulingv1beta1.PodGroupQueuedType && !slices.ContainsFunc(last, func(old schedulingv1beta1.PodGroupCondition) bool {
			return old.Type == c.Type && old.Reason == c.Reason
		}) {
			d.Events = append(d.Events, noticeOf(j, c))
		}
	}
}

func noticeOf(j *cluster.Job, c schedulingv1beta1.PodGroupCondition) decision.Notice {
	notice := decision.Notice{
		Regarding: corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup",
			Namespace: j.ID.Namespace, Name: j.ID.Name, UID: j.UID()},
		Type: corev1.EventTypeNormal, Reason: string(c.Type), Message: c.Message,
	}
	switch c.Type {
	case schedulingv1beta1.PodGroupUnschedulableType:
		notice.Type = corev1.EventTypeWarning
		notice.Message = c.Reason + ": " + c.Message
	case schedulingv1beta1.PodGroupScheduledType:
		notice.Message = fmt.Sprintf("%d pods have their nodes; the minimum is %d", j.Ready(), j.MinMember)
	}
	return notice
}

func (r *Reporter) writeQueue(c *model.Cluster, q *cluster.Queue, d *decision.Decisions) {
	allocated := c.Resources.List(q.Subtree.Allocated)
	last := r.memory.allocated(q)
	if equality.Semantic.DeepEqual(allocated, last) || len(allocated)+len(last) == 0 {
		return
	}
	r.memory.queues[q] = allocated
	hasStatus := !equality.Semantic.DeepEqual(&q.Object.Status, &schedulingv1beta1.QueueStatus{})
	d.Queues = append(d.Queues, decision.QueueStatus{Queue: q.Name, UID: q.Object.UID, Allocated: allocated, HasStatus: hasStatus})
}

// InvalidQueueProperty is the reason of the Event about an annotation of a queue that cannot be read.
const InvalidQueueProperty = "InvalidQueueProperty"

// warnOfProperties makes an Event for each annotation of a queue that cannot be read, once for each value.
func (r *Reporter) warnOfProperties(q *cluster.Queue, d *decision.Decisions) {
	told := r.memory.unreadable[q]
	if len(q.Unreadable) == 0 && len(told) == 0 || q.Object == nil {
		return
	}
	for _, p := range q.Unreadable {
		if slices.Contains(told, p) {
			continue
		}
		d.Events = append(d.Events, decision.Notice{Type: corev1.EventTypeWarning, Reason: InvalidQueueProperty,
			Regarding: corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Queue", Name: q.Name, UID: q.Object.UID},
			Message:   fmt.Sprintf("queue %s: %s; the default holds", q.Name, p)})
	}
	r.memory.unreadable[q] = q.Unreadable
}
