package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/internal/simulator/report"
	"hekla.sh/hekla/internal/simulator/workloads"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// Options are how a simulation is run.
type Options struct {
	SchedulerNames []string
	Now            time.Time              // when it begins; zero: the newest creation time of the input
	Cycles         int                    // how many cycles, if not UntilStable
	UntilStable    bool                   // until two cycles in a row decide nothing
	MinCycles      int                    // the fewest cycles with UntilStable
	MaxCycles      int                    // the most cycles with UntilStable
	Journal        bool                   // add to the report what was decided, and how verdicts changed
	DefaultQueue   string                 // for jobs that name none; that of [cache.Options] if it is empty
	Explain        bool                   // add to the report why jobs wait at the end, and what was decided of them
	Asked          []types.NamespacedName // Workloads about which the report has the answers
	Grace          bool                   // pods that are being deleted live out their grace period

	// Fate says what becomes of an eviction, where that is not the usual; nil: it always is. It is for tests.
	Fate func(decision.Eviction) Fate
	// RefuseBinding says why the API server refuses a binding, "" if it does not; nil: it refuses none. It is for
	// tests.
	RefuseBinding func(decision.Bind) string
	// Successor says how the controller of a pod that is gone makes it again; nil: at once, under its name. It is for
	// tests.
	Successor func(gone *corev1.Pod) Successor
	// Observe is told what each cycle decided, before it is carried out; nil observes nothing. It is for tests.
	Observe func(*decision.Decisions)
	// Before is called before each cycle, by its number from 1: what happens in the world outside; nil: nothing. It is
	// for tests.
	Before func(cycle int, l *Led) error
	// Overlook is that of [cache.Options]. It is for tests.
	Overlook func(wake.Cause) bool
}

// ErrNotStable says that the most cycles passed without two in a row that decide nothing.
var ErrNotStable = errors.New("not stable")

// maxPasses bounds how often the scheduler runs within one cycle, because what it has decided is known at once. Pods of
// what it has admitted take one, and the victims of a plan another.
const maxPasses = 10

// quiet is how many cycles in a row without a decision are a rest.
const quiet = 2

// simulation is one run.
type simulation struct {
	options   Options
	input     *manifests.Input
	scheduler *scheduler.Scheduler
	now       time.Time // of the next cycle
	wake      time.Time // when the scheduler asked to be woken last, zero if by events only
	events    []cache.Event

	pods   map[types.NamespacedName]*corev1.Pod
	groups map[cluster.JobID]*schedulingv1beta1.PodGroup
	jobs   map[cluster.JobID]*batchv1alpha1.Job // by their PodGroup, until their pods are made
	names  map[cluster.JobID]string             // what a person calls the job of a PodGroup
	report *Report
	shown  shown

	budgets  []*manifests.Budget
	quotas   []*quota
	managed  map[cluster.JobID]bool       // PodGroups of Jobs of the input, whose pods come back
	returned map[types.NamespacedName]int // how often a pod came back
	supplies *provisioner
	queued   *workloads.Controllers
	overdue  map[types.UID]time.Duration // how much longer than their time evicted pods stay
	delayed  []successor                 // pods that their controllers make again later
	crash    *crash                      // nil if none is to come
	loads    []cache.Measured            // of nodes, as they were measured last; told before every cycle
}

// Run runs a simulation of the input under a policy. The report is complete also if the error is ErrNotStable.
func Run(input *manifests.Input, policy *framework.Policy, options Options) (*Report, error) {
	s, err := newSimulation(input, policy, options)
	if err != nil {
		return nil, err
	}
	resting := 0
	for s.report.Cycles < s.options.limit() && !(options.UntilStable && resting >= quiet && s.report.Cycles >= options.MinCycles) {
		decided, err := s.cycle()
		if err != nil {
			return nil, err
		}
		if resting++; decided {
			resting = 0
		}
	}
	s.report.Stable = resting >= quiet
	teller{s}.finish()
	if options.Journal {
		s.report.Journal = s.scheduler.Journal().All(journal.DefaultLimits.Entries)
	}
	if options.Explain {
		if err := (teller{s}).explain(); err != nil {
			return nil, err
		}
	}
	if len(options.Asked) > 0 {
		if err := (teller{s}).explainAsked(); err != nil {
			return nil, err
		}
	}
	if options.UntilStable && !s.report.Stable {
		return s.report, ErrNotStable
	}
	return s.report, nil
}

