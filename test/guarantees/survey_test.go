package guarantees

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/harness"
)

// stepsEnv says how many random steps the survey takes.
const stepsEnv = "HEKLA_GUARANTEES_STEPS"

// seedEnv says with which seed the survey begins, so that several surveys try different clusters.
const seedEnv = "HEKLA_GUARANTEES_SEED"

// stepsOfAStory is how many steps are taken in one cluster, before it must come to rest.
const stepsOfAStory = 120

// progress is after how many stories a long survey tells how far it is.
const progress = 250

// story is a cluster in which things happen.
type story struct {
	*randomCluster
	lost      []string // pods whose nominated nodes were taken from them in the last cycle, with their plans
	random    *rand.Rand
	led       *simulator.Led
	leaves    []string
	jobs      []string // that were added
	made      int
	evictions []decision.Eviction // of the last cycle
	judge     *judge              // of the next decisions
	breach    error               // what the judge has found
	tamper    func(*decision.Decisions)
	rebuild   func() *framework.Policy
	crashes   int
	isCutOff  bool // the last cycle has ended in a crash
	plans     int
	// given up is by how much less guarantees are met because of what these rules do not keep: room for pods of
	// DaemonSets (G10), and places of pods that did not come (G13).
	givenUp       int
	applications  []*spark // that were added and have not ended
	all           []*spark
	startedGroups map[string]bool // PodGroups with pods that are bound in the last cycle
	around        surroundings
	count         map[string]int // evictions by rule, and other things that happened
}

// tell begins a story in a random cluster, in which the action shuffle cuts what queues hold beyond their capabilities.
func tell(seed uint64) (*story, error) {
	c := draw(seed)
	for i := range c.documents {
		c.documents[i] = strings.Replace(c.documents[i], "reclaim, backfill", "reclaim, backfill, shuffle", 1)
	}
	input, err := manifests.Read([]string{"-"}, strings.NewReader(strings.Join(c.documents, "---\n")))
	if err != nil {
		return nil, err
	}
	s := &story{randomCluster: c, around: surroundings{restarts: map[string]bool{}}, count: map[string]int{}, random: rand.New(rand.NewPCG(seed, 11)), rebuild: policyOf(input)}
	isParent := map[string]bool{}
	for _, parent := range c.parent {
		isParent[parent] = true
	}
	for q := range c.parent {
		if !isParent[q] {
			s.leaves = append(s.leaves, q)
		}
	}
	slices.Sort(s.leaves)
	s.led, err = simulator.Lead(input, s.rebuild(), simulator.Options{SchedulerNames: []string{"volcano"}, Now: birth.Add(6*time.Hour + 5*time.Second), Observe: s.observe})
	return s, err
}

func (s *story) observe(d *decision.Decisions) {
	if s.breach == nil && s.judge != nil {
		s.breach = s.judge.cycle(d)
	}
	if s.tamper != nil {
		s.tamper(d)
	}
	for _, e := range d.Ended {
		for _, n := range e.Nominations {
			s.lost = append(s.lost, n.Pod.String())
		}
	}
	for _, p := range d.Plans {
		if len(p.Evictions) > 0 && p.Job != (decision.JobID{}) {
			if p.Evictions[0].Rule == "G4" {
				s.plans++
			}
			// If they had them before, an earlier scheduler has written these and no evictions.
			for _, n := range p.Nominations {
				s.lost = append(s.lost, n.Pod.String())
			}
		}
		s.evictions = append(s.evictions, p.Evictions...)
	}
	s.watch(d)
	for _, e := range s.evictions {
		s.count[e.Rule]++
	}
	s.startedGroups = map[string]bool{}
	for _, b := range d.Binds {
		s.startedGroups[b.Job.Name] = true
	}
	s.count["pods that failed"] += len(d.Fails)
	s.count["held places"] += len(d.Awaits)
}

