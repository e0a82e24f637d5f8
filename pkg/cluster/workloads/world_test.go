package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// begin is when a test begins.
var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// kueue is a reader, the objects it reads, and rounds that decide.
type kueue struct {
	t       *testing.T
	reader  *workloads.Reader
	objects map[string]client.Object
	now     time.Time
	version int
	made    int
	events  []decision.Notice
}

func newKueue(t *testing.T, texts ...string) *kueue {
	w := &kueue{t: t, reader: workloads.New(resources.NewIndex()), objects: map[string]client.Object{}, now: begin}
	w.apply("{kind: Namespace, metadata: {name: team, labels: {team: a}}}")
	for _, text := range texts {
		w.apply(text)
	}
	return w
}

func nameOf(o client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()), "*")
}

// apply adds or changes objects, as a user does: it keeps their status.
func (w *kueue) apply(text string) {
	w.t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			w.t.Fatal(err)
		}
		o := map[string]client.Object{"ClusterQueue": &v1beta2.ClusterQueue{}, "Cohort": &v1beta2.Cohort{}, "LocalQueue": &v1beta2.LocalQueue{},
			"ResourceFlavor": &v1beta2.ResourceFlavor{}, "AdmissionCheck": &v1beta2.AdmissionCheck{}, "Workload": &v1beta2.Workload{},
			"Namespace": &corev1.Namespace{}, "LimitRange": &corev1.LimitRange{}, "RuntimeClass": &nodev1.RuntimeClass{}}[kind.Kind]
		if err := yaml.Unmarshal([]byte(document), o); err != nil {
			w.t.Fatalf("%v in\n%s", err, document)
		}
		if o.GetNamespace() == "" && slices.Contains([]string{"LocalQueue", "Workload", "LimitRange"}, kind.Kind) {
			o.SetNamespace("team")
		}
		w.made++
		o.SetUID(types.UID(fmt.Sprintf("uid-%s-%d", o.GetName(), w.made)))
		o.SetCreationTimestamp(metav1.NewTime(w.now))
		o.SetGeneration(1)
		if before := w.objects[nameOf(o)]; before != nil {
			o.SetUID(before.GetUID())
			o.SetCreationTimestamp(before.GetCreationTimestamp())
			o.SetGeneration(before.GetGeneration() + 1)
			if v, is := o.(*v1beta2.Workload); is {
				v.Status = before.(*v1beta2.Workload).Status
			}
		}
		w.set(o)
	}
}

func (w *kueue) set(o client.Object) {
	w.version++
	o.SetResourceVersion(fmt.Sprint(w.version))
	w.objects[nameOf(o)] = o
	w.reader.Set(o)
}

func (w *kueue) delete(o client.Object) {
	delete(w.objects, nameOf(o))
	w.reader.Delete(o)
}

func (w *kueue) workload(name string) *v1beta2.Workload {
	w.t.Helper()
	o, is := w.objects["v1beta2.Workload team/"+name].(*v1beta2.Workload)
	if !is {
		w.t.Fatalf("there is no Workload %s", name)
	}
	return o
}

// edit changes the status of a Workload, as a controller does.
func (w *kueue) edit(name string, change func(o *v1beta2.Workload)) {
	w.t.Helper()
	o := w.workload(name).DeepCopy()
	change(o)
	w.set(o)
}

// decide runs a cycle, and returns what is to be written.
func (w *kueue) decide() (decisions decision.Decisions) {
	w.now = w.now.Add(time.Second)
	w.reader.Settle(w.now)
	queues := w.reader.Queues()
	rules := &victims.Rules{Queues: queues}
	cycle := &cohorts.Cycle{Queues: queues, Rules: rules, Nodes: trees.Room{}, ByPriority: true, Now: w.now}
	cycle.Assigner = &flavors.Assigner{Index: queues.Index, Oracle: rules, Nodes: trees.Room{}}
	cycle.Decided = func(n *workload.Nomination) {
		nodes := make([][]settings.NodeCount, len(n.PodSets))
		for i, p := range n.Assignment.PodSets {
			if n.Outcome == workload.Admitted || n.Outcome == workload.Preempting || n.Outcome == workload.Deferred {
				nodes[i] = []settings.NodeCount{{Node: "node", Count: p.Count}}
			}
		}
		w.reader.NoteOutcome(n, nodes, w.now)
	}
	cycle.Run()
	w.reader.TakeDecisions(w.now, &decisions)
	return decisions
}

