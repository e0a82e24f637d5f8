package forecast

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/actions/enqueue"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// replay is one way in which the future may go.
type replay struct {
	*Forecaster
	session *framework.Session
	open    func(at time.Time) *framework.Session
	all     *backlog
	target  *cluster.Job
	course

	ends          *framework.Heap[end]
	ended         map[*cluster.Job]bool
	counts        map[Kind]int // jobs that have ended, by what their ends are foreseen by
	unknown       int          // jobs of which no end is known
	placed, tried int
}

// course says how long jobs run in a replay: all as short or as long as can be expected, or somewhere in between.
type course struct {
	isEarly, isLate bool
	number          uint64 // of a replay in between
	isCommon        bool   // all jobs deviate alike, as if all estimates were wrong in one way
}

// of returns how much longer a job runs.
func (c course) of(s *span, j *cluster.Job) time.Duration {
	switch {
	case c.isEarly:
		return s.early
	case c.isLate:
		return s.late
	case c.isCommon:
		return s.at(part(c.number, ""))
	}
	return s.at(part(c.number, j.ID.String()))
}

// part returns a number from 0 to 1 that looks random, and is the same for the same arguments.
func part(number uint64, name string) float64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64([]byte(name), number*0x9e3779b97f4a7c15))
	mixed := h.Sum64()
	mixed = (mixed ^ mixed>>32) * 0xd6e8feb86659fd93
	return float64((mixed^mixed>>32)>>11) / (1 << 53)
}

// end is when a job, or else a pod that leaves, is gone.
type end struct {
	at   time.Time
	job  *cluster.Job
	task *cluster.Task
	kind Kind
}

func (e end) compare(o end) int {
	if c := e.at.Compare(o.at); c != 0 {
		return c
	}
	if e.job != nil && o.job != nil {
		return e.job.ID.Compare(o.job.ID)
	}
	if e.task != nil && o.task != nil {
		return cluster.CompareNames(e.task.Key(), o.task.Key())
	}
	return cmp.Compare(rankOf(e), rankOf(o))
}

// rankOf puts pods that leave before jobs.
func rankOf(e end) int {
	if e.task != nil {
		return 0
	}
	return 1
}

// outcome is what came of a replay.
type outcome struct {
	starts bool
	at     time.Time
	why    string // why the start is not known
	isDone bool   // all that may end has ended, and there is still no room
	counts map[Kind]int
	work   int // pods that were placed
}

// grounds are what the outcome follows from, the strongest first.
func (o *outcome) grounds() []Ground {
	var all []Ground
	for _, k := range Kinds {
		if n := o.counts[k]; n > 0 && k != Room {
			all = append(all, Ground{Kind: k, Jobs: n, Message: sentence(k, n)})
		}
	}
	if len(all) == 0 {
		all = append(all, Ground{Kind: Room, Message: "it has room and its turn comes"})
	}
	return all
}

// replay runs one future until the target has its nodes. Then it is undone.
func (f *Forecaster) replay(s *framework.Session, open func(at time.Time) *framework.Session, all *backlog, target *cluster.Job, c course) outcome {
	r := &replay{Forecaster: f, session: s, open: open, all: all, target: target, course: c, counts: map[Kind]int{}, ended: map[*cluster.Job]bool{}}
	mark := s.Cluster.Mark()
	defer func() {
		s.Cluster.Undo(mark)
	}()
	all.begin()
	r.collect()
	now := f.now
	for step := 0; ; step++ {
		if step > 0 {
			if r.ends.Len() == 0 {
				return outcome{why: r.whyNot(), isDone: true}
			}
			now = r.advance()
			r.session = open(f.now)
		} else {
			r.session = open(f.now)
		}
		r.serve(now)
		switch {
		case r.hasStarted(target):
			return outcome{starts: true, at: now, counts: r.counts, work: r.placed}
		case r.isOver() || step >= MaxSteps:
			return outcome{why: "too much happens before it to foresee"}
		}
	}
}

