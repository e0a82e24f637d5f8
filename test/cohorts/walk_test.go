package cohorts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/harness"
)

// A walk has things happen to a cluster in no order: Workloads come, end, and are deleted, others edit quotas, Cohorts,
// flavors and nodes, controllers of checks answer, and schedulers crash between their writes. After each step the
// totals of the model are right, rule C1 holds, and admissions name the nodes that are held. Each reservation is judged
// on the objects alone, by rule C2 and by what nodes hold. At the end nothing happens any more: the cluster must come
// to rest, and a scheduler that reads it again must have nothing to say.
type walk struct {
	*world.World
	t      *testing.T
	random *rand.Rand
	limits *rand.Rand // of what happens to the Queue that trees hang below; nil if there is none
	log    []string

	queues, workloads, nodes int
	made                     int // how many Workloads there were
	step                     int // of the walk
	crashes                  int
	reserved, moved          int

	crowds   *rand.Rand         // of when many Workloads come at once; nil if they do not
	recorded map[types.UID]bool // who had a plan on record when the step began
	// wasBehind is set if the scheduler had not seen all there was when it decided.
	wasBehind bool
	victims   map[types.UID]map[types.UID]struct{} // for whom a Workload was evicted, as long as that counts (rule C20)
}

func begin(t *testing.T, seed uint64) *walk {
	r := rand.New(rand.NewPCG(seed, 7))
	c := random(t, r, true)
	w := &walk{World: world.New(t, world.Configuration(argumentsOf(c))), t: t, random: r, queues: len(c.ClusterQueues), workloads: 3 + r.IntN(8),
		nodes: len(c.Nodes)}
	w.Policy = queueing.Policy{IsOn: true}
	w.Grace = r.IntN(3)
	w.World.Judge = w.judge
	pending := c.Pending
	c.Pending = nil
	apply(t, w.World, c)
	c.Pending = pending
	w.Apply("{kind: AdmissionCheck, metadata: {name: check}, spec: {controllerName: example.com/c}, status: {conditions: [{type: Active, status: 'True', reason: Active, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}}")
	w.say("seed %d: %s", seed, c.Note)
	w.hang(seed)
	return w
}

// enliven lets more happen: now and then small Workloads come to several queues at once, quotas are cut while a plan
// waits, and the scheduler sees late what it has written. In some walks there are nodes enough, so that quota alone
// decides. It changes what happens after a seed, so walks that are taken again are without it.
func (w *walk) enliven(seed uint64) *walk {
	w.crowds = rand.New(rand.NewPCG(seed, 9))
	late := rand.New(rand.NewPCG(seed, 10))
	if often := late.IntN(3); often > 0 {
		w.IsLate = func() bool { return late.IntN(8) < often }
	}
	if w.crowds.IntN(2) == 0 {
		w.AddNode("large", "cpu=40", "flavor-f0", "yes", "flavor-f1", "yes")
	}
	return w
}

// crowd makes small Workloads of several queues at once, now and then.
func (w *walk) crowd() {
	if len(w.Workloads()) > w.workloads+6 {
		return
	}
	for i := range w.queues {
		if w.crowds.IntN(4) == 0 {
			continue
		}
		w.made++
		of := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}}}
		w.set("Workload", fmt.Sprintf("w%d", w.made), map[string]any{"queueName": fmt.Sprintf("q%d", i), "priority": w.crowds.IntN(4) - 1,
			"podSets": []any{map[string]any{"name": "main", "count": 1 + w.crowds.IntN(3), "template": map[string]any{"spec": of}}}})
	}
}

// cut lowers quotas of a ClusterQueue for whose Workload others are to leave.
func (w *walk) cut() {
	for _, o := range w.Workloads() {
		p, is := planOf(o)
		q, _ := w.Object("v1beta2.ClusterQueue/" + string(p.Admission.ClusterQueue)).(*v1beta2.ClusterQueue)
		if !is || q == nil || w.crowds.IntN(2) == 0 {
			continue
		}
		q = q.DeepCopy()
		q.Generation++
		for _, g := range q.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				for k := range f.Resources {
					of := &f.Resources[k]
					of.NominalQuota = *resource.NewQuantity(of.NominalQuota.Value()/2, resource.DecimalSI)
					of.LendingLimit = nil
				}
			}
		}
		w.say("the quotas of %s are halved", q.Name)
		w.Replace(q)
		clear(w.victims)
	}
}

