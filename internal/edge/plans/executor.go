package plans

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

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

const (
	// Workers is the number of parallel requests: half as many as for bindings, which come first.
	Workers = 16
	// busyPlanShare is the part of the request limit that plans may use while binds wait: one in four. In a cluster
	// where some always wait, a plan must still be finished before its deadline.
	busyPlanShare = 4
)

// planExecution is the execution of a plan, or of its cancellation: its stages one after the other, and the steps of a
// stage in any order.
type planExecution struct {
	id  string
	job cluster.JobID
	// isEnd is set for a cancellation. It is never given up, because no other process would do it.
	isEnd bool
	why   string // why the plan was cancelled

	current  []*podStep // the current stage
	stages   [][]*podStep
	left     int // unfinished steps of the current stage
	running  int // requests
	refused  []cache.Refused
	sent     int         // evictions
	failure  string      // why it cannot be carried out, "" if it can, or if that is reported
	marked   metav1.Time // when the victims were chosen
	requests int         // to record the plan in the status of its job

	isDropped bool
}

// Executor carries out plans. It sends one request at a time for each pod, in the order of the decisions.
type Executor struct {
	queue   workqueue.TypedDelayingInterface[*podStep]
	trickle flowcontrol.RateLimiter // bounds what is sent while bindings wait
	backOff wait.Backoff
	options Options
	workers sync.WaitGroup

	send func(context.Context, *podStep) (EvictionResult, error)

	repeated atomic.Int64

	mutex sync.Mutex
	// plans are those that are neither finished nor cancelled nor failed.
	plans map[string]*planExecution
	// lanes are the unfinished steps of each pod, in their order. The first is queued or in flight.
	lanes map[types.UID][]*podStep
	// promises are the last steps about the nominated node of each pod.
	promises    map[types.UID]*podStep
	outstanding int // unfinished steps
	inFlight    int
	isClosed    bool
	idle        chan struct{} // closed once isClosed and nothing is in flight
}

// Options are what an executor needs besides the connection. None of the functions may wait.
type Options struct {
	// Record writes the status of a PodGroup, or a newer one, and passes the error of each attempt. It continues as
	// long as the function returns true.
	Record func(decision.GroupStatus, func(error) bool)
	// Fail receives plans that cannot be carried out.
	Fail func(cache.PlanFailed)
	// Evicted receives the result of each eviction.
	Evicted func(*decision.Eviction, EvictionResult)
	// IsBusy reports whether bindings wait. While it does, plans get only a part of the requests.
	IsBusy func() bool
	Logger logr.Logger
}

// New returns an executor that queues plans until [Executor.Start].
func New(clients *apiserver.Clients, options Options) *Executor {
	x := newExecutor(messenger{clients}.do, options)
	x.trickle = clients.Share(busyPlanShare)
	return x
}

// newExecutor returns an executor that carries out steps with a function.
func newExecutor(send func(context.Context, *podStep) (EvictionResult, error), options Options) *Executor {
	return &Executor{
		send: send, options: options, queue: workqueue.NewTypedDelayingQueue[*podStep](), backOff: apiserver.RequestBackOff,
		plans: map[string]*planExecution{}, lanes: map[types.UID][]*podStep{}, promises: map[types.UID]*podStep{},
		idle: make(chan struct{}),
	}
}

