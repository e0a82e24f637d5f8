package supply_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/supply"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/fixture"
)

// tracked are the slices as the tracker of kube-scheduler shows them. It starts once its informers know all objects: it
// reads slices and rules in goroutines of their own, and what it shows of objects that still arrive depends on their
// order.
func tracked(t *testing.T, objects []runtime.Object) []*resourcev1.ResourceSlice {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	resource := factory.Resource()
	options := tracker.Options{EnableDeviceTaintRules: true, SliceInformer: resource.V1().ResourceSlices(),
		TaintInformer: resource.V1beta2().DeviceTaintRules(), ClassInformer: resource.V1().DeviceClasses()}
	options.SliceInformer.Informer()
	options.TaintInformer.Informer()
	options.ClassInformer.Informer()
	defer factory.Shutdown()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	for kind, synced := range factory.WaitForCacheSync(stop) {
		if !synced {
			t.Fatalf("the informer of %s did not follow", kind)
		}
	}
	follower, err := tracker.StartTracker(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Stop()
	select {
	case <-follower.HasSyncedChecker().Done():
	case <-t.Context().Done():
		t.Fatal("the tracker did not follow")
	}
	shown, err := follower.ListPatchedResourceSlices()
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// inOrder are slices by name, the taints of each device by key: the tracker leaves the order to chance.
func inOrder(shown []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	ordered := make([]*resourcev1.ResourceSlice, len(shown))
	for i := range shown {
		ordered[i] = shown[i].DeepCopy()
		for k := range ordered[i].Spec.Devices {
			slices.SortFunc(ordered[i].Spec.Devices[k].Taints, func(a, b resourcev1.DeviceTaint) int { return cmp.Compare(a.Key, b.Key) })
		}
	}
	slices.SortFunc(ordered, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	return ordered
}

func TestDevicesHaveTheTaintsThatKubeSchedulerSees(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var objects []runtime.Object
		for i := range rapid.IntRange(1, 3).Draw(r, "slices") {
			slice := fixture.Slice(fmt.Sprint("n", i), rapid.IntRange(0, 2).Draw(r, "devices"))
			if len(slice.Spec.Devices) > 0 && rapid.Bool().Draw(r, "the driver taints") {
				slice.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "driver", Effect: resourcev1.DeviceTaintEffectNoExecute}}
			}
			objects = append(objects, slice)
		}
		for i := range rapid.IntRange(0, 3).Draw(r, "rules") {
			rule := fixture.TaintRule(fmt.Sprint("rule-", i), rapid.SampledFrom([]string{"", "n0", "n1"}).Draw(r, "pool"),
				rapid.SampledFrom([]string{"", "gpu-0", "gpu-1"}).Draw(r, "device"))
			rule.Spec.Taint.TimeAdded = &metav1.Time{Time: fixture.Birth.Add(time.Duration(i) * time.Hour)}
			switch rapid.IntRange(0, 4).Draw(r, "selects") {
			case 0:
				rule.Spec.DeviceSelector = nil
			case 1:
				rule.Spec.DeviceSelector.Driver = new("another.example.com")
			}
			objects = append(objects, rule)
		}
		c := cache.New(cache.Options{})
		for _, o := range objects {
			c.Apply(cache.Set{Object: o})
		}
		s := supply.NewShelf(c.Cluster, informers.NewSharedInformerFactory(nil, 0))
		s.Follow()
		shown, err := s.Devices().ListWithDeviceTaintRules()
		if err != nil {
			r.Fatal(err)
		}
		if diff := gocmp.Diff(inOrder(tracked(t, objects)), inOrder(shown)); diff != "" {
			r.Fatalf("kube-scheduler sees other taints (-kube-scheduler +here):\n%s", diff)
		}
	})
}

func TestADeviceIsFreeOfATaintOnceItsRuleIsGone(t *testing.T) {
	c := cache.New(cache.Options{})
	s := supply.NewShelf(c.Cluster, informers.NewSharedInformerFactory(nil, 0))
	rule := fixture.TaintRule("broken", "", "gpu-0")
	taints := func(e cache.Event) int {
		t.Helper()
		c.Apply(e)
		s.Follow()
		shown, err := s.Devices().ListWithDeviceTaintRules()
		if err != nil || len(shown) != 1 {
			t.Fatalf("%d slices are shown: %v", len(shown), err)
		}
		return len(shown[0].Spec.Devices[0].Taints)
	}
	untouched := fixture.Slice("n0", 1)
	if got := []int{taints(cache.Set{Object: untouched}), taints(cache.Set{Object: rule}), taints(cache.Delete{Object: rule})}; !slices.Equal(got, []int{0, 1, 0}) {
		t.Errorf("without the rule, with it and without it again there are %v taints", got)
	}
	if len(untouched.Spec.Devices[0].Taints) > 0 {
		t.Error("the object of the model was changed")
	}
	if supplies.KindOf(&resourcev1beta2.DeviceTaintRule{}) != supplies.DeviceTaintRule {
		t.Error("a rule is of another kind")
	}
}
