package gang

// Leaving is a set of tasks of one job that will be evicted and still are in its counts. The zero value is empty.
type Leaving struct {
	sum        int
	ofRole     map[string]int
	ofSubgroup map[*Subgroup]int
}

// Add adds a task of a role and a subgroup.
func (l *Leaving) Add(role string, g *Subgroup) {
	if l.ofRole == nil {
		l.ofRole, l.ofSubgroup = map[string]int{}, map[*Subgroup]int{}
	}
	l.sum++
	l.ofRole[role]++
	l.ofSubgroup[g]++
}

// Keeps reports whether the gang keeps its minimum, and those of its roles and of a subgroup, without one more task of
// the role and the subgroup, and without those that leave (rule J2). A whole leaf must stay whole. An
// incomplete one has nothing to keep.
func (x *Gang) Keeps(role string, g *Subgroup, leaving Leaving) bool {
	if x.Ready()-leaving.sum-1 < x.MinMember {
		return false
	}
	if x.ChecksRoles() {
		for _, r := range x.RoleMinimums {
			if r.Role == role && x.RoleReady(r.Role)-leaving.ofRole[r.Role]-1 < r.Minimum {
				return false
			}
		}
	}
	return g == nil || !g.breaks(g.Ready()-leaving.ofSubgroup[g], 1)
}

// breaks reports whether a subgroup with so many tasks becomes incomplete if some leave.
func (g *Subgroup) breaks(have, leave int) bool {
	return have >= g.Size && have-leave < g.Size
}

// Kept reports whether no subgroup became incomplete when so many of its tasks left, which are no longer in its counts
// (rule J2).
func (x *Gang) Kept(left map[*Subgroup]int) bool {
	for _, g := range x.leaves {
		if leave := left[g]; leave > 0 && g.breaks(g.Ready()+leave, leave) {
			return false
		}
	}
	return true
}
