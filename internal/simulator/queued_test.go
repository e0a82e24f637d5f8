package simulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
)

// teams are two ClusterQueues of a Cohort with two flavors; the first of them is spelled in the older version.
const teams = `
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kind: fast}, creationTimestamp: "2026-03-02T07:00:00Z"}, status: {allocatable: {cpu: "4", memory: 16Gi, pods: "20"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {kind: slow}}, status: {allocatable: {cpu: "4", memory: 16Gi, pods: "20"}}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: fast}, spec: {nodeLabels: {kind: fast}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: slow}, spec: {nodeLabels: {kind: slow}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: urgent}, value: 100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  cohort: all
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: work}}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: fast, resources: [{name: cpu, nominalQuota: 2}]}, {name: slow, resources: [{name: cpu, nominalQuota: 2}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: fast, resources: [{name: cpu, nominalQuota: 2}]}, {name: slow, resources: [{name: cpu, nominalQuota: 2}]}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: a}, spec: {clusterQueue: a}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: b}, spec: {clusterQueue: b}}
---
`

// queuedJob is a Job of Kubernetes in a LocalQueue, with more in its metadata.
func queuedJob(name, queue string, pods int, cpu, more string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {namespace: work, name: %s, uid: %s, labels: {kueue.x-k8s.io/queue-name: %s%s}}
spec: {parallelism: %d, completions: %d, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, resources: {requests: {cpu: %s}}}]}}}
---
`, name, name, queue, more, pods, pods, cpu)
}

// stands tells where Workloads stand, one line each.
func stands(r *simulator.Report) string {
	var lines []string
	for _, w := range r.Workloads {
		nodes, _ := json.Marshal(w.Nodes)
		line := fmt.Sprintf("%s in %s %t %s", w.Workload, w.ClusterQueue, w.Admitted, nodes)
		if !w.Admitted {
			line = fmt.Sprintf("%s in %s waits: %s: %s", w.Workload, w.ClusterQueue, w.Reason, w.Message)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestJobsInLocalQueuesGetFlavorsAndNodesAtOnce(t *testing.T) {
	r := mustSimulate(t, teams+queuedJob("first", "a", 2, "2", "")+queuedJob("second", "b", 2, "2", "")+queuedJob("third", "b", 1, "1", ""), untilStable)
	want := `work/job-first-5f657 in a true {"main":{"n1":2}}
work/job-second-e2f93 in b true {"main":{"n2":2}}
work/job-third-b4003 in b waits: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor fast, 1 more needed, insufficient unused quota for cpu in flavor slow, 1 more needed, no room on the nodes of flavor fast for 1 of 1 pod(s): 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, no room on the nodes of flavor slow for 1 of 1 pod(s): 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector`
	if diff := cmp.Diff(want, stands(r)); diff != "" {
		t.Errorf("the Workloads stand otherwise (-want +got):\n%s", diff)
	}
	if len(r.Binds) != 4 || len(r.Jobs) != 0 || !r.Stable {
		t.Errorf("bound are %v, jobs are %v, at rest: %t", r.Binds, r.Jobs, r.Stable)
	}
	if got := r.Workloads[0].Flavors["main"]["cpu"]; got != "fast" {
		t.Errorf("the first has flavor %s", got)
	}
}

// borrower is a Workload that is admitted, without its job: it gets pods.
const borrower = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {namespace: work, name: borrower}
spec: {queueName: b, priority: 7, podSets: [{name: main, count: 2, template: {spec: {containers: [{name: main, image: i, resources: {requests: {cpu: '2'}}}]}}}]}
status:
  admission: {clusterQueue: b, podSetAssignments: [{name: main, count: 2, flavors: {cpu: fast}, resourceUsage: {cpu: '4'}}]}
  conditions:
  - {type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: "2026-03-02T06:00:00Z"}
  - {type: Admitted, status: "True", reason: Admitted, message: "", lastTransitionTime: "2026-03-02T06:00:00Z"}
---
`

