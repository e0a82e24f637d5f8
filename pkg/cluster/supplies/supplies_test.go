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
	if s.Set(supplies.Volume, volume("2")); owner(s) != "" || len(s.Holders()) != 0 {
		t.Error("the API server shows the volume without its claim, and it is still seen with it")
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
