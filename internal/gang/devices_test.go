package gang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/fixture"
)

func TestMembersOfAGangGetDifferentDevices(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 2), fixture.Slice("n1", 1))
	w.Set(fixture.Group("g", "default", 2))
	for i := range 2 {
		claim := fmt.Sprint("c", i)
		w.Set(fixture.DeviceClaim(claim, "gpu", int64(2-i)), fixture.Pod(fmt.Sprint("g-", i), fixture.In("g"), fixture.As("worker", i), fixture.Using(claim)))
	}
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: c0=n0/gpu-0", "g-0: c0=n0/gpu-1", "g-1: c1=n1/gpu-0")
}

func TestAGangThatSharesAClaimIsPlacedWhereItsDevicesAre(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n1", 1), fixture.DeviceClaim("c", "gpu", 1))
	w.Set(gangOf("g", 2, fixture.Using("c")))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: c=n1/gpu-0", "g-1: c=n1/gpu-0")
	shared := w.Cluster.Supplies().Get(supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: fixture.Key("c")}).(*resourcev1.ResourceClaim)
	if len(shared.Status.ReservedFor) != 2 {
		t.Errorf("the claim is for %v", shared.Status.ReservedFor)
	}
}

func TestAGangThatFindsTooFewDevicesHoldsNone(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 1), fixture.Group("g", "default", 2))
	for i := range 2 {
		claim := fmt.Sprint("c", i)
		w.Set(fixture.DeviceClaim(claim, "gpu", 1), fixture.Pod(fmt.Sprint("g-", i), fixture.In("g"), fixture.As("worker", i), fixture.Using(claim)))
	}
	v := try(w, "g")
	if v == nil || !strings.Contains(v.Sentence(), "cannot allocate all claims (such as n0); ResourceClaim work/c1 has no devices and no node has them free") {
		t.Fatalf("the verdict is %v", v)
	}
	expectReserved(t, w, "g")
	claim := w.Cluster.Supplies().Get(supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: fixture.Key("c0")}).(*resourcev1.ResourceClaim)
	if claim.Status.Allocation != nil {
		t.Error("the claim of the first is left with its device")
	}
}

func TestATaintedDeviceIsGivenToWhoToleratesIt(t *testing.T) {
	tolerating := func(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
		c.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
		return c
	}
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 1), fixture.TaintRule("broken", "n0", "gpu-0"))
	w.Set(fixture.Group("g", "default", 1), fixture.DeviceClaim("strict", "gpu", 1), fixture.Pod("g-0", fixture.In("g"), fixture.Using("strict")))
	w.Set(fixture.Group("h", "default", 1), tolerating(fixture.DeviceClaim("lenient", "gpu", 1)), fixture.Pod("h-0", fixture.In("h"), fixture.Using("lenient")))
	s := w.Open()
	s.AddVerdict(w.JobNamed("g"), gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))))
	expectReserved(t, w, "g")
	x := s.Begin()
	placeAll(t, w, "h")
	expectReserved(t, w, "h", "h-0: lenient=n0/gpu-0")
	x.Undo()
	if w.Cluster.ShouldRetry(w.JobNamed("g"), s.Now) {
		t.Error("the other is looked at again though nothing has changed")
	}
	w.Apply(cache.Delete{Object: fixture.TaintRule("broken", "n0", "gpu-0")})
	w.Settle()
	if !w.Cluster.ShouldRetry(w.JobNamed("g"), s.Now) {
		t.Error("the other is not looked at again")
	}
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: strict=n0/gpu-0")
}

