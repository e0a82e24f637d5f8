package statuses

import (
	"fmt"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
)

// PlacesPause is how long after a change the places of waiting jobs are worked out again. Jobs that start sooner are
// not written to for their place, and ten thousand jobs are not sorted with every event.
const PlacesPause = 5 * time.Second

// queuedReason is the reason of the condition Queued.
const queuedReason = "WaitsInQueue"

// exactPlaces is how many first jobs of a line are told their place exactly, lastPlace the last place that is told at
// all.
const exactPlaces, lastPlace = 10, 1000

// Places are the places of waiting jobs in their lines, as their statuses say them.
type Places struct {
	memory   *memory
	areStale bool           // something has changed since
	due      time.Time      // when they are worked out again, zero if nothing has changed
	round    uint64         // number of answers
	lined    []*cluster.Job // that had a place
	moved    []*cluster.Job // whose text has changed, to be written
}

// queuedState is what is known of the place of a job.
type queuedState struct {
	message string // of the condition Queued, "" for none
	round   uint64 // in which it had this place, 0 if this process has not found any
}

// AreDue reports whether it is time for [Places.Note].
func (p *Places) AreDue(now time.Time) bool { return !p.due.IsZero() && !now.Before(p.due) }

// Note takes the waiting jobs, in the order in which they are tried. Each line has those of one queue that wait for
// admission, or for nodes. It is called before [Reporter.Statuses].
func (p *Places) Note(c *cache.Cache, lines [][]*cluster.Job) {
	p.due = time.Time{}
	p.round++
	before := p.lined
	p.lined = nil
	for _, line := range lines {
		for i, j := range line {
			if j.Group != nil {
				p.tell(j, textOfPlace(i+1, j))
				p.lined = append(p.lined, j)
			}
		}
	}
	for _, j := range before {
		if s := p.memory.jobs[j]; s != nil && c.Job(j.ID) == j && s.queued.round != p.round {
			p.tell(j, "")
		}
	}
}

// tell sets the text about the place of a job.
func (p *Places) tell(j *cluster.Job, message string) {
	s := p.memory.of(j)
	if s.queued.message != message || s.queued.round == 0 {
		p.moved = append(p.moved, j)
	}
	s.queued = queuedState{message: message, round: p.round}
}

// textOfPlace says where a job is. Far places are ranges that double or more, so that a line that moves up by one
// changes few texts.
func textOfPlace(place int, j *cluster.Job) string {
	what := "wait for nodes"
	if j.IsPendingAdmission() {
		what = "wait for admission"
	}
	in := fmt.Sprintf("of the jobs in queue %s that %s", j.QueueName, what)
	switch {
	case place <= exactPlaces:
		return fmt.Sprintf("place %d %s", place, in)
	case place > lastPlace:
		return ""
	}
	above := exactPlaces
	for _, end := range [...]int{20, 50, 100, 200, 500, lastPlace} {
		if place <= end {
			return fmt.Sprintf("place %d to %d %s", above+1, end, in)
		}
		above = end
	}
	return ""
}

// follow determines the places again if jobs have changed.
func (p *Places) follow(c *cache.Cache, haveChanged bool, now time.Time) {
	if p.due.IsZero() && (p.areStale || haveChanged) && len(c.Waiting())+len(p.lined) > 0 {
		p.due = now.Add(PlacesPause)
	}
	p.areStale = false
}

// of returns the message about the place of a job that waits: what this process has found, or before that what the
// condition says already.
func (p *Places) of(j *cluster.Job, last []schedulingv1beta1.PodGroupCondition) string {
	if s := p.memory.jobs[j]; s != nil && s.queued.round > 0 {
		return s.queued.message
	}
	for _, c := range last {
		if c.Type == schedulingv1beta1.PodGroupQueuedType {
			return c.Message
		}
	}
	return ""
}