func (r *replay) hasStarted(j *cluster.Job) bool { return j.Staying() > 0 && r.session.IsReady(j) }

func (r *replay) isOver() bool { return r.placed >= MaxPlaced || r.tried >= MaxTried }

func (r *replay) whyNot() string {
	switch r.unknown {
	case 0:
		return "it would not fit even if all jobs whose ends are foreseen had ended"
	case 1:
		return "1 job that holds room or comes before it does not say how long it runs, and none like it ran before"
	}
	return fmt.Sprintf("%d jobs that hold room or come before it do not say how long they run, and none like them ran before", r.unknown)
}

// collect finds when what holds nodes now is gone.
func (r *replay) collect() {
	ends := make([]end, 0, len(r.holders))
	for i := range r.holders {
		h := &r.holders[i]
		at := r.now
		if !r.isEarly && h.until.After(at) {
			at = h.until
		}
		switch {
		case h.task != nil:
			ends = append(ends, end{at: at, task: h.task, kind: Room})
		case h.job != r.target:
			if e, ok := r.endOf(h.job, at, &h.left); ok {
				ends = append(ends, e)
			}
		}
	}
	r.ends = framework.NewHeap(ends, end.compare)
}

// endOf is when a job ends that runs at a moment for so much longer. Ok is false if that is not foreseen.
func (r *replay) endOf(j *cluster.Job, at time.Time, s *span) (e end, ok bool) {
	switch {
	case s.stays:
		return end{}, false
	case s.kind == "":
		r.unknown++
		return end{at: at, job: j, kind: Room}, !r.isLate // it may end at once, or never
	}
	return end{at: at.Add(min(r.of(s, j), maxForeseen)), job: j, kind: s.kind}, true
}

// advance ends what is gone next, and returns when. With many ends several are taken together: the late replay waits
// for the last of them, the early one has them all at the time of the first.
func (r *replay) advance() time.Time {
	batch := 1 + r.ends.Len()/MaxSteps
	first := r.ends.First().at
	at := first
	for i := 0; r.ends.Len() > 0 && (i < batch || r.ends.First().at.Equal(at)); i++ {
		e := r.ends.Pop()
		at = e.at
		r.finish(e)
	}
	if r.isEarly {
		return first
	}
	return at
}

func (r *replay) finish(e end) {
	c := r.session.Cluster
	if e.task != nil {
		if e.task.Status == cluster.Evicting {
			c.Spare(e.task) // so that undoing it finds the status that it had
		}
		if e.task.Status.Holds() {
			c.Finish(nil, e.task)
		}
		return
	}
	r.counts[e.kind]++
	r.ended[e.job] = true
	var tasks []*cluster.Task
	for _, t := range e.job.Tasks() {
		if (t.Status.Holds() || t.Status == cluster.Pipelined) && !t.Status.Leaves() && t.Status != cluster.Lingering {
			tasks = append(tasks, t)
		}
	}
	j := e.job
	if j.Group == nil {
		j = nil // that of a Workload, which has no phase
	}
	c.Finish(j, tasks...)
}

// serve admits the jobs that may be admitted, and places those that have room now, as the actions enqueue and allocate
// do.
func (r *replay) serve(now time.Time) {
	if s := r.session; s.Policy.Has(enqueue.Name) {
		r.each(func(g *group) (next int, ok bool) { return g.admitted, g.admitted < len(g.jobs) }, func(_ *line, g *group, j *cluster.Job) bool {
			if s.LimitAdmission(j) != nil || j.MinResources != nil && s.MayEnqueue(j) != nil {
				return false
			}
			s.Admit(j)
			g.admitted++
			return true
		})
	} else {
		for _, l := range r.all.lines {
			for _, g := range l.groups {
				g.admitted = len(g.jobs)
			}
		}
	}
	r.each(func(g *group) (next int, ok bool) { return g.next, g.next < g.admitted }, func(l *line, g *group, j *cluster.Job) bool {
		return !r.hasStarted(r.target) && r.serveOne(l, g, j, now)
	})
}

