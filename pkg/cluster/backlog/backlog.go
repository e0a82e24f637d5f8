package backlog

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// New returns an empty backlog.
func New() Backlog {
	return Backlog{resting: map[cluster.RestKey]*group{}, stocks: map[verdict.Stock]*line{}, ofRoom: map[*group]bool{}, cohorts: map[cohortKey]*cohort{}, highest: newMaxPriority(), admissions: newMaxPriority()}
}

// Backlog holds the jobs that wait.
type Backlog struct {
	waiting   []*cluster.Job // jobs with pending tasks, or pending admission
	unsettled []*cluster.Job // listed since the model was last settled; they may wait no longer
	attended  []*cluster.Job // of those that wait, the ones that do not rest
	resting   map[cluster.RestKey]*group
	stocks    map[verdict.Stock]*line // the groups that lack some of a stock
	ofRoom    map[*group]bool         // those that wait for room for pods of a class
	cohorts   map[cohortKey]*cohort   // by what helps them
	before    []*cluster.Job          // attended before, empty; its memory is used again
	frozen    bool                    // see Freeze
	// OverlooksStocks says that no lack is ever met, for tests that show they find a missing cause.
	OverlooksStocks bool

	// What awakenHelped has seen last: the counts and the position of the changes of nodes. oldest is when a resting
	// job was tried that was not tried since, or earlier. Zero means that it has to look again.
	seen     wake.Counts
	position uint64
	oldest   time.Time

	highest    maxPriority // of all jobs that new victims would help
	admissions maxPriority // of those of them that are pending admission
}

// maxPriority is the highest priority of a job that new victims would help, by its queue: of any queue, or of its own.
type maxPriority struct{ ofAny, ofOwn map[*cluster.Queue]int32 }

func newMaxPriority() maxPriority {
	return maxPriority{map[*cluster.Queue]int32{}, map[*cluster.Queue]int32{}}
}

// watch takes in a job with a verdict.
func (h *maxPriority) watch(j *cluster.Job) {
	note := func(kind verdict.Help, highest map[*cluster.Queue]int32) {
		if before, ok := highest[j.Queue]; j.Verdict.Help&kind != 0 && (!ok || j.Priority > before) {
			highest[j.Queue] = j.Priority
		}
	}
	note(verdict.HelpVictims, h.ofAny)
	note(verdict.HelpOwnVictims, h.ofOwn)
}

// noteVictims counts that evicting pods of a job may help more than before, if a job may evict them. One that looks in
// all queues may, unless it is of the same queue and no higher priority. One that looks in its own queue needs both.
func (h *maxPriority) noteVictims(world *wake.World, j *cluster.Job) {
	for q, highest := range h.ofAny {
		if j == nil || q != j.Queue || highest > j.Priority {
			world.Note(wake.VictimPlaced)
			break
		}
	}
	if j == nil || j.Queue == nil {
		return
	}
	if highest, ok := h.ofOwn[j.Queue]; ok && highest > j.Priority {
		world.NoteExposed(j.QuotaNode())
	}
}

// forget forgets the jobs that are looked at now, since something of these kinds has happened.
func (h *maxPriority) forget(before, now *wake.Counts) {
	if before.Differ(now, verdict.HelpVictims) {
		clear(h.ofAny)
	}
	if before.Differ(now, verdict.HelpOwnVictims) {
		clear(h.ofOwn)
	}
}

// group are jobs that rest until one of the same kinds of help comes.
type group struct {
	jobs   []*cluster.Job
	counts wake.Counts // nothing has happened until then that helps one of them
	oldest time.Time   // no job was tried before
	room   cluster.RoomWait

	key cluster.RestKey
	at  [len(verdict.Lacks{})]int // the index in the line of each lack

	inCohort int // the index there
}

// Waiting returns the jobs that had pending tasks, or were pending admission, when the model was last settled, in no
// particular order. The caller must not change the slice.
func (b *Backlog) Waiting() []*cluster.Job { return b.waiting }

// Attended returns the waiting jobs that do not rest: all that were tried in this cycle, that are new or have changed,
// or for which time counts. The order is not defined. The caller must not change the slice.
func (b *Backlog) Attended() []*cluster.Job { return b.attended }

// Wait adds a job to the waiting jobs.
func (b *Backlog) Wait(j *cluster.Job) {
	if !j.Internal.IsWaiting {
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = true, len(b.waiting)
		b.waiting = append(b.waiting, j)
	}
}

// Settle removes the listed jobs that no longer wait.
func (b *Backlog) Settle(waits func(*cluster.Job) bool) {
	for _, j := range b.unsettled {
		j.Internal.Backlog.IsUnsettled = false
		if !j.Internal.IsWaiting || waits(j) {
			continue
		}
		b.awaken(j)
		at, last := j.Internal.Backlog.WaitingAt, b.waiting[len(b.waiting)-1]
		b.waiting[at], last.Internal.Backlog.WaitingAt = last, at
		b.waiting[len(b.waiting)-1] = nil
		b.waiting = b.waiting[:len(b.waiting)-1]
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = false, 0
	}
	clear(b.unsettled)
	b.unsettled = b.unsettled[:0]
}

