package cache_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/fixture"
)

// supplied is a model of one node with a pod g-0 that is being bound there. It gets an existing volume, a volume to be
// provisioned, and a device.
type supplied struct {
	*testing.T
	*cache.Cache
	pod *corev1.Pod
}

const theNode = "n0"

func newSupplied(t *testing.T) *supplied {
	t.Helper()
	s := &supplied{T: t, Cache: cache.New(cache.Options{SchedulerNames: []string{"volcano"}}),
		pod: fixture.Pod("g-0", fixture.In("g"), fixture.Mounting("bound", "made"), fixture.Using("device"))}
	s.set(fixture.Queue("default"), fixture.Group("g", "default", 1), fixture.Node(theNode, "cpu=8"), fixture.LateClass("late", "made.example.com"),
		fixture.Claim("bound", "late"), fixture.Claim("made", "late"), fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, theNode),
		fixture.DeviceClaim("device", "gpu", 1), s.pod)
	task := s.Task(fixture.Key("g-0"))
	s.Place(task, s.Node(theNode))
	s.Reserve(task, &supplies.Reservation{Volumes: []supplies.VolumeReservation{
		{Claim: fixture.Key("bound"), UID: "bound-uid", Volume: "v", VolumeUID: "v-uid"}, {Claim: fixture.Key("made"), UID: "made-uid"},
	}, Devices: []supplies.DeviceReservation{{Claim: fixture.Key("device"), UID: "device-uid", Allocation: &resourcev1.AllocationResult{}}}})
	s.Commit(task)
	s.Keep()
	return s
}

func (s *supplied) set(objects ...runtime.Object) {
	for _, object := range objects {
		s.Apply(cache.Set{Object: object})
	}
	s.Settle()
}

// expect says what is seen: whose the volume is, for which node a volume is to be made, and for whom the device is.
func (s *supplied) expect(when string, want [3]string) {
	s.Helper()
	var got [3]string
	if v, ok := s.Supplies().Get(supplies.Key{Kind: supplies.Volume, NamespacedName: fixture.Key("v")}).(*corev1.PersistentVolume); ok {
		s.Fatalf("a volume is found in namespace %q", v.Namespace)
	}
	volumeKey := supplies.Key{Kind: supplies.Volume}
	volumeKey.Name = "v"
	if v := s.Supplies().Get(volumeKey).(*corev1.PersistentVolume); v.Spec.ClaimRef != nil {
		got[0] = v.Spec.ClaimRef.Name
	}
	claim := s.Supplies().Get(supplies.Key{Kind: supplies.VolumeClaim, NamespacedName: fixture.Key("made")}).(*corev1.PersistentVolumeClaim)
	got[1] = claim.Annotations["volume.kubernetes.io/selected-node"]
	device := s.Supplies().Get(supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: fixture.Key("device")}).(*resourcev1.ResourceClaim)
	if device.Status.Allocation != nil && len(device.Status.ReservedFor) == 1 {
		got[2] = device.Status.ReservedFor[0].Name
	}
	if got != want {
		s.Errorf("%s: seen is %q, want %q", when, got, want)
	}
	for _, problem := range s.Audit() {
		s.Errorf("%s: %s", when, problem)
	}
}

var all, nothing = [3]string{"bound", theNode, "g-0"}, [3]string{}

func TestWhatIsReservedIsSeenUntilTheBindingFails(t *testing.T) {
	s := newSupplied(t)
	s.expect("after it was decided", all)
	s.set(fixture.Volume("v", "late", "2Gi", corev1.LabelHostname, theNode, func(v *corev1.PersistentVolume) { v.ResourceVersion = "2" }))
	s.expect("after the volume has changed", all)
	s.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: s.pod.UID, At: fixture.Birth.Add(time.Hour)})
	s.expect("after the binding failed", nothing)
}

func TestWhatIsReservedIsGivenBackWithThePod(t *testing.T) {
	s := newSupplied(t)
	s.Apply(cache.Delete{Object: s.pod})
	s.expect("after the pod is gone", nothing)
}

func TestWhatIsReservedIsSeenUntilTheAPIShowsItThoughThePodIsBound(t *testing.T) {
	s := newSupplied(t)
	bound := s.pod.DeepCopy()
	fixture.On(theNode)(bound)
	s.set(bound)
	s.expect("after the pod was bound", all)
	s.set(fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, theNode, fixture.OfClaim("bound")))
	s.expect("after the volume was", all)
	s.set(fixture.Claim("made", "late", func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "2" }))
	s.expect("after a version of the claim from before", all)
	s.Apply(cache.Delete{Object: bound})
	s.expect("after the pod is gone, of which the device knows nothing yet", [3]string{"bound", "", "g-0"})
}