func TestAWorkloadThatBorrowsIsEvictedAsAWhole(t *testing.T) {
	owner := strings.Replace(queuedJob("owner", "a", 2, "1", ""), "{spec: {", "{spec: {nodeSelector: {kind: fast}, ", 1)
	r := mustSimulate(t, teams+borrower+owner, simulator.Options{Cycles: 6})
	if len(r.Evictions) != 1 {
		t.Fatalf("evicted are %+v", r.Evictions)
	}
	want := simulator.Eviction{Cycle: 2, Action: "admit", For: "work/job-owner-3", Workload: "work/borrower", Reason: "InCohortReclamation"}
	got := r.Evictions[0]
	got.For = got.For[:min(len(got.For), len(want.For)-1)] + "3"
	if got.Message = ""; got != want {
		t.Errorf("evicted is %+v, want %+v", got, want)
	}
	for _, w := range r.Workloads {
		if !w.Admitted { // the one that was evicted has the other flavor now
			t.Errorf("the Workloads stand as\n%s", stands(r))
		}
	}
	if text := printedText(t, r); !strings.Contains(text, "evict  work/borrower  for work/job-owner-") {
		t.Errorf("a person reads\n%s", text)
	}
}

func printedText(t *testing.T, r *simulator.Report) string {
	t.Helper()
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

const queuedPod = `
apiVersion: v1
kind: Pod
metadata: {namespace: work, name: NAME, labels: {kueue.x-k8s.io/queue-name: a MORE}, annotations: {ANNOTATIONS}}
spec: {containers: [{name: main, image: i, resources: {requests: {cpu: '1'}}}]}
---
`

func podInQueue(name, more, annotations string) string {
	return strings.NewReplacer("NAME", name, " MORE", more, "ANNOTATIONS", annotations).Replace(queuedPod)
}

func TestEachKindOfJobCanBeQueued(t *testing.T) {
	member := func(name string) string {
		return podInQueue(name, ", kueue.x-k8s.io/pod-group-name: group", "kueue.x-k8s.io/pod-group-total-count: '2'")
	}
	volcano := `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {namespace: work, name: gang, labels: {kueue.x-k8s.io/queue-name: a}}
spec: {tasks: [{name: worker, replicas: 2, template: {spec: {containers: [{name: main, image: i, resources: {requests: {cpu: '1'}}}]}}}]}
---
`
	inDefault := strings.Replace(queuedJob("plain", "a", 1, "1", ""), "labels: {kueue.x-k8s.io/queue-name: a}", "labels: {}", 1) +
		"{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: default}, spec: {clusterQueue: a}}\n---\n"
	for name, test := range map[string]struct {
		text  string
		binds int
		where string // the beginning of where the Workloads stand
	}{
		"a pod alone":             {podInQueue("lone", "", ""), 1, "work/pod-lone-"},
		"a group of pods":         {member("p1") + member("p2"), 2, "work/group in a true"},
		"no group that lacks one": {member("p1"), 0, ""},
		"a Job of Volcano":        {volcano, 2, "work/job-gang-"},
		"a Job of Volcano with fewer pods than it wants":     {strings.Replace(volcano, "replicas: 2", "replicas: 9, minAvailable: 2", 1), 4, "work/job-gang-"},
		"a Job without a label where a LocalQueue is for it": {inDefault, 1, "work/job-plain-"},
		"a Workload without a job":                           {borrower, 2, "work/borrower in b true"},
		"a Job with fewer pods than it wants, if it can":     {strings.Replace(queuedJob("less", "a", 9, "1", ""), "labels:", "annotations: {kueue.x-k8s.io/job-min-parallelism: '1'}, labels:", 1), 4, "work/job-less-"},
		"a Job with a priority class that goes before an older Job": {strings.ReplaceAll(queuedJob("old", "a", 4, "1", "")+queuedJob("young", "a", 4, "1", ", kueue.x-k8s.io/priority-class: urgent"),
			"{spec: {", "{spec: {nodeSelector: {kind: fast}, "), 4, "work/job-old-1a564 in a waits: WaitingForQuota: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustSimulate(t, teams+test.text, untilStable)
			if len(r.Binds) != test.binds || !strings.HasPrefix(stands(r), test.where) {
				t.Errorf("%d pods are bound, want %d, and the Workloads stand as\n%s", len(r.Binds), test.binds, stands(r))
			}
		})
	}
}

