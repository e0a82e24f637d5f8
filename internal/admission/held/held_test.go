package held_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hekla.sh/hekla/internal/admission/held"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// cached is a cache that reads the API server in memory.
type cached struct {
	informertest.FakeInformers
	reader client.Reader
}

func (c *cached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.reader.Get(ctx, key, object, options...)
}

func (c *cached) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	return c.reader.List(ctx, list)
}

// apiServer returns one in memory with some objects.
func apiServer(objects ...client.Object) (client.Client, *runtime.Scheme) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build(), scheme
}

var configuration = client.ObjectKey{Namespace: "volcano-system", Name: "volcano-scheduler-configmap"}

// configured is the ConfigMap of a scheduler.
func configured(text string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configuration.Namespace, Name: configuration.Name}, Data: map[string]string{"volcano-scheduler.conf": text}}
}

const admits = "actions: admit\ntiers: [{plugins: [{name: cohorts}]}]"

// look looks once at a cluster with some objects.
func look(known held.Known, objects ...client.Object) (held.Known, error) {
	api, scheme := apiServer(objects...)
	return held.NewWatch(api, &cached{FakeInformers: informertest.FakeInformers{Scheme: scheme}, reader: api}, configuration).Look(context.Background(), known)
}

// A webhook learns whether Jobs are held back, and which it is to be asked about.
func ExampleWatch() {
	known, err := look(held.Known{}, configured(admits))
	fmt.Println(known.AreAdmitted(), err)
	for _, condition := range known.Jobs() {
		fmt.Println(condition.Name)
	}
	// Output:
	// true <nil>
	// is-queued
	// has-no-queued-owner
}

func lease(renewed time.Time) client.Object {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kueue-system", Name: v1beta2.LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("kueue"), LeaseDurationSeconds: ptr.To(int32(15)), RenewTime: &metav1.MicroTime{Time: renewed}}}
}

func TestNothingIsHeldBackThatTheSchedulerWouldNotAdmit(t *testing.T) {
	if (held.Known{}).AreAdmitted() {
		t.Error("what knows nothing holds back")
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    bool
	}{
		"by the configuration":            {[]client.Object{configured(admits)}, true},
		"without the action":              {[]client.Object{configured("actions: allocate\ntiers: [{plugins: [{name: cohorts}]}]")}, false},
		"while Kueue runs":                {[]client.Object{configured(admits), lease(time.Now())}, false},
		"after Kueue has run":             {[]client.Object{configured(admits), lease(time.Now().Add(-time.Hour))}, true},
		"by default, without a ConfigMap": {nil, true},
	} {
		if known, err := look(held.Known{IsOn: !c.want}, c.objects...); err != nil || known.AreAdmitted() != c.want {
			t.Errorf("%s: %+v, %v", name, known, err)
		}
	}
}

func TestWhatCannotBeReadStaysAsItWas(t *testing.T) {
	before := held.Known{IsOn: true, HoldsUnnamed: true, Managed: "team=red"}
	if known, err := look(before, configured("actions: [")); err == nil || known != before {
		t.Errorf("%+v, %v", known, err)
	}
}

func TestUnnamedJobsAreLookedAtOnlyWhereTheyMayBeQueued(t *testing.T) {
	queue := func(name string) client.Object {
		return &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	}
	unnamed := configured("actions: admit\ntiers: [{plugins: [{name: cohorts, arguments: {manageJobsWithoutQueueName: true}}]}]")
	for name, c := range map[string]struct {
		objects []client.Object
		named   bool // only those that name a LocalQueue
	}{
		"no LocalQueue":            {[]client.Object{configured(admits)}, true},
		"another LocalQueue":       {[]client.Object{configured(admits), queue("main")}, true},
		"a LocalQueue for them":    {[]client.Object{configured(admits), queue("default")}, false},
		"by the configuration too": {[]client.Object{unnamed}, false},
	} {
		known, err := look(held.Known{}, c.objects...)
		if got := known.Jobs()[0].Name == "is-queued"; err != nil || got != c.named {
			t.Errorf("with %s: %+v, %v", name, known, err)
		}
	}
	api, _ := apiServer(queue("default"))
	for namespace, want := range map[string]bool{"team": true, "other": false} {
		if has, err := held.HasDefaultQueue(t.Context(), api, namespace); err != nil || has != want {
			t.Errorf("%s has a LocalQueue for them: %v, %v", namespace, has, err)
		}
	}
}

func TestAPodIsLeftToItsJobOnlyIfThatIsQueued(t *testing.T) {
	job := func(name string, labels map[string]string) client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: labels}}
	}
	pod := func(kind, version, name string, uid types.UID) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Namespace: "team", Name: "p", OwnerReferences: []metav1.OwnerReference{{Kind: kind, APIVersion: version, Name: name, UID: uid, Controller: ptr.To(true)}}}
	}
	api, _ := apiServer(job("queued", map[string]string{v1beta2.QueueNameLabel: "main"}), job("free", nil))
	finder := held.NewFinder(api)
	for name, c := range map[string]struct {
		pod  *metav1.ObjectMeta
		want bool
	}{
		"no owner":                {&metav1.ObjectMeta{Namespace: "team", Name: "p"}, false},
		"a ReplicaSet":            {pod("ReplicaSet", "apps/v1", "queued", "queued"), false},
		"a Job that is queued":    {pod("Job", "batch/v1", "queued", "queued"), true},
		"a former Job of a name":  {pod("Job", "batch/v1", "queued", "former"), false},
		"a Job that is not":       {pod("Job", "batch/v1", "free", "free"), false},
		"a Job of Volcano always": {pod("Job", "batch.volcano.sh/v1alpha1", "any", "any"), true},
	} {
		if got, err := finder.IsByItsOwner(t.Context(), held.Known{}, c.pod); err != nil || got != c.want {
			t.Errorf("of %s: %v, %v", name, got, err)
		}
	}
}
