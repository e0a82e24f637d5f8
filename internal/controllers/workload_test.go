package controllers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/test/apitest"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
)

// quotaFor makes a flavor, a ClusterQueue and a LocalQueue for one test, all with the name of its namespace.
func quotaFor(t *testing.T, namespace string) {
	t.Helper()
	flavor := &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1beta2.ResourceFlavorSpec{
		NodeLabels:  map[string]string{"kind": "spot"},
		Tolerations: []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}}
	queue := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1beta2.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []v1beta2.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []v1beta2.FlavorQuotas{{
			Name: namespace, Resources: []v1beta2.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("4")}}}}}},
	}}
	createForTest(t, flavor, queue, &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: v1beta2.LocalQueueSpec{ClusterQueue: namespace}})
}

// queuedJob is a Job of so many pods for the LocalQueue q.
func queuedJob(namespace, name string, pods int32) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1beta2.QueueNameLabel: "q"}},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, BackoffLimit: ptr.To(int32(0))}}
	job.Spec.Template.Spec = podSpec()
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
	return job
}

// awaitWorkload waits until the Workload of a Job is as the condition wants it.
func awaitWorkload(t *testing.T, job *batchv1.Job, condition func(*v1beta2.Workload) error) *v1beta2.Workload {
	t.Helper()
	w := &v1beta2.Workload{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		name := queueing.WorkloadName(batchv1.SchemeGroupVersion.WithKind("Job"), job.Name, job.UID)
		if err := api.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, w); err != nil {
			return err
		}
		return condition(w)
	})
	return w
}

// saying returns an error unless a condition of the Workload has this status, reason and message.
func saying(kind string, status metav1.ConditionStatus, reason, message string) func(*v1beta2.Workload) error {
	return func(w *v1beta2.Workload) error {
		if c := conditions.Of(w, kind); c == nil || c.Status != status || c.Reason != reason || c.Message != message {
			return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
		}
		return nil
	}
}

func exists(*v1beta2.Workload) error { return nil }

// awaitBatchJob waits until the Job is as the condition wants it.
func awaitBatchJob(t *testing.T, job *batchv1.Job, condition func() bool) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(job), job)
		if err == nil && !condition() {
			err = fmt.Errorf("suspend is %v, the annotations are %v, the template is %+v, the status %+v", *job.Spec.Suspend, job.Annotations, job.Spec.Template, job.Status)
		}
		return err
	})
}

// admitWorkload plays the scheduler: it admits a Workload with so many pods.
func admitWorkload(t *testing.T, w *v1beta2.Workload, count int32) {
	t.Helper()
	changeStatus(t, w, func(w *v1beta2.Workload) {
		w.Status.Admission = &v1beta2.Admission{ClusterQueue: w.Namespace, PodSetAssignments: []v1beta2.PodSetAssignment{{
			Name: "main", Count: &count, Flavors: map[corev1.ResourceName]string{"cpu": w.Namespace},
			ResourceUsage:      corev1.ResourceList{"cpu": *resource.NewQuantity(int64(count), resource.DecimalSI)},
			TopologyAssignment: settings.Topology([]settings.NodeCount{{Node: "n1", Count: count}}),
		}}}
		conditions.Reserve(w, w.Namespace, time.Now())
		conditions.Admit(w, time.Now())
	})
}

// evictWorkload plays the scheduler: it preempts a Workload.
func evictWorkload(t *testing.T, w *v1beta2.Workload) {
	t.Helper()
	const message = "Preempted to accommodate a workload"
	changeStatus(t, w, func(w *v1beta2.Workload) {
		conditions.Set(w, v1beta2.Preempted, true, v1beta2.ReasonInClusterQueue, message, time.Now())
		conditions.Evict(w, v1beta2.ReasonPreempted, v1beta2.ReasonInClusterQueue, message, time.Now())
	})
}

