package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// fault is what happens to a call in place of an answer.
type fault func(*driver, *call)

// awaitedFault waits for a write that it happens to.
type awaitedFault struct {
	do  fault
	aim string // the kind of write of ours that it waits for, see [kindOfWrite]; "" if it waits for any of any program
}

// faultKind is one way in which something around the programs fails.
type faultKind struct {
	rate int
	do   func(*driver, *rand.Rand) bool // false if there is nothing to which it could happen
}

func (f faultKind) weight() int { return f.rate }

// faultKinds are all faults. Those of calls wait for a write that is not part of an election: half of them for the next
// one, and half for one of a kind and verb that programs have written before. Bindings and evictions are few among all
// writes, and faults that take what comes next hardly ever hit them.
var faultKinds = map[string]faultKind{
	"request lost":   {6, onCall(lost)},
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
	"missed end":     {8, missEnd},
	"compaction":     {2, compaction},
	"stale cache":    {4, staleCache},
	"crash":          {8, crash},
	"crash at write": {6, onCall(crashAtWrite)},
	"stale start":    {6, staleStart},
	"partition":      {3, partition},
	"leader cut off": {8, cutOffLeader},
	"outage":         {2, outage},
	"slow node":      {3, slowNode},
	"pod failed":     {2, podFailed},
	"node lost":      {2, nodeLost},
	"webhook fails":  {2, failWebhook},
}

// onCall makes a fault of a write.
func onCall(f fault) func(*driver, *rand.Rand) bool {
	return func(d *driver, random *rand.Rand) bool {
		awaited := awaitedFault{do: f}
		if random.IntN(2) == 0 {
			awaited.aim, _ = pick(random, sortedKeys(d.written))
		}
		d.faults = append(d.faults, awaited)
		return true
	}
}

// kindOfWrite is the verb of a write and the resource that it changes.
func (c *call) kindOfWrite() string {
	p := placeOf(c.request.URL.Path)
	return strings.TrimSuffix(fmt.Sprintf("%s %s/%s/%s", c.request.Method, p.Group, p.Resource, p.Subresource), "/")
}

// faultFor returns what happens to a call, nil if it is served.
func (d *driver) faultFor(c *call) fault {
	if !c.isWrite() || c.isLease() {
		return nil
	}
	kind := c.kindOfWrite()
	if isOurs(c.from) {
		d.written[kind] = true
	}
	i := slices.IndexFunc(d.faults, func(f awaitedFault) bool { return f.aim == "" || f.aim == kind && isOurs(c.from) })
	if i < 0 {
		return nil
	}
	f := d.faults[i].do
	d.faults = slices.Delete(d.faults, i, i+1)
	d.isHit = true
	d.count("fault of " + kind)
	return f
}

// awaitsAnyWrite reports whether a fault waits for the next write, whatever it is.
func (d *driver) awaitsAnyWrite() bool {
	return slices.ContainsFunc(d.faults, func(f awaitedFault) bool { return f.aim == "" })
}

// isOurs reports whether a process is one of the programs that are tried, and not of Kubernetes.
func isOurs(i *incarnation) bool { return i.program == schedulerName || i.program == controllersName }

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

// watchHeld holds a watch, mostly one that has something to tell: most watches hardly ever do.
func watchHeld(d *driver, random *rand.Rand) bool {
	s, ok := d.someStream(random)
	for range 5 {
		if s == nil || s.cursor.Pending() > 0 {
			break
		}
		s, ok = d.someStream(random)
	}
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
	d.lag, d.lagTo, d.lagUntil = int64(1+random.IntN(100)), d.step+50+random.IntN(400), time.Time{}
	d.note("caches are %d revisions behind until step %d", d.lag, d.lagTo)
	return true
}

// cacheRevision is how far the server's cache of a resource has come.
func (d *driver) cacheRevision(_ schema.GroupResource, oldest, current int64) int64 {
	if !d.isLagging() {
		return current
	}
	return max(oldest, current-d.lag)
}

// crashAtWrite ends a process at one of its writes, which is carried out or not.
func crashAtWrite(d *driver, c *call) {
	for _, p := range d.programs {
		if p.now == c.from {
			d.note("%s: its sender ends", c.key)
			p.kill() // it decides about the write
		}
	}
}

