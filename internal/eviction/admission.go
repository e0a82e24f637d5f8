package eviction

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/eviction/victims"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// CouldAdmit reports whether a job would be admitted after evictions that are allowed for it (rule J4). If not, why
// says what prevents the evictions, to be shown together with the refusal, and what could make them possible. The model
// stays unchanged.
func (f *Search) CouldAdmit(j *cluster.Job) (ok bool, why *verdict.Verdict) {
	var help verdict.Help
	for _, scope := range f.scopes(j) {
		admits, refusal := f.admission.couldAdmit(scope, j)
		if admits {
			return true, nil
		}
		help |= refusal.Help
		if why == nil || !why.Looked && why.Detail == "" { // it says nothing that is shown
			why = refusal
		}
	}
	if why != nil && why.Help != help {
		both := *why
		both.Help, why = help, &both
	}
	return false, why
}

// admission answers the questions of a search about jobs pending admission, and remembers refusals.
type admission struct {
	search  *Search
	refused map[admissionShape][]*refusedRequest
	asked   int // pods tried as victims so far
}

func (m *admission) forget() { m.refused = map[admissionShape][]*refusedRequest{} }

func (m *admission) couldAdmit(scope decision.Scope, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	f := m.search
	f.follow()
	if j.NeverPreempts || !f.mayFindVictims(scope, j) {
		return false, withoutVictims(scope)
	}
	if j.Count(cluster.Pending) > 0 && j.Valid() >= j.MinMember && !f.session.IsStarving(j) {
		return false, anyMayHelp // its minimum is placed, and the action evicts no pods for a surplus
	}
	request := m.requestOf(scope, j)
	if why := m.neverFits(&request); why != "" {
		return false, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helpsOf(j), Detail: why}
	}
	for _, r := range m.refused[request.shape] {
		if r.covers(&request) {
			return false, r.why
		}
	}
	if !m.hasTime(j, scope) {
		f.session.Cluster.Postpone(j, scope)
		return false, anyMayHelp
	}
	r := m.try(&request)
	if r == nil {
		return true, nil
	}
	m.remember(&request, r)
	return false, r.why
}

// anyMayHelp is a refusal that says nothing to users.
var anyMayHelp = &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helps}

// noVictims and noOwnVictims are the refusals if no pod may be evicted: from any queue, or from the job's own.
var (
	noVictims    = &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpVictims | verdict.HelpJob}
	noOwnVictims = &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpOwnVictims | verdict.HelpJob}
)

func withoutVictims(scope decision.Scope) *verdict.Verdict {
	if scope == decision.BetweenJobs || scope == decision.WithinJob {
		return noOwnVictims
	}
	return noVictims
}

// maxAsked limits how many pods one action tries as victims in one cycle for jobs pending admission of different
// shapes: about a second. Jobs beyond the limit wait for the next cycle, in which half of it is reserved for them, see
// [Search.hasTime].
const maxAsked = 400_000

func (m *admission) hasTime(j *cluster.Job, scope decision.Scope) bool {
	if j.Postponed.Has(scope) {
		return m.asked < maxAsked
	}
	return m.asked < maxAsked/2
}

// admissionRequest is what a job requests at admission.
type admissionRequest struct {
	job   *cluster.Job
	shape admissionShape
	first *cluster.Task    // the first pending task, nil if there is none
	lacks resources.Vector // of its minResources

	// What else plugins may read. A ResourceQuota is of one namespace, and may count pods, pods of one PriorityClass,
	// and limits, which minResources names too.
	namespace, class string
	members          int
	named, has       resources.Vector
}

// admissionShape is what two jobs must have in common so that the refusal of one says something about the other: the
// scope, and all that rules and votes read of them, except amounts.
type admissionShape struct {
	scope    decision.Scope
	queue    *cluster.Queue
	priority int32
	mark     string
	class    *cluster.Class // of the pending task, nil if there is none
}