func TestAJobRunsWhileItsWorkloadIsAdmitted(t *testing.T) {
	namespace := namespaceFor(t, "workload")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 2)
	create(t, job)

	w := awaitWorkload(t, job, saying(v1beta2.QuotaReserved, metav1.ConditionFalse, v1beta2.ReasonPendingEvaluation, "Workload is pending evaluation in the scheduling queue"))
	if !strings.HasPrefix(w.Name, "job-train-") || w.Labels[v1beta2.JobUIDLabel] != string(job.UID) || !metav1.IsControlledBy(w, job) ||
		len(w.Finalizers) != 1 || w.Spec.QueueName != "q" || w.Spec.PodSets[0].Count != 2 || *w.Spec.Priority != 0 {
		t.Errorf("the Workload is %+v", w)
	}
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && job.Status.Active == 0 })
	queued := job.Spec.Template.DeepCopy()

	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	template := &job.Spec.Template
	if template.Spec.NodeSelector["kind"] != "spot" || template.Spec.NodeSelector["zone"] != "a" || len(template.Spec.Tolerations) != 1 ||
		template.Labels[v1beta2.PodSetLabel] != "main" || template.Annotations[v1beta2.WorkloadAnnotation] != w.Name {
		t.Errorf("the template is %+v", template)
	}
	awaitEvent(t, job, "Started", "Admitted by clusterQueue "+namespace)
	awaitWorkload(t, job, saying(v1beta2.PodsReady, metav1.ConditionFalse, v1beta2.ReasonWaitForStart, "Not all pods are ready or succeeded"))

	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool {
		return *job.Spec.Suspend && job.Status.Active == 0 && job.Spec.Template.Labels[v1beta2.PodSetLabel] == ""
	})
	if template := &job.Spec.Template; template.Spec.NodeSelector["kind"] != "" || len(template.Spec.Tolerations) != len(queued.Spec.Tolerations) ||
		template.Labels[v1beta2.PodSetLabel] != "" || template.Labels[batchv1.ControllerUidLabel] != string(job.UID) {
		t.Errorf("after the stop the template is %+v", template)
	}
	w = awaitWorkload(t, job, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonPreempted, "Preempted to accommodate a workload"))
	if w.Status.Admission != nil || conditions.Is(w, v1beta2.QuotaReserved) || conditions.Is(w, v1beta2.Admitted) || w.Status.SchedulingStats.Evictions[0].Count != 1 {
		t.Errorf("after the stop the status is %+v", w.Status)
	}

	admitWorkload(t, w, 2)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	var pods []*corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) error {
		all, err := podsIn(ctx, namespace)
		pods = nil
		for _, pod := range all {
			if pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
		if err == nil && len(pods) != 2 {
			err = fmt.Errorf("%d pods", len(pods))
		}
		return err
	})
	finish(t, corev1.PodSucceeded, pods...)
	w = awaitWorkload(t, job, func(w *v1beta2.Workload) error {
		if !conditions.Is(w, v1beta2.Finished) || len(w.Finalizers) > 0 {
			return fmt.Errorf("the Workload is %+v", w)
		}
		return nil
	})
	if c := conditions.Of(w, v1beta2.Finished); c.Reason != v1beta2.ReasonSucceeded {
		t.Errorf("it has finished with %+v", c)
	}
}

