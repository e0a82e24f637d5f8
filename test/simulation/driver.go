package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	mathrand "math/rand"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/test/simulation/apiserver"
)

// driver decides what happens next, and carries it out.
type driver struct {
	plan   *Plan
	world  world
	server *apiserver.Server
	random *rand.Rand // which of what could happen does
	api    lock       // held around each use of the server

	programs     []*program
	observer     *observer
	kubelets     kubelets
	rules        *rules
	writes       *writes
	charges      *charges
	quotas       *quotas
	operator     operator
	groups       groups
	contests     contests
	provisioner  provisioner
	disturbances disturbances
	last         lastFaults
	log          *auditLog

	mutex   sync.Mutex // of what goroutines of programs change
	calls   []*call
	numbers int
	arrived chan struct{}

	streams  []*stream
	step     int
	next     int // of the plan's events
	faults   []awaitedFault
	written  map[string]bool // kinds of writes of our programs so far
	isHit    bool            // a fault has happened to a call in this step
	outageTo time.Time
	lag      int64 // how many revisions caches of the server are behind, until step lagTo, and not before lagUntil
	lagTo    int
	lagUntil time.Time
	isLate   bool         // what is being written was sent by a program that has given up
	writer   *incarnation // which process has sent what is being written; nil if no program has
	names    int

	lastSubmitted submission
	definitions   []map[string]any // of the installer
	steps         hash.Hash
	trace         []string
	result        Result
}

// option is something that could happen next.
type option struct {
	weight int
	name   string
	do     func()
}

// lock is a mutex of a bubble: time passes while a goroutine waits for it, which it does not for a sync.Mutex, and the
// server may wait for time while it is held.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// Lock waits until nothing else holds it.
func (l lock) Lock() { l <- struct{}{} }

// Unlock lets another one hold it.
func (l lock) Unlock() { <-l }

// submit queues a call. It returns false if the program is dead.
func (d *driver) submit(c *call) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if c.from.isDead {
		return false
	}
	d.numbers++
	c.number = d.numbers
	d.calls = append(d.calls, c)
	select {
	case d.arrived <- struct{}{}:
	default:
	}
	return true
}

// leave notes that the client of a call has given up.
func (d *driver) leave(c *call) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	c.isLeft = true
}

// discover answers at once.
func (d *driver) discover(from *incarnation, r *http.Request) (*http.Response, error) {
	d.mutex.Lock()
	isDead := from.isDead || time.Now().Before(d.outageTo)
	d.mutex.Unlock()
	if isDead {
		return nil, errRefused
	}
	return outcome{response: d.handle(from.name, r, nil)}.toHTTP(r)
}

// handle asks the server.
func (d *driver) handle(as string, r *http.Request, body []byte) *apiserver.Response {
	d.api.Lock()
	defer d.api.Unlock()
	r = r.Clone(context.Background())
	r.Header.Set(userHeader, as)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return d.server.Handle(r)
}

// settle waits until everything waits, and brings the observer up to date.
func (d *driver) settle() {
	synctest.Wait()
	d.reseed()
	for _, p := range d.programs {
		p.reap()
	}
	d.streams = slices.DeleteFunc(d.streams, func(s *stream) bool {
		if !s.isOver() && (time.Now().After(s.until) || s.cursor.IsClosed()) {
			s.finish(errEnd)
		}
		if s.isOver() {
			s.cursor.Stop()
		}
		return s.isOver()
	})
}

// reseed lets what programs take from chance until the next step follow from the seed and the step: goroutines that run
// in another order in one step change nothing for later ones.
func (d *driver) reseed() {
	//lint:ignore SA1019 there is no other way for libraries that use the global source
	mathrand.Seed(int64(d.plan.Seed)<<20 + int64(d.step))
}

// note writes down a step.
func (d *driver) note(format string, arguments ...any) {
	line := fmt.Sprintf("%d %s ", d.step, time.Since(d.plan.begin).Round(time.Microsecond)) + fmt.Sprintf(format, arguments...)
	fmt.Fprintln(d.steps, line)
	d.trace = append(d.trace, line)
}

