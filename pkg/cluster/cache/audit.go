package cache

import (
	"fmt"
	"maps"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/backlog"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/gang"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/resources"
	corev1 "k8s.io/api/core/v1"
)

// Audit computes every total again from the tasks and returns the differences, one sentence each. It changes nothing,
// and takes time in proportion to the size of the model.
func (k *Cache) Audit() []string {
	a := &audit{cache: k}
	k.EachTask(func(t *cluster.Task) { a.allTasks = append(a.allTasks, t) })
	k.writer.Jobs.Each(func(j *cluster.Job) { a.allJobs = append(a.allJobs, j) })
	a.nodes()
	a.jobs()
	a.queues()
	a.owners()
	a.found = append(a.found, checkPlans(k.Cluster, a.allTasks, a.allJobs, k.writer.IsInTransaction())...)
	a.found = append(a.found, checkReservations(k.Cluster, a.allTasks)...)
	a.hyperNodes()
	a.found = append(a.found, k.Workloads.Audit()...)
	a.found = append(a.found, k.Called.audit(a.allJobs)...)
	if wrong := k.writer.Classes().Audit(); wrong != "" {
		a.found = append(a.found, wrong)
	}
	return a.found
}

// audit is one run of [Cache.Audit].
type audit struct {
	cache    *Cache
	allTasks []*cluster.Task
	allJobs  []*cluster.Job
	found    []string
}

func (a *audit) vector(what string, have, want resources.Vector) {
	if !have.Equal(want) {
		a.found = append(a.found, fmt.Sprintf("%s is %v, should be %v", what, have, want))
	}
}

func (a *audit) int(what string, have, want int) {
	if have != want {
		a.found = append(a.found, fmt.Sprintf("%s is %d, should be %d", what, have, want))
	}
}

func (a *audit) usage(what string, have, want *cluster.Usage) {
	a.vector(what+" allocated", have.Allocated, want.Allocated)
	a.vector(what+" request", have.Request, want.Request)
	a.vector(what+" inqueue", have.Inqueue, want.Inqueue)
	a.vector(what+" unsettled", have.Unsettled, want.Unsettled)
	a.vector(what+" leaving", have.Leaving, want.Leaving)
}

func (a *audit) nodes() {
	k := a.cache
	type totals struct {
		used, releasing, promised resources.Vector
		nonZero                   [2]int64
		tasks                     int
	}
	fresh := map[*cluster.Node]*totals{}
	inSlots := 0
	for slot, n := range k.BySlot() {
		if n == nil {
			continue
		}
		inSlots++
		fresh[n] = &totals{}
		if n.Slot != slot || k.Node(n.Name) != n {
			a.found = append(a.found, fmt.Sprintf("node %s is not listed in its slot %d", n.Name, n.Slot))
		}
	}
	classes := map[*cluster.Class]int{}
	for _, t := range a.allTasks {
		key := t.Key()
		classes[t.Class]++
		if k.Task(key) != t {
			a.found = append(a.found, fmt.Sprintf("task %s is listed under another name", key))
		}
		n := t.Node
		if n == nil {
			continue
		}
		f := fresh[n]
		if f == nil {
			a.found = append(a.found, fmt.Sprintf("task %s is on node %s, which is not known", key, n.Name))
			continue
		}
		f.tasks++
		if t.Internal.InNode >= len(n.Internal.Tasks) || n.Internal.Tasks[t.Internal.InNode] != t {
			a.found = append(a.found, fmt.Sprintf("task %s is not listed on its node %s", key, n.Name))
		}
		switch {
		case t.Status.Holds():
			f.used.Add(t.Request())
			f.nonZero[0] += t.Class.NonZero[0]
			f.nonZero[1] += t.Class.NonZero[1]
			if t.Status.Leaves() {
				f.releasing.Add(t.Request())
			}
		case t.Status == cluster.Pipelined:
			f.promised.Add(t.Request())
		}
	}
	sums := [...]cluster.Totals{{}, {}, {}} // by standing
	for n, f := range fresh {
		a.vector("node "+n.Name+" used", n.Used, f.used)
		a.vector("node "+n.Name+" releasing", n.Releasing, f.releasing)
		a.vector("node "+n.Name+" promised", n.Promised, f.promised)
		a.int("node "+n.Name+" tasks", len(n.Internal.Tasks), f.tasks)
		if n.Object == nil && f.tasks == 0 {
			a.found = append(a.found, fmt.Sprintf("node %s is known, though neither it nor a pod of it is left", n.Name))
		}
		if n.NonZero != f.nonZero {
			a.found = append(a.found, fmt.Sprintf("node %s balance is %v, should be %v", n.Name, n.NonZero, f.nonZero))
		}
		s := &sums[a.freshStanding(n)]
		s.Total.Add(n.Allocatable)
		s.Used.Add(f.used)
		s.Releasing.Add(f.releasing)
		s.Promised.Add(f.promised)
		for d := range resources.Dim(len(n.Allocatable)) {
			left := n.Allocatable.At(d) - f.used.At(d) + f.releasing.At(d) - f.promised.At(d)
			s.Idle.Set(d, s.Idle.At(d)+max(left, 0))
		}
	}
	a.totals("cluster", &k.Totals, &sums[cluster.StandsUsable])
	a.totals("tainted", &k.Tainted, &sums[cluster.StandsTainted])
	a.totals("unusable", &k.Unusable, &sums[cluster.StandsUnusable])
	a.int("nodes by rank", len(k.Nodes()), inSlots)
	for _, k := range slices.Collect(maps.Keys(classes)) {
		if k.NeedsSupplies() {
			classes[k.Plain]++
		}
	}
	a.int("classes", k.writer.Classes().Len(), len(classes))
	for k, tasks := range classes {
		a.int("tasks of a class", k.Users(), tasks)
	}
}

