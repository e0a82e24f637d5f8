package scheduler_test

import (
	"cmp"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// judge receives violations of the rules; *testing.T and *rapid.T are judges.
type judge interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

// fail says what is wrong, and how it came to be.
func (l *randomCluster) fail(j judge, format string, arguments ...any) {
	j.Helper()
	j.Fatalf("under %q %s\n%s", l.configuration, fmt.Sprintf(format, arguments...), l.story())
}

// check runs a cycle and checks its decisions against the rules from outside, without asking the model.
func (l *randomCluster) check(j judge) {
	j.Helper()
	result := l.cycle()
	if result.Panic != "" {
		j.Fatalf("under %q: %s", l.configuration, result.Panic)
	}
	for _, problem := range l.scheduler.Cache().Audit() {
		l.fail(j, "the totals are wrong: %s", problem)
	}
	for _, stale := range l.scheduler.Reporter().Stale(l.scheduler.Cluster()) {
		l.fail(j, "what was written is remembered of %s, which is gone", stale)
	}
	l.checkGangs(j, result.Decisions.Binds)
	for _, b := range result.Decisions.Binds {
		l.checkPlace(j, b)
		l.checkCapability(j, b)
	}
}

// nodeOf is where a pod is, or where it is being bound to. The API server binds no pod that is being deleted.
func (l *randomCluster) nodeOf(p *corev1.Pod) string {
	for _, b := range l.underway {
		if b.UID == p.UID && p.DeletionTimestamp == nil {
			return b.Node
		}
	}
	return p.Spec.NodeName
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func groupOf(p *corev1.Pod) string {
	if p.Spec.SchedulerName != "volcano" {
		return ""
	}
	return p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
}

// checkGangs: of a job below its minimum nothing is newly bound (S5).
func (l *randomCluster) checkGangs(j judge, binds []decision.Bind) {
	if l.configuration == "no gang" {
		return
	}
	for _, b := range binds {
		g := l.groups[b.Job.Name]
		have, roles := 0, map[string]int{}
		for _, p := range l.pods {
			placed := l.nodeOf(p) != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed
			if groupOf(p) == g.Name && (placed || p.Status.Phase == corev1.PodSucceeded) {
				have++
				roles[p.Annotations["volcano.sh/task-spec"]]++
			}
		}
		sum := 0
		for _, minimum := range g.Spec.MinTaskMember {
			sum += int(minimum)
		}
		short := have < int(g.Spec.MinMember)
		for role, minimum := range g.Spec.MinTaskMember {
			short = short || sum <= int(g.Spec.MinMember) && roles[role] < int(minimum)
		}
		if short {
			l.fail(j, "pod %s is bound, although its job has only %d pods placed (%v); it needs %d (%v)", b.Pod.Name,
				have, roles, g.Spec.MinMember, g.Spec.MinTaskMember)
		}
	}
}

// checkPlace: the node can hold the pod, and what it asks for is not over-committed there (S5).
func (l *randomCluster) checkPlace(j judge, b decision.Bind) {
	p, n := l.pods[b.Pod.Name], l.nodes[b.Node]
	var wrong string
	switch {
	case p == nil || p.UID != b.UID:
		wrong = "the pod does not exist"
	case n == nil:
		wrong = "the node does not exist"
	case p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 || p.DeletionTimestamp != nil || finished(p):
		wrong = "the pod does not wait for a node"
	case len(n.Status.Conditions) > 0 && n.Status.Conditions[0].Status != corev1.ConditionTrue:
		wrong = "the node is not ready"
	case (n.Spec.Unschedulable || len(n.Spec.Taints) > 0) && len(p.Spec.Tolerations) == 0:
		wrong = "the node is closed to it"
	case p.Spec.NodeSelector != nil && p.Spec.NodeSelector["zone"] != n.Labels["zone"]:
		wrong = "the node is not in its zone"
	default:
		wrong = l.crowded(p, n)
	}
	if wrong != "" {
		l.fail(j, "pod %s is bound to node %s: %s", b.Pod.Name, b.Node, wrong)
	}
}

// crowded says what is wrong between a pod and the others on its node.
func (l *randomCluster) crowded(p *corev1.Pod, n *corev1.Node) string {
	used := map[corev1.ResourceName]int64{}
	for _, other := range l.pods {
		if l.nodeOf(other) != n.Name || finished(other) {
			continue
		}
		for name, quantity := range requests(other) {
			used[name] += quantity
		}
		if other.UID == p.UID {
			continue
		}
		if len(p.Spec.Containers[0].Ports) > 0 && len(other.Spec.Containers[0].Ports) > 0 {
			return "its port is taken by " + other.Name
		}
		if keepsAway(p, other) || keepsAway(other, p) {
			return "it is not to be with " + other.Name
		}
	}
	for name := range requests(p) {
		if have := n.Status.Allocatable[name]; used[name] > have.MilliValue() {
			return fmt.Sprintf("of %s thousandths %d are used there of %d", name, used[name], have.MilliValue())
		}
	}
	return ""
}

func keepsAway(p, other *corev1.Pod) bool {
	if p.Spec.Affinity == nil {
		return false
	}
	selector := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector
	return selector.MatchLabels["app"] == other.Labels["app"]
}

// requests are in thousandths.
func requests(p *corev1.Pod) map[corev1.ResourceName]int64 {
	all := map[corev1.ResourceName]int64{corev1.ResourcePods: 1000}
	for name, quantity := range p.Spec.Containers[0].Resources.Requests {
		all[name] = quantity.MilliValue()
	}
	return all
}

// checkCapability: no queue comes to hold more than its capability of what the pod asks for, with the tree at any level
// (Q4).
func (l *randomCluster) checkCapability(j judge, b decision.Bind) {
	if l.configuration == "drf tree" {
		return // no plugin there enforces capabilities
	}
	q := l.queues[l.groups[b.Job.Name].Spec.Queue]
	if q == nil || q.Status.State != schedulingv1beta1.QueueStateOpen {
		l.fail(j, "pod %s is bound, and its queue is not open", b.Pod.Name)
	}
	for q != nil {
		used := l.usedBy(q.Name)
		for name := range requests(l.pods[b.Pod.Name]) {
			if limit, ok := q.Spec.Capability[name]; ok && used[name] > limit.MilliValue() {
				l.fail(j, "pod %s is bound, and queue %s holds %d thousandths of %s, which is beyond %s", b.Pod.Name,
					q.Name, used[name], name, limit.String())
			}
		}
		if l.configuration != "capacity tree" {
			return
		}
		q = l.queues[q.Spec.Parent]
	}
}

// usedBy is what a queue holds, with the tree those below it too.
func (l *randomCluster) usedBy(name string) map[corev1.ResourceName]int64 {
	used := map[corev1.ResourceName]int64{}
	for _, p := range l.pods {
		g := l.groups[groupOf(p)]
		if g == nil || l.nodeOf(p) == "" || finished(p) || p.DeletionTimestamp != nil || !l.isBelow(g.Spec.Queue, name) {
			continue
		}
		for resource, quantity := range requests(p) {
			used[resource] += quantity
		}
	}
	return used
}

func (l *randomCluster) isBelow(name, above string) bool {
	for range len(l.queues) + 1 {
		if name == above {
			return true
		}
		q := l.queues[name]
		if q == nil || l.configuration != "capacity tree" {
			break
		}
		name = q.Spec.Parent
	}
	return false
}

// checkReplay checks that the same events give the same decisions, byte for byte, with any order of threads and maps,
// and any order of objects within a cycle (S3).
func (l *randomCluster) checkReplay(j judge) {
	replay := func(how string, change func([]cache.Event) []cache.Event) {
		s := newScheduler()
		for i, t := range l.turns {
			t.events = change(t.events)
			result := t.run(s, l.turns[:i])
			if decided := text(&result.Decisions); decided != t.decided {
				l.fail(j, "cycle %d, %s:\n%s\nfirst it was:\n%s", i, how, decided, t.decided)
			}
		}
	}
	same := func(events []cache.Event) []cache.Event { return events }
	replay("told again", same)
	threads := goruntime.GOMAXPROCS(1)
	defer goruntime.GOMAXPROCS(threads)
	replay("told again with one thread", same)
	replay("told in another order", backwards)
}

// backwards turns the order of objects around, and keeps that of the events of each. Where bindings were refused it
// also keeps that among pods: whether the next attempt succeeded before or after a refusal makes a difference to the
// back-off.
func backwards(events []cache.Event) []cache.Event {
	refused := slices.ContainsFunc(events, func(e cache.Event) bool { _, ok := e.(cache.BindFailed); return ok })
	of := map[string][]cache.Event{}
	for _, e := range events {
		who := subject(e)
		if refused && strings.HasPrefix(who, "pod ") {
			who = "pod"
		}
		of[who] = append(of[who], e)
	}
	order := slices.Sorted(maps.Keys(of))
	slices.Reverse(order)
	var all []cache.Event
	for _, who := range order {
		all = append(all, of[who]...)
	}
	return all
}

// subject names what an event is about.
func subject(e cache.Event) string {
	var about runtime.Object
	switch e := e.(type) {
	case cache.Set:
		about = e.Object
	case cache.Delete:
		about = e.Object
	case cache.BindFailed:
		return "pod " + e.Pod.Name
	}
	if pod, ok := about.(*corev1.Pod); ok {
		return "pod " + pod.Name
	}
	return fmt.Sprintf("%T %s", about, about.(metav1.Object).GetName())
}

// longestUnrest is how many cycles it may take until nothing is decided any more: several for each job there can be.
const longestUnrest = 60

// furtherCycles are those after the rest that must decide nothing, a second each.
const furtherCycles = 20

// settle lets all bindings succeed and all back-offs end, until nothing is decided any more.
func (l *randomCluster) settle(j judge) {
	quiet := 0
	for range longestUnrest {
		before := len(l.turns)
		l.now = l.now.Add(time.Minute)
		l.check(j)
		for _, b := range l.underway {
			l.bind(b)
		}
		l.underway = nil
		// What time alone decides while the rest is looked at is no unrest.
		isLong := l.wake.IsZero() || l.wake.After(l.now.Add((furtherCycles+1)*time.Second))
		if quiet++; len(l.events) > 0 || before == 0 || !isLong || l.turns[before].decided != text(&decision.Decisions{}) {
			quiet = 0
		}
		if quiet == 2 { // what a job is kept at admission may end in one cycle, and be given to others in the next
			return
		}
	}
	l.fail(j, "there is no rest; the last decision was %s", l.turns[len(l.turns)-1].decided)
}

// checkRest: at rest 20 further cycles decide nothing (S2), every job that waits says why (S4), and a scheduler that is
// started now has nothing to add.
func (l *randomCluster) checkRest(j judge) {
	l.settle(j)
	for range furtherCycles {
		if result := l.cycle(); !result.Decisions.IsEmpty() {
			l.fail(j, "at rest it decides %s", text(&result.Decisions))
		}
	}
	for _, job := range l.scheduler.Cluster().Jobs() {
		if (job.IsPendingAdmission() || job.Count(cluster.Pending) > 0) && job.Verdict == nil {
			l.fail(j, "job %s waits, %s, with %d pods pending, and no reason is given", job.ID.Name, job.Phase,
				job.Count(cluster.Pending))
		}
	}
	l.checkRestart(j)
}

func (l *randomCluster) checkRestart(j judge) {
	var events []cache.Event
	tell(&events, l.nodes)
	tell(&events, l.queues)
	tell(&events, l.ranks)
	tell(&events, l.groups)
	tell(&events, l.pods)
	s := newScheduler()
	use(s, l.configuration)
	result := s.Cycle(l.now, events)
	if l.isMixed(result.Decisions.Binds) {
		return
	}
	if len(result.Decisions.Binds)+len(result.Decisions.Queues) > 0 || result.Panic != "" {
		l.fail(j, "a scheduler started now finds more to do: %s%s", text(&result.Decisions), result.Panic)
	}
	// It may word a refusal again, with another of several reasons or with newer numbers, but nothing is in another
	// phase.
	for _, d := range result.Decisions.Groups {
		// A job whose pods are all gone is kept nothing for (rule J4), and may stay admitted. Nothing says so to a
		// scheduler that starts, which lets it wait for admission again when its pods have not come for long enough.
		isEmptied := !l.scheduler.Cluster().Job(d.Job).ExpectsPods() && s.Cluster().Job(d.Job).BarredUntil.After(l.now)
		if was := l.groups[d.Job.Name].Status; d.Status.Phase != was.Phase && !isEmptied {
			l.fail(j, "a scheduler started now takes job %s for %+v, it was %+v", d.Job.Name, d.Status, was)
		}
	}
}

// isMixed reports whether pods of several shapes were placed for one job. What order finds them all a place is not
// searched for exhaustively, so that less room elsewhere may lead to a better order.
func (l *randomCluster) isMixed(binds []decision.Bind) bool {
	shapes := map[string]string{}
	for _, b := range binds {
		p := l.pods[b.Pod.Name]
		shape := fmt.Sprint(requests(p), p.Spec.Affinity != nil, p.Spec.NodeSelector, p.Spec.Tolerations, p.Spec.Containers[0].Ports,
			len(p.Spec.TopologySpreadConstraints))
		if other, ok := shapes[b.Job.Name]; ok && other != shape {
			return true
		}
		shapes[b.Job.Name] = shape
	}
	return false
}

// checkIdle: when all others are gone, a job that fits is bound.
func (l *randomCluster) checkIdle(j judge) {
	for _, name := range names(l.pods) {
		drop(l, l.pods, name)
	}
	for _, name := range names(l.groups) {
		drop(l, l.groups, name)
	}
	l.settle(j)
	room, total := 0, int64(0)
	for _, n := range l.nodes {
		if len(n.Status.Conditions) > 0 && n.Status.Conditions[0].Status != corev1.ConditionTrue {
			continue
		}
		if !n.Spec.Unschedulable && len(n.Spec.Taints) == 0 {
			total += n.Status.Allocatable.Cpu().Value() // rule Q6: what is shared is what can be used
			room += int(min(n.Status.Allocatable.Cpu().Value(), n.Status.Allocatable.Pods().Value()))
		}
	}
	for _, q := range l.queues {
		total -= q.Spec.Guarantee.Resource.Cpu().Value()
	}
	size := min(room, int(total), 4)
	if size <= 0 {
		return
	}
	set(l, l.queues, "fresh", fixture.Queue("fresh"))
	set(l, l.groups, "late", fixture.Group("late", "fresh", int32(size), fixture.PendingAdmission))
	for i := range size {
		name := fmt.Sprintf("late-%d", i)
		set(l, l.pods, name, fixture.Pod(name, fixture.In("late"), fixture.As("worker", i)))
	}
	before := len(l.turns)
	l.check(j)
	if len(l.underway) != size {
		l.fail(j, "a job of %d pods that fits in an idle cluster is not bound: %s", size,
			cmp.Or(strings.TrimSpace(l.turns[before].decided), "nothing is decided"))
	}
}

func tell[T runtime.Object](events *[]cache.Event, all map[string]T) {
	for _, name := range names(all) {
		*events = append(*events, cache.Set{Object: all[name]})
	}
}