func TestNothingIsTakenByAPodThatSomebodyElseBound(t *testing.T) {
	s := newSupplied(t)
	s.set(fixture.Node("other", "cpu=1"))
	bound := s.pod.DeepCopy()
	fixture.On("other")(bound)
	s.set(bound)
	s.expect("after the pod was bound to another node", nothing)

	s = newSupplied(t)
	s.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: s.pod.UID, At: fixture.Birth.Add(time.Hour)})
	task := s.Task(fixture.Key("g-0"))
	s.Pipeline(task, s.Node(theNode))
	s.Reserve(task, &supplies.Reservation{Volumes: []supplies.VolumeReservation{{Claim: fixture.Key("made"), UID: "made-uid"}}})
	s.Keep()
	bound = s.pod.DeepCopy()
	fixture.On(theNode)(bound)
	s.set(bound)
	s.expect("after it was bound before the promise was kept", nothing)
}

func TestAVolumeThatAnotherClaimTookIsSeenSo(t *testing.T) {
	s := newSupplied(t)
	s.set(fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, theNode, fixture.OfClaim("other")))
	s.expect("after it was taken", [3]string{"other", theNode, "g-0"})
	s.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: s.pod.UID, At: fixture.Birth.Add(time.Hour)})
	s.expect("after the binding failed", [3]string{"other", "", ""})
}

func TestAReservationIsUndoneWithThePlacement(t *testing.T) {
	s := newSupplied(t)
	s.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: s.pod.UID, At: fixture.Birth.Add(time.Hour)})
	task := s.Task(fixture.Key("g-0"))
	made := &supplies.Reservation{Volumes: []supplies.VolumeReservation{{Claim: fixture.Key("made"), UID: "made-uid"}}}
	s.Pipeline(task, s.Node(theNode))
	s.Reserve(task, made)
	s.expect("after it was promised", [3]string{"", theNode, ""})
	mark := s.Mark()
	s.Unpipeline(task)
	s.expect("after the promise was taken back", nothing)
	s.Undo(mark)
	s.expect("after that was undone", [3]string{"", theNode, ""})
	s.Undo(0)
	s.expect("after all was undone", nothing)
}

func TestPodsThatNeedDifferentClaimsShareThePlainClass(t *testing.T) {
	s := newSupplied(t)
	s.set(fixture.Pod("a", fixture.In("g"), fixture.Mounting("bound")), fixture.Pod("b", fixture.In("g"), fixture.Mounting("made")),
		fixture.Pod("c", fixture.In("g")), fixture.Pod("d", fixture.In("g"), fixture.Mounting("made")))
	class := func(name string) *cluster.Class { return s.Task(fixture.Key(name)).Class }
	if class("a") == class("b") || class("a").Plain != class("b").Plain || class("c") != class("a").Plain || class("b") != class("d") {
		t.Error("they are of the wrong classes")
	}
	if !class("a").NeedsSupplies() || class("c").NeedsSupplies() {
		t.Error("only the first needs volumes or devices")
	}
	for _, name := range []string{"a", "b", "d"} {
		s.Apply(cache.Delete{Object: fixture.Pod(name)})
	}
	s.Settle()
	for _, problem := range s.Audit() {
		t.Error(problem)
	}
}

func TestAPodWhoseClaimIsMadeComesToBeOfAnotherClass(t *testing.T) {
	s := newSupplied(t)
	template := "template"
	pod := fixture.Pod("t", fixture.In("g"), func(p *corev1.Pod) {
		p.Generation = 1
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	})
	s.set(pod)
	before := s.Task(fixture.Key("t")).Class
	made, name := pod.DeepCopy(), "t-gpu"
	made.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
	s.set(made)
	if k := s.Task(fixture.Key("t")).Class; k == before || k.Pod.UID != made.UID || len(k.Pod.Status.ResourceClaimStatuses) != 1 {
		t.Error("it is asked about as it was before")
	}
	other, otherName := pod.DeepCopy(), "t-gpu-2"
	other.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &otherName}}
	s.set(other)
	if k := s.Task(fixture.Key("t")).Class; *k.Pod.Status.ResourceClaimStatuses[0].ResourceClaimName != otherName {
		t.Error("it is asked about with the claim that it had before")
	}
}

func TestTheChangesOfVolumesAndDevicesAreTold(t *testing.T) {
	s := newSupplied(t)
	_, at, _ := s.Supplies().Changes(0)
	s.set(fixture.Claim("made", "late")) // as it was
	if keys, _, ok := s.Supplies().Changes(at); !ok || len(keys) != 0 {
		t.Errorf("told are %v", keys)
	}
	s.Apply(cache.Delete{Object: fixture.Claim("made", "late")})
	want := supplies.Key{Kind: supplies.VolumeClaim, NamespacedName: fixture.Key("made")}
	if keys, _, ok := s.Supplies().Changes(at); !ok || len(keys) == 0 || keys[0] != want {
		t.Errorf("told are %v, %t", keys, ok)
	}
	if s.Supplies().Get(want) != nil {
		t.Error("it is still seen")
	}
	for range 1 << 17 {
		s.Apply(cache.Set{Object: fixture.EarlyClass("c", "")})
	}
	if _, _, ok := s.Supplies().Changes(at); ok {
		t.Error("nothing was forgotten")
	}
}
