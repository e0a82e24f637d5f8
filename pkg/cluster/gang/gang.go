package gang

import (
	"cmp"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Counts is how many tasks are in each status.
type Counts [NumStatuses]int

// ready is how many count towards a minimum: placed, running, or done.
func (c *Counts) ready() int {
	return c[Allocated] + c[Binding] + c[Bound] + c[Running] + c[Unknown] + c[Succeeded]
}

// valid is how many could ever count towards a minimum.
func (c *Counts) valid() int { return c.ready() + c[Pending] + c[Pipelined] }

// RoleMinimum is how many tasks of a role must start together.
type RoleMinimum struct {
	Role    string
	Minimum int
}

// Gang is how many tasks of a job stand where, and how many of them must start together.
type Gang struct {
	MinMember    int
	RoleMinimums []RoleMinimum // sorted by role
	// Proximity is how close to each other all its tasks must, or should, be; nil if it says nothing of that.
	Proximity *Proximity

	counts    Counts
	roles     map[string]*Counts
	policies  []*SubgroupPolicy
	subgroups []*Subgroup
}

// Read takes over what a PodGroup says. Its tasks are in no subgroup afterwards, and are to be assigned anew.
func (g *Gang) Read(group *schedulingv1beta1.PodGroup) {
	g.MinMember = max(int(group.Spec.MinMember), 0)
	g.RoleMinimums = g.RoleMinimums[:0]
	for role, minimum := range group.Spec.MinTaskMember {
		if minimum > 0 {
			g.RoleMinimums = append(g.RoleMinimums, RoleMinimum{Role: role, Minimum: int(minimum)})
		}
	}
	slices.SortFunc(g.RoleMinimums, func(a, b RoleMinimum) int { return cmp.Compare(a.Role, b.Role) })
	g.Proximity = proximityOf(group.Spec.NetworkTopology)
	g.readPolicies(group)
}

// Add counts a task by its status, for the gang, its role and its subgroup, or with -1 counts it no more.
func (g *Gang) Add(s Status, role string, of *Subgroup, sign int) {
	g.counts[s] += sign
	if of != nil {
		of.counts[s] += sign
	}
	counts := g.roles[role]
	if counts == nil {
		if g.roles == nil {
			g.roles = map[string]*Counts{}
		}
		counts = &Counts{}
		g.roles[role] = counts
	}
	counts[s] += sign
}

// Counts is how many tasks are in each status.
func (g *Gang) Counts() Counts { return g.counts }

// Roles is the same for each role that a task has had. The caller must not change it.
func (g *Gang) Roles() map[string]*Counts { return g.roles }

// Count is the number of tasks in a status.
func (g *Gang) Count(s Status) int { return g.counts[s] }

// Evictable is the number of tasks that may be evicted as far as their status goes (law P4).
func (g *Gang) Evictable() int { return g.counts[Bound] + g.counts[Running] }

// Staying is the number of tasks that have a node, or the promise of one, and are not on their way out.
func (g *Gang) Staying() int {
	return g.counts[Pipelined] + g.counts[Allocated] + g.counts[Binding] + g.Evictable() + g.counts[Unknown]
}

// Ready is the number of tasks that count towards the minimum: placed, running, or done.
func (g *Gang) Ready() int { return g.counts.ready() }

// RoleReady is the same for one role.
func (g *Gang) RoleReady(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.ready()
	}
	return 0
}

// Valid is the number of tasks that could ever count towards the minimum: all that are not failed or leaving.
func (g *Gang) Valid() int { return g.counts.valid() }

// RoleValid is the same for one role.
func (g *Gang) RoleValid(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.valid()
	}
	return 0
}

// ChecksRoles reports whether the minimums of the roles bind. As in Volcano they do not when the job asks for less
// than they add up to: then any tasks will do.
func (g *Gang) ChecksRoles() bool {
	sum := 0
	for _, r := range g.RoleMinimums {
		sum += r.Minimum
	}
	return sum > 0 && g.MinMember >= sum
}

// Lacks returns how many more tasks must be placed before the job may start, counting each role that has a minimum.
func (g *Gang) Lacks() int {
	lacks := max(g.MinMember-g.Ready(), g.lacksOfSubgroups(false))
	if !g.ChecksRoles() {
		return max(lacks, 0)
	}
	roles, placed := 0, 0
	for _, r := range g.RoleMinimums {
		have := g.RoleReady(r.Role)
		roles += max(r.Minimum-have, 0)
		placed += min(have, r.Minimum)
	}
	return max(lacks, roles)
}

// LacksPromises is Lacks with the tasks that are promised a node counted as placed.
func (g *Gang) LacksPromises() int {
	lacks := max(g.MinMember-g.Ready()-g.counts[Pipelined], g.lacksOfSubgroups(true))
	if !g.ChecksRoles() {
		return max(lacks, 0)
	}
	roles := 0
	for _, r := range g.RoleMinimums {
		roles += max(r.Minimum-g.rolePromised(r.Role), 0)
	}
	return max(lacks, roles)
}

// rolePromised is how many tasks of a role are placed or promised a node.
func (g *Gang) rolePromised(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.ready() + counts[Pipelined]
	}
	return 0
}

// WantsPromise reports whether promising a node to one more task of a role brings the job nearer to its start: the role
// still lacks tasks, or any task will do beside those that roles lack.
func (g *Gang) WantsPromise(role string) bool {
	if !g.ChecksRoles() {
		return g.LacksPromises() > 0
	}
	reserved := 0
	for _, r := range g.RoleMinimums {
		lacks := max(r.Minimum-g.rolePromised(r.Role), 0)
		if lacks > 0 && r.Role == role {
			return true
		}
		reserved += lacks
	}
	return g.MinMember-g.Ready()-g.counts[Pipelined] > reserved
}

// LacksOf returns how many more tasks of a role must be placed before the job may start.
func (g *Gang) LacksOf(role string) int {
	if !g.ChecksRoles() {
		return 0
	}
	for _, r := range g.RoleMinimums {
		if r.Role == role {
			return max(r.Minimum-g.RoleReady(role), 0)
		}
	}
	return 0
}
