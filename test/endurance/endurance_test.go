package endurance

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/internal/trend"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// The variables that say how long a run is, which jobs arrive and where profiles are written, and what CI has time for.
const (
	daysEnv     = "HEKLA_ENDURANCE_DAYS"
	seedEnv     = "HEKLA_ENDURANCE_SEED"
	profilesEnv = "HEKLA_ENDURANCE_PROFILES"
	plainDays   = 1
	plainSeed   = 1
)

// The cluster, and what is asked of it.
const (
	nodes       = 16
	nodeCPUs    = 8
	quotaCPUs   = 24 // of each ClusterQueue
	silverCPUs  = 40 // the capability of a Queue
	load        = 0.9
	longest     = 220 * time.Minute // that a job runs
	shortest    = 20 * time.Minute
	maxJump     = 2 * time.Minute // the most that the clock jumps: what is due by time alone comes that much later
	maxDrain    = 48 * time.Hour  // until the last job has ended
	longDays    = 7               // from which on what is used is compared with what is asked for
	maxFill     = 0.02            // the part by which the entries of the journal still grow a day when it counts as full
	flatDays    = 8               // after that, at least, over which the heap is looked at
	maxHeapRise = 0.1             // over these days, of what the journal does not hold, as a part of the heap
	fillTime    = 6 * time.Hour   // until the cluster, which is empty at first, is as full as it stays
	maxIdle     = 0.03            // of long runs: the part of the CPUs that is asked for and not used
	// maxEvictions are of one job. It is a limit for this load, and no rule of the scheduler: how often a job may be
	// evicted depends on which jobs come while it lives.
	maxEvictions = 40
)

var sizes = []int{1, 2, 4, 8}

var classes = []struct {
	name  string
	value int32
}{{"low", 0}, {"low", 0}, {"low", 0}, {"middle", 100}, {"middle", 100}, {"high", 1000}}

const configuration = `actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: cohorts}]
`

