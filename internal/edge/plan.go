package edge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	"hekla.sh/hekla/pkg/cluster"
)

const (
	// planWorkers is how many steps of plans are under way at once: half as many as bindings, which go first.
	planWorkers = 16
	// busyPlanShare is the part of the allowed requests that plans may take while binds wait: one in four. In a cluster
	// where some always wait, a plan must still be through before the time is over that its scheduler gives it.
	busyPlanShare = 4
)

// planExecution is what is done for a plan that begins, or for one that ends: its stages one after the other, and the steps
// of a stage in any order.
type planExecution struct {
	id  string
	job cluster.JobID
	// isEnd is set if something is taken back. That is never given up: nobody else would do it.
	isEnd bool
	why   string // the plan was cancelled

	current  []*podStep // the stage under way
	stages   [][]*podStep
	left     int // podSteps of the stage under way that are not over
	running  int // requests
	refused  []cluster.Refused
	sent     int         // evictions
	failure  string      // why it cannot be carried out, "" if it can, or that has been reported
	marked   metav1.Time // when the victims were chosen
	requests int         // to tell its job of it

	isDropped bool
}

// planner carries out plans. For each pod it does one thing at a time, in the order in which it was decided.
type planner struct {
	queue   workqueue.TypedDelayingInterface[*podStep]
	trickle flowcontrol.RateLimiter
	isBusy  func() bool // while it is, the trickle bounds what is sent
	backOff wait.Backoff
	logger  logr.Logger
	workers sync.WaitGroup

	send func(context.Context, *podStep) (EvictionResult, error)
	// tell writes the status of a PodGroup, or a newer one, and tells how each attempt went.
	record func(cluster.GroupStatus, attemptObserver)
	// fail is told of plans that cannot be carried out, evicted of the end of each eviction. Both only touch memory.
	fail    func(cluster.PlanFailed)
	evicted func(*cluster.Eviction, EvictionResult)

	repeated atomic.Int64

	mutex sync.Mutex
	// plans are those that began and are neither through nor cancelled nor failed.
	plans map[string]*planExecution
	// lanes are the podSteps to each pod that are not over, in the order in which they came. The first is in the queue, or on
	// its way.
	lanes map[types.UID][]*podStep
	// promises are the last podSteps that are about the node that a pod is promised.
	promises    map[types.UID]*podStep
	outstanding int // podSteps that are not over
	inFlight    int
	isClosed    bool
	idle        chan struct{} // closed once isClosed and nothing is in flight
}

func newPlanner(trickle flowcontrol.RateLimiter, isBusy func() bool, logger logr.Logger) *planner {
	return &planner{
		queue: workqueue.NewTypedDelayingQueue[*podStep](), trickle: trickle, isBusy: isBusy, backOff: bindBackOff, logger: logger,
		plans: map[string]*planExecution{}, lanes: map[types.UID][]*podStep{}, promises: map[types.UID]*podStep{},
		idle: make(chan struct{}),
	}
}

func (p *planner) start(ctx context.Context) {
	for range planWorkers {
		p.workers.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, p.queue.ShutDown)
}

// begin takes over a plan. After close it takes none.
func (p *planner) begin(start *cluster.PlanStart) {
	u := &planExecution{id: start.ID, job: start.Job, marked: metav1.Now().Rfc3339Copy()}
	nominations, marks := make([]*podStep, len(start.Nominations)), make([]*podStep, len(start.Evictions))
	record := start.PromiseRecord()
	evictions, restatements := make([]*podStep, len(start.Evictions)), []*podStep(nil)
	var questions []*podStep
	// Of one eviction the answer is known before anything else is sent.
	isAsked := u.job != (cluster.JobID{}) && len(start.Evictions) > 1
	for i := range start.Nominations {
		n := &start.Nominations[i]
		nominations[i] = p.podStep(u, nominate, n.Pod, n.UID)
		nominations[i].node, nominations[i].record = n.Node, record
	}
	for i := range start.Evictions {
		v := &victim{Eviction: start.Evictions[i]}
		marks[i], evictions[i] = p.podStep(u, mark, v.Pod, v.UID), p.podStep(u, evict, v.Pod, v.UID)
		marks[i].victim, evictions[i].victim = v, v
		if isAsked {
			e := p.podStep(u, ask, v.Pod, v.UID)
			e.victim = v
			questions = append(questions, e)
		}
		if !v.PastBudget {
			e := p.podStep(u, restate, v.Pod, v.UID)
			e.victim = v
			restatements = append(restatements, e)
		}
	}
	u.stages = [][]*podStep{nominations, questions, marks, evictions, restatements}
	p.mutex.Lock()
	if p.isClosed {
		p.mutex.Unlock()
		return
	}
	p.plans[u.id] = u
	p.admit(u)
	if u.job == (cluster.JobID{}) {
		p.proceed(u)
		p.mutex.Unlock()
		return
	}
	p.mutex.Unlock()
	p.record(start.Group, func(err error) bool { return p.recorded(u, err) })
}

