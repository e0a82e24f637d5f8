package simulation

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lastFaultsKind is the kind of the event that lets faults happen while a run comes to rest.
const lastFaultsKind = "faults to the end"

// lastFaults are faults while a run comes to rest, of the kinds that need no healing: writes of our programs are
// lost or refused, and what their watches tell comes late or not at all. A later write or event often makes good what
// was not done about an earlier one, but none makes good the last. No process ends: it would begin again. Users submit
// and delete a few things meanwhile.
type lastFaults struct {
	driver     *driver
	random     *rand.Rand // nil if there are none
	oneWriteIn int        // of how many writes one is hit
	moves      int        // that are left for users
}

// begin lets them happen from now on.
func (l *lastFaults) begin(_ *driver, random *rand.Rand) bool {
	// Of some objects only the second failure in a row shows: the first one is followed by an event of something else.
	l.random, l.oneWriteIn, l.moves = random, some(random, 3, 6), mostLastMoves
	return true
}

// end lets none happen any more.
func (l *lastFaults) end() {
	l.random = nil
	for _, s := range l.driver.streams {
		s.release()
	}
}

// faultFor returns what happens to a call, nil if it is served.
func (l *lastFaults) faultFor(c *call) fault {
	if l.random == nil || !c.isWrite() || c.isLease() || !isOurs(c.from) || l.random.IntN(l.oneWriteIn) > 0 {
		return nil
	}
	l.driver.count("late fault of " + c.kindOfWrite())
	return some(l.random, answerLost, timedOut, lost,
		refused(http.StatusConflict, metav1.StatusReasonConflict),
		refused(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		refused(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
}

func lost(d *driver, c *call) { d.answer(c, outcome{err: errReset}, "lost before it arrived") }

const (
	// oneStepIn is in how many steps a watch is disturbed once, and once a user does something.
	oneStepIn = 60
	// mostLastMoves is how often users do something.
	mostLastMoves = 16
	// quietAfter is how long nothing was written when nothing is disturbed any more.
	quietAfter = time.Minute
)

// disturb disturbs a watch of our programs now and then, as long as anything is written.
func (l *lastFaults) disturb() {
	d := l.driver
	if l.random == nil {
		return
	}
	if time.Since(d.rules.lastWrite) > quietAfter {
		for _, s := range d.streams {
			if !s.hasMissed {
				s.release()
			}
		}
		return
	}
	if l.moves > 0 && l.random.IntN(oneStepIn) == 0 {
		l.moves--
		l.move()
	}
	if l.random.IntN(oneStepIn) > 0 {
		return
	}
	if l.random.IntN(2) == 0 {
		if missEnd(d, l.random) {
			d.count("late missed end")
		}
		return
	}
	slices.SortFunc(d.streams, compareStreams)
	var pending []*stream
	for _, s := range d.streams {
		if isOurs(s.from) && s.cursor.Pending() > 0 && !d.holds(s) {
			pending = append(pending, s)
		}
	}
	if s, ok := pick(l.random, pending); ok {
		s.heldTo = d.step + 20 + l.random.IntN(400)
		d.note("%s: held until step %d", s.key, s.heldTo)
		d.count("late watch held")
	}
}

// move has a user submit or delete something.
func (l *lastFaults) move() {
	d := l.driver
	switch l.random.IntN(8) {
	case 0:
		submitVolcanoJob(d, l.random)
	case 1, 2:
		submitJob(d, l.random)
	case 3, 4:
		submitPod(d, l.random)
	case 5, 6:
		deletePod(d, l.random)
	case 7:
		if o, ok := d.someObject(l.random, jobs, volcanoJobs); ok {
			d.delete("user", o.path(), map[string]any{"propagationPolicy": some(l.random, "Background", "Foreground")})
		}
	}
	d.look()
}
