package edge

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/apitest"
)

// schedulerClients are clients with the documented permissions, and no other.
func schedulerClients(t *testing.T, name string) *apiserver.Clients {
	t.Helper()
	admin, c := adminClients(t)
	clusterRules, rules := documentedRules(t)
	clients, err := apiserver.Connect(confined(t, c, admin.Core, name, clusterRules, rules), 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func createWorkload(t *testing.T, clients *apiserver.Clients, namespace string) *v1beta2.Workload {
	t.Helper()
	made, err := clients.Batch.KueueV1beta2().Workloads(namespace).Create(apitest.Context(t), &v1beta2.Workload{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: v1beta2.WorkloadSpec{QueueName: "lq", PodSets: []v1beta2.PodSet{{Name: "main", Count: 2, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "image"}}}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func readWorkload(t *testing.T, clients *apiserver.Clients, w *v1beta2.Workload) *v1beta2.Workload {
	t.Helper()
	live, err := clients.Batch.KueueV1beta2().Workloads(w.Namespace).Get(apitest.Context(t), w.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func TestObjectsOfKueueAreSeenUnlessKueueRuns(t *testing.T) {
	admin, _ := adminClients(t)
	namespace := space(t, admin)
	w := createWorkload(t, admin, namespace)
	notices := make(chan decision.Notice, 10)
	inbox := startInbox(t, schedulerClients(t, "reader-of-kueue"), intake.Options{KueuePause: 50 * time.Millisecond, KueueRuns: func(n decision.Notice) { notices <- n }})
	isOurs := isSet(w.UID, func(*v1beta2.Workload) bool { return true })
	await(t, inbox, "the Workload", isOurs)

	lease, end := kueueRuns(t, admin)
	await(t, inbox, "the end of the Workload", func(e cache.Event) bool {
		gone, is := e.(cache.Delete)
		if !is {
			return false
		}
		o, is := gone.Object.(*v1beta2.Workload)
		return is && o.UID == w.UID
	})
	if n := <-notices; n.Reason != serving.KueueRunsReason || n.Regarding.Name != lease.Name {
		t.Errorf("told is %+v", n)
	}
	end()
	await(t, inbox, "the Workload after Kueue", isOurs)
}

// kueueRuns makes it look as if Kueue runs, by its Lease, until end is called.
func kueueRuns(t *testing.T, admin *apiserver.Clients) (lease *coordinationv1.Lease, end func()) {
	t.Helper()
	leases := admin.Core.CoordinationV1().Leases("default")
	lease, err := leases.Create(apitest.Context(t), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: v1beta2.LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("kueue"), LeaseDurationSeconds: ptr.To(int32(600)), RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease, func() {
		if err := leases.Delete(apitest.Context(t), lease.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Kueue writes the name of the Workload on the pods that it starts.
func TestWhileKueueRunsPodsBelongToNoWorkload(t *testing.T) {
	admin, _ := adminClients(t)
	namespace := space(t, admin)
	pod := createPod(t, admin, namespace, "started-by-kueue")
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "w"}}}`, v1beta2.WorkloadAnnotation)
	if _, err := admin.Core.CoreV1().Pods(namespace).Patch(apitest.Context(t), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	inbox := startInbox(t, schedulerClients(t, "reader-of-pods"), intake.Options{KueuePause: 50 * time.Millisecond})
	isOf := func(workload string) func(cache.Event) bool {
		return isSet(pod.UID, func(p *cluster.Pod) bool { return p.Annotations[v1beta2.WorkloadAnnotation] == workload })
	}
	await(t, inbox, "the pod of a Workload", isOf("w"))
	_, end := kueueRuns(t, admin)
	await(t, inbox, "the pod of none", isOf(""))
	end()
	await(t, inbox, "the pod of a Workload after Kueue", isOf("w"))
}

// results starts an outbox with the documented permissions, and returns what the loop learns.
func results(t *testing.T, name string) (*Outbox, <-chan cache.Event) {
	t.Helper()
	told := make(chan cache.Event, 100)
	o := NewOutbox(schedulerClients(t, name), OutboxOptions{Name: "volcano", Logger: logr.Discard(), Workload: func(e cache.Event) { told <- e }})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(o.Wait)
	t.Cleanup(cancel)
	o.Start(ctx)
	return o, told
}

func reservation() *v1beta2.Admission {
	return &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{{Name: "main", Count: ptr.To(int32(2)),
		Flavors:       map[corev1.ResourceName]string{"cpu": "default"},
		ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("2")}, TopologyAssignment: settings.Topology([]settings.NodeCount{{Node: "a", Count: 2}})}}}
}

func next(t *testing.T, told <-chan cache.Event) cache.Event {
	t.Helper()
	select {
	case e := <-told:
		return e
	case <-time.After(apitest.Patience):
		t.Fatal("the loop is told nothing")
		return nil
	}
}

func TestDecisionsAboutWorkloadsAreWrittenAndTold(t *testing.T) {
	admin, _ := adminClients(t)
	namespace := space(t, admin)
	o, told := results(t, "writer-of-workloads")
	w := createWorkload(t, admin, namespace)
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	status := decision.WorkloadStatus{Workload: key, UID: w.UID, Read: w, At: time.Now(), Reserve: reservation(), Admit: true}

	// A controller writes another condition after it was read.
	changed := w.DeepCopy()
	conditions.Pend(changed, v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation, time.Now())
	if _, err := admin.Batch.KueueV1beta2().Workloads(namespace).UpdateStatus(apitest.Context(t), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Do(decision.Decisions{Workloads: []decision.WorkloadStatus{status}})
	written, is := next(t, told).(cache.WorkloadWritten)
	live := readWorkload(t, admin, w)
	if !is || written.Version != live.ResourceVersion || !conditions.Is(live, v1beta2.Admitted) || live.Status.Admission == nil {
		t.Fatalf("told is %+v, and the Workload says %+v", written, live.Status)
	}
	if nodes, err := settings.Nodes(live.Status.Admission.PodSetAssignments[0].TopologyAssignment); err != nil || len(nodes) != 1 {
		t.Errorf("it stands on %v, %v", nodes, err)
	}

	// Evicted, with the conditions of before kept.
	o.Do(decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, UID: w.UID, Read: live, At: time.Now(),
		Evict: &decision.WorkloadEviction{Reason: v1beta2.ReasonPreempted, Message: "why", Preempted: v1beta2.ReasonInClusterQueue}}}})
	if _, is := next(t, told).(cache.WorkloadWritten); !is {
		t.Error("the eviction was not written")
	}
	live = readWorkload(t, admin, w)
	if !conditions.Is(live, v1beta2.Evicted) || !conditions.Is(live, v1beta2.Preempted) || !conditions.Is(live, v1beta2.QuotaReserved) {
		t.Errorf("the Workload says %+v", live.Status.Conditions)
	}
}

func TestWhatDoesNotHoldAnyMoreIsNotWritten(t *testing.T) {
	admin, _ := adminClients(t)
	namespace := space(t, admin)
	o, told := results(t, "late-writer")
	for name, change := range map[string]func(*v1beta2.Workload) error{
		"made inactive": func(w *v1beta2.Workload) error {
			w.Spec.Active = ptr.To(false)
			_, err := admin.Batch.KueueV1beta2().Workloads(namespace).Update(apitest.Context(t), w, metav1.UpdateOptions{})
			return err
		},
		"deleted": func(w *v1beta2.Workload) error {
			return admin.Batch.KueueV1beta2().Workloads(namespace).Delete(apitest.Context(t), w.Name, metav1.DeleteOptions{})
		},
		"finished": func(w *v1beta2.Workload) error {
			conditions.Finish(w, v1beta2.ReasonSucceeded, "", time.Now())
			_, err := admin.Batch.KueueV1beta2().Workloads(namespace).UpdateStatus(apitest.Context(t), w, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := createWorkload(t, admin, namespace)
			if err := change(w.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
			o.Do(decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, UID: w.UID, Read: w, At: time.Now(), Reserve: reservation(), Admit: true}}})
			if e, is := next(t, told).(cache.WorkloadFailed); !is || e.Workload != key || e.UID != w.UID {
				t.Errorf("told is %+v", e)
			}
			if live, err := admin.Batch.KueueV1beta2().Workloads(namespace).Get(apitest.Context(t), w.Name, metav1.GetOptions{}); err == nil && live.Status.Admission != nil {
				t.Error("it holds quota")
			}
		})
	}
	t.Run("refused by the API server", func(t *testing.T) {
		w := createWorkload(t, admin, namespace)
		key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
		bad := reservation()
		bad.PodSetAssignments = append(bad.PodSetAssignments, v1beta2.PodSetAssignment{Name: "other"})
		o.Do(decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, UID: w.UID, Read: w, At: time.Now(), Reserve: bad}}})
		if _, is := next(t, told).(cache.WorkloadFailed); !is {
			t.Error("it was written")
		}
	})
}

func TestAPlanIsRecordedAndTakenAway(t *testing.T) {
	admin, _ := adminClients(t)
	o, _ := results(t, "planner-of-workloads")
	w := createWorkload(t, admin, space(t, admin))
	key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
	for _, record := range []string{`{"id":"1"}`, ""} {
		o.Do(decision.Decisions{WorkloadPlans: []decision.WorkloadPlan{{Workload: key, UID: w.UID, Record: record}}})
		eventually(t, func(context.Context) string {
			if have := readWorkload(t, admin, w).Annotations[v1beta2.PlanAnnotation]; have != record {
				return "the record is " + have
			}
			return ""
		})
	}
}
