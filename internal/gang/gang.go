package gang

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Place places as many of the tasks as their job needs to start. It returns nil if the job is ready then, and its tasks
// are placed in the open transaction. Otherwise it returns why not, and has changed nothing.
//
// It tries the tasks in the given order. If that fails, it tries the tasks first that fit on no node: the others may
// have taken the only node for them. Then it tries large tasks before small ones: a small task can take the last room
// that fits a large one, and the opposite is rare. If there are more tasks than the job needs, the small ones alone may
// be enough, and are tried last. Pods that share an unbound claim must be together, so their first pod is tried on
// further nodes. Pods whose claims list alternative devices are tried with later ones, because the first alternative of
// one may be made of the devices of several.
//
// A gang with a network topology is placed as a whole in the lowest and best HyperNode that can hold it. The same holds
// for each of its subgroups. If it must be in one and none can hold it, the verdict is about the HyperNode in which
// most tasks were placed.
func Place(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	if j.Proximity != nil || len(j.Subgroups()) > 0 {
		return placeClose(s, j, tasks)
	}
	return placeHere(s, j, tasks)
}

// placeHere is Place in the current domain.
func placeHere(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	v := inSomeOrder(s, tasks, j.Lacks(), func(order []*cluster.Task) (*verdict.Verdict, []*cluster.Task) { return tryGang(s, j, order) })
	if v != nil && v.Code == verdict.NotEnoughResources && withLessWanted(s, j, tasks) {
		return nil
	}
	return v
}

// The search for another order is limited. maxOrders is how many orders are tried that begin with tasks that did not
// fit. If more classes than maxRefused did not fit, the order is not the reason.
const (
	maxOrders  = 4
	maxRefused = 32
)

// try places tasks in an order, as many as are needed. If it fails, it returns why, and a task of each class that did
// not fit, and has changed nothing.
type try func(order []*cluster.Task) (*verdict.Verdict, []*cluster.Task)

// inSomeOrder tries the tasks in the given order, then those that did not fit first, then by size, and at last with the
// one first that decides where others may be. lacks is how many are needed.
func inSomeOrder(s *framework.Session, tasks []*cluster.Task, lacks int, try try) *verdict.Verdict {
	v := inOrders(s, tasks, lacks, try)
	if v != nil && v.Code == verdict.NotEnoughResources && anchored(s, tasks, lacks, try) {
		return nil
	}
	return v
}

func inOrders(s *framework.Session, tasks []*cluster.Task, lacks int, try try) *verdict.Verdict {
	v, refused := try(tasks)
	if v == nil || v.Code != verdict.NotEnoughResources && v.Code != verdict.OverShare {
		return v
	}
	w, ok := refusedFirst(s, tasks, refused, try)
	if ok {
		return nil
	}
	v = v.With(w)
	if areAlike(tasks) {
		return v
	}
	bySize := cluster.LargestFirst(tasks, s.Cluster.Total)
	w, _ = try(bySize)
	if w != nil && len(tasks) > lacks {
		slices.Reverse(bySize)
		v = v.With(w)
		w, _ = try(bySize)
	}
	if w == nil {
		return nil
	}
	return v.With(w)
}

// refusedFirst tries the orders of [Orders]. It reports whether that was successful. If not, nothing has changed. The
// verdict says why it did not fit in these orders, nil if there was none to try.
func refusedFirst(s *framework.Session, tasks []*cluster.Task, refused []*cluster.Task, try try) (why *verdict.Verdict, ok bool) {
	orders := Orders{Most: maxOrders, HasPlace: func(t *cluster.Task) bool { return s.Placer.Best(t) != nil }}
	for order := orders.After(tasks, refused); order != nil; order = orders.After(order, refused) {
		var v *verdict.Verdict
		if v, refused = try(order); v == nil {
			return nil, true
		}
		if why = why.With(v); v.Code != verdict.NotEnoughResources {
			return why, false
		}
	}
	return why, false
}

// Orders are orders of tasks that begin with those that did not fit in the order before, because others that fit
// elsewhere may have taken their nodes. A class that then does not fit is moved behind the last of them. A class of
// theirs that does not fit is moved before all. Tasks that must be near another task come first together with that one.
type Orders struct {
	Most     int                      // how many orders there are at most
	HasPlace func(*cluster.Task) bool // reports whether a task could fit if it came first

	leading []*cluster.Task
	first   []*cluster.Class
	count   int
}

// After returns the order to try after another, in which tasks of some classes did not fit, nil if there is none.
func (o *Orders) After(tasks, refused []*cluster.Task) []*cluster.Task {
	if o.count++; o.count > o.Most || len(refused) > maxRefused {
		return nil
	}
	for _, t := range refused {
		if near := attractorsOf(t, tasks, o.leading); len(near) > 0 && !slices.Contains(o.leading, t) {
			for _, u := range tasks {
				if u.Class == t.Class && !slices.Contains(near, u) {
					near = append(near, u)
				}
			}
			o.leading = append(o.leading, slices.DeleteFunc(near, func(u *cluster.Task) bool { return slices.Contains(o.leading, u) })...)
		} else if i := slices.Index(o.first, t.Class); i >= 0 {
			o.first = slices.Insert(slices.Delete(o.first, i, i+1), 0, t.Class)
		} else if o.HasPlace(t) {
			o.first = append(o.first, t.Class)
		}
	}
	order := slices.SortedStableFunc(slices.Values(tasks), func(t, u *cluster.Task) int {
		return cmp.Or(cmp.Compare(position(o.leading, t), position(o.leading, u)), cmp.Compare(position(o.first, t.Class), position(o.first, u.Class)))
	})
	if slices.Equal(order, tasks) {
		return nil // they come first already, or no node is possible for them
	}
	return order
}