func TestJobsThatNameNoLocalQueueWaitIfTheyAreManaged(t *testing.T) {
	plain := strings.NewReplacer("labels: {kueue.x-k8s.io/queue-name: a}", "labels: {}", "restartPolicy", "schedulerName: volcano, restartPolicy").Replace(queuedJob("plain", "a", 1, "1", ""))
	inDefault := plain + "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: default}, spec: {clusterQueue: a}}\n---\n"
	for name, test := range map[string]struct {
		arguments, jobs string
		binds, queued   int
	}{
		"not by default":                             {"", plain, 1, 0},
		"all of them":                                {"manageJobsWithoutQueueName: true", plain, 0, 0},
		"those of a namespace that is named":         {"manageJobsWithoutQueueName: true, managedJobsNamespaceSelector: {matchLabels: {kubernetes.io/metadata.name: work}}", plain, 0, 0},
		"not those of another namespace":             {"manageJobsWithoutQueueName: true, managedJobsNamespaceSelector: {matchLabels: {team: red}}", plain, 1, 0},
		"a LocalQueue default takes them":            {"manageJobsWithoutQueueName: true", inDefault, 1, 1},
		"but not in a namespace that is not managed": {"managedJobsNamespaceSelector: {matchLabels: {team: red}}", inDefault, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			configured := strings.Replace(withCapacity, "{name: cohorts}", "{name: cohorts, arguments: {"+test.arguments+"}}", 1)
			r := simulateUnder(t, configured, teams+test.jobs, untilStable)
			if len(r.Binds) != test.binds || len(r.Workloads) != test.queued {
				t.Errorf("bound are %v, and the Workloads stand as\n%s", r.Binds, stands(r))
			}
		})
	}
}

func TestObjectsOfQueuesThatAreWrongAreErrors(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown field":          {strings.Replace(teams, "cohortName: all", "cohortNam: all", 1), "document 8, ClusterQueue b: unknown field \"spec.cohortNam\""},
		"a value that cannot be":    {strings.Replace(teams, "nominalQuota: 2}]}]}]\n---\napiVersion: kueue.x-k8s.io/v1beta2", "nominalQuota: -2}]}]}]\n---\napiVersion: kueue.x-k8s.io/v1beta2", 1), "ClusterQueue a: "},
		"one queue in two versions": {teams + "{apiVersion: kueue.x-k8s.io/v1beta1, kind: Cohort, metadata: {name: all}}", "Cohort all: given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := manifests.Read([]string{"-"}, strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
	t.Run("a class that is not given", func(t *testing.T) {
		_, err := simulate(t, teams+queuedJob("lost", "a", 1, "1", ", kueue.x-k8s.io/priority-class: none"), untilStable)
		if want := `Job work/lost: WorkloadPriorityClass "none" is not given`; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

func TestWorkloadsAreExplained(t *testing.T) {
	options := untilStable
	options.Explain = true
	r := mustSimulate(t, teams+borrower+queuedJob("small", "b", 1, "1", "")+queuedJob("large", "a", 5, "1", "")+queuedJob("lost", "c", 1, "1", ""), options)
	all := map[string]queued.Workload{}
	for _, w := range r.Explanations.Workloads {
		all[strings.Split(w.Workload, "-")[1%len(strings.Split(w.Workload, "-"))]] = w
	}
	if len(all) != 4 {
		t.Fatalf("explained are %+v", r.Explanations.Workloads)
	}
	large := all["large"]
	if large.State != queued.Waiting || large.Reason != "ExceedsMaxQuota" || large.ClusterQueue != "a" || large.Place != 1 || large.Of != 1 {
		t.Errorf("the large one is %+v", large)
	}
	want := []queued.Shortage{
		{PodSet: "main", Flavor: "fast", Resource: "cpu", Requested: "5", Available: "0", Missing: "5", Most: "4", Nominal: "2", Used: "0"},
		{PodSet: "main", Flavor: "slow", Resource: "cpu", Requested: "5", Available: "3", Missing: "2", Most: "4", Nominal: "2", Used: "0"},
	}
	if diff := cmp.Diff(want, large.Short); diff != "" {
		t.Errorf("the large one is short of (-want +got):\n%s", diff)
	}
	evictable := []queued.Neighbor{{Workload: "work/job-small-ee46d", ClusterQueue: "b"}, {Workload: "work/borrower", ClusterQueue: "b", Priority: 7}}
	if diff := cmp.Diff(evictable, large.Candidates); diff != "" {
		t.Errorf("its ClusterQueue may evict (-want +got):\n%s", diff)
	}
	if small := all["small"]; small.State != queued.Admitted || len(small.PodSets) != 1 || small.PodSets[0].Nodes[0].Node != "n2" {
		t.Errorf("the small one is %+v", small)
	}
	if lost := all["lost"]; lost.State != queued.NotQueued || lost.Reason != "Misconfigured" || lost.Message != "LocalQueue c doesn't exist" {
		t.Errorf("the lost one is %+v", lost)
	}
}
