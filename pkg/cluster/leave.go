package cluster

import "strconv"

// IsMarked reports whether the pod is marked as one that may be evicted (law P2). byDefault says that one without a mark is.
func (t *Task) IsMarked(byDefault bool) bool {
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

// KeepsMinimum reports whether the gang still has its minimum, of all its pods and of each role, without one of its tasks and
// those that leave before it, so many in sum and of each role (law J2).
func (j *Job) KeepsMinimum(t *Task, leaving map[string]int, sum int) bool {
	if j.Ready()-sum-1 < j.MinMember {
		return false
	}
	if j.ChecksRoles() {
		for _, r := range j.RoleMinimums {
			if r.Role == t.Role && j.RoleReady(r.Role)-leaving[r.Role]-1 < r.Minimum {
				return false
			}
		}
	}
	return true
}