// Start carries out plans until the context ends.
func (x *Executor) Start(ctx context.Context) {
	for range Workers {
		x.workers.Go(func() {
			for x.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, x.queue.ShutDown)
}

// Begin queues a plan. After Close it drops it.
func (x *Executor) Begin(start *decision.PlanStart) {
	plan := &planExecution{id: start.ID, job: start.Job, marked: metav1.Now().Rfc3339Copy()}
	nominations, marks := make([]*podStep, len(start.Nominations)), make([]*podStep, len(start.Evictions))
	record := start.PromiseRecord()
	evictions, restatements := make([]*podStep, len(start.Evictions)), []*podStep(nil)
	var questions []*podStep
	// A single eviction needs no dry run: its answer comes before anything else is sent.
	isAsked := plan.job != (cluster.JobID{}) && len(start.Evictions) > 1
	for i := range start.Nominations {
		n := &start.Nominations[i]
		nominations[i] = x.podStep(plan, nominate, n.Pod, n.UID)
		nominations[i].node, nominations[i].record = n.Node, record
	}
	for i := range start.Evictions {
		v := &victim{Eviction: start.Evictions[i]}
		marks[i], evictions[i] = x.podStep(plan, mark, v.Pod, v.UID), x.podStep(plan, evict, v.Pod, v.UID)
		marks[i].victim, evictions[i].victim = v, v
		if isAsked {
			e := x.podStep(plan, ask, v.Pod, v.UID)
			e.victim = v
			questions = append(questions, e)
		}
		if !v.PastBudget {
			e := x.podStep(plan, restate, v.Pod, v.UID)
			e.victim = v
			restatements = append(restatements, e)
		}
	}
	plan.stages = [][]*podStep{nominations, questions, marks, evictions, restatements}
	x.mutex.Lock()
	if x.isClosed {
		x.mutex.Unlock()
		return
	}
	x.plans[plan.id] = plan
	x.admit(plan)
	if plan.job == (cluster.JobID{}) {
		x.proceed(plan)
		x.mutex.Unlock()
		return
	}
	x.mutex.Unlock()
	x.options.Record(start.Group, func(err error) bool { return x.recorded(plan, err) })
}

// End drops what was not sent of a plan and takes back what was written. It does so in the reverse order, so that a
// leader that takes over in the middle still finds the plan of the rest. The plan may have begun in another process.
func (x *Executor) End(end *decision.PlanEnd) {
	plan := &planExecution{id: end.ID, job: end.Job, isEnd: true, why: end.Why}
	spared, withdrawn := make([]*podStep, len(end.Spared)), make([]*podStep, len(end.Nominations))
	for i, s := range end.Spared {
		spared[i] = x.podStep(plan, spare, s.Pod, s.UID)
		spared[i].refusal, spared[i].record = s.Refused, s.Record()
	}
	for i, n := range end.Nominations {
		withdrawn[i] = x.podStep(plan, withdraw, n.Pod, n.UID)
	}
	plan.stages = [][]*podStep{spared, withdrawn}
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.isClosed {
		return
	}
	if begun := x.plans[end.ID]; begun != nil {
		x.drop(begun)
	}
	x.admit(plan)
	x.proceed(plan)
}

func (x *Executor) podStep(plan *planExecution, s step, pod types.NamespacedName, uid types.UID) *podStep {
	return &podStep{of: plan, step: s, pod: pod, uid: uid, backOff: x.backOff}
}

// admit counts the steps of a plan. They replace unfinished steps of older plans about the same nominated nodes.
func (x *Executor) admit(plan *planExecution) {
	for _, stage := range plan.stages {
		x.outstanding += len(stage)
		for _, e := range stage {
			if e.step != nominate && e.step != withdraw {
				continue
			}
			if old := x.promises[e.uid]; old != nil {
				x.void(old)
			}
			x.promises[e.uid] = e
		}
	}
}

// void cancels a step, or its repetition if it is in flight.
func (x *Executor) void(e *podStep) {
	e.isVoid = true
	if !e.isRunning && !e.isOver {
		x.finish(e)
	}
}

// recorded continues a plan once it is recorded.
func (x *Executor) recorded(plan *planExecution, err error) (waits bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	switch plan.requests++; {
	case plan.isDropped || x.isClosed:
	case err == nil:
		x.proceed(plan)
	case err == apiserver.ErrObjectGone || apiserver.IsFinal(err) || plan.requests >= apiserver.MaxRequests:
		x.refuse(plan, fmt.Sprintf("telling PodGroup %s of the plan: %v", plan.job, err))
	default:
		return true
	}
	return false
}

// proceed begins the next stage with any steps, unless steps of the last stage were refused.
func (x *Executor) proceed(plan *planExecution) {
	if plan.left == 0 && len(plan.refused) > 0 {
		slices.SortFunc(plan.refused, func(a, b cache.Refused) int { return cluster.CompareNames(a.Pod, b.Pod) })
		reason := plan.refused[0].Reason
		if others := len(plan.refused) - 1; others > 0 {
			reason += fmt.Sprintf(", and %d more", others)
		}
		x.refuse(plan, reason)
		return
	}
	for plan.left == 0 && len(plan.stages) > 0 {
		plan.current, plan.stages = plan.stages[0], plan.stages[1:]
		for _, e := range plan.current {
			if e.isOver {
				continue
			}
			plan.left++
			e.isQueued = true
			if x.lanes[e.uid] = append(x.lanes[e.uid], e); len(x.lanes[e.uid]) == 1 {
				x.queue.Add(e)
			}
		}
	}
	if plan.left == 0 && x.plans[plan.id] == plan {
		delete(x.plans, plan.id)
	}
}

// finish ends a step, done or not.
func (x *Executor) finish(e *podStep) {
	e.isOver = true
	x.outstanding--
	if x.promises[e.uid] == e {
		delete(x.promises, e.uid)
	}
	if !e.isQueued {
		return
	}
	lane := x.lanes[e.uid]
	wasFirst := lane[0] == e
	switch lane = slices.DeleteFunc(lane, func(other *podStep) bool { return other == e }); {
	case len(lane) == 0:
		delete(x.lanes, e.uid)
	default:
		x.lanes[e.uid] = lane
		if wasFirst {
			x.queue.Add(lane[0])
		}
	}
	if e.of.left--; e.of.left == 0 && !e.of.isDropped {
		x.proceed(e.of)
	}
}

// drop ends a plan: requests in flight are not repeated, and no more are sent.
func (x *Executor) drop(plan *planExecution) {
	plan.isDropped = true
	delete(x.plans, plan.id)
	for _, stage := range append([][]*podStep{plan.current}, plan.stages...) {
		for _, e := range stage {
			if e.isOver || e.isRunning {
				continue
			}
			x.finish(e)
			if e.step == evict && e.victim.isRefused {
				x.options.Evicted(&e.victim.Eviction, EvictionRefused)
			} else if e.step == evict {
				x.options.Evicted(&e.victim.Eviction, EvictionDropped)
			}
		}
	}
	plan.current, plan.stages = nil, nil
}

// refuse drops a plan that cannot be carried out. What was written is undone after the scheduler has cancelled it.
func (x *Executor) refuse(plan *planExecution, reason string) {
	x.options.Logger.Info("A plan cannot be carried out", "plan", plan.id, "job", plan.job.String(), "reason", reason)
	x.drop(plan)
	plan.failure = reason
	x.report(plan)
}

// report reports a plan that cannot be carried out, once no request of it is in flight, so that it is known what was
// done.
func (x *Executor) report(plan *planExecution) {
	if plan.failure == "" || plan.running > 0 {
		return
	}
	x.options.Fail(cache.PlanFailed{Job: plan.job, Plan: plan.id, At: time.Now(), Reason: plan.failure, Refused: plan.refused, Sent: plan.sent})
	plan.failure = ""
}

// refuses notes that the API server has refused to evict a victim. Without an answer it has not.
func (e *podStep) refuses(err error) {
	if e.victim == nil || !apiserver.IsFinal(err) && !forbids(err) {
		return
	}
	e.victim.isRefused = true
	e.of.refused = append(e.of.refused, cache.Refused{Pod: e.pod, UID: e.uid, Reason: e.describe(err), ByBudget: forbids(err)})
}

// Bound drops the nomination of a pod that is about to be bound. The API server removes the nominated node with the
// binding. A binding that waits for volumes or devices may take minutes, and until then other schedulers, and one that
// starts, leave the room of the nominated node to the pod. So another node than that of the binding is withdrawn first.
func (x *Executor) Bound(b decision.Bind) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if e := x.promises[b.UID]; e != nil && e.step == nominate {
		x.void(e)
	}
	if b.Reservation == nil || !b.IsNominated || x.isClosed {
		return
	}
	plan := &planExecution{job: b.Job, isEnd: true}
	e := x.podStep(plan, withdraw, b.Pod, b.UID)
	e.node = b.Node
	plan.stages = [][]*podStep{{e}}
	x.admit(plan)
	x.proceed(plan)
}

// Sending returns a channel that closes when the nominated node of a pod is written, nil if no such write is in flight.
func (x *Executor) Sending(uid types.UID) <-chan struct{} {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if e := x.promises[uid]; e != nil && e.step == nominate && e.isRunning {
		return e.returned
	}
	return nil
}

// next sends one request of one step. It returns false after the queue was closed.
func (x *Executor) next(ctx context.Context) bool {
	e, isOver := x.queue.Get()
	if isOver {
		return false
	}
	defer x.queue.Done(e)
	if x.isWanted(e) && x.options.IsBusy() && x.trickle.Wait(ctx) != nil {
		return true
	}
	if ctx.Err() != nil || !x.take(e) {
		return true
	}
	result, err := x.send(ctx, e)
	x.returned(ctx, e, result, err)
	return true
}

func (x *Executor) isWanted(e *podStep) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return !e.isOver && !x.isClosed
}

