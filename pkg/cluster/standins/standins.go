package standins

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// StandIns keeps the stand-ins of jobs whose pods do not all exist yet (rule G13). Of each podset a job has as many
// stand-ins as pods are missing, until the gang has its nodes. From then on stand-ins only go: pods take their places,
// or the time is over.
type StandIns struct {
	*model.Cluster
	writer   *model.Writer
	due      map[*cluster.Job]time.Time // when jobs that lack nodes or pods will have waited too long
	changed  map[*cluster.Job]bool      // to settle
	recorded map[*cluster.Job]decision.StandInRecord
	unheld   []Unheld
	longest  time.Duration // that nodes are held

	byNamespace map[string]map[*cluster.Job]bool // jobs that expect pods
	refused     map[*cluster.Job]bool            // of these, those whose pods the quotas of their namespaces do not allow
	beyond      map[*cluster.Job]time.Time       // those that hold nodes for such pods, and since when; zero before that is known
}

// New returns the stand-ins of a model, for which nodes are held for some time at the longest.
func New(c *model.Cluster, writer *model.Writer, longest time.Duration) *StandIns {
	return &StandIns{Cluster: c, writer: writer, longest: longest, byNamespace: map[string]map[*cluster.Job]bool{}, refused: map[*cluster.Job]bool{},
		beyond: map[*cluster.Job]time.Time{}, due: map[*cluster.Job]time.Time{}, changed: map[*cluster.Job]bool{}, recorded: map[*cluster.Job]decision.StandInRecord{}}
}

// Read reads which pods a PodGroup expects. isNew says that it was not known before, so that its record counts.
func (k *StandIns) Read(j *cluster.Job, isNew bool) {
	podsets, parameters := k.podsets(j)
	if len(podsets) == 0 {
		k.Forget(j)
		return
	}
	if isNew {
		k.Forget(j)
	}
	if j.Expected == nil {
		record := decision.StandInsOf(j.Group)
		if j.Group.Status.Phase == "" || j.Group.Status.Phase == schedulingv1beta1.PodGroupPending {
			record.Since, record.Nodes = nil, nil // by a user: a gang that has had its nodes has another phase
		}
		j.Expected = &cluster.Expected{IsOver: record.IsOver}
		if record.Since != nil {
			j.Expected.Since = record.Since.Time
		}
		k.recorded[j] = record
		if k.byNamespace[j.ID.Namespace] == nil {
			k.byNamespace[j.ID.Namespace] = map[*cluster.Job]bool{}
		}
		k.byNamespace[j.ID.Namespace][j] = true
	}
	e := j.Expected
	e.Podsets, e.Timeout, e.IsHard = podsets, min(parameters.Timeout, k.longest), parameters.IsHard
	k.Look(j)
}

// podsets returns the podsets of a PodGroup: those of YuniKorn's task groups. Without pods to come there are none.
func (k *StandIns) podsets(j *cluster.Job) (podsets []cluster.Podset, parameters yunikorn.GangParameters) {
	text := j.Group.Annotations[yunikorn.TaskGroupsKey]
	if text == "" {
		return nil, parameters
	}
	groups, err := yunikorn.ReadTaskGroups(text)
	if err != nil {
		return nil, parameters // the controllers tell the user
	}
	parameters, _ = yunikorn.ReadGangParameters(j.Group.Annotations[yunikorn.GangParametersKey])
	for i := range groups {
		g := &groups[i]
		podsets = append(podsets, cluster.Podset{Name: g.Name, Count: int(g.MinMember), Template: k.template(j.Group, g)})
	}
	return podsets, parameters
}

