package forecast

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/internal/journal/history"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// The limits of a replay. An answer is worked out between two cycles, and must not delay the next one by more than a
// tenth of a second on 5,000 nodes with 10,000 jobs that wait. The benchmark of this package measures it.
const (
	// MaxSteps is the number of times at which jobs end. If more jobs run, several end at one of these times.
	MaxSteps = 128
	// MaxPlaced is the number of pods that are placed, MaxTried the number of gangs that are tried.
	MaxPlaced, MaxTried = 1500, 3000
	// replays is how many futures are tried between the earliest and the latest. The least and the largest of some more
	// than ten hold what comes with nine chances in ten; beyond MaxPlaced pods in all of them no further one is begun.
	replays = 10
)

// Forecaster answers one question: it keeps what it has looked up.
type Forecaster struct {
	history *history.History
	now     time.Time
	// deadlineOfWorkload returns how many seconds a job of a Workload may run, 0 if it may run for ever.
	deadlineOfWorkload func(j *cluster.Job) int64

	byJob     map[*cluster.Job][]time.Duration
	byQueue   map[string][]time.Duration
	deadlines map[*cluster.Job]time.Duration
	spans     map[*cluster.Job]*span
	holders   []holder
}

// New returns a forecaster for one question. deadlineOfWorkload returns how many seconds a job of a Workload may run, 0
// if there is no limit.
func New(h *history.History, now time.Time, deadlineOfWorkload func(j *cluster.Job) int64) *Forecaster {
	return &Forecaster{history: h, now: now, deadlineOfWorkload: deadlineOfWorkload, byJob: map[*cluster.Job][]time.Duration{},
		byQueue: map[string][]time.Duration{}, deadlines: map[*cluster.Job]time.Duration{}, spans: map[*cluster.Job]*span{}}
}

// Job says when a job will start, nil if it does not wait for its start. open opens a session in a trial of the model,
// whose changes are undone when the trial ends; see [hekla.sh/hekla/internal/explain.Trial].
func (f *Forecaster) Job(j *cluster.Job, open func(at time.Time) *framework.Session) *ETA {
	switch {
	case !order.Waits(j):
		return nil
	case j.Plan != nil:
		return f.planned(j)
	case !j.IsPendingAdmission() && j.Lacks() <= 0 && j.Staying() > 0:
		return Unknown("it has started, and only the start of a job is foreseen, not that of its further pods")
	case j.Count(cluster.Pending) == 0 && len(j.Subgroups()) > 0:
		return Unknown("its pods do not exist yet, and must be close to each other")
	case !j.IsPendingAdmission() && j.Count(cluster.Pending) == 0:
		if len(j.Tasks()) > 0 {
			return Unknown("no pod of it waits for a node yet")
		}
		return Unknown("it has no pods yet")
	}
	s := open(f.now)
	if v := s.Validate(j); v != nil {
		return Unknown(cmp.Or(Awaits(string(v.Code)), v.Sentence()))
	}
	all := f.backlog(s, j)
	if all.place.isLeftOut {
		return f.byPace(j.QueueName, all.place, "so many jobs wait before it that not all of them are looked at")
	}
	s = open(f.now) // with the stand-ins
	f.collectHolders(s)
	late := f.replay(s, open, all, j, course{isLate: true})
	early := f.replay(s, open, all, j, course{isEarly: true})
	if early.isDone { // there every job has ended that may end
		return Unknown("it would not fit even if all jobs had ended that may end")
	}
	if !late.starts || !early.starts {
		return f.byPace(j.QueueName, all.place, late.why)
	}
	first, last := early.at, late.at
	spent := late.work + early.work
	for i := 1; i <= replays && spent < MaxPlaced; i++ {
		o := f.replay(s, open, all, j, course{number: uint64(i), isCommon: i%3 == 0})
		spent += o.work
		switch {
		case !o.starts:
		case o.at.Before(first):
			first = o.at
		case o.at.After(last): // a later end can let another job start first
			last = o.at
		}
	}
	return f.widened(first, last, late.grounds())
}