func (a *audit) totals(what string, have, want *cluster.Totals) {
	a.vector(what+" total", have.Total, want.Total)
	a.vector(what+" used", have.Used, want.Used)
	a.vector(what+" releasing", have.Releasing, want.Releasing)
	a.vector(what+" promised", have.Promised, want.Promised)
	a.vector(what+" idle", have.Idle, want.Idle)
}

// freshStanding works out in which totals a node must count, from all pods.
func (a *audit) freshStanding(n *cluster.Node) cluster.Standing {
	k := a.cache
	if !n.Internal.Ready || n.Object.Spec.Unschedulable {
		return cluster.StandsUnusable
	}
	counted := func(yield func([]corev1.Toleration) bool) {
		for _, t := range a.allTasks {
			if k.isOurs(t.Pod) && !t.IsStandIn && !t.Status.Finished() && !yield(t.Pod.Spec.Tolerations) {
				return
			}
		}
	}
	if !taints.AreToleratedBy(n.Object, counted) {
		return cluster.StandsTainted
	}
	return cluster.StandsUsable
}

func (a *audit) jobs() {
	k := a.cache
	members, elsewhere := map[*cluster.Job][]*cluster.Task{}, map[cluster.JobID]int{}
	for _, t := range a.allTasks {
		if named := namedGroup(t); named != (cluster.JobID{}) {
			elsewhere[named]++
		}
		if t.Job != nil {
			members[t.Job] = append(members[t.Job], t)
		}
	}
	for _, j := range a.allJobs {
		id := j.ID
		var counts gang.Counts
		var u cluster.Usage
		var gated, terminating resources.Vector
		roles := map[string]*gang.Counts{}
		for role := range j.Roles() {
			roles[role] = &gang.Counts{}
		}
		for _, t := range members[j] {
			counts[t.Status]++
			if t.Internal.InJob >= len(j.Internal.Tasks) || j.Internal.Tasks[t.Internal.InJob] != t || roles[t.Role] == nil {
				a.found = append(a.found, fmt.Sprintf("task %s is not listed in its job %s", t.Key(), id))
				continue
			}
			roles[t.Role][t.Status]++
			if t.Status.Counts() {
				u.Allocated.Add(t.Request())
			}
			if t.Status.Asks() {
				u.Request.Add(t.Request())
			}
			if t.Status.Holds() && !t.Status.Counts() && id.Kind != decision.OfPodGroup {
				u.Leaving.Add(t.Request())
			}
			switch t.Status {
			case cluster.Gated:
				gated.Add(t.Request())
			case cluster.Releasing, cluster.Lingering:
				terminating.Add(t.Request())
			case cluster.Evicting:
				u.Unsettled.Add(t.Request())
			case cluster.Pipelined:
				u.Unsettled.Sub(t.Request())
			}
		}
		what := "job " + id.String()
		a.vector(what+" gated", j.Gated, gated)
		a.vector(what+" terminating", j.Terminating, terminating)
		if j.Phase == schedulingv1beta1.PodGroupInqueue {
			for d := range resources.Dim(len(j.MinResources)) {
				u.Inqueue.Set(d, j.Claims(d)) // by the amounts that are compared here
			}
		}
		a.usage(what, &j.Usage, &u)
		a.int(what+" tasks", len(j.Internal.Tasks), len(members[j]))
		a.int(what+" pods elsewhere", j.Elsewhere, elsewhere[id])
		if j.IsEnding != k.isEnding(j) {
			a.found = append(a.found, fmt.Sprintf("%s: ending is %t", what, j.IsEnding))
		}
		if j.Group != nil {
			fresh := &cluster.Job{ID: id}
			for _, t := range members[j] {
				if t.IsStandIn {
					continue
				}
				fresh.Internal.Priorities.Add(priority.RankOf(t.Pod), +1)
			}
			value, _ := k.ranks.rankOf(fresh, j.Group.Spec.PriorityClassName)
			a.int(what+" priority", int(j.Priority), int(value))
		}
		if counts != j.Counts() {
			a.found = append(a.found, fmt.Sprintf("%s counts are %v, should be %v", what, j.Counts(), counts))
		}
		for role, counts := range roles {
			if *counts != *j.Roles()[role] {
				a.found = append(a.found, fmt.Sprintf("%s counts of role %s are %v, should be %v", what, role, *j.Roles()[role], *counts))
			}
		}
		a.subgroups(what, j, members[j])
		if j.WantsAttention() && !j.Internal.IsWaiting && k.Mark() == 0 { // a job is listed when the operations on it are kept
			a.found = append(a.found, what+" wants attention and is not listed as waiting")
		}
		if j.Internal.IsWaiting && !k.writer.IsInTrial() && j.Internal.Backlog.IsAttended == j.Internal.Backlog.IsResting {
			a.found = append(a.found, fmt.Sprintf("%s waits: attended %t, resting %t", what, j.Internal.Backlog.IsAttended, j.Internal.Backlog.IsResting))
		}
		if j.Internal.Backlog.IsResting && backlog.KeyOf(j) != j.Internal.Backlog.RestsFor {
			a.found = append(a.found, fmt.Sprintf("%s rests for %v, should for %v", what, j.Internal.Backlog.RestsFor, backlog.KeyOf(j)))
		}
	}
}