func (m *admission) requestOf(scope decision.Scope, j *cluster.Job) admissionRequest {
	s := m.search.session
	r := admissionRequest{job: j, lacks: j.MinResources, namespace: j.ID.Namespace, class: j.Group.Spec.PriorityClassName,
		members: j.MinMember, has: j.Usage.Request}
	if !j.Usage.Allocated.IsZero() || !j.Gated.IsZero() {
		r.lacks = make(resources.Vector, len(j.MinResources))
		for d := range r.lacks {
			r.lacks[d] = j.LacksResource(resources.Dim(d))
		}
	}
	if list := j.Group.Spec.MinResources; list != nil {
		r.named = s.Cluster.Resources.Asked(*list)
	}
	r.shape = admissionShape{scope: scope, queue: j.Queue, priority: j.Priority, mark: markOf(j)}
	if j.Count(cluster.Pending) > 0 {
		r.first = s.Pending(j)[0]
		r.shape.class = r.first.Class
	}
	return r
}

func markOf(j *cluster.Job) string {
	const key = schedulingv1beta1.PreemptableKey
	if mark, ok := j.Group.Annotations[key]; ok {
		return mark
	}
	return j.Group.Labels[key]
}

// refusedRequest is a request that was refused although all pods that may be evicted were gone.
type refusedRequest struct {
	admissionRequest
	why *verdict.Verdict
	// whatever is set if rules protect every pod from jobs of this shape, so that the request does not matter.
	whatever bool
	// byAmounts is set if the queues or the cluster lack an amount, whichever job requests it.
	byAmounts bool
}

// covers reports whether another request of the same shape must be refused too, because it requests no less of
// everything that the refusal was about. A job that also requests another resource may preempt other pods.
func (r *refusedRequest) covers(c *admissionRequest) bool {
	if r.whatever {
		return true
	}
	if !isNoLarger(r.lacks, c.lacks) {
		return false
	}
	return r.byAmounts || r.namespace == c.namespace && r.class == c.class && r.members <= c.members &&
		r.named.LessEqual(c.named) && c.has.LessEqual(r.has)
}

// maxRefused limits how many refused requests of one shape are remembered. Each requested less of something than those
// before it, so there are few even with many waiting jobs.
const maxRefused = 32

func (m *admission) remember(request *admissionRequest, r *refusedRequest) {
	r.admissionRequest = *request
	r.has = request.has.Clone()
	known := m.refused[request.shape]
	if len(known) == maxRefused {
		known = known[1:]
	}
	m.refused[request.shape] = append(known, r)
}

// isNoLarger reports whether a request has amounts of the same resources as another, none of them larger.
func isNoLarger(request, other resources.Vector) bool {
	for i := range max(len(request), len(other)) {
		if d := resources.Dim(i); (request.At(d) > 0) != (other.At(d) > 0) {
			return false
		}
	}
	return request.LessEqual(other)
}

// try evicts pods, as rules and votes allow, until the job would be admitted. Then it returns nil, otherwise the
// refusal.
func (m *admission) try(request *admissionRequest) *refusedRequest {
	s, j := m.search.session, request.job
	x := s.Begin()
	defer x.Undo()
	a := m.search.attempt(request.shape.scope, j)
	a.rules.SetPod(request.first)
	all := s.Cluster.TasksOnNodes()
	m.asked += len(all)
	var last *verdict.Verdict
	admits := func() bool {
		if last = s.MayEnqueue(j); last == nil {
			last = quota.OverCapability(s.Cluster.Resources, j.QuotaNode(), quota.ToPlace(request.lacks))
		}
		return last == nil
	}
	noneUnprotected := true
	if a.rules.ByTiers(func() bool {
		evicted := a.victims.Evict(x, all, victims.Options{Enough: admits})
		noneUnprotected = noneUnprotected && evicted.NoneUnprotected
		return len(evicted.Units) > 0 && admits()
	}, a.mayAnyLeave) {
		return nil
	}
	if last == nil {
		last = s.MayEnqueue(j) // no pod was tried as a victim
	}
	r := &refusedRequest{whatever: noneUnprotected, byAmounts: isAboutAmounts(last), why: triedInVain(a.rules.Scope, nil)}
	x.Undo()
	if r.whatever || r.byAmounts {
		r.why = m.protected(a)
	}
	return r
}