// queue returns a copy of a queue to change.
func (s *story) queue(name string) *schedulingv1beta1.Queue {
	return s.led.Get(&schedulingv1beta1.Queue{}, "", name).(*schedulingv1beta1.Queue).DeepCopy()
}

// anyQueue returns the name of a queue.
func (s *story) anyQueue() string {
	names := make([]string, 0, len(s.parent))
	for q := range s.parent {
		names = append(names, q)
	}
	slices.Sort(names)
	return names[s.random.IntN(len(names))]
}

// happen changes the cluster.
func (s *story) happen() error {
	s.restart()
	s.cordon()
	what := s.random.IntN(28)
	if what < 20 {
		s.around.vain.Forget()
	}
	switch what { // beyond the last, nothing happens
	case 0, 1, 2:
		return s.addJob()
	case 3, 4:
		s.endJob()
	case 5:
		return s.setGuarantee()
	case 6, 7:
		return s.setCapability()
	case 8:
		return s.setPolicy()
	case 9:
		s.deletePod()
	case 10:
		s.led.Pass(time.Duration(1+s.random.IntN(20)) * time.Second)
	case 11:
		if s.random.IntN(3) == 0 {
			s.crash(s.random.IntN(8))
		}
	case 12:
		return s.addApplication()
	case 13, 14:
		return s.addExecutor()
	case 15:
		if s.random.IntN(2) == 0 {
			s.endApplication()
		}
	case 16, 17:
		if s.random.IntN(3) == 0 {
			return s.addDaemon()
		}
	case 18, 19:
		return s.addJobWithoutMaster()
	case 20:
		s.around.isAwaited = true
	}
	return nil
}

// crash ends the scheduler when it has made some writes more.
func (s *story) crash(writes int) {
	s.led.Crash(simulator.CrashPlan{Writes: writes, OfPlans: s.random.IntN(2) == 0, Policy: s.rebuild,
		Meanwhile: func(*simulator.Led) error { s.crashes++; return nil }})
}

// never is more writes than there are.
const never = 1 << 30

func (s *story) addJob() error {
	s.made++
	name, pods := fmt.Sprintf("s%d", s.made), 1+s.random.IntN(3)
	cpu, queue, now := 1+s.random.IntN(3), s.leaves[s.random.IntN(len(s.leaves))], metav1.NewTime(s.led.Now())
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work", CreationTimestamp: now, Generation: 1}}
	group.Spec = schedulingv1beta1.PodGroupSpec{MinMember: int32(1 + s.random.IntN(pods)), Queue: queue, PriorityClassName: fmt.Sprintf("p%d", s.random.IntN(2)*10)}
	group.Status.Phase = schedulingv1beta1.PodGroupInqueue
	if err := s.led.Set(group); err != nil {
		return err
	}
	s.jobs = append(s.jobs, name)
	s.around.restarts[name] = true
	for k := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, k), Namespace: "work", CreationTimestamp: now, Generation: 1,
			Annotations:     map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(name), Controller: new(true)}}}}
		if err := s.addPod(pod, queue, cpu); err != nil {
			return err
		}
	}
	return nil
}

// endJob ends all pods of a job.
func (s *story) endJob() {
	if len(s.jobs) == 0 {
		return
	}
	i := s.random.IntN(len(s.jobs))
	name := s.jobs[i]
	s.jobs = slices.Delete(s.jobs, i, i+1)
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == name {
			ended := pod.DeepCopy()
			ended.Status.Phase = corev1.PodSucceeded
			s.led.Delete(ended)
		}
	}
	if group := s.led.Get(&schedulingv1beta1.PodGroup{}, "work", name); group != nil {
		s.led.Delete(group)
	}
}

func (s *story) setGuarantee() error {
	q := s.queue(s.anyQueue())
	cpu := s.random.IntN(9)
	q.Spec.Guarantee.Resource = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cpu), resource.DecimalSI)}
	s.guaranteed[q.Name] = map[string]int{"cpu": cpu}
	q.Generation++
	return s.led.Set(q)
}