func (a *audit) subgroups(what string, j *cluster.Job, members []*cluster.Task) {
	tasks, counts := map[*cluster.Subgroup]int{}, map[*cluster.Subgroup]*gang.Counts{}
	for _, t := range members {
		if g := t.Subgroup; g != nil {
			if counts[g] == nil {
				counts[g] = &gang.Counts{}
			}
			tasks[g]++
			counts[g][t.Status]++
		}
	}
	a.int(what+" subgroups", len(j.Subgroups()), len(tasks))
	if lacks := j.Lacks(); j.IsWhole() != (lacks == 0) {
		a.found = append(a.found, fmt.Sprintf("%s lacks %d tasks, and whole is %t", what, lacks, j.IsWhole()))
	}
	for _, g := range j.Subgroups() {
		a.int(what+" tasks of subgroup "+g.Name(), g.Tasks(), tasks[g])
		if counts[g] != nil && *counts[g] != g.Counts() {
			a.found = append(a.found, fmt.Sprintf("%s counts of subgroup %s are %v, should be %v", what, g.Name(), g.Counts(), *counts[g]))
		}
	}
}

// hyperNodes checks the totals of HyperNodes. The caller makes sure that nothing has changed since they were updated.
func (a *audit) hyperNodes() {
	k := a.cache
	if !k.nodes.topology.IsSettled() {
		return
	}
	for _, h := range k.HyperNodes() {
		var allocatable, used resources.Vector
		for _, n := range h.Domain.Nodes() {
			if k.Node(n.Name) != n || !slices.Contains(n.Internal.HyperNodes, h) || !h.Domain.Holds(n) {
				a.found = append(a.found, fmt.Sprintf("HyperNode %s holds node %s, which does not know of it", h.Name, n.Name))
			}
			allocatable.Add(n.Internal.Tallied)
			used.Add(n.Internal.TalliedUsed)
		}
		a.vector("HyperNode "+h.Name+" allocatable", h.Internal.Allocatable, allocatable)
		a.vector("HyperNode "+h.Name+" used", h.Internal.Used, used)
	}
}