func TestPodsOfAnotherSchedulerAreSentToTheNodesOfTheirWorkload(t *testing.T) {
	namespace := namespaceFor(t, "steered")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 3)
	job.Spec.Suspend = ptr.To(true) // as the webhook leaves it: nothing makes pods before the Workload is admitted
	job.Spec.Template.Spec.SchedulerName = "default-scheduler"
	create(t, job)
	w := awaitWorkload(t, job, exists)
	count := int32(3)
	changeStatus(t, w, func(w *v1beta2.Workload) {
		w.Status.Admission = &v1beta2.Admission{ClusterQueue: w.Namespace, PodSetAssignments: []v1beta2.PodSetAssignment{{
			Name: "main", Count: &count, Flavors: map[corev1.ResourceName]string{"cpu": w.Namespace},
			TopologyAssignment: settings.Topology([]settings.NodeCount{{Node: "n1", Count: 2}, {Node: "n2", Count: 1}}),
		}}}
		conditions.Reserve(w, w.Namespace, time.Now())
		conditions.Admit(w, time.Now())
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err != nil {
			return err
		}
		nodes := map[string]int{}
		for _, pod := range pods {
			if len(pod.Spec.SchedulingGates) == 0 {
				nodes[pod.Spec.NodeSelector[corev1.LabelHostname]]++
			}
		}
		if nodes["n1"] != 2 || nodes["n2"] != 1 {
			return fmt.Errorf("the nodes of %d pods are %v", len(pods), nodes)
		}
		return nil
	})
	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && len(job.Spec.Template.Spec.SchedulingGates) == 0 })
}

// The third write of an admission is the scheduler's.
func TestAnAdmissionCostsTheControllersTwoWrites(t *testing.T) {
	namespace := namespaceFor(t, "writes")
	quotaFor(t, namespace)
	const jobs = 20
	for i := range jobs {
		job := queuedJob(namespace, fmt.Sprintf("train-%d", i), 1)
		job.Spec.Suspend = ptr.To(true) // as the webhook leaves it
		create(t, job)
		admitWorkload(t, awaitWorkload(t, job, exists), 1)
		awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
	}
	requests := requestsIn(t, namespace)
	if created, started := requests[request{"create", "workloads", 201}], requests[request{"patch", "jobs", 200}]; created != jobs || started != jobs {
		t.Errorf("%d Workloads were created and %d Jobs written for %d admissions", created, started, jobs)
	}
}

func TestAJobIsAdmittedInPartAndBecomesWholeAgain(t *testing.T) {
	namespace := namespaceFor(t, "partial")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 4)
	job.Annotations = map[string]string{v1beta2.JobMinParallelismAnnotation: "2"}
	job.Spec.Completions = nil
	create(t, job)
	w := awaitWorkload(t, job, exists)
	if p := w.Spec.PodSets[0]; p.Count != 4 || p.MinCount == nil || *p.MinCount != 2 {
		t.Errorf("the podset is %+v", p)
	}
	admitWorkload(t, w, 3)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend && *job.Spec.Parallelism == 3 })
	evictWorkload(t, w)
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend && *job.Spec.Parallelism == 4 })
}

func TestAWorkloadFollowsItsJobUntilItHoldsQuota(t *testing.T) {
	namespace := namespaceFor(t, "follow")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 1)
	create(t, job)
	first := awaitWorkload(t, job, exists)
	change(t, job, func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To(int32(3)); j.Spec.Template.Spec.NodeSelector = nil })
	// The completions stay 1.
	w := awaitWorkload(t, job, func(w *v1beta2.Workload) error {
		if len(w.Spec.PodSets[0].Template.Spec.NodeSelector) > 0 || w.UID != first.UID {
			return fmt.Errorf("the podset is %+v", w.Spec.PodSets[0])
		}
		return nil
	})
	version := w.ResourceVersion
	stays(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil || w.Generation > first.Generation+1 {
			return fmt.Errorf("it is written again and again: %s after %s, %v", w.ResourceVersion, version, err)
		}
		return nil
	})
	// A Workload that is deleted is made again.
	if err := api.Delete(apitest.Context(t), w); err != nil {
		t.Fatal(err)
	}
	awaitWorkload(t, job, func(again *v1beta2.Workload) error {
		if again.UID == w.UID {
			return fmt.Errorf("it is the one that was deleted: %v", again.Finalizers)
		}
		return nil
	})
	// One whose Job is gone goes.
	if err := api.Delete(apitest.Context(t), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		left := &v1beta2.WorkloadList{}
		if err := api.List(ctx, left, client.InNamespace(namespace)); err != nil || len(left.Items) > 0 {
			return fmt.Errorf("%d Workloads are left: %v", len(left.Items), err)
		}
		return nil
	})
}

