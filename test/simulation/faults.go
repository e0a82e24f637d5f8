package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// fault is what happens to a call in place of an answer.
type fault func(*driver, *call)

// faultKind is one way in which something around the programs fails.
type faultKind struct {
	rate int
	do   func(*driver, *rand.Rand) bool // false if there is nothing to which it could happen
}

func (f faultKind) weight() int { return f.rate }

// faultKinds are all faults. Those of calls wait for the next write that is not part of an election.
var faultKinds = map[string]faultKind{
	"request lost":   {6, onCall(func(d *driver, c *call) { d.answer(c, outcome{err: errReset}, "lost before it arrived") })},
	"answer lost":    {10, onCall(answerLost)},
	"conflict":       {4, onCall(refused(http.StatusConflict, metav1.StatusReasonConflict))},
	"too many":       {4, onCall(refused(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests))},
	"internal error": {4, onCall(refused(http.StatusInternalServerError, metav1.StatusReasonInternalError))},
	"unavailable":    {4, onCall(refused(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))},
	"timeout":        {4, onCall(timedOut)},
	"slow request":   {6, slowRequest},
	"watch cut":      {8, watchCut},
	"watch expired":  {4, watchExpired},
	"watch held":     {8, watchHeld},
	"compaction":     {2, compaction},
	"stale cache":    {4, staleCache},
	"crash":          {8, crash},
	"partition":      {3, partition},
	"outage":         {2, outage},
	"slow node":      {3, slowNode},
	"node lost":      {2, nodeLost},
	"webhook fails":  {2, failWebhook},
}

// onCall makes a fault of the next write.
func onCall(f fault) func(*driver, *rand.Rand) bool {
	return func(d *driver, _ *rand.Rand) bool {
		d.faults = append(d.faults, f)
		return true
	}
}

// faultFor returns what happens to a call, nil if it is served.
func (d *driver) faultFor(c *call) fault {
	if len(d.faults) == 0 || !c.isWrite() || c.isLease() {
		return nil
	}
	f := d.faults[0]
	d.faults = d.faults[1:]
	return f
}

func answerLost(d *driver, c *call) {
	response := d.write(c)
	d.answer(c, outcome{err: errReset}, fmt.Sprintf("%d, and the answer is lost", response.Code))
}

// refused answers as a server that does not do what it is asked for.
func refused(code int, reason metav1.StatusReason) fault {
	return func(d *driver, c *call) {
		d.answer(c, outcome{response: failure(code, reason)}, fmt.Sprintf("a false %d", code))
	}
}

func timedOut(d *driver, c *call) {
	response := d.write(c)
	d.answer(c, outcome{response: failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)}, fmt.Sprintf("%d, and a false 504", response.Code))
}

