package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// JobID is the namespace and name of a job's PodGroup.
type JobID = types.NamespacedName

// Usage is what a job, a queue or a subtree of queues has and wants.
type Usage = quota.Usage

// The parts of a gang are described in package gang.
type (
	RoleMinimum    = gang.RoleMinimum
	Subgroup       = gang.Subgroup
	SubgroupPolicy = gang.SubgroupPolicy
	Proximity      = gang.Proximity
	Leaving        = gang.Leaving
)

// Job is a gang: the tasks of one PodGroup.
type Job struct {
	// Gang counts its tasks, and says how many must start together.
	gang.Gang
	ID    JobID
	Group *schedulingv1beta1.PodGroup // as last seen; nil while only its pods are known
	// IsForeign is set if the job belongs to another scheduler, as of the last time that events were settled. What it holds and was promised
	// counts for its queue; nothing is decided about it, its pods are no victims, and nothing is written to its PodGroup.
	IsForeign bool

	Queue        *Queue // nil if the queue does not exist
	QueueName    string
	MinResources resources.Vector
	// Priority is that of the PodGroup's PriorityClass, as far as its pods carry it where a ResourceQuota bounds how many may.
	Priority int32
	// NeverPreempts is set if the job's PriorityClass says that it preempts none.
	NeverPreempts bool
	Phase         schedulingv1beta1.PodGroupPhase

	Usage Usage
	// Gated is what its tasks request that gates hold: it is no part of Usage.
	Gated resources.Vector

	// Verdict is why the job waits, nil if nothing stands in its way.
	Verdict *verdict.Verdict
	// Refusals is how many sessions have looked at the job and left it waiting.
	Refusals uint64
	// IsReported is set once this scheduler has decided a status of the PodGroup. What the PodGroup shows before was decided by
	// another process, or by another scheduler.
	IsReported bool
	// NotBefore is the end of a back-off after refused bindings, zero if there is none.
	NotBefore time.Time
	// Admission is how an admitted job comes by its pods; BarredUntil is the end of a back-off after it brought none, zero if
	// there was none.
	Admission   Admission
	BarredUntil time.Time

	// Plan is how room is being made for the job, nil if none is.
	Plan *Plan

	// Postponed are the scopes in which the cycle before had no time to look for room for the job.
	Postponed decision.Scopes

	// Internal is for the packages below this one.
	Internal JobInternals
}

// JobInternals are what package model, and package cache above it, keep of a job for themselves.
type JobInternals struct {
	Tasks     []*Task
	Version   uint64             // grows with every change of the job or its pods from outside
	Judged    wake.Stamp         // what the world looked like when Verdict was given
	LookedAt  time.Time          // when Hopeful said yes last
	Postponed decision.Scopes    // the scopes in which this cycle has no time
	Failures  int                // bindings of its pods that were refused in a row
	Belonging podclass.Belonging // of its tasks, their roles left out

	Schedulers []SchedulerPods // how many pods of it, placed or not, name a scheduler; sorted by name
	Priorities priority.Counts // how many have a priority

	IsWaiting, IsTouched bool // membership in the model's lists
}

// SchedulerPods is how many pods name a scheduler.
type SchedulerPods struct {
	Scheduler string
	Pods      int
}

// gatedOfMinimum is what of a job's minimum gates hold. If it has more pods than its minimum needs, the gated ones are those beyond.
func (j *Job) gatedOfMinimum(d resources.Dim) int64 {
	gated := j.Gated.At(d)
	if gated == 0 {
		return 0
	}
	beyond := max(j.Usage.Request.At(d)+gated-j.MinResources.At(d), 0)
	return max(gated-beyond, 0)
}

// LacksResource is what a job lacks of its minResources: what it neither holds nor has in pods that gates hold. That is what it
// claims at admission, and at first once it was admitted.
func (j *Job) LacksResource(d resources.Dim) int64 {
	return max(j.MinResources.At(d)-j.Usage.Allocated.At(d)-j.gatedOfMinimum(d), 0)
}

// Claims is what an admitted job is kept beyond what it holds: what it lacks of its minResources, or what its pods still ask for
// if it was kept more than that for long enough.
func (j *Job) Claims(d resources.Dim) int64 {
	lacks := j.LacksResource(d)
	if lacks == 0 || !j.Admission.Clipped || j.AwaitsPods() {
		return lacks
	}
	return min(lacks, j.unplaced(d))
}

// unplaced is what its pods ask for beyond what it holds.
func (j *Job) unplaced(d resources.Dim) int64 {
	return max(j.Usage.Request.At(d)-j.Usage.Allocated.At(d), 0)
}

// Tasks returns the job's tasks, in no particular order. The caller must not change it.
func (j *Job) Tasks() []*Task { return j.Internal.Tasks }

