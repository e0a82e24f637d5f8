package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/verdict"
)

// Podset is a number of equal pods of a job, some of which may not exist yet. A stand-in is a task for one of these: it
// is placed, promised a node and evicted with its gang like a pod, and nothing is written to the API for it. Once it is
// placed it holds its node, with the status [Awaited], until a pod of the podset takes its place.
type Podset struct {
	Name     string // the role of its pods
	Count    int    // how many of them start together
	Template *Pod   // the form that each of them is expected to have
}

// Expected is what is known of the pods of a job before they exist (rule G13).
type Expected struct {
	Podsets []Podset
	// Timeout is how long the job waits for nodes, and then for its pods. IsHard says that its waiting pods fail when
	// that is over. Otherwise they are scheduled without a gang.
	Timeout time.Duration
	IsHard  bool

	// Refusal says why the ResourceQuotas of the namespace do not allow its pods, nil if they do. Then nothing stands
	// in for them.
	Refusal *verdict.Verdict

	// Since is when the gang had all its nodes, zero before. From then on no more stand-ins are made.
	Since time.Time
	// IsOver says that the job has waited too long and is no gang any more.
	IsOver bool
	// FailedBy is when the job has waited too long, so that all pods that waited then fail; zero if there are none.
	FailedBy time.Time
}

// NewStandIn returns a waiting stand-in for a pod of a podset, which counts nowhere yet. Its name can be that of no
// pod, and is the same whenever it is made.
func NewStandIn(j *Job, of *Podset, index int) *Task {
	pod := *of.Template
	pod.Namespace, pod.Name = j.ID.Namespace, j.ID.Text()+"/"+of.Name+"/"+strconv.Itoa(index)
	pod.UID = types.UID("stand-in " + string(j.UID()) + "/" + of.Name + "/" + strconv.Itoa(index))
	if j.Group != nil {
		pod.CreationTimestamp = j.Group.CreationTimestamp
	}
	pod.NameClaims(func(claim string) string { return pod.Name + "/" + claim })
	t := &Task{IsStandIn: true, Job: j, Status: Pending, Internal: TaskInternals{InJob: -1}}
	t.Read(&pod)
	t.Role, t.Index = of.Name, index
	return t
}

// StandIns returns the stand-ins of a job in a status, by role and index.
func (j *Job) StandIns(status Status) []*Task {
	var standIns []*Task
	for _, t := range j.Internal.Tasks {
		if t.IsStandIn && t.Status == status {
			standIns = append(standIns, t)
		}
	}
	slices.SortFunc(standIns, func(a, b *Task) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index)) })
	return standIns
}

// IsFailing reports whether the job has waited too long for its gang, and some of its pods have not failed yet.
func (j *Job) IsFailing() bool {
	return j.Expected != nil && !j.Expected.FailedBy.IsZero() && slices.ContainsFunc(j.Internal.Tasks, (*Task).IsFailing)
}

// IsFailing reports whether a pod waits that has to fail, because its job has waited too long for its gang.
func (t *Task) IsFailing() bool {
	if t.IsStandIn || t.Status != Pending && t.Status != Gated || t.Job == nil || t.Job.Expected == nil {
		return false
	}
	by := t.Job.Expected.FailedBy
	return !by.IsZero() && !t.Created().After(by)
}

// JoinJob adds a stand-in to the list of its job and to its subgroup. Only package model calls it.
func (t *Task) JoinJob() {
	j := t.Job
	t.Internal.InJob = len(j.Internal.Tasks)
	j.Internal.Tasks = append(j.Internal.Tasks, t)
	t.Subgroup = j.Assign(t.Pod.Labels)
}

// LeaveJob takes a task out of the list of its job and out of its subgroup. Only package model calls it.
func (t *Task) LeaveJob() {
	j := t.Job
	last := j.Internal.Tasks[len(j.Internal.Tasks)-1]
	j.Internal.Tasks[t.Internal.InJob], last.Internal.InJob = last, t.Internal.InJob
	j.Internal.Tasks = j.Internal.Tasks[:len(j.Internal.Tasks)-1]
	j.Unassign(t.Subgroup)
	t.Subgroup = nil
}