func (w *walk) say(format string, arguments ...any) {
	w.log = append(w.log, fmt.Sprintf("%d: ", w.step)+fmt.Sprintf(format, arguments...))
}

func (w *walk) set(kind, name string, spec map[string]any) {
	text := w.below(kind, objectOf(w.t, kind, name, spec))
	w.say("%s", text)
	w.Apply(text)
}

// any is one of the Workloads, nil if there is none.
func (w *walk) any() *v1beta2.Workload {
	all := slices.DeleteFunc(w.Workloads(), func(o *v1beta2.Workload) bool { return o.DeletionTimestamp != nil })
	if len(all) == 0 {
		return nil
	}
	return all[w.random.IntN(len(all))]
}

func (w *walk) queue() string {
	if w.random.IntN(40) == 0 {
		return "nowhere"
	}
	return fmt.Sprintf("q%d", w.random.IntN(w.queues))
}

// happen changes something by chance.
func (w *walk) happen() {
	if w.limits != nil && w.limits.IntN(25) == 0 {
		w.editQueue()
		clear(w.victims)
	}
	switch {
	case w.crowds == nil:
	case w.crowds.IntN(10) == 0:
		w.crowd()
	case w.crowds.IntN(10) == 0:
		w.cut()
	}
	r := w.random
	switch what := r.IntN(100); {
	case what < 34:
		if w.add(); r.IntN(3) == 0 {
			w.add()
		}
	case what < 78:
		if o := w.any(); o != nil {
			w.happenTo(o)
		}
	case what < 88:
		w.edit()
		clear(w.victims) // with other settings, nothing counts of before
	case what < 91:
		w.say("crash")
		w.crashes++
		w.Restart(r)
		clear(w.victims) // it knows the last of them only
	case what < 95:
		w.CrashAfter(r.IntN(6))
		w.crashes++
		w.say("crash to come")
	default:
		pause := time.Duration(r.IntN(120)) * time.Second
		w.say("pause %s", pause)
		w.Now = w.Now.Add(pause)
		if pause < time.Minute {
			w.say("off and on")
			w.Switch(false)
			w.Cycle()
			w.Switch(true)
			clear(w.victims)
		}
	}
}

// add makes a Workload, unless there are many.
func (w *walk) add() {
	if len(w.Workloads()) >= w.workloads {
		return
	}
	w.made++
	spec := randomWorkload(w.random, w.made, w.queues)
	w.set("Workload", spec["name"].(string), w.workloadSpec(spec))
}

func (w *walk) workloadSpec(spec map[string]any) map[string]any {
	var sets []any
	for _, s := range spec["podSets"].([]map[string]any) {
		of := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"requests": s["requests"]}}}}
		if w.random.IntN(8) == 0 {
			of["terminationGracePeriodSeconds"] = w.random.IntN(300)
		}
		set := map[string]any{"name": s["name"], "count": s["count"], "template": map[string]any{"spec": of}}
		if least, is := s["minCount"]; is {
			set["minCount"] = least
		}
		sets = append(sets, set)
	}
	return map[string]any{"queueName": w.queue(), "priority": spec["priority"], "podSets": sets}
}

// happenTo changes something of a Workload by chance.
func (w *walk) happenTo(o *v1beta2.Workload) {
	r, holds := w.random, conditions.Is(o, v1beta2.QuotaReserved)
	w.forget(o.UID) // its priority may change, or it ends
	runs := conditions.Is(o, v1beta2.Admitted) && !conditions.Is(o, v1beta2.Evicted)
	switch what := r.IntN(20); {
	case conditions.Is(o, v1beta2.Finished) || what < 2:
		w.say("delete %s", o.Name)
		w.Mark(o.Name)
	case what < 5 && runs:
		w.say("%s finishes", o.Name)
		w.Edit(o.Name, finishAt(w.Now))
	case what < 8 && runs:
		w.succeed(o)
	case what < 11 && holds:
		w.check(o)
	case what < 12 && holds && !conditions.Is(o, v1beta2.Evicted):
		at := metav1.NewTime(w.Now.Add(time.Duration(r.IntN(60)) * time.Second))
		w.say("%s is not ready, back at %s", o.Name, at)
		w.Edit(o.Name, func(o *v1beta2.Workload) {
			o.Status.RequeueState = &v1beta2.RequeueState{RequeueAt: &at}
			conditions.Evict(o, v1beta2.ReasonPodsReadyTimeout, "", "late", w.Now)
		})
	case what < 14 && (o.Spec.Active != nil && !*o.Spec.Active || r.IntN(4) == 0):
		active := o.Spec.Active != nil && !*o.Spec.Active
		w.say("%s is active: %t", o.Name, active)
		next := o.DeepCopy()
		next.Spec.Active = &active
		next.Generation++
		w.Replace(next)
	case what < 16 && !holds:
		w.set("Workload", o.Name, w.workloadSpec(randomWorkload(r, 0, w.queues)))
	case what < 17:
		priority := int32(r.IntN(4) - 1)
		w.say("%s has priority %d", o.Name, priority)
		next := o.DeepCopy()
		next.Spec.Priority = &priority
		next.Generation++
		w.Replace(next)
	case what < 18:
		if names := w.Pods(o.Name); len(names) > 0 && len(w.Succeeded(o.Name)) == 0 {
			name := names[r.IntN(len(names))]
			w.say("pod %s is gone", name)
			w.RemovePod(name)
		}
	}
}

