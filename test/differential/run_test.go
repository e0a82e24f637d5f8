package differential

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// The bounds of a rest: so many cycles in a row decide nothing, and it comes after at most so many.
const (
	quietCycles = 3
	maxCycles   = 60
)

// run is a scenario that goes on.
type run struct {
	scenario      *scenario
	configuration configuration
	led           *simulator.Led

	decided []string // by the cycle that runs
	story   []string // all that was decided and happened

	happened []happening
	// refusals are how often more the API server refuses to evict or to bind a pod, by its name.
	refusals map[string]int
	// overdue is how much longer than their time pods stay that are evicted, by their names.
	overdue map[string]time.Duration
	// evicted are the pods that are to be evicted in this cycle; made counts those that replaced others.
	evicted []*corev1.Pod
	made    int
	cordon  cordon
	vain    harness.Vain
	cycles  int
	binds   int
	plans   int
	rests   int
	failure string
}

// happening is what changed outside of the scheduler before a cycle.
type happening struct {
	before  int
	set     []runtime.Object
	deleted []string
}

// options are how every simulation of a scenario is run.
func options(observe func(*decision.Decisions)) simulator.Options {
	return simulator.Options{SchedulerNames: []string{"volcano"}, Now: beginning, Grace: true, Observe: observe}
}

// begin begins a run of a scenario.
func begin(w *scenario) *run {
	l := &run{scenario: w, configuration: w.configuration, refusals: map[string]int{}, overdue: map[string]time.Duration{}}
	input, err := manifests.New(w.objects...)
	if err != nil {
		panic(err)
	}
	options := options(l.observe)
	options.Overlook = w.overlook
	options.Fate = func(e decision.Eviction) simulator.Fate {
		return simulator.Fate{Refused: l.refuse(e.Pod.Name), Overdue: l.overdue[e.Pod.Name]}
	}
	options.Successor = l.successor
	options.RefuseBinding = func(b decision.Bind) string { return l.refuse(b.Pod.Name) }
	if l.led, err = simulator.Lead(input, w.configuration.policy(), options); err != nil {
		panic(err)
	}
	return l
}

// refuse says why the API server refuses to evict or to bind a pod, "" if it does not.
func (l *run) refuse(pod string) string {
	if l.refusals[pod] == 0 {
		return ""
	}
	l.refusals[pod]--
	l.vain.Forget()
	l.story = append(l.story, fmt.Sprintf("%d:   the API server refuses what is to become of %s", l.cycles, pod))
	return "somebody forbids it"
}

// isBackingOff reports whether a job waits for a while only because something was refused.
func (l *run) isBackingOff() bool {
	return slices.ContainsFunc(l.led.Scheduler().Cluster().Jobs(), func(j *cluster.Job) bool { return j.NotBefore.After(l.led.Now()) })
}

// lead leads a scenario to its end, or to the first failure.
func lead(w *scenario) *run {
	l := begin(w)
	for _, c := range w.changes {
		if c.isSudden {
			for range c.cycles {
				l.cycle()
			}
		} else {
			l.rest()
		}
		if l.failure != "" {
			return l
		}
		l.story = append(l.story, fmt.Sprintf("%d: %s", l.cycles, c.name))
		l.happened = append(l.happened, happening{before: l.cycles + 1})
		l.vain.Forget()
		c.apply(l)
	}
	l.rest()
	l.calm()
	return l
}

// The bounds of [run.calm].
const (
	calmRounds = 60
	calmPause  = 11 * time.Minute // longer than any pod takes to leave
)

// calm lets time pass again and again, in which nothing happens from outside: in the end nothing is bound or planned
// any more. A job whose pods never come is admitted and held again for as long as it stands.
func (l *run) calm() {
	for rounds, quiet := 0, 0; quiet < 2 && l.failure == ""; rounds++ {
		if rounds == calmRounds {
			l.fail("no end", "after %d pauses without any change it still decides to %s", rounds, strings.Join(l.story[max(len(l.story)-4, 0):], "; "))
			return
		}
		before := l.binds + l.plans
		l.pass(l.untilNextLeaves())
		l.vain.Forget()
		l.rest()
		if quiet++; l.binds+l.plans > before {
			quiet = 0
		}
	}
}