// QuotaNode returns the node of the quota tree that the job's use is booked on, nil if its queue does not exist.
func (j *Job) QuotaNode() *quota.Node {
	if j.Queue == nil {
		return nil
	}
	return &j.Queue.Node
}

// Pending returns the job's tasks that wait for a node, in an order.
func (j *Job) Pending(compare func(a, b *Task) int) []*Task {
	var tasks []*Task
	for _, t := range j.Internal.Tasks {
		if t.Status == Pending {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, compare)
	return tasks
}

// Created is when the PodGroup was created.
func (j *Job) Created() time.Time {
	if j.Group == nil {
		return time.Time{}
	}
	return j.Group.CreationTimestamp.Time
}

// UID is the PodGroup's UID.
func (j *Job) UID() types.UID {
	if j.Group == nil {
		return ""
	}
	return j.Group.UID
}

// Name is what a person calls the job: its namespace and name or, where a controller made the PodGroup for an object, that
// object's.
func (j *Job) Name() string {
	name := j.ID.Name
	if j.Group != nil {
		if owner := metav1.GetControllerOfNoCopy(j.Group); owner != nil && (name == owner.Name+"-"+string(owner.UID) ||
			strings.HasPrefix(name, schedulingv1beta1.PodGroupNamePrefix)) {
			name = owner.Name
		}
	}
	return j.ID.Namespace + "/" + name
}

// IsLone reports whether the PodGroup was made for one pod alone, with no workload behind it (rule A3).
func (j *Job) IsLone() bool {
	if j.Group == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && owner.Kind == "Pod" && owner.APIVersion == "v1"
}

// Over reports whether the job is done: as many of its tasks as must start together have finished, and no others are left. A
// job that is done stays so when its pods are cleaned away.
func (j *Job) Over() bool {
	finished := j.Count(Succeeded) + j.Count(Failed)
	return finished == len(j.Internal.Tasks) && (finished >= max(j.MinMember, 1) || j.Phase == schedulingv1beta1.PodGroupCompleted)
}

// CompareJobs is the order of jobs where no plugin has a say: the older first, then by UID and name.
func CompareJobs(a, b *Job) int {
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	if c := cmp.Compare(a.UID(), b.UID()); c != 0 {
		return c
	}
	return CompareNames(a.ID, b.ID)
}

// CompareNames orders by namespace, then name.
func CompareNames(a, b types.NamespacedName) int {
	if c := cmp.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// ofNodes leaves out of minResources what only quotas count: nodes, and so queues, know "cpu" and neither "limits.cpu" nor
// "count/pods".
func ofNodes(list corev1.ResourceList) corev1.ResourceList {
	isOfQuotas := func(name corev1.ResourceName, _ resource.Quantity) bool {
		return slices.ContainsFunc([]string{corev1.DefaultResourceRequestsPrefix, "limits.", "count/"},
			func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
	}
	kept := maps.Clone(list)
	maps.DeleteFunc(kept, isOfQuotas)
	return kept
}

// Read takes over what the PodGroup says of the job itself, and puts its tasks into their subgroups.
func (j *Job) Read(index *resources.Index, group *schedulingv1beta1.PodGroup) {
	j.Group = group
	j.Gang.Read(group)
	j.MinResources = nil
	if group.Spec.MinResources != nil {
		j.MinResources = index.Asked(ofNodes(*group.Spec.MinResources))
	}
	for _, t := range j.Internal.Tasks {
		if t.Subgroup = j.Assign(t.Pod.Labels); t.Subgroup != nil {
			t.Subgroup.Count(t.Status, +1)
		}
	}
}

// Regroup puts a task into the subgroup of its labels.
func (j *Job) Regroup(t *Task) {
	j.Unassign(t.Subgroup)
	t.Subgroup = j.Assign(t.Pod.Labels)
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
	for _, m := range j.Internal.Schedulers {
		if m.Scheduler != corev1.DefaultSchedulerName {
			return m.Scheduler
		}
	}
	return schedulingv1beta1.DefaultSchedulerName
}

// Forgive ends the back-off of a job and forgets its failures.
func (j *Job) Forgive() {
	j.NotBefore, j.Internal.Failures, j.BarredUntil = time.Time{}, 0, time.Time{}
}

// Nodes returns the nodes that tasks of the job hold, or are promised, one for each; of a subgroup only, if it is not nil.
func (j *Job) Nodes(g *Subgroup) []*Node {
	var nodes []*Node
	for _, t := range j.Internal.Tasks {
		if t.Node != nil && t.Status.Counts() && (g == nil || t.Subgroup == g) {
			nodes = append(nodes, t.Node)
		}
	}
	return nodes
}