// each tries jobs of all queues in turn. next is the first of a group that is to be tried, ok is false if there is
// none. try reports whether the job got what it wants; otherwise its group is not tried again.
func (r *replay) each(next func(g *group) (index int, ok bool), try func(l *line, g *group, j *cluster.Job) bool) {
	s := r.session
	var lines []*line
	for _, l := range r.all.lines {
		var groups []*group
		for _, g := range l.groups {
			if _, ok := next(g); ok {
				groups = append(groups, g)
			}
		}
		if len(groups) > 0 {
			l.turn = framework.NewHeap(groups, func(a, b *group) int { return r.compare(a, b, next) })
			lines = append(lines, l)
		}
	}
	turn := framework.NewHeap(lines, func(a, b *line) int { return s.CompareQueues(a.queue, b.queue) })
	for turn.Len() > 0 && !r.isOver() {
		l := turn.First()
		g := l.turn.First()
		i, _ := next(g)
		if !try(l, g, g.jobs[i].job) {
			l.turn.Pop() // others of this shape have no room either
			if l.isFIFO {
				turn.Pop()
				continue
			}
		} else if _, ok := next(g); ok {
			l.turn.FixFirst()
		} else {
			l.turn.Pop()
		}
		switch {
		case l.turn.Len() == 0:
			turn.Pop()
		case s.Policy.Hierarchical:
			turn.Reorder()
		default:
			turn.FixFirst()
		}
	}
}

// compare orders the groups of a queue by their next jobs. In the late replay smaller jobs overtake the target, and in
// the early one it overtakes larger ones: what fits first depends on which nodes the pods that end were on.
func (r *replay) compare(a, b *group, next func(g *group) (index int, ok bool)) int {
	rank := func(g *group) int {
		i, _ := next(g)
		at := 2 * g.jobs[i].place
		switch target := 2 * r.all.place.now; {
		case r.isLate && g.isSmaller:
			return min(at, target-1)
		case r.isEarly && g.isLarger:
			return max(at, target+1)
		}
		return at
	}
	i, _ := next(a)
	k, _ := next(b)
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.jobs[i].place, b.jobs[k].place))
}

// serveOne tries the next job of a group. It reports whether the group has more to try.
func (r *replay) serveOne(l *line, g *group, j *cluster.Job, now time.Time) bool {
	if r.session.Overused(l.queue) != nil {
		return false
	}
	wasStarted := j.Staying() > 0 // it only gets further pods, which end with the others
	switch {
	case r.ended[j]:
	case !r.place(j, &g.shape):
		return false
	case !wasStarted && j != r.target:
		if e, ok := r.endOf(j, now, r.whole(j)); ok {
			r.ends.Push(e)
		}
	}
	g.next++
	return true
}

// place places a gang and as many further pods of it as fit. It reports whether the gang has room.
func (r *replay) place(j *cluster.Job, of *shape) bool {
	s := r.session
	r.tried++
	if !r.mayFit(j, of) {
		return false
	}
	x := s.Begin()
	if j.IsPendingAdmission() { // no action admits jobs
		s.Admit(j)
	}
	tasks := s.Pending(j)
	if !s.IsReady(j) && gang.Place(s, j, tasks) != nil || !plans.KeepPromises(s, x.Tasks(), nil) {
		x.Undo()
		return false
	}
	var failed []*cluster.Class
	for _, t := range tasks {
		if t.Status == cluster.Pending && !slices.Contains(failed, t.Class) && !t.BestEffort() && gang.PlaceNext(s, x, t, tasks) != nil {
			failed = append(failed, t.Class)
		}
	}
	r.placed += x.Placed()
	x.Commit()
	return true
}

// mayFit reports whether nodes have room for as many pods as the job lacks, each node by itself. That is quick to find
// out.
func (r *replay) mayFit(j *cluster.Job, of *shape) bool {
	counter, ok := r.session.Placer.(framework.RoomCounter)
	if !ok || of.class == nil {
		return true
	}
	room, _ := counter.Room(of.class)
	return room >= int64(max(j.Lacks(), 1))
}