// untilNextLeaves is how long it takes until a pod that is being deleted is gone, or as long as none takes if there is
// none.
func (l *run) untilNextLeaves() time.Duration {
	next := calmPause
	for _, o := range l.led.Objects() {
		if p, ok := o.(*corev1.Pod); ok && p.DeletionTimestamp != nil {
			if left := p.DeletionTimestamp.Sub(l.led.Now()); left > 0 {
				next = min(next, left)
			}
		}
	}
	return next
}

func (l *run) fail(kind, format string, arguments ...any) {
	if l.failure == "" {
		l.failure = kind + ": " + fmt.Sprintf(format, arguments...)
	}
}

// kind is what sort of failure it was, "" if it was none.
func (l *run) kind() string {
	kind, _, _ := strings.Cut(l.failure, ":")
	return kind
}

func (l *run) observe(d *decision.Decisions) {
	l.decided = append(l.decided, decisions(d, l.led)...)
	l.binds += len(d.Binds)
	l.plans += len(d.Plans)
	for _, p := range d.Plans {
		for _, e := range p.Evictions {
			if pod, ok := l.led.Get(&corev1.Pod{}, e.Pod.Namespace, e.Pod.Name).(*corev1.Pod); ok {
				l.evicted = append(l.evicted, pod)
			}
		}
	}
	l.cordon.observe(d)
	if pod := l.vain.Observe(l.cycles, d); pod != "" {
		l.fail("in vain", "%s", pod)
	}
}

// decisions are what of a cycle's decisions is more than a word on how things stand.
func decisions(d *decision.Decisions, led *simulator.Led) (all []string) {
	byHours := map[cluster.JobID]bool{}
	for _, e := range d.Ended {
		all = append(all, fmt.Sprintf("end the plan of %s: %s", e.Job.Name, e.Why))
	}
	for _, p := range d.Plans {
		if isWritten(&p, led) {
			continue
		}
		if isOfHours(&p) {
			for _, e := range p.Evictions {
				byHours[e.VictimJob] = true
			}
			continue
		}
		text := "make room for " + p.Job.Name
		for _, n := range p.Nominations {
			text += fmt.Sprintf(", %s to %s", n.Pod.Name, n.Node)
		}
		for _, e := range p.Evictions {
			text += fmt.Sprintf(", evict %s from %s", e.Pod.Name, e.Node)
		}
		all = append(all, text)
	}
	for _, b := range d.Binds {
		all = append(all, fmt.Sprintf("bind %s to %s", b.Pod.Name, b.Node))
	}
	for _, g := range d.Groups {
		before, _ := led.Get(&schedulingv1beta1.PodGroup{}, g.Job.Namespace, g.Job.Name).(*schedulingv1beta1.PodGroup)
		if byHours[g.Job] {
			continue // its phase follows from these evictions
		}
		if before != nil && isOutside(before.Status.Phase) && g.Status.Phase == schedulingv1beta1.PodGroupInqueue {
			all = append(all, "let in "+g.Job.Name)
		} else if before != nil && before.Status.Phase != g.Status.Phase {
			all = append(all, fmt.Sprintf("say that %s is %s", g.Job.Name, g.Status.Phase))
		}
	}
	return all
}

// isWritten reports whether a plan only promises what the pods say that they are promised: a scheduler that starts
// makes such a plan again instead of taking it up.
func isWritten(p *decision.PlanStart, led *simulator.Led) bool {
	return len(p.Evictions) == 0 && !slices.ContainsFunc(p.Nominations, func(n decision.Nomination) bool {
		pod, ok := led.Get(&corev1.Pod{}, n.Pod.Namespace, n.Pod.Name).(*corev1.Pod)
		return !ok || pod.Status.NominatedNodeName != n.Node
	})
}

// isOfHours reports whether a plan evicts pods because the hours of their nodes are over. How many leave at a time is
// counted by the scheduler that runs, so that another one evicts more.
func isOfHours(p *decision.PlanStart) bool {
	return p.Job.Name == "" && slices.ContainsFunc(p.Evictions, func(e decision.Eviction) bool { return e.Rule == "" })
}