// run makes steps until the plan is over.
func (d *driver) run() {
	for d.step = 0; d.step < d.plan.Steps && !d.isBroken(); d.step++ {
		d.settle()
		d.disturbances.pass()
		d.expireMissed()
		d.happen()
		d.take(d.options())
		d.look()
		d.drift()
	}
}

// drift lets a moment pass, so that timers that are set in different steps end at different times, and now and then
// some more: while there is always something to do, pods would never end otherwise.
func (d *driver) drift() {
	most := 1500 * time.Microsecond
	if d.random.IntN(20) == 0 {
		most = time.Second
	}
	time.Sleep(time.Duration(1 + d.random.Int64N(int64(most))))
}

// look brings the observer and the rules up to date.
func (d *driver) look() {
	d.api.Lock()
	defer d.api.Unlock()
	d.observer.drain()
	d.rules.check()
	d.charges.check()
	d.writer, d.isHit = nil, false
}

func (d *driver) isBroken() bool { return len(d.result.Violations) > 0 }

// take carries out one of what could happen, or lets time pass.
func (d *driver) take(options []option) {
	total := 0
	for _, o := range options {
		total += o.weight
	}
	if total == 0 {
		d.pass()
		return
	}
	at := d.random.IntN(total)
	for _, o := range options {
		if at -= o.weight; at < 0 {
			o.do()
			return
		}
	}
}

// longestPass is how long time passes at most in one step.
const longestPass = 20 * time.Second

// pass lets time pass until a program sends a request, a kubelet has something to do, or for a while.
func (d *driver) pass() {
	limit := longestPass
	if until := time.Until(d.outageTo); until > 0 {
		limit = min(limit, until)
	} else if due, ok := d.kubelets.nextDue(); ok {
		limit = min(limit, max(time.Until(due), time.Millisecond))
	}
	for _, p := range d.programs {
		limit = min(limit, p.patience())
	}
	select {
	case <-d.arrived:
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-d.arrived:
	case <-timer.C:
	}
	d.note("time")
}

// options are what could happen next, in an order that depends on nothing but the state.
func (d *driver) options() []option {
	var all []option
	isOut := time.Now().Before(d.outageTo)
	d.mutex.Lock()
	calls := slices.Clone(d.calls)
	d.mutex.Unlock()
	slices.SortFunc(calls, compareCalls)
	for _, c := range calls {
		switch {
		case c.from.isHeld() || c.heldTo > d.step && !c.isLeft || c.isLease() && c.from.delaysLease(c):
		case c.isLeft:
			all = append(all, option{1, "late " + c.key, func() { d.late(c) }})
		case isOut:
			all = append(all, option{4, "refuse " + c.key, func() { d.answer(c, outcome{err: errRefused}, "refused") }})
		default:
			all = append(all, option{4, "serve " + c.key, func() { d.serve(c) }})
		}
	}
	if !isOut {
		slices.SortFunc(d.streams, compareStreams)
		for _, s := range d.streams {
			if !d.holds(s) && !s.from.isHeld() && s.cursor.Pending() > 0 {
				all = append(all, option{4, "deliver " + s.key, func() { d.deliver(s) }})
			}
		}
		all = append(all, d.kubelets.options()...)
		all = append(all, d.operator.options()...)
		all = append(all, d.groups.options()...)
		all = append(all, d.contests.options()...)
		all = append(all, d.provisioner.options()...)
	}
	for _, p := range d.programs {
		all = append(all, p.options()...)
	}
	return all
}

// remove takes a call from the list.
func (d *driver) remove(c *call) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.calls = slices.DeleteFunc(d.calls, func(other *call) bool { return other == c })
}

// answer ends a call.
func (d *driver) answer(c *call, o outcome, note string) {
	d.remove(c)
	d.note("%s: %s", c.key, note)
	c.answer <- o
}

// late decides about a request whose client has given up: it was lost on its way, or it arrives now.
func (d *driver) late(c *call) {
	d.remove(c)
	if !c.mayArriveLate() || d.random.IntN(2) == 0 {
		d.note("%s: given up", c.key)
		return
	}
	d.count("late write")
	d.isLate = true
	response := d.write(c)
	d.look()
	d.isLate = false
	d.note("%s: given up, and arrives now: %d", c.key, response.Code)
}