func finishAt(now time.Time) func(o *v1beta2.Workload) {
	return func(o *v1beta2.Workload) { conditions.Finish(o, v1beta2.ReasonSucceeded, "", now) }
}

// succeed ends some pods of a Workload, which need not come again.
func (w *walk) succeed(o *v1beta2.Workload) {
	for _, name := range w.Pods(o.Name) {
		if w.random.IntN(2) == 0 {
			w.say("pod %s ends", name)
			w.Succeed(name)
		}
	}
	ended := w.Succeeded(o.Name)
	if len(ended) == 0 {
		return
	}
	w.Edit(o.Name, func(o *v1beta2.Workload) {
		o.Status.ReclaimablePods = nil
		for i := range o.Spec.PodSets {
			if count := ended[o.Spec.PodSets[i].Name]; count > 0 {
				o.Status.ReclaimablePods = append(o.Status.ReclaimablePods, v1beta2.ReclaimablePod{Name: o.Spec.PodSets[i].Name, Count: count})
			}
		}
	})
}

// check answers as the controller of the check does.
func (w *walk) check(o *v1beta2.Workload) {
	state := pick(w.random, v1beta2.CheckReady, v1beta2.CheckReady, v1beta2.CheckReady, v1beta2.CheckRetry, v1beta2.CheckRejected, v1beta2.CheckPending)
	if len(o.Status.AdmissionChecks) == 0 {
		return
	}
	w.say("the check of %s is %s", o.Name, state)
	w.Edit(o.Name, func(o *v1beta2.Workload) {
		o.Status.AdmissionChecks[0].State, o.Status.AdmissionChecks[0].PodSetUpdates = state, nil
		if state == v1beta2.CheckReady && !conditions.Is(o, v1beta2.Admitted) && w.random.IntN(2) == 0 {
			for i := range o.Spec.PodSets {
				o.Status.AdmissionChecks[0].PodSetUpdates = append(o.Status.AdmissionChecks[0].PodSetUpdates, w.update(o.Spec.PodSets[i].Name))
			}
		}
		if state == v1beta2.CheckRetry && w.random.IntN(2) == 0 {
			after := int32(w.random.IntN(30))
			o.Status.AdmissionChecks[0].RequeueAfterSeconds = &after
		}
	})
}

// update is what a check adds to the pods of a pod set. Seldom no node does for them then.
func (w *walk) update(podSet string) v1beta2.PodSetUpdate {
	u := v1beta2.PodSetUpdate{Name: podSet, Labels: map[string]string{"checked": "yes"}}
	switch w.random.IntN(8) {
	case 0, 1, 2:
		u.NodeSelector = map[string]string{"flavor-f0": "yes"}
	case 3, 4, 5:
		u.NodeSelector = map[string]string{"flavor-f1": "yes"}
	case 6:
		u.NodeSelector = map[string]string{"nowhere": "yes"}
	}
	w.say("  with %v", u.NodeSelector)
	return u
}