func TestAnInactiveWorkloadIsStoppedAndComesBack(t *testing.T) {
	namespace := namespaceFor(t, "inactive")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 1)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 1)
	awaitBatchJob(t, job, func() bool { return !*job.Spec.Suspend })
	change(t, w, func(w *v1beta2.Workload) { w.Spec.Active = ptr.To(false) })
	awaitBatchJob(t, job, func() bool { return *job.Spec.Suspend })
	awaitWorkload(t, job, saying(v1beta2.QuotaReserved, metav1.ConditionFalse, v1beta2.ReasonDeactivated, "The workload is deactivated"))
	awaitWorkload(t, job, saying(v1beta2.Evicted, metav1.ConditionTrue, v1beta2.ReasonDeactivated, "The workload is deactivated"))
	change(t, w, func(w *v1beta2.Workload) { w.Spec.Active = ptr.To(true) })
	awaitWorkload(t, job, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonReactivated, "The workload was reactivated"))
}

func TestQueuesSayWhatTheyHoldAndWhetherTheyAreInUse(t *testing.T) {
	namespace := namespaceFor(t, "queues")
	quotaFor(t, namespace)
	for _, name := range []string{"a", "b"} {
		create(t, queuedJob(namespace, name, 2))
	}
	first := queuedJob(namespace, "a", 2)
	admitWorkload(t, awaitWorkload(t, first, exists), 2)
	queue := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	local := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
	is := func(object client.Object, of *[]metav1.Condition, ok func() bool, reason, message string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(*of, v1beta2.ActiveCondition); c == nil || c.Reason != reason || c.Message != message || !ok() {
				return fmt.Errorf("it is %+v", object)
			}
			return nil
		})
	}
	is(queue, &queue.Status.Conditions, func() bool {
		s := &queue.Status
		return s.PendingWorkloads == 1 && s.ReservingWorkloads == 1 && s.AdmittedWorkloads == 1 && len(s.FlavorsUsage) == 1 && s.FlavorsUsage[0].Resources[0].Total.Value() == 2
	}, "Ready", "Can admit new workloads")
	is(local, &local.Status.Conditions, func() bool {
		s := &local.Status
		return s.PendingWorkloads == 1 && s.AdmittedWorkloads == 1 && len(s.FlavorUsage) == 1 && s.FlavorUsage[0].Resources[0].Total.Value() == 2
	}, "Ready", "Can submit new workloads to localQueue")

	apitest.Eventually(t, func(ctx context.Context) error {
		shown, err := numbers(ctx, "cluster_queue", namespace)
		if err != nil || shown[fmt.Sprintf("kueue_admitted_active_workloads{cluster_queue=%q}", namespace)] != "1" {
			return fmt.Errorf("the metrics are %v, %v", shown, err)
		}
		return nil
	})
	change(t, queue, func(q *v1beta2.ClusterQueue) { q.Spec.StopPolicy = ptr.To(v1beta2.HoldAndDrain) })
	is(queue, &queue.Status.Conditions, func() bool { return queue.Status.AdmittedWorkloads == 0 }, "Stopped", "Can't admit new workloads: is stopped.")
	is(local, &local.Status.Conditions, func() bool { return true }, "ClusterQueueIsInactive", "Can't submit new workloads to clusterQueue")
	awaitWorkload(t, first, saying(v1beta2.Requeued, metav1.ConditionFalse, v1beta2.ReasonClusterQueueStopped, "The ClusterQueue is stopped"))
	apitest.Eventually(t, func(ctx context.Context) error {
		if shown, err := numbers(ctx, "cluster_queue", namespace); err != nil || shown[fmt.Sprintf("kueue_evicted_workloads_total{cluster_queue=%q,reason=\"ClusterQueueStopped\"}", namespace)] != "1" {
			return fmt.Errorf("the metrics are %v, %v", shown, err)
		}
		return nil
	})
	change(t, queue, func(q *v1beta2.ClusterQueue) {
		q.Spec.StopPolicy = nil
		q.Spec.AdmissionScope = &v1beta2.AdmissionScope{AdmissionMode: "UsageBasedAdmissionFairSharing"}
	})
	is(queue, &queue.Status.Conditions, func() bool { return true }, "NotSupported",
		"Can't admit new workloads: spec.admissionScope is set, and Hekla does not serve it.")
	awaitWorkload(t, first, saying(v1beta2.Requeued, metav1.ConditionTrue, v1beta2.ReasonClusterQueueRestarted, "The ClusterQueue was restarted after being stopped"))
}