func isOutside(phase schedulingv1beta1.PodGroupPhase) bool {
	return phase == "" || phase == schedulingv1beta1.PodGroupPending
}

// cycle runs one cycle and returns what it decided.
func (l *run) cycle() []string {
	l.decided = nil
	l.cycles++
	if err := l.led.Cycle(); err != nil {
		l.fail("panic", "%s", err)
	}
	for _, d := range l.decided {
		l.story = append(l.story, fmt.Sprintf("%d:   %s", l.cycles, d))
	}
	l.live()
	return l.decided
}

// rest leaves the scenario alone until it rests, and then finds out whether anything was missed.
func (l *run) rest() {
	for quiet, cycles := 0, 0; quiet < quietCycles && l.failure == ""; cycles++ {
		if cycles >= maxCycles {
			l.fail("no rest", "after %d cycles it still decides to %s", cycles, strings.Join(l.decided, "; "))
			return
		}
		if quiet++; len(l.cycle()) > 0 || l.led.HasNews() || quiet == quietCycles && (l.isBackingOff() || l.led.IsDue()) {
			quiet = 0
		}
	}
	if l.failure != "" {
		return
	}
	for _, problem := range l.led.Scheduler().Cache().Audit() {
		l.fail("audit", "%s", problem)
	}
	l.rests++
	again := l.askAgain()
	l.lookAgain() // the sharper word of the two
	if len(again) > 0 {
		l.fail("missed", "a scheduler that starts now would %s", strings.Join(again, "; "))
	}
}

// askAgain returns what a scheduler decides that knows the objects only as they are now. There must be nothing to do
// for it.
func (l *run) askAgain() []string {
	input, err := manifests.New(l.led.Objects()...)
	if err != nil {
		panic(err)
	}
	var decided []string
	var again *simulator.Led
	options := options(func(d *decision.Decisions) { decided = append(decided, decisions(d, again)...) })
	options.Now = l.led.Now()
	if again, err = simulator.Lead(input, l.configuration.policy(), options); err != nil {
		panic(err)
	}
	for _, load := range l.led.Loads() {
		again.Measure(load)
	}
	if err := again.Cycle(); err != nil {
		l.fail("panic again", "%s", err)
	}
	return decided
}

// lookAgain makes the scheduler try every job again. There must be nothing to decide about it.
func (l *run) lookAgain() {
	l.led.Scheduler().Cluster().Reconsider()
	if decided := l.cycle(); len(decided) > 0 {
		l.fail("overlooked", "looking again at every job it does %s", strings.Join(decided, "; "))
	}
}

// edit changes an object as it is now.
func edit[T interface {
	runtime.Object
	DeepCopyObject() runtime.Object
}](l *run, specimen T, name string, how func(T)) {
	now, ok := get(l, specimen, name)
	if !ok {
		return
	}
	changed := now.DeepCopyObject().(T)
	how(changed)
	l.set(changed)
}

// get returns an object by name.
func get[T runtime.Object](l *run, specimen T, name string) (o T, ok bool) {
	for _, namespace := range []string{fixture.Namespace, ""} {
		if o, ok = l.led.Get(specimen, namespace, name).(T); ok {
			return o, true
		}
	}
	return o, false
}

// drop removes an object.
func drop[T runtime.Object](l *run, specimen T, name string) {
	if now, ok := get(l, specimen, name); ok {
		l.delete(now)
	}
}

// delete removes an object that is there.
func (l *run) delete(o runtime.Object) {
	if n := len(l.happened) - 1; n >= 0 {
		l.happened[n].deleted = append(l.happened[n].deleted, simulator.NameOf(o))
	}
	l.led.Delete(o)
}

func (l *run) set(o runtime.Object) {
	if n := len(l.happened) - 1; n >= 0 {
		l.happened[n].set = append(l.happened[n].set, o)
	}
	if err := l.led.Set(o.DeepCopyObject()); err != nil {
		panic(err)
	}
}

func (l *run) pass(d time.Duration) { l.led.Pass(d) }
