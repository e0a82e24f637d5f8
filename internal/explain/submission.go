package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/actions/enqueue"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Submit says what would happen if a PodGroup and its pods were submitted now. The objects must be as the API server
// would return them, with defaults and priorities filled in. It is an error if they exist already.
func (m *Model) Submit(now time.Time, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod) (answer Submission, err error) {
	if len(pods) > MaxSupposed {
		return answer, fmt.Errorf("%d pods are too many to suppose: at most %d", len(pods), MaxSupposed)
	}
	if terms := mostTerms(pods); terms > MaxTerms {
		return answer, fmt.Errorf("%w: a pod has %d affinity terms, spread constraints and their expressions, and may have %d", ErrTooLarge, terms, MaxTerms)
	}
	if group != nil {
		group = group.DeepCopy()
		group.Status = schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupPending}
	}
	err = m.cache.Suppose(group, pods, m.supposes, func(j *cluster.Job) {
		t := &trial{model: m, session: m.open(now), job: j}
		answer = t.run()
		if answer.Outcome == OutcomeWaiting || answer.Outcome == OutcomeNotAdmitted {
			answer.Order, answer.Mistakes = t.place(), m.mistakesOf(j)
		}
	})
	return answer, err
}

// trial is the run of one job through the pipeline.
type trial struct {
	model    *Model
	session  *framework.Session
	job      *cluster.Job
	searched int
}

// run runs each action of the pipeline for this job only.
func (t *trial) run() Submission {
	s, j := t.session, t.job
	answer := Submission{Job: j.ID.String(), Outcome: OutcomeNotAdmitted, NotAsked: t.model.notAsked}
	v := s.Validate(j)
	if v == nil && t.model.policy.Has(enqueue.Name) {
		v = t.admit()
	}
	if v != nil {
		answer.Verdict, answer.Unplaced = t.verdictOf(v), j.Count(cluster.Pending)
		return answer
	}
	s.Admit(j)
	for _, a := range t.model.policy.Actions {
		if len(s.Binds) > 0 || len(s.Plans) > 0 || j.Count(cluster.Pending) == 0 {
			break
		}
		switch action := a.(type) {
		case framework.AllocatingAction:
			t.allocate()
		case framework.EvictingAction:
			t.within(func() { action.MakeRoom(s, j) })
		}
	}
	t.conclude(&answer)
	return answer
}

// admit returns why the job would be pending admission, nil if it would not.
func (t *trial) admit() *verdict.Verdict {
	s, j := t.session, t.job
	if v := s.HeldUp(j); v != nil {
		return v
	}
	if j.MinResources == nil {
		return nil
	}
	v := s.MayEnqueue(j)
	for _, a := range t.model.policy.Actions {
		if action, ok := a.(framework.EvictingAction); ok && v != nil && action.EvictionRules().Scopes != 0 {
			admits, why := action.AdmitsByEviction(s, j)
			if admits {
				return nil
			}
			v = v.With(why)
		}
	}
	return v
}

// allocate places the job on free nodes, with as many pods as fit once it can start.
func (t *trial) allocate() {
	s, j := t.session, t.job
	if v := cmp.Or(s.Overused(j.Queue), s.HeldUp(j)); v != nil {
		s.AddVerdict(j, v)
		return
	}
	x := s.Begin()
	tasks := s.Pending(j)
	if !s.IsReady(j) {
		if v := gang.Place(s, j, tasks); v != nil {
			s.AddVerdict(j, v)
			return
		}
	}
	var why *verdict.Verdict
	var failed []*cluster.Class
	for _, task := range tasks {
		if task.Status != cluster.Pending || slices.Contains(failed, task.Class) {
			continue
		}
		if v := gang.PlaceNext(s, x, task, tasks); v != nil {
			failed, why = append(failed, task.Class), why.With(v)
		}
	}
	if !plans.KeepPromises(s, x.Tasks(), nil) {
		x.Undo()
		s.AddVerdict(j, plans.BreaksPromises())
		return
	}
	if x.Placed() == 0 {
		s.AddVerdict(j, why)
		return
	}
	x.Commit()
	s.AddVerdict(j, why)
}

// within limits the search for victims to the nodes with most evictable pods, if there are too many nodes for all.
func (t *trial) within(search func()) {
	nodes := t.session.Cluster.Nodes()
	if len(nodes) <= MaxSearched {
		search()
		return
	}
	lower := make(map[*cluster.Node]int, len(nodes))
	for _, n := range nodes {
		for _, task := range n.Tasks() {
			if j := task.Job; j != nil && j != t.job && task.Status.Evictable() && (j.Priority < t.job.Priority || j.Queue != t.job.Queue) {
				lower[n]++
			}
		}
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b *cluster.Node) int { return lower[b] - lower[a] })
	t.searched = MaxSearched
	t.session.Within(cluster.NewDomain(nodes[:MaxSearched]), search)
}

// place finds the place that the job would have, by one pass over the jobs that wait.
func (t *trial) place() *Order {
	s, j := t.session, t.job
	if j.Queue == nil {
		return nil
	}
	answer := &Order{Place: 1, Of: 1, QueuePlace: 1, Queues: 1}
	queues := map[*cluster.Queue]bool{j.Queue: true}
	var next *cluster.Job
	for _, other := range s.Cluster.Waiting() {
		t.model.step(true)
		if other == j || !order.Waits(other) {
			continue
		}
		if !queues[other.Queue] {
			queues[other.Queue] = true
			answer.Queues++
			if s.CompareQueues(other.Queue, j.Queue) < 0 {
				answer.QueuePlace++
			}
		}
		if other.Queue != j.Queue || other.IsPendingAdmission() != j.IsPendingAdmission() {
			continue
		}
		answer.Of++
		if s.CompareJobs(other, j) < 0 {
			answer.Place++
			if next == nil || s.CompareJobs(other, next) > 0 {
				next = other
			}
		}
	}
	if next != nil {
		answer.Next = next.Name()
	}
	return answer
}

// conclude says what would become of the job.
func (t *trial) conclude(answer *Submission) {
	s, j := t.session, t.job
	answer.Outcome, answer.Unplaced = OutcomeWaiting, j.Count(cluster.Pending)
	answer.Verdict = t.verdictOf(j.Verdict)
	for _, b := range s.Binds {
		answer.Outcome = OutcomeBound
		answer.Placements = append(answer.Placements, Placement{Pod: b.Pod.String(), Node: b.Node})
	}
	if answer.Outcome == OutcomeWaiting {
		answer.Searched = t.searched
	}
	for _, planned := range s.Plans {
		answer.Outcome, answer.Verdict, answer.Action, answer.Searched = OutcomePreempting, nil, planned.Plan.Action, t.searched
		for _, task := range planned.Plan.Promised() {
			answer.Placements = append(answer.Placements, Placement{Pod: task.Key().String(), Node: task.Node.Name})
		}
		for _, e := range planned.Evictions {
			answer.Victims = append(answer.Victims, Victim{Pod: e.Pod.String(), Node: e.Node, Job: e.VictimJob.String(), Rule: e.Rule, Message: e.Message})
		}
	}
	if v := s.Validate(j); v != nil && answer.Outcome == OutcomeWaiting {
		answer.Verdict = t.verdictOf(v) // such as missing pods
	}
}

// verdictOf returns a verdict on the job as plain data, with the reason that the job would show.
func (t *trial) verdictOf(v *verdict.Verdict) *Verdict {
	answer := VerdictOf(v)
	if answer != nil {
		code, sentence := t.job.ReasonFor(v)
		answer.Code, answer.Message = string(code), sentence()
	}
	return answer
}