// edit changes queues, Cohorts, flavors or nodes.
func (w *walk) edit() {
	r := w.random
	switch what := r.IntN(16); {
	case what < 5:
		spec := randomQueue(r, r.IntN(w.queues), pick(r, "c0", "c1", "c2", "c3", ""), 2)
		name := spec["name"].(string)
		delete(spec, "name")
		spec["namespaceSelector"] = map[string]any{}
		spec["queueingStrategy"] = pick(r, "BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")
		spec["stopPolicy"] = pick(r, "None", "None", "None", "None", "None", "None", "None", "None", "Hold", "HoldAndDrain")
		if r.IntN(6) == 0 {
			spec["admissionChecksStrategy"] = map[string]any{"admissionChecks": []any{map[string]any{"name": "check"}}}
		}
		if spec["cohortName"] == "" {
			withoutLimits(spec)
		}
		w.set("ClusterQueue", name, spec)
	case what < 7:
		parent := pick(r, "", "", "", "", "c0", "c1", "c2")
		w.set("Cohort", fmt.Sprintf("c%d", r.IntN(3)), map[string]any{"parentName": parent, "resourceGroups": randomGroups(r, 2, parent != ""),
			"fairSharing": map[string]any{"weight": pick(r, "1", "1", "2", "0.5", "0")}})
	case what < 8:
		if w.restore(); r.IntN(3) > 0 {
			return
		}
		name := pick(r, "v1beta2.Cohort/c0", "v1beta2.Cohort/c1", "v1beta2.Cohort/c2", "v1beta2.LocalQueue/q0", "v1beta2.LocalQueue/q1",
			"v1beta2.ClusterQueue/q0", "v1beta2.ResourceFlavor/f1")
		if o := w.Object(name); o != nil {
			w.say("delete %s", name)
			w.Delete(o)
		}
	case what < 10:
		name := fmt.Sprintf("q%d", r.IntN(w.queues))
		w.set("LocalQueue", name, map[string]any{"clusterQueue": name, "stopPolicy": pick(r, "None", "None", "None", "None", "None", "Hold", "HoldAndDrain")})
	case what < 11:
		name := fmt.Sprintf("f%d", r.IntN(2))
		w.set("ResourceFlavor", name, map[string]any{"nodeLabels": map[string]any{"flavor-" + name: "yes"}})
	default:
		w.editNode(fmt.Sprintf("n%d", r.IntN(w.nodes+1)))
	}
}

// restore brings back what was deleted of flavors, and LocalQueues.
func (w *walk) restore() {
	for i := range 2 {
		if name := fmt.Sprintf("f%d", i); w.Object("v1beta2.ResourceFlavor/"+name) == nil {
			w.set("ResourceFlavor", name, map[string]any{"nodeLabels": map[string]any{"flavor-" + name: "yes"}})
		}
	}
	for i := range w.queues {
		if name := fmt.Sprintf("q%d", i); w.Object("v1beta2.LocalQueue/"+name) == nil {
			w.set("LocalQueue", name, map[string]any{"clusterQueue": name})
		}
	}
}

// withoutLimits takes borrowing and lending limits away, which only a queue in a Cohort may have.
func withoutLimits(spec map[string]any) {
	for _, g := range spec["resourceGroups"].([]any) {
		for _, f := range g.(map[string]any)["flavors"].([]map[string]any) {
			for _, q := range f["resources"].([]any) {
				delete(q.(map[string]any), "borrowingLimit")
				delete(q.(map[string]any), "lendingLimit")
			}
		}
	}
	spec["preemption"] = map[string]any{"withinClusterQueue": spec["preemption"].(map[string]any)["withinClusterQueue"]}
}

func (w *walk) editNode(name string) {
	r := w.random
	o, _ := w.Object("v1.Node/" + name).(*corev1.Node)
	switch {
	case o == nil:
		cpu := 1 + r.IntN(6)
		w.say("node %s with %d", name, cpu)
		labels := []string{}
		for _, f := range pick(r, []string{"f0"}, []string{"f1"}, []string{"f0", "f1"}) {
			labels = append(labels, "flavor-"+f, "yes")
		}
		w.AddNode(name, fmt.Sprintf("cpu=%d", cpu), labels...)
	case r.IntN(4) == 0 && !o.Spec.Unschedulable:
		w.say("node %s is deleted", name)
		w.RemoveNode(name)
	default:
		o = o.DeepCopy()
		o.Spec.Unschedulable = !o.Spec.Unschedulable
		w.say("node %s is cordoned: %t", name, o.Spec.Unschedulable)
		w.Replace(o)
	}
}

