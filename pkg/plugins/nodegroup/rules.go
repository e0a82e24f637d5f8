package nodegroup

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// rules are the settings of a queue about node groups.
type rules struct {
	required, preferred []string // groups to use
	forbidden, avoided  []string // groups to avoid, always or if possible

	limits   string // the annotation
	problem  string // what is wrong with the annotation, "" if nothing is
	accounts []*account
}

// isSilent reports whether the queue names no group.
func (r *rules) isSilent() bool {
	return len(r.required)+len(r.preferred)+len(r.forbidden)+len(r.avoided) == 0
}

// allow reports whether pods of the queue may run on nodes of a group.
func (r *rules) allow(group string) bool {
	switch {
	case slices.Contains(r.avoided, group):
		return true
	case slices.Contains(r.forbidden, group):
		return false
	}
	return len(r.required)+len(r.preferred) == 0 || slices.Contains(r.required, group) || slices.Contains(r.preferred, group)
}

// account returns the account of a group, nil if the queue has no limit for it.
func (r *rules) account(group string) *account {
	for _, a := range r.accounts {
		if a.group == group {
			return a
		}
	}
	return nil
}

func (r *rules) equal(o *rules) bool {
	return slices.Equal(r.required, o.required) && slices.Equal(r.preferred, o.preferred) && slices.Equal(r.forbidden, o.forbidden) &&
		slices.Equal(r.avoided, o.avoided) && r.limits == o.limits
}

// readRules updates the rules from the queues, and reports whether any have changed. Rules that have not changed stay,
// with their accounts.
func (p *plugin) readRules() bool {
	now, haveChanged := map[string]*rules{}, false
	p.accounts = p.accounts[:0]
	for _, q := range p.model.Queues() {
		r := p.rulesOf(q)
		if r == nil {
			continue
		}
		if before := p.rules[q.Name]; before != nil && before.equal(r) {
			r = before
		} else {
			haveChanged = true
			p.readLimits(q, r)
		}
		now[q.Name] = r
		p.accounts = append(p.accounts, r.accounts...)
	}
	haveChanged = haveChanged || len(now) != len(p.rules)
	p.rules = now
	return haveChanged
}

// rulesOf returns the rules of a queue without its limits, nil if it has none.
func (p *plugin) rulesOf(q *cluster.Queue) *rules {
	if q.Object == nil {
		return nil
	}
	limits := q.Object.Annotations[schedulingv1beta1.NodeGroupResourceLimitsKey]
	affinity := p.affinityOf(q)
	if affinity == nil && limits == "" {
		return nil
	}
	r := &rules{limits: limits}
	if affinity != nil && affinity.NodeGroupAffinity != nil {
		r.required = distinct(affinity.NodeGroupAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		r.preferred = distinct(affinity.NodeGroupAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity != nil && affinity.NodeGroupAntiAffinity != nil {
		r.forbidden = distinct(affinity.NodeGroupAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		r.avoided = distinct(affinity.NodeGroupAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return r
}

func (p *plugin) affinityOf(q *cluster.Queue) *schedulingv1beta1.Affinity {
	for ; q != nil; q = q.Parent {
		if q.Object != nil && q.Object.Spec.Affinity != nil {
			return q.Object.Spec.Affinity
		}
		if !p.isHierarchical {
			break
		}
	}
	return nil
}

// distinct returns the groups of a list without repetitions.
func distinct(groups []string) []string {
	var all []string
	for _, group := range groups {
		if !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

// readLimits opens an account for each group for which a queue has a limit.
func (p *plugin) readLimits(q *cluster.Queue, r *rules) {
	if r.limits == "" {
		return
	}
	byGroup := map[string]corev1.ResourceList{}
	err := bounds.UnmarshalJSON([]byte(r.limits), &byGroup)
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		for _, name := range slices.Sorted(maps.Keys(byGroup[group])) {
			if quantity := byGroup[group][name]; quantity.Sign() < 0 && err == nil {
				err = fmt.Errorf("%s of node group %s is %s, below zero", name, group, quantity.String())
			}
		}
		r.accounts = append(r.accounts, &account{group: group, limit: p.model.Resources.Limits(byGroup[group])})
	}
	if err != nil {
		r.accounts = nil
		r.problem = fmt.Sprintf("node(s) were not for the queue: annotation %s of queue %s cannot be read: %v",
			schedulingv1beta1.NodeGroupResourceLimitsKey, q.Name, err)
	}
}
