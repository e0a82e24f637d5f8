package queued_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// kueue is a cluster with ClusterQueue q of some CPUs, and one of as many that lends it to q.
type kueue struct {
	*world.World
	tb harness.TB
}

func newKueue(t harness.TB, cpus int) *kueue {
	t.Helper()
	w := world.New(t, world.Configuration("")).AddNode("n", "cpu=1000 pods=1000").Apply("{kind: ResourceFlavor, metadata: {name: default}}")
	for _, name := range []string{"q", "lender"} {
		w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, cohortName: both, preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %[1]s}, spec: {clusterQueue: %[1]s}}`, name, cpus))
	}
	return &kueue{w, t}
}

// submit makes a Workload of one pod. Those that are made first come first.
func (k *kueue) submit(name, queue string, priority, cpus int) {
	k.tb.Helper()
	k.Now = k.Now.Add(time.Second)
	k.Apply(fmt.Sprintf("{kind: Workload, metadata: {name: %s}, spec: {queueName: %s, priority: %d, podSets: [{name: main, count: 1,"+
		" template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %d}}}]}}}]}}", name, queue, priority, cpus))
}

// read reads what was submitted, and decides nothing.
func (k *kueue) read() { k.Cache.Workloads.Settle(k.Now) }

func (k *kueue) of(name string) queued.Workload {
	k.tb.Helper()
	reader := k.Cache.Workloads.Reader
	e := reader.Find(fixture.Key(name))
	if e == nil {
		k.tb.Fatalf("there is no Workload %s", name)
	}
	return queued.Of(k.index(), reader, &victims.Rules{Queues: reader.Queues()}, e)
}

func (k *kueue) index() *resources.Index { return k.Cache.Cluster.Resources }

func ExampleOf() {
	k := newKueue(new(testing.T), 4)
	k.submit("runs", "q", 0, 8)
	k.Rest(50)
	k.submit("waits", "q", 5, 6)
	k.read()
	w := k.of("waits")
	fmt.Printf("%s, place %d of %d\n", w.State, w.Place, w.Of)
	fmt.Println(w.Short[0].Sentence())
	fmt.Println("more than it can ever get:", w.Exceeds != nil)
	fmt.Println("candidates:", queued.Names(w.Candidates, 3))
	fmt.Println(k.of("runs").State)
	// Output:
	// Waiting, place 1 of 1
	// pod set main needs 6 cpu of flavor default: 0 of at most 8 could be taken now, short by 6
	// more than it can ever get: false
	// candidates: work/runs
	// Admitted
}

func TestWhatNoQuotaCanEverGiveIsNamed(t *testing.T) {
	k := newKueue(t, 4)
	k.submit("fits", "q", 0, 8)
	k.submit("never", "q", 0, 9)
	k.submit("nowhere", "none", 0, 1)
	k.read()
	if w := k.of("fits"); w.Exceeds != nil || len(w.Short) > 0 {
		t.Errorf("a Workload that fits is said to lack %+v", w.Short)
	}
	if w := k.of("never"); w.Exceeds == nil || w.Exceeds.Missing != "1" || w.Exceeds.Most != "8" || w.Place != 2 {
		t.Errorf("of what is too large it is said %+v", w)
	}
	if w := k.of("nowhere"); w.State != queued.NotQueued || w.Place != 0 {
		t.Errorf("of a Workload without a queue it is said %+v", w)
	}
}

func TestListsNameSomeAndCountAll(t *testing.T) {
	const all = queued.MaxListed + 5
	k := newKueue(t, all)
	for i := range all {
		k.submit(fmt.Sprintf("low-%03d", i), "q", 0, 2)
	}
	k.Rest(100)
	for i := range all {
		k.submit(fmt.Sprintf("mid-%03d", i), "q", 5, 1)
	}
	k.submit("last", "q", 4, 2*all)
	k.read()
	usage := func() (used []queued.ClusterQueue) { return queued.Queues(k.index(), k.Cache.Workloads.Reader) }
	before, w := usage(), k.of("last")
	if len(w.Candidates) != queued.MaxListed || w.CandidateCount != all {
		t.Errorf("%d candidates are named and %d counted, of %d", len(w.Candidates), w.CandidateCount, all)
	}
	if len(w.Ahead) != queued.MaxListed || w.Place != all+1 || w.Of != all+1 || w.Ahead[7].Workload != "work/mid-007" {
		t.Errorf("%d are named ahead of place %d of %d", len(w.Ahead), w.Place, w.Of)
	}
	if names := queued.Names(w.Ahead, 2); names != "work/mid-000, work/mid-001, and 98 more" {
		t.Errorf("of a list is said %s", names)
	}
	for range 3 {
		if again := k.of("last"); !reflect.DeepEqual(again, w) {
			t.Fatalf("asked again, it is said\n%+v\nand was\n%+v", again, w)
		}
	}
	if after := usage(); !reflect.DeepEqual(after, before) {
		t.Errorf("after it was looked who borrows, the queues hold %+v, and before %+v", after, before)
	}
}

func TestAClusterQueueSaysWhatWaitsInItAndWhatItHolds(t *testing.T) {
	k := newKueue(t, 4)
	k.submit("runs", "q", 0, 6)
	k.Rest(50)
	k.submit("first", "q", 0, 3)
	k.submit("second", "q", 0, 3)
	k.read()
	for _, q := range queued.Queues(k.index(), k.Cache.Workloads.Reader) {
		said := fmt.Sprintf("%s: %d wait, %d hold, %d run", q.ClusterQueue, q.Pending, q.Holding, q.Admitted)
		if q.Oldest != nil {
			said += ", oldest " + q.Oldest.Workload
		}
		for _, of := range q.Quotas {
			said += strings.TrimSuffix(fmt.Sprintf("; %s of %s %s, borrowed %s", of.Used, of.Nominal, of.Resource, of.Borrowed), ", borrowed ")
		}
		if want := map[string]string{"q": "q: 2 wait, 1 hold, 1 run, oldest work/first; 6 of 4 cpu, borrowed 2", "lender": "lender: 0 wait, 0 hold, 0 run; 0 of 4 cpu"}[q.ClusterQueue]; said != want {
			t.Errorf("it is said %q, want %q", said, want)
		}
	}
}
