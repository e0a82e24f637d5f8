package explain_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// asker asks a scheduler questions.
type asker struct {
	*loop.Loop
	tb testing.TB
}

// evicting is the default configuration with the actions that evict.
var evicting = loop.Evicting("predicates", "capacity", "nodeorder")

func newAsker(tb testing.TB, configuration string, objects ...runtime.Object) *asker {
	tb.Helper()
	l := loop.New(tb, configuration)
	l.Set(objects)
	return &asker{l, tb}
}

func (a *asker) model() *explain.Model {
	a.tb.Helper()
	m, err := a.Scheduler.Reader()
	if err != nil {
		a.tb.Fatal(err)
	}
	return m
}

func (a *asker) job(name string) explain.Job {
	a.tb.Helper()
	j, err := a.model().Job(a.Now, cluster.GroupID(fixture.Key(name)))
	if err != nil {
		a.tb.Fatal(err)
	}
	return j
}

func (a *asker) submit(group *schedulingv1beta1.PodGroup, pods ...*corev1.Pod) explain.Submission {
	a.tb.Helper()
	answer, err := a.model().Submit(a.Now, group, pods)
	if err != nil {
		a.tb.Fatal(err)
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
var grows = []string{"attention.generation", "attention.changes", "Cluster.log", "Cluster.talliedAt", "nodes.topology", "Class.matched", "Class.matchedWhen",
	"Terms.generation", "NodeInternals.Tallied", "NodeInternals.TalliedUsed", "NodeInternals.Tasks", "TaskInternals.InNode", "TaskInternals.Budgets",
	"HyperNodeInternals.Allocatable", "HyperNodeInternals.Used", "Table.amounts", "Table.young", "Table.old", "base.pods"}

// dump tells all that a model holds, each object once.
func dump(c *cache.Cache) string {
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
func (a *asker) unchanged(ask func()) {
	a.tb.Helper()
	before := dump(a.Cache)
	ask()
	after := dump(a.Cache)
	if before != after {
		was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
		for i := range min(len(was), len(is)) {
			if was[i] != is[i] {
				a.tb.Fatalf("the model is another: %s, and was %s", is[i], was[i])
			}
		}
		a.tb.Fatalf("the model is another: %d lines, and were %d", len(is), len(was))
	}
	a.Check()
}
