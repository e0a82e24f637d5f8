package audit

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The defaults of [Options].
const (
	DefaultGangTimeout = 5 * time.Minute
	DefaultPlanTimeout = 10 * time.Minute
	DefaultOvertakes   = 10
)

// Options bound what is tolerated. The zero value of a field stands for its default.
type Options struct {
	// Schedulers are the users whose evictions are judged. Default: those who bind pods.
	Schedulers []string
	// GangTimeout is how long a part of a gang may hold nodes while the others have none.
	GangTimeout time.Duration
	// PlanTimeout is how long the room of an evicted pod may stay unused.
	PlanTimeout time.Duration
	// Overtakes is how many later jobs of the same shape may start before a job that waits.
	Overtakes int
}

func (o Options) withDefaults() Options {
	o.GangTimeout = cmp.Or(o.GangTimeout, DefaultGangTimeout)
	o.PlanTimeout = cmp.Or(o.PlanTimeout, DefaultPlanTimeout)
	o.Overtakes = cmp.Or(o.Overtakes, DefaultOvertakes)
	return o
}

// unseen is how long a scheduler may not have seen a change: what a node or a quota offered until then still counts.
const unseen = 10 * time.Second

// Auditor keeps the cluster as requests make it, and has rules look at what they do.
type Auditor struct {
	cluster
	options Options
	report  Report
	rules   []rule
	waiting byArrival
	latest  time.Time // of the lines that were read
	// gone are the objects that were deleted a moment ago: a request that overlapped with the deletion may show one.
	gone      map[types.UID]bool
	goneUntil []deadline[types.UID]
	pushed    int
}

// cluster is what is there at the time of a request.
type cluster struct {
	pods   map[types.UID]*pod
	names  map[key]*pod
	nodes  map[string]*node
	gangs  map[key]*gang
	queues map[string]*queue
	// waitingFor are the pods without a node that are nominated for one, by its name.
	waitingFor map[string]map[types.UID]*pod
	// waited are pods as they were when they last waited for room on a node, a moment ago: an eviction for one may have
	// been on its way when it was deleted, bound or nominated for another node.
	waited     []deadline[pod]
	lines      map[uint64][]*pod // those that wait, by shape and in the order in which they came; some may wait no more
	budgets    map[key]*budget
	cqs        map[string]*quotas
	cohorts    map[string]*quotas
	workloads  map[key]*workload
	owned      map[types.UID]key // Workloads, by their owners
	settings   map[types.UID]setting
	schedulers map[string]bool
	begin, now time.Time
	// elsewhere is when something last happened that may let a pod that waits run on another node than was planned, or
	// not at all: a node comes or offers more, a pod leaves without having been evicted, a pod that waits is deleted.
	elsewhere time.Time
	// otherRoom is the same for Workloads: of a pod that leaves it counts only if its Workload is not preempted.
	otherRoom time.Time
	// otherQuota is when something happened to the quota of Workloads: quotas, Queues or other settings change,
	// Workloads end, are gone, ask for something else, may not wait any more, or give up quota without being evicted
	// for another.
	otherQuota time.Time
}

// rule looks at what happens. Each method is called once the cluster is as the change has made it.
type rule interface {
	binding(a *Auditor, p *pod, c *change)        // a request bound it
	bound(a *Auditor, p *pod, n *node, c *change) // it holds room from now on
	evicted(a *Auditor, p *pod, c *change)        // a scheduler asked it to leave
	freed(a *Auditor, p *pod, n *node, c *change) // it holds no room any more
	preempted(a *Auditor, w *workload, c *change) // it is to give its quota to another one
	admitted(a *Auditor, w *workload, c *change)  // it holds quota from now on, or more than before
	tick(a *Auditor)                              // time has passed
}

// silent is a rule that says nothing; rules embed it.
type silent struct{}

func (silent) binding(*Auditor, *pod, *change)        {}
func (silent) bound(*Auditor, *pod, *node, *change)   {}
func (silent) evicted(*Auditor, *pod, *change)        {}
func (silent) freed(*Auditor, *pod, *node, *change)   {}
func (silent) preempted(*Auditor, *workload, *change) {}
func (silent) admitted(*Auditor, *workload, *change)  {}
func (silent) tick(*Auditor)                          {}

