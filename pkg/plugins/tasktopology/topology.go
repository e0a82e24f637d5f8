package tasktopology

import (
	"slices"
	"strings"
)

// topology is what a PodGroup says about its roles.
type topology struct {
	together, apart [][]string
}

// wish is what a class prefers of a node.
type wish struct {
	bonds bonds
	peers peers
}

// bonds are the affinities of a role to roles, above zero for affinity, below for anti-affinity.
type bonds map[string]int64

func read(affinity, antiAffinity string) topology {
	return topology{together: groups(affinity), apart: groups(antiAffinity)}
}

// groups reads groups of roles. It leaves out empty groups, and repetitions in a group.
func groups(text string) [][]string {
	var all [][]string
	for _, part := range strings.Split(text, ";") {
		if group := list(part); len(group) > 0 {
			all = append(all, group)
		}
	}
	return all
}

// list reads roles separated by commas.
func list(text string) []string {
	var roles []string
	for _, role := range strings.Split(text, ",") {
		if role = strings.TrimSpace(role); role != "" && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles
}

// of returns the bonds of a role.
func (t topology) of(role string) bonds {
	own := bonds{}
	for _, other := range mates(t.together, role) {
		own[other]++
	}
	for _, other := range mates(t.apart, role) {
		own[other]--
	}
	return own
}

// mates returns the roles that share a group with a role, each once. A role alone in a group is its own mate.
func mates(groups [][]string, role string) []string {
	var all []string
	for _, group := range groups {
		if !slices.Contains(group, role) {
			continue
		}
		for _, other := range group {
			if (other != role || len(group) == 1) && !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	return all
}

// The ranks of bonds, see invariant 4 of the package.
const (
	unbound = iota
	apartFromOthers
	withItself
	withOthers
	apartFromItself
)

// ranks returns the ranks of all roles that the PodGroup names, in its affinities or its order.
func (t topology) ranks(order string) map[string]rank {
	ranks := map[string]rank{}
	raise := func(groups [][]string, alone, among int) {
		for _, group := range groups {
			bond := among
			if len(group) == 1 {
				bond = alone
			}
			for _, role := range group {
				r := ranks[role]
				r.bond = max(r.bond, bond)
				ranks[role] = r
			}
		}
	}
	raise(t.together, withItself, withOthers)
	raise(t.apart, apartFromItself, apartFromOthers)
	listed := list(order)
	for i, role := range listed {
		r := ranks[role]
		r.listed = len(listed) - i
		ranks[role] = r
	}
	return ranks
}
