package statuses

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// memory is what was decided to be written last of each job, queue and pod. The API server may not show it yet. It has an
// entry of none that is gone from the model.
type memory struct {
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

func newMemory() memory {
	return memory{jobs: map[*cluster.Job]*jobStatus{}, queues: map[*cluster.Queue]corev1.ResourceList{}, pods: map[*cluster.Task]podStatus{}}
}

// forget drops what the model has forgotten. How long a job has waited for its pods has to do with its name alone: another
// PodGroup changes nothing of it.
func (m *memory) forget(c *cluster.Cluster) {
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
func (m *memory) of(j *cluster.Job) *jobStatus {
	s := m.jobs[j]
	if s == nil {
		s = &jobStatus{}
		m.jobs[j] = s
	}
	return s
}

// group is the status that the PodGroup of a job has, or will have.
func (m *memory) group(j *cluster.Job) *schedulingv1beta1.PodGroupStatus {
	if s := m.jobs[j]; s != nil && s.group != nil {
		return s.group
	}
	return &j.Group.Status
}

// setGroup notes what was decided of a PodGroup.
func (m *memory) setGroup(j *cluster.Job, status *schedulingv1beta1.PodGroupStatus) {
	m.of(j).group, j.IsReported = status, true
}

// arrival is since when a job has had its pods, zero if it lacks none.
func (m *memory) arrival(j *cluster.Job) arrival {
	if s := m.jobs[j]; s != nil {
		return s.arrival
	}
	return arrival{}
}

// place is the HyperNode that the PodGroup of a job names, or will name.
func (m *memory) place(j *cluster.Job) string {
	if s := m.jobs[j]; s != nil && s.place != nil {
		return *s.place
	}
	return j.Group.Annotations[schedulingv1beta1.JobAllocatedHyperNodeKey]
}

// allocated is what a queue says that it holds, or will say.
func (m *memory) allocated(q *cluster.Queue) corev1.ResourceList {
	if last := m.queues[q]; last != nil {
		return last
	}
	return q.Object.Status.Allocated
}

// tell notes that a pod is told something.
func (m *memory) tell(t *cluster.Task, message string) {
	s := m.pods[t]
	s.message = message
	m.pods[t] = s
}

// open notes that the gate of a pod is opened.
func (m *memory) open(t *cluster.Task) {
	s := m.pods[t]
	s.isOpened = true
	m.pods[t] = s
}

// Stale says of which objects it is remembered what was decided though the model holds them no more. It is empty after [Reporter.Forget],
// and for tests.
func (r *Reporter) Stale(c *cluster.Cluster) (stale []string) {
	m := &r.memory
	for j := range m.jobs {
		if c.Job(j.ID) != j {
			stale = append(stale, "job "+j.ID.String())
		}
	}
	for q := range m.queues {
		if c.Queue(q.Name) != q {
			stale = append(stale, "queue "+q.Name)
		}
	}
	for t := range m.pods {
		if c.Task(t.Key()) != t {
			stale = append(stale, "pod "+t.Key().String())
		}
	}
	slices.Sort(stale)
	return stale
}
