package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/pages"
)

const withQuotas = `
actions: "enqueue, admit, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: cohorts`

// haveQuotas lets the scheduler admit Workloads, and deletes all of them after the test.
func haveQuotas(t *testing.T) {
	t.Helper()
	tidyUp(t)
	t.Cleanup(func() {
		for _, kind := range []string{"jobs.batch", "workloads.kueue.x-k8s.io", "localqueues", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks"} {
			if _, err := system.Kubectl(context.Background(), "delete", kind, "--all", "--wait=true", "--timeout=60s"); err != nil {
				t.Error(err)
			}
		}
	})
	configure(t, withQuotas)
}

// applyText applies objects.
func applyText(t *testing.T, text string) {
	t.Helper()
	if _, err := system.KubectlWith(t.Context(), text, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

const oneQueue = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: all, namespace: default}
spec: {clusterQueue: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
---
`

// queuedJob is a Job of pods with one CPU each, with labels and annotations of its own.
func queuedJob(name, queue string, pods int, labels string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default, labels: {kueue.x-k8s.io/queue-name: %s%s}}
spec:
  suspend: true
  parallelism: %d
  completions: %d
  template:
    spec:
      schedulerName: volcano
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
---
`, name, queue, labels, pods, pods)
}

// workloadOf is the Workload of a Job.
func workloadOf(ctx context.Context, job string) (*v1beta2.Workload, error) {
	all, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, "job-"+job+"-") {
			return &all.Items[i], nil
		}
	}
	return nil, fmt.Errorf("Job %s has no Workload", job)
}

// awaitCondition waits until the Workload of a Job has a condition with a message that contains a text.
func awaitCondition(t *testing.T, job, kind string, is metav1.ConditionStatus, text string) (found *v1beta2.Workload) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		w, err := workloadOf(ctx, job)
		if err != nil {
			return err
		}
		found = w
		c := meta.FindStatusCondition(w.Status.Conditions, kind)
		if c == nil || c.Status != is || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s is %+v", kind, w.Status.Conditions)
		}
		return nil
	})
	return found
}

// awaitPods waits until so many pods of a Job run, and returns how many stand on each node.
func awaitPods(t *testing.T, job string, count int) map[string]int32 {
	t.Helper()
	var nodes map[string]int32
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + job})
		if err != nil {
			return err
		}
		nodes = map[string]int32{}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp == nil {
				running++
				nodes[pods.Items[i].Spec.NodeName]++
			}
		}
		if running != count {
			return fmt.Errorf("%d of %d pods of %s run", running, count, job)
		}
		return nil
	})
	return nodes
}

func deleteJob(t *testing.T, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := core.BatchV1().Jobs(metav1.NamespaceDefault).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func TestAJobIsAdmittedWithQuotaAndNodes(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	applyText(t, oneQueue+queuedJob("first", "all", 3, ""))
	w := awaitCondition(t, "first", v1beta2.Admitted, metav1.ConditionTrue, "The workload is admitted")
	promised := map[string]int32{}
	nodes, err := settings.Nodes(w.Status.Admission.PodSetAssignments[0].TopologyAssignment)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		promised[n.Node] = n.Count
	}
	if used := awaitPods(t, "first", 3); fmt.Sprint(used) != fmt.Sprint(promised) {
		t.Errorf("the pods stand on %v, and %v were promised", used, promised)
	}

	applyText(t, queuedJob("second", "all", 2, ""))
	awaitCondition(t, "second", v1beta2.QuotaReserved, metav1.ConditionFalse, "insufficient unused quota for cpu in flavor any, 1 more needed")
	restartScheduler(t)
	deleteJob(t, "first")
	awaitCondition(t, "second", v1beta2.Admitted, metav1.ConditionTrue, "")
	awaitPods(t, "second", 2)

	t.Run("one of higher priority takes its place", func(t *testing.T) {
		applyText(t, queuedJob("urgent", "all", 3, ", kueue.x-k8s.io/priority-class: urgent"))
		awaitCondition(t, "urgent", v1beta2.Admitted, metav1.ConditionTrue, "")
		awaitPods(t, "urgent", 3)
		victim := awaitCondition(t, "second", v1beta2.Preempted, metav1.ConditionTrue, "due to prioritization in the ClusterQueue; preemptor path: /all; preemptee path: /all")
		if !meta.IsStatusConditionTrue(victim.Status.Conditions, v1beta2.Evicted) {
			t.Errorf("the victim says %+v", victim.Status.Conditions)
		}
		deleteJob(t, "urgent")
		awaitPods(t, "second", 2)
	})
	nothingWasForbidden(t)
}

