package explain

import (
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Job explains the state of a job and why it waits.
func (m *Model) Job(now time.Time, id cluster.JobID) (Job, error) {
	j := m.cluster.Job(id)
	if j == nil || j.Group == nil {
		return Job{}, NotFound{Kind: "PodGroup", Name: id.String()}
	}
	answer := m.state(now, j)
	m.try(now, func(s *framework.Session) { m.explore(s, j, &answer) })
	return answer, nil
}

// state is what is known of a job without a session.
func (m *Model) state(now time.Time, j *cluster.Job) Job {
	answer := Job{Job: j.ID.String(), Workload: j.Name(), Queue: j.QueueName, Phase: string(j.Phase), Admitted: !j.IsPendingAdmission(), Priority: j.Priority,
		MinAvailable: j.MinMember, Lacks: j.Lacks(), Pods: map[string]int{}, Holds: m.amounts(j.Usage.Allocated),
		Requests: m.amounts(j.Usage.Request), Created: j.Created(), Attempts: j.Refusals, NotAsked: m.notAsked}
	for status := cluster.Pending; status <= cluster.Unknown; status++ {
		if count := j.Count(status); count > 0 {
			answer.Pods[status.String()] = count
		}
	}
	answer.Tasks = m.jobPods(j)
	if v := j.Verdict; v != nil && !j.Over() && (j.IsPendingAdmission() || j.Lacks() > 0 || j.Count(cluster.Pending) > 0 || j.Plan != nil) {
		answer.Verdict = VerdictOf(v)
	}
	answer.BackOffs = m.backOffs(now, j)
	answer.Plan = planOf(j.Plan)
	return answer
}

// explore adds what a session shows of a job that waits, and returns the first of the jobs that are tried before it.
func (m *Model) explore(s *framework.Session, j *cluster.Job, answer *Job) (before []*cluster.Job) {
	if !order.Waits(j) {
		return nil
	}
	answer.Bounds = m.bounds(s, j)
	answer.Order, before = m.place(s, j)
	if pending := s.Pending(j); len(pending) > 0 && j.Plan == nil {
		answer.Refusals = m.refusals(s, pending)
		answer.Candidates = m.candidates(s, j)
	}
	return before
}

// jobPods lists the first pods of a job.
func (m *Model) jobPods(j *cluster.Job) []JobPod {
	tasks := slices.Clone(j.Tasks())
	slices.SortFunc(tasks, func(t, u *cluster.Task) int { return cluster.CompareNames(t.Key(), u.Key()) })
	var all []JobPod
	for _, t := range tasks[:min(len(tasks), MaxListed)] {
		pod := JobPod{Pod: t.Key().String(), Status: t.Status.String(), Requests: m.amounts(t.Request())}
		if t.Node != nil {
			pod.Node = t.Node.Name
		}
		all = append(all, pod)
	}
	return all
}

// bounds lists the queues, from the job's up, that may not hold what it lacks.
func (m *Model) bounds(s *framework.Session, j *cluster.Job) []Bound {
	needed := m.needed(s, j)
	var bounds []Bound
	for q := j.Queue; q != nil; q = q.Parent {
		share, hasShare := m.policy.Share(q)
		for i, need := range needed {
			d := resources.Dim(i)
			name := m.cluster.Resources.Name(d)
			holds, kept := q.Subtree.Allocated.At(d), int64(0)
			if j.IsPendingAdmission() {
				kept = q.Subtree.Inqueue.At(d)
			}
			say := func(limit string, may int64) {
				if need <= 0 || holds+kept+need <= may {
					return
				}
				b := Bound{Queue: q.Name, Resource: string(name), Limit: limit, May: resources.Format(name, may),
					Holds: resources.Format(name, holds), Needed: resources.Format(name, need), Exceeds: resources.Format(name, holds+kept+need-may)}
				if kept > 0 {
					b.Kept = resources.Format(name, kept)
				}
				bounds = append(bounds, b)
			}
			say("capability", q.Capability.Value(d))
			if hasShare && !j.IsPendingAdmission() { // until it is admitted, its requests do not count for what is deserved
				say("deserved", share.Deserved.Value(d))
			}
		}
	}
	return bounds
}

// needed is what the job would add to its queue if it started: its pods that must start, or at admission its
// minResources.
func (m *Model) needed(s *framework.Session, j *cluster.Job) resources.Vector {
	pending := s.Pending(j)
	if len(pending) == 0 {
		lacks := make(resources.Vector, len(j.MinResources))
		for d := range lacks {
			lacks[d] = j.LacksResource(resources.Dim(d))
		}
		return lacks
	}
	return cluster.RequestOf(pending[:min(len(pending), max(j.Lacks(), 1))])
}

// candidates lists the pods that each evicting action could evict for a job.
func (m *Model) candidates(s *framework.Session, j *cluster.Job) []Candidates {
	if j.IsPendingAdmission() {
		return nil
	}
	var all []Candidates
	for _, a := range m.policy.Actions {
		action, ok := a.(framework.EvictingAction)
		if !ok {
			continue
		}
		for _, found := range eviction.NewSearch(s, action).PossibleVictims(j, MaxCandidates) {
			all = append(all, Candidates{Action: action.Name(), Scope: scopes[found.Scope], MayLeave: len(found.Leaving),
				Pods: namesOf(found.Leaving), Protected: protected(found.Spared), NotLookedAt: found.NotLookedAt})
		}
	}
	return all
}

// scopes in words.
var scopes = map[decision.Scope]string{decision.BetweenQueues: "between queues", decision.BetweenJobs: "between jobs of the queue",
	decision.Anywhere: "anywhere", decision.WithinJob: "within the job"}

// planOf returns a plan as plain data, nil for nil.
func planOf(p *cluster.Plan) *Plan {
	if p == nil {
		return nil
	}
	answer := &Plan{ID: p.ID, Action: p.Action, Rule: p.Rule, Since: p.Since, Deadline: p.Deadline, Evictions: p.Evictions,
		Left: max(p.Evictions-len(p.Victims), 0), Leaving: namesOf(p.Victims)}
	promised := p.Promised()
	for _, t := range promised[:min(len(promised), MaxListed)] {
		answer.Promised = append(answer.Promised, Placement{Pod: t.Key().String(), Node: t.Node.Name})
	}
	return answer
}

// backOffs lists the times before which a job is not tried, the earliest first.
func (m *Model) backOffs(now time.Time, j *cluster.Job) []BackOff {
	var all []BackOff
	add := func(until time.Time, reason string) {
		if until.After(now) {
			all = append(all, BackOff{Until: until, Reason: reason})
		}
	}
	add(j.NotBefore, "the API server refused a binding or an eviction")
	add(j.EvictsFrom, "the room that was made for it was lost repeatedly, so no pods are evicted for it")
	add(j.BarredUntil, "the job was admitted and its pods did not come")
	if j.IsPendingAdmission() {
		add(m.cluster.BackOff(j.ID.Namespace).Until, "other jobs of the namespace were admitted and brought no pods")
	}
	slices.SortStableFunc(all, func(a, b BackOff) int { return a.Until.Compare(b.Until) })
	return all
}
