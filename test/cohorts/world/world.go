package world

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
	"hekla.sh/hekla/test/harness/loop"
)

// Configuration is one with the action admit and the plugin cohorts, which has these arguments, a YAML mapping on one
// line or "".
func Configuration(arguments string) string {
	if arguments == "" {
		arguments = "{}"
	}
	return `
actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: nodeorder
  - name: cohorts
    arguments: ` + arguments + "\n"
}

// Namespace is where everything is that has a namespace.
const Namespace = "work"

// World is a cluster with ClusterQueues and Workloads.
type World struct {
	*loop.Loop
	// Grace is how many steps a pod takes to end.
	Grace int
	// Evictions counts how often Workloads were told to stop.
	Evictions int
	// Said has what was decided in the last step, in order.
	Said []string
	// Policy is what the controllers go by.
	Policy queueing.Policy
	// Judge is told of each status before it is written, with the Workload as it is then; nil is told nothing.
	Judge func(*decision.WorkloadStatus, *v1beta2.Workload)
	// Decided are the statuses that are written in this step, one after another.
	Decided []decision.WorkloadStatus
	// IsLate says of a status that is written whether its answer comes first, and the scheduler sees the object only
	// after its next cycle; nil says no.
	IsLate func() bool

	configuration string
	crash         *crash
	hasRestarted  bool // in the last step
	objects       map[string]client.Object
	pods          map[types.NamespacedName]*pod
	late          map[string]bool // Workloads of which the scheduler has not seen the newest
	version       int
	made          int
	tb            harness.TB
}

type pod struct {
	*corev1.Pod
	workload string
	until    int // the steps that it takes to end, if it is told to
}

// New returns a world under a configuration.
func New(tb harness.TB, configuration string) *World {
	tb.Helper()
	w := &World{Loop: loop.New(tb, configuration), configuration: configuration, Grace: 1, objects: map[string]client.Object{}, pods: map[types.NamespacedName]*pod{},
		late: map[string]bool{}, tb: tb}
	return w.Apply("{kind: Namespace, metadata: {name: " + Namespace + "}}")
}

// AddNode adds a node.
func (w *World) AddNode(name, allocatable string, labels ...string) *World {
	n := fixture.Node(name, allocatable)
	for i := 0; i+1 < len(labels); i += 2 {
		n.Labels[labels[i]] = labels[i+1]
	}
	w.show(n)
	return w
}

func keyOf(o client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T/%s", o, o.GetName()), "*")
}

// Apply adds or changes objects, as a user does: it keeps their status. The text is YAML.
func (w *World) Apply(text string) *World {
	w.tb.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			w.tb.Fatalf("%v", err)
		}
		o := map[string]client.Object{"ClusterQueue": &v1beta2.ClusterQueue{}, "Cohort": &v1beta2.Cohort{}, "LocalQueue": &v1beta2.LocalQueue{},
			"ResourceFlavor": &v1beta2.ResourceFlavor{}, "AdmissionCheck": &v1beta2.AdmissionCheck{}, "Workload": &v1beta2.Workload{},
			"Namespace": &corev1.Namespace{}, "Queue": &schedulingv1beta1.Queue{}}[kind.Kind]
		if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
			w.tb.Fatalf("%v in\n%s", err, document)
		}
		w.Add(o)
	}
	return w
}

// Add is Apply of an object.
func (w *World) Add(o client.Object) {
	switch o.(type) {
	case *v1beta2.LocalQueue, *v1beta2.Workload:
		o.SetNamespace(Namespace)
	}
	w.made++
	o.SetUID(types.UID(fmt.Sprintf("%s-%04d", o.GetName(), w.made)))
	o.SetCreationTimestamp(metav1.NewTime(w.Now))
	o.SetGeneration(1)
	if before := w.objects[keyOf(o)]; before != nil {
		o.SetUID(before.GetUID())
		o.SetCreationTimestamp(before.GetCreationTimestamp())
		o.SetGeneration(before.GetGeneration() + 1)
		if v, is := o.(*v1beta2.Workload); is {
			v.Status = before.(*v1beta2.Workload).Status
		}
	}
	w.show(o)
}

// show shows an object to the scheduler, or lets it wait for what is late.
func (w *World) show(o client.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
	w.objects[keyOf(o)] = o
	if !w.late[keyOf(o)] {
		w.Set(o)
	}
}

// catchUp shows what was late.
func (w *World) catchUp() {
	for _, key := range slices.Sorted(maps.Keys(w.late)) {
		w.Set(w.objects[key])
	}
	clear(w.late)
}

