package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// Program is a program of the cluster.
type Program struct {
	Name      string
	HasCopies bool // there may be several, of which one leads
	// Start runs it on a connection until its context ends or it cannot go on.
	Start func(ctx context.Context, connection *rest.Config, logger logr.Logger) error
}

// program is one copy of a program.
type program struct {
	Program
	driver *driver
	copy   int
	count  int // of incarnations
	now    *incarnation
	dying  []*incarnation // killed, and not yet unwound
	again  time.Time      // when the next incarnation starts

	isBehind bool // the server that it asks is behind, as long as any is
}

// incarnation is a process: a program from its start to its end.
type incarnation struct {
	driver  *driver
	name    string
	program string
	cancel  context.CancelFunc
	isDead  bool      // killed; of the driver's mutex
	heldTo  time.Time // until then its requests and events are held back
	leaseTo time.Time // until then its requests for the Lease are held back
	ended   chan struct{}
	err     error
	told    told

	readsLease bool // and what it reads of the Lease is only late
}

// lateRead is how late a read of the Lease is answered, which is before its client gives up.
const lateRead = 4 * time.Second

// delaysLease reports whether a request for the Lease is held back now.
func (i *incarnation) delaysLease(c *call) bool {
	if !time.Now().Before(i.leaseTo) {
		return false
	}
	return c.isWrite() || !i.readsLease || time.Since(c.sent) < lateRead
}

func (i *incarnation) String() string { return i.name }

func (i *incarnation) isHeld() bool { return time.Now().Before(i.heldTo) }

// options start the program when it is time.
func (p *program) options() []option {
	if p.now != nil || time.Now().Before(p.again) {
		return nil
	}
	return []option{{4, "start " + p.Name, p.begin}}
}

// patience is how long the driver may let time pass without looking at the program.
func (p *program) patience() time.Duration {
	switch {
	case p.now == nil:
		return max(time.Until(p.again), time.Millisecond)
	case p.now.isHeld():
		return max(time.Until(p.now.heldTo), time.Millisecond)
	case time.Now().Before(p.now.leaseTo) && p.now.readsLease:
		return lateRead / 8
	case time.Now().Before(p.now.leaseTo):
		return min(max(time.Until(p.now.leaseTo), time.Millisecond), longestPass)
	}
	return longestPass
}

func (p *program) begin() {
	d := p.driver
	p.count++
	i := &incarnation{driver: d, name: fmt.Sprintf("%s-%d#%d", p.Name, p.copy, p.count), program: p.Name, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	p.now = i
	d.note("start %s", i)
	// Requests have no limit here: without work between two steps, no time passes for one to be under it.
	connection := &rest.Config{Host: "http://hekla.test", Transport: i, QPS: -1}
	go func() {
		defer close(i.ended)
		i.err = p.Start(ctx, connection, d.logger(i))
	}()
}

// reap notes that the program has ended by itself: it starts again after a while, as a kubelet would see to it.
func (p *program) reap() {
	dying := p.dying[:0]
	for _, i := range p.dying {
		select {
		case <-i.ended:
		default:
			dying = append(dying, i)
		}
	}
	p.dying = dying
	if p.now == nil {
		return
	}
	select {
	case <-p.now.ended:
		d := p.driver
		d.note("%s ends: %v", p.now, p.now.err)
		d.count("end of a program")
		d.disconnect(p.now)
		p.now = nil
		p.again = time.Now().Add(time.Duration(1+d.random.IntN(10)) * time.Second)
	default:
	}
}

// kill ends the process at once: nothing that it sends from now on arrives.
func (p *program) kill() {
	if p.now == nil {
		return
	}
	d := p.driver
	d.note("kill %s", p.now)
	p.isBehind = false
	p.dying = append(p.dying, p.now)
	d.disconnect(p.now)
	p.now = nil
	p.again = time.Now().Add(time.Duration(d.random.IntN(20_000)) * time.Millisecond)
}

// disconnect ends the connections of a process. A request that is on its way arrives or not.
func (d *driver) disconnect(i *incarnation) {
	d.mutex.Lock()
	i.isDead = true
	var calls []*call
	kept := d.calls[:0]
	for _, c := range d.calls {
		if c.from != i {
			kept = append(kept, c)
			continue
		}
		calls = append(calls, c)
	}
	d.calls = kept
	d.mutex.Unlock()
	i.cancel()
	for _, c := range sortedCalls(calls) {
		if c.mayArriveLate() && d.random.IntN(2) == 0 && time.Now().After(d.outageTo) {
			response := d.write(c)
			d.note("%s: arrives after its sender's end: %d", c.key, response.Code)
		}
		c.answer <- outcome{err: errReset}
	}
	for _, s := range d.streams {
		if s.from == i {
			s.finish(errReset)
		}
	}
}
