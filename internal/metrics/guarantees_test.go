package metrics

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

func TestGuaranteesAreShownWithWhatIsLeftOfThem(t *testing.T) {
	r := run(t, "guaranteed-shares")
	if err := r.scheduler.Use(policyOf(t, "actions: enqueue, allocate, reclaim\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: guaranteed-shares}]")); err != nil {
		t.Fatal(err)
	}
	below := func(name, parent string, options ...fixture.QueueOption) cache.Event {
		queue := fixture.Queue(name, options...)
		queue.Spec.Parent = parent
		return cache.Set{Object: queue}
	}
	pod := func(name, of, on string) cache.Event {
		return cache.Set{Object: fixture.Pod(name, fixture.In(of), fixture.On(on), fixture.Asks("cpu=1500m"))}
	}
	r.now = fixture.Birth.Add(-2 * time.Second)
	r.cycle(cache.Set{Object: fixture.Node("n", "cpu=3")}, below("tenant", "root", fixture.Guaranteed("cpu=2")), below("a", "tenant"),
		below("b", "root"), cache.Set{Object: fixture.Group("old", "b", 1)}, cache.Set{Object: fixture.Group("new", "a", 1)},
		pod("o1", "old", "n"), pod("o2", "old", "n"), cache.Set{Object: fixture.Pod("n1", fixture.In("new"), fixture.Asks("cpu=1500m"))})
	r.expect("hekla_queue_guaranteed", map[string]string{
		`hekla_queue_guaranteed{queue="a",resource="cpu"}`: "2", `hekla_queue_guaranteed{queue="tenant",resource="cpu"}`: "2"})
	r.expect("hekla_queue_remaining_guaranteed", map[string]string{
		`hekla_queue_remaining_guaranteed{queue="a",resource="cpu"}`: "2", `hekla_queue_remaining_guaranteed{queue="tenant",resource="cpu"}`: "2"})
	if got := shown(t, r.Metrics, "hekla_queue_preemptable")[`hekla_queue_preemptable{queue="b",resource="cpu"}`]; got != "3" {
		t.Errorf("others may take %s CPUs of b, want 3", got)
	}
	const delayed, planned = `hekla_asks{queue="a",state="delayed"}`, `hekla_asks{queue="a",state="planned"}`
	if got := shown(t, r.Metrics, "hekla_asks"); got[delayed] != "1" || got[planned] != "0" {
		t.Errorf("before the delay: %v", got)
	}

	r.now = r.now.Add(time.Minute)
	result := r.scheduler.Cycle(r.now, nil)
	r.Plans(r.scheduler.Cluster(), result.Decisions.Plans, result.Decisions.Ended)
	r.Totals(r.scheduler.Cluster(), r.scheduler.Policy())
	if got := shown(t, r.Metrics, "hekla_asks"); got[delayed] != "0" || got[planned] != "1" {
		t.Errorf("after the delay: %v", got)
	}
	r.expect("hekla_evictions_by_rule_total", map[string]string{`hekla_evictions_by_rule_total{queue="b",rule="G4"}`: "1"})
	if got := shown(t, r.Metrics, "hekla_queue_remaining")[`hekla_queue_remaining_guaranteed{queue="tenant",resource="cpu"}`]; got != "0.5" {
		t.Errorf("%s CPUs of the guarantee are left, want 0.5", got)
	}
}

// A ClusterQueue counts cpu of a flavor apart from cpu, under the same name.
func TestAmountsOfFlavorsHaveNoSeriesOfTheirResource(t *testing.T) {
	for _, plugin := range []string{"capacity", "proportion", "guaranteed-shares"} {
		t.Run(plugin, func(t *testing.T) {
			r := run(t, plugin)
			if err := r.scheduler.Use(policyOf(t, "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: "+plugin+"}]")); err != nil {
				t.Fatal(err)
			}
			r.cycle(cache.Set{Object: fixture.Node("n", "cpu=3")}, cache.Set{Object: fixture.Queue("a", fixture.Guaranteed("cpu=2"), fixture.Capped("cpu=3"))})
			c := r.scheduler.Cluster()
			read := func() map[string]string {
				r.Totals(c, r.scheduler.Policy())
				return shown(t, r.Metrics, "")
			}
			before := read()
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/gpu"} {
				c.Resources.OfFlavor("a", name)
			}
			after := read()
			for _, prefix := range []string{"volcano_queue_", "hekla_queue_"} {
				if diff := cmp.Diff(only(before, prefix), only(after, prefix)); diff != "" {
					t.Errorf("the series change with the flavors (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func only(series map[string]string, prefix string) map[string]string {
	of := maps.Clone(series)
	maps.DeleteFunc(of, func(name, _ string) bool { return !strings.HasPrefix(name, prefix) })
	return of
}
