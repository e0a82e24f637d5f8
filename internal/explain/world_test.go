package explain_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// world is a scheduler of which questions are asked.
type world struct {
	tb        testing.TB
	scheduler *scheduler.Scheduler
	now       time.Time
}

// evicting is the default configuration with the actions that evict.
const evicting = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
`

func newWorld(tb testing.TB, configuration string, objects ...runtime.Object) *world {
	tb.Helper()
	w := &world{tb: tb, now: fixture.Birth.Add(time.Hour)}
	w.scheduler = scheduler.New(scheduler.Options{Cluster: cluster.Options{SchedulerNames: []string{"volcano"}}})
	registry := scheduler.NewRegistry()
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		tb.Fatal(err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		tb.Fatal(err)
	}
	if err := w.scheduler.Use(policy); err != nil {
		tb.Fatal(err)
	}
	w.apply(fixture.Queue("default"))
	w.apply(objects...)
	return w
}

func (w *world) apply(objects ...runtime.Object) {
	for _, o := range objects {
		w.scheduler.Cluster().Apply(cluster.Set{Object: o})
	}
}

// cycle runs a cycle, and what it binds.
func (w *world) cycle() cluster.Decisions {
	w.tb.Helper()
	w.now = w.now.Add(time.Second)
	result := w.scheduler.Cycle(w.now, nil)
	if result.Panic != "" {
		w.tb.Fatal(result.Panic)
	}
	for _, b := range result.Decisions.Binds {
		pod := w.scheduler.Cluster().Task(b.Pod).Pod.DeepCopy()
		pod.Spec.NodeName, pod.Status.Phase = b.Node, corev1.PodRunning
		w.apply(pod)
	}
	return result.Decisions
}

// rest runs cycles until two have decided nothing.
func (w *world) rest() {
	w.tb.Helper()
	for quiet, cycles := 0, 0; quiet < 2; cycles++ {
		if d := w.cycle(); len(d.Binds)+len(d.Plans) > 0 {
			quiet = 0
		}
		if quiet++; cycles > 50 {
			w.tb.Fatal("it does not come to rest")
		}
	}
}

func (w *world) model() *explain.Model {
	w.tb.Helper()
	m, err := w.scheduler.Reader()
	if err != nil {
		w.tb.Fatal(err)
	}
	return m
}

func (w *world) job(name string) explain.Job {
	w.tb.Helper()
	j, err := w.model().Job(w.now, fixture.Key(name))
	if err != nil {
		w.tb.Fatal(err)
	}
	return j
}

func (w *world) submit(group *schedulingv1beta1.PodGroup, pods ...*corev1.Pod) explain.Submission {
	w.tb.Helper()
	answer, err := w.model().Submit(w.now, group, pods)
	if err != nil {
		w.tb.Fatal(err)
	}
	return answer
}

// gang is a PodGroup that was just made, and its pods.
func gang(name, queue string, size int, request string, options ...func(*corev1.Pod)) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group := fixture.Group(name, queue, int32(size), fixture.PendingAdmission)
	var pods []*corev1.Pod
	for i := range size {
		pod := fixture.Pod(fmt.Sprintf("%s-%d", name, i), append([]func(*corev1.Pod){fixture.In(name), fixture.As("worker", i), fixture.Asks(request)}, options...)...)
		pods = append(pods, pod)
	}
	return group, pods
}

// grows are the fields of the model that only grow, and decide nothing by their values.
var grows = []string{"Cluster.generation", "Cluster.changes", "Cluster.dropped", "Cluster.undone", "Cluster.log", "Cluster.termsGeneration", "Cluster.talliedAt",
	"Cluster.topology", "Class.matched", "Class.matchedWhen", "Node.tallied", "Node.talliedUsed", "Node.tasks", "Task.inNode", "Task.budgets",
	"Task.budgetsWhen", "supplies.changes", "supplies.dropped", "HyperNode.allocatable", "HyperNode.used"}

// dump tells all that a model holds, each object once.
func dump(c *cluster.Cluster) string {
	var b strings.Builder
	seen := map[uintptr]bool{}
	var tell func(v reflect.Value, name string)
	tell = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if v.IsNil() {
				fmt.Fprintf(&b, "%s nil\n", name)
				return
			}
			if v.Kind() == reflect.Pointer {
				fmt.Fprintf(&b, "%s at %x\n", name, v.Pointer())
				if seen[v.Pointer()] || strings.HasPrefix(v.Type().Elem().PkgPath(), "k8s.io") || strings.Contains(v.Type().Elem().PkgPath(), "pkg/apis") {
					return
				}
				seen[v.Pointer()] = true
			}
			tell(v.Elem(), name)
		case reflect.Struct:
			for i := range v.NumField() {
				field := v.Type().Name() + "." + v.Type().Field(i).Name
				if !slices.Contains(grows, field) && v.Type().Name() != "Time" {
					tell(v.Field(i), field)
				}
			}
		case reflect.Slice, reflect.Array:
			last := v.Len()
			for last > 0 && v.Index(last-1).IsZero() {
				last-- // zeros at the end of amounts mean nothing
			}
			for i := range last {
				tell(v.Index(i), fmt.Sprintf("%s[%d]", name, i))
			}
		case reflect.Map:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			for _, k := range keys {
				tell(v.MapIndex(k), fmt.Sprintf("%s[%v]", name, k))
			}
		case reflect.Func:
		default:
			fmt.Fprintf(&b, "%s %v\n", name, v)
		}
	}
	tell(reflect.ValueOf(c), "")
	return b.String()
}

// unchanged fails the test if what a function asks changes the model.
func (w *world) unchanged(ask func()) {
	w.tb.Helper()
	before := dump(w.scheduler.Cluster())
	ask()
	after := dump(w.scheduler.Cluster())
	if before != after {
		a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				w.tb.Fatalf("the model is another: %s, and was %s", b[i], a[i])
			}
		}
		w.tb.Fatalf("the model is another: %d lines, and were %d", len(b), len(a))
	}
	for _, problem := range w.scheduler.Cluster().Audit() {
		w.tb.Errorf("audit: %s", problem)
	}
}

func (w *world) remove(o runtime.Object) {
	w.scheduler.Cluster().Apply(cluster.Delete{Object: o})
}