// next runs a step of the scheduler, and of what follows.
func (w *walk) next() (changed bool) {
	w.recorded = map[types.UID]bool{}
	for _, o := range w.Workloads() {
		w.recorded[o.UID] = o.Annotations[v1beta2.PlanAnnotation] != ""
	}
	w.wasBehind = w.IsBehind()
	changed = w.Step()
	if w.HasRestarted() {
		clear(w.victims)
	}
	for _, said := range w.Said {
		w.say("  %s", said)
	}
	for _, n := range w.BySlot() {
		if n != nil && n.Object != nil && !n.Used.LessEqual(n.Allocatable) { // pods stay on a node that is gone until they are
			w.fail("node %s holds %v of %v", n.Name, n.Used, n.Allocatable)
		}
	}
	leave := w.leaving()
	for _, o := range w.Workloads() {
		if wrong := unread(w.World, o); wrong != "" && !leave[o.Name] && !w.IsBehind() {
			w.fail("%s", wrong)
		}
	}
	if w.t.Failed() {
		w.fail("see above")
	}
	return changed
}

func (w *walk) fail(format string, arguments ...any) {
	w.t.Helper()
	log := w.log
	if len(log) > 400 {
		log = append(log[:1:1], log[len(log)-399:]...)
	}
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, arguments...), strings.Join(log, "\n"))
}

// judge looks at what is about to be written about a Workload.
func (w *walk) judge(s *decision.WorkloadStatus, o *v1beta2.Workload) {
	if s.Evict != nil && s.Evict.Preempted != "" {
		w.judgePreemption(s, o)
	}
	if s.Move != nil {
		w.moved++
		w.judgeNodes(s, o, s.Move)
	}
	if s.Reserve == nil {
		return
	}
	w.reserved++
	w.judgeNodes(s, o, s.Reserve)
	after := o.DeepCopy()
	if s.Apply(after) && !isHeldAlready(o, after) {
		if wrong := w.overdrawn(after, nil); wrong != "" {
			w.fail("%s is admitted: %s", o.Name, wrong)
		}
		if wrong := w.overCapability(after); wrong != "" {
			w.fail("%s is admitted: %s", o.Name, wrong)
		}
	}
}

// judgeNodes checks that an admission names nodes for all pods.
func (w *walk) judgeNodes(s *decision.WorkloadStatus, o *v1beta2.Workload, a *v1beta2.Admission) {
	for i := range a.PodSetAssignments {
		p := &a.PodSetAssignments[i]
		nodes, err := settings.Nodes(p.TopologyAssignment)
		if err != nil {
			w.fail("%s: %v", o.Name, err)
		}
		pods := int32(0)
		for _, n := range nodes {
			pods += n.Count
			if w.Object("v1.Node/"+n.Node) == nil && s.Evict == nil && !admittedTo(o, p.Name, n.Node) {
				w.fail("%s is to be on node %s, which is gone", o.Name, n.Node)
			}
		}
		if pods != *p.Count && s.Evict == nil {
			w.fail("%s gets nodes for %d of %d pods of %s", o.Name, pods, *p.Count, p.Name)
		}
	}
}

// admittedTo reports whether the admission of a Workload names a node for a pod set already. It may stay there, when no
// pod is to come to it any more.
func admittedTo(o *v1beta2.Workload, podSet, node string) bool {
	if o.Status.Admission == nil {
		return false
	}
	for i := range o.Status.Admission.PodSetAssignments {
		p := &o.Status.Admission.PodSetAssignments[i]
		nodes, _ := settings.Nodes(p.TopologyAssignment)
		if p.Name == podSet && slices.ContainsFunc(nodes, func(n settings.NodeCount) bool { return n.Node == node }) {
			return true
		}
	}
	return false
}

// judgePreemption checks that the plan is recorded for which a Workload is to leave (rule C18), since before this step:
// the two are written at the same time otherwise. The plan must still fit when all have left who leave for others. And
// none is evicted for one that was evicted to make room for it, directly or in turn (rule C20).
func (w *walk) judgePreemption(s *decision.WorkloadStatus, victim *v1beta2.Workload) {
	uid := types.UID(conditions.PreemptionOf(s.Evict.Message).UID)
	for _, o := range w.Workloads() {
		if o.UID != uid || conditions.Is(o, v1beta2.QuotaReserved) || w.wasBehind {
			continue
		}
		if o.Annotations[v1beta2.PlanAnnotation] == "" || !w.recorded[uid] {
			w.fail("%s is evicted for %s, which has no plan", s.Workload.Name, o.Name)
		}
		if wrong := w.overdrawn(planned(o), w.leaving()); wrong != "" {
			w.fail("%s is evicted in vain for %s: %s", s.Workload.Name, o.Name, wrong)
		}
	}
	if !s.Apply(victim.DeepCopy()) {
		return
	}
	if w.mustSpare(uid)[victim.UID] {
		w.fail("%s is evicted for the Workload %s, which was evicted to make room for it", victim.Name, uid)
	}
	if w.victims == nil {
		w.victims = map[types.UID]map[types.UID]struct{}{}
	}
	if w.victims[victim.UID] == nil {
		w.victims[victim.UID] = map[types.UID]struct{}{}
	}
	w.victims[victim.UID][uid] = struct{}{}
}

