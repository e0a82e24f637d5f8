package cluster

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// members is how many pods of a PodGroup, placed or not, name a scheduler.
type members struct {
	scheduler string
	pods      int
}

// stranger is a pod of another scheduler that has no node yet and names a PodGroup. It is no task: nothing is to be done for
// it and it takes no room. It says whose the PodGroup is.
type stranger struct {
	uid       types.UID
	job       JobID
	scheduler string
}

// Scheduler is the name of the scheduler that the job belongs to: the one that its PodGroup names, else the one of its pods. The
// kube-scheduler reads no PodGroups and owns none. Of several schedulers the first by name counts, since all of them must come
// to the same answer; where there is none it is the default one.
func (j *Job) Scheduler() string {
	if j.Group != nil {
		if name := j.Group.Annotations[schedulingv1beta1.SchedulerNameKey]; name != "" {
			return name
		}
	}
	for _, m := range j.members {
		if m.scheduler != corev1.DefaultSchedulerName {
			return m.scheduler
		}
	}
	return schedulingv1beta1.DefaultSchedulerName
}

// enlist counts a pod of a job that names a scheduler, or counts it no more.
func (c *Cluster) enlist(j *Job, scheduler string, sign int) {
	i, found := slices.BinarySearchFunc(j.members, scheduler, func(m members, name string) int { return cmp.Compare(m.scheduler, name) })
	if !found {
		j.members = slices.Insert(j.members, i, members{scheduler: scheduler})
	}
	if j.members[i].pods += sign; j.members[i].pods == 0 {
		j.members = slices.Delete(j.members, i, i+1)
		found = false
	}
	if !found {
		c.questionOwner(j)
	}
}

// followPhase takes over the phase of a job that belongs to another scheduler. Of others the phase is decided here, and what
// the API shows is an echo.
func (c *Cluster) followPhase(j *Job) {
	if j.IsForeign {
		c.SetPhase(j, j.Group.Status.Phase)
	}
}

// forget drops all that was decided of a job before: its PodGroup is another one or gone, or belongs to another scheduler now.
func (c *Cluster) forget(j *Job) {
	j.Verdict, j.IsReported = nil, false
	j.forgive()
	c.forgotten.Jobs = append(c.forgotten.Jobs, j)
}

// forgive ends the back-off of a job and forgets its failures.
func (j *Job) forgive() {
	j.NotBefore, j.failures, j.BarredUntil = time.Time{}, 0, time.Time{}
}

// reenlist counts a task for another scheduler if its pod names another. The API server lets no pod do that; a simulation that replays
// what it was told may.
func (c *Cluster) reenlist(t *Task) {
	if name := t.Pod.Spec.SchedulerName; name != t.scheduler {
		c.enlist(t.Job, name, +1)
		c.enlist(t.Job, t.scheduler, -1)
		t.scheduler = name
	}
}

// questionOwner has the next Settle find out whose a job is.
func (c *Cluster) questionOwner(j *Job) { c.questioned = append(c.questioned, j) }

// settleOwners finds out whose the jobs are of which it may have changed.
func (c *Cluster) settleOwners() {
	if len(c.questioned) == 0 {
		return
	}
	questioned := c.questioned
	c.questioned = nil
	slices.SortFunc(questioned, func(a, b *Job) int { return CompareNames(a.ID, b.ID) })
	for _, j := range questioned {
		isForeign := j.Group != nil && !slices.Contains(c.options.SchedulerNames, j.Scheduler())
		if c.jobs[j.ID] == j && isForeign != j.IsForeign {
			c.handOver(j, isForeign)
		}
	}
}

// handOver notes that a job belongs to another scheduler from now on, or does not any more. Nothing that was decided of it
// before counts then: what its PodGroup shows does.
func (c *Cluster) handOver(j *Job, isForeign bool) {
	if j.Plan != nil {
		c.Plans().Cancel(j.Plan, "the job belongs to scheduler "+j.Scheduler())
	}
	j.IsForeign = isForeign
	c.forget(j)
	if j.Group != nil {
		c.SetPhase(j, j.Group.Status.Phase)
	}
	j.version++
	// Its pods may leave for others now, or no more.
	c.world.Note(wake.VictimsChanged)
	c.list(j)
}

// setStranger takes in a pod of another scheduler that has no node.
func (c *Cluster) setStranger(key types.NamespacedName, pod *corev1.Pod) {
	now := stranger{uid: pod.UID, job: groupOf(pod), scheduler: pod.Spec.SchedulerName}
	before, known := c.strangers[key]
	if known && before == now {
		return
	}
	c.dropStranger(key)
	if now.job != (JobID{}) {
		c.strangers[key] = now
		c.enlist(c.jobNamed(now.job), now.scheduler, +1)
	}
}

func (c *Cluster) dropStranger(key types.NamespacedName) {
	s, known := c.strangers[key]
	if !known {
		return
	}
	delete(c.strangers, key)
	j := c.jobs[s.job]
	c.enlist(j, s.scheduler, -1)
	c.dropIfEmpty(j)
}

// dropIfEmpty forgets a job that has neither a PodGroup nor pods.
func (c *Cluster) dropIfEmpty(j *Job) {
	if j.Group == nil && len(j.members) == 0 {
		delete(c.jobs, j.ID)
		c.forgotten.Jobs = append(c.forgotten.Jobs, j)
	}
}