// isAboutAmounts reports whether a job is refused because a queue or the cluster has too little left.
func isAboutAmounts(v *verdict.Verdict) bool {
	return v != nil && slices.Contains([]verdict.Code{verdict.OverCommitted, verdict.OverCapability, verdict.OverCluster, verdict.TooLargeForQueue, verdict.TooLargeForCluster}, v.Code)
}

// protected says which pods may not be evicted for the preemptor, if not all may.
func (m *admission) protected(a *attempt) *verdict.Verdict {
	if a.rules.Scope == decision.BetweenQueues && a.rules.Preemptor.IsLone() && m.search.session.Policy.Evicts(decision.Anywhere) {
		return triedInVain(a.rules.Scope, nil) // the action with that scope reports the same pods
	}
	return triedInVain(a.rules.Scope, a.spared())
}

// triedInVain is the refusal of a job that would not be admitted with all pods evicted that may be.
func triedInVain(scope decision.Scope, spared []verdict.Spared) *verdict.Verdict {
	victims := verdict.HelpVictims
	if scope == decision.BetweenJobs || scope == decision.WithinJob {
		victims = verdict.HelpOwnVictims
	}
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helps | victims, Looked: len(spared) > 0, Spared: spared}
}

// neverFits says why a job pending admission could not start even on empty nodes, "" if it may be able to. Such a job
// must not be admitted because of evictions: what it was admitted with would be reserved for as long as it waits.
func (m *admission) neverFits(request *admissionRequest) string {
	s, j := m.search.session, request.job
	names := s.Cluster.Resources
	attainable := s.Cluster.Attainable(j.AwaitsPods())
	for i, need := range request.lacks {
		d := resources.Dim(i)
		if have := attainable.At(d); need > have {
			return fmt.Sprintf("evictions would not help: all nodes together have %s %s", names.Name(d), resources.Format(names.Name(d), have))
		}
	}
	if pods := j.Pending(cluster.CompareTasks); len(pods) > 0 {
		return m.neverFitAll(j, pods)
	}
	if !isBatchJob(j) || j.MinMember == 0 || len(j.Tasks()) > 0 {
		return ""
	}
	// The controller adds up the pods that must start together, so the largest of them requests at least the average.
	for i, all := range j.MinResources {
		d := resources.Dim(i)
		if one := (all + int64(j.MinMember) - 1) / int64(j.MinMember); one > m.search.capacity.largestNode().At(d) {
			return fmt.Sprintf("evictions would not help: no node has as much %s as one of the %d pods requests at the least, %s",
				names.Name(d), j.MinMember, resources.Format(names.Name(d), one))
		}
	}
	return ""
}

// neverFitAll says which of the pending tasks no node could run if it were empty.
func (m *admission) neverFitAll(j *cluster.Job, pods []*cluster.Task) string {
	capacity := &m.search.capacity
	lacks := min(max(j.LacksPromises(), 1), len(pods))
	if capacity.couldHold(pods, lacks) {
		return ""
	}
	for _, t := range cluster.OnePerClass(pods) {
		if capacity.places(t, 1) == 0 {
			return fmt.Sprintf("evictions would not help: no node could hold pod %s if it were empty", t.Pod.Name)
		}
	}
	return fmt.Sprintf("evictions would not help: empty nodes could not hold %d of its pods at once", lacks)
}

// isBatchJob reports whether the PodGroup belongs to a Job of batch.volcano.sh.
func isBatchJob(j *cluster.Job) bool {
	owner := metav1.GetControllerOfNoCopy(j.Group)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == batchv1alpha1.SchemeGroupVersion.String()
}