// IsBehind reports whether the scheduler has not seen the newest of some Workload.
func (w *World) IsBehind() bool { return len(w.late) > 0 }

// Delete deletes an object.
func (w *World) Delete(o client.Object) {
	delete(w.objects, keyOf(o))
	delete(w.late, keyOf(o))
	w.Remove(o)
}

// Mark begins to delete a Workload: it goes when its pods are gone.
func (w *World) Mark(name string) {
	o, now := w.Workload(name).DeepCopy(), metav1.NewTime(w.Now)
	o.DeletionTimestamp = &now
	w.show(o)
}

// Object returns an object by its kind and name, such as "v1beta2.ClusterQueue/q" or "v1.Node/n1", nil if it does not
// exist.
func (w *World) Object(name string) client.Object { return w.objects[name] }

// Names are those of all objects of a kind, such as "v1beta2.Cohort/", in order.
func (w *World) Names(kind string) (names []string) {
	for name := range w.objects {
		if strings.HasPrefix(name, kind) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Replace puts another version of an object in its place.
func (w *World) Replace(o client.Object) { w.show(o) }

// Workload returns a Workload, nil if it does not exist.
func (w *World) Workload(name string) *v1beta2.Workload {
	o, _ := w.objects["v1beta2.Workload/"+name].(*v1beta2.Workload)
	return o
}

// Workloads returns all Workloads by name.
func (w *World) Workloads() (all []*v1beta2.Workload) {
	for _, o := range w.objects {
		if v, is := o.(*v1beta2.Workload); is {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *v1beta2.Workload) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Edit changes the status of a Workload, as a controller does.
func (w *World) Edit(name string, change func(o *v1beta2.Workload)) {
	o := w.Workload(name).DeepCopy()
	change(o)
	w.show(o)
}

// Step runs a cycle, carries out what it decides, and has controllers and kubelets do what follows. It reports whether
// anything was decided or has changed.
func (w *World) Step() (changed bool) {
	w.tb.Helper()
	w.Said = nil
	d := w.Cycle()
	w.catchUp()
	carried := carrier{w}
	carried.write(d)
	carried.bind(d)
	changed = len(d.Binds)+len(d.Workloads)+len(d.WorkloadPlans) > 0
	if w.hasRestarted = w.hasCrashed(); w.hasRestarted {
		w.Restart(nil)
		changed = true
	}
	return carried.control() || changed
}

// Switch puts the configuration of a world in force, or one by which no Workloads are admitted.
func (w *World) Switch(admits bool) {
	w.tb.Helper()
	text := w.configuration
	if !admits {
		text = strings.Replace(text, "admit, ", "", 1)
	}
	w.Configure(text)
}

// Rest runs steps until two in a row change nothing. It fails after the most.
func (w *World) Rest(most int) *World {
	w.tb.Helper()
	for quiet, steps := 0, 0; quiet < 2; steps++ {
		if quiet++; w.Step() {
			quiet = 0
		}
		if steps > most {
			w.tb.Fatalf("after %d steps there is no rest: %s", most, strings.Join(w.Said, "; "))
		}
	}
	return w
}

func (w *World) say(format string, arguments ...any) {
	w.Said = append(w.Said, fmt.Sprintf(format, arguments...))
}

// Says is where a Workload stands: "admitted", "evicted", or why it waits.
func (w *World) Says(name string) string {
	o := w.Workload(name)
	switch c := conditions.Of(o, v1beta2.QuotaReserved); {
	case conditions.Is(o, v1beta2.Evicted) && conditions.Is(o, v1beta2.QuotaReserved):
		return "evicted: " + conditions.Of(o, v1beta2.Evicted).Reason
	case conditions.Is(o, v1beta2.Admitted):
		return "admitted"
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return "reserved"
	default:
		return c.Reason + ": " + c.Message
	}
}

// Expect compares where a Workload stands.
func (w *World) Expect(name, want string) *World {
	w.tb.Helper()
	if have := w.Says(name); have != want {
		w.tb.Errorf("%s says %q, want %q", name, have, want)
	}
	return w
}

// Running is how many pods of a Workload run, by node.
func (w *World) Running(name string) map[string]int {
	nodes := map[string]int{}
	if j := w.Job(cluster.WorkloadID(Namespace, name)); j != nil {
		for _, t := range j.Tasks() {
			if t.Status == cluster.Running {
				nodes[t.Node.Name]++
			}
		}
	}
	return nodes
}