// New returns an auditor who knows of nothing yet.
func New(o Options) *Auditor {
	a := &Auditor{
		options: o.withDefaults(),
		cluster: cluster{
			pods: map[types.UID]*pod{}, names: map[key]*pod{}, nodes: map[string]*node{}, gangs: map[key]*gang{}, queues: map[string]*queue{},
			budgets: map[key]*budget{}, cqs: map[string]*quotas{}, cohorts: map[string]*quotas{}, workloads: map[key]*workload{}, owned: map[types.UID]key{}, settings: map[types.UID]setting{}, waitingFor: map[string]map[types.UID]*pod{}, lines: map[uint64][]*pod{}, schedulers: map[string]bool{},
		},
		report: Report{Unknown: map[string]int{}}, gone: map[types.UID]bool{},
	}
	for _, name := range o.Schedulers {
		a.schedulers[name] = true
	}
	a.rules = []rule{&doubleBind{}, &overCommit{}, &partialGang{}, &forbidden{}, &inVain{}, &promised{}, &budgets{}, &queueLimit{}, &quota{}, &preemptedInVain{}, &overtaken{}}
	return a
}

// End takes in what has waited, and returns the report.
func (a *Auditor) End() *Report {
	a.takeUntil(a.latest)
	a.pass(a.latest)
	a.report.From, a.report.To = a.begin, a.now
	for name := range a.schedulers {
		a.report.Schedulers = append(a.report.Schedulers, name)
	}
	slices.Sort(a.report.Schedulers)
	a.report.sorted()
	return &a.report
}

func (a *Auditor) push(c change) {
	a.pushed++
	c.number = a.pushed
	heap.Push(&a.waiting, c)
}

// takeUntil takes in what had arrived by then.
func (a *Auditor) takeUntil(then time.Time) {
	for len(a.waiting) > 0 && !a.waiting[0].at.After(then) {
		c := heap.Pop(&a.waiting).(change)
		a.take(&c)
	}
}

func (a *Auditor) take(c *change) {
	if a.begin.IsZero() {
		a.begin = c.at
	}
	a.report.Requests++
	a.pass(c.at)
	due(&a.waited, a.now)
	for _, uid := range due(&a.goneUntil, a.now) {
		delete(a.gone, uid)
	}
	if c.what == observed && a.gone[c.uid] {
		return
	}
	if c.what == deleted && c.uid == "" && c.kind == aPod && a.names[c.key] != nil {
		c.uid = a.names[c.key].uid
	}
	if c.what == deleted && c.uid != "" {
		a.gone[c.uid] = true
		a.goneUntil = append(a.goneUntil, deadline[types.UID]{c.at.Add(2 * longestRequest), c.uid})
	}
	switch {
	case c.kind == aPod:
		a.takePod(c)
	case c.what == deleted:
		a.remove(c)
	default:
		a.observe(c)
	}
}

// pass has time pass.
func (a *Auditor) pass(until time.Time) {
	if until.After(a.now) {
		a.now = until
	}
	for _, r := range a.rules {
		r.tick(a)
	}
}

// isCalm reports whether nothing has happened since shortly before a time; last is when something happened last. A
// scheduler may not have seen at the time what had happened shortly before.
func isCalm(since, last time.Time) bool { return last.Before(since.Add(-unseen)) }

// violate reports a violation.
func (a *Auditor) violate(rule string, at time.Time, user, message string, objects ...fmt.Stringer) {
	v := Violation{Time: at, Rule: rule, Message: message, User: user}
	for _, o := range objects {
		v.Objects = append(v.Objects, o.String())
	}
	a.report.Violations = append(a.report.Violations, v)
}

// unknown counts what a rule could not judge.
func (a *Auditor) unknown(why string) { a.report.Unknown[why]++ }

// isNewer reports whether an object is as new as another. Versions are numbers, of which the API says so since 1.35.
func isNewer(version, than string) bool {
	v, err1 := strconv.ParseUint(version, 10, 64)
	t, err2 := strconv.ParseUint(than, 10, 64)
	return than == "" || err1 != nil || err2 != nil || v >= t
}
