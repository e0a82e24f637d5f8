package controllers_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// peakMemory is the most that the process of the controllers ever held.
func peakMemory(t *testing.T) resource.Quantity {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID))
	if err != nil {
		t.Skipf("this system does not tell: %v", err)
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	peak, err := resource.ParseQuantity(strings.TrimSpace(line) + "Ki")
	if !found || err != nil {
		t.Fatalf("no peak of memory in %s: %v", status, err)
	}
	return peak
}

// A tenant submits Jobs with more pods than any cluster has room for. The controllers' memory does not grow with the
// number of pods, and the small Job of another tenant does not wait. This holds if a quota refuses the pods, and if
// they are created.
func TestJobsOfMillionsOfPodsFillNoMemoryAndHoldUpNoOther(t *testing.T) {
	const (
		jobs, replicas = 3, 1_000_000
		longest        = 30 * time.Second // on a machine with much else to do
	)
	most := resource.MustParse("400Mi")
	for _, test := range []struct{ name, pods string }{{"refused", "1"}, {"made", "1500"}} {
		t.Run(test.name, func(t *testing.T) {
			greedy, modest := namespaceFor(t, "greedy"), namespaceFor(t, "modest")
			limit(t, greedy, test.pods)
			var large []*batch.Job
			for i := range jobs {
				job := newJob(greedy, fmt.Sprintf("large-%d", i), task("a", replicas))
				job.Spec.MinAvailable = 1
				job.Spec.Tasks[0].MinAvailable = new(int32(1))
				job.Spec.Tasks[0].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
				create(t, job)
				t.Cleanup(func() { _ = api.Delete(context.Background(), job) })
				setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
				large = append(large, job)
			}
			for range 3 {
				began := time.Now()
				small := newJob(modest, fmt.Sprintf("small-%d", began.UnixMilli()), task("a", 1))
				create(t, small)
				setPhase(t, podGroupOf(small), scheduling.PodGroupInqueue)
				awaitJob(t, small, func(status *batch.JobStatus) bool { return status.Pending == 1 })
				took := time.Since(began)
				t.Logf("a small Job has its pod after %s", took.Round(time.Millisecond))
				if took > longest {
					t.Errorf("a small Job waits for its pod for %s, want %s at most", took, longest)
				}
			}
			for _, job := range large {
				awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Reason == "FailedCreate" })
			}
			peak := peakMemory(t)
			t.Logf("the controllers held %s at the most", &peak)
			if peak.Cmp(most) > 0 {
				t.Errorf("the controllers held %s, want %s at most", &peak, &most)
			}
		})
	}
}

// limit gives a namespace a quota of pods and waits until it is in force.
func limit(t *testing.T, namespace, pods string, scope ...corev1.ScopedResourceSelectorRequirement) {
	t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}},
	}
	if len(scope) > 0 {
		quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: scope}
	}
	create(t, quota)
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		if err == nil && quota.Status.Hard == nil {
			err = fmt.Errorf("the quota is not in force")
		}
		return err
	})
}

func TestWhatAJobDecidesOfItsPodGroupCannotBeChangedThere(t *testing.T) {
	namespace := namespaceFor(t, "moved")
	job := newJob(namespace, "sim", task("a", 2))
	create(t, job)
	group := podGroupOf(job)
	setPhase(t, group, scheduling.PodGroupInqueue)
	awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	before := group.Spec.DeepCopy()
	change(t, group, func(group *scheduling.PodGroup) {
		tier := 1
		group.Spec.Queue, group.Spec.PriorityClassName, group.Spec.MinMember = "other", "system-cluster-critical", 1
		group.Spec.MinTaskMember, group.Spec.MinResources = nil, nil
		group.Spec.NetworkTopology = &scheduling.NetworkTopologySpec{HighestTierAllowed: &tier}
		group.Spec.SubGroupPolicy = []scheduling.SubGroupPolicySpec{{Name: "all"}}
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(group), group)
		if diff := cmp.Diff(before, &group.Spec); err == nil && diff != "" {
			err = fmt.Errorf("the change is not undone (-want +got):\n%s", diff)
		}
		return err
	})
	// The webhook may put a Job of the default queue into that of its namespace, and there it stays.
	ofNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	change(t, ofNamespace, func(namespace *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, scheduling.QueueNameAnnotationKey, "team")
	})
	for _, queue := range []string{"team", "other"} {
		change(t, group, func(group *scheduling.PodGroup) { group.Spec.Queue = queue })
		apitest.Eventually(t, func(ctx context.Context) error {
			err := api.Get(ctx, client.ObjectKeyFromObject(group), group)
			if err == nil && group.Spec.Queue != "team" {
				err = fmt.Errorf("the queue is %s", group.Spec.Queue)
			}
			return err
		})
	}
	quiet := requestsIn(t, namespace)[request{"patch", "podgroups", 200}]
	stays(t, func(context.Context) error {
		if now := requestsIn(t, namespace)[request{"patch", "podgroups", 200}]; now != quiet {
			return fmt.Errorf("the PodGroup was patched %d times more", now-quiet)
		}
		return nil
	})
}