// mayArriveLate reports whether a request may be carried out when its sender does not wait any more. The controller of
// claims of devices writes the names of the claims of a pod by the name of the pod alone: what arrives when another pod
// has that name names claims that are not the other's, and it never starts.
func (c *call) mayArriveLate() bool {
	return c.isWrite() && (isOurs(c.from) || c.kindOfWrite() != "PATCH /pods/status")
}

// write has the server carry out a call, for the log, too.
func (d *driver) write(c *call) *apiserver.Response {
	d.writer = c.from
	response := d.handle(c.from.program, c.request, c.body)
	d.result.Requests++
	if response.Code == http.StatusInternalServerError && strings.Contains(string(response.Body), "failed calling webhook") {
		d.count("request refused for a webhook")
	}
	if c.isWrite() && response.Code < http.StatusBadRequest {
		d.wrote(c)
	}
	return response
}

// wrote counts what programs write.
func (d *driver) wrote(c *call) {
	d.result.Writes++
	d.writes.wrote(c)
	if !c.isLease() {
		d.rules.wrote(c)
	}
}

// serve answers a call, as the next fault wants it.
func (d *driver) serve(c *call) {
	if isWatch(c.request) {
		d.watch(c)
		return
	}
	f := d.faultFor(c)
	if f == nil {
		f = d.last.faultFor(c)
	}
	if f != nil {
		f(d, c)
		return
	}
	response := d.write(c)
	d.writes.read(c)
	if isOfQuotas(c.request) && response.Code == http.StatusOK {
		c.from.told.listed(response.Body)
	}
	d.answer(c, outcome{response: response}, fmt.Sprint(response.Code))
}

// watch opens a stream.
func (d *driver) watch(c *call) {
	if d.world.lacksWatchLists && c.request.URL.Query().Get("sendInitialEvents") != "" {
		d.answer(c, outcome{response: failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)}, "no list by a watch")
		return
	}
	d.api.Lock()
	cursor, response := d.server.Watch(c.request.Clone(context.Background()))
	d.api.Unlock()
	d.result.Requests++
	if cursor == nil {
		d.answer(c, outcome{response: response}, fmt.Sprint(response.Code))
		return
	}
	d.numbers++
	s := &stream{from: c.from, key: c.key, path: c.request.URL.Path, number: d.numbers, cursor: cursor, header: cursor.Header, tellsOfQuotas: isOfQuotas(c.request), ready: make(chan struct{}, 1),
		done: c.request.Context().Done(), until: time.Now().Add(time.Duration(300+d.random.IntN(300)) * time.Second)}
	if p := d.programOf(c.from); p != nil && p.isBehind && d.isLagging() {
		s.heldTo, s.heldUntil = d.lagTo, d.lagUntil
	}
	d.streams = append(d.streams, s)
	d.answer(c, outcome{stream: s}, "watch")
}

// holds reports whether nothing of a watch is delivered now.
func (d *driver) holds(s *stream) bool { return s.heldTo > d.step || time.Now().Before(s.heldUntil) }

// isLagging reports whether caches of the server are behind.
func (d *driver) isLagging() bool { return d.step < d.lagTo || time.Now().Before(d.lagUntil) }

// programOf is the program that a process is of, nil if it is not its process any more.
func (d *driver) programOf(i *incarnation) *program {
	for _, p := range d.programs {
		if p.now == i {
			return p
		}
	}
	return nil
}

// deliver sends the next events of a watch: one, or all that there are.
func (d *driver) deliver(s *stream) {
	n := 1
	if d.random.IntN(2) == 0 {
		n = s.cursor.Pending()
	}
	sent := 0
	for range n {
		d.api.Lock()
		frame, ok := s.cursor.Next()
		d.api.Unlock()
		if !ok {
			break
		}
		s.put(frame)
		if s.tellsOfQuotas {
			s.from.told.watched(frame)
		}
		sent++
	}
	d.result.Events += sent
	d.note("%s: %d events", s.key, sent)
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

// count counts a fault or move.
func (d *driver) count(kind string) { d.result.Happened[kind]++ }

func newHash() hash.Hash { return sha256.New() }

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:16] }
