package protection

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// The API server is in memory here; internal/controllers shows the same with a real one.
func TestTheFinalizerIsWrittenOnceAndTakenFromWhatIsDeleted(t *testing.T) {
	const gone, inUse, other = "gone", v1beta2.ResourceInUseFinalizer, "example.com/mine"
	for name, c := range map[string]struct {
		serving    Serving
		finalizers []string
		isDeleted  bool
		isUsed     bool
		fail       error
		want       []string
		writes     int
	}{
		"a new one":                       {Served, nil, false, false, nil, []string{inUse}, 1},
		"one that has it":                 {Served, []string{inUse}, false, false, nil, []string{inUse}, 0},
		"one with that of another":        {Served, []string{other}, false, false, nil, []string{other, inUse}, 1},
		"a deleted one in use":            {Served, []string{inUse}, true, true, nil, []string{inUse}, 0},
		"a deleted one that is not used":  {Served, []string{inUse}, true, false, nil, []string{gone}, 1},
		"a deleted one that others keep":  {Served, []string{other, inUse}, true, false, nil, []string{other}, 1},
		"a deleted one that never had it": {Served, []string{other}, true, false, nil, []string{other}, 0},
		"one whose use is not known":      {Served, []string{inUse}, true, false, errors.New("no list"), []string{inUse}, 0},
		"a new one that is not served":    {NotServed, nil, false, false, nil, nil, 0},
		"one that is not served any more": {NotServed, []string{inUse}, false, true, nil, []string{inUse}, 0},
		"a deleted one, not served":       {NotServed, []string{inUse}, true, true, nil, []string{gone}, 1},
		"a new one while Kueue runs":      {Unknown, nil, false, false, nil, nil, 0},
		"a deleted one while Kueue runs":  {Unknown, []string{inUse}, true, false, nil, []string{inUse}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			flavor := &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "spot", Finalizers: c.finalizers}}
			if c.isDeleted {
				now := metav1.Now()
				flavor.DeletionTimestamp = &now
			}
			r, writes := reconcilerOf(t, flavor)
			r.serving, r.wrap = func() Serving { return c.serving }, func() client.Object { return &v1beta2.ResourceFlavor{} }
			r.isUsed = func(_ context.Context, name string) (bool, error) { return c.isUsed && name == "spot", c.fail }
			for range 2 { // the second time finds nothing to do
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "spot"}}); !errors.Is(err, c.fail) {
					t.Fatal(err)
				}
			}
			got := []string{gone}
			if err := r.client.Get(t.Context(), client.ObjectKey{Name: "spot"}, flavor); err == nil {
				got = flavor.Finalizers
			} else if !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.want) || *writes != c.writes {
				t.Errorf("after %d writes it has %q; want %q after %d", *writes, got, c.want, c.writes)
			}
		})
	}
}

// reconcilerOf returns one with an API server in memory, and counts the writes.
func reconcilerOf(t *testing.T, objects ...client.Object) (r *Reconciler, writes *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	writes = new(int)
	return &Reconciler{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			*writes++
			return api.Patch(ctx, o, p, options...)
		},
	}).Build()}, writes
}

// Other controllers keep Workloads while they are served. While they are not, no controller would let them go.
func TestAWorkloadIsLetGoOnlyWhileNoneAreServed(t *testing.T) {
	now := metav1.Now()
	for serving, want := range map[Serving]bool{Unknown: true, Served: true, NotServed: false} {
		w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", DeletionTimestamp: &now, Finalizers: []string{v1beta2.ResourceInUseFinalizer}}}
		r, _ := reconcilerOf(t, w)
		r.serving, r.wrap = func() Serving { return serving }, func() client.Object { return &v1beta2.Workload{} }
		key := client.ObjectKeyFromObject(w)
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(t.Context(), key, w); err == nil != want {
			t.Errorf("with serving %d: %v", serving, err)
		}
	}
}

func TestAClusterQueueUsesWhatItNamesInEitherSpelling(t *testing.T) {
	q := &v1beta2.ClusterQueue{Spec: v1beta2.ClusterQueueSpec{AdmissionChecks: []string{"budget"}, ResourceGroups: []v1beta2.ResourceGroup{
		{Flavors: []v1beta2.FlavorQuotas{{Name: "spot"}, {Name: "reserved"}}}, {Flavors: []v1beta2.FlavorQuotas{{Name: "licenses"}}}}}}
	if got := flavorsOf(q); !slices.Equal(got, []string{"spot", "reserved", "licenses"}) {
		t.Errorf("the flavors are %q", got)
	}
	if got := checksOf(q); !slices.Equal(got, []string{"budget"}) {
		t.Errorf("the checks are %q", got)
	}
	q.Spec.AdmissionChecks, q.Spec.AdmissionChecksStrategy = nil, &v1beta2.AdmissionChecksStrategy{AdmissionChecks: []v1beta2.AdmissionCheckStrategyRule{{Name: "approval"}}}
	if got := checksOf(q); !slices.Equal(got, []string{"approval"}) {
		t.Errorf("the checks with a strategy are %q", got)
	}
}
