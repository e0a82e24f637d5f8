package supplies_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

var volumeKey = supplies.Key{Kind: supplies.Volume, NamespacedName: types.NamespacedName{Name: "v"}}

func volume(version string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v-uid", ResourceVersion: version}}
}

// owner is for which claim the volume is seen.
func owner(s *supplies.Store) string {
	if ref := s.Get(volumeKey).(*corev1.PersistentVolume).Spec.ClaimRef; ref != nil {
		return ref.Name
	}
	return ""
}

func TestAReservationIsSeenUntilTheAPIServerShowsTheObjectAgain(t *testing.T) {
	s := supplies.New()
	s.Set(supplies.Volume, volume("1"))
	pod := supplies.Pod{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}, UID: "p-uid"}
	r := &supplies.Reservation{Volumes: []supplies.VolumeReservation{
		{Claim: types.NamespacedName{Namespace: "ns", Name: "c"}, UID: "c-uid", Volume: "v", VolumeUID: "v-uid"}}}
	s.Hold(pod, "n", r)
	if got := owner(s); got != "c" {
		t.Errorf("while it is reserved the volume is for %q", got)
	}
	s.Write(pod, r)
	if s.Release(pod, r); owner(s) != "c" {
		t.Error("what was written is given back")
	}
	if _, isNew := s.Set(supplies.Volume, volume("1")); isNew || owner(s) != "c" {
		t.Error("an echo of what was there before ends the reservation")
	}
	if s.Set(supplies.Volume, volume("2")); owner(s) != "c" {
		t.Error("a version from before it was written ends the reservation")
	}
	bound := volume("3")
	bound.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: "c-uid"}
	s.Set(supplies.Volume, bound)
	if s.Set(supplies.Volume, volume("4")); owner(s) != "" || len(s.Holders()) != 0 {
		t.Error("the volume was shown with its claim, is shown without it, and is still seen with it")
	}
}

// A claim gets its finalizer before its devices. When that version comes after the pod that has its node, the devices
// are still those of the claim. They go with the pod, even if they were never shown.
func TestDevicesThatAreNotShownYetAreTakenUntilThePodIsGone(t *testing.T) {
	claim := func(version string) *resourcev1.ResourceClaim {
		return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid", ResourceVersion: version}}
	}
	s := supplies.New()
	s.Set(supplies.DeviceClaim, claim("1"))
	isTaken := func() bool {
		return s.Get(supplies.KeyOf(supplies.DeviceClaim, claim(""))).(*resourcev1.ResourceClaim).Status.Allocation != nil
	}
	pod := supplies.Pod{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}, UID: "p-uid"}
	r := &supplies.Reservation{Devices: []supplies.DeviceReservation{
		{Claim: types.NamespacedName{Namespace: "ns", Name: "c"}, UID: "c-uid", Allocation: &resourcev1.AllocationResult{}}}}
	s.Hold(pod, "n", r)
	s.Write(pod, r)
	withFinalizer := claim("2")
	withFinalizer.Finalizers = []string{resourcev1.Finalizer}
	if s.Set(supplies.DeviceClaim, withFinalizer); !isTaken() {
		t.Error("the version with the finalizer gives the devices back")
	}
	if s.Forget(pod); isTaken() {
		t.Error("the pod is gone, the claim was shown without devices since, and they are still taken")
	}

	s.Hold(pod, "n", r)
	s.Write(pod, r)
	if s.Forget(pod); !isTaken() {
		t.Error("the devices are free before the API server has shown that the claim has them no more")
	}
	if s.Set(supplies.DeviceClaim, claim("4")); isTaken() {
		t.Error("the pod is gone, the claim is shown without devices, and they are still taken")
	}
}

func TestWhatWasNotWrittenIsGivenBack(t *testing.T) {
	s := supplies.New()
	s.Set(supplies.Volume, volume("1"))
	r := &supplies.Reservation{Volumes: []supplies.VolumeReservation{{Claim: types.NamespacedName{Name: "c"}, Volume: "v", VolumeUID: "v-uid"}}}
	_, before, _ := s.Changes(0)
	s.Hold(supplies.Pod{UID: "p"}, "n", r)
	if s.Release(supplies.Pod{UID: "p"}, r); owner(s) != "" {
		t.Error("the volume is still reserved")
	}
	if keys, _, ok := s.Changes(before); !ok || len(keys) != 2 || keys[0] != volumeKey {
		t.Errorf("told are the changes %v", keys)
	}
}

func TestAResourceIsServedWhileADeviceClassStandsForIt(t *testing.T) {
	index := resources.NewIndex()
	served, name := supplies.NewServed(index), "example.com/gpu"
	class := func(name string) *resourcev1.DeviceClass {
		return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	first, second := class("a"), class("b")
	first.Spec.ExtendedResourceName, second.Spec.ExtendedResourceName = &name, &name
	d := index.Dim(corev1.ResourceName(name))
	var request resources.Vector
	request.Set(d, 1)
	if served.Serves(request) || !served.Replace(nil, first) || !served.Serves(request) {
		t.Error("the resource is served exactly once its class is there")
	}
	served.Replace(nil, second)
	if served.Replace(first, nil); !served.Serves(request) {
		t.Error("one of two classes has gone, and the resource is not served any more")
	}
	var allocatable resources.Vector
	if served.AddTo(&allocatable); allocatable.At(d) != supplies.Boundless {
		t.Errorf("a node has %d of it", allocatable.At(d))
	}
}