// missEnd holds a watch until something that it tells of is deleted, and lets it expire then: what is gone is seen only
// by a list that does not have it. In half of the cases these are the pods of a scheduler, which counts their room.
func missEnd(d *driver, random *rand.Rand) bool {
	slices.SortFunc(d.streams, compareStreams)
	ofPods := random.IntN(2) == 0
	var streams []*stream
	for _, s := range d.streams {
		isWanted := slices.Contains(ending, s.path) && isOurs(s.from)
		if ofPods {
			isWanted = s.path == pods && s.from.program == schedulerName
		}
		if isWanted && !d.holds(s) {
			streams = append(streams, s)
		}
	}
	s, ok := pick(random, streams)
	if ok {
		s.heldTo, s.awaitsEnd = d.step+longestMiss, true
		d.note("%s: held until something is deleted", s.key)
	}
	return ok
}

// longestMiss is for how many steps a watch is held at most until something is deleted.
const longestMiss = 600

// ending are the collections of what is deleted often, and of which programs keep accounts.
var ending = []string{pods, podGroups, jobs, volcanoJobs, workloads}

// seenByFaults takes in a change.
func (d *driver) seenByFaults(before, now *object) {
	if now != nil {
		return
	}
	for _, s := range d.streams {
		if s.awaitsEnd && s.path == before.collection {
			s.hasMissed = true
		}
	}
}

// expireMissed lets watches expire that were held until something was deleted.
func (d *driver) expireMissed() {
	for _, s := range d.streams {
		if !s.hasMissed || s.isOver() {
			continue
		}
		s.release()
		compaction(d, nil)
		s.put(s.cursor.Expire())
		s.finish(errEnd)
		d.note("%s: expired, and what was deleted is not told", s.key)
		d.count("deletion missed")
	}
}

// staleStart ends a process and starts it again at once, while the API server that it asks is behind, and tells it of
// what has happened since with a delay.
func staleStart(d *driver, random *rand.Rand) bool {
	var all []*program
	for _, p := range d.programs {
		if p.now != nil && isOurs(p.now) {
			all = append(all, p)
		}
	}
	p, ok := pick(random, all)
	if !ok {
		return false
	}
	p.kill()
	p.again = time.Now()
	p.isBehind = true
	// It lists nothing before it leads, which it does when the Lease of the process that has ended is over.
	d.lag, d.lagTo, d.lagUntil = int64(20+random.IntN(150)), d.step+200+random.IntN(300), time.Now().Add(time.Duration(20+random.IntN(30))*time.Second)
	d.note("%s starts again, and caches are %d revisions behind until step %d, at least until %s", p.Name, d.lag, d.lagTo, d.lagUntil.Sub(d.plan.begin))
	return true
}

// cutOffLeader cuts the scheduler that leads off for longer than its Lease lasts, or only its requests for the Lease,
// while all others are served. In half of the cases what it reads of the Lease is served late, as by a server that
// cannot write: then it takes longer until the process gives the Lease up.
func cutOffLeader(d *driver, random *rand.Rand) bool {
	leader := d.writes.leader
	if leader == nil || leader.isDead || leader.isHeld() {
		return false
	}
	to := time.Now().Add(time.Duration(20+random.IntN(60)) * time.Second)
	if random.IntN(3) == 0 {
		leader.heldTo = to
		d.note("%s, which leads, is cut off until %s", leader, to.Sub(d.plan.begin))
	} else {
		leader.leaseTo, leader.readsLease = to, random.IntN(2) == 0
		d.note("requests of %s for its Lease are not served until %s", leader, to.Sub(d.plan.begin))
	}
	return true
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

// podFailed has a pod of a Job of Kubernetes fail, as when it has used up its memory. Such a pod gets a successor. Of a
// gang of Volcano without a policy for it the others wait for ever.
func podFailed(d *driver, random *rand.Rand) bool {
	return d.failPod(func(o *object) bool {
		ref := owner(o)
		return ref != nil && ref.APIVersion == "batch/v1"
	}, random)
}

// failPod has one of some pods fail, the first one without a source of chance.
func (d *driver) failPod(isWanted func(*object) bool, random *rand.Rand) bool {
	var running []*object
	for _, o := range d.observer.all(pods) {
		if o.pod.Status.Phase == corev1.PodRunning && o.pod.DeletionTimestamp == nil && isWanted(o) {
			running = append(running, o)
		}
	}
	if len(running) == 0 {
		return false
	}
	o := running[0]
	if random != nil {
		o, _ = pick(random, running)
	}
	pod := o.pod.DeepCopy()
	d.kubelets.finish(pod, 137)
	return d.ask("kubelet", http.MethodPut, o.path()+"/status", jsonType, pod).Code < http.StatusBadRequest
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
		if e.Kind == lastFaultsKind {
			do = d.last.begin
		}
		d.note("— %s", e)
		if do(d, random) {
			d.count(e.Kind)
		}
		d.look()
	}
}