func TestWhatIsHeldCountsInTheClusterQueueThatHasGivenIt(t *testing.T) {
	namespace := namespaceFor(t, "moved")
	quotaFor(t, namespace)
	job := queuedJob(namespace, "train", 2)
	create(t, job)
	w := awaitWorkload(t, job, exists)
	admitWorkload(t, w, 2)
	holds := func(name string, workloads int32, cpus int64) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			q := &v1beta2.ClusterQueue{}
			if err := api.Get(ctx, client.ObjectKey{Name: name}, q); err != nil {
				return err
			}
			if s := &q.Status; s.AdmittedWorkloads != workloads || s.PendingWorkloads != 0 || len(s.FlavorsUsage) != 1 || s.FlavorsUsage[0].Resources[0].Total.Value() != cpus {
				return fmt.Errorf("the status is %+v", s)
			}
			return nil
		})
	}
	holds(namespace, 1, 2)
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := podsIn(ctx, namespace)
		if err != nil || len(pods) != 2 {
			return fmt.Errorf("%d pods: %v", len(pods), err)
		}
		for _, pod := range pods { // the first that is met
			pod.Status.Phase = corev1.PodSucceeded
			return api.Status().Update(ctx, pod)
		}
		return nil
	})
	holds(namespace, 1, 1)

	queue := &v1beta2.ClusterQueue{}
	if err := api.Get(apitest.Context(t), client.ObjectKey{Name: namespace}, queue); err != nil {
		t.Fatal(err)
	}
	other := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-other"}, Spec: queue.Spec}
	local := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}}
	if err := api.Delete(apitest.Context(t), local); err != nil {
		t.Fatal(err)
	}
	gone(t, local.DeepCopy())
	createForTest(t, other, &v1beta2.LocalQueue{ObjectMeta: local.ObjectMeta, Spec: v1beta2.LocalQueueSpec{ClusterQueue: other.Name}})
	holds(other.Name, 0, 0)
	holds(namespace, 1, 1)
}

func TestWhileKueueRunsItsObjectsAreLeftToIt(t *testing.T) {
	namespace := namespaceFor(t, "kueue")
	quotaFor(t, namespace)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1beta2.LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("kueue"), LeaseDurationSeconds: ptr.To(int32(60)), RenewTime: ptr.To(metav1.NowMicro())}}
	create(t, lease)
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), lease); err != nil {
			t.Error(err)
		}
	})
	awaitEvent(t, lease, serving.KueueRunsReason, "Kueue itself runs")
	job := queuedJob(namespace, "train", 1)
	create(t, job)
	stays(t, func(ctx context.Context) error {
		all := &v1beta2.WorkloadList{}
		if err := api.List(ctx, all, client.InNamespace(namespace)); err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%d Workloads: %v", len(all.Items), err)
		}
		return nil
	})
	if err := api.Delete(apitest.Context(t), lease); err != nil {
		t.Fatal(err)
	}
	awaitWorkload(t, job, exists)
	create(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1beta2.LeaseName}}) // held by none
}

// awaitObject waits until an object is as the condition wants it.
func awaitObject(t *testing.T, object client.Object, condition func() error) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return condition()
	})
}
