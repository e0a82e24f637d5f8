package simulator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

const twoNodes = `
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: "2026-03-02T06:00:00Z"}
status: {allocatable: {cpu: '2', memory: 4Gi, pods: '9'}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, creationTimestamp: "2026-03-02T06:00:00Z"}
status: {allocatable: {cpu: '1', memory: 4Gi, pods: '9'}}
---
`

const trainingJob = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: work, creationTimestamp: "2026-03-02T07:00:00Z"}
spec:
  schedulerName: volcano
  minAvailable: 2
  tasks:
  - {name: worker, replicas: 4, template: {spec: {containers: [{name: main, resources: {requests: {cpu: '1'}}}]}}}
---
`

// simulate runs manifests under the default configuration.
func simulate(t *testing.T, text string, options simulator.Options) (*simulator.Report, error) {
	t.Helper()
	input, err := manifests.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	policy, err := registry.Build(conf.Default(registry.Catalogue()))
	if err != nil {
		t.Fatal(err)
	}
	if options.SchedulerNames == nil {
		options.SchedulerNames = []string{"volcano"}
	}
	return simulator.Run(input, policy, options)
}

func mustSimulate(t *testing.T, text string, options simulator.Options) *simulator.Report {
	t.Helper()
	report, err := simulate(t, text, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

var untilStable = simulator.Options{UntilStable: true, MaxCycles: 50}

func printed(t *testing.T, report *simulator.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAJobBecomesAPodGroupAndPods(t *testing.T) {
	report := mustSimulate(t, twoNodes+trainingJob, untilStable)
	var bound []string
	for _, b := range report.Binds {
		bound = append(bound, fmt.Sprintf("%d %s %s", b.Cycle, b.Pod, b.Node))
	}
	slices.Sort(bound)
	// binpack, which is in force by default, fills the smaller node first.
	want := []string{"1 work/train-worker-0 n2", "1 work/train-worker-1 n1", "1 work/train-worker-2 n1"}
	if diff := cmp.Diff(want, bound); diff != "" {
		t.Errorf("what is bound differs (-want +got):\n%s", diff)
	}
	j := report.Jobs[0]
	if j.Job != "work/train" || j.Queue != "default" || j.Phase != "Running" || j.Ready != 3 || j.MinAvailable != 2 || j.Reason != "NotEnoughResources" {
		t.Errorf("the job is %+v", j)
	}
}

// After `kubectl get -o yaml` the PodGroup and the pods of a Job are listed with it.
func TestWhatAJobHasMadeAlreadyIsNotMadeAgain(t *testing.T) {
	made := `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: work, uid: a1}
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
  - {name: worker, replicas: 2, template: {spec: {containers: [{name: main, resources: {requests: {cpu: '1'}}}]}}}
status: {state: {phase: Running}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: train-a1, namespace: work, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: a1, controller: true}]}
spec: {minMember: 1, queue: default}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata:
  name: train-worker-0
  namespace: work
  annotations: {scheduling.k8s.io/group-name: train-a1, volcano.sh/task-spec: worker, volcano.sh/task-index: '0'}
