package cache

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"k8s.io/apimachinery/pkg/types"
)

// foreignPod is a pod of another scheduler that has no node yet and names a PodGroup. It is no task, because it is not
// scheduled here and uses no resources. It may decide the scheduler of the PodGroup.
type foreignPod struct {
	uid       types.UID
	job       cluster.JobID
	scheduler string
}

// owners works out the schedulers of jobs.
type owners struct {
	*base
	foreignPods map[types.NamespacedName]foreignPod
	questioned  []*cluster.Job // jobs whose scheduler may have changed
}

func newOwners(b *base) owners {
	return owners{base: b, foreignPods: map[types.NamespacedName]foreignPod{}}
}

// enlist counts a pod of a job by its scheduler, or with -1 removes it.
func (k *owners) enlist(j *cluster.Job, scheduler string, sign int) {
	i, found := slices.BinarySearchFunc(j.Internal.Schedulers, scheduler, func(m cluster.SchedulerPods, name string) int { return cmp.Compare(m.Scheduler, name) })
	if !found {
		j.Internal.Schedulers = slices.Insert(j.Internal.Schedulers, i, cluster.SchedulerPods{Scheduler: scheduler})
	}
	if j.Internal.Schedulers[i].Pods += sign; j.Internal.Schedulers[i].Pods == 0 {
		j.Internal.Schedulers = slices.Delete(j.Internal.Schedulers, i, i+1)
		found = false
	}
	if !found {
		k.question(j)
	}
}

// followPhase reads the phase of a job of another scheduler. This scheduler decides the phases of its own jobs.
func (k *owners) followPhase(j *cluster.Job) {
	if j.IsForeign {
		k.SetPhase(j, j.Group.Status.Phase)
	}
}

// reenlist counts a task for another scheduler if its pod has changed the name. The API server does not allow that, but
// a replay in the simulator may contain it.
func (k *owners) reenlist(t *cluster.Task) {
	if name := t.Pod.Spec.SchedulerName; name != t.Internal.Scheduler {
		k.enlist(t.Job, name, +1)
		k.enlist(t.Job, t.Internal.Scheduler, -1)
		t.Internal.Scheduler = name
	}
}

// question makes the next Settle work out the scheduler of a job.
func (k *owners) question(j *cluster.Job) { k.questioned = append(k.questioned, j) }

// settle works out the schedulers of the questioned jobs.
func (k *owners) settle() {
	if len(k.questioned) == 0 {
		return
	}
	questioned := k.questioned
	k.questioned = nil
	slices.SortFunc(questioned, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	for _, j := range questioned {
		isForeign := j.Group != nil && !slices.Contains(k.options.SchedulerNames, j.Scheduler())
		if k.Job(j.ID) == j && isForeign != j.IsForeign {
			k.handOver(j, isForeign)
		}
	}
}

// handOver notes that a job now belongs to another scheduler, or no longer does. Earlier decisions about it no longer
// count, and the status of its PodGroup does.
func (k *owners) handOver(j *cluster.Job, isForeign bool) {
	if j.Plan != nil {
		k.Plans().Cancel(j.Plan, "the job belongs to scheduler "+j.Scheduler())
	}
	j.IsForeign = isForeign
	k.forget(j)
	if j.Group != nil {
		k.SetPhase(j, j.Group.Status.Phase)
	}
	k.writer.Jobs.Renew(j)
	// Whether its pods may be evicted has changed.
	k.Note(wake.VictimsChanged)
	k.writer.Jobs.List(j)
}

// setForeign applies a pod of another scheduler without a node.
func (k *owners) setForeign(key types.NamespacedName, pod *cluster.Pod) {
	now := foreignPod{uid: pod.UID, job: k.groupOf(pod), scheduler: pod.Spec.SchedulerName}
	before, known := k.foreignPods[key]
	if known && before == now {
		return
	}
	k.dropForeign(key)
	if now.job != (cluster.JobID{}) {
		k.foreignPods[key] = now
		k.enlist(k.writer.Jobs.Named(now.job), now.scheduler, +1)
	}
}

func (k *owners) dropForeign(key types.NamespacedName) {
	s, known := k.foreignPods[key]
	if !known {
		return
	}
	delete(k.foreignPods, key)
	j := k.Job(s.job)
	k.enlist(j, s.scheduler, -1)
	k.dropIfEmpty(j)
}

// dropIfEmpty drops a job that has neither a PodGroup nor pods or stand-ins, and that no pods of Workloads name.
func (k *owners) dropIfEmpty(j *cluster.Job) {
	if j.Group == nil && len(j.Internal.Schedulers) == 0 && len(j.Internal.Tasks) == 0 && j.Elsewhere == 0 {
		k.writer.Jobs.Drop(j)
		k.forgotten.Jobs = append(k.forgotten.Jobs, j)
	}
}
