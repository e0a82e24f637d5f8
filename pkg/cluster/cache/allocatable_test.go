package cache_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/fixture"
)

const gpu corev1.ResourceName = "example.com/gpu"

// standing is a class of devices that stands for a resource.
func standing(name string) *resourcev1.DeviceClass {
	class := fixture.Devices(name)
	class.Spec.ExtendedResourceName = new(string(gpu))
	return class
}

func asksForGPU(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{gpu: resource.MustParse("1")}
}

func TestNodesHaveWhatAClassStandsForAsLongAsOneDoes(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	first, second := standing("first"), standing("second")
	d := c.Resources.Dim(gpu)
	implicit := c.Resources.Dim("deviceclass.resource.kubernetes.io/first")
	steps := []struct {
		what           string
		event          cache.Event
		want, implicit int64
	}{
		{"without a class", cache.Set{Object: fixture.Node("n0", "cpu=8")}, 0, 0},
		{"with a class", cache.Set{Object: first}, supplies.Boundless, supplies.Boundless},
		{"with two", cache.Set{Object: second}, supplies.Boundless, supplies.Boundless},
		{"with the second alone", cache.Delete{Object: first}, supplies.Boundless, 0},
		{"with a node that comes later", cache.Set{Object: fixture.Node("n1", "cpu=8 example.com/gpu=2")}, supplies.Boundless, 0},
		{"with a second that stands for nothing", cache.Set{Object: func() *resourcev1.DeviceClass {
			plain := fixture.Devices("second")
			plain.ResourceVersion = "2"
			return plain
		}()}, 0, 0},
	}
	for _, step := range steps {
		c.Apply(step.event)
		c.Settle()
		n := c.Node("n0")
		if got := n.Allocatable.At(d); got != step.want || n.Allocatable.At(implicit) != step.implicit || n.Has(d) {
			t.Errorf("%s: the node has %d of the resource and %d by the name of the class", step.what, got, n.Allocatable.At(implicit))
		}
		for _, problem := range c.Audit() {
			t.Errorf("%s: %s", step.what, problem)
		}
	}
	if n := c.Node("n1"); n.Allocatable.At(d) != 2 || !n.Has(d) {
		t.Errorf("a node with devices of its own has %d", n.Allocatable.At(d))
	}
}

func TestPodsThatWaitNeedDevicesOnceAClassStandsForWhatTheyRequest(t *testing.T) {
	s := &supplied{T: t, Cache: cache.New(cache.Options{SchedulerNames: []string{"volcano"}})}
	s.set(fixture.Queue("default"), fixture.Group("g", "default", 1), fixture.Node(theNode, "cpu=8"),
		fixture.Pod("g-0", fixture.In("g"), asksForGPU), fixture.Pod("g-1", fixture.In("g")))
	needs := func() [2]bool {
		return [2]bool{s.Task(fixture.Key("g-0")).Class.NeedsSupplies(), s.Task(fixture.Key("g-1")).Class.NeedsSupplies()}
	}
	if got := needs(); got != [2]bool{} {
		t.Errorf("without a class they need devices: %v", got)
	}
	s.set(standing("gpu"))
	if got := needs(); got != [2]bool{true, false} {
		t.Errorf("with a class they need devices: %v", got)
	}
	s.Apply(cache.Delete{Object: standing("gpu")})
	s.Settle()
	if got := needs(); got != [2]bool{} {
		t.Errorf("after the class has gone they need devices: %v", got)
	}
}

// newMaking is a model with a pod that was placed and for whose resources a claim is to be made, and that claim.
func newMaking(t *testing.T) (*supplied, *resourcev1.ResourceClaim) {
	s := &supplied{T: t, Cache: cache.New(cache.Options{SchedulerNames: []string{"volcano"}}), pod: fixture.Pod("g-0", fixture.In("g"), asksForGPU)}
	s.set(fixture.Queue("default"), fixture.Group("g", "default", 1), fixture.Node(theNode, "cpu=8"), standing("gpu"), s.pod)
	made := fixture.DeviceClaim("made", "gpu", 1)
	made.UID, made.ResourceVersion = "", ""
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID, Controller: new(true)}}
	task := s.Task(fixture.Key("g-0"))
	s.Place(task, s.Node(theNode))
	s.Reserve(task, &supplies.Reservation{Devices: []supplies.DeviceReservation{{Claim: fixture.Key("made"), UID: "anything", Made: made,
		Allocation: given("gpu-0")}}})
	s.Commit(task)
	s.Keep()
	return s, made
}

func given(device string) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpus", Driver: "gpus.example.com", Pool: theNode, Device: device}}}}
}

// expectMade says which device the claim has as it is seen, "" if there is none.
func (s *supplied) expectMade(when, want string) {
	s.Helper()
	got := ""
	key := supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: fixture.Key("made")}
	if claim, ok := s.Supplies().Get(key).(*resourcev1.ResourceClaim); ok && claim.Status.Allocation != nil && len(claim.Status.ReservedFor) == 1 {
		got = claim.Status.Allocation.Devices.Results[0].Device
	}
	if got != want {
		s.Errorf("%s: the claim has %q, want %q", when, got, want)
	}
	for _, problem := range s.Audit() {
		s.Errorf("%s: %s", when, problem)
	}
}

// written is the claim as the API shows it with a device.
func written(made *resourcev1.ResourceClaim, version, device string, users ...resourcev1.ResourceClaimConsumerReference) *resourcev1.ResourceClaim {
	claim := made.DeepCopy()
	claim.UID, claim.ResourceVersion = "real", "v"+"-"+version
	if device != "" {
		claim.Status.Allocation = given(device)
	}
	claim.Status.ReservedFor = users
	return claim
}

func TestAClaimThatIsToBeMadeIsSeenUntilItIsThere(t *testing.T) {
	s, made := newMaking(t)
	user := resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: s.pod.Name, UID: s.pod.UID}
	s.expectMade("after it was decided", "gpu-0")
	s.set(written(made, "1", ""))
	s.expectMade("after it was made", "gpu-0")
	s.set(written(made, "2", "gpu-1"))
	s.expectMade("while it has other devices", "gpu-0")
	s.set(written(made, "3", "gpu-0", user))
	s.expectMade("after it was written", "gpu-0")
	s.set(fixture.Pod("g-0", fixture.In("g"), asksForGPU, fixture.On(theNode)))
	s.Apply(cache.Delete{Object: written(made, "3", "gpu-0", user)})
	s.expectMade("after it was deleted", "")
}

func TestAClaimThatIsNotMadeAfterAllIsNotSeen(t *testing.T) {
	s, _ := newMaking(t)
	s.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: s.pod.UID, Reason: "no"})
	s.Settle()
	s.expectMade("after the binding failed", "")
}

func TestAClaimThatWasNeverSeenGoesWithItsPod(t *testing.T) {
	s, _ := newMaking(t)
	bound := fixture.Pod("g-0", fixture.In("g"), asksForGPU, fixture.On(theNode))
	s.set(bound)
	s.expectMade("after the pod was bound", "gpu-0")
	s.Apply(cache.Delete{Object: bound})
	s.Settle()
	s.expectMade("after the pod has gone", "")
}