func failure(code int, reason metav1.StatusReason) *apiserver.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"simulated fault","reason":%q,"code":%d}`, reason, code)
	header := http.Header{"Content-Type": {jsonType}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &apiserver.Response{Code: code, Header: header, Body: []byte(body)}
}

// pick returns one of some things.
func pick[T any](random *rand.Rand, of []T) (one T, ok bool) {
	if len(of) == 0 {
		return one, false
	}
	return of[random.IntN(len(of))], true
}

func slowRequest(d *driver, random *rand.Rand) bool {
	d.mutex.Lock()
	calls := sortedCalls(d.calls)
	d.mutex.Unlock()
	c, ok := pick(random, calls)
	if ok {
		c.heldTo = d.step + 20 + random.IntN(300)
		d.note("%s: held until step %d", c.key, c.heldTo)
	}
	return ok
}

// sortedCalls returns calls in the order that does not depend on goroutines. It leaves its argument as it is.
func sortedCalls(calls []*call) []*call {
	return slices.SortedFunc(slices.Values(calls), compareCalls)
}

func (d *driver) someStream(random *rand.Rand) (*stream, bool) {
	slices.SortFunc(d.streams, compareStreams)
	return pick(random, d.streams)
}

func watchCut(d *driver, random *rand.Rand) bool {
	s, ok := d.someStream(random)
	if ok {
		s.finish(errReset)
		d.note("%s: cut", s.key)
	}
	return ok
}

func watchExpired(d *driver, random *rand.Rand) bool {
	s, ok := d.someStream(random)
	if ok {
		s.put(s.cursor.Expire())
		s.finish(errEnd)
		d.note("%s: expired", s.key)
	}
	return ok
}

func watchHeld(d *driver, random *rand.Rand) bool {
	s, ok := d.someStream(random)
	if ok {
		s.heldTo = d.step + 20 + random.IntN(400)
		d.note("%s: held until step %d", s.key, s.heldTo)
	}
	return ok
}

// compaction forgets the past: a watch that is opened again from there gets 410.
func compaction(d *driver, _ *rand.Rand) bool {
	d.api.Lock()
	defer d.api.Unlock()
	d.observer.drain()
	d.note("compaction at %d", d.server.Revision())
	return d.server.Compact(d.server.Revision()) == nil
}

// staleCache makes the server answer from the past, for a while, where a client leaves it the choice: another API
// server is behind.
func staleCache(d *driver, random *rand.Rand) bool {
	d.lag, d.lagTo = int64(1+random.IntN(100)), d.step+50+random.IntN(400)
	d.note("caches are %d revisions behind until step %d", d.lag, d.lagTo)
	return true
}

// cacheRevision is how far the server's cache of a resource has come.
func (d *driver) cacheRevision(_ schema.GroupResource, oldest, current int64) int64 {
	if d.step >= d.lagTo {
		return current
	}
	return max(oldest, current-d.lag)
}

func (d *driver) someProgram(random *rand.Rand) (*program, bool) {
	var running []*program
	for _, p := range d.programs {
		if p.now != nil {
			running = append(running, p)
		}
	}
	return pick(random, running)
}

func crash(d *driver, random *rand.Rand) bool {
	p, ok := d.someProgram(random)
	if ok {
		p.kill()
	}
	return ok
}

// partition cuts a program off for a while, which may be longer than its lease lasts. What it has sent may arrive after
// that.
func partition(d *driver, random *rand.Rand) bool {
	p, ok := d.someProgram(random)
	if ok {
		p.now.heldTo = time.Now().Add(time.Duration(1+random.IntN(40)) * time.Second)
		d.note("%s is cut off until %s", p.now, p.now.heldTo.Sub(d.plan.begin))
	}
	return ok
}

// outage is a time in which the API server refuses all connections.
func outage(d *driver, random *rand.Rand) bool {
	d.mutex.Lock()
	d.outageTo = time.Now().Add(time.Duration(1+random.IntN(30)) * time.Second)
	d.mutex.Unlock()
	for _, s := range d.streams {
		s.finish(errReset)
	}
	d.note("the API server is away until %s", d.outageTo.Sub(d.plan.begin))
	return true
}

func (d *driver) someNode(random *rand.Rand) (*object, bool) {
	return pick(random, d.observer.all("/api/v1/nodes"))
}

func slowNode(d *driver, random *rand.Rand) bool {
	o, ok := d.someNode(random)
	if ok {
		d.kubelets.slow[o.GetName()] = time.Now().Add(time.Duration(1+random.IntN(120)) * time.Second)
	}
	return ok
}

// nodeLost takes a node away, and with it its pods, as the controllers of Kubernetes do after a while.
func nodeLost(d *driver, random *rand.Rand) bool {
	o, ok := d.someNode(random)
	return ok && len(d.observer.all("/api/v1/nodes")) > 2 && d.removeNode(o.GetName())
}

// removeNode deletes a node and the pods on it.
func (d *driver) removeNode(name string) bool {
	if !d.delete("cloud", "/api/v1/nodes/"+name, nil) {
		return false
	}
	for _, o := range d.observer.all(pods) {
		if o.pod.Spec.NodeName == name {
			d.kubelets.due[o.id()] = time.Now().Add(lostAfter)
		}
	}
	return true
}

// happen lets faults and moves of the plan happen whose step has come.
func (d *driver) happen() {
	for ; d.next < len(d.plan.Events) && d.plan.Events[d.next].Step <= d.step; d.next++ {
		e := d.plan.Events[d.next]
		random := rand.New(rand.NewPCG(d.plan.Seed, e.Arg))
		do := faultKinds[e.Kind].do
		if do == nil {
			do = moveKinds[e.Kind].do
		}
		d.note("— %s", e)
		if do(d, random) {
			d.count(e.Kind)
		}
		d.look()
	}
}
