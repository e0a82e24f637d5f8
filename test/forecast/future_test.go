package forecast

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

var beginning = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// job is a job of a random cluster.
type job struct {
	name       string
	pods, cpu  int
	queue      string
	class      string
	arrives    time.Duration
	runs       time.Duration
	estimate   time.Duration // 0: it declares none
	deadline   time.Duration // 0: it has none
	fails      bool          // its pods end badly, which says nothing of how long such jobs run
	comesLater bool          // its pods exist only once it is admitted

	made           bool
	bound          int
	started, ended time.Time
}

// asked is an answer of the scheduler, to be compared with what happens.
type asked struct {
	job *job
	at  time.Time
	eta *forecast.ETA
}

// isRight reports whether the true start is inside of the range. That of a job that never starts is not. Cycles are a
// second apart here.
func (a *asked) isRight() bool {
	return !a.job.started.Before(a.eta.Earliest.Add(-time.Second)) && !a.job.started.After(a.eta.Latest.Add(time.Second))
}

// width is how wide the range is, as a part of the time that the job still had to wait.
func (a *asked) width() float64 {
	return float64(a.eta.Latest.Sub(*a.eta.Earliest)) / float64(max(a.job.started.Sub(a.at), time.Second))
}

// future is what comes of a random cluster.
type future struct {
	*scenario
	t        *testing.T
	random   *rand.Rand
	led      *simulator.Led
	jobs     []*job
	byName   map[string]*job
	nodes    []string
	removed  time.Duration // when a node leaves, 0 if none does
	answers  []asked
	unknown  int
	silent   bool // it asks nothing
	coming   int  // jobs that have arrived
	nextAsk  time.Duration
	interval time.Duration
}

// run runs a scenario with a seed to its end, when all jobs have ended.
func run(t *testing.T, s *scenario, seed uint64) *future {
	w := &future{scenario: s, t: t, random: rand.New(rand.NewPCG(seed, 1)), byName: map[string]*job{}}
	objects := []runtime.Object{fixture.PriorityClass("low", 10), fixture.PriorityClass("high", 100)}
	for _, q := range queues {
		made := fixture.Queue(q)
		if s.isFIFO {
			made.Spec.DequeueStrategy = scheduling.DequeueStrategyFIFO
		}
		objects = append(objects, made)
	}
	for i := range 4 + w.random.IntN(4) {
		w.nodes = append(w.nodes, fmt.Sprintf("node-%d", i))
		objects = append(objects, fixture.Node(w.nodes[i], "cpu=8"))
	}
	s.fill(w)
	slices.SortStableFunc(w.jobs, func(a, b *job) int { return cmp.Compare(a.arrives, b.arrives) })
	input, err := manifests.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := loop.Policy("")
	if err != nil {
		t.Fatal(err)
	}
	options := simulator.Options{SchedulerNames: []string{scheduling.DefaultSchedulerName}, Now: beginning, Observe: w.observe}
	if w.led, err = simulator.Lead(input, policy, options); err != nil {
		t.Fatal(err)
	}
	w.interval = 20 * time.Minute
	w.nextAsk = w.interval
	for w.step() {
	}
	return w
}

// waits reports whether any job waits.
func (w *future) waits() bool {
	return slices.ContainsFunc(w.jobs[:w.coming], func(j *job) bool { return j.started.IsZero() })
}

func (w *future) since() time.Duration { return w.led.Now().Sub(beginning) }

// step goes on to the next time at which something happens. It reports whether anything is still to happen.
func (w *future) step() bool {
	next := time.Duration(-1)
	note := func(at time.Duration) {
		if next < 0 || at < next {
			next = at
		}
	}
	if w.coming < len(w.jobs) {
		note(w.jobs[w.coming].arrives)
	}
	for _, j := range w.jobs {
		if !j.started.IsZero() && j.ended.IsZero() {
			note(j.started.Add(j.runs).Sub(beginning))
		}
	}
	if next < 0 {
		return false // what still waits can never start
	}
	if w.removed > 0 {
		note(w.removed)
	}
	if w.waits() {
		note(w.nextAsk)
	}
	if gap := next - w.since(); gap > 0 {
		w.led.Pass(gap.Truncate(time.Second))
	}
	w.happen()
	w.cycles()
	if w.since() >= w.nextAsk {
		w.ask()
		w.nextAsk = w.since() + w.interval/2 + time.Duration(w.random.Int64N(int64(w.interval)))
	}
	return true
}

