package workload

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// replicas is a kind of jobs that Hekla does not have: ReplicationControllers, which are suspended by having none. How
// many they are to have is in an annotation.
var replicas = &queueing.Kind{
	GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ReplicationController"), Controller: "replicas",
	New:     func() queueing.Job { return replica{&corev1.ReplicationController{}} },
	NewList: func() client.ObjectList { return &corev1.ReplicationControllerList{} },
}

type replica struct{ *corev1.ReplicationController }

func (r replica) Object() client.Object { return r.ReplicationController }
func (r replica) Kind() *queueing.Kind  { return replicas }
func (r replica) IsSuspended() bool     { return *r.Spec.Replicas == 0 }
func (r replica) IsActive() bool        { return r.Status.Replicas > 0 }
func (r replica) Suspend()              { r.Spec.Replicas = ptr.To(int32(0)) }
func (r replica) KeepsCounts() bool     { return true }

func (r replica) PodSets() []v1beta2.PodSet {
	return []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 3, Template: *r.Spec.Template.DeepCopy()}}
}

func (r replica) Run(infos []queueing.PodSetInfo) error {
	r.Spec.Replicas = &infos[0].Count
	return infos[0].Apply(r.Spec.Template)
}

func (r replica) Restore(sets []v1beta2.PodSet) {
	queueing.RestoreTemplate(r.Spec.Template, &sets[0].Template)
}

func (r replica) Finished() (message string, succeeded, is bool) { return "", false, false }
func (r replica) PodsReady(count int32) bool                     { return r.Status.ReadyReplicas >= count }

func (r replica) Demand() []queueing.Demand {
	return []queueing.Demand{{Name: v1beta2.DefaultPodSetName, Count: 3, Has: r.Status.Replicas}}
}

// played are the controllers of Workloads, and of jobs of one kind, with an API server in memory.
type played struct {
	jobs  *jobs
	lives *lives
	pods  *pods
}

func play(t *testing.T, kind *queueing.Kind, objects ...client.Object) played {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, schedulingv1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1beta2.Workload{}).
		WithIndex(&v1beta2.Workload{}, workloadsByOwner, func(o client.Object) []string { return []string{ownerOf(o)} }).
		WithIndex(&corev1.Pod{}, podsByGroup, func(o client.Object) []string { return []string{groupNameOf(o)} }).Build()
	numbers, err := metrics.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	state := &state{now: time.Now, live: api}
	state.current.Store(&queueing.Policy{IsOn: true})
	w := writer{client: api, events: events.NewFakeRecorder(100), state: state, metrics: numbers, owners: queueing.NewOwnerFinder(api)}
	return played{&jobs{kind: kind, writer: w},
		&lives{client: api, reader: api, events: w.events, state: state, owners: w.owners, kinds: append(queueing.AllKinds(), kind),
			told: cache.NewLRUExpireCache(10)},
		&pods{writer: w, live: api}}
}

// The controllers know of a kind of jobs no more than the entry of the list says: one that they have never seen is
// queued, started, stopped and released like the others.
func TestAnyKindOfJobsIsServed(t *testing.T) {
	rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web", Labels: map[string]string{v1beta2.QueueNameLabel: "main"}},
		Spec: corev1.ReplicationControllerSpec{Replicas: ptr.To(int32(0)), Template: &corev1.PodTemplateSpec{}}}
	flavor := &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "spot"}, Spec: v1beta2.ResourceFlavorSpec{NodeLabels: map[string]string{"kind": "spot"}}}
	p := play(t, replicas, rc, flavor)
	api, w := p.jobs.client, &v1beta2.Workload{}
	// look reconciles the job, and reads both objects.
	look := func() {
		t.Helper()
		_, err := p.jobs.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(rc)})
		for _, problem := range []error{err, api.Get(t.Context(), client.ObjectKeyFromObject(rc), rc),
			api.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: replicas.WorkloadOf(rc)}, w)} {
			if problem != nil {
				t.Fatal(problem)
			}
		}
	}
	decide := func(edit func()) {
		t.Helper()
		edit()
		if err := api.Status().Update(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}

	look()
	if len(w.Spec.PodSets) != 1 || w.Spec.PodSets[0].Count != 3 || w.Spec.QueueName != "main" {
		t.Fatalf("its Workload is %+v", w.Spec)
	}
	decide(func() {
		w.Status.Admission = &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{
			{Name: "main", Count: ptr.To(int32(3)), Flavors: map[corev1.ResourceName]string{"cpu": "spot"}}}}
		conditions.Reserve(w, "cq", time.Now())
		conditions.Admit(w, time.Now())
	})
	look()
	if *rc.Spec.Replicas != 3 || rc.Spec.Template.Spec.NodeSelector["kind"] != "spot" {
		t.Fatalf("admitted it is %+v", rc.Spec)
	}
	decide(func() { conditions.Evict(w, v1beta2.ReasonPreempted, "", "for another", time.Now()) })
	look()
	look()
	if *rc.Spec.Replicas != 0 || rc.Spec.Template.Spec.NodeSelector["kind"] != "" || conditions.Is(w, v1beta2.QuotaReserved) {
		t.Errorf("evicted it is %+v, and its Workload %+v", rc.Spec, w.Status)
	}

	if err := api.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	w.DeletionTimestamp = ptr.To(metav1.Now())
	if outcome, err := p.lives.finishDeletion(t.Context(), w); err != nil || outcome.Again == 0 {
		t.Errorf("its Workload is let go while the job is there: %+v, %v", outcome, err)
	}
}
