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

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// JobID names a job.
type JobID = decision.JobID

// Usage is what a job, a queue, or a queue with all below it holds and requests.
type Usage = quota.Usage

// The parts of a gang are described in package gang.
type (
	RoleMinimum = gang.RoleMinimum
	Subgroup    = gang.Subgroup
	Proximity   = gang.Proximity
	Leaving     = gang.Leaving
)

// Job is a gang: the tasks of one PodGroup.
type Job struct {
	// Gang counts the tasks, and says how many must start together.
	gang.Gang
	ID    JobID
	Group *schedulingv1beta1.PodGroup // as last seen; nil while only its pods are known
	mark  marking                     // of the PodGroup, see Task.Mark
	// Workload is what the job is, if that is a Workload and no PodGroup; nil otherwise. Such a job has no PodGroup and
	// no Volcano Queue of its own, so that no action but admit looks at it, and its pods are no victims for jobs with a
	// PodGroup.
	Workload *workload.Workload
	// IsForeign is set if the job belonged to another scheduler when the model was last settled. Its usage counts for
	// its queue. The scheduler makes no decisions about it, does not evict its pods, and does not write to its
	// PodGroup.
	IsForeign bool

	Queue     *Queue // nil if the queue does not exist
	QueueName string
	// Below is the queue in which what the job of a Workload holds counts, see [AccountOf], and BelowName its name.
	Below        *Queue
	BelowName    string
	MinResources resources.Vector
	// Priority is that of the PodGroup's PriorityClass. If the PodGroup names none, or a ResourceQuota limits the pods
	// of that class, it is the lowest priority of the job's pods.
	Priority int32
	// NeverPreempts is set if the job's PriorityClass has the preemptionPolicy Never.
	NeverPreempts bool
	Phase         schedulingv1beta1.PodGroupPhase

	Usage Usage
	// Gated is what its tasks with scheduling gates request, and Terminating what those request that are being deleted.
	// Neither is part of Usage.
	Gated, Terminating resources.Vector
	// IsEnding is set while its PodGroup or its namespace is being deleted, so that no pods are created for it any
	// more.
	IsEnding bool
	// Elsewhere is the number of pods that name its PodGroup and run for a Workload.
	Elsewhere int

	// Verdict is why the job waits, nil if it does not.
	Verdict *verdict.Verdict
	// Refusals is how many sessions have tried the job and left it waiting.
	Refusals uint64
	// IsReported is set once this process has decided a status of the PodGroup. An earlier status was decided by
	// another process, or by another scheduler.
	IsReported bool
	// NotBefore is the end of a back-off after failures, zero if there is none.
	NotBefore time.Time
	// EvictsFrom is the end of a pause in which no pods are evicted for the job, zero if there is none. It is placed on
	// free nodes meanwhile.
	EvictsFrom time.Time
	// Admission records when an admitted job got its pods. BarredUntil is the end of the back-off of a job whose pods
	// were not created, zero if there is none, and BarredFor how long the last one was.
	Admission   Admission
	BarredUntil time.Time
	BarredFor   time.Duration

	// Plan is the plan in force for the job, nil if there is none.
	Plan *Plan

	// Expected is what is known of pods that do not exist yet, nil for most jobs.
	Expected *Expected

	// Postponed are the scopes in which the last cycle had no time to search for the job.
	Postponed decision.Scopes

	// Internal is for the packages below this one.
	Internal JobInternals
}

// JobInternals are the fields that only the packages model and cache use.
type JobInternals struct {
	Tasks     []*Task
	InQueue   int                // position in the list of its queue
	Version   uint64             // grows with every change of the job or its pods from outside
	Judged    wake.Stamp         // the state of the model when Verdict was noted
	LookedAt  time.Time          // when ShouldRetry last returned true
	Postponed decision.Scopes    // the scopes in which this cycle has no time
	Failures  int                // number in a row of bindings refused and plans that failed
	Losses    int                // how often in a row room that victims had left was lost
	Restarts  int                // number in a row of plans within the job after which other pods of it were deleted
	Late      Lateness           // of its pods that have ended
	Belonging podclass.Belonging // of its tasks, without their roles

	Accounts map[string]int // number of its pods with a node by the queue that was charged for them
	Told     string         // the last Event about the queue that is charged

	Schedulers []SchedulerPods // number of its pods by scheduler, sorted by name
	Priorities priority.Counts // number of its pods by rank
	Settled    JobRank         // when the model was settled last

	IsWaiting, IsTouched bool // membership in the model's lists
	Backlog              BacklogPlace
	Room                 RoomWait         // if the verdict lists HelpRoom
	Refused              *verdict.Verdict // by nodes, when they were last asked, if the job waits until they have more room; it may be outdated
}