// mustSpare are those for whom a Workload was evicted, directly or in turn.
func (w *walk) mustSpare(uid types.UID) map[types.UID]bool {
	spared, next := map[types.UID]bool{}, []types.UID{uid}
	for len(next) > 0 {
		of := next[0]
		next = next[1:]
		for preemptor := range w.victims[of] {
			if !spared[preemptor] {
				spared[preemptor] = true
				next = append(next, preemptor)
			}
		}
	}
	return spared
}

// forget ends what counts of evictions by and of a Workload.
func (w *walk) forget(uid types.UID) {
	delete(w.victims, uid)
	for _, preemptors := range w.victims {
		delete(preemptors, uid)
	}
}

// rest changes nothing more. The cluster must come to rest, and so must one whose scheduler starts again then. That
// may evict some: of several for whom a Workload was evicted, its conditions name the last (rule C20). If it does not,
// nothing else changes.
func (w *walk) rest() {
	// Nodes that are promised and then cordoned are given up only when pods come, or by a scheduler that begins.
	for _, name := range w.Names("v1.Node/") {
		if o := w.Object(name).(*corev1.Node).DeepCopy(); o.Spec.Unschedulable {
			o.Spec.Unschedulable = false
			w.Replace(o)
		}
	}
	w.IsLate = nil
	w.comeToRest()
	before, evictions := w.standing(), w.Evictions
	w.Restart(w.random)
	w.say("restart at rest")
	w.comeToRest()
	if after := w.standing(); after != before && w.Evictions == evictions {
		w.fail("it was at rest with\n%sand a scheduler that begins then makes it\n%s", before, after)
	}
}

func (w *walk) comeToRest() {
	n, so := len(w.Workloads())+1, w.Evictions
	w.CrashAfter(1 << 30)
	for quiet, steps := 0, 0; quiet < 4; steps++ {
		w.step++
		if quiet++; w.next() || w.awaits() {
			quiet = 0
		}
		if w.Evictions-so > n*n || steps > 40*n*n+400 {
			w.fail("%d evictions and %d steps without rest", w.Evictions-so, steps)
		}
		w.Now = w.Now.Add(10 * time.Second) // plans and backoffs end
	}
	for _, o := range w.Workloads() {
		if o.Annotations[v1beta2.PlanAnnotation] != "" {
			w.fail("at rest %s, which says %q, has the plan %s", o.Name, w.Says(o.Name), o.Annotations[v1beta2.PlanAnnotation])
		}
		w.mustStand(o)
	}
}

// awaits reports whether a Workload waits for a time.
func (w *walk) awaits() bool {
	isPaused := slices.ContainsFunc(w.Workloads(), func(o *v1beta2.Workload) bool {
		c := conditions.Of(o, v1beta2.Evicted) // its pods fitted nowhere with what its check had added: it is tried again within the hour
		return c != nil && strings.HasPrefix(c.Message, "With the updates") && w.Now.Before(c.LastTransitionTime.Add(time.Hour)) &&
			strings.HasPrefix(w.Says(o.Name), v1beta2.ReasonPendingEvaluation)
	})
	if isPaused {
		return true
	}
	return slices.ContainsFunc(w.Workloads(), func(o *v1beta2.Workload) bool {
		return o.Status.RequeueState != nil && o.Status.RequeueState.RequeueAt != nil && w.Now.Before(o.Status.RequeueState.RequeueAt.Time)
	})
}

// standing is where all Workloads stand. Why those wait that do is left out: a message names the flavors that were
// tried last.
func (w *walk) standing() (text string) {
	for _, o := range w.Workloads() {
		said := w.Says(o.Name)
		if strings.Contains(said, ": ") {
			said = "waits"
		}
		text += o.Name + " " + said + "\n"
	}
	return text
}