func (x *Executor) take(e *podStep) bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if e.isOver || x.isClosed {
		return false
	}
	e.isRunning, e.returned = true, make(chan struct{})
	e.requests++
	e.of.running++
	x.inFlight++
	return true
}

// returned continues a step after a request.
func (x *Executor) returned(ctx context.Context, e *podStep, result EvictionResult, err error) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	e.isRunning = false
	close(e.returned)
	x.inFlight--
	e.of.running--
	defer x.announceIdle()
	defer x.report(e.of)
	isGivenUp := apiserver.IsFinal(err) || forbids(err) || e.requests >= apiserver.MaxRequests && !e.of.isEnd
	switch {
	case err == nil || err == apiserver.ErrObjectGone:
		if e.step == evict && result != EvictionNeedless {
			e.of.sent++
		}
		x.finish(e)
	case ctx.Err() != nil:
		return
	case e.isVoid || e.of.isDropped:
		e.refuses(err)
		x.finish(e)
	case !isGivenUp:
		x.repeated.Add(1)
		x.options.Logger.V(1).Info("A step of a plan was not confirmed; it will be repeated", "plan", e.of.id, "pod", e.pod, "error", err)
		x.queue.AddAfter(e, apiserver.PauseAfter(err, &e.backOff))
		return
	case e.step == restate || e.of.isEnd:
		// Nothing depends on it.
		x.options.Logger.Info("A step of a plan was refused", "plan", e.of.id, "pod", e.pod, "error", err.Error())
		x.finish(e)
	case e.step == nominate:
		e.of.isDropped = true
		x.finish(e)
		x.refuse(e.of, e.describe(err))
	default:
		result = EvictionRefused
		e.refuses(err)
		// All answers of a dry run are collected before they are reported. The stages that change pods end with the
		// first refusal.
		fails := e.step != ask || !e.victim.isRefused
		e.of.isDropped = e.of.isDropped || fails
		x.finish(e)
		if fails {
			x.refuse(e.of, e.describe(err))
		}
	}
	if e.step == evict {
		if result == "" && e.victim.isRefused {
			result = EvictionRefused
		} else if result == "" { // cancelled before the result was known
			result = EvictionUnknown
		}
		x.options.Evicted(&e.victim.Eviction, result)
	}
}

// describe says the API server's answer to a step, as a clause.
func (e *podStep) describe(err error) string {
	return fmt.Sprintf("%s pod %s: %v", doing[e.step], e.pod, err)
}

// Stats counts the unfinished plans, the waiting steps, the requests in flight, and the repeated requests so far.
func (x *Executor) Stats() (plans, waiting, inFlight, repeated int) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return len(x.plans), x.outstanding - x.inFlight, x.inFlight, int(x.repeated.Load())
}

// Wait waits for the workers to end, after the context of Start has ended.
func (x *Executor) Wait() { x.workers.Wait() }

// Close stops new requests. The returned channel closes when none is in flight. Close is called once.
func (x *Executor) Close() <-chan struct{} {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.isClosed = true
	x.announceIdle()
	return x.idle
}

func (x *Executor) announceIdle() {
	if !x.isClosed || x.inFlight > 0 {
		return
	}
	select {
	case <-x.idle:
	default:
		close(x.idle)
	}
}
