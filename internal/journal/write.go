package journal

import (
	"cmp"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
)

// Cycle enters what a cycle has decided. The model is as the cycle has left it. touched are the jobs that have changed,
// by name. It
// returns how many entries of each kind there are of it.
func (l *Journal) Cycle(cycle uint64, now time.Time, c *model.Cluster, d *decision.Decisions, touched []*cluster.Job) Tally {
	l.cycle, l.now, l.tally = cycle, now, Tally{}
	for _, group := range d.GoneGroups {
		l.forget(cluster.GroupID(group))
	}
	for i := range d.Ended {
		p := &d.Ended[i]
		if p.Job == (cluster.JobID{}) && len(p.Spared) == 0 {
			continue // the plan of a job that is gone
		}
		l.add(record{kind: PlanCancelled, of: p.Job, job: p.Job, queue: queueOf(c, p.Job), plan: p.ID, message: p.Why})
		l.notePlan(p.Job, "")
	}
	for _, j := range touched {
		l.noteProgress(j)
	}
	for i := range d.Plans {
		l.begin(c, &d.Plans[i])
	}
	for i := range d.Binds {
		b := &d.Binds[i]
		l.add(record{kind: Bound, of: b.Job, job: b.Job, queue: queueOf(c, b.Job), pod: b.Pod, node: b.Node})
	}
	for i := range d.Workloads {
		l.noteWorkload(&d.Workloads[i])
	}
	for _, j := range touched {
		l.noteVerdict(j)
	}
	return l.tally
}

// forget drops what is known of a job besides its entries. Another of its name begins again.
func (l *Journal) forget(id cluster.JobID) {
	if j := l.jobs[id]; j != nil {
		*j = jobRecord{oldest: j.oldest, newest: j.newest, entries: j.entries}
	}
}

// noteWorkload enters that a Workload may start, or must stop. Why it waits its conditions say.
func (l *Journal) noteWorkload(s *decision.WorkloadStatus) {
	r := record{job: cluster.WorkloadID(s.Workload.Namespace, s.Workload.Name)}
	r.of = r.job
	if s.Admit {
		r.kind = Admitted
		l.add(r)
	}
	if e := s.Evict; e != nil {
		r.kind, r.message, r.reason = SentBack, e.Message, cmp.Or(e.Preempted, e.Reason)
		if e.By.Name != "" {
			r.preemptor = cluster.WorkloadID(e.By.Namespace, e.By.Name)
			r.of = r.preemptor // as evictions of pods
		}
		l.add(r)
	}
}

// begin enters a plan and its evictions.
func (l *Journal) begin(c *model.Cluster, p *decision.PlanStart) {
	r := record{kind: PlanBegun, of: p.Job, job: p.Job, queue: queueOf(c, p.Job), plan: p.ID}
	if len(p.Evictions) > 0 {
		r.action, r.rule = p.Evictions[0].Action, p.Evictions[0].Rule
	}
	l.add(r)
	l.notePlan(p.Job, p.ID)
	for i := range p.Evictions {
		e := &p.Evictions[i]
		l.add(record{kind: Evicted, of: p.Job, job: e.VictimJob, queue: queueOf(c, e.VictimJob), pod: e.Pod, node: e.Node, preemptor: e.For,
			action: e.Action, rule: e.Rule, plan: p.ID, message: e.Message})
	}
}

// notePlan stores which plan of a job is in force, "" if none is.
func (l *Journal) notePlan(id cluster.JobID, plan string) {
	if j := l.jobs[id]; j != nil && id != (cluster.JobID{}) {
		j.plan = plan
	}
}

func queueOf(c *model.Cluster, id cluster.JobID) string {
	if j := c.Job(id); j != nil {
		return j.QueueName
	}
	return ""
}

// noteProgress enters that a job was admitted, was sent back, or has the tasks of its plan placed.
func (l *Journal) noteProgress(j *cluster.Job) {
	if j.Group == nil || j.IsForeign {
		return
	}
	var known jobRecord
	if r := l.jobs[j.ID]; r != nil {
		known = *r
	}
	isAdmitted, wasAdmitted := !j.IsPendingAdmission(), known.isAdmitted
	if !known.isKnown {
		// The job is new to the journal. The API object shows earlier decisions.
		shown := j.Group.Status.Phase
		wasAdmitted = shown != "" && shown != schedulingv1beta1.PodGroupPending
	}
	switch {
	case isAdmitted && !wasAdmitted:
		l.add(record{kind: Admitted, of: j.ID, job: j.ID, queue: j.QueueName})
	case !isAdmitted && wasAdmitted:
		l.add(record{kind: SentBack, of: j.ID, job: j.ID, queue: j.QueueName})
	}
	if known.plan != "" && (j.Plan == nil || j.Plan.ID != known.plan) {
		l.add(record{kind: PlanFulfilled, of: j.ID, job: j.ID, queue: j.QueueName, plan: known.plan})
		l.notePlan(j.ID, "")
	}
}

// noteVerdict enters a changed verdict of a job.
func (l *Journal) noteVerdict(j *cluster.Job) {
	if j.Group == nil || j.IsForeign {
		return
	}
	var told *verdict.Verdict
	known := l.jobs[j.ID]
	if known != nil {
		told = known.verdict
	}
	if v := j.Verdict; v != told && !v.Equal(told) {
		r := record{kind: VerdictChanged, of: j.ID, job: j.ID, queue: j.QueueName, verdict: v}
		if v == nil {
			r.kind = NothingInTheWay
		} else {
			short := *v
			// The first may have a thousand pods. The second lead to what plugins and engines have found out, also
			// those of a policy that is not in force any more.
			short.Fitting, short.Lacks = nil, verdict.Lacks{}
			r.verdict = &short
		}
		l.add(r)
	}
	if known = l.jobs[j.ID]; known != nil {
		known.isAdmitted, known.isKnown, known.verdict = !j.IsPendingAdmission(), true, j.Verdict
	}
}