// mustStand checks that a Workload runs as a whole, or says why not.
func (w *walk) mustStand(o *v1beta2.Workload) {
	switch said := w.Says(o.Name); {
	case conditions.Is(o, v1beta2.Finished):
	case said == "admitted":
		want, have := 0, 0
		for i := range o.Status.Admission.PodSetAssignments {
			want += int(*o.Status.Admission.PodSetAssignments[i].Count)
		}
		for _, pods := range w.Running(o.Name) {
			have += pods
		}
		for _, count := range w.Succeeded(o.Name) {
			have += int(count)
		}
		if have < want && w.canStart(o) {
			w.fail("at rest %d of the %d pods of %s run or have ended", have, want, o.Name)
		}
	case said == "", strings.HasPrefix(said, "evicted"), strings.HasPrefix(said, v1beta2.ReasonPendingEvaluation) && !w.isStrict(o):
		w.fail("at rest %s says %q", o.Name, said)
	}
}

// isStrict reports whether a Workload may wait behind another that cannot be admitted. Nothing is said about it then.
func (w *walk) isStrict(o *v1beta2.Workload) bool {
	l, _ := w.Object("v1beta2.LocalQueue/" + o.Spec.QueueName).(*v1beta2.LocalQueue)
	if l == nil {
		return false
	}
	q, _ := w.Object("v1beta2.ClusterQueue/" + string(l.Spec.ClusterQueue)).(*v1beta2.ClusterQueue)
	return q != nil && q.Spec.QueueingStrategy == v1beta2.StrictFIFO
}

// canStart reports whether all flavors of a Workload exist.
func (w *walk) canStart(o *v1beta2.Workload) bool {
	for i := range o.Status.Admission.PodSetAssignments {
		for _, f := range o.Status.Admission.PodSetAssignments[i].Flavors {
			if w.Object("v1beta2.ResourceFlavor/"+f) == nil {
				return false
			}
		}
	}
	return true
}

// TestWalksThatBrokeARule takes walks again that a rule of an earlier version did not survive.
func TestWalksThatBrokeARule(t *testing.T) {
	for _, c := range []struct {
		what string
		seed uint64
	}{
		{"stand-ins come back after their Queue is gone", 133000098},
		{"others take the room before all flavors were tried", 136000707},
		{"quota moves after a plan ended in a pause", 20080},
		{"a pod that is to end is overdue", 500109},
		{"the node of a place that a pod left is gone", 500365},
		{"a tree moves below a Queue when a plan starts", 500602},
		{"a capability is lowered while no scheduler runs", 500672},
		{"one that is being deleted was to move to a node that goes", 7000720},
		{"one stays after all whose node has gone meanwhile", 15000253},
		{"a place that is not needed any more hides where others are", 9050234},
		{"one is admitted with less while its plan is recorded still", 9900040},
	} {
		t.Run(c.what, func(t *testing.T) { take(begin(t, c.seed), 150) })
	}
}

// take makes a walk take steps and come to rest.
func take(w *walk, steps int) {
	for w.step = 1; w.step <= steps; w.step++ {
		w.happen()
		if w.random.IntN(4) > 0 {
			w.next()
		}
	}
	w.rest()
}

// TestWhateverHappensNoRuleIsBroken takes as many steps as HEKLA_COHORT_STEPS says, if it is set, from the seed
// HEKLA_COHORT_SEED on.
func TestWhateverHappensNoRuleIsBroken(t *testing.T) {
	total, each := harness.Number(t, "HEKLA_COHORT_STEPS", 6000), 150
	steps, evictions, crashes, reserved, moved := 0, 0, 0, 0, 0
	defer func() {
		t.Logf("%d steps, %d admissions, %d evictions, %d crashes, %d moves", steps, reserved, evictions, crashes, moved)
	}()
	for seed := harness.Number(t, "HEKLA_COHORT_SEED", uint64(0)); steps < total; seed++ {
		w := begin(t, seed).enliven(seed)
		steps += each
		take(w, each)
		evictions, crashes, reserved, moved = evictions+w.Evictions, crashes+w.crashes, reserved+w.reserved, moved+w.moved
	}
	if reserved < total/20 || evictions < total/100 || crashes < total/100 || moved < total/1000 {
		t.Errorf("%d steps with %d admissions, %d evictions, %d crashes and %d moves test little", steps, reserved, evictions, crashes, moved)
	}
}