func TestPodsOfAJobHaveItsPriorityAndCountInTheQuotaOfItsClass(t *testing.T) {
	namespace := namespaceFor(t, "urgent")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: 1000}
	create(t, class)
	t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	limit(t, namespace, "1", corev1.ScopedResourceSelectorRequirement{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class.Name},
	})
	job := newJob(namespace, "sim", task("a", 2))
	job.Spec.PriorityClassName = class.Name
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.Pending == 1 && status.State.Reason == "FailedCreate" && strings.Contains(status.State.Message, "exceeded quota")
	})
	if pod := awaitPods(t, namespace, "sim-a-0")["sim-a-0"]; pod.Spec.Priority == nil || *pod.Spec.Priority != 1000 {
		t.Errorf("the priority of the pod is %v", pod.Spec.Priority)
	}
}

// A Job whose pods fail at once and whose policy restarts it, with as many retries as there are numbers.
func TestAJobThatFailsAtOnceIsRestartedAfterPauses(t *testing.T) {
	namespace := namespaceFor(t, "restarts")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.MaxRetry = 1_000_000
	job.Spec.Policies = batch.LifecyclePolicies{{Event: bus.PodFailedEvent, Action: bus.RestartJobAction}}
	create(t, job)
	failAll := func(ctx context.Context) error {
		group := podGroupOf(job)
		if api.Get(ctx, client.ObjectKeyFromObject(group), group) == nil && group.Status.Phase == "" {
			group.Status.Phase = scheduling.PodGroupInqueue
			_ = api.Status().Update(ctx, group)
		}
		pods, err := podsIn(ctx, namespace)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
				pod.Status.Phase = corev1.PodFailed
				_ = api.Status().Update(ctx, pod)
			}
		}
		return err
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := failAll(ctx); err != nil {
			return err
		}
		err := api.Get(ctx, client.ObjectKeyFromObject(job), job)
		if err == nil && job.Status.RetryCount < 4 {
			err = fmt.Errorf("it was restarted %d times", job.Status.RetryCount)
		}
		return err
	})
	began := job.Status.State.LastTransitionTime.Time
	if job.Status.State.Phase != batch.Restarting || !strings.HasSuffix(job.Status.State.Message, "after a pause of 10s") {
		t.Errorf("it is %s: %s", job.Status.State.Phase, job.Status.State.Message)
	}
	// The pause keeps no room, and outlasts the process. A slow machine starts the next process when the pause is over.
	awaitPods(t, namespace)
	awaitGone(t, podGroupOf(job))
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	var err error
	if process, err = cluster.Run(apitest.Context(t), program); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, job, batch.Pending)
	if paused := job.Status.State.LastTransitionTime.Sub(began); paused < 10*time.Second {
		t.Errorf("it went on after %s", paused)
	}
}

func TestAJobSaysWhatItsPodGroupWaitsFor(t *testing.T) {
	job := newJob(namespaceFor(t, "waits"), "sim", task("a", 1))
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupPending, scheduling.PodGroupCondition{
		Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Reason: "NotEnoughResources", Message: "1 cpu short",
	})
	awaitEvent(t, job, "PodGroupPending", "unschedule, reason: NotEnoughResources: 1 cpu short")
}

func TestPeersAreToldBeforePodsOfAJobThatShrinksGo(t *testing.T) {
	namespace := namespaceFor(t, "peers")
	job := newJob(namespace, "sim", task("a", 3))
	job.Spec.MinAvailable = 1
	job.Spec.Tasks[0].MinAvailable = new(int32(1))
	job.Spec.Plugins = map[string][]string{"svc": {}}
	start(t, job, "sim-a-0", "sim-a-1", "sim-a-2")
	change(t, job, func(job *batch.Job) { job.Spec.Tasks[0].Replicas = 2 })
	awaitPods(t, namespace, "sim-a-0", "sim-a-1")
	log := requestLog(t, namespace)
	told, gone := slices.Index(log, request{"patch", "configmaps", 200}), slices.Index(log, request{"delete", "pods", 200})
	if told < 0 || gone < told {
		t.Errorf("the ConfigMap is written with request %d, the pod deleted with request %d", told, gone)
	}
}
