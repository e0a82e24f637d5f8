package eviction

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// neverFits says why a job that waits for admission could not start if no pod of another were there, "" if it may be able to.
// It is asked before evictions count in its favour: what it was admitted with would be kept from others for as long as it waits.
func (f *Search) neverFits(c *admissionRequest) string {
	s, j := f.session, c.job
	names := s.Cluster.Resources
	attainable := s.Cluster.Attainable(j.AwaitsPods())
	for i, need := range c.lacks {
		d := resources.Dim(i)
		if have := attainable.At(d); need > have {
			return fmt.Sprintf("evictions would not help: all nodes together have %s %s", names.Name(d), resources.Format(names.Name(d), have))
		}
	}
	if tasks := j.Pending(cluster.CompareTasks); len(tasks) > 0 {
		return f.neverFitAll(j, tasks)
	}
	if !isBatchJob(j) || j.MinMember == 0 || len(j.Tasks()) > 0 {
		return ""
	}
	// The controller adds up the pods that must start together: one of them requests no less than their average.
	for i, all := range j.MinResources {
		d := resources.Dim(i)
		if one := (all + int64(j.MinMember) - 1) / int64(j.MinMember); one > f.largestNode().At(d) {
			return fmt.Sprintf("evictions would not help: no node has as much %s as one of the %d pods requests at the least, %s",
				names.Name(d), j.MinMember, resources.Format(names.Name(d), one))
		}
	}
	return ""
}

// neverFitAll says which of the tasks that wait no nodes could hold.
func (f *Search) neverFitAll(j *cluster.Job, tasks []*cluster.Task) string {
	a := &attempt{search: f, taker: j}
	lacks := min(max(j.LacksPromises(), 1), len(tasks))
	if a.couldHold(tasks, lacks) {
		return ""
	}
	for _, t := range cluster.OnePerClass(tasks) {
		if a.places(t, 1) == 0 {
			return fmt.Sprintf("evictions would not help: no node could hold pod %s if it were empty", t.Pod.Name)
		}
	}
	return fmt.Sprintf("evictions would not help: empty nodes could not hold %d of its pods at once", lacks)
}

// isBatchJob reports whether the PodGroup was made for a Job of ours.
func isBatchJob(j *cluster.Job) bool {
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == batchv1alpha1.SchemeGroupVersion.String()
}

// largestNode is the most that any node has of each resource.
func (f *Search) largestNode() resources.Vector {
	if f.largest == nil {
		f.largest = resources.Vector{}
		for _, n := range f.session.Cluster.Nodes() {
			if n.Ready() && !n.Object.Spec.Unschedulable {
				f.largest.AtLeast(n.Allocatable)
			}
		}
	}
	return f.largest
}

// holding is how many pods of a class empty nodes could hold.
type holding struct {
	pods  int
	isAll bool // there is no more room, not only no more than was asked about
}

// couldHold reports whether the nodes of the right kind could hold what the job needs at the least if nothing else were
// there. It is one quick pass where the search would take everything away in vain.
func (a *attempt) couldHold(tasks []*cluster.Task, lacks int) bool {
	room := 0
	for _, t := range cluster.OnePerClass(tasks) {
		alike := 0
		for _, other := range tasks {
			if other.Class == t.Class {
				alike++
			}
		}
		room += min(a.places(t, min(alike, lacks)), alike)
	}
	return room >= lacks
}

// places is how many tasks like one the nodes could hold if nothing else were there, at most so many.
func (a *attempt) places(t *cluster.Task, most int) int {
	held, s := a.search.held, a.search.session
	if known, ok := held[t.Class]; ok && s.Domain() == nil && (known.isAll || known.pods >= most) {
		return min(known.pods, most)
	}
	places := holding{isAll: true}
	for _, n := range s.Cluster.Nodes() {
		if !s.Outlook.CanOpen(t, n) {
			continue
		}
		fit := most
		for i, amount := range t.Request() {
			if amount > 0 {
				fit = min(fit, int(n.Allocatable.At(resources.Dim(i))/amount))
			}
		}
		if places.pods += fit; places.pods >= most {
			places.isAll = false
			break
		}
	}
	if s.Domain() == nil {
		held[t.Class] = places
	}
	return min(places.pods, most)
}
