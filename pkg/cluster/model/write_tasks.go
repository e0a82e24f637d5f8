package model

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"k8s.io/apimachinery/pkg/types"
)

// TaskWriter changes the tasks of the model.
type TaskWriter struct{ c *Cluster }

// Add returns a new task for a pod, which counts nowhere until [TaskWriter.Show].
func (w *TaskWriter) Add(key types.NamespacedName, pod *cluster.Pod) *cluster.Task {
	t := &cluster.Task{Status: cluster.Failed, Internal: cluster.TaskInternals{InJob: -1}}
	w.c.tasks[key] = t
	w.c.setClass(t, w.c.classes.Held(pod, nil))
	w.enroll(t, pod, true)
	return t
}

// TaskState is the state of a task by its pod.
type TaskState struct {
	Pod    *cluster.Pod
	Status gang.Status
	Shown  gang.Status // the status in the API of a task that is Evicting
	Node   *cluster.Node
}

// Show removes a task from all totals, reads its pod, calls join, and adds the task again.
func (w *TaskWriter) Show(t *cluster.Task, s TaskState, join func()) {
	c := w.c
	before := weightOf(t)
	t.Internal.Was = s.Shown
	if t.Status == cluster.Evicting {
		c.spend(t, -1)
	}
	c.account(t, -1)
	if t.Job != nil {
		c.settleJob(t.Job)
	}
	t.Read(s.Pod)
	c.leave(t)
	join()
	c.enter(t, s.Node)
	t.Status = s.Status
	c.account(t, +1)
	if !s.Status.Assumed() {
		// Who binds a pod elsewhere, or before it was to be bound, writes nothing of its volumes and devices.
		wasBound := before.status.Holds() && before.node != nil && s.Pod.NodeName == before.node.Name
		c.endReservation(t, wasBound)
	}
	if s.Status == cluster.Evicting {
		c.spend(t, +1)
	}
	c.follow(t)
	if j := t.Job; j != nil {
		c.renew(j)
		if before.status.Assumed() && (s.Status == cluster.Bound || s.Status == cluster.Running) {
			j.Internal.Failures, j.Internal.Losses = 0, 0
		}
		c.settleJob(j)
	}
	c.noteWeight(t, before)
	if before.node != nil {
		c.forgetEmpty(before.node)
	}
}

// Restate updates the pod of a task whose request and node have not changed, as in most updates, which are of
// conditions. Caches about its node, and unless its status has changed about its job, stay valid.
func (w *TaskWriter) Restate(t *cluster.Task, s TaskState) {
	c := w.c
	t.Pod, t.Internal.Was = s.Pod, s.Shown
	t.ReadAllowance()
	if t.Status == s.Status {
		return
	}
	if s.Status.Evictable() && !t.Status.Evictable() {
		c.backlog.NotePlaced(&c.world, t.Job) // it may be a victim now
	}
	assumed := t.Status.Assumed()
	c.move(t, s.Status, t.Node)
	if j := t.Job; j != nil {
		c.renew(j)
		if assumed {
			j.Internal.Failures, j.Internal.Losses = 0, 0
		}
	}
}

// Release takes a task off its node.
func (w *TaskWriter) Release(t *cluster.Task, status gang.Status) { w.c.release(t, status) }

// Linger stops counting on the end of a task that is overdue.
func (w *TaskWriter) Linger(t *cluster.Task) { w.c.move(t, cluster.Lingering, t.Node) }

// Remove removes a task from all totals, and then calls leave to remove it from its job.
func (w *TaskWriter) Remove(t *cluster.Task, leave func()) {
	c := w.c
	c.release(t, cluster.Failed)
	c.account(t, -1)
	w.enroll(t, t.Pod, false)
	c.supplies.Forget(supplies.Pod{NamespacedName: t.Key(), UID: t.UID()})
	j := t.Job
	leave()
	c.setClass(t, nil)
	delete(c.tasks, t.Key())
	c.NoteFreed(j) // its queue requests less, which may leave more for others
}

// SetClass updates the class of a task: as a pending task or, with held, as one with a node.
func (w *TaskWriter) SetClass(t *cluster.Task, held bool) {
	if held {
		w.c.setClass(t, w.c.classes.Held(t.Pod, t.Class))
		return
	}
	w.c.setClass(t, w.c.classOf(t))
}

// enroll adds a task to the users of its pod's claims, or removes it.
func (w *TaskWriter) enroll(t *cluster.Task, pod *cluster.Pod, isThere bool) {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim := types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}
		users := slices.DeleteFunc(w.c.claimUsers[claim], func(u *cluster.Task) bool { return u == t })
		if isThere {
			users = append(users, t)
		}
		if len(users) == 0 {
			delete(w.c.claimUsers, claim)
		} else {
			w.c.claimUsers[claim] = users
		}
	}
}

// Join adds a task to a job. If it is in the job already, it is assigned to the subgroup of its labels.
func (w *TaskWriter) Join(t *cluster.Task, j *cluster.Job) {
	if t.Job != j {
		t.Job, t.Internal.InJob = j, len(j.Internal.Tasks)
		j.Internal.Tasks = append(j.Internal.Tasks, t)
	}
	j.Regroup(t)
}

// Leave removes a task, which must be in no totals, from its job.
func (w *TaskWriter) Leave(t *cluster.Task) {
	j := t.Job
	t.LeaveJob()
	t.Job = nil
	w.c.renew(j)
	w.c.settleJob(j) // a job without tasks may claim less
}

// Len is the number of tasks.
func (w *TaskWriter) Len() int { return len(w.c.tasks) }
