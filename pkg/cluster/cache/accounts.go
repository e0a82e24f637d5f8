package cache

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// What runs is charged where it was charged when it got its node, until it is gone. The pod says where, so that a
// scheduler which begins later knows it. A pod stays in its job if its annotations name another. A job stays in its
// queue while a pod of it runs that was charged there. What it holds counts there also while its PodGroup is gone.

// QueueKept is the reason of the Event of a PodGroup for which another queue is charged than the one in its spec.
const QueueKept = "QueueKept"

// accountOf is the queue that was charged when a pod got its node, and the job in which it did, "" if the pod does not
// say that.
func accountOf(pod *cluster.Pod) (queue, job string) {
	if pod.NodeName == "" {
		return "", ""
	}
	queue, job, _ = strings.Cut(pod.Annotations[decision.AccountAnnotation], "/")
	return queue, job
}

// countAccount counts a task for the queue that was charged when it got its node.
func (k *Cache) countAccount(t *cluster.Task, status cluster.Status) {
	queue, _ := accountOf(t.Pod)
	if status.Finished() || t.Job == nil || t.Job.IsOfWorkload() {
		queue = ""
	}
	if t.Internal.Account != queue {
		k.chargeTo(t, queue)
		k.followAccount(t.Job)
	}
}

// chargeTo counts a task for a queue in its job, "" for none.
func (k *Cache) chargeTo(t *cluster.Task, queue string) {
	accounts := t.Job.Internal.Accounts
	if was := t.Internal.Account; was != "" {
		if accounts[was]--; accounts[was] == 0 {
			delete(accounts, was)
		}
	}
	if t.Internal.Account = queue; queue == "" {
		return
	}
	if accounts == nil {
		accounts = map[string]int{}
		t.Job.Internal.Accounts = accounts
	}
	accounts[queue]++
}

// queuesOf are the queue that the PodGroup of a job names, "" if it has none, and the one that is charged: the same,
// unless all of its pods that run were charged elsewhere.
func (k *Cache) queuesOf(j *cluster.Job) (named, charged string) {
	if j.Group != nil {
		if named = j.Group.Spec.Queue; named == "" {
			named = k.options.DefaultQueue
		}
	}
	if accounts := j.Internal.Accounts; len(accounts) > 0 && accounts[named] == 0 {
		return named, slices.Min(slices.Collect(maps.Keys(accounts)))
	}
	return named, named
}

// account puts a job in the queue that is charged for it. Without a PodGroup it is in none, and only what it holds
// counts there.
func (k *Cache) account(j *cluster.Job) {
	if j.IsOfWorkload() {
		return
	}
	named, charged := k.queuesOf(j)
	queue, below := charged, ""
	if j.Group == nil {
		queue, below = "", charged
	} else {
		k.say(j, named, charged)
	}
	if j.BelowName != below {
		cluster.SetBelow(k.Quota(), j, below, k.Queue(below))
	}
	k.queues.assign(j, queue)
}

// followAccount does so after pods of a job have come or gone.
func (k *Cache) followAccount(j *cluster.Job) {
	if j == nil || j.IsOfWorkload() || k.Job(j.ID) != j {
		return
	}
	if _, charged := k.queuesOf(j); charged != j.QueueName+j.BelowName {
		k.account(j)
		k.belong(j)
		k.NoteFreed(j)
	}
}

// say makes the Event of a job that is charged elsewhere than its PodGroup says, once.
func (k *Cache) say(j *cluster.Job, named, charged string) {
	text := ""
	switch {
	case named == charged:
	case named == "":
		text = fmt.Sprintf("It is gone, and its pods that run are charged to queue %s until they are gone", charged)
	default:
		text = fmt.Sprintf("It stays in queue %s while pods of it run that were charged there, and is in queue %s then", charged, named)
	}
	if j.Internal.Told == text {
		return
	}
	if j.Internal.Told = text; text != "" && !j.IsForeign {
		k.notices = append(k.notices, decision.Notice{Type: corev1.EventTypeWarning, Reason: QueueKept, Message: text,
			Regarding: corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup",
				Namespace: j.ID.Namespace, Name: j.ID.Name, UID: j.UID()}})
	}
}

// tellMoved makes the Event of a pod with a node that names another PodGroup than that of the job in which it is
// charged, once after each change.
func (k *Cache) tellMoved(t *cluster.Task, pod *cluster.Pod) {
	queue, job := accountOf(pod)
	named := pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
	if queue == "" || named == job || decision.ParseJobID(pod.Namespace, job).Kind != decision.OfPodGroup || k.statusOf(pod).Finished() || !k.isOurs(pod) {
		return
	}
	if t.Pod != nil && t.Pod.NodeName != "" && t.Pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == named {
		return
	}
	text := fmt.Sprintf("It names PodGroup %q, and is charged with PodGroup %s to queue %s until it is gone", named, job, queue)
	if named == "" {
		text = fmt.Sprintf("It names no PodGroup, and is charged with PodGroup %s to queue %s until it is gone", job, queue)
	}
	k.notices = append(k.notices, podNotice(pod, text))
}

func podNotice(pod *cluster.Pod, text string) decision.Notice {
	return decision.Notice{Type: corev1.EventTypeWarning, Reason: QueueKept, Message: text,
		Regarding: corev1.ObjectReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
}

// followsWithin is how long the pods of a job may take to be deleted after its PodGroup, before it is said that they
// stay charged. What an object controls is deleted after it, in any order.
const followsWithin = 10 * time.Second

// orphaned is a job whose PodGroup is gone, of a controller that may be gone, too.
type orphaned struct {
	job   cluster.JobID
	since time.Time // zero until the next cycle
}

// tellOrphaned makes the Event of a job whose PodGroup is gone although pods of it run on, on the first of them.
func (k *Cache) tellOrphaned(id cluster.JobID) {
	j := k.Job(id)
	if j == nil || j.Group != nil {
		return
	}
	_, charged := k.queuesOf(j)
	var first *cluster.Task
	count := 0
	for _, t := range j.Tasks() {
		if t.Internal.Account == "" || t.Pod.DeletionTimestamp != nil {
			continue
		}
		if count++; first == nil || t.Pod.Name < first.Pod.Name {
			first = t
		}
	}
	if first == nil {
		return
	}
	text := fmt.Sprintf("Its PodGroup %s is gone, and it is charged to queue %s until it is gone, too", id.Name, charged)
	if count > 1 {
		text += fmt.Sprintf(", as are %d others", count-1)
	}
	k.notices = append(k.notices, podNotice(first.Pod, text))
}

// TakeNotices returns the Events that are to be made of what was read since the last call, and of what has not followed
// in time.
func (k *Cache) TakeNotices(now time.Time) []decision.Notice {
	left := k.orphaned[:0]
	for _, o := range k.orphaned {
		switch {
		case o.since.IsZero():
			o.since = now
		case !now.Before(o.since.Add(followsWithin)):
			k.tellOrphaned(o.job)
			continue
		}
		left = append(left, o)
	}
	k.orphaned = left
	notices := k.notices
	k.notices = nil
	return notices
}

// NoticesAt is when there may be another Event though nothing is read, zero if there will be none.
func (k *Cache) NoticesAt() time.Time {
	if len(k.orphaned) == 0 {
		return time.Time{}
	}
	return k.orphaned[0].since.Add(followsWithin)
}
