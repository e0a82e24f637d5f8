package guaranteedshares

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// applications counts the admitted jobs below queues that limit them (rule G15).
type applications struct {
	session *framework.Session
	limits  bool
	count   map[*quota.Node]int // nil before the first question
	passed  []*cluster.Job      // jobs that may be admitted, and are not counted yet
}

// newApplications looks for queues with limits.
func newApplications(s *framework.Session) applications {
	a := applications{session: s}
	for n := range s.Cluster.Quota().Nodes {
		a.limits = a.limits || n.Policies.MaxJobs > 0
	}
	return a
}

// add counts a job for its queue and all above it, if it is admitted and not over.
func (a *applications) add(j *cluster.Job) bool {
	if j.IsForeign || j.IsPendingAdmission() || j.Over() {
		return false
	}
	for n := j.QuotaNode(); n != nil; n = n.Above() {
		if n.Policies.MaxJobs > 0 {
			a.count[n]++
		}
	}
	return true
}

// full returns the highest queue above a job that has as many admitted jobs as it may have, nil if there is none.
func (a *applications) full(j *cluster.Job) (full *quota.Node) {
	if a.count == nil {
		a.count = map[*quota.Node]int{}
		a.session.Cluster.EachJob(func(j *cluster.Job) { a.add(j) })
	}
	a.passed = slices.DeleteFunc(a.passed, a.add)
	for n := j.QuotaNode(); n != nil; n = n.Above() {
		if most := n.Policies.MaxJobs; most > 0 && a.count[n] >= most {
			full = n
		}
	}
	return full
}

// LimitAdmission refuses a job while a queue above it has as many admitted jobs as it may have.
func (p *plugin) LimitAdmission(j *cluster.Job) *verdict.Verdict {
	if !p.applications.limits || !p.subtrees.Contains(j.QuotaNode()) {
		return nil
	}
	full := p.applications.full(j)
	if full == nil {
		p.applications.passed = append(p.applications.passed, j)
		return nil
	}
	return &verdict.Verdict{Code: verdict.TooManyApplications, Subject: full.Name, Help: verdict.HelpQueue | verdict.HelpPod,
		Detail: fmt.Sprintf("it has %d admitted jobs of %d (maxapplications)", p.applications.count[full], full.Policies.MaxJobs)}
}
