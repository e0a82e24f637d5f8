package cluster

import "strconv"

// IsMarked reports whether the pod is marked as one that may be evicted (law P2). byDefault says that one without a mark is. What
// belongs to another scheduler is not this one's to evict, whatever its mark.
func (t *Task) IsMarked(byDefault bool) bool {
	if t.Job != nil && t.Job.IsForeign {
		return false
	}
	mark, ok := t.Mark()
	if !ok {
		return byDefault
	}
	return IsYes(mark, byDefault)
}

// IsYes reports whether a mark says that a pod may be evicted (law P2).
func IsYes(mark string, byDefault bool) bool {
	if !byDefault {
		return mark == "true"
	}
	isMarked, err := strconv.ParseBool(mark)
	return err == nil && isMarked
}

// Leaving is tasks of one job that are to leave and are in its counts still. The zero value is none.
type Leaving struct {
	sum        int
	ofRole     map[string]int
	ofSubgroup map[*Subgroup]int
}

// Add takes in a task.
func (l *Leaving) Add(t *Task) {
	if l.ofRole == nil {
		l.ofRole, l.ofSubgroup = map[string]int{}, map[*Subgroup]int{}
	}
	l.sum++
	l.ofRole[t.Role]++
	l.ofSubgroup[t.Subgroup]++
}

// KeepsMinimum reports whether the gang still has its minimum, of all its pods, of each role, and of the task's subgroup, without
// one of its tasks and those that leave before it (law J2). A subgroup is a gang of its own: one that is complete stays so, and one
// that is broken already has nothing to keep.
func (j *Job) KeepsMinimum(t *Task, leaving Leaving) bool {
	if j.Ready()-leaving.sum-1 < j.MinMember {
		return false
	}
	if j.ChecksRoles() {
		for _, r := range j.RoleMinimums {
			if r.Role == t.Role && j.RoleReady(r.Role)-leaving.ofRole[r.Role]-1 < r.Minimum {
				return false
			}
		}
	}
	g := t.Subgroup
	return g == nil || !g.breaks(g.Ready()-leaving.ofSubgroup[g], 1)
}

// breaks reports whether a subgroup that has so many tasks would be broken by the leave of some.
func (g *Subgroup) breaks(have, leave int) bool {
	return have >= g.Policy.Size && have-leave < g.Policy.Size
}

// KeptSubgroups reports whether no subgroup of the job was broken by the leave of some of its tasks, which are not in its counts any
// more (law J2).
func (j *Job) KeptSubgroups(left []*Task) bool {
	count := map[*Subgroup]int{}
	for _, t := range left {
		count[t.Subgroup]++
	}
	for _, g := range j.subgroups {
		if leave := count[g]; leave > 0 && g.breaks(g.Ready()+leave, leave) {
			return false
		}
	}
	return true
}