// newSimulation returns a simulation before its first cycle.
func newSimulation(input *manifests.Input, policy *framework.Policy, options Options) (*simulation, error) {
	s := &simulation{
		options:   options,
		input:     input,
		scheduler: newScheduler(options),
		now:       options.Now,
		pods:      map[types.NamespacedName]*corev1.Pod{},
		groups:    map[cluster.JobID]*schedulingv1beta1.PodGroup{},
		jobs:      map[cluster.JobID]*batchv1alpha1.Job{},
		names:     map[cluster.JobID]string{},
		report:    report.New(),
		shown:     shown{objects: map[shownKey]runtime.Object{}},
		managed:   map[cluster.JobID]bool{},
		returned:  map[types.NamespacedName]int{},
		overdue:   map[types.UID]time.Duration{},
	}
	s.supplies = newProvisioner(s)
	s.queued = newControllers(s, policy)
	if s.now.IsZero() {
		s.now = input.Newest
	}
	if err := s.scheduler.Use(policy); err != nil {
		return nil, err
	}
	return s, s.begin()
}

func (o Options) limit() int {
	if o.UntilStable {
		return o.MaxCycles
	}
	return o.Cycles
}

// begin puts the input into the cluster, and what controllers make of it.
func (s *simulation) begin() error {
	for _, o := range s.input.Others {
		s.set(o.DeepCopyObject())
	}
	for _, b := range s.input.Budgets {
		object := b.Object.DeepCopy()
		s.budgets = append(s.budgets, &manifests.Budget{Object: object, Selector: b.Selector})
		s.set(object)
	}
	s.supplies.begin(s.input.Supplies)
	for _, o := range s.input.Queueing {
		queuedCluster{s}.show(o.DeepCopyObject().(client.Object))
	}
	for _, g := range s.input.Groups {
		s.setGroup(g.DeepCopy())
	}
	for _, j := range s.input.Jobs {
		if err := (volcanoJobs{s}).begin(j.DeepCopy()); err != nil {
			return err
		}
	}
	pods := slices.Concat(s.input.Pods, s.podsOfJobs())
	for _, pod := range slices.SortedFunc(slices.Values(pods), schedulingbuilder.CompareMembers) {
		pod = pod.DeepCopy()
		s.queued.HoldPod(pod)
		s.setPod(applications{s}.grouped(pod))
	}
	for _, q := range s.input.Quotas {
		controllers{s}.addQuota(q)
	}
	s.count()
	_, _, err := s.queued.Step()
	return err
}

// makesPods reports whether a Job is in a phase in which its pods are made.
func makesPods(j *batchv1alpha1.Job) bool {
	phase := j.Status.State.Phase
	return phase == "" || phase == batchv1alpha1.Pending || phase == batchv1alpha1.Running
}

func (s *simulation) priorityOf(class string) int32 {
	if found := s.input.Priorities[class]; found != nil {
		return found.Value
	}
	return 0
}

// set shows an object that no other code holds, whose spec is as it was.
func (s *simulation) set(o runtime.Object) {
	s.shown.write(o, false)
	s.tell(o)
}

// tell tells the scheduler of an object.
func (s *simulation) tell(o runtime.Object) { s.events = append(s.events, cache.Set{Object: o}) }

// drop shows that an object is gone.
func (s *simulation) drop(o runtime.Object) {
	s.shown.drop(o)
	s.events = append(s.events, cache.Delete{Object: o})
}

func (s *simulation) setPod(pod *corev1.Pod) {
	s.supplies.prepare(pod)
	s.pods[keyOf(pod)] = pod
	s.set(pod)
}

func (s *simulation) setGroup(group *schedulingv1beta1.PodGroup) {
	id := groupID(group)
	s.groups[id] = group
	s.names[id] = group.Namespace + "/" + nameOf(group)
	s.set(group)
}

// nameOf is what a person calls the job of a PodGroup: where a controller made it for an object, that object's name.
func nameOf(group *schedulingv1beta1.PodGroup) string {
	owner := metav1.GetControllerOfNoCopy(group)
	if owner != nil && (group.Name == owner.Name+"-"+string(owner.UID) ||
		strings.HasPrefix(group.Name, schedulingv1beta1.PodGroupNamePrefix)) {
		return owner.Name
	}
	return group.Name
}