// happen lets jobs end and arrive that are due, and nodes leave.
func (w *future) happen() {
	for _, j := range w.jobs {
		if !j.started.IsZero() && j.ended.IsZero() && !w.led.Now().Before(j.started.Add(j.runs)) {
			w.end(j)
		}
	}
	if w.removed > 0 && w.since() >= w.removed {
		w.removed = 0
		node := fixture.Node(w.nodes[0], "cpu=8")
		node.Spec.Unschedulable = true
		w.set(node)
	}
	for ; w.coming < len(w.jobs) && w.jobs[w.coming].arrives <= w.since(); w.coming++ {
		w.arrive(w.jobs[w.coming])
	}
}

func (w *future) set(o runtime.Object) {
	if err := w.led.Set(o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *future) arrive(j *job) {
	w.byName[j.name] = j
	group := fixture.Group(j.name, j.queue, int32(j.pods), fixture.PendingAdmission, fixture.Wanting(fmt.Sprintf("cpu=%d", j.pods*j.cpu)))
	group.Spec.PriorityClassName = j.class
	group.CreationTimestamp = metav1.NewTime(w.led.Now())
	if j.estimate > 0 {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, scheduling.RunningEstimateKey, j.estimate.String())
	}
	w.set(group)
	if !j.comesLater {
		w.makePods(j)
	}
}

func (w *future) makePods(j *job) {
	j.made = true
	for i := range j.pods {
		pod := fixture.Pod(fmt.Sprintf("%s-%d", j.name, i), fixture.In(j.name), fixture.As("worker", i), fixture.Asks(fmt.Sprintf("cpu=%d", j.cpu)))
		pod.CreationTimestamp = metav1.NewTime(w.led.Now())
		if j.deadline > 0 {
			seconds := int64(j.deadline.Seconds())
			pod.Spec.ActiveDeadlineSeconds = &seconds
		}
		w.set(pod)
	}
}

// end ends the pods of a job, and removes them once the scheduler has seen it.
func (w *future) end(j *job) {
	j.ended = w.led.Now()
	for i := range j.pods {
		pod := w.pod(j, i).DeepCopy()
		pod.Status.Phase = corev1.PodSucceeded
		if j.fails {
			pod.Status.Phase = corev1.PodFailed
		}
		w.set(pod)
	}
	if err := w.led.Cycle(); err != nil {
		w.t.Fatal(err)
	}
	for i := range j.pods {
		w.led.Delete(w.pod(j, i))
	}
	if group := w.led.Get(&scheduling.PodGroup{}, fixture.Namespace, j.name); group != nil {
		w.led.Delete(group)
	}
}

func (w *future) pod(j *job, i int) *corev1.Pod {
	return w.led.Get(&corev1.Pod{}, fixture.Namespace, fmt.Sprintf("%s-%d", j.name, i)).(*corev1.Pod)
}

// cycles runs the scheduler until it has nothing more to do.
func (w *future) cycles() {
	for range 20 {
		if err := w.led.Cycle(); err != nil {
			w.t.Fatal(err)
		}
		made := false
		for _, j := range w.jobs[:w.coming] {
			if j.made {
				continue
			}
			group, _ := w.led.Get(&scheduling.PodGroup{}, fixture.Namespace, j.name).(*scheduling.PodGroup)
			if group != nil && group.Status.Phase == scheduling.PodGroupInqueue {
				w.makePods(j)
				made = true
			}
		}
		if !made && !w.led.HasNews() {
			return
		}
	}
}

func (w *future) observe(d *decision.Decisions) {
	for _, b := range d.Binds {
		j := w.byName[b.Job.Name]
		if j.bound++; j.bound == j.pods {
			j.started = w.led.Now()
		}
	}
}

// ask asks when some of the jobs that wait will start.
func (w *future) ask() {
	var waiting []*job
	for _, j := range w.jobs[:w.coming] {
		if j.started.IsZero() {
			waiting = append(waiting, j)
		}
	}
	w.random.Shuffle(len(waiting), func(i, k int) { waiting[i], waiting[k] = waiting[k], waiting[i] })
	if w.silent {
		return
	}
	for _, j := range waiting[:min(len(waiting), 1)] {
		eta, err := w.led.Scheduler().ETA(w.led.Now(), cluster.JobID{Namespace: fixture.Namespace, Name: j.name})
		switch {
		case err != nil || eta == nil:
			w.t.Fatalf("%s: %v, %v", j.name, eta, err)
		case eta.Earliest == nil:
			w.unknown++
		default:
			w.answers = append(w.answers, asked{job: j, at: w.led.Now(), eta: eta})
		}
	}
}
