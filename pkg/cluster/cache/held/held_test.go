package held_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/test/fixture"
)

// begin is when tests begin.
var begin = fixture.Birth

// of makes a pod one of the Workload of a name.
func of(workload string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations[v1beta2.WorkloadAnnotation], p.Labels[v1beta2.PodSetLabel] = workload, "main"
	}
}

// start returns a cluster of two nodes with four CPUs each, and more.
func start(objects ...runtime.Object) *cache.Cache {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	show(c, fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=4"))
	show(c, objects...)
	return c
}

func show(c *cache.Cache, objects ...runtime.Object) {
	for _, o := range objects {
		c.Apply(cache.Set{Object: o})
	}
	c.Settle()
}

// changed lists the Workloads whose pods or nodes have changed, in the order in which they are returned.
func changed(c *cache.Cache, now time.Time) string {
	var names []string
	for _, j := range c.Workloads.TakeChanged(now) {
		names = append(names, j.ID.Name)
	}
	return strings.Join(names, " ")
}

func Example() {
	c := start(fixture.Pod("a-0", of("a")), fixture.Pod("a-1", of("a")))
	fmt.Printf("two pods have come: %q\n", changed(c, begin))
	fmt.Printf("nothing has happened: %q\n", changed(c, begin))
	show(c, fixture.Pod("a-0", of("a"), fixture.On("n1")))
	fmt.Printf("one of them runs: %q\n", changed(c, begin))
	// Output:
	// two pods have come: "a"
	// nothing has happened: ""
	// one of them runs: "a"
}

func TestAChangedWorkloadIsReturnedOnceForAllChanges(t *testing.T) {
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	for name, test := range map[string]struct {
		happens func(c *cache.Cache)
		want    string
	}{
		"nothing":                        {func(*cache.Cache) {}, ""},
		"two pods of one Workload":       {func(c *cache.Cache) { show(c, fixture.Pod("b-0", of("b")), fixture.Pod("b-1", of("b"))) }, "b"},
		"pods of two Workloads, by name": {func(c *cache.Cache) { show(c, fixture.Pod("c-0", of("c")), fixture.Pod("b-0", of("b"))) }, "b c"},
		"a pod of a PodGroup":            {func(c *cache.Cache) { show(c, fixture.Group("g", "default", 1), fixture.Pod("g-0", fixture.In("g"))) }, ""},
		"a pod ends": {func(c *cache.Cache) {
			show(c, fixture.Pod("a-0", of("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))
		}, "a"},
		"a pod is gone":                  {func(c *cache.Cache) { c.Apply(cache.Delete{Object: fixture.Pod("a-0", of("a"))}) }, "a"},
		"a pod goes to another Workload": {func(c *cache.Cache) { show(c, fixture.Pod("w-0", of("b"))) }, "b w"},
		"its node is cordoned":           {func(c *cache.Cache) { show(c, fixture.Node("n1", "cpu=4", cordoned)) }, "a"},
		"its node is gone":               {func(c *cache.Cache) { c.Apply(cache.Delete{Object: fixture.Node("n1", "")}) }, "a"},
		"another node is gone":           {func(c *cache.Cache) { c.Apply(cache.Delete{Object: fixture.Node("n2", "")}) }, ""},
		"its node was cordoned before": {func(c *cache.Cache) {
			show(c, fixture.Node("n1", "cpu=4", cordoned))
			changed(c, begin)
			show(c, fixture.Node("n1", "cpu=8", cordoned))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(fixture.Pod("a-0", of("a"), fixture.On("n1")), fixture.Pod("w-0", of("w")))
			changed(c, begin)
			test.happens(c)
			if have := changed(c, begin); have != test.want {
				t.Errorf("changed are %q, want %q", have, test.want)
			}
			if again := changed(c, begin); again != "" {
				t.Errorf("without a further change, changed are %q", again)
			}
		})
	}
}

func TestAWorkloadIsReturnedWhenItsTimeHasCome(t *testing.T) {
	c := start(fixture.Pod("a-0", of("a")))
	changed(c, begin)
	j, due := c.Task(fixture.Key("a-0")).Job, begin.Add(time.Minute)
	c.Workloads.Revisit(j, due)
	if next := c.Workloads.NextDue(begin); !next.Equal(due) {
		t.Errorf("time makes a difference at %s", next)
	}
	if have := changed(c, due.Add(-1)); have != "" {
		t.Errorf("before its time, changed are %q", have)
	}
	if have := changed(c, due); have != "a" {
		t.Errorf("at its time, changed are %q", have)
	}
	if next := c.Workloads.NextDue(due); !next.IsZero() {
		t.Errorf("after its time, time makes a difference at %s", next)
	}
	c.Workloads.Revisit(j, time.Time{})
	if have := changed(c, due); have != "" {
		t.Errorf("though that was taken back, changed are %q", have)
	}
}

func TestNodesHaveChangedOnceForEachCauseThatCouldHelp(t *testing.T) {
	c := start()
	c.Workloads.HaveNodesChanged()
	for _, test := range []struct {
		cause wake.Cause
		want  bool
	}{{wake.RoomFreed, true}, {wake.SupplyShown, true}, {wake.UsageFreed, false}} {
		c.Note(test.cause)
		if have := c.Workloads.HaveNodesChanged(); have != test.want {
			t.Errorf("nodes have changed by %v: %t, want %t", test.cause, have, test.want)
		}
		if c.Workloads.HaveNodesChanged() {
			t.Errorf("nodes have changed twice by %v", test.cause)
		}
	}
}

// quota is a ClusterQueue, and a Workload of two pods that is admitted in it.
func quota(t *testing.T) []runtime.Object {
	w := &v1beta2.Workload{}
	objects := []runtime.Object{&v1beta2.ResourceFlavor{}, &v1beta2.ClusterQueue{}, &v1beta2.LocalQueue{}, w}
	for i, text := range []string{`metadata: {name: default}`,
		`{metadata: {name: all}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}`,
		`{metadata: {name: lq, namespace: work}, spec: {clusterQueue: all}}`,
		`{metadata: {name: a, namespace: work, uid: a}, spec: {queueName: lq, podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]},
			status: {admission: {clusterQueue: all, podSetAssignments: [{name: main, count: 2, flavors: {cpu: default}, resourceUsage: {cpu: 2}}]}}}`} {
		if err := yaml.UnmarshalStrict([]byte(text), objects[i]); err != nil {
			t.Fatal(err)
		}
	}
	conditions.Reserve(w, "all", begin)
	conditions.Admit(w, begin)
	return objects
}

func TestTheAuditFindsQuotaWithoutNodes(t *testing.T) {
	pods := []runtime.Object{fixture.Pod("a-0", of("a"), fixture.On("n1")), fixture.Pod("a-1", of("a"), fixture.On("n2"))}
	for have, want := range map[int]string{0: "has nodes for 0", 1: "has nodes for 1", 2: ""} {
		c := start(slices.Concat(quota(t), pods[:have])...)
		c.Workloads.Settle(begin)
		c.Workloads.TakeMoved()
		changed(c, begin)
		if found := c.Workloads.Audit(); len(found) > 0 {
			t.Errorf("while no action keeps the nodes, the audit finds %v", found)
		}
		c.Workloads.AreKept = true
		if found := c.Workloads.Audit(); len(found) > 1 || (len(found) > 0) != (want != "") || !strings.Contains(strings.Join(found, ""), want) {
			t.Errorf("with %d of 2 pods the audit finds %v, want %q", have, found, want)
		}
	}
}

func TestLookingAtWorkloadsChangesNothingOfTheModel(t *testing.T) {
	c := start(append(quota(t), fixture.Pod("a-0", of("a"), fixture.On("n1")), fixture.Pod("a-1", of("a")))...)
	c.Workloads.Settle(begin)
	j, n := c.Task(fixture.Key("a-0")).Job, c.Node("n1")
	c.TakeTouchedJobs()
	type state struct {
		position, generation, version uint64
		world                         wake.Stamp
		usage                         cluster.Usage
		touched                       int
	}
	now := func() state {
		return state{c.Position(), n.Generation, j.Internal.Version, c.Present(j), j.Usage.Clone(), len(c.TakeTouchedJobs())}
	}
	before := now()
	c.Workloads.Look(j)
	c.Workloads.Lost(n)
	c.Workloads.Revisit(j, begin)
	c.Workloads.TakeChanged(begin)
	c.Workloads.NextDue(begin)
	c.Workloads.HaveNodesChanged()
	c.Workloads.AreKept = true
	c.Workloads.Audit()
	if after := now(); !reflect.DeepEqual(before, after) {
		t.Errorf("the model was\n%+v\nand is\n%+v", before, after)
	}
}