// end drops what was not sent of a plan and takes back what was written. It does so in the reverse order, so that whoever
// takes over in the middle still finds to which plan the rest belongs. The plan need not be one that began here.
func (p *planner) end(end *cluster.PlanEnd) {
	u := &planExecution{id: end.ID, job: end.Job, isEnd: true, why: end.Why}
	spared, withdrawn := make([]*podStep, len(end.Spared)), make([]*podStep, len(end.Nominations))
	for i, s := range end.Spared {
		spared[i] = p.podStep(u, spare, s.Pod, s.UID)
		spared[i].refusal, spared[i].record = s.Refused, s.Record()
	}
	for i, n := range end.Nominations {
		withdrawn[i] = p.podStep(u, withdraw, n.Pod, n.UID)
	}
	u.stages = [][]*podStep{spared, withdrawn}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.isClosed {
		return
	}
	if begun := p.plans[end.ID]; begun != nil {
		p.drop(begun)
	}
	p.admit(u)
	p.proceed(u)
}

func (p *planner) podStep(u *planExecution, s step, pod types.NamespacedName, uid types.UID) *podStep {
	return &podStep{of: u, step: s, pod: pod, uid: uid, backOff: p.backOff}
}

// admit counts what there is to do. What an older one still has to say about a promise is void with a newer one.
func (p *planner) admit(u *planExecution) {
	for _, stage := range u.stages {
		p.outstanding += len(stage)
		for _, e := range stage {
			if e.step != nominate && e.step != withdraw {
				continue
			}
			if old := p.promises[e.uid]; old != nil {
				p.void(old)
			}
			p.promises[e.uid] = e
		}
	}
}

// void has a step not be done, or not be repeated if it is under way.
func (p *planner) void(e *podStep) {
	e.isVoid = true
	if !e.isRunning && !e.isOver {
		p.finish(e)
	}
}

// recorded goes on with a plan when it is recorded.
func (p *planner) recorded(u *planExecution, err error) (waits bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch u.requests++; {
	case u.isDropped || p.isClosed:
	case err == nil:
		p.proceed(u)
	case err == errObjectGone || isFinal(err) || u.requests >= maxBindRequests:
		p.refuse(u, fmt.Sprintf("telling PodGroup %s of the plan: %v", u.job, err))
	default:
		return true
	}
	return false
}

// proceed begins the next stage in which there is something to do, unless some were refused in the one before.
func (p *planner) proceed(u *planExecution) {
	if u.left == 0 && len(u.refused) > 0 {
		slices.SortFunc(u.refused, func(a, b cluster.Refused) int { return cluster.CompareNames(a.Pod, b.Pod) })
		reason := u.refused[0].Reason
		if others := len(u.refused) - 1; others > 0 {
			reason += fmt.Sprintf(", and %d more", others)
		}
		p.refuse(u, reason)
		return
	}
	for u.left == 0 && len(u.stages) > 0 {
		u.current, u.stages = u.stages[0], u.stages[1:]
		for _, e := range u.current {
			if e.isOver {
				continue
			}
			u.left++
			e.isQueued = true
			if p.lanes[e.uid] = append(p.lanes[e.uid], e); len(p.lanes[e.uid]) == 1 {
				p.queue.Add(e)
			}
		}
	}
	if u.left == 0 && p.plans[u.id] == u {
		delete(p.plans, u.id)
	}
}

// finish ends a step, done or not.
func (p *planner) finish(e *podStep) {
	e.isOver = true
	p.outstanding--
	if p.promises[e.uid] == e {
		delete(p.promises, e.uid)
	}
	if !e.isQueued {
		return
	}
	lane := p.lanes[e.uid]
	wasFirst := lane[0] == e
	switch lane = slices.DeleteFunc(lane, func(other *podStep) bool { return other == e }); {
	case len(lane) == 0:
		delete(p.lanes, e.uid)
	default:
		p.lanes[e.uid] = lane
		if wasFirst {
			p.queue.Add(lane[0])
		}
	}
	if e.of.left--; e.of.left == 0 && !e.of.isDropped {
		p.proceed(e.of)
	}
}

// drop ends a plan: what is under way is not repeated, and nothing more is begun.
func (p *planner) drop(u *planExecution) {
	u.isDropped = true
	delete(p.plans, u.id)
	for _, stage := range append([][]*podStep{u.current}, u.stages...) {
		for _, e := range stage {
			if e.isOver || e.isRunning {
				continue
			}
			p.finish(e)
			if e.step == evict && e.victim.isRefused {
				p.evicted(&e.victim.Eviction, EvictionRefused)
			} else if e.step == evict {
				p.evicted(&e.victim.Eviction, EvictionDropped)
			}
		}
	}
	u.current, u.stages = nil, nil
}

