package rules

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Ask says which pods of a job in a subtree of guaranteed shares ask for room (rule G9). A job below its minimum asks
// for all pods that it lacks at once. A job that has its minimum asks for each further pod by itself. The zero value
// asks for nothing.
type Ask struct {
	// IsSurplus is set if the job has its minimum.
	IsSurplus bool
	// Pods are those for which pods may be evicted now, in the job's order.
	Pods []*cluster.Task
	// Next is when pods may be evicted for further ones, zero if there are none.
	Next time.Time

	delay time.Duration
}

// AskOf returns what a job asks for, nothing if it is in no subtree.
func AskOf(s *framework.Session, subtrees *guarantee.Subtrees, j *cluster.Job) Ask {
	if isDaemon := subtrees != nil && subtrees.DaemonSets && isDaemonJob(j); isDaemon && !j.IsPendingAdmission() {
		return Ask{IsSurplus: j.LacksPromises() == 0, Pods: s.Pending(j)} // it waits for no delay
	}
	if !subtrees.Contains(j.QuotaNode()) || j.IsPendingAdmission() {
		return Ask{}
	}
	pending, lacks := WithoutFillers(s, j, s.Pending(j)), j.LacksPromises()
	a := Ask{IsSurplus: lacks == 0, delay: subtrees.Delay(j.QuotaNode())}
	if !a.IsSurplus {
		a.wait(s.Now, j, pending, lacks)
		return a
	}
	for _, t := range pending {
		if due := t.Created().Add(a.delay); !s.Now.Before(due) {
			a.Pods = append(a.Pods, t)
		} else if a.Next.IsZero() || due.Before(a.Next) {
			a.Next = due
		}
	}
	return a
}

// WithoutFillers returns the pods of a job without those that ask for no room: beyond the minimum of the job they
// request nothing, and a node is free for them. The action backfill places them, and no other does, whatever else is
// looked for. A pod of a subgroup is placed with the others.
func WithoutFillers(s *framework.Session, j *cluster.Job, pods []*cluster.Task) []*cluster.Task {
	if j.LacksPromises() > 0 || !slices.ContainsFunc(pods, (*cluster.Task).BestEffort) {
		return pods
	}
	isFree := map[*cluster.Class]bool{}
	for _, t := range cluster.OnePerClass(pods) {
		isFree[t.Class] = t.BestEffort() && s.MayAllocate(t) == nil && s.Placer.Best(t) != nil
	}
	return slices.DeleteFunc(slices.Clone(pods), func(t *cluster.Task) bool { return t.Subgroup == nil && isFree[t.Class] })
}

// wait sets what a job below its minimum asks for: those of its pods that have waited long enough, once they are all
// that it lacks. Without that a younger pod, which fits where the older ones do not, would cause evictions early.
func (a *Ask) wait(now time.Time, j *cluster.Job, pending []*cluster.Task, lacks int) {
	byAge := slices.SortedStableFunc(slices.Values(pending), func(x, y *cluster.Task) int { return x.Created().Compare(y.Created()) })
	if len(byAge) == 0 {
		return
	}
	due := func(i int) time.Time { return byAge[i].Created().Add(a.delay) }
	needed := oldestNeeded(j, byAge, lacks)
	if now.Before(due(needed - 1)) {
		a.Next = due(needed - 1)
		return
	}
	old := map[*cluster.Task]bool{}
	for i, t := range byAge {
		if now.Before(due(i)) {
			a.Next = due(i)
			break
		}
		old[t] = true
	}
	a.Pods = slices.DeleteFunc(slices.Clone(pending), func(t *cluster.Task) bool { return !old[t] })
}

// oldestNeeded returns how many of a job's pods, the oldest first, bring it to its minimum. Of a job with subgroups
// they are all.
func oldestNeeded(j *cluster.Job, byAge []*cluster.Task, lacks int) int {
	if len(j.Subgroups()) > 0 {
		return len(byAge)
	}
	missing := map[string]int{}
	for _, r := range j.RoleMinimums {
		if lack := j.LacksOf(r.Role); lack > 0 {
			missing[r.Role] = lack
		}
	}
	for i, t := range byAge {
		if missing[t.Role]--; missing[t.Role] <= 0 {
			delete(missing, t.Role)
		}
		if i+1 >= lacks && len(missing) == 0 {
			return i + 1
		}
	}
	return len(byAge)
}

// isPart reports whether some of the job's pods ask now, and others only later.
func (a *Ask) isPart() bool { return len(a.Pods) > 0 && !a.Next.IsZero() }

// Of returns those of the job's pods for which pods may be evicted now, all of them if there are none. The others get
// room that needs no eviction, without waiting.
func (a *Ask) Of(pods []*cluster.Task) []*cluster.Task {
	if !a.isPart() {
		return pods
	}
	return slices.DeleteFunc(slices.Clone(pods), func(t *cluster.Task) bool { return !slices.Contains(a.Pods, t) })
}