func TestADeviceThatHasToBeAttachedIsGivenOutForOneNode(t *testing.T) {
	slice := fixture.Slice("n0", 1)
	slice.Spec.NodeName, slice.Spec.AllNodes = nil, new(true)
	slice.Spec.Devices[0].BindsToNode = new(true)
	slice.Spec.Devices[0].BindingConditions = []string{"gpus.example.com/Attached"}
	slice.Spec.Devices[0].BindingFailureConditions = []string{"gpus.example.com/Broken"}
	w := placing(t, "gang", "predicates {dynamicresources.bindingTimeoutSeconds: 7}").Set(
		fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.Devices("gpu"), slice, fixture.DeviceClaim("c", "gpu", 1))
	w.Set(gangOf("g", 1, fixture.Using("c")))
	node := placeAll(t, w, "g")["g-0"]
	r := w.TaskNamed("g-0").Reservation
	if r == nil || len(r.Devices) != 1 || r.DevicePatience != 7*time.Second {
		t.Fatalf("reserved is %+v", r)
	}
	allocation := r.Devices[0].Allocation
	if got := allocation.Devices.Results[0]; len(got.BindingConditions) != 1 || len(got.BindingFailureConditions) != 1 {
		t.Errorf("nobody is told what to wait for: %+v", got)
	}
	if fields := allocation.NodeSelector.NodeSelectorTerms[0].MatchFields; len(fields) != 1 || fields[0].Values[0] != node {
		t.Errorf("the device is for nodes %v, the pod is on %s", allocation.NodeSelector, node)
	}
}

// What has failed is taken back by the writer, when the pod comes to be bound to it. So it is placed there once more.
func TestAPodIsPlacedWhereItsDevicesAreThoughTheyHaveFailed(t *testing.T) {
	claim := fixture.DeviceClaim("c", "gpu", 1)
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpus", Driver: "gpus.example.com", Pool: "n0", Device: "gpu-0", BindingConditions: []string{"Attached"}, BindingFailureConditions: []string{"Broken"}}}}}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "gpus.example.com", Pool: "n0", Device: "gpu-0",
		Conditions: []metav1.Condition{{Type: "Broken", Status: metav1.ConditionTrue}}}}
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 1), claim)
	w.Set(gangOf("g", 1, fixture.Using("c")))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: c=n0/gpu-0")
}

func TestAPodGoesWhereItGetsWhatItWouldRatherHave(t *testing.T) {
	large, small := fixture.Devices("large"), fixture.Devices("small")
	for pool, class := range map[string]*resourcev1.DeviceClass{"n1": large, "n0": small} {
		class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.capacity["gpus.example.com"].memory.compareTo(quantity(%q)) == 0`, map[string]string{"n1": "80Gi", "n0": "20Gi"}[pool])}}}
	}
	slice := fixture.Slice("n0", 1)
	slice.Spec.Devices[0].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("20Gi")}
	claim := fixture.DeviceClaim("c", "", 1)
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "large", DeviceClassName: "large", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		{Name: "small", DeviceClassName: "small", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), large, small, slice, fixture.Slice("n1", 1), claim)
	w.Set(gangOf("g", 1, fixture.Using("c")))
	if places := placeAll(t, w, "g"); places["g-0"] != "n1" {
		t.Errorf("placed %v", places)
	}
	expectReserved(t, w, "g", "g-0: c=n1/gpu-0")
}

// kubernetes/kubernetes#138765: the whole device consumes what two halves are made of.
func TestAGangTakesLaterAlternativesIfTheFirstAreTooFew(t *testing.T) {
	classOf := func(kind string) *resourcev1.DeviceClass {
		class := fixture.Devices(kind)
		class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.attributes["gpus.example.com"].kind == %q`, kind)}}}
		return class
	}
	claim := func(name string, kinds ...string) *resourcev1.ResourceClaim {
		c := fixture.DeviceClaim(name, "", 1)
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus"}}
		for _, kind := range kinds {
			c.Spec.Devices.Requests[0].FirstAvailable = append(c.Spec.Devices.Requests[0].FirstAvailable, resourcev1.DeviceSubRequest{
				Name: kind, DeviceClassName: kind, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1})
		}
		return c
	}
	device := func(name, kind, units string) resourcev1.Device {
		return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"kind": {StringValue: &kind}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "memory", Counters: map[string]resourcev1.Counter{"g": {Value: resource.MustParse(units)}}}}}
	}
	counters, devices := fixture.Slice("n0", 0), fixture.Slice("n0", 0)
	counters.Name = "n0-counters"
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "memory", Counters: map[string]resourcev1.Counter{"g": {Value: resource.MustParse("4")}}}}
	devices.Spec.Devices = []resourcev1.Device{device("whole", "whole", "4"), device("half-0", "half", "2"), device("half-1", "half", "2"),
		device("quarter-0", "quarter", "1"), device("quarter-1", "quarter", "1"), device("quarter-2", "quarter", "1"), device("quarter-3", "quarter", "1")}
	counters.Spec.Pool.ResourceSliceCount, devices.Spec.Pool.ResourceSliceCount = 2, 2
	lists := []string{"whole", "half", "quarter"}
	for name, test := range map[string]struct {
		pods int
		want []string // devices, nil if there is no place
	}{
		"one takes the whole":       {1, []string{"whole"}},
		"two take halves":           {2, []string{"half-0", "half-1"}},
		"three take quarters":       {3, []string{"quarter-0", "quarter-1", "quarter-2"}},
		"for five there is nothing": {5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := placing(t).Set(fixture.Node("n0", "cpu=8"), classOf("whole"), classOf("half"), classOf("quarter"), counters.DeepCopy(), devices.DeepCopy())
			for i := range test.pods {
				w.Set(claim(fmt.Sprint("c", i), lists...))
			}
			w.Set(gangOf("g", test.pods, func(p *corev1.Pod) { fixture.Using("c" + strings.TrimPrefix(p.Name, "g-"))(p) }))
			v := try(w, "g")
			var got []string
			for _, task := range w.JobNamed("g").Tasks() {
				if r := task.Reservation; r != nil {
					for _, d := range r.Devices {
						got = append(got, d.Allocation.Devices.Results[0].Device)
					}
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" || (v == nil) != (test.want != nil) {
				t.Errorf("the verdict is %v, and the devices differ (-want +got):\n%s", v, diff)
			}
		})
	}
}

