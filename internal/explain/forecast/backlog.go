package forecast

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/explain/expected"
	"hekla.sh/hekla/internal/explain/order"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// backlog is the jobs that wait, queue by queue, in the order in which they are served now.
type backlog struct {
	lines    []*line
	standIns int // how many more may be made
	target   *cluster.Job
	place    place // of the target
}

// line is the jobs of one queue. Those of one shape fit if the first of them does, and are tried one after the other.
type line struct {
	queue  *cluster.Queue
	groups []*group
	isFIFO bool
	turn   *framework.Heap[*group] // the groups that are still tried in this step
}

// group is the jobs of a queue that have one shape, in order.
type group struct {
	shape
	jobs []ranked
	// In this replay, next is the first that has not started, and admitted the first that is pending admission.
	next, admitted int
	// Of the groups in the queue of the target, those overtake it that need no more, and it may overtake those that
	// need more.
	isSmaller, isLarger bool
}

// ranked is a job with its place in the queue, the first is 1.
type ranked struct {
	job   *cluster.Job
	place int
}

// shape is what jobs have in common that need the same room.
type shape struct {
	isPending      bool           // admission
	class          *cluster.Class // of all pods that wait
	tasks, minimum int
	only           *cluster.Job // the job itself, if it is like no other
}

// MaxStandIns is the number of pods that do not exist yet and are placed all the same. Jobs that wait behind so many
// are not looked at.
const MaxStandIns = 2000

// backlog collects the jobs that wait. Those that have no pods yet get stand-ins in the trial.
func (f *Forecaster) backlog(s *framework.Session, target *cluster.Job) *backlog {
	byQueue := map[*cluster.Queue][]*cluster.Job{}
	b := &backlog{standIns: MaxStandIns, target: target, place: place{now: 1, least: 1, most: 1, isLeftOut: true}}
	for _, j := range s.Cluster.Waiting() {
		if !order.Waits(j) || j.Plan != nil || s.Validate(j) != nil {
			continue
		}
		if byQueue[j.Queue] == nil {
			b.lines = append(b.lines, &line{queue: j.Queue, isFIFO: j.Queue.DequeueStrategy == schedulingv1beta1.DequeueStrategyFIFO})
		}
		byQueue[j.Queue] = append(byQueue[j.Queue], j)
	}
	slices.SortFunc(b.lines, func(a, b *line) int { return cluster.CompareQueues(a.queue, b.queue) })
	for _, l := range b.lines {
		jobs := byQueue[l.queue]
		slices.SortFunc(jobs, func(a, b *cluster.Job) int {
			if c := cmp.Compare(pendingLast(a), pendingLast(b)); c != 0 {
				return c
			}
			return s.CompareJobs(a, b)
		})
		b.findPlace(l, jobs)
		b.add(s, l, jobs)
	}
	return b
}

// pendingLast puts jobs that are pending admission behind those that were admitted.
func pendingLast(j *cluster.Job) int {
	if j.IsPendingAdmission() {
		return 1
	}
	return 0
}

func (b *backlog) add(s *framework.Session, l *line, jobs []*cluster.Job) {
	groups := map[shape]*group{}
	for i, j := range jobs {
		if j.Count(cluster.Pending) == 0 || expected.AreExpected(j) {
			if !b.standIn(s, j) {
				continue
			}
		}
		if j == b.target {
			b.place.isLeftOut = false
		}
		of := shapeOf(s, j)
		g := groups[of]
		if g == nil {
			g = &group{shape: of}
			if needs := b.target.Needs(); l.queue == b.target.Queue && !l.isFIFO {
				own := j.Needs()
				g.isSmaller = own.LessEqual(needs) && !needs.LessEqual(own)
				g.isLarger = !own.LessEqual(needs)
			}
			groups[of] = g
			l.groups = append(l.groups, g)
		}
		g.jobs = append(g.jobs, ranked{job: j, place: i + 1})
	}
}

// findPlace finds the place of the target among the jobs of its queue.
func (b *backlog) findPlace(l *line, jobs []*cluster.Job) {
	at := slices.Index(jobs, b.target)
	if at < 0 {
		return
	}
	b.place.now = at + 1
	b.place.least, b.place.most = b.place.now, b.place.now
	if l.isFIFO {
		return
	}
	needs := b.target.Needs()
	for i, j := range jobs {
		switch of := j.Needs(); {
		case i < at && !of.LessEqual(needs):
			b.place.least--
		case i > at && of.LessEqual(needs) && !needs.LessEqual(of):
			b.place.most++
		}
	}
}

// begin makes the backlog as it is now.
func (b *backlog) begin() {
	for _, l := range b.lines {
		for _, g := range l.groups {
			g.next, g.admitted = 0, len(g.jobs)
			if g.isPending {
				g.admitted = 0
			}
		}
	}
}

func shapeOf(s *framework.Session, j *cluster.Job) shape {
	of := shape{minimum: j.MinMember, isPending: j.IsPendingAdmission()}
	if len(s.Policy.Vetoers) > 0 || j.Proximity != nil || len(j.Subgroups()) > 0 || j.ChecksRoles() || j.Ready() > 0 {
		return shape{only: j, isPending: of.isPending}
	}
	for _, t := range j.Tasks() {
		if t.Status != cluster.Pending {
			continue
		}
		if of.class != nil && of.class != t.Class || t.Class.NeedsSupplies() {
			return shape{only: j, isPending: of.isPending}
		}
		of.class = t.Class
		of.tasks++
	}
	return of
}

// standIn adds stand-ins to a job that has no pods, or too few. It reports whether there are some now.
func (b *backlog) standIn(s *framework.Session, j *cluster.Job) bool {
	sets, count := expected.Sets(j)
	if count == 0 || count > b.standIns {
		return false
	}
	b.standIns -= count
	index := 0
	for _, of := range sets {
		for range of.Count {
			s.Cluster.AddStandIn(j, of, index)
			index++
		}
	}
	return true
}
