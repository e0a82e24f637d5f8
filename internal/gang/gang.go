package gang

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Place places as many of the tasks as their job needs to start. It returns nil if the job is ready then; what was placed
// is in the transaction. Otherwise it returns why not, and the transaction is as it was.
//
// The tasks are placed in the order given. If that fails, those that found no place are tried first, since the others may have taken
// the only node that they can go to. Then, if they are not all alike, the large are tried before the small:
// a small task can take the last room that fits a large one, hardly ever the other way round. If there are more tasks than
// the job needs, the small alone may do, so they are tried last. Pods that share a claim which is bound to nothing yet must be together,
// so the first of them is tried on further nodes.
//
// A gang that is to be close to each other in the network is placed whole in the lowest and best HyperNode that holds it, and so
// is each of its subgroups. If that must be and none holds it, the verdict is that on the one where most was placed.
func Place(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	if j.Proximity != nil || len(j.Subgroups()) > 0 {
		return placeClose(s, j, tasks)
	}
	return placeHere(s, j, tasks)
}

// placeHere is Place where nodes are found at the moment.
func placeHere(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	v := inSomeOrder(s, j, tasks)
	if v != nil && v.Code == verdict.NotEnoughResources && anchored(s, j, tasks) {
		return nil
	}
	return v
}

// The search for another order is bounded: maxOrders is in how many the tasks of a gang are tried that begin with those that found no
// place before, and where more kinds of pods than maxRefused found none, it is room that is short.
const (
	maxOrders  = 4
	maxRefused = 32
)

// inSomeOrder places the tasks in the order given, or those first that find no place in it, or by size.
func inSomeOrder(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	v, refused := tryGang(s, j, tasks)
	if v == nil || v.Code != verdict.NotEnoughResources && v.Code != verdict.OverShare {
		return v
	}
	w, ok := refusedFirst(s, j, tasks, refused)
	if ok {
		return nil
	}
	v = v.With(w)
	if areAlike(tasks) {
		return v
	}
	bySize := s.Cluster.LargestFirst(tasks)
	w, _ = tryGang(s, j, bySize)
	if w != nil && len(tasks) > j.Lacks() {
		slices.Reverse(bySize)
		v = v.With(w)
		w, _ = tryGang(s, j, bySize)
	}
	if w == nil {
		return nil
	}
	return v.With(w)
}

// refusedFirst places the tasks with those first that found no place: others, which can go elsewhere, may have taken it. A class that
// finds no place behind them is put behind the last of them, and a class that finds none among them before them all. It reports
// whether the job is ready. If not, nothing has changed, and the verdict is why it found no place in these orders, nil if there is
// none to try.
func refusedFirst(s *framework.Session, j *cluster.Job, tasks []*cluster.Task, refused []*cluster.Class) (*verdict.Verdict, bool) {
	var first []*cluster.Class
	var why *verdict.Verdict
	for range maxOrders {
		if len(refused) > maxRefused {
			return why, false
		}
		for _, class := range refused {
			if i := slices.Index(first, class); i >= 0 {
				first = slices.Insert(slices.Delete(first, i, i+1), 0, class)
			} else if hasPlace(s, tasks, class) {
				first = append(first, class)
			}
		}
		order := slices.SortedStableFunc(slices.Values(tasks), func(t, u *cluster.Task) int {
			return cmp.Compare(rank(first, t), rank(first, u))
		})
		if slices.Equal(order, tasks) {
			return why, false // they stand first already, or no node takes them even then
		}
		var v *verdict.Verdict
		if v, refused = tryGang(s, j, order); v == nil {
			return nil, true
		}
		if why = why.With(v); v.Code != verdict.NotEnoughResources {
			return why, false
		}
		tasks = order
	}
	return why, false
}

// hasPlace reports whether a node takes a pod of the class as long as none of its gang has one.
func hasPlace(s *framework.Session, tasks []*cluster.Task, class *cluster.Class) bool {
	i := slices.IndexFunc(tasks, func(t *cluster.Task) bool { return t.Class == class && t.Status == cluster.Pending })
	return i >= 0 && s.Placer.Best(tasks[i]) != nil
}

// rank is the place of a task's class among those that come first, or the one behind them.
func rank(first []*cluster.Class, t *cluster.Task) int {
	if i := slices.Index(first, t.Class); i >= 0 {
		return i
	}
	return len(first)
}

// areAlike reports whether tasks take the same room.
func areAlike(tasks []*cluster.Task) bool {
	return !slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Class.Plain != tasks[0].Class.Plain })
}

// tryGang places tasks one after the other in the order given, until their job is ready. If it does not become so, it says why not and
// which classes found no place, and nothing has changed.
func tryGang(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) (*verdict.Verdict, []*cluster.Class) {
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
		// What was placed may draw to it what found no place before.
		refused = slices.Clone(failed)
		failed = slices.DeleteFunc(failed, func(t *cluster.Task) bool { return s.Cluster.DependsOnPods(t.Class) })
		again = x.Placed() > placed && len(failed) < len(refused)
	}
	refusal := verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob}
	if v != nil {
		refusal = *v // a plugin may keep the verdict that it gave
	}
	refusal.Wanted = max(j.MinMember, j.Lacks()) // its subgroups may need more than its minimum
	if j.Lacks() == 0 {                          // then it is not its own numbers that keep it from being ready
		refusal.Wanted = max(j.MinMember, before+1)
	}
	refusal.Placed = min(j.Ready(), refusal.Wanted-j.Lacks()) // a surplus of one role is no substitute for another
	if refusal.Code == verdict.NotEnoughResources {
		refusal.Fitting = namesOf(x.Tasks())
	}
	x.Undo()
	return &refusal, classesOf(refused)
}

// classesOf returns the classes of tasks, each once.
func classesOf(tasks []*cluster.Task) []*cluster.Class {
	var classes []*cluster.Class
	for _, t := range cluster.OnePerClass(tasks) {
		classes = append(classes, t.Class)
	}
	return classes
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

// IsPartOfCluster reports whether a refusal by a queue's limits follows from the size of the cluster: a share is a part of it, and so
// is a ceiling that no queue's object names.
func IsPartOfCluster(v *verdict.Verdict) bool {
	return v.Code == verdict.OverShare || v.Code == verdict.OverCluster || v.Code == verdict.TooLargeForQueue && v.Help&verdict.HelpNode != 0
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
		return w
	case n == nil:
		return refusal(s, t)
	case v != nil:
		return v
	}
	x.Place(t, n)
	return nil
}

// refusal is the verdict on a task that found no node.
func refusal(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode}
	if s.Cluster.DependsOnPods(t.Class) {
		v.Help |= verdict.HelpPod
	}
	v.Nodes, v.Shortages = s.Placer.Explain(t)
	if supplier, ok := s.Placer.(framework.Supplier); ok && t.Class.NeedsSupplies() {
		v.Help |= verdict.HelpSupply
		v.Detail = supplier.Lacking(t)
	}
	return v
}

// HasFailedAlike reports whether tasks that found no node say of another that it finds none either: one of them is of its class. With
// vetoers, each of which may look at the whole of a pod, a task speaks for itself alone.
func HasFailedAlike(s *framework.Session, failed []*cluster.Task, t *cluster.Task) bool {
	for _, f := range failed {
		if f == t || f.Class == t.Class && len(s.Policy.Vetoers) == 0 {
			return true
		}
	}
	return false
}