func TestPodsThatRequestWhatAClassStandsForGetDevices(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.DevicesOf("gpu", "example.com/gpu"), fixture.Slice("n0", 1), fixture.Slice("n1", 2))
	w.Set(gangOf("g", 2, fixture.Asks("cpu=1 example.com/gpu=1"))).Set(gangOf("h", 2, fixture.Asks("cpu=1 example.com/gpu=1")))
	s := w.Open()
	if v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))); v != nil {
		t.Fatal(v.Sentence())
	}
	held := map[string]bool{}
	for _, task := range w.JobNamed("g").Tasks() {
		r := task.Reservation
		if r == nil || len(r.Devices) != 1 || r.Devices[0].Made == nil {
			t.Fatalf("%s holds %+v", task.Key().Name, r)
		}
		d := r.Devices[0]
		if result := d.Allocation.Devices.Results[0]; result.Pool != task.Node.Name || held[result.Pool+result.Device] {
			t.Errorf("%s is on %s and has %+v", task.Key().Name, task.Node.Name, result)
		} else {
			held[result.Pool+result.Device] = true
		}
		want := []corev1.ContainerExtendedResourceRequest{{ContainerName: task.Pod.Spec.Containers[0].Name, ResourceName: "example.com/gpu",
			RequestName: d.Made.Spec.Devices.Requests[0].Name}}
		if diff := cmp.Diff(want, d.Requests); diff != "" {
			t.Errorf("what is said of the containers differs (-want +got):\n%s", diff)
		}
		if d.Made.Name != d.Claim.Name || !strings.HasPrefix(d.Claim.Name, task.Key().Name+"-extended-resources-") || !metav1.IsControlledBy(d.Made, task.Pod) ||
			d.Made.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
			t.Errorf("the claim to be made is %+v", d.Made.ObjectMeta)
		}
		if seen, ok := w.Cluster.Supplies().Get(supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: d.Claim}).(*resourcev1.ResourceClaim); !ok || seen.Status.Allocation == nil {
			t.Error("nobody sees that the devices are taken")
		}
	}
	// The third device alone is not enough for two.
	v := gang.Place(s, w.JobNamed("h"), s.Pending(w.JobNamed("h")))
	if v == nil || !strings.Contains(v.Sentence(), "no node has the devices of DeviceClass gpu free that example.com/gpu stands for") {
		t.Errorf("the verdict on the next gang is %v", v)
	}
	if w.Cluster.Undo(0); len(reserved(w, "g")) > 0 {
		t.Errorf("after all is undone %v is reserved", reserved(w, "g"))
	}
	for _, key := range w.Cluster.Supplies().Keys() {
		if key.Kind == supplies.DeviceClaim {
			t.Errorf("claim %s is left", key.Name)
		}
	}
}