func (s *story) setCapability() error {
	q := s.queue(s.anyQueue())
	q.Spec.Capability = nil
	if s.random.IntN(3) > 0 {
		q.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(s.random.IntN(12)), resource.DecimalSI)}
	}
	q.Generation++
	return s.led.Set(q)
}

func (s *story) setPolicy() error {
	q := s.queue(s.anyQueue())
	choice := []struct{ key, value string }{{schedulingv1beta1.PreemptionPolicyKey, "fence"}, {schedulingv1beta1.PreemptionPolicyKey, "disabled"},
		{schedulingv1beta1.PreemptionPolicyKey, "default"}, {schedulingv1beta1.PreemptionDelayKey, "2s"}, {schedulingv1beta1.PriorityOffsetKey, "7"},
		{schedulingv1beta1.PriorityPolicyKey, "fence"}, {schedulingv1beta1.QuotaPreemptionDelayKey, "3s"}, {schedulingv1beta1.QuotaPreemptionDelayKey, "1s"},
		{schedulingv1beta1.MaxApplicationsKey, "2"}, {schedulingv1beta1.ApplicationSortPolicyKey, "fair"}, {schedulingv1beta1.ApplicationSortPolicyKey, "fifo"},
		{schedulingv1beta1.ApplicationSortPriorityKey, "disabled"}, {schedulingv1beta1.ApplicationSortPriorityKey, "enabled"}}[s.random.IntN(13)]
	metav1.SetMetaDataAnnotation(&q.ObjectMeta, choice.key, choice.value)
	return s.led.Set(q)
}

// deletePod deletes a pod that has a node, which its controller makes again.
func (s *story) deletePod() {
	var pods []*corev1.Pod
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			pods = append(pods, pod)
		}
	}
	if len(pods) > 0 {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		s.led.Delete(pods[s.random.IntN(len(pods))])
	}
}

// step runs a cycle and checks what it has decided.
func (s *story) step() error {
	objects := s.led.Objects()
	places, promised := s.placesNow(), promisedOf(objects)
	before := s.held(objects)
	s.bookPlaces(before, places, +1)
	s.evictions, s.lost, s.breach, s.judge = nil, nil, nil, s.look(objects, places)
	crashes := s.crashes
	if err := s.led.Cycle(); err != nil {
		return err
	}
	if s.breach != nil {
		return s.breach
	}
	held := s.allPlaces()
	after := s.held(s.led.Objects())
	s.bookPlaces(after, held, +1)
	if problems := s.led.Scheduler().Cache().Audit(); len(problems) > 0 {
		return errors.New(problems[0])
	}
	if err := s.isWithinNodes(); err != nil {
		return err
	}
	if s.isCutOff = s.crashes > crashes; s.isCutOff {
		return nil // a part of what was decided is not written
	}
	holds := map[string]int{}
	for q, amounts := range after {
		holds[q] = amounts["cpu"]
	}
	s.excuse(before, after, promised, missing(places, held))
	if err := s.check(before, after); err != nil {
		return err
	}
	if was, is := s.fulfilled(before), s.fulfilled(after); is < was {
		return fmt.Errorf("G11: guarantees were met by %d, and are by %d", was, is)
	}
	for q, cpu := range holds {
		object := s.led.Get(&schedulingv1beta1.Queue{}, "", q).(*schedulingv1beta1.Queue)
		if most, ok := object.Spec.Capability[corev1.ResourceCPU]; ok && cpu > int(most.Value()) && cpu > before[q]["cpu"] {
			return fmt.Errorf("Q4: queue %s may hold cpu %s, held %d and holds %d", q, most.String(), before[q]["cpu"], cpu)
		}
	}
	for _, e := range s.evictions {
		if e.Rule != "G4" && e.Rule != "G12" && e.Rule != "G10" {
			return fmt.Errorf("pod %s leaves by rule %s", e.Pod, e.Rule)
		}
	}
	return nil
}