// refuse drops a plan that cannot be carried out. What was written is taken back when the scheduler has cancelled it.
func (p *planner) refuse(u *planExecution, reason string) {
	p.logger.Info("A plan cannot be carried out", "plan", u.id, "job", u.job.String(), "reason", reason)
	p.drop(u)
	u.failure = reason
	p.report(u)
}

// report tells of a plan that cannot be carried out, once nothing of it is under way: then it is known what of it was done.
func (p *planner) report(u *planExecution) {
	if u.failure == "" || u.running > 0 {
		return
	}
	p.fail(cluster.PlanFailed{Job: u.job, Plan: u.id, At: time.Now(), Reason: u.failure, Refused: u.refused, Sent: u.sent})
	u.failure = ""
}

// refuses notes that a victim is not to be evicted. Where there was no answer, nobody has refused anything.
func (e *podStep) refuses(err error) {
	if e.victim == nil || !isFinal(err) && !forbids(err) {
		return
	}
	e.victim.isRefused = true
	e.of.refused = append(e.of.refused, cluster.Refused{Pod: e.pod, UID: e.uid, Reason: said(e, err), ByBudget: forbids(err)})
}

// bound has the pod not be promised the node any more that it gets.
func (p *planner) bound(uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if e := p.promises[uid]; e != nil && e.step == nominate {
		p.void(e)
	}
}

// sending returns what closes when the promise to a pod that is being written is, nil if none is.
func (p *planner) sending(uid types.UID) <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if e := p.promises[uid]; e != nil && e.step == nominate && e.isRunning {
		return e.returned
	}
	return nil
}

// next does one step, as far as one request goes. It returns false when there will be nothing more.
func (p *planner) next(ctx context.Context) bool {
	e, isOver := p.queue.Get()
	if isOver {
		return false
	}
	defer p.queue.Done(e)
	if p.isWanted(e) && p.isBusy() && p.trickle.Wait(ctx) != nil {
		return true
	}
	if ctx.Err() != nil || !p.take(e) {
		return true
	}
	result, err := p.send(ctx, e)
	p.returned(ctx, e, result, err)
	return true
}

func (p *planner) isWanted(e *podStep) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return !e.isOver && !p.isClosed
}

func (p *planner) take(e *podStep) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if e.isOver || p.isClosed {
		return false
	}
	e.isRunning, e.returned = true, make(chan struct{})
	e.requests++
	e.of.running++
	p.inFlight++
	return true
}

// returned decides how it goes on with a step after a request.
func (p *planner) returned(ctx context.Context, e *podStep, result EvictionResult, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	e.isRunning = false
	close(e.returned)
	p.inFlight--
	e.of.running--
	defer p.announceIdle()
	defer p.report(e.of)
	isGivenUp := isFinal(err) || forbids(err) || e.requests >= maxBindRequests && !e.of.isEnd
	switch {
	case err == nil || err == errObjectGone:
		if e.step == evict && result != EvictionNeedless {
			e.of.sent++
		}
		p.finish(e)
	case ctx.Err() != nil:
		return
	case e.isVoid || e.of.isDropped:
		e.refuses(err)
		p.finish(e)
	case !isGivenUp:
		p.repeated.Add(1)
		p.logger.V(1).Info("A step of a plan was not confirmed; it will be repeated", "plan", e.of.id, "pod", e.pod, "error", err)
		p.queue.AddAfter(e, pauseAfter(err, &e.backOff))
		return
	case e.step == restate || e.of.isEnd:
		// Nothing depends on it.
		p.logger.Info("A step of a plan was refused", "plan", e.of.id, "pod", e.pod, "error", err.Error())
		p.finish(e)
	case e.step == nominate:
		e.of.isDropped = true
		p.finish(e)
		p.refuse(e.of, said(e, err))
	default:
		result = EvictionRefused
		e.refuses(err)
		// All whose answer is asked for are told of together. What is done for good is not gone on with once one was refused.
		fails := e.step != ask || !e.victim.isRefused
		e.of.isDropped = e.of.isDropped || fails
		p.finish(e)
		if fails {
			p.refuse(e.of, said(e, err))
		}
	}
	if e.step == evict {
		if result == "" && e.victim.isRefused {
			result = EvictionRefused
		} else if result == "" { // cancelled before it was known
			result = EvictionUnknown
		}
		p.evicted(&e.victim.Eviction, result)
	}
}

// said is what the API server said about a step, a clause.
func said(e *podStep, err error) string {
	return fmt.Sprintf("%s pod %s: %v", doing[e.step], e.pod, err)
}

// stats counts the plans under way, and the podSteps that are waiting and on their way.
func (p *planner) stats() (plans, waiting, inFlight int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.plans), p.outstanding - p.inFlight, p.inFlight
}

// close makes idle close when nothing is under way any more. Nothing new is begun. It is called once.
func (p *planner) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isClosed = true
	p.announceIdle()
}

func (p *planner) announceIdle() {
	if !p.isClosed || p.inFlight > 0 {
		return
	}
	select {
	case <-p.idle:
	default:
		close(p.idle)
	}
}