func TestAJobThatFitsNoNodeWaits(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 0)
	applyText(t, oneQueue+queuedJob("roomless", "all", 2, ""))
	awaitCondition(t, "roomless", v1beta2.QuotaReserved, metav1.ConditionFalse, "no room on the nodes of flavor any for 2 of 2 pod(s): there are no nodes")
	if _, err := cluster.AddNodes(t.Context(), 1, localcluster.NodeTemplate{}); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, "roomless", 2)
}

// givenByOthers sets up what the API server adds to pods: half a CPU for containers that request none, and half a CPU
// for the sandbox.
const givenByOthers = `
apiVersion: v1
kind: LimitRange
metadata: {name: given, namespace: default}
spec: {limits: [{type: Container, defaultRequest: {cpu: 500m}}]}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: sandboxed}
handler: sandboxed
overhead: {podFixed: {cpu: 500m}}
---
`

func TestWhatPodsAreGivenCounts(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	applyText(t, givenByOthers)
	t.Cleanup(func() {
		for _, object := range []string{"limitrange/given", "runtimeclass/sandboxed"} {
			if _, err := system.Kubectl(context.Background(), "delete", object); err != nil {
				t.Error(err)
			}
		}
	})
	without := func(name string, pods int) string {
		return strings.Replace(queuedJob(name, "all", pods, ""), "resources: {requests: {cpu: 1}}}]", "}]\n      runtimeClassName: sandboxed", 1)
	}
	applyText(t, oneQueue+without("four", 4))
	w := awaitCondition(t, "four", v1beta2.Admitted, metav1.ConditionTrue, "")
	if used := w.Status.Admission.PodSetAssignments[0].ResourceUsage["cpu"]; used.String() != "4" {
		t.Errorf("four pods use %s CPUs", used.String())
	}
	awaitPods(t, "four", 4)
	applyText(t, without("one", 1))
	awaitCondition(t, "one", v1beta2.QuotaReserved, metav1.ConditionFalse, "insufficient unused quota for cpu in flavor any, 1 more needed")
	if w, err := workloadOf(t.Context(), "four"); err != nil || meta.FindStatusCondition(w.Status.Conditions, v1beta2.Evicted) != nil {
		t.Errorf("the first was evicted: %v, %+v", err, w)
	}
	nothingWasForbidden(t)
}