// Unsettle makes Settle look at a job.
func (b *Backlog) Unsettle(j *cluster.Job) {
	if !j.Internal.Backlog.IsUnsettled && !b.frozen {
		j.Internal.Backlog.IsUnsettled = true
		b.unsettled = append(b.unsettled, j)
	}
}

// Attend makes the next cycle look at a job.
func (b *Backlog) Attend(j *cluster.Job) {
	if !j.Internal.Backlog.IsAttended && !b.frozen {
		b.awaken(j)
		j.Internal.Backlog.IsAttended = true
		b.attended = append(b.attended, j)
	}
}

// awaken removes a job from the group in which it rests.
func (b *Backlog) awaken(j *cluster.Job) {
	if !j.Internal.Backlog.IsResting {
		return
	}
	key := j.Internal.Backlog.RestsFor
	g := b.resting[key]
	at, last := j.Internal.Backlog.RestingAt, g.jobs[len(g.jobs)-1]
	g.jobs[at], last.Internal.Backlog.RestingAt = last, at
	g.jobs[len(g.jobs)-1] = nil
	g.jobs = g.jobs[:len(g.jobs)-1]
	leave(j)
	if len(g.jobs) == 0 {
		b.drop(g)
	}
}

// leave forgets where a job rests.
func leave(j *cluster.Job) {
	j.Internal.Backlog.IsResting, j.Internal.Backlog.RestingAt, j.Internal.Backlog.RestsFor = false, 0, cluster.RestKey{}
}

// rest lets a job rest until something happens that its verdict lists. Nothing must have happened since.
func (b *Backlog) rest(j *cluster.Job, counts *wake.Counts) {
	key := KeyOf(j)
	g := b.resting[key]
	if g == nil {
		g = b.add(key, counts)
	}
	if len(g.jobs) == 0 || j.Internal.LookedAt.Before(g.oldest) {
		g.oldest = j.Internal.LookedAt
	}
	if g.oldest.Before(b.oldest) {
		b.oldest = g.oldest
	}
	g.counts, g.room = counts.In(key.Queue), j.Internal.Room
	j.Internal.Backlog.IsResting, j.Internal.Backlog.RestsFor, j.Internal.Backlog.RestingAt = true, key, len(g.jobs)
	g.jobs = append(g.jobs, j)
}

// Watch must be called when a job has got another verdict.
func (b *Backlog) Watch(j *cluster.Job) {
	if j.Verdict == nil || b.frozen {
		return
	}
	b.highest.watch(j)
	if j.IsPendingAdmission() {
		b.admissions.watch(j)
	}
}

// NotePlaced counts that a pod of a job has got a node, and also as a new victim, if a waiting job may evict it.
func (b *Backlog) NotePlaced(world *wake.World, j *cluster.Job) {
	world.Note(wake.PodCommitted)
	b.highest.noteVictims(world, j)
}

// NoteNoClaim counts that evicting pods of a job leaves no claim of it any more, if a job that is pending admission may
// evict them.
func (b *Backlog) NoteNoClaim(world *wake.World, j *cluster.Job) { b.admissions.noteVictims(world, j) }

// KeyOf returns what a job rests for.
func KeyOf(j *cluster.Job) cluster.RestKey {
	key := cluster.RestKey{Help: wake.Hopes(j.Verdict)}
	if key.Help&wake.Own != 0 {
		key.Queue = j.QuotaNode()
	}
	if key.Help&verdict.HelpRoom != 0 {
		key.Class, key.Pods = j.Internal.Room.Class, j.Internal.Room.Pods
	}
	if key.Help&verdict.HelpStock != 0 && j.Verdict != nil {
		key.Lacks = j.Verdict.Lacks
	}
	return key
}

// isEnough reports whether jobs may have got as much as they wait for, of room on nodes or of a stock.
func (b *Backlog) isEnough(key *cluster.RestKey, wait *cluster.RoomWait, room cluster.RoomCounter) bool {
	return !b.OverlooksStocks && key.Lacks.AnyIsMet() || key.Class != nil && wait.IsThere(room)
}

// awakenHelped attends to all jobs of the groups for which something has happened, or of which a job was not tried
// since before. It returns the jobs of those groups that may only have got enough of what they wait for. They rest on.
func (b *Backlog) awakenHelped(counts *wake.Counts, position uint64, room cluster.RoomCounter, before time.Time) (roomed Roomed) {
	roomed = Roomed{}
	if b.seen == *counts && b.position == position && b.oldest.After(before) {
		return roomed // no job can have been helped
	}
	b.highest.forget(&b.seen, counts)
	b.admissions.forget(&b.seen, counts)
	b.seen, b.position = *counts, position
	if b.oldest.After(before) {
		b.awakenCohorts(counts)
	} else {
		b.awakenOld(counts, before)
	}
	b.findEnough(room, roomed)
	return roomed
}