func TestTheSameDevicesAreNamedTheSame(t *testing.T) {
	claims := func() (names []string) {
		w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.DevicesOf("gpu", "example.com/gpu"), fixture.Slice("n0", 2))
		w.Set(gangOf("g", 2, fixture.Asks("cpu=1 example.com/gpu=1")))
		placeAll(t, w, "g")
		return reserved(w, "g")
	}
	if diff := cmp.Diff(claims(), claims()); diff != "" {
		t.Errorf("equal clusters differ:\n%s", diff)
	}
}

func TestANodeWithDevicesOfItsOwnServesARequestItself(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8 example.com/gpu=1"), fixture.DevicesOf("gpu", "example.com/gpu"), fixture.Slice("n0", 1))
	w.Set(gangOf("g", 1, fixture.Asks("cpu=1 example.com/gpu=1"))).Set(gangOf("h", 1, fixture.Asks("cpu=1 example.com/gpu=1")))
	s := w.Open()
	if v := gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))); v != nil {
		t.Fatal(v.Sentence())
	}
	expectReserved(t, w, "g")
	if v := gang.Place(s, w.JobNamed("h"), s.Pending(w.JobNamed("h"))); v == nil || !strings.Contains(v.Sentence(), "Insufficient example.com/gpu") {
		t.Errorf("the verdict on a second pod is %v", v)
	}
}

func TestAResourceIsServedAsLongAsAClassStandsForIt(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Slice("n0", 1))
	w.Set(gangOf("g", 1, fixture.Asks("cpu=1 example.com/gpu=1")))
	s := w.Open()
	s.AddVerdict(w.JobNamed("g"), gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))))
	if v := w.JobNamed("g").Verdict; v == nil || !strings.Contains(v.Sentence(), "Insufficient example.com/gpu") {
		t.Fatalf("without a class the verdict is %v", v)
	}
	class := fixture.DevicesOf("gpu", "example.com/gpu")
	w.Set(class)
	s = w.Open()
	if g := w.JobNamed("g"); !slices.Contains(s.Jobs(g.Queue), g) {
		t.Error("with a class it is not looked at again")
	}
	x := s.Begin()
	placeAll(t, w, "g")
	x.Undo()
	w.Apply(cache.Delete{Object: class})
	w.Settle()
	if v := try(w, "g"); v == nil || !strings.Contains(v.Sentence(), "Insufficient example.com/gpu") {
		t.Errorf("after the class has gone the verdict is %v", v)
	}
	if w.TaskNamed("g-0").Class.NeedsSupplies() || !w.Cluster.Total.Equal(w.Cluster.Node("n0").Allocatable) {
		t.Error("something is left of the class")
	}
}

// A scheduler that ended between making the claim and binding the pod leaves the claim with its devices.
func TestAClaimThatWasMadeForAPodBeforeKeepsNoDevicesFromIt(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.DevicesOf("gpu", "example.com/gpu"), fixture.Slice("n0", 1))
	w.Set(gangOf("g", 1, fixture.Asks("cpu=1 example.com/gpu=1")))
	left := fixture.DeviceClaim("g-0-extended-resources-before", "gpu", 1)
	left.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	left.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "g-0", UID: w.TaskNamed("g-0").UID(), Controller: new(true)}}
	left.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpus", Driver: "gpus.example.com", Pool: "n0", Device: "gpu-0"}}}}
	w.Set(left).Set(gangOf("h", 1, fixture.Asks("cpu=1 example.com/gpu=1")))
	if try(w, "h") == nil {
		t.Error("the device is given to another pod")
	}
	placeAll(t, w, "g")
}
