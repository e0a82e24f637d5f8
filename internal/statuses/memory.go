package statuses

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
)

// memory is the last decision about each job, queue and pod, which the API server may not show yet. It has no entries
// for objects that the model has forgotten.
type memory struct {
	jobs   map[*cluster.Job]*jobStatus
	queues map[*cluster.Queue]corev1.ResourceList // allocated
	pods   map[*cluster.Task]podStatus
	// unreadable are the annotations of queues of which an Event has told that they cannot be read.
	unreadable map[*cluster.Queue][]properties.Problem
	// subtrees are the names of subtrees of guaranteed shares of which an Event has told that there is none.
	subtrees map[string]bool
}

// jobStatus is the last decision about a job.
type jobStatus struct {
	group   *schedulingv1beta1.PodGroupStatus // nil before the first
	place   *string                           // the HyperNode that holds its pods, nil before the first
	arrival arrival
	// evictions are those that this process has decided, the newest first.
	evictions []evicted

	queued   queuedState
	damped   damper    // of the conditions of the PodGroup
	pods     damper    // of those of its pods
	revisit  time.Time // when it is looked at again for these, zero if it is not
	standIns *string   // the record of nodes that are held for pods to come, nil before the first
}

// arrival is since when a job that lacks pods has had its number of pods, zero if it lacks none.
type arrival struct {
	pods  int
	since time.Time
}

// podStatus is the last decision about a pod.
type podStatus struct {
	reason   string // of its condition, "" before the first
	message  string // of its condition, "" before the first
	isOpened bool   // its gate of queue admission
	isFailed bool   // its phase is Failed, because its gang has waited too long
}

func newMemory() memory {
	return memory{jobs: map[*cluster.Job]*jobStatus{}, queues: map[*cluster.Queue]corev1.ResourceList{}, pods: map[*cluster.Task]podStatus{},
		unreadable: map[*cluster.Queue][]properties.Problem{}, subtrees: map[string]bool{}}
}

// forget drops the objects that the model has forgotten. How long a job has waited for its pods depends only on its
// name, so a new PodGroup does not change it. It reports whether there were such jobs.
func (m *memory) forget(c *cache.Cache, d *decision.Decisions) bool {
	forgotten := c.TakeForgotten()
	for _, j := range forgotten.Jobs {
		s := m.jobs[j]
		if s != nil && j.Workload == nil {
			d.GoneGroups = append(d.GoneGroups, j.ID.Key())
		}
		switch {
		case s == nil:
		case s.arrival == arrival{} || c.Job(j.ID) != j:
			delete(m.jobs, j)
		default:
			s.group, s.place, s.standIns, s.evictions, s.queued = nil, nil, nil, nil, queuedState{}
			s.damped, s.pods, s.revisit = damper{}, damper{}, time.Time{}
		}
	}
	for _, q := range forgotten.Queues {
		delete(m.queues, q)
		delete(m.unreadable, q)
	}
	for _, t := range forgotten.Tasks {
		if _, isDecided := m.pods[t]; isDecided {
			d.GonePods = append(d.GonePods, t.Key())
		}
		delete(m.pods, t)
	}
	for _, names := range []*[]types.NamespacedName{&d.GoneGroups, &d.GonePods} {
		slices.SortFunc(*names, cluster.CompareNames)
		*names = slices.Compact(*names)
	}
	return len(forgotten.Jobs) > 0
}

// of returns the entry of a job, and makes it if there is none.
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

// setGroup stores the decision about a PodGroup.
func (m *memory) setGroup(j *cluster.Job, status *schedulingv1beta1.PodGroupStatus) {
	m.of(j).group, j.IsReported = status, true
}

// arrival is since when a job has had its number of pods, zero if it lacks none.
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

// allocated is the usage in the status of a queue, or that it will have.
func (m *memory) allocated(q *cluster.Queue) corev1.ResourceList {
	if last := m.queues[q]; last != nil {
		return last
	}
	return q.Object.Status.Allocated
}

// tell stores reason and message of a pod's condition.
func (m *memory) tell(t *cluster.Task, reason, message string) {
	s := m.pods[t]
	s.reason, s.message = reason, message
	m.pods[t] = s
}

// open stores that the gate of a pod is removed.
func (m *memory) open(t *cluster.Task) {
	s := m.pods[t]
	s.isOpened = true
	m.pods[t] = s
}

// Stale lists the objects with entries that the model has forgotten. It is for tests, and empty after
// [Reporter.Forget].
func (r *Reporter) Stale(c *model.Cluster) (stale []string) {
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
	for q := range m.unreadable {
		if c.Queue(q.Name) != q {
			stale = append(stale, "annotations of queue "+q.Name)
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