// awakenCohorts attends to all jobs of the groups for which something has happened.
func (b *Backlog) awakenCohorts(counts *wake.Counts) {
	for key, c := range b.cohorts {
		now := counts.In(key.queue)
		if !c.seen.Differ(&now, key.help) {
			continue
		}
		c.seen = now
		for i := len(c.groups) - 1; i >= 0; i-- { // those after it may move here
			if c.groups[i].counts.Differ(&now, key.help) {
				b.awakenGroup(c.groups[i])
			}
		}
	}
}

// awakenOld is awakenCohorts, also for groups of which a job was not tried since before.
func (b *Backlog) awakenOld(counts *wake.Counts, before time.Time) {
	b.oldest = before.Add(LongestRest)
	for key, g := range b.resting {
		switch {
		case g.isHelped(key, counts) || !g.oldest.After(before):
			b.awakenGroup(g)
		case g.oldest.Before(b.oldest):
			b.oldest = g.oldest
		}
	}
}

// awakenGroup attends to all jobs of a group.
func (b *Backlog) awakenGroup(g *group) {
	for _, j := range g.jobs {
		leave(j)
		b.Attend(j)
	}
	b.drop(g)
}

// isHelped reports whether something has happened that helps the jobs of a group.
func (g *group) isHelped(key cluster.RestKey, counts *wake.Counts) bool {
	if key.Queue == nil {
		return g.counts.Differ(counts, key.Help)
	}
	now := counts.In(key.Queue)
	return g.counts.Differ(&now, key.Help)
}

// IsAnyHelped reports whether something has happened that helps a resting job.
func (b *Backlog) IsAnyHelped(counts *wake.Counts) bool {
	if b.seen == *counts {
		return false
	}
	for key, c := range b.cohorts {
		now := counts.In(key.queue)
		if !c.seen.Differ(&now, key.help) {
			continue
		}
		for _, g := range c.groups {
			if g.counts.Differ(&now, key.help) {
				return true
			}
		}
	}
	return false
}

// takeAttended returns the attended waiting jobs, and attends to none. The slice is valid until the next call.
func (b *Backlog) takeAttended() []*cluster.Job {
	jobs := b.attended
	b.attended = b.before[:0]
	for _, j := range jobs {
		j.Internal.Backlog.IsAttended = false
	}
	b.before = jobs
	return slices.DeleteFunc(jobs, func(j *cluster.Job) bool { return !j.Internal.IsWaiting })
}

// Freeze begins a trial, after which the same jobs wait as before.
func (b *Backlog) Freeze() (waiting int) {
	b.frozen = true
	return len(b.waiting)
}

// Thaw ends a trial that began with so many waiting jobs.
func (b *Backlog) Thaw(waiting int) {
	b.frozen = false
	for _, j := range b.waiting[waiting:] {
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = false, 0
	}
	b.waiting = b.waiting[:waiting]
}

// LongestRest is after how long a job is tried again without any help. If the scheduler fails to notice a change, the
// job waits for minutes, not for ever (source: kube-scheduler does the same).
const LongestRest = 5 * time.Minute

// Roomed are the jobs that may only have got enough of what they wait for: room on nodes, or a stock. They are grouped
// by that. When the first job of a group has taken it, the others need not be looked at.
type Roomed map[cluster.RestKey][]*cluster.Job

// Retry returns the waiting jobs for which something has happened that could help them, or that were not tried for a
// long time. Apart from them it returns those that may have got enough of what they wait for. The order is not defined.
// The others rest, and so do the roomed jobs until Look is called. A job with a plan in force is not tried. shouldRetry
// says for which jobs something has happened, and counts says how often. position is that of the changes of nodes.
// room may be nil.
func (b *Backlog) Retry(now time.Time, counts *wake.Counts, position uint64, room cluster.RoomCounter, shouldRetry func(*cluster.Job, time.Time) bool) (helped []*cluster.Job, roomed Roomed) {
	roomed = b.awakenHelped(counts, position, room, now.Add(-LongestRest))
	for _, j := range b.takeAttended() {
		b.Watch(j) // its verdict stands until it gets another
		// While the victims of its plan are being evicted, a job makes no new plan (rule K6).
		switch {
		case j.Plan == nil && shouldRetry(j, now):
			helped = append(helped, j)
			b.Attend(j)
		case j.Plan == nil && b.hasEnough(j, room, now):
			roomed[KeyOf(j)] = append(roomed[KeyOf(j)], j)
			b.Attend(j)
		case j.Plan != nil || j.NotBefore.After(now) || !j.Admission.Revisit.IsZero() || j.Verdict != nil && !j.Verdict.RetryAt.IsZero():
			b.Attend(j)
		default:
			b.rest(j, counts)
		}
		if !j.Admission.Revisit.After(now) {
			j.Admission.Revisit = time.Time{}
		}
	}
	return helped, roomed
}

// hasEnough is isEnough for a job.
func (b *Backlog) hasEnough(j *cluster.Job, room cluster.RoomCounter, now time.Time) bool {
	if now.Before(j.NotBefore) {
		return false
	}
	key := KeyOf(j)
	return b.isEnough(&key, &j.Internal.Room, room)
}

// Look must be called when a roomed job is looked at.
func (b *Backlog) Look(j *cluster.Job, now time.Time) {
	j.Internal.LookedAt = now
	b.Attend(j)
}