// cycle runs one cycle, a second of the cluster's time, and reports whether anything was decided or is on its way. When
// the cycle admits jobs, their pods are created within the same second, and the scheduler runs again.
func (s *simulation) cycle() (bool, error) {
	s.report.Cycles++
	if s.options.Before != nil {
		if err := s.options.Before(s.report.Cycles, &Led{s}); err != nil {
			return false, err
		}
	}
	s.makeDelayed()
	(volcanoJobs{s}).makePods() // of tasks whose dependencies have started
	decided, before := s.leaving(), s.report.Rows()
	for _, load := range s.loads {
		s.events = append(s.events, load)
	}
	for passes := 1; passes > 0; {
		result := s.scheduler.Cycle(s.now, s.events)
		if result.Panic != "" {
			return false, fmt.Errorf("the scheduler failed in cycle %d, please report this: %s", s.report.Cycles, result.Panic)
		}
		s.events, s.wake = nil, result.Wake
		if s.options.Observe != nil {
			s.options.Observe(&result.Decisions)
		}
		s.carryOut(&result.Decisions)
		if err := s.survive(); err != nil {
			return false, err
		}
		starts, moved, err := s.queued.Step()
		if err != nil {
			return false, err
		}
		decided = decided || moved || !result.Decisions.IsEmpty() && len(result.Decisions.Workloads)+len(result.Decisions.WorkloadPlans) > 0
		// A plan is recorded before its victims are told to leave.
		if passes++; !(volcanoJobs{s}).makePods() && !starts && len(result.Decisions.WorkloadPlans) == 0 || passes > maxPasses {
			passes = 0
		}
		s.count()
	}
	s.now = s.now.Add(time.Second)
	s.clearAway()
	s.count()
	if _, _, err := s.queued.Step(); err != nil {
		return false, err
	}
	return decided || s.report.Rows() > before || s.awaitsTime(), nil
}

// awaitsTime reports whether time alone may help a job that waits, or makes a queue give what it holds beyond its
// capability.
func (s *simulation) awaitsTime() bool {
	if subtrees := s.scheduler.Policy().Subtrees(); subtrees != nil && s.scheduler.Policy().Has("shuffle") && !subtrees.NextCut.IsZero() {
		return true
	}
	return s.queued.AwaitsTime() || slices.ContainsFunc(s.scheduler.Cluster().Attended(), func(j *cluster.Job) bool {
		return j.Verdict != nil && !j.Verdict.RetryAt.IsZero()
	})
}

// carryOut does what was decided: bound pods run before the next cycle. Plans end before new ones begin, which may want
// the same pods.
func (s *simulation) carryOut(d *decision.Decisions) {
	for i := range d.Ended {
		planWriter{s}.end(&d.Ended[i])
	}
	for i := range d.Plans {
		planWriter{s}.begin(&d.Plans[i])
	}
	for _, b := range d.Binds {
		s.bind(b)
	}
	for i := range d.Groups {
		s.setGroupStatus(&d.Groups[i], false)
	}
	for i := range d.Places {
		p := &d.Places[i]
		s.annotate(p.Job, p.UID, schedulingv1beta1.JobAllocatedHyperNodeKey, p.HyperNode)
	}
	for i := range d.Awaits {
		s.annotate(d.Awaits[i].Job, d.Awaits[i].UID, schedulingv1beta1.StandInsKey, d.Awaits[i].Record)
	}
	for i := range d.Fails {
		s.failPod(&d.Fails[i])
	}
	s.events = append(s.events, s.queued.Carry(d, s.mayWrite)...)
}

// count brings up to date what controllers count of the pods.
func (s *simulation) count() {
	controllers{s}.countBudgets()
	controllers{s}.countQuotas()
}

func (s *simulation) bind(b decision.Bind) {
	if !s.mayWrite(false) {
		return
	}
	if s.options.RefuseBinding != nil {
		if reason := s.options.RefuseBinding(b); reason != "" {
			s.events = append(s.events, cache.BindFailed{Pod: b.Pod, UID: b.UID, At: s.now, Reason: reason})
			return
		}
	}
	s.supplies.carryOut(&b)
	s.report.Binds = append(s.report.Binds, Bind{Cycle: s.report.Cycles, Pod: b.Pod.String(), Node: b.Node})
	pod := s.pods[b.Pod].DeepCopy()
	now := metav1.NewTime(s.now)
	pod.Spec.NodeName = b.Node
	if b.Account != "" { // as the Binding has it
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, decision.AccountAnnotation, b.Account)
	}
	pod.Status.Phase, pod.Status.StartTime, pod.Status.NominatedNodeName = corev1.PodRunning, &now, ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	s.setPod(pod)
}

func (s *simulation) setGroupStatus(g *decision.GroupStatus, forPlan bool) {
	if group := s.groups[g.Job]; group != nil && group.UID == g.UID && s.mayWrite(forPlan) {
		group = group.DeepCopy()
		group.Status = g.Status
		s.groups[g.Job] = group
		s.set(group)
	}
}

// annotate writes an annotation of a PodGroup, or removes it if the value is empty.
func (s *simulation) annotate(id cluster.JobID, uid types.UID, key, value string) {
	group := s.groups[id]
	if group == nil || group.UID != uid || !s.mayWrite(false) {
		return
	}
	group = group.DeepCopy()
	if value == "" {
		delete(group.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, key, value)
	}
	s.groups[id] = group
	s.set(group)
}

func (s *simulation) failPod(p *decision.PodFailure) {
	pod := s.pods[p.Pod]
	if pod == nil || pod.UID != p.UID || pod.Spec.NodeName != "" || !s.mayWrite(false) {
		return
	}
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, p.Reason, p.Message
	s.setPod(pod)
}