// IsEarly reports whether pods may be evicted for none of the job's pods yet.
func (a *Ask) IsEarly(now time.Time) bool { return len(a.Pods) == 0 && now.Before(a.Next) }

// AsksForMore reports whether a job that has its minimum asks for room by the rules of guaranteed shares.
func AsksForMore(s *framework.Session, j *cluster.Job) bool {
	subtrees := s.Policy.Subtrees()
	return subtrees != nil && j.Count(cluster.Pending) > 0 && j.LacksPromises() == 0 &&
		(subtrees.Contains(j.QuotaNode()) || subtrees.DaemonSets && isDaemonJob(j))
}

// isEntitledToAny reports whether the preemptor may place a pod of one of some classes in room that a queue gives.
func (g *Guaranteed) isEntitledToAny(n *quota.Node, classes []*cluster.Task) bool {
	return slices.ContainsFunc(classes, func(t *cluster.Task) bool { return g.IsEntitledTo(n, t.Request()) })
}

// refusal is what is said of a job in a subtree for which no pods are evicted.
type refusal uint8

const (
	isProtected     refusal = iota // rules protect the pods
	isTooEarly                     // the job has not waited long enough
	isNotGuaranteed                // its queue has what it is guaranteed
)

// refusalOf returns what is said of a refusal. queues are those with pods to evict. A queue that has room within its
// guarantee waits because of a fence, or of the policy of other queues, whose pods are counted.
func (g *Guaranteed) refusalOf(queues iter.Seq[*quota.Node]) refusal {
	if g == nil || !g.RanksJobs() || g.preemptor.IsPendingAdmission() || g.isDaemon {
		return isProtected
	}
	classes := cluster.OnePerClass(g.preemptor.Pending(cluster.CompareTasks))
	for n := range queues {
		if n == g.preemptor.QuotaNode() || g.Governs(n) && !g.isEntitledToAny(n, classes) {
			continue
		}
		if g.Ask.IsEarly(g.session.Now) {
			return isTooEarly
		}
		return isProtected
	}
	if len(classes) > 0 && !g.HasGuaranteeLeft(classes[0].Request()) {
		return isNotGuaranteed
	}
	return isProtected
}

// CountsPods reports whether a refusal says which rules protect pods. If not, [Guaranteed.Refine] says another reason.
func (g *Guaranteed) CountsPods(queues iter.Seq[*quota.Node]) bool {
	return g.refusalOf(queues) == isProtected
}

// Refine says of a refusal of a job in a subtree whether its queue has what it is guaranteed, or the job has not waited
// long enough. queues are those with pods to evict.
func (g *Guaranteed) Refine(v *verdict.Verdict, queues iter.Seq[*quota.Node]) {
	if g == nil || !g.RanksJobs() || g.preemptor.IsPendingAdmission() || g.isDaemon {
		return
	}
	v.RetryAt = g.Ask.Next
	switch g.refusalOf(queues) {
	case isTooEarly:
		v.Code, v.Subject, v.Spared, v.Looked = verdict.Delayed, g.preemptor.QueueName, nil, false
		v.Detail = fmt.Sprintf("may take room from others from %s on (preemption.delay %s)", g.Ask.Next.UTC().Format(time.RFC3339), g.Ask.delay)
	case isNotGuaranteed:
		v.Code, v.Subject = verdict.NotGuaranteed, g.preemptor.QueueName
		if !g.Ask.isPart() { // otherwise the search was for those that ask, and what it says may not hold for the others
			v.RetryAt = time.Time{}
		}
		v.Spared, v.Looked = nil, false
		v.Detail = g.notGuaranteed(cluster.OnePerClass(g.preemptor.Pending(cluster.CompareTasks))[0].Request())
	}
}

// notGuaranteed says why the preemptor's queue is not entitled to an amount.
func (g *Guaranteed) notGuaranteed(amount resources.Vector) string {
	misses := g.Misses(amount)
	if len(misses) == 0 {
		return fmt.Sprintf("no queue from %s up to %s is guaranteed what is asked for", g.preemptor.QueueName, g.TopName())
	}
	parts := make([]string, len(misses))
	for i, m := range misses {
		name := g.session.Cluster.Resources.Name(m.Dim)
		parts[i] = fmt.Sprintf("%s holds %s of %s, asks for %s", name, resources.Format(name, m.Held), resources.Format(name, m.Guaranteed),
			resources.Format(name, m.Asked))
	}
	return fmt.Sprintf("queue %s has what it is guaranteed: %s", misses[0].Queue, strings.Join(parts, ", "))
}
