package order

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Waits reports whether a job is pending admission or waits for nodes.
func Waits(j *cluster.Job) bool {
	return j.Queue != nil && !j.IsForeign && !j.Over() && (j.IsPendingAdmission() || j.Count(cluster.Pending) > 0 || j.Plan != nil)
}

// line is what the jobs have in common among which a job has its place.
type line struct {
	queue              *cluster.Queue
	isPendingAdmission bool
}

// Backlog is the order of the waiting jobs. The zero value is ready for use.
type Backlog struct {
	version uint64 // of the model
	at      time.Time
	lines   map[line]*ordered
	queues  []*cluster.Queue // those with waiting jobs
	works   func(steps int)  // see Meter; nil counts nothing
}

// ordered are the jobs of a line.
type ordered struct {
	jobs     []*cluster.Job
	isSorted bool
}

const (
	// Short is how many jobs are not yet a long backlog, PerSecond how many are put in order each second.
	Short, PerSecond = 500, 2000
)

// inStep is how many jobs are grouped, or compared with another, in a step.
const inStep = 8

// Meter makes a function count the steps of all further work. It may end the work by a panic. Then what was known of
// the order is still right.
func (b *Backlog) Meter(works func(steps int)) { b.works = works }

func (b *Backlog) count(steps int) {
	if b.works != nil {
		b.works(steps)
	}
}

// Life is how old the order of so many jobs may be, if they are a long backlog.
func Life(jobs int) time.Duration {
	return max(time.Second, time.Duration(jobs)*time.Second/PerSecond)
}

// Around returns the jobs that wait like a job, in order, and the queues with waiting jobs. version is that of the
// model. The caller must not change the slices.
func (b *Backlog) Around(j *cluster.Job, s *framework.Session, version uint64) ([]*cluster.Job, []*cluster.Queue) {
	waiting, now := s.Cluster.Waiting(), s.Now
	isOld := b.version != version && (len(waiting) <= Short || now.Before(b.at) || now.Sub(b.at) >= Life(len(waiting)) || !slices.Contains(b.of(j).jobs, j))
	if b.lines == nil || isOld {
		b.group(waiting)
		b.version, b.at = version, now
	}
	return b.sorted(b.of(j), s), b.queues
}

// Lines returns the jobs that wait, each line in order: by queue, those that wait for admission first. The caller must
// not change the slices.
func (b *Backlog) Lines(s *framework.Session, version uint64) [][]*cluster.Job {
	b.group(s.Cluster.Waiting())
	b.version, b.at = version, s.Now
	keys := slices.SortedFunc(maps.Keys(b.lines), func(x, y line) int {
		if x.queue != y.queue {
			return cmp.Compare(x.queue.Name, y.queue.Name)
		}
		if x.isPendingAdmission {
			return -1
		}
		return 1
	})
	lines := make([][]*cluster.Job, len(keys))
	for i, key := range keys {
		lines[i] = b.sorted(b.lines[key], s)
	}
	return lines
}

// sorted returns the jobs of a line in order.
func (b *Backlog) sorted(o *ordered, s *framework.Session) []*cluster.Job {
	if !o.isSorted {
		compared := 0
		slices.SortFunc(o.jobs, func(i, j *cluster.Job) int {
			if compared++; compared%inStep == 0 {
				b.count(1)
			}
			return s.CompareJobs(i, j)
		})
		o.isSorted = true
	}
	return o.jobs
}

// of returns the line of a job, empty if there is none.
func (b *Backlog) of(j *cluster.Job) *ordered {
	if found := b.lines[lineOf(j)]; found != nil {
		return found
	}
	return &ordered{}
}

// group groups the jobs that wait. Lines that were sorted before are nearly sorted then.
func (b *Backlog) group(jobs []*cluster.Job) {
	b.count(1 + len(jobs)/inStep)
	old := b.lines
	b.lines, b.queues = map[line]*ordered{}, nil
	has := map[*cluster.Queue]bool{}
	for _, j := range jobs {
		if !Waits(j) {
			continue
		}
		of := lineOf(j)
		found := b.lines[of]
		if found == nil {
			found = &ordered{}
			b.lines[of] = found
		}
		if found.jobs = append(found.jobs, j); !has[of.queue] {
			has[of.queue] = true
			b.queues = append(b.queues, of.queue)
		}
	}
	for of, found := range b.lines {
		if before := old[of]; before != nil && before.isSorted {
			found.sortLike(before.jobs)
		}
	}
}

// sortLike puts the jobs into an order that they had, new ones last.
func (o *ordered) sortLike(before []*cluster.Job) {
	left := make(map[*cluster.Job]bool, len(o.jobs))
	for _, j := range o.jobs {
		left[j] = true
	}
	jobs := make([]*cluster.Job, 0, len(o.jobs))
	for _, j := range before {
		if left[j] {
			jobs, left[j] = append(jobs, j), false
		}
	}
	for _, j := range o.jobs {
		if left[j] {
			jobs = append(jobs, j)
		}
	}
	o.jobs = jobs
}

func lineOf(j *cluster.Job) line {
	return line{queue: j.Queue, isPendingAdmission: j.IsPendingAdmission()}
}