// JobRank is what the order of jobs goes by.
type JobRank struct {
	Priority      int32
	NeverPreempts bool
	IsKnown       bool // the job has a PodGroup
}

// RoomWait is room that a job waits for. It cannot start before nodes have room for so many pods of a class.
type RoomWait struct {
	Class   *Class
	Pods    int64
	Version uint64 // of the room when the job was refused, see [RoomCounter]
	Had     bool   // there was as much when the job was refused, which it did not get
}

// RoomCounter returns for how many pods of a class nodes have room, and a version that is another one if there is more.
type RoomCounter func(k *Class) (pods int64, version uint64)

// IsThere reports whether there may be enough room that was not there when the job was refused. If there is more, and
// not enough, it only counts from now on.
func (w *RoomWait) IsThere(count RoomCounter) bool {
	if count == nil || w.Class == nil || !w.Class.InUse() {
		return true
	}
	pods, version := count(w.Class)
	if version == w.Version {
		return false
	}
	if pods >= w.Pods {
		return true
	}
	w.Version, w.Had = version, false
	return false
}

// BacklogPlace is where a job is in the model's lists of waiting jobs.
type BacklogPlace struct {
	IsUnsettled, IsAttended, IsResting bool

	WaitingAt, RestingAt int // the index in these lists
	RestsFor             RestKey
}

// RestKey is what resting jobs wait for: kinds of help, with HelpRoom room for so many pods of a class, and with
// HelpStock what they lack.
type RestKey struct {
	Help  verdict.Help
	Queue *quota.Node // nil unless some help is counted by queue
	Class *Class
	Pods  int64
	Lacks verdict.Lacks
}

// SchedulerPods is the number of pods that name a scheduler.
type SchedulerPods struct {
	Scheduler string
	Pods      int
}

// Needs is what the job needs to start: its minResources, or what its pods request if it has none. The caller must not
// change it.
func (j *Job) Needs() resources.Vector {
	if j.MinResources != nil {
		return j.MinResources
	}
	return j.Usage.Request
}

// withheldOfMinimum is the part of a job's minResources that pods request which do not ask for room: those with
// scheduling gates, and those that are being deleted, unless a controller replaces them. If the job has more pods than
// its minimum needs, these are taken as the surplus.
func (j *Job) withheldOfMinimum(d resources.Dim) int64 {
	withheld := j.Gated.At(d)
	if terminating := j.Terminating.At(d); terminating > 0 && !j.IsReplenished() {
		withheld += terminating
	}
	if withheld == 0 {
		return 0
	}
	beyond := max(j.Usage.Request.At(d)+withheld-j.MinResources.At(d), 0)
	return max(withheld-beyond, 0)
}

// IsReplenished reports whether a controller is known to create pods of the job again: that of Volcano Jobs does, once
// the job is admitted.
func (j *Job) IsReplenished() bool {
	if j.Group == nil || j.IsEnding {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, batchv1alpha1.GroupName+"/")
}

// HasAllPods reports whether no more pods come for the job than there are: it is being deleted, or its pods run for a
// Workload.
func (j *Job) HasAllPods() bool { return j.IsEnding || j.Elsewhere > 0 }

// ExpectsPods reports whether quota is kept for pods of the job that do not exist. If all pods of a job are gone, as
// those of a cluster that was suspended, nothing is kept until the first is back, unless its controller is known to
// create others.
func (j *Job) ExpectsPods() bool {
	return !j.HasAllPods() && (!j.Admission.Emptied || len(j.Internal.Tasks) > 0 || j.IsReplenished())
}

// LacksResource is the part of a job's minResources that neither its placed tasks cover nor those that do not ask for
// room. The job claims it at admission, and at first after it.
func (j *Job) LacksResource(d resources.Dim) int64 {
	lacks := max(j.MinResources.At(d)-j.Usage.Allocated.At(d)-j.withheldOfMinimum(d), 0)
	if j.HasAllPods() {
		return min(lacks, j.unplaced(d))
	}
	return lacks
}

// Claims is the quota that is kept for an admitted job beyond what it holds. It is what the job lacks of its
// minResources. It is only what its pods still request if no others come, and after some time.
func (j *Job) Claims(d resources.Dim) int64 {
	lacks := j.LacksResource(d)
	if lacks == 0 || j.ExpectsPods() && (!j.Admission.Clipped || j.AwaitsPods()) {
		return lacks
	}
	return min(lacks, j.unplaced(d))
}

// unplaced is what its pods request beyond what it holds.
func (j *Job) unplaced(d resources.Dim) int64 {
	return max(j.Usage.Request.At(d)-j.Usage.Allocated.At(d), 0)
}

