package cache

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// stranger is a pod of another scheduler that has no node yet and names a PodGroup. It is no task: nothing is to be done for
// it and it takes no room. It says whose the PodGroup is.
type stranger struct {
	uid       types.UID
	job       cluster.JobID
	scheduler string
}

// owners finds out whose the jobs are.
type owners struct {
	*base
	strangers  map[types.NamespacedName]stranger
	questioned []*cluster.Job // whose owner may have changed
}

func newOwners(b *base) owners {
	return owners{base: b, strangers: map[types.NamespacedName]stranger{}}
}

// enlist counts a pod of a job that names a scheduler, or counts it no more.
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

// followPhase takes over the phase of a job that belongs to another scheduler. Of others the phase is decided here, and what
// the API shows is an echo.
func (k *owners) followPhase(j *cluster.Job) {
	if j.IsForeign {
		k.SetPhase(j, j.Group.Status.Phase)
	}
}

// reenlist counts a task for another scheduler if its pod names another. The API server lets no pod do that; a simulation that replays
// what it was told may.
func (k *owners) reenlist(t *cluster.Task) {
	if name := t.Pod.Spec.SchedulerName; name != t.Internal.Scheduler {
		k.enlist(t.Job, name, +1)
		k.enlist(t.Job, t.Internal.Scheduler, -1)
		t.Internal.Scheduler = name
	}
}

// question has the next Settle find out whose a job is.
func (k *owners) question(j *cluster.Job) { k.questioned = append(k.questioned, j) }

// settle finds out whose the jobs are of which it may have changed.
func (k *owners) settle() {
	if len(k.questioned) == 0 {
		return
	}
	questioned := k.questioned
	k.questioned = nil
	slices.SortFunc(questioned, func(a, b *cluster.Job) int { return cluster.CompareNames(a.ID, b.ID) })
	for _, j := range questioned {
		isForeign := j.Group != nil && !slices.Contains(k.options.SchedulerNames, j.Scheduler())
		if k.Job(j.ID) == j && isForeign != j.IsForeign {
			k.handOver(j, isForeign)
		}
	}
}

// handOver notes that a job belongs to another scheduler from now on, or does not any more. Nothing that was decided of it
// before counts then: what its PodGroup shows does.
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
	// Its pods may leave for others now, or no more.
	k.Note(wake.VictimsChanged)
	k.writer.Jobs.List(j)
}

// setStranger takes in a pod of another scheduler that has no node.
func (k *owners) setStranger(key types.NamespacedName, pod *corev1.Pod) {
	now := stranger{uid: pod.UID, job: groupOf(pod), scheduler: pod.Spec.SchedulerName}
	before, known := k.strangers[key]
	if known && before == now {
		return
	}
	k.dropStranger(key)
	if now.job != (cluster.JobID{}) {
		k.strangers[key] = now
		k.enlist(k.writer.Jobs.Named(now.job), now.scheduler, +1)
	}
}

func (k *owners) dropStranger(key types.NamespacedName) {
	s, known := k.strangers[key]
	if !known {
		return
	}
	delete(k.strangers, key)
	j := k.Job(s.job)
	k.enlist(j, s.scheduler, -1)
	k.dropIfEmpty(j)
}

// dropIfEmpty forgets a job that has neither a PodGroup nor pods.
func (k *owners) dropIfEmpty(j *cluster.Job) {
	if j.Group == nil && len(j.Internal.Schedulers) == 0 {
		k.writer.Jobs.Drop(j)
		k.forgotten.Jobs = append(k.forgotten.Jobs, j)
	}
}
