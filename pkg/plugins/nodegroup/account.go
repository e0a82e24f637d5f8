package nodegroup

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// account is what the pods of a queue use of a node group that the queue has a limit for.
type account struct {
	queue, group string
	limit        resources.Limits
	used         resources.Vector
	answers      []answer // that were given, and stand until they are wrong
}

// answer is what was said of all nodes of the group to a class.
type answer struct {
	class   *cluster.Class
	refused bool
}

// entry is what a task is counted as.
type entry struct {
	account *account
	request resources.Vector
}

// refuses reports whether a pod of a class would bring the queue above its limit, and remembers what it said.
func (a *account) refuses(k *cluster.Class) bool {
	refused := a.isExceededBy(k.Request)
	for i := range a.answers {
		if a.answers[i].class == k {
			a.answers[i].refused = refused
			return refused
		}
	}
	a.answers = append(a.answers, answer{class: k, refused: refused})
	return refused
}

func (a *account) isExceededBy(request resources.Vector) bool {
	for d, amount := range request {
		limit, isLimited := a.limit.At(resources.Dim(d))
		if isLimited && amount > 0 && a.used.At(resources.Dim(d))+amount > limit {
			return true
		}
	}
	return false
}

// reconsider reports whether an answer that was given is wrong now. It forgets those of classes that nobody has.
func (a *account) reconsider() bool {
	a.answers = slices.DeleteFunc(a.answers, func(given answer) bool { return !given.class.InUse() })
	isWrong := false
	for i := range a.answers {
		given := &a.answers[i]
		if refused := a.isExceededBy(given.class.Request); refused != given.refused {
			given.refused, isWrong = refused, true
		}
	}
	return isWrong
}

// recount counts the pods of all accounts anew, and has the nodes looked at again of which something else is true now.
func (p *plugin) recount() {
	changed, next, ok := p.model.Changes(p.seen)
	if ok && p.seen != 0 && len(changed) == 0 {
		return
	}
	p.seen = next
	clear(p.counted)
	for _, a := range p.accounts {
		a.used = nil
	}
	if len(p.accounts) == 0 {
		return
	}
	for _, n := range p.model.Nodes() {
		if group := groupOf(n); group != "" {
			for _, t := range n.Tasks() {
				p.count(t, group)
			}
		}
	}
	for _, a := range p.accounts {
		if a.reconsider() {
			p.eachNode(a.group, p.model.Touch)
		}
	}
}

// count enters a task that stands on a node of a group into its account, if it has one.
func (p *plugin) count(t *cluster.Task, group string) *account {
	if !t.Status.Counts() || t.Job == nil || t.Job.Queue == nil {
		return nil
	}
	r := p.rules[t.Job.Queue.Name]
	if r == nil {
		return nil
	}
	a := r.account(group)
	if a == nil {
		return nil
	}
	p.counted[t] = &entry{account: a, request: t.Request()}
	a.used.Add(t.Request())
	return a
}

// TaskMoved keeps the accounts while pods are placed, evicted, and taken back.
func (p *plugin) TaskMoved(t *cluster.Task) {
	if len(p.accounts) == 0 {
		return
	}
	var before, now *account
	if counted := p.counted[t]; counted != nil {
		before = counted.account
		before.used.Sub(counted.request)
		delete(p.counted, t)
	}
	if group := groupOf(t.Node); group != "" {
		now = p.count(t, group)
	}
	if before != nil && before.reconsider() {
		p.eachNode(before.group, p.model.Outdate)
	}
	if now != nil && now != before && now.reconsider() {
		p.eachNode(now.group, p.model.Outdate)
	}
}

func (p *plugin) eachNode(group string, do func(*cluster.Node)) {
	for _, n := range p.model.Nodes() {
		if groupOf(n) == group {
			do(n)
		}
	}
}