// Tasks returns the job's tasks, in no particular order. The caller must not change it.
func (j *Job) Tasks() []*Task { return j.Internal.Tasks }

// QuotaNode returns the node of the quota tree on which the job is booked, nil if its queue does not exist.
func (j *Job) QuotaNode() *quota.Node {
	if j == nil || j.Queue == nil {
		return nil
	}
	return &j.Queue.Node
}

// Pending returns the job's tasks that wait for a node, in an order.
func (j *Job) Pending(compare func(a, b *Task) int) []*Task {
	tasks := Waiting(j.Internal.Tasks)
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

// UID is that of the PodGroup or Workload.
func (j *Job) UID() types.UID {
	switch {
	case j.Workload != nil:
		return types.UID(j.Workload.UID)
	case j.Group == nil:
		return ""
	}
	return j.Group.UID
}

// IsOfWorkload reports whether the job is that of a Workload, also of one that is not known.
func (j *Job) IsOfWorkload() bool { return j.ID.Kind != decision.OfPodGroup }

// GroupID is the ID of the job of a PodGroup.
func GroupID(group types.NamespacedName) JobID {
	return JobID{Namespace: group.Namespace, Name: group.Name}
}

// WorkloadID is the ID of the job of a Workload.
func WorkloadID(namespace, name string) JobID {
	return JobID{Kind: decision.OfWorkload, Namespace: namespace, Name: name}
}

// Name is the name of the job for users: its namespace and name, or those of the object for which a controller made the
// PodGroup.
func (j *Job) Name() string {
	name := j.ID.Text()
	if j.Group != nil {
		if owner := metav1.GetControllerOfNoCopy(j.Group); owner != nil && (name == owner.Name+"-"+string(owner.UID) ||
			strings.HasPrefix(name, schedulingv1beta1.PodGroupNamePrefix)) {
			name = owner.Name
		}
	}
	return j.ID.Namespace + "/" + name
}

// IsLone reports whether the PodGroup was made for a lone pod (rule A3).
func (j *Job) IsLone() bool {
	if j.Group == nil {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && owner.Kind == "Pod" && owner.APIVersion == "v1"
}

// Over reports whether the job has ended: at least its minimum of tasks has ended, and no others are left. An ended job
// stays so when its pods are deleted.
func (j *Job) Over() bool {
	if j.Count(Succeeded)+j.Count(Failed) != len(j.Internal.Tasks) {
		return false
	}
	return j.Phase == schedulingv1beta1.PodGroupCompleted || j.Ended() >= max(j.MinMember, 1)
}

// Ended is the number of tasks of a job that have succeeded or failed. Those that are being deleted and have failed do
// not count: that is how an evicted pod ends, which its owner replaces.
func (j *Job) Ended() int {
	ended := j.Count(Succeeded) + j.Count(Failed)
	if j.Count(Failed) == 0 {
		return ended
	}
	for _, t := range j.Internal.Tasks {
		if t.Status == Failed && t.Pod.DeletionTimestamp != nil {
			ended--
		}
	}
	return ended
}

// Yielding is the number of tasks of a job that may leave their nodes for other jobs, see [gang.Status.Yields].
func (j *Job) Yielding() int { return j.Evictable() + j.Count(Awaited) }

// CompareJobs compares jobs where no plugin decides: the older first, then by UID and name.
func CompareJobs(a, b *Job) int {
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	if c := cmp.Compare(a.UID(), b.UID()); c != 0 {
		return c
	}
	return a.ID.Compare(b.ID)
}

// CompareNames orders by namespace, then name.
func CompareNames(a, b types.NamespacedName) int {
	if c := cmp.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// ofNodes returns the minResources without those that only ResourceQuotas count: nodes and queues have "cpu", but
// neither "limits.cpu" nor "count/pods".
func ofNodes(list corev1.ResourceList) corev1.ResourceList {
	isOfQuotas := func(name corev1.ResourceName, _ resource.Quantity) bool {
		return slices.ContainsFunc([]string{corev1.DefaultResourceRequestsPrefix, "limits.", "count/"},
			func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
	}
	kept := maps.Clone(list)
	maps.DeleteFunc(kept, isOfQuotas)
	return kept
}

// Read reads the PodGroup's fields of the job itself, and assigns its tasks to subgroups.
func (j *Job) Read(index *resources.Index, group *schedulingv1beta1.PodGroup) {
	j.Group, j.mark = group, markingOf(group.Annotations, group.Labels)
	j.Gang.Read(group)
	j.readMinResources(index, group)
	for _, t := range j.Internal.Tasks {
		if t.Subgroup = j.Assign(t.Pod.Labels); t.Subgroup != nil {
			t.Subgroup.Count(t.Status, +1)
		}
	}
}

// ReadMinimums reads again how many tasks the PodGroup needs, and which resources for them.
func (j *Job) ReadMinimums(index *resources.Index) {
	j.Gang.ReadMinimums(j.Group)
	j.readMinResources(index, j.Group)
}

func (j *Job) readMinResources(index *resources.Index, group *schedulingv1beta1.PodGroup) {
	j.MinResources = nil
	if group.Spec.MinResources != nil {
		j.MinResources = index.Asked(ofNodes(*group.Spec.MinResources))
	}
}

// Regroup assigns a task to the subgroup of its labels.
func (j *Job) Regroup(t *Task) {
	j.Unassign(t.Subgroup)
	t.Subgroup = j.Assign(t.Pod.Labels)
}

// Scheduler is the name of the job's scheduler: the one that its PodGroup names, otherwise the one of its pods.
// kube-scheduler reads no PodGroups and owns none. Of several schedulers the first by name counts, so that all of them
// come to the same answer. Without any it is the default one.
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

// The back-off after failures: a second, doubled by each failure in a row, at most a minute. A job that can never be
// bound then costs little, and one that can again does not wait long.
const (
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

// Pause keeps a job waiting after a failure.
func (j *Job) Pause(at time.Time) { j.NotBefore = at.Add(backOff(&j.Internal.Failures)) }

// backOff counts a failure, and returns how long to wait after it.
func backOff(failures *int) time.Duration {
	pause := lastBackOff
	if *failures < 6 {
		pause = firstBackOff << *failures
	}
	*failures++
	return min(pause, lastBackOff)
}

// LoseRoom notes that room which victims had left for a job went to pods of other schedulers. After the first time
// nothing follows. Others may take the room again and again, and each time more pods would be evicted in vain. So from
// the second time in a row on, no pods are evicted for the job until a back-off ends. Evictions and bindings that were
// refused are no such loss.
func (j *Job) LoseRoom(at time.Time) {
	isFirst := j.Internal.Losses == 0
	if pause := backOff(&j.Internal.Losses); !isFirst {
		j.EvictsFrom = at.Add(pause)
	}
}

// maxRestarts is how often a job may restart after an eviction within it, until no more pods are evicted within it.
// Once may be chance.
const maxRestarts = 2

// NoteRestart notes that other pods of a job were deleted after one was evicted for another pod of the same job.
func (j *Job) NoteRestart() { j.Internal.Restarts++ }

// RestartsWhenEvicted reports whether other pods of the job leave when one is evicted, as a policy of its controller
// may say. Then a pod that another makes room for within the job is deleted, too, or comes back to what it was before.
// It is known from what has happened, and from the PodGroup, where an earlier process has written it.
func (j *Job) RestartsWhenEvicted() bool {
	return j.Internal.Restarts >= maxRestarts || j.Group != nil && slices.ContainsFunc(j.Group.Status.Conditions, func(c schedulingv1beta1.PodGroupCondition) bool {
		return c.Type == schedulingv1beta1.PodGroupRestartsType && c.Status == corev1.ConditionTrue
	})
}

// Lateness is how long after its grace period the latest pod ended that was not counted on any more, and when it did.
type Lateness struct {
	Time time.Duration
	At   time.Time
}

// NoteLate notes that a pod of the job has ended now that was not counted on any more, and when its grace period was
// over.
func (j *Job) NoteLate(due, now time.Time) {
	late := now.Sub(due)
	if !now.After(j.Internal.Late.At.Add(latenessCounts)) {
		late = max(late, j.Internal.Late.Time)
	}
	j.Internal.Late = Lateness{late, now}
}

// allowance is how long after its grace period a pod of the job is counted on to end if it is evicted now.
func (j *Job) allowance(now time.Time) time.Duration {
	if late := j.Internal.Late; late.Time > 0 && !now.After(late.At.Add(latenessCounts)) {
		return min(late.Time+LeastAllowance, longestAllowance)
	}
	return LeastAllowance
}

// Forgive ends the back-offs of a job and forgets its failures.
func (j *Job) Forgive() {
	j.NotBefore, j.EvictsFrom, j.BarredUntil, j.BarredFor = time.Time{}, time.Time{}, time.Time{}, 0
	j.Internal.Failures, j.Internal.Losses, j.Internal.Restarts = 0, 0, 0
	j.Internal.Late = Lateness{}
}

// Nodes returns the node of each task that is placed or pipelined; with a subgroup that is not nil, only of its tasks.
func (j *Job) Nodes(g *Subgroup) []*Node {
	var nodes []*Node
	for _, t := range j.Internal.Tasks {
		if t.Node != nil && t.Status.Counts() && (g == nil || t.Subgroup == g) {
			nodes = append(nodes, t.Node)
		}
	}
	return nodes
}
