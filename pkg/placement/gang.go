package placement

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Gang places as many of the tasks as their job needs to start. It returns nil if the job is ready then; what was placed
// is in the transaction. Otherwise it returns why not, and the transaction is as it was.
//
// The tasks are placed in the order given. If that fails and they are not all alike, the large are tried before the small:
// a small task can take the last room that fits a large one, hardly ever the other way round. If there are more tasks than
// the job needs, the small alone may do, so they are tried last. Pods that share a claim which is bound to nothing yet must be together,
// so the first of them is tried on further nodes; and those that need volumes or devices are tried before those that can go anywhere.
//
// A gang that is to be close to each other in the network is placed whole in the lowest and best HyperNode that holds it, and so
// is each of its subgroups. If that must be and none holds it, the verdict is that on the one where most was placed.
func Gang(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	if j.Proximity != nil || len(j.Subgroups()) > 0 {
		return together(s, j, tasks)
	}
	return gang(s, j, tasks)
}

// gang is Gang where nodes are found at the moment.
func gang(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	v := inSomeOrder(s, j, tasks)
	if v != nil && v.Code == verdict.NotEnoughResources && anchored(s, j, tasks) {
		return nil
	}
	return v
}

// inSomeOrder places the tasks in the order given, or by size.
func inSomeOrder(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	v := tryGang(s, j, tasks)
	if v == nil || v.Code != verdict.NotEnoughResources && v.Code != verdict.OverShare {
		return v
	}
	if boundFirst := needyFirst(tasks); boundFirst != nil && tryGang(s, j, boundFirst) == nil {
		return nil
	}
	if areAlike(tasks) {
		return v
	}
	bySize := s.Cluster.LargestFirst(tasks)
	w := tryGang(s, j, bySize)
	if w != nil && len(tasks) > j.Lacks() {
		slices.Reverse(bySize)
		v = v.With(w)
		w = tryGang(s, j, bySize)
	}
	if w == nil {
		return nil
	}
	return v.With(w)
}

// needyFirst returns tasks with those first that need volumes or devices, which few nodes may have, nil if they stand so already: the
// others can go elsewhere.
func needyFirst(tasks []*cluster.Task) []*cluster.Task {
	compare := func(t, u *cluster.Task) int {
		switch {
		case t.Class.NeedsSupplies() == u.Class.NeedsSupplies():
			return 0
		case t.Class.NeedsSupplies():
			return -1
		}
		return 1
	}
	if slices.IsSortedFunc(tasks, compare) {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(tasks), compare)
}

// areAlike reports whether tasks take the same room.
func areAlike(tasks []*cluster.Task) bool {
	return !slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Class.Plain != tasks[0].Class.Plain })
}

func tryGang(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	x := s.Begin()
	before := j.Ready()
	var failed []*cluster.Class
	var v *verdict.Verdict
	for again := true; again; {
		placed := x.Placed()
		for _, t := range tasks {
			if s.IsReady(j) {
				return nil
			}
			if t.Status != cluster.Pending || !useful(j, t) || slices.Contains(failed, t.Class) {
				continue
			}
			if w := One(s, x, t); w != nil {
				failed, v = append(failed, t.Class), v.With(w)
			}
		}
		if s.IsReady(j) {
			return nil
		}
		// What was placed may draw to it what found no place before.
		hopeless := len(failed)
		failed = slices.DeleteFunc(failed, s.Cluster.DependsOnPods)
		again = x.Placed() > placed && len(failed) < hopeless
	}
	refusal := verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob}
	if v != nil {
		refusal = *v // who gave it may hold on to it
	}
	refusal.Wanted = j.MinMember
	if j.Lacks() == 0 { // then it is not its own numbers that keep it from being ready
		refusal.Wanted = max(j.MinMember, before+1)
	}
	refusal.Placed = min(j.Ready(), refusal.Wanted-j.Lacks()) // a surplus of one role is no substitute for another
	if refusal.Code == verdict.NotEnoughResources {
		refusal.Fitting = namesOf(x.Tasks())
	}
	x.Undo()
	return &refusal
}

// namesOf returns the names of the pods of some tasks of one job, nil if there are none.
func namesOf(tasks []*cluster.Task) []string {
	if len(tasks) == 0 {
		return nil
	}
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.Pod.Name
	}
	return names
}

// useful reports whether placing a task brings its job nearer to its start: its role still lacks tasks, or any task will
// do beside those that roles lack.
func useful(j *cluster.Job, t *cluster.Task) bool {
	if j.LacksOf(t.Role) > 0 || !j.ChecksRoles() {
		return true
	}
	reserved := 0
	for _, r := range j.RoleMinimums {
		reserved += j.LacksOf(r.Role)
	}
	return j.MinMember-j.Ready() > reserved
}

// IsPartOfCluster reports whether a refusal on account of a queue comes from the size of the cluster: a share is a part of it,
// and so is a ceiling that nobody wrote.
func IsPartOfCluster(v *verdict.Verdict) bool {
	return v.Code == verdict.OverShare ||
		(v.Code == verdict.OverCapability || v.Code == verdict.TooLargeForQueue) && v.Help&verdict.HelpNode != 0
}

// isOfQueues reports whether a refusal on account of a queue would stand if all other queues were empty: the queue alone with the
// task is not more than the cluster has, so that what others deserve is in the way. Else more nodes are all that it takes, and
// a share grows with them.
func isOfQueues(s *framework.Session, v *verdict.Verdict) bool {
	q := s.Cluster.Queue(v.Subject)
	return q != nil && slices.ContainsFunc(v.Shortages, func(short verdict.Shortage) bool {
		d := s.Cluster.Resources.Dim(short.Resource)
		return q.Subtree.Allocated.At(d)+short.Need <= s.Cluster.Total.At(d)
	})
}

// place places one task on the best node where nodes are found at the moment.
func place(s *framework.Session, x framework.Transaction, t *cluster.Task) *verdict.Verdict {
	v := s.MayAllocate(t)
	if v != nil && !IsPartOfCluster(v) {
		return v
	}
	if v == nil {
		if w := s.MayBind(t); w != nil {
			return w
		}
	}
	n := s.Placer.Best(t)
	switch {
	case n == nil && v != nil:
		// A share is a part of the cluster: where no node has room either, it is the cluster that is too small.
		w := refusal(s, t)
		w.Help |= v.Help
		if isOfQueues(s, v) {
			w.Detail = (&verdict.Verdict{Code: v.Code, Subject: v.Subject}).Sentence()
		}
		return w
	case n == nil:
		return refusal(s, t)
	case v != nil:
		return v
	}
	x.Place(t, n)
	return nil
}
