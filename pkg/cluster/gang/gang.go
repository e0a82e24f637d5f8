package gang

import (
	"cmp"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Counts is the number of tasks in each status.
type Counts [NumStatuses]int

// ready is the number of tasks that count for a minimum: placed, running, or succeeded.
func (c *Counts) ready() int {
	return c[Allocated] + c[Binding] + c[Awaited] + c[Bound] + c[Running] + c[Unknown] + c[Succeeded]
}

// valid is the number of tasks that may ever count for a minimum.
func (c *Counts) valid() int { return c.ready() + c[Pending] + c[Pipelined] }

// RoleMinimum is how many tasks of a role must start together.
type RoleMinimum struct {
	Role    string
	Minimum int
}

// Gang has the counts of a job's tasks, and how many of them must start together.
type Gang struct {
	MinMember    int
	RoleMinimums []RoleMinimum // sorted by role
	// Proximity is how close to each other all tasks must or should be, nil if that does not matter.
	Proximity *Proximity

	root     Subgroup // the tree, with the counts of the job
	roles    map[string]*Counts
	policies []*policy
	leaves   []*Subgroup // of the tree, by policy and then by values
}

// Read takes the minimums and subgroup policies from a PodGroup. Its tasks are then in no subgroup, and must be
// assigned again.
func (g *Gang) Read(group *schedulingv1beta1.PodGroup) {
	g.ReadMinimums(group)
	g.Proximity = proximityOf(group.Spec.NetworkTopology)
	g.readPolicies(group)
}

// ReadMinimums takes the minimums of the job and of its roles from a PodGroup.
func (g *Gang) ReadMinimums(group *schedulingv1beta1.PodGroup) {
	g.MinMember = max(int(group.Spec.MinMember), 0)
	g.RoleMinimums = g.RoleMinimums[:0]
	for role, minimum := range group.Spec.MinTaskMember {
		if minimum > 0 {
			g.RoleMinimums = append(g.RoleMinimums, RoleMinimum{Role: role, Minimum: int(minimum)})
		}
	}
	slices.SortFunc(g.RoleMinimums, func(a, b RoleMinimum) int { return cmp.Compare(a.Role, b.Role) })
}

// Lower sets the minimum of the job, if that is larger. The minimums of its roles then do not count.
func (g *Gang) Lower(minimum int) {
	if minimum < g.MinMember {
		g.MinMember, g.RoleMinimums = minimum, g.RoleMinimums[:0]
	}
}

// Add counts a task by its status, for the gang, its role and its leaf. With -1 it removes the task.
func (g *Gang) Add(s Status, role string, leaf *Subgroup, sign int) {
	g.root.counts[s] += sign
	if leaf != nil {
		leaf.Count(s, sign)
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

// Counts returns the number of tasks in each status.
func (g *Gang) Counts() Counts { return g.root.counts }

// Roles returns the same for each role that a task has had. The caller must not change the map.
func (g *Gang) Roles() map[string]*Counts { return g.roles }

// Count returns the number of tasks in a status.
func (g *Gang) Count(s Status) int { return g.root.counts[s] }

// Evictable is the number of tasks that may be evicted by their status (rule P4). Stand-ins are not among them.
func (g *Gang) Evictable() int { return g.root.counts[Bound] + g.root.counts[Running] }

// Staying is the number of tasks that have a node or are pipelined to one, and are not leaving it.
func (g *Gang) Staying() int {
	return g.root.counts[Pipelined] + g.root.counts[Allocated] + g.root.counts[Binding] + g.root.counts[Awaited] + g.Evictable() + g.root.counts[Unknown]
}

// Ready is the number of tasks that count for the minimum: placed, running, or succeeded.
func (g *Gang) Ready() int { return g.root.counts.ready() }

// RoleReady is the same for one role.
func (g *Gang) RoleReady(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.ready()
	}
	return 0
}

// Valid is the number of tasks that may ever count for the minimum: all that are not failed or leaving.
func (g *Gang) Valid() int { return g.root.counts.valid() }

// RoleValid is the same for one role.
func (g *Gang) RoleValid(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.valid()
	}
	return 0
}

// ChecksRoles reports whether the minimums of the roles count. As in Volcano they do not if the minimum of the job is
// smaller than their sum. Then any tasks are enough.
func (g *Gang) ChecksRoles() bool {
	sum := 0
	for _, r := range g.RoleMinimums {
		sum += r.Minimum
	}
	return sum > 0 && g.MinMember >= sum
}

// Lacks returns how many more tasks must be placed before the job may start, by its minimum and those of its roles.
func (g *Gang) Lacks() int {
	lacks := max(g.MinMember-g.Ready(), g.root.lacks(false))
	if !g.ChecksRoles() {
		return max(lacks, 0)
	}
	roles := 0
	for _, r := range g.RoleMinimums {
		roles += max(r.Minimum-g.RoleReady(r.Role), 0)
	}
	return max(lacks, roles)
}

// IsWhole reports whether the gang lacks no tasks.
func (g *Gang) IsWhole() bool {
	if g.Ready() < g.MinMember || g.root.isInner && !g.root.IsWhole() {
		return false
	}
	return !g.ChecksRoles() || !slices.ContainsFunc(g.RoleMinimums, func(r RoleMinimum) bool { return g.RoleReady(r.Role) < r.Minimum })
}

// LacksPromises is Lacks with pipelined tasks counted as placed.
func (g *Gang) LacksPromises() int {
	lacks := max(g.MinMember-g.Ready()-g.root.counts[Pipelined], g.root.lacks(true))
	if !g.ChecksRoles() {
		return max(lacks, 0)
	}
	roles := 0
	for _, r := range g.RoleMinimums {
		roles += max(r.Minimum-g.rolePromised(r.Role), 0)
	}
	return max(lacks, roles)
}

// rolePromised is how many tasks of a role are placed or pipelined.
func (g *Gang) rolePromised(role string) int {
	if counts := g.roles[role]; counts != nil {
		return counts.ready() + counts[Pipelined]
	}
	return 0
}

// WantsPromise reports whether pipelining one more task of a role brings the job closer to its start: the role still
// lacks tasks, or the job lacks any tasks besides those that roles lack.
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
	return g.MinMember-g.Ready()-g.root.counts[Pipelined] > reserved
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