// The range is wider by a twentieth, since the replay does not know in which order jobs end that end at about the same
// time. It is also wider by some seconds, in which pods stop and cycles run.
const margin, lag = 20, 5 * time.Second

func (f *Forecaster) widened(first, last time.Time, grounds []Ground) *ETA {
	first, last = first.Add(-first.Sub(f.now)/margin), last.Add(last.Sub(f.now)/margin+lag)
	return between(f.now, first, last, grounds)
}

// planned is the answer about a job with a plan in force: it starts when its victims are gone.
func (f *Forecaster) planned(j *cluster.Job) *ETA {
	leaving := "1 pod is leaving for it"
	if victims := len(j.Plan.Victims); victims != 1 {
		leaving = fmt.Sprintf("%d pods are leaving for it", victims)
	}
	return f.widened(f.now, f.vacated(j.Plan), []Ground{{Kind: Room, Message: leaving}})
}

// The pace of a queue is an estimate of how often jobs start. If they started at random, the logarithm of the time
// until the next ones would deviate by the root of 1/place + 1/starts. In clusters they start in bursts, which counts
// as burst times as many. The range has deviations of that size to both sides, with which nine of ten are inside.
const (
	minStarts  = 5
	burst      = 4
	deviations = 1.645
	// maxFactor limits the range: a wider one says nothing.
	maxFactor = 20
)

// place is the place of a job in its queue. Where a job that does not fit holds up no others, it may be overtaken. Then
// least is the place that it has if it overtakes all before it that need more, and most the one if all behind it that
// need no more overtake it.
type place struct {
	now, least, most int
	isLeftOut        bool // it is too far behind to be replayed
}

// byPace is the answer by how many jobs of the queue have started lately. why says why the replay gives none.
func (f *Forecaster) byPace(queue string, at place, why string) *ETA {
	starts := f.history.Starts(queue)
	if len(starts) < minStarts {
		seen := "no cycle was seen yet"
		if since := f.history.Since(); !since.IsZero() {
			jobs := fmt.Sprintf("%d jobs of its queue that had to wait have", len(starts))
			if len(starts) == 1 {
				jobs = "1 job of its queue that had to wait has"
			}
			seen = fmt.Sprintf("%s started in the last %s, and %d are needed for a pace", jobs, duration.HumanDuration(f.now.Sub(since)), minStarts)
		}
		return Unknown(why + ", and " + seen)
	}
	window := f.now.Sub(starts[0])
	n := len(starts) - 1 // the first begins the time
	each := window / time.Duration(n)
	factor := func(place int) float64 {
		return min(math.Exp(deviations*math.Sqrt(burst*(1/float64(place)+1/float64(n)))), maxFactor)
	}
	first := float64(each) * float64(at.least) / factor(at.least)
	last := min(float64(each)*float64(at.most)*factor(at.most), float64(maxForeseen))
	return between(f.now, f.now.Add(time.Duration(first)), f.now.Add(time.Duration(last)), []Ground{{Kind: Pace, Jobs: n, Message: fmt.Sprintf(
		"in the last %s a job of its queue that had to wait started every %s, and it has place %d", duration.HumanDuration(window), duration.HumanDuration(each), at.now)}})
}

// maxForeseen is the longest time that is foreseen.
const maxForeseen = 365 * 24 * time.Hour

// Workload says when a Workload will be admitted, by the pace of its ClusterQueue and its place among those that wait
// there. Smaller ones may overtake it, or it larger ones.
func (f *Forecaster) Workload(clusterQueue string, at, of int) *ETA {
	return f.byPace(history.QueueOfWorkloads(clusterQueue), place{now: at, least: 1, most: max(at, of)}, "what a ClusterQueue will have left is not foreseen")
}