// template returns the form of the pods of a task group.
func (k *StandIns) template(group *schedulingv1beta1.PodGroup, g *yunikorn.TaskGroup) *cluster.Pod {
	requests := maps.Clone(g.MinResource)
	delete(requests, corev1.ResourcePods) // every pod counts as one
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Labels: g.Labels, Annotations: g.Annotations},
		Spec: corev1.PodSpec{
			SchedulerName:             group.Annotations[schedulingv1beta1.SchedulerNameKey],
			PriorityClassName:         group.Spec.PriorityClassName,
			NodeSelector:              g.NodeSelector,
			Tolerations:               g.Tolerations,
			Affinity:                  g.Affinity,
			TopologySpreadConstraints: g.TopologySpreadConstraints,
			Containers:                []corev1.Container{{Name: g.Name, Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if class := k.PriorityClass(group.Spec.PriorityClassName); class != nil {
		pod.Spec.Priority = &class.Value
	}
	return pods.New(pod)
}

// Forget drops all stand-ins of a job, which expects no pods any more.
func (k *StandIns) Forget(j *cluster.Job) {
	if j.Expected == nil {
		return
	}
	k.drop(j, func(*cluster.Task) bool { return true })
	j.Expected = nil
	delete(k.due, j)
	delete(k.changed, j)
	delete(k.recorded, j)
	delete(k.refused, j)
	delete(k.beyond, j)
	if delete(k.byNamespace[j.ID.Namespace], j); len(k.byNamespace[j.ID.Namespace]) == 0 {
		delete(k.byNamespace, j.ID.Namespace)
	}
}

// drop removes the stand-ins of a job for which a function says so.
func (k *StandIns) drop(j *cluster.Job, goes func(*cluster.Task) bool) {
	var gone []*cluster.Task
	for _, t := range j.Internal.Tasks {
		if t.IsStandIn && goes(t) {
			gone = append(gone, t)
		}
	}
	for _, t := range gone {
		k.Plans().RemoveVictim(t)
		k.remove(t)
	}
}

// remove removes a stand-in for good.
func (k *StandIns) remove(t *cluster.Task) {
	if t.Node != nil {
		k.Note(wake.RoomFreed)
	}
	k.DropStandIn(t)
	k.Keep()
	k.NoteFreed(t.Job)
	for other := range k.byNamespace[t.Job.ID.Namespace] {
		if k.refused[other] {
			k.Look(other)
		}
	}
}

// Renew makes a stand-in that waits again, because its request is another one.
func (k *StandIns) Renew(t *cluster.Task) {
	k.remove(t)
	k.Look(t.Job)
}

// IsStale reports whether Settle has anything to do.
func (k *StandIns) IsStale() bool { return len(k.changed) > 0 }

// Look makes the next Settle count the pods of a job that expects pods.
func (k *StandIns) Look(j *cluster.Job) {
	if j != nil && j.Expected != nil {
		k.changed[j] = true
	}
}

// Settle gives the changed jobs the stand-ins and minimums that follow from their pods.
func (k *StandIns) Settle() {
	if len(k.changed) == 0 {
		return
	}
	jobs := slices.SortedFunc(maps.Keys(k.changed), func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	clear(k.changed)
	for _, j := range jobs {
		k.settleJob(j)
	}
}

// podSetCounts is what there is of a job that expects pods.
type podSetCounts struct {
	have     map[string]int // pods by role that exist and do not leave or fail
	isLiving bool           // some pod has not ended
}

func (k *StandIns) count(j *cluster.Job) (c podSetCounts) {
	c.have = map[string]int{}
	for _, t := range j.Internal.Tasks {
		if t.IsStandIn || t.Status == cluster.Failed || t.Status.Leaves() || t.Status == cluster.Lingering {
			continue
		}
		c.have[t.Role]++
		c.isLiving = c.isLiving || t.Status != cluster.Succeeded
	}
	return c
}

func (k *StandIns) settleJob(j *cluster.Job) {
	e, c := j.Expected, k.count(j)
	if (!c.isLiving || j.IsForeign) && !k.hasStandIns(j, cluster.Pipelined) {
		// The next pod of the application begins again.
		e.Since, e.IsOver, e.FailedBy = time.Time{}, false, time.Time{}
		delete(k.recorded, j)
	}
	before := j.MinMember
	e.Refusal = nil
	j.ReadMinimums(k.Resources)
	switch {
	case !c.isLiving || j.IsForeign || e.IsOver || !e.FailedBy.IsZero():
		k.drop(j, func(t *cluster.Task) bool { return t.Status != cluster.Pipelined })
		k.asTheyAre(j)
	case e.Since.IsZero():
		k.complete(j, &c)
	default:
		k.restore(j)
		k.judge(j)
		// Pods of a gang that has had its nodes may end, and need not come again.
		j.Lower(max(j.Valid()+j.Count(cluster.Gated), 1))
	}
	if j.MinMember < before {
		k.Note(wake.VictimsChanged) // its pods may leave one by one
	}
	if !e.FailedBy.IsZero() && !j.IsFailing() {
		e.FailedBy = time.Time{} // all have failed
	}
	if due := k.until(j); due.IsZero() {
		delete(k.due, j)
	} else {
		k.due[j] = due
	}
	k.writer.Jobs.Renew(j)
	k.writer.Jobs.Settle(j)
}

func (k *StandIns) hasStandIns(j *cluster.Job, status cluster.Status) bool {
	return slices.ContainsFunc(j.Internal.Tasks, func(t *cluster.Task) bool { return t.IsStandIn && t.Status == status })
}

// asTheyAre makes a job no gang: each of its pods is scheduled by itself.
func (k *StandIns) asTheyAre(j *cluster.Job) {
	needed := j.MinResources
	j.Lower(1)
	var least resources.Vector
	for i, t := range j.Pending(cluster.CompareTasks) {
		if i == 0 {
			least = t.Request().Clone()
		}
	}
	if j.MinResources != nil && least != nil {
		j.MinResources = least
	}
	if !needed.LessEqual(j.MinResources) {
		k.NoteFreed(j)
	}
}

// complete makes stand-ins for the pods of a gang that do not exist, and drops those that are not needed any more. If
// the quotas of the namespace do not allow all of these pods, there are none.
func (k *StandIns) complete(j *cluster.Job, c *podSetCounts) {
	if j.Expected.Refusal = k.refusal(j, func(of *cluster.Podset) int { return max(of.Count-c.have[of.Name], 0) }); j.Expected.Refusal != nil {
		k.refused[j] = true
		k.drop(j, func(t *cluster.Task) bool { return t.Status != cluster.Pipelined })
		return
	}
	delete(k.refused, j)
	for i := range j.Expected.Podsets {
		of := &j.Expected.Podsets[i]
		var waiting []*cluster.Task
		used, all := map[int]bool{}, 0
		for _, t := range j.Internal.Tasks {
			if t.IsStandIn && t.Role == of.Name {
				used[t.Index] = true
				all++
				if t.Status == cluster.Pending {
					waiting = append(waiting, t)
				}
			}
		}
		wanted := max(of.Count-c.have[of.Name], 0)
		slices.SortFunc(waiting, func(a, b *cluster.Task) int { return b.Index - a.Index })
		for ; all > wanted && len(waiting) > 0; all-- {
			k.remove(waiting[0])
			waiting = waiting[1:]
		}
		for index := 0; all < wanted; index++ {
			if !used[index] {
				k.AddStandIn(j, of, index)
				k.Keep()
				all++
			}
		}
	}
}

// restore makes the stand-ins that an earlier process has recorded, as far as their nodes still have room. Those that
// need devices get theirs in the next session, see [StandIns.TakeUnheld]: which they had is not recorded.
func (k *StandIns) restore(j *cluster.Job) {
	record, ok := k.recorded[j]
	if !ok {
		return
	}
	delete(k.recorded, j)
	for i := range j.Expected.Podsets {
		of := &j.Expected.Podsets[i]
		nodes := record.Nodes[of.Name]
		for index, name := range nodes[:min(len(nodes), of.Count)] {
			t := k.AddStandIn(j, of, index)
			switch n := k.Node(name); {
			case n == nil || n.Object == nil || !n.Room(t.Request()):
			case t.Class.NeedsSupplies():
				k.unheld = append(k.unheld, Unheld{t, n})
			default:
				k.Place(t, n)
				k.Commit(t)
			}
			k.Keep()
		}
	}
}

// Unheld is a stand-in that an earlier process held a node for, and that needs devices there.
type Unheld struct {
	Task *cluster.Task
	Node *cluster.Node
}

// TakeUnheld returns those that nothing holds their nodes for yet, once.
func (k *StandIns) TakeUnheld() []Unheld {
	left := slices.DeleteFunc(k.unheld, func(u Unheld) bool { return k.Task(u.Task.Key()) != u.Task || u.Task.Status != cluster.Pending })
	k.unheld = nil
	return left
}

// Lost takes the stand-ins off a node that is deleted or cordoned.
func (k *StandIns) Lost(n *cluster.Node) {
	for _, t := range slices.Clone(n.Tasks()) {
		if t.Status == cluster.Awaited {
			k.writer.Tasks.Release(t, cluster.Pending)
			k.Look(t.Job)
		}
	}
}

// until returns when a job will have waited too long for its gang, zero if it need not wait.
func (k *StandIns) until(j *cluster.Job) time.Time {
	e := j.Expected
	if e.IsOver || !e.FailedBy.IsZero() || j.Group == nil {
		return time.Time{}
	}
	if !e.Since.IsZero() {
		if j.Count(cluster.Awaited) == 0 && !k.hasStandIns(j, cluster.Pending) {
			return time.Time{}
		}
		return e.Since.Add(e.Timeout)
	}
	var first time.Time
	for _, t := range j.Internal.Tasks {
		if at := t.Created(); !t.IsStandIn && !t.Status.Finished() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return time.Time{}
	}
	return first.Add(e.Timeout)
}

// Follow notes which gangs with stand-ins have got their nodes in this cycle, and ends the waiting of those that have
// waited too long. A gang that was not tried yet has not waited.
func (k *StandIns) Follow(now time.Time) {
	k.writer.RequireNoTransaction("gangs are followed")
	k.keepWithinQuota(now)
	for j, due := range k.due {
		if e := j.Expected; e.Since.After(now) {
			e.Since = now.Truncate(time.Second) // a record by another clock, or by a user
			due = k.until(j)
			k.due[j] = due
		}
		switch e := j.Expected; {
		case e.Since.IsZero() && j.Lacks() == 0 && j.Staying() > j.Count(cluster.Pipelined):
			e.Since = now.Truncate(time.Second)
		case now.Before(due), e.Since.IsZero() && j.Verdict == nil, j.Plan != nil:
			continue
		case e.IsHard:
			e.FailedBy = now
		default:
			e.IsOver = true
		}
		k.Look(j)
		k.TouchJob(j)
	}
	k.Settle()
}

// NextDue returns when the next gang will have waited too long, zero if none will.
func (k *StandIns) NextDue(now time.Time) (next time.Time) {
	for _, since := range k.beyond {
		if due := since.Add(patience); !since.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	for _, due := range k.due {
		if due.After(now) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}