// write carries decisions out.
func (w *kueue) write(d decision.Decisions) {
	w.t.Helper()
	for _, p := range d.WorkloadPlans {
		o := w.workload(p.Workload.Name).DeepCopy()
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		if o.Annotations[v1beta2.PlanAnnotation] = p.Record; p.Record == "" {
			delete(o.Annotations, v1beta2.PlanAnnotation)
		}
		w.set(o)
	}
	for i := range d.Workloads {
		s := &d.Workloads[i]
		o := w.workload(s.Workload.Name).DeepCopy()
		if !s.Apply(o) {
			w.reader.Failed(s.Workload, s.UID, s.Number, w.now)
			continue
		}
		w.set(o)
		w.reader.Written(s.Workload, s.UID, s.Number, o.ResourceVersion)
		w.events = append(w.events, s.Events...)
	}
}

// run runs cycles until one decides nothing, and returns how many Workloads were written.
func (w *kueue) run() (writes int) {
	w.t.Helper()
	for range 50 {
		d := w.decide()
		if d.IsEmpty() {
			if have, want := dump(w.reader, w.keys()), dump(w.again(), w.keys()); have != want {
				w.t.Errorf("it has\n%s\nand one that reads everything again\n%s", have, want)
			}
			return writes
		}
		writes += len(d.Workloads) + len(d.WorkloadPlans)
		w.write(d)
	}
	w.t.Fatal("it does not come to rest")
	return writes
}

// says is the condition QuotaReserved of a Workload, and where it is admitted.
func (w *kueue) says(name string) string {
	w.t.Helper()
	o := w.workload(name)
	switch c := conditions.Of(o, v1beta2.QuotaReserved); {
	case conditions.Is(o, v1beta2.Evicted) && conditions.Is(o, v1beta2.QuotaReserved):
		return "evicted: " + conditions.Of(o, v1beta2.Evicted).Reason
	case conditions.Is(o, v1beta2.Admitted):
		return "admitted in " + o.Status.Admission.ClusterQueue
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return "reserved in " + o.Status.Admission.ClusterQueue
	default:
		return c.Reason + ": " + c.Message
	}
}

func (w *kueue) expect(name, want string) {
	w.t.Helper()
	if have := w.says(name); have != want {
		w.t.Errorf("%s says %q, want %q", name, have, want)
	}
}

// leave releases an evicted Workload, as the controllers do when its last pod is gone.
func (w *kueue) leave(name string) {
	w.t.Helper()
	w.edit(name, func(o *v1beta2.Workload) {
		conditions.Release(o, w.now)
		conditions.Requeue(o, true, v1beta2.ReasonPreempted, "", w.now)
	})
}

// again is a reader that has read all objects at once, in another order.
func (w *kueue) again() *workloads.Reader {
	r := workloads.New(resources.NewIndex())
	names := slices.Sorted(maps.Keys(w.objects))
	slices.Reverse(names)
	for _, name := range names {
		r.Set(w.objects[name].(runtime.Object))
	}
	r.Settle(w.now)
	return r
}

// dump prints what a reader has, without refusals and what was decided of them.
func dump(r *workloads.Reader, keys []types.NamespacedName) string {
	var said []string
	index := r.Queues().Index
	for _, q := range r.Queues().All() {
		line := fmt.Sprintf("%s strict %v inactive %q:", q.Path(), q.Strict, q.Inactive)
		used := map[string]int64{}
		for _, a := range q.Used() {
			used[index.FlavorOf(a.FR)+"/"+string(index.ResourceOf(a.FR))] = a.Value
		}
		for _, name := range slices.Sorted(maps.Keys(used)) {
			line += fmt.Sprintf(" %s=%d", name, used[name])
		}
		active, refused := q.Waiting()
		said = append(said, fmt.Sprintf("%s; %d wait, %d hold", line, active+refused, len(q.Holders())))
	}
	for _, key := range keys {
		e := r.Find(key)
		if e == nil || e.Held == nil && !e.IsWaiting() {
			continue
		}
		queue := ""
		if e.Queue != nil {
			queue = e.Queue.Name
		}
		line := fmt.Sprintf("%s in %q waits %v priority %d at %s %v", key, queue, e.IsWaiting(), e.Priority, e.Timestamp, e.Phase)
		if e.Held != nil {
			line += fmt.Sprintf(" holds %s", e.Held.ClusterQueue)
			for _, p := range e.Held.PodSets {
				line += fmt.Sprintf(" %s %d %v", p.Name, p.Count, p.Nodes)
				for _, f := range p.Flavors {
					line += " " + f.Name
				}
			}
		}
		said = append(said, line)
	}
	return strings.Join(said, "\n")
}

func (w *kueue) keys() (keys []types.NamespacedName) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		if o, is := w.objects[name].(*v1beta2.Workload); is {
			keys = append(keys, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		}
	}
	return keys
}
