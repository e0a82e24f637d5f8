package turns

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func namespaceOf(r reconcile.Request) string { return r.Namespace }

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func TestANamespaceWithMuchToDoHoldsNoOtherUp(t *testing.T) {
	queue := NewQueue("test", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second), namespaceOf)
	defer queue.ShutDown()
	for _, item := range []reconcile.Request{
		request("much", "1"), request("much", "2"), request("much", "3"), request("little", "1"), request("much", "4"),
		request("little", "2"), request("", "cluster-wide"),
	} {
		queue.Add(item)
	}
	queue.Add(request("much", "3")) // is there already
	var got []string
	for queue.Len() > 0 {
		item, _ := queue.Get()
		got = append(got, item.String())
		queue.Done(item)
	}
	want := []string{"much/1", "little/1", "/cluster-wide", "much/2", "little/2", "much/3", "much/4"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

// Nothing is lost, namespaces wait for as many objects as there are other namespaces at most, and within one all come
// in order.
func TestTurnsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := newLines(namespaceOf)
		waiting, passed := map[string][]reconcile.Request{}, map[string]int{}
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				item := request(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), string(rune(i)))
				line.Push(item)
				waiting[item.Namespace] = append(waiting[item.Namespace], item)
				continue
			}
			if line.Len() == 0 {
				continue
			}
			item := line.Pop()
			if item != waiting[item.Namespace][0] {
				t.Fatalf("%s comes before %s", item, waiting[item.Namespace][0])
			}
			waiting[item.Namespace] = waiting[item.Namespace][1:]
			passed[item.Namespace] = 0
			for namespace, left := range waiting {
				if len(left) == 0 {
					passed[namespace] = 0
				} else if namespace != item.Namespace {
					passed[namespace]++
				}
				if passed[namespace] > 2 {
					t.Fatalf("%s was passed over %d times", namespace, passed[namespace])
				}
			}
		}
		total := 0
		for _, left := range waiting {
			total += len(left)
		}
		if line.Len() != total || len(line.lines) > total {
			t.Fatalf("%d objects are left in %d lines, want %d", line.Len(), len(line.lines), total)
		}
	})
}