spec: {schedulerName: volcano, nodeName: n1, containers: [{name: main, resources: {requests: {cpu: '2'}}}]}
status: {phase: Running}
`
	report := mustSimulate(t, twoNodes+made, untilStable)
	if len(report.Binds) != 1 || report.Binds[0].Pod != "work/train-worker-1" || report.Binds[0].Node != "n2" {
		t.Errorf("bound %+v, want the pod that is missing, where the other leaves room", report.Binds)
	}
	if len(report.Jobs) != 1 || report.Jobs[0].Job != "work/train" || report.Jobs[0].Ready != 2 {
		t.Errorf("the jobs are %+v", report.Jobs)
	}
}

func TestAJobThatIsOverMakesNothing(t *testing.T) {
	over := strings.Replace(trainingJob, "---", "status: {state: {phase: Completed}}\n---", 1)
	if report := mustSimulate(t, twoNodes+over, untilStable); len(report.Binds)+len(report.Jobs) != 0 {
		t.Errorf("decided %s", printed(t, report))
	}
}

func TestAJobOfAnotherSchedulerIsLeftAlone(t *testing.T) {
	other := strings.Replace(trainingJob, "schedulerName: volcano", "schedulerName: other", 1)
	if report := mustSimulate(t, twoNodes+other, untilStable); len(report.Binds)+len(report.Jobs) != 0 {
		t.Errorf("decided %s", printed(t, report))
	}
}

func TestAJobThatNamesNoSchedulerIsForTheFirstOfOurNames(t *testing.T) {
	options := untilStable
	options.SchedulerNames = []string{"mine", "volcano"}
	unnamed := strings.Replace(trainingJob, "  schedulerName: volcano\n", "", 1)
	if report := mustSimulate(t, twoNodes+unnamed, options); len(report.Binds) != 3 {
		t.Errorf("decided %s", printed(t, report))
	}
}

func TestAJobThatAWebhookWouldRefuseIsAnError(t *testing.T) {
	wrong := strings.Replace(trainingJob, "minAvailable: 2", "minAvailable: 9", 1)
	if _, err := simulate(t, twoNodes+wrong, untilStable); err == nil || !strings.Contains(err.Error(), "Job work/train: spec.minAvailable") {
		t.Errorf("the error is %v", err)
	}
}

func lonePod(name, more string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: work" + more +
		"}\nspec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: '1'}}}]}\n---\n"
}

func TestAPodAloneIsAJobOfOneUnderItsOwnName(t *testing.T) {
	report := mustSimulate(t, twoNodes+lonePod("a", "")+lonePod("b", ""), untilStable)
	if len(report.Binds) != 2 || len(report.Jobs) != 2 || report.Jobs[0].Job != "work/a" || report.Jobs[0].MinAvailable != 1 || report.Jobs[1].Phase != "Running" {
		t.Errorf("decided %s", printed(t, report))
	}
}

func TestPodsOfOneControllerAreOneJob(t *testing.T) {
	owned := ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]"
	report := mustSimulate(t, twoNodes+lonePod("web-1", owned)+lonePod("web-2", owned), untilStable)
	if len(report.Jobs) != 1 || report.Jobs[0].Job != "work/web" || report.Jobs[0].Ready != 2 {
		t.Errorf("the jobs are %+v", report.Jobs)
	}
}

func TestBoundPodsRunInTheNextCycle(t *testing.T) {
	if report := mustSimulate(t, twoNodes+trainingJob, simulator.Options{Cycles: 1}); report.Jobs[0].Phase != "Inqueue" || report.Cycles != 1 || report.Stable {
		t.Errorf("after one cycle: %s", printed(t, report))
	}
	if report := mustSimulate(t, twoNodes+trainingJob, simulator.Options{Cycles: 2}); report.Jobs[0].Phase != "Running" || report.Stable {
		t.Errorf("after two cycles: %s", printed(t, report))
	}
	if report := mustSimulate(t, twoNodes+trainingJob, simulator.Options{Cycles: 3}); !report.Stable {
		t.Errorf("after three cycles: %s", printed(t, report))
	}
}

func TestRestIsTwoCyclesThatDecideNothing(t *testing.T) {
	if report := mustSimulate(t, twoNodes+trainingJob, untilStable); report.Cycles != 3 || !report.Stable {
		t.Errorf("%d cycles, stable is %t", report.Cycles, report.Stable)
	}
	report, err := simulate(t, twoNodes+trainingJob, simulator.Options{UntilStable: true, MaxCycles: 2})
	if !errors.Is(err, simulator.ErrNotStable) || report == nil || len(report.Binds) != 3 || report.Stable {
		t.Errorf("the error is %v, the report %+v", err, report)
	}
}

const leaving = `
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: work, creationTimestamp: "2026-03-02T06:30:00Z", deletionTimestamp: "2026-03-02T07:00:05Z", deletionGracePeriodSeconds: 30}
spec: {schedulerName: other, nodeName: n1, containers: [{name: main, resources: {requests: {cpu: '2'}}}]}
status: {phase: Running}
---
`

func TestDeletedPodsAreGoneAfterTheCycleOrTheirGracePeriod(t *testing.T) {
	for grace, want := range map[bool]int{false: 2, true: 6} {
		options := untilStable
		options.Grace = grace
		report := mustSimulate(t, twoNodes+leaving+trainingJob, options)
		if len(report.Binds) != 3 || report.Binds[0].Cycle != want {
			t.Errorf("with grace %t decided %s", grace, printed(t, report))
		}
		if report.Cycles != want+2 {
			t.Errorf("with grace %t it rests after %d cycles, while a pod is leaving there is no rest", grace, report.Cycles)
		}
	}
}

func TestTimeBeginsWhenItIsSaid(t *testing.T) {
	options := untilStable
	options.Grace, options.Now = true, time.Date(2026, 3, 2, 7, 0, 3, 0, time.UTC)
	if report := mustSimulate(t, twoNodes+leaving+trainingJob, options); report.Binds[0].Cycle != 3 {
		t.Errorf("the pod is gone after %d cycles", report.Binds[0].Cycle)
	}
}

// What is printed is a contract: programs read it.
func TestTheJSONHasTheseKeysAndNoNulls(t *testing.T) {
	want := `{
  "cycles": 2,
  "stable": true,
  "binds": [],
  "evictions": [],
  "nominations": [],
  "jobs": [],
  "queues": [
    {
      "queue": "default",
      "allocated": {},
      "deserved": {},
      "share": 0
    },
    {
      "queue": "root",
      "allocated": {},
      "deserved": {},
      "share": 0
    }
  ]
}
`
	if diff := cmp.Diff(want, printed(t, mustSimulate(t, twoNodes, untilStable))); diff != "" {
		t.Errorf("the JSON differs (-want +got):\n%s", diff)
	}
	var report map[string][]map[string]any
	text := printed(t, mustSimulate(t, twoNodes+trainingJob+strings.ReplaceAll(trainingJob, "train", "another"), untilStable))
	text = strings.NewReplacer(`"cycles": 3,`, "", `"stable": true,`, "").Replace(text)
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	for list, keys := range map[string][]string{
		"binds": {"cycle", "node", "pod"}, "queues": {"allocated", "deserved", "queue", "share"},
		"jobs": {"job", "message", "minAvailable", "phase", "queue", "ready", "reason"},
	} {
		var got []string
		for key := range report[list][0] {
			got = append(got, key)
		}
		slices.Sort(got)
		if diff := cmp.Diff(keys, got); diff != "" {
			t.Errorf("the keys of %s differ (-want +got):\n%s", list, diff)
		}
	}
	if report["jobs"][0]["job"] != "work/another" || report["jobs"][1]["job"] != "work/train" {
		t.Errorf("the jobs are not sorted by name: %v", report["jobs"])
	}
}

func TestTheTextTellsCyclesAndWhoWaits(t *testing.T) {
	var b strings.Builder
	if err := mustSimulate(t, twoNodes+trainingJob, untilStable).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Cycle 1\n", "work/train-worker-0", "After 3 cycles, at rest\n", "work/train waits: NotEnoughResources: "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "Cycle 2") {
		t.Errorf("a cycle that decided nothing is told:\n%s", b.String())
	}
}

// The pods of a task that depends on another come once that has started, as from the Job controller.
func TestTasksWaitForThoseTheyDependOn(t *testing.T) {
	const job = `
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {namespace: work, name: train, uid: train, labels: {LABELS}}
spec:
  schedulerName: volcano
  minAvailable: MIN
  tasks:
  - {name: worker, replicas: 1, dependsOn: {name: [master]}, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}}
  - {name: master, replicas: 1, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: CPU}}}]}}}