func (a *audit) queues() {
	k := a.cache
	own, jobs := map[*cluster.Queue]*cluster.Usage{}, map[*cluster.Queue]int{}
	for _, q := range k.Queues() {
		own[q] = &cluster.Usage{}
	}
	for _, j := range a.allJobs {
		id := j.ID
		if want := k.Queue(j.QueueName); j.Queue != want {
			a.found = append(a.found, fmt.Sprintf("job %s is not in the queue it names, %q", id, j.QueueName))
		} else if want != nil {
			own[want].Add(&j.Usage)
			jobs[want]++
		}
		if j.Below != k.Queue(j.BelowName) {
			a.found = append(a.found, fmt.Sprintf("job %s does not count in the queue it is below, %q", id, j.BelowName))
		} else if j.Below != nil {
			own[j.Below].Add(&j.Usage)
		}
	}
	var allocated resources.Vector
	for _, u := range own {
		allocated.Add(u.Allocated)
	}
	a.vector("what all queues hold", k.Quota().Allocated(), allocated)
	for _, q := range k.Queues() {
		name := q.Name
		a.usage("queue "+name, &q.Own, own[q])
		a.int("queue "+name+" jobs", q.Jobs, jobs[q])
		a.int("queue "+name+" members", len(q.Members()), jobs[q])
		for i, j := range q.Members() {
			if j.Queue != q || j.Internal.InQueue != i {
				a.found = append(a.found, fmt.Sprintf("job %s is listed in queue %s at %d, and is in %q", j.ID, name, i, j.QueueName))
			}
		}
		if k.Quota().IsStale() {
			continue
		}
		subtree := own[q].Clone()
		for _, child := range q.Children {
			subtree.Add(&child.Subtree)
		}
		a.usage("queue "+name+" subtree", &q.Subtree, &subtree)
	}
}

func (a *audit) owners() {
	k := a.cache
	counts := map[cluster.JobID]map[string]int{}
	count := func(id cluster.JobID, scheduler string) {
		if counts[id] == nil {
			counts[id] = map[string]int{}
		}
		counts[id][scheduler]++
	}
	for _, s := range k.owners.foreignPods {
		count(s.job, s.scheduler)
	}
	for _, t := range a.allTasks {
		if t.Job != nil && !t.IsStandIn {
			count(t.Job.ID, t.Internal.Scheduler)
		}
	}
	for _, j := range a.allJobs {
		id := j.ID
		for _, m := range j.Internal.Schedulers {
			a.int("pods of job "+id.String()+" for scheduler "+m.Scheduler, m.Pods, counts[id][m.Scheduler])
		}
		a.int("schedulers of the pods of job "+id.String(), len(j.Internal.Schedulers), len(counts[id]))
		isForeign := j.Group != nil && !slices.Contains(k.options.SchedulerNames, j.Scheduler())
		if len(k.owners.questioned) == 0 && isForeign != j.IsForeign {
			a.found = append(a.found, "job "+id.String()+" is taken for one of the wrong scheduler")
		}
	}
}
