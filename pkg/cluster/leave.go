package cluster

import "strconv"

// IsMarked reports whether the pod is marked as preemptable (rule P2). byDefault is the answer for a pod without a
// mark. Pods of other schedulers are never evicted, whatever their marks.
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

// IsYes reports whether a mark means that a pod may be evicted (rule P2).
func IsYes(mark string, byDefault bool) bool {
	if !byDefault {
		return mark == "true"
	}
	isMarked, err := strconv.ParseBool(mark)
	return err == nil && isMarked
}

// KeepsMinimum reports whether the gang keeps its minimum without one of its tasks and those that leave before it: see
// [gang.Gang.Keeps].
func (j *Job) KeepsMinimum(t *Task, leaving Leaving) bool {
	return j.Keeps(t.Role, t.Subgroup, leaving)
}

// KeptSubgroups reports whether no subgroup of the job became incomplete when some of its tasks left: see
// [gang.Gang.Kept].
func (j *Job) KeptSubgroups(left []*Task) bool {
	count := map[*Subgroup]int{}
	for _, t := range left {
		count[t.Subgroup]++
	}
	return j.Kept(count)
}
