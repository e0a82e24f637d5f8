package gang

// Leaving is tasks of one job that are to leave and are in its counts still. The zero value is none.
type Leaving struct {
	sum        int
	ofRole     map[string]int
	ofSubgroup map[*Subgroup]int
}

// Add takes in a task of a role and a subgroup.
func (l *Leaving) Add(role string, g *Subgroup) {
	if l.ofRole == nil {
		l.ofRole, l.ofSubgroup = map[string]int{}, map[*Subgroup]int{}
	}
	l.sum++
	l.ofRole[role]++
	l.ofSubgroup[g]++
}

// Keeps reports whether the gang still has its minimum, of all its pods, of each role, and of a subgroup, without
// one task of the role and the subgroup and those that leave before it (law J2). A subgroup is a gang of its own: one that is complete stays so, and one
// that is broken already has nothing to keep.
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

// breaks reports whether a subgroup that has so many tasks would be broken by the leave of some.
func (g *Subgroup) breaks(have, leave int) bool {
	return have >= g.Policy.Size && have-leave < g.Policy.Size
}

// Kept reports whether no subgroup was broken by the leave of so many of its tasks, which are not in its counts any more (law J2).
func (x *Gang) Kept(left map[*Subgroup]int) bool {
	for _, g := range x.subgroups {
		if leave := left[g]; leave > 0 && g.breaks(g.Ready()+leave, leave) {
			return false
		}
	}
	return true
}
