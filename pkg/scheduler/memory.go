package scheduler

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// statusMemory is what was decided to be written last of each job, queue and pod. The API server may not show it yet. It has an
// entry of none that is gone from the model.
type statusMemory struct {
	jobs   map[*cluster.Job]*jobStatus
	queues map[*cluster.Queue]corev1.ResourceList // allocated
	pods   map[*cluster.Task]podStatus
}

// jobStatus is what was decided last of a job.
type jobStatus struct {
	group   *schedulingv1beta1.PodGroupStatus // nil before the first
	place   *string                           // the HyperNode that holds its pods, nil before the first
	arrival arrival
}

// arrival is since when a job that lacks pods has had so many, zero if it lacks none.
type arrival struct {
	pods  int
	since time.Time
}

// podStatus is what was decided last of a pod.
type podStatus struct {
	message  string // of its condition, "" before the first
	isOpened bool   // its gate of queue admission
}

func newStatusMemory() statusMemory {
	return statusMemory{jobs: map[*cluster.Job]*jobStatus{}, queues: map[*cluster.Queue]corev1.ResourceList{}, pods: map[*cluster.Task]podStatus{}}
}

// forget drops what the model has forgotten. How long a job has waited for its pods has to do with its name alone: another
// PodGroup changes nothing of it.
func (m *statusMemory) forget(c *cluster.Cluster) {
	forgotten := c.TakeForgotten()
	for _, j := range forgotten.Jobs {
		s := m.jobs[j]
		switch {
		case s == nil:
		case s.arrival == arrival{} || c.Job(j.ID) != j:
			delete(m.jobs, j)
		default:
			s.group, s.place = nil, nil
		}
	}
	for _, q := range forgotten.Queues {
		delete(m.queues, q)
	}
	for _, t := range forgotten.Tasks {
		delete(m.pods, t)
	}
}

// of returns the entry of a job, which is made if there is none.
func (m *statusMemory) of(j *cluster.Job) *jobStatus {
	s := m.jobs[j]
	if s == nil {
		s = &jobStatus{}
		m.jobs[j] = s
	}
	return s
}

// group is the status that the PodGroup of a job has, or will have.
func (m *statusMemory) group(j *cluster.Job) *schedulingv1beta1.PodGroupStatus {
	if s := m.jobs[j]; s != nil && s.group != nil {
		return s.group
	}
	return &j.Group.Status
}

// setGroup notes what was decided of a PodGroup.
func (m *statusMemory) setGroup(j *cluster.Job, status *schedulingv1beta1.PodGroupStatus) {
	m.of(j).group, j.IsReported = status, true
}

// arrival is since when a job has had its pods, zero if it lacks none.
func (m *statusMemory) arrival(j *cluster.Job) arrival {
	if s := m.jobs[j]; s != nil {
		return s.arrival
	}
	return arrival{}
}

// place is the HyperNode that the PodGroup of a job names, or will name.
func (m *statusMemory) place(j *cluster.Job) string {
	if s := m.jobs[j]; s != nil && s.place != nil {
		return *s.place
	}
	return j.Group.Annotations[schedulingv1beta1.JobAllocatedHyperNodeKey]
}

// allocated is what a queue says that it holds, or will say.
func (m *statusMemory) allocated(q *cluster.Queue) corev1.ResourceList {
	if last := m.queues[q]; last != nil {
		return last
	}
	return q.Object.Status.Allocated
}

// tell notes that a pod is told something.
func (m *statusMemory) tell(t *cluster.Task, message string) {
	s := m.pods[t]
	s.message = message
	m.pods[t] = s
}

// open notes that the gate of a pod is opened.
func (m *statusMemory) open(t *cluster.Task) {
	s := m.pods[t]
	s.isOpened = true
	m.pods[t] = s
}