const twoTeams = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: teams
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 3}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-b}
spec:
  cohortName: teams
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 3}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a, namespace: default}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-b, namespace: default}
spec: {clusterQueue: team-b}
---
`

func TestACohortTakesBackWhatItLent(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	applyText(t, twoTeams+queuedJob("b1", "team-b", 3, "")+queuedJob("b2", "team-b", 3, ""))
	awaitPods(t, "b1", 3)
	awaitPods(t, "b2", 3)
	applyText(t, queuedJob("a1", "team-a", 3, ""))
	awaitPods(t, "a1", 3)
	w, err := workloadOf(t.Context(), "b2")
	if err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Preempted) {
		w = awaitCondition(t, "b1", v1beta2.Preempted, metav1.ConditionTrue, "")
	}
	if c := meta.FindStatusCondition(w.Status.Conditions, v1beta2.Preempted); c.Reason != v1beta2.ReasonInCohortReclamation {
		t.Errorf("it was preempted %+v", c)
	}
	if text := kubectl(t, "get", "clusterqueues"); !strings.Contains(text, "teams") {
		t.Errorf("kubectl shows\n%s", text)
	}
}

// The APIServices and the rights are those of installer/visibility.yaml.
func TestKueuesAPIShowsThePlacesOfJobsThatWait(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	applyText(t, strings.Replace(oneQueue, "namespaceSelector: {}", "namespaceSelector: {}\n  stopPolicy: Hold", 1))
	for _, job := range []struct{ name, labels string }{{"calm", ""}, {"urgent", ", kueue.x-k8s.io/priority-class: urgent"}, {"last", ""}} {
		applyText(t, queuedJob(job.name, "all", 1, job.labels))
		apitest.Eventually(t, func(ctx context.Context) error { // a job's place follows from when its Workload was made
			_, err := workloadOf(ctx, job.name)
			return err
		})
		time.Sleep(time.Second) // API times are in seconds
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		for path, position := range map[string]string{"clusterqueues/all": "positionInClusterQueue", "namespaces/default/localqueues/all": "positionInLocalQueue"} {
			apitest.Eventually(t, func(ctx context.Context) error {
				text, err := system.Kubectl(ctx, "get", "--raw", "/apis/visibility.kueue.x-k8s.io/"+version+"/"+path+"/pendingworkloads")
				if err != nil {
					return err
				}
				var answer struct{ Items []map[string]any }
				if err := json.Unmarshal([]byte(text), &answer); err != nil {
					return err
				}
				var got []string
				for _, item := range answer.Items {
					name := item["metadata"].(map[string]any)["name"].(string)
					got = append(got, fmt.Sprintf("%s %v", strings.Split(name, "-")[1], item[position]))
				}
				if want := "urgent 0, calm 1, last 2"; strings.Join(got, ", ") != want {
					return fmt.Errorf("%s in %s: %v, want %s", path, version, got, want)
				}
				return nil
			})
		}
	}
	nothingWasForbidden(t)
}

func TestACheckHoldsAJobBack(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	applyText(t, strings.Replace(oneQueue, "namespaceSelector: {}", "namespaceSelector: {}\n  admissionChecks: [budget]", 1)+`
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
`)
	// The test is the controller of the check.
	kubectl(t, "patch", "admissioncheck", "budget", "--subresource=status", "--type=merge", "-p",
		`{"status": {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
	applyText(t, queuedJob("checked", "all", 2, ""))
	w := awaitCondition(t, "checked", v1beta2.QuotaReserved, metav1.ConditionTrue, "Quota reserved in ClusterQueue all")
	apitest.Eventually(t, func(ctx context.Context) (err error) {
		if w, err = workloadOf(ctx, "checked"); err == nil && len(w.Status.AdmissionChecks) == 0 {
			err = fmt.Errorf("the check is not listed")
		}
		return err
	})
	if meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Admitted) {
		t.Error("it is admitted although its check is pending")
	}
	body := fmt.Sprintf(`{"status": {"admissionChecks": [{"name": "budget", "state": "Ready", "message": "paid", "lastTransitionTime": %q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if _, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).Patch(t.Context(), w.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, "checked", v1beta2.Admitted, metav1.ConditionTrue, "")
	awaitPods(t, "checked", 2)
}

// What docs/quotas-and-cohorts.md shows, word for word, but for bringing up the cluster.
func TestTheWalkThroughOfQuotasShowsWhatThePageSays(t *testing.T) {
	steps := pages.StepsOf(t, "docs/quotas-and-cohorts.md", "## See it")
	if len(steps) < 8 || !strings.Contains(steps[0].Commands, "bin/hekla up --nodes 2") {
		t.Fatalf("the page begins with %+v, of %d steps", steps[0], len(steps))
	}
	haveQuotas(t)
	haveNodes(t, 2)
	r := reader(t)
	for _, s := range steps[1:] {
		r.Follow(t, s)
	}
	nothingWasForbidden(t)
}

// queuedPod is a pod of a group of two, as the webhook leaves it.
func queuedPod(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: all, kueue.x-k8s.io/managed: "true", kueue.x-k8s.io/pod-group-name: pair}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}
spec:
  schedulerName: volcano
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
---
`, name)
}

func TestAGroupOfPodsIsAdmittedWhenItIsComplete(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	applyText(t, oneQueue+queuedPod("pair-0"))
	applyText(t, queuedPod("pair-1"))
	apitest.Eventually(t, func(ctx context.Context) error {
		w, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).Get(ctx, "pair", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Admitted) {
			return fmt.Errorf("the group says %+v", w.Status.Conditions)
		}
		for _, name := range []string{"pair-0", "pair-1"} {
			pod, err := core.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s with gates %v", name, pod.Status.Phase, pod.Spec.SchedulingGates)
			}
		}
		return nil
	})
}
