package simulator_test

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// below is a node, a Queue of Volcano with terms, and a ClusterQueue without limits of its own that hangs below the
// Queue.
func below(terms, more string) string {
	return fmt.Sprintf(`
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "10", memory: 16Gi, pods: "20"}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1}, status: {state: Open}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 1, %s}, status: {state: Open}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all, annotations: {hekla.sh/queue: research}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 10}]}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: a}, spec: {clusterQueue: a}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: urgent}, value: 100}
---
`, terms) + more
}

// group is a job of Volcano in a Queue.
func group(name, queue string, pods int) string {
	text := fmt.Sprintf(`
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: work, name: %s}, spec: {queue: %s, minMember: 1}, status: {phase: Pending}}
---
`, name, queue)
	for i := range pods {
		text += fmt.Sprintf(`
{apiVersion: v1, kind: Pod, metadata: {namespace: work, name: %s-%d, annotations: {scheduling.k8s.io/group-name: %s}}, spec: {schedulerName: volcano, containers: [{name: main, image: i, resources: {requests: {cpu: "1"}}}]}}
---
`, name, i, name)
	}
	return text
}

const withCapacity = `
actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: cohorts}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
`

// simulateUnder runs manifests under a configuration.
func simulateUnder(t *testing.T, configuration, text string, options simulator.Options) *simulator.Report {
	t.Helper()
	input, err := manifests.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		t.Fatal(err)
	}
	options.SchedulerNames = []string{"volcano"}
	report, err := simulator.Run(input, policy, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// lower is a Workload that is admitted, without its job.
var lower = strings.NewReplacer("name: borrower", "name: lower", "queueName: b, priority: 7", "queueName: a, priority: 0", "count: 2", "count: 3", "requests: {cpu: '2'}", "requests: {cpu: '1'}",
	"clusterQueue: b", "clusterQueue: a", "cpu: fast", "cpu: any", "cpu: '4'", "cpu: '3'").Replace(borrower)

func TestTheCapabilityOfAQueueBoundsTheWorkloadsBelowIt(t *testing.T) {
	bounded := below(`capability: {cpu: "4"}`, "")
	urgent := ", kueue.x-k8s.io/priority-class: urgent"
	for name, test := range map[string]struct {
		text  string
		binds int
		where []string // the beginnings of where the Workloads stand
		evict string
	}{
		"what is within it is admitted": {bounded + queuedJob("first", "a", 4, "1", ""), 4, []string{"work/job-first-"}, ""},
		"what goes beyond it waits for quota": {bounded + queuedJob("first", "a", 3, "1", "") + queuedJob("second", "a", 2, "1", ""), 3,
			[]string{"work/job-first-", "work/job-second-e2f93 in a waits: WaitingForQuota: couldn't assign flavors to pod set main: queue research is at its capability: cpu: needs 2, has 1, short by 1"}, ""},
		"what it can never hold exceeds it": {bounded + queuedJob("first", "a", 5, "1", ""), 0,
			[]string{"work/job-first-5f657 in a waits: ExceedsMaxQuota: couldn't assign flavors to pod set main: queue research is at its capability: cpu: needs 5, has 4, short by 1"}, ""},
		"a Workload of lower priority gives way for it": {bounded + lower + queuedJob("high", "a", 3, "1", urgent), 6,
			[]string{"work/job-high-7d3d3 in a true", "work/lower in a waits"}, "InClusterQueue"},
		"jobs of Volcano in the Queue count as well": {bounded + group("g", "research", 3) + queuedJob("first", "a", 2, "1", ""), 4, nil, ""},
		"without the annotation it bounds nothing": {strings.Replace(bounded, "annotations: {hekla.sh/queue: research}", "annotations: {}", 1) + queuedJob("first", "a", 6, "1", ""), 6,
			[]string{"work/job-first-"}, ""},
		"that of another Queue bounds nothing": {strings.Replace(bounded, "hekla.sh/queue: research", "hekla.sh/queue: default", 1) + queuedJob("first", "a", 6, "1", ""), 6,
			[]string{"work/job-first-"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := simulateUnder(t, withCapacity, test.text, simulator.Options{Cycles: 12})
			where := strings.Split(stands(r), "\n")
			for i, want := range test.where {
				if !strings.HasPrefix(where[i], want) {
					t.Errorf("one stands as\n%s\nwant\n%s", where[i], want)
				}
			}
			if len(r.Binds) != test.binds {
				t.Errorf("%d pods are bound, want %d: %v\n%s", len(r.Binds), test.binds, r.Binds, stands(r))
			}
			if (len(r.Evictions) > 0) != (test.evict != "") || test.evict != "" && r.Evictions[0].Reason != test.evict {
				t.Errorf("evicted are %+v", r.Evictions)
			}
		})
	}
}

func TestAWorkloadCountsInTheQueueBelowWhichItStands(t *testing.T) {
	// Four of the ten CPUs are guaranteed. The gang of the other Queue gets six at most, whether the Workload comes or
	// not.
	guaranteed := below(`guarantee: {resource: {cpu: "4"}}`, group("g", "default", 9))
	r := simulateUnder(t, withCapacity, guaranteed, simulator.Options{Cycles: 6})
	if len(r.Binds) != 6 {
		t.Errorf("%d pods are bound apart from the guarantee, want 6", len(r.Binds))
	}
	r = simulateUnder(t, withCapacity, guaranteed+queuedJob("first", "a", 4, "1", ""), simulator.Options{Cycles: 6})
	if len(r.Binds) != 10 || !r.Workloads[0].Admitted {
		t.Errorf("%d pods are bound, want 10, and the Workload stands as\n%s", len(r.Binds), stands(r))
	}
	for _, q := range r.Queues {
		if q.Queue == "research" && q.Allocated["cpu"] != "4" {
			t.Errorf("the Queue holds %v", q.Allocated)
		}
	}
	// What Workloads hold leaves less of the capability to jobs of Volcano.
	r = simulateUnder(t, withCapacity, below(`capability: {cpu: "4"}`, queuedJob("first", "a", 3, "1", "")+group("g", "research", 3)), simulator.Options{Cycles: 6})
	if len(r.Binds) != 4 {
		t.Errorf("%d pods are bound below the capability, want 4: %v", len(r.Binds), r.Binds)
	}
}