// surroundings are the objects that stay.
func surroundings() string {
	var text strings.Builder
	for i := range nodes {
		fmt.Fprintf(&text, "{apiVersion: v1, kind: Node, metadata: {name: n%d}, status: {allocatable: {cpu: '%d', memory: 64Gi, pods: '110'}}}\n---\n", i, nodeCPUs)
	}
	for _, c := range slices.Compact(slices.Clone(classes)) {
		fmt.Fprintf(&text, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d}\n---\n", c.name, c.value)
	}
	text.WriteString("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: gold}, spec: {weight: 3}}\n---\n")
	fmt.Fprintf(&text, "{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: silver}, spec: {weight: 1, capability: {cpu: '%d'}}}\n---\n", silverCPUs)
	text.WriteString("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}}\n---\n")
	text.WriteString("{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}}\n---\n")
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&text, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {cohortName: all, namespaceSelector: {},
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: %d}]}]}]}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: %s, name: %s}, spec: {clusterQueue: %s}}
---
`, name, quotaCPUs, fixture.Namespace, name, name)
	}
	return text.String()
}

// kind is what is counted together.
type kind struct {
	queue    string
	pods     int
	priority int32
}

func (k kind) isQueued() bool { return k.queue == "a" || k.queue == "b" }

// job is a PodGroup or a Workload.
type job struct {
	kind
	name       string
	pods       []string
	submitted  time.Time
	left       time.Duration // that it still has to run
	since      time.Time     // when it began to run or to wait
	isRunning  bool
	hasStarted bool
	passed     int             // later jobs that have started before it, see [run.overtake]
	evictions  int             // while it ran
	sentBack   int             // how often it was evicted, if it is a Workload: also before its pods ran
	preemptors map[wait]string // for which it was evicted, with the plan
}

// wait is the present time that a job waits.
func (j *job) wait() wait {
	if j.isQueued() {
		return wait{j.name, j.sentBack}
	}
	return wait{j.name, j.evictions}
}

// wait is one of the times that a job waits: the first, or after so many evictions.
type wait struct {
	job       string
	evictions int
}

// tally is what was seen of the jobs of a kind.
type tally struct {
	started, evictions, mostEvictions, mostPassed int
	longest, longestAgain                         time.Duration // wait for the first start, and after an eviction
}

// run is one run of the simulation.
type run struct {
	*testing.T
	*simulator.Led
	random  *rand.Rand
	live    []*job // in the order of their submission
	byName  map[string]*job
	made    int
	tallies map[kind]*tally
	decided bool
	looked  time.Time // when the jobs were last looked at
	running int       // CPUs that were used then
	offered float64   // CPU seconds of the jobs that have come
	busy    float64   // CPU seconds that were used since the cluster is full
	cycles  int
	checks  int
}

func begin(t *testing.T, seed uint64) *run {
	input, err := manifests.Read([]string{"-"}, strings.NewReader(surroundings()))
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		t.Fatal(err)
	}
	c := &run{T: t, random: rand.New(rand.NewPCG(seed, 0)), byName: map[string]*job{}, tallies: map[kind]*tally{}}
	c.Led, err = simulator.Lead(input, policy, simulator.Options{SchedulerNames: []string{"volcano"}, Now: fixture.Birth, Observe: c.observe})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// observe notes for which jobs others are evicted: gangs by a plan, Workloads by the status that is decided.
func (c *run) observe(d *decision.Decisions) {
	c.decided = c.decided || !d.IsEmpty()
	for i := range d.Plans {
		for _, e := range d.Plans[i].Evictions {
			c.evicted(e.VictimJob.Name, e.For.Name, e.Plan)
		}
	}
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.Evict != nil {
			c.evicted(w.Workload.Name, w.Evict.By.Name, fmt.Sprint("status ", w.Number))
			c.byName[w.Workload.Name].sentBack++
		}
	}
}

func (c *run) evicted(victim, by, plan string) {
	if wrong := c.note(victim, by, plan); wrong != "" {
		c.Fatalf("%s: %s", c.Now(), wrong)
	}
}

// note says what is wrong with an eviction: it is for no job that waits, or not the first of the victim for that wait.
func (c *run) note(victim, by, plan string) (wrong string) {
	v, p := c.byName[victim], c.byName[by]
	if v == nil || p == nil || p.isRunning {
		return fmt.Sprintf("%q is evicted by %s for %q, which does not wait", victim, plan, by)
	}
	waiting := p.wait()
	if earlier, was := v.preemptors[waiting]; was && earlier != plan {
		return fmt.Sprintf("%s is evicted for %s by %s, and was by %s, while %s waits", victim, by, plan, earlier, by)
	}
	v.preemptors[waiting] = plan
	return ""
}

// submit makes a job of a random kind.
func (c *run) submit() {
	class := classes[c.random.IntN(len(classes))]
	queue := "gold"
	total := float64(nodes * nodeCPUs)
	switch of, first := c.random.Float64(), c.random.Float64() < 0.6; {
	case of < 2*quotaCPUs/total && first:
		queue = "a"
	case of < 2*quotaCPUs/total:
		queue = "b"
	case !first:
		queue = "silver"
	}
	size := sizes[c.random.IntN(len(sizes))]
	c.made++
	j := &job{kind: kind{queue, size, class.value}, name: fmt.Sprintf("j%d", c.made), submitted: c.Now(), since: c.Now(), preemptors: map[wait]string{}}
	j.left = (shortest + time.Duration(c.random.Int64N(int64(longest-shortest)))).Round(time.Second)
	c.offered += j.left.Seconds() * float64(size)
	c.live, c.byName[j.name] = append(c.live, j), j
	if j.isQueued() {
		w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: j.name, CreationTimestamp: metav1.NewTime(c.Now())}}
		template := fixture.Pod("any")
		w.Spec.QueueName, w.Spec.Priority = queue, &class.value
		podSet := v1beta2.PodSet{Name: "main", Count: int32(size)}
		podSet.Template.Spec = template.Spec
		w.Spec.PodSets = []v1beta2.PodSet{podSet}
		for i := range size {
			j.pods = append(j.pods, fmt.Sprintf("%s-main-%d", j.name, i))
		}
		c.must(c.Set(w))
		return
	}
	g := fixture.Group(j.name, queue, int32(size), fixture.PendingAdmission, fixture.Wanting(fmt.Sprintf("cpu=%d", size)), func(g *schedulingv1beta1.PodGroup) {
		g.Spec.PriorityClassName = class.name
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
	})
	g.CreationTimestamp = metav1.NewTime(c.Now())
	c.must(c.Set(g))
	for i := range size {
		p := fixture.Controlled(fixture.Pod(fmt.Sprintf("%s-%d", j.name, i), fixture.In(j.name), fixture.As("worker", i), fixture.WithPriority(class.value)), "batch/v1", "Job")
		p.Spec.PriorityClassName, p.CreationTimestamp = class.name, g.CreationTimestamp
		p.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		j.pods = append(j.pods, p.Name)
		c.must(c.Set(p))
	}
}

func (c *run) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *run) pod(name string) *corev1.Pod {
	p, _ := c.Get(&corev1.Pod{}, fixture.Namespace, name).(*corev1.Pod)
	return p
}

// runs reports whether all pods of a job run.
func (c *run) runs(j *job) bool {
	return !slices.ContainsFunc(j.pods, func(name string) bool {
		p := c.pod(name)
		return p == nil || p.Spec.NodeName == "" || p.DeletionTimestamp != nil
	})
}

// look notes which jobs run now, and ends those whose time is up.
func (c *run) look() {
	now := c.Now()
	if !c.looked.Before(fixture.Birth.Add(fillTime)) {
		c.busy += now.Sub(c.looked).Seconds() * float64(c.running)
	}
	c.looked, c.running = now, 0
	for _, j := range c.live {
		t := c.tallies[j.kind]
		if t == nil {
			t = &tally{}
			c.tallies[j.kind] = t
		}
		switch runs := c.runs(j); {
		case runs && !j.isRunning:
			if waited := now.Sub(j.since); j.hasStarted {
				t.longestAgain = max(t.longestAgain, waited)
			} else {
				t.longest = max(t.longest, waited)
				t.started++
				if wrong := c.overtake(j, t); wrong != "" {
					c.Fatalf("%s: %s", now, wrong)
				}
			}
			j.isRunning, j.hasStarted, j.since = true, true, now
		case !runs && j.isRunning:
			j.left -= now.Sub(j.since)
			j.isRunning, j.since = false, now
			j.evictions++
			t.evictions++
			t.mostEvictions = max(t.mostEvictions, j.evictions)
			if wrong := j.tooOften(); wrong != "" {
				c.Fatalf("%s: %s", now, wrong)
			}
		}
	}
	c.live = slices.DeleteFunc(c.live, func(j *job) bool {
		isOver := j.isRunning && now.Sub(j.since) >= j.left
		if isOver {
			c.end(j)
		} else if j.isRunning {
			c.running += len(j.pods)
		}
		return isOver
	})
}

// tooOften says that a job has stopped more often than it may: for each wait of a job for which it was evicted once,
// and not more often than any does at this load.
func (j *job) tooOften() (wrong string) {
	if j.evictions > len(j.preemptors) || j.evictions > maxEvictions {
		return fmt.Sprintf("%s has stopped %d times, for %d waits of others: %v", j.name, j.evictions, len(j.preemptors), j.preemptors)
	}
	return ""
}

// overtake counts that a job has started for the earlier ones of its queue and size, and of no lower priority, that
// wait. It says which of them was overtaken too often.
func (c *run) overtake(started *job, t *tally) (wrong string) {
	for _, j := range c.live {
		isAlike := j.queue == started.queue && j.kind.pods == started.kind.pods && j.priority >= started.priority
		if !isAlike || j.hasStarted || !j.submitted.Before(started.submitted) {
			continue
		}
		j.passed++
		t.mostPassed = max(t.mostPassed, j.passed)
		if j.passed > audit.DefaultOvertakes {
			wrong = fmt.Sprintf("%d later jobs of the queue and size of %s, %+v, and of no higher priority have started while it waits since %s", j.passed, j.name, j.kind, j.submitted)
		}
	}
	return wrong
}

// end removes a job that has run for its time, with its pods, which have succeeded.
func (c *run) end(j *job) {
	delete(c.byName, j.name)
	for _, name := range j.pods {
		p := c.pod(name).DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		c.must(c.Set(p))
	}
	if j.isQueued() {
		c.Delete(c.Get(&v1beta2.Workload{}, fixture.Namespace, j.name).(*v1beta2.Workload))
	} else {
		c.Delete(c.Get(&schedulingv1beta1.PodGroup{}, fixture.Namespace, j.name).(*schedulingv1beta1.PodGroup))
	}
	for _, name := range j.pods {
		if p := c.pod(name); p != nil {
			c.Delete(p)
		}
	}
}

// step runs a cycle, or lets time pass until something is to happen, at the latest at the time given.
func (c *run) step(until time.Time) {
	c.look()
	if !c.HasNews() && !c.decided && !c.IsDue() {
		next := c.Now().Add(maxJump)
		if until.Before(next) {
			next = until
		}
		for _, j := range c.live {
			if end := j.since.Add(j.left); j.isRunning && end.Before(next) {
				next = end
			}
		}
		if d := next.Sub(c.Now()); d > 0 {
			c.Pass(d)
			c.look()
		}
	}
	c.decided = false
	c.must(c.Cycle())
	c.cycles++
}

// check compares totals with what the objects show.
func (c *run) check() {
	c.checks++
	if wrong := c.Scheduler().Cache().Audit(); len(wrong) > 0 {
		c.Fatalf("%s: totals drift: %s", c.Now(), strings.Join(wrong, "; "))
	}
	onNode, inQueue := map[string]int{}, map[string]int{}
	for _, o := range c.Objects() {
		p, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		j := c.byName[p.Name[:strings.IndexByte(p.Name, '-')]]
		if j == nil {
			c.Fatalf("%s: pod %s is left of a job that has ended", c.Now(), p.Name)
		}
		if p.Spec.NodeName != "" {
			onNode[p.Spec.NodeName]++
			inQueue[j.queue]++
		}
	}
	for name, held := range onNode {
		if held > nodeCPUs {
			c.Fatalf("%s: %d CPUs are used of node %s", c.Now(), held, name)
		}
	}
	if inQueue["silver"] > silverCPUs {
		c.Fatalf("%s: queue silver holds %d CPUs", c.Now(), inQueue["silver"])
	}
	if held := inQueue["a"] + inQueue["b"]; held > 2*quotaCPUs {
		c.Fatalf("%s: the cohort holds %d CPUs", c.Now(), held)
	}
	c.Forget(func(pod types.NamespacedName) bool {
		return c.byName[pod.Name[:strings.IndexByte(pod.Name, '-')]] == nil
	})
}

// heap is how many bytes are in use after garbage collection.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// day is what was measured on one day.
type day struct {
	// heap is the least of all hours, in which jobs that come and go hold as little as possible, and others what of it
	// the journal does not hold. The journal is bounded by itself, and holds more in bytes when more jobs wait.
	heap, others int
	entries      int // of the journal, at the end
}

// measure takes an hour in, with the size of the journal.
func (d *day) measure(entries, bytes int) {
	h := heap()
	if d.heap == 0 || h < d.heap {
		d.heap = h
	}
	if d.others == 0 || h-bytes < d.others {
		d.others = h - bytes
	}
	d.entries = entries
}

func TestDaysOfArrivalsLeaveNothingBehindAndNoJobWaiting(t *testing.T) {
	days, seed := harness.Number(t, daysEnv, plainDays), harness.Number(t, seedEnv, uint64(plainSeed))
	c := begin(t, seed)
	var mean float64
	for _, size := range sizes {
		mean += float64(size) / float64(len(sizes))
	}
	gap := (longest + shortest).Seconds() / 2 * mean / (load * nodes * nodeCPUs)
	start := c.Now()
	end := start.Add(time.Duration(days) * 24 * time.Hour)
	arrival, nextCheck := start, start
	var measured []day
	var today day
	longestQueue := 0
	for c.Now().Before(end) {
		for !arrival.After(c.Now()) {
			c.submit()
			arrival = arrival.Add(time.Duration(math.Round(c.random.ExpFloat64()*gap)) * time.Second)
		}
		c.step(arrival)
		longestQueue = max(longestQueue, len(c.live))
		if !c.Now().Before(nextCheck) {
			c.check()
			today.measure(c.Scheduler().Journal().Size())
			nextCheck = nextCheck.Add(time.Hour)
		}
		if nextCheck.Sub(start) >= time.Duration(len(measured)+1)*24*time.Hour {
			measured, today = append(measured, today), day{}
			c.profile(len(measured))
		}
	}
	used := c.busy / c.looked.Sub(start.Add(fillTime)).Seconds() / (nodes * nodeCPUs)
	offered := c.offered / end.Sub(start).Seconds() / (nodes * nodeCPUs)
	if days >= longDays && math.Abs(offered-used) > maxIdle {
		t.Errorf("%.1f %% of the CPUs are used, and jobs have asked for %.1f %%", 100*used, 100*offered)
	}
	for len(c.live) > 0 {
		if c.Now().Sub(end) > maxDrain {
			t.Fatalf("%d jobs have not ended %s after the last one came, the first of them %+v", len(c.live), maxDrain, *c.live[0])
		}
		c.step(c.Now().Add(maxJump))
	}
	c.check()
	t.Logf("%d days, %d jobs, %d cycles, %d checks, %.1f %% of the CPUs asked for and %.1f %% used, at most %d jobs at a time, drained in %s",
		days, c.made, c.cycles, c.checks, 100*offered, 100*used, longestQueue, c.Now().Sub(end))
	for _, k := range slices.SortedFunc(maps.Keys(c.tallies), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.priority, b.priority), cmp.Compare(a.pods, b.pods))
	}) {
		s := c.tallies[k]
		t.Logf("%-6s priority %4d, %d pods: %5d started, longest wait %9s, again after an eviction %9s, overtaken at most %d times, %d evictions, of one job at most %d",
			k.queue, k.priority, k.pods, s.started, s.longest, s.longestAgain, s.mostPassed, s.evictions, s.mostEvictions)
	}
	t.Logf("of each day the least heap in bytes, what of it the journal does not hold, and the entries of the journal: %v", measured)
	part, over := rise(measured)
	t.Logf("over the last %d days what the journal does not hold rises by %.3f of the heap", over, part)
	if over >= flatDays && part > maxHeapRise {
		t.Errorf("the heap rises by %.3f of it over %d days, and %.3f is allowed", part, over, maxHeapRise)
	}
}

// profile writes a profile of the heap at the end of a day, if a folder for that is given.
func (c *run) profile(day int) {
	folder := os.Getenv(profilesEnv)
	if folder == "" {
		return
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("day-%02d.heap", day)))
	c.must(err)
	c.must(errors.Join(pprof.WriteHeapProfile(file), file.Close()))
}

// rise is by which part of the heap that rises which the journal does not hold, by the fitted line, over the days since
// the journal is full.
func rise(days []day) (part float64, over int) {
	full := 1
	for full < len(days) && float64(days[full].entries) > (1+maxFill)*float64(days[full-1].entries) {
		full++
	}
	var heaps, others []float64
	for _, d := range days[min(full, len(days)):] {
		heaps, others = append(heaps, float64(d.heap)), append(others, float64(d.others))
	}
	return trend.Rise(others) / max(trend.Mean(heaps), 1), len(others)
}

func TestAHeapThatGrowsIsSeen(t *testing.T) {
	filling := []day{{10, 5, 100}, {500, 50, 200}, {1000, 500, 300}}
	flat, growing := slices.Clone(filling), slices.Clone(filling)
	for i := range flatDays {
		flat = append(flat, day{1000 + 100*i, 500 + i%2, 303})
		growing = append(growing, day{1000, 500 + 20*i, 303})
	}
	if part, over := rise(flat); part > maxHeapRise || over != flatDays {
		t.Errorf("a flat heap rises by %f over %d days", part, over)
	}
	if part, over := rise(growing); part <= maxHeapRise || over != flatDays {
		t.Errorf("a growing heap rises by %f over %d days", part, over)
	}
	if part, over := rise(filling); part != 0 || over != 0 {
		t.Errorf("while the journal fills, the heap rises by %f over %d days", part, over)
	}
}

func TestAJobThatIsOvertakenTooOftenIsSeen(t *testing.T) {
	of := kind{queue: "gold", pods: 2, priority: 100}
	waits := &job{kind: of, name: "waits", submitted: fixture.Birth}
	c := &run{live: []*job{waits}}
	later := func(k kind) string {
		return c.overtake(&job{kind: k, submitted: fixture.Birth.Add(time.Hour)}, &tally{})
	}
	for _, other := range []kind{{"gold", 1, 100}, {"silver", 2, 100}, {"gold", 2, 1000}} {
		if wrong := later(other); wrong != "" || waits.passed != 0 {
			t.Errorf("%+v counts: %s", other, wrong)
		}
	}
	for i := range audit.DefaultOvertakes {
		if wrong := later(kind{"gold", 2, int32(100 * (i % 2))}); wrong != "" {
			t.Error(wrong)
		}
	}
	if later(of) == "" {
		t.Error("it is not seen")
	}
}

func TestASecondEvictionForTheSameWaitIsSeen(t *testing.T) {
	victim, preemptor := &job{name: "victim", preemptors: map[wait]string{}}, &job{kind: kind{queue: "a"}, name: "preemptor"}
	c := &run{byName: map[string]*job{"victim": victim, "preemptor": preemptor}}
	for _, plan := range []string{"first", "first"} { // two pods of a gang
		if wrong := c.note("victim", "preemptor", plan); wrong != "" {
			t.Error(wrong)
		}
	}
	if c.note("victim", "preemptor", "second") == "" {
		t.Error("a second plan is not seen")
	}
	preemptor.sentBack++
	if wrong := c.note("victim", "preemptor", "third"); wrong != "" {
		t.Errorf("the preemptor was evicted itself: %s", wrong)
	}
	preemptor.isRunning = true
	if c.note("victim", "preemptor", "fourth") == "" || c.note("victim", "", "fifth") == "" {
		t.Error("an eviction for no job that waits is not seen")
	}
	for victim.evictions = range len(victim.preemptors) + 1 {
		if wrong := victim.tooOften(); wrong != "" {
			t.Error(wrong)
		}
	}
	if victim.evictions++; victim.tooOften() == "" {
		t.Error("a stop without an eviction is not seen")
	}
}