---
`
	const bothRun = "work/train-master-0, work/train-worker-0"
	for name, test := range map[string]struct {
		cluster, labels, min, cpu, more string
		binds                           string
	}{
		"the other starts":                 {twoNodes, "", "2", "1", "", bothRun},
		"the other is a gang by itself":    {twoNodes, "", "1", "1", "", bothRun},
		"the other has no place":           {twoNodes, "", "1", "100", "", ""},
		"a label of a queue has no effect": {teams, "kueue.x-k8s.io/queue-name: a", "2", "1", "", bothRun},
		"the other ran at the start": {twoNodes, "", "2", "1", "{apiVersion: v1, kind: Pod, metadata: {namespace: work, name: train-master-0, uid: m, annotations: {volcano.sh/task-spec: master, scheduling.k8s.io/group-name: train-train}}, " +
			"spec: {schedulerName: volcano, nodeName: NODE, containers: [{name: c, image: i}]}, status: {phase: Running}}\n---\n", "work/train-worker-0"},
	} {
		t.Run(name, func(t *testing.T) {
			report := mustSimulate(t, test.cluster+strings.NewReplacer("LABELS", test.labels, "CPU", test.cpu, "MIN", test.min).Replace(job)+strings.Replace(test.more, "NODE", "n1", 1), untilStable)
			var binds []string
			for _, b := range report.Binds {
				binds = append(binds, b.Pod)
			}
			if got := strings.Join(binds, ", "); got != test.binds {
				t.Errorf("bound are %q, want %q", got, test.binds)
			}
			for _, j := range report.Jobs {
				if test.binds != "" && (fmt.Sprint(j.MinAvailable) != test.min || j.Ready != 2) {
					t.Errorf("at the end %d pods are ready, and %d must be", j.Ready, j.MinAvailable)
				}
			}
		})
	}
}