// excuse takes off what queues held what they may lose in a cycle without a breach of G2, or adds it to what they hold.
func (s *story) excuse(before, after map[string]map[string]int, promised map[string]bool, gone map[standIn]int) {
	// A plan that is cancelled, because something has changed, takes promises back. No pod leaves for that. And what an
	// earlier scheduler has promised counts when the pods leave for it.
	for _, name := range slices.Compact(slices.Sorted(slices.Values(s.lost))) {
		if promised[name] {
			s.book(before, name, -1)
		}
	}
	// Room for pods of DaemonSets is taken whatever is guaranteed. Other plans of the cycle may come before.
	was, is, isProtected := s.fulfilled(before), s.fulfilled(after), map[string]bool{}
	for _, e := range s.evictions {
		if e.Rule == "G10" {
			s.book(after, e.Pod.String(), +1)
		} else {
			isProtected[e.VictimJob.Name] = true
		}
	}
	// Places are taken by pods, or go with their application, before plans are made. When their time is over they are
	// given up after it.
	isLate := func(group string) bool { return !s.startedGroups[group] && s.judge.isAlive(group) }
	s.bookPlaces(before, of(gone, func(group string) bool { return !isProtected[group] && !isLate(group) }), -1)
	s.givenUp += was - s.fulfilled(before)
	s.bookPlaces(after, of(gone, func(group string) bool { return !isProtected[group] && isLate(group) }), +1)
	s.givenUp += s.fulfilled(after) - is
}

// promisedOf are the pods that have no node and are promised one.
func promisedOf(objects []runtime.Object) map[string]bool {
	names := map[string]bool{}
	for _, o := range objects {
		if pod, ok := o.(*corev1.Pod); ok && pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
			names[pod.Namespace+"/"+pod.Name] = true
		}
	}
	return names
}

// rest lets time pass until nothing is decided any more. Plans of jobs are as many at most as guarantees lack at first,
// and one for each eviction of rule G12 that may open room again.
func (s *story) rest() error {
	total := 0
	for _, guaranteed := range s.guaranteed {
		for _, floor := range guaranteed {
			total += floor
		}
	}
	s.crash(never)
	s.around.isAwaited, s.around.node = false, ""
	if s.isCutOff {
		// Of a plan that was not written to its end some promises count as held. The next scheduler may have to make it
		// again.
		if err := s.step(); err != nil {
			return err
		}
	}
	held := s.held(s.led.Objects())
	s.bookPlaces(held, s.allPlaces(), +1)
	lacks := total - s.fulfilled(held)
	s.plans, s.givenUp = 0, 0
	cuts, quiet, busy := 0, 0, 0 // busy are the cycles in a row in which a job is tried
	for cycle := 0; quiet < 40; cycle++ {
		if cycle > 400 {
			return errors.New("S2: there is no rest after 400 cycles")
		}
		if busy++; !slices.ContainsFunc(s.led.Scheduler().Cluster().Attended(), s.isTried) {
			busy = 0
		}
		binds := s.bound()
		if err := s.step(); err != nil {
			return err
		}
		for _, e := range s.evictions {
			if e.Rule == "G12" {
				cuts++
			}
		}
		if quiet++; len(s.evictions) > 0 || !slices.Equal(binds, s.bound()) {
			quiet = 0
		}
	}
	if s.plans > lacks+cuts+s.givenUp {
		return fmt.Errorf("G11: %d plans, guarantees lacked %d, and %d pods left by G12; given up was %d", s.plans, lacks, cuts, s.givenUp)
	}
	if busy > 20 {
		return fmt.Errorf("S2: though nothing happens a job was tried in each of the last %d cycles", busy)
	}
	return s.checkCuts()
}