// position is the index of an item in a list, or the number after the last.
func position[T comparable](list []T, item T) int {
	if i := slices.Index(list, item); i >= 0 {
		return i
	}
	return len(list)
}

// areAlike reports whether the tasks request the same.
func areAlike(tasks []*cluster.Task) bool {
	return !slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Class.Plain != tasks[0].Class.Plain })
}

// tryGang places tasks in the given order until their job is ready. If it fails, it returns why, and a task of
// each class that did not fit, and has changed nothing.
func tryGang(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) (*verdict.Verdict, []*cluster.Task) {
	x := s.Begin()
	before := j.Ready()
	var failed, refused []*cluster.Task
	var v *verdict.Verdict
	for again := true; again; {
		placed := x.Placed()
		for _, t := range tasks {
			if s.IsReady(j) {
				return nil, nil
			}
			if t.Status != cluster.Pending || !useful(j, t) || HasFailedAlike(s, failed, t) {
				continue
			}
			if w := PlaceOne(s, x, t); w != nil {
				failed, v = append(failed, t), v.With(w)
			}
		}
		if s.IsReady(j) {
			return nil, nil
		}
		// With affinity, tasks that are placed now may make nodes fit for tasks that did not fit before.
		refused = slices.Clone(failed)
		failed = slices.DeleteFunc(failed, func(t *cluster.Task) bool { return s.Cluster.DependsOnPods(t.Class) })
		again = x.Placed() > placed && len(failed) < len(refused)
	}
	refusal := verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob}
	if v != nil {
		refusal = *v // a plugin may keep the verdict that it returned
	}
	refusal.Wanted = max(j.MinMember, j.Lacks()) // its subgroups may need more than its minimum
	if j.Lacks() == 0 {                          // then something else than its own numbers keeps it from being ready
		refusal.Wanted = max(j.MinMember, before+1)
	}
	refusal.Placed = min(j.Ready(), refusal.Wanted-j.Lacks()) // surplus tasks of one role do not replace those of another
	if refusal.Code == verdict.NotEnoughResources {
		refusal.Fitting = namesOf(x.Tasks())
	}
	x.Undo()
	waitForRoom(s, j, &refusal, refused)
	return &refusal, cluster.OnePerClass(refused)
}

// waitForRoom makes a job that does not fit wait for more room, whatever else it may lack. It cannot start before there
// are places for as many pods of one class as it needs besides all its pods of other classes.
func waitForRoom(s *framework.Session, j *cluster.Job, v *verdict.Verdict, refused []*cluster.Task) {
	if v.Code != verdict.NotEnoughResources || v.Help&^(verdict.HelpNode|verdict.HelpQueue|verdict.HelpOwnQueue) != 0 || len(s.Policy.Vetoers) > 0 || j.Proximity != nil || len(j.Subgroups()) > 0 {
		return
	}
	for _, t := range cluster.OnePerClass(refused) {
		others := 0
		for _, other := range j.Tasks() {
			if other.Status == cluster.Pending && other.Class != t.Class {
				others++
			}
		}
		if needed := s.LacksToStart(j) - others; needed > 0 && s.WaitForRoom(j, v, t.Class, needed) {
			return
		}
	}
}

// namesOf returns the names of the pods of some tasks of a job, nil if there are none.
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

// useful reports whether placing a task brings its job closer to its start: its role still lacks tasks, or the job
// lacks any tasks besides those that roles lack.
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

// IsPartOfCluster reports whether a refusal by a queue's limit follows from the size of the cluster. That is so for a
// share, and for a ceiling that the spec of no queue sets.
func IsPartOfCluster(v *verdict.Verdict) bool {
	return v.Code == verdict.OverShare || v.Code == verdict.OverCluster || v.Code == verdict.TooLargeForQueue && v.Help&verdict.HelpNode != 0
}

// WouldRepeat reports whether a task for which nodes have no room would get the same refusal as before: nothing but
// nodes refuses it, and their room is promised to others as it was then.
func WouldRepeat(s *framework.Session, t *cluster.Task, refused *verdict.Verdict) bool {
	v := s.MayAllocate(t)
	if v != nil && !IsPartOfCluster(v) || v == nil && s.MayBind(t) != nil {
		return false
	}
	return s.IsPromisedToOthers(t) == refused.Promised
}

// place places one task on the best node of the current domain.
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
		// A share is a part of the cluster. If no node has room either, the verdict must say that the cluster is too
		// small.
		w := refusal(s, t)
		if w.Help != verdict.HelpStock { // it lacks a claim
			w.Help |= v.Help
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

// refusal is the verdict on a task that fits on no node.
func refusal(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode}
	if s.Cluster.DependsOnPods(t.Class) {
		v.Help |= verdict.HelpPod
	}
	v.Nodes, v.Shortages = s.Placer.Explain(t)
	v.Promised = s.IsPromisedToOthers(t)
	if supplier, ok := s.Placer.(framework.Supplier); ok && t.Class.NeedsSupplies() {
		v.Help |= verdict.HelpSupply
		v.Detail = supplier.Lacking(t)
		if lack := s.MissingClaim(t); lack.Stock != nil {
			return v.Await(lack, 0)
		}
	}
	return v
}

// HasFailedAlike reports whether a task cannot fit because another of its class did not. With vetoers, which look at
// the whole pod, it is always false.
func HasFailedAlike(s *framework.Session, failed []*cluster.Task, t *cluster.Task) bool {
	for _, f := range failed {
		if f == t || f.Class == t.Class && len(s.Policy.Vetoers) == 0 {
			return true
		}
	}
	return false
}
