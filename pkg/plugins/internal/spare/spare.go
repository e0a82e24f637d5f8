// Package spare says which pods may leave for nobody's sake, for plugins that name some.
package spare

import (
	"strconv"

	"hekla.sh/hekla/pkg/cluster"
)

// Marked reports whether a pod is marked as one that may be evicted (law P2). byDefault is the compatibility switch of that
// name.
func Marked(t *cluster.Task, byDefault bool) bool {
	mark, ok := t.Mark()
	if !ok {
		return byDefault
	}
	return Reads(mark, byDefault)
}

// Reads reports whether a mark says yes (law P2).
func Reads(mark string, byDefault bool) bool {
	if !byDefault {
		return mark == "true"
	}
	isMarked, err := strconv.ParseBool(mark)
	return err == nil && isMarked
}

// KeepsItsGang reports whether a job is still a gang without a task and those that leave before it, so many in sum and of each
// role (law J2).
func KeepsItsGang(j *cluster.Job, t *cluster.Task, leaving map[string]int, sum int) bool {
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