// checkCuts says which queue holds more than its capability although a pod below it could leave.
func (s *story) checkCuts() error {
	held := s.held(s.led.Objects())
	s.bookPlaces(held, s.allPlaces(), +1)
	for q := range s.parent {
		object := s.led.Get(&schedulingv1beta1.Queue{}, "", q).(*schedulingv1beta1.Queue)
		most, ok := object.Spec.Capability[corev1.ResourceCPU]
		if !ok || held[q]["cpu"] <= int(most.Value()) || !s.isCut(q) {
			continue
		}
		for pod, queue := range s.queueOf {
			if s.runs(pod) && s.isBelow(queue, q) && s.isAlone(pod) && !isOfDaemonSet(s.pod(pod)) && s.mayLose(queue, pod, held) {
				return fmt.Errorf("G12: queue %s holds cpu %d and may hold %s, and pod %s could leave", q, held[q]["cpu"], most.String(), pod)
			}
		}
	}
	return nil
}

func (s *story) isBelow(q, above string) bool {
	for ; q != ""; q = s.parent[q] {
		if q == above {
			return true
		}
	}
	return false
}

// isCut reports whether a queue gives up what it holds beyond its capability.
func (s *story) isCut(q string) bool {
	for ; q != ""; q = s.parent[q] {
		object := s.led.Get(&schedulingv1beta1.Queue{}, "", q).(*schedulingv1beta1.Queue)
		if value, ok := object.Annotations[schedulingv1beta1.QuotaPreemptionDelayKey]; ok {
			return value != "0"
		}
	}
	return false
}

func (s *story) pod(name string) *corev1.Pod {
	pod, _ := s.led.Get(&corev1.Pod{}, "work", strings.TrimPrefix(name, "work/")).(*corev1.Pod)
	return pod
}

func (s *story) runs(name string) bool {
	pod := s.pod(name)
	return pod != nil && pod.Spec.NodeName != ""
}

// isAlone reports whether a pod may leave without others of its gang.
func (s *story) isAlone(name string) bool {
	group := s.led.Get(&schedulingv1beta1.PodGroup{}, "work", s.pod(name).Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey])
	return group != nil && group.(*schedulingv1beta1.PodGroup).Spec.MinMember <= 1
}

// mayLose reports whether every queue above a pod keeps its guarantee without it.
func (s *story) mayLose(queue, pod string, held map[string]map[string]int) bool {
	for q := queue; q != ""; q = s.parent[q] {
		for name, floor := range s.guaranteed[q] {
			if amount := s.requests[pod][name]; amount > 0 && held[q][name]-amount < floor {
				return false
			}
		}
	}
	return true
}

// bound lists the pods that have a node.
func (s *story) bound() (all []string) {
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			all = append(all, pod.Name+" "+string(pod.UID))
		}
	}
	slices.Sort(all)
	return all
}

func TestWhateverHappensGuaranteesAreKept(t *testing.T) {
	steps := harness.Number(t, stepsEnv, 15_000)
	taken, evicted, crashes, count := 0, 0, 0, map[string]int{}
	for seed := harness.Number(t, seedEnv, uint64(1)); taken < steps; seed++ {
		s, err := tell(seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range stepsOfAStory {
			if err := s.happen(); err != nil {
				t.Fatal(err)
			}
			if err := s.step(); err != nil {
				t.Fatalf("seed %d, step %d: %v\nevicted are %v", seed, i, err, s.evictions)
			}
			taken++
			evicted += len(s.evictions)
		}
		if err := s.rest(); err != nil {
			t.Fatalf("seed %d at rest: %v", seed, err)
		}
		if crashes += s.crashes; (seed+1)%progress == 0 {
			t.Logf("%d steps, %d evictions, %d crashes, %v", taken, evicted, crashes, count)
		}
		for what, times := range s.count {
			count[what] += times
		}
	}
	if evicted < steps/100 {
		t.Errorf("in %d steps only %d pods were evicted: they test little", taken, evicted)
	}
	for _, what := range []string{"G4", "G10", "G12", "held places", "pods that failed", "cordons", "pods that restart"} {
		if count[what] == 0 {
			t.Errorf("in %d steps nothing was tried of: %s", steps, what)
		}
	}
	t.Logf("%d steps, %d evictions, %d crashes, %v", taken, evicted, crashes, count)
}
