package gang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// try places a gang, and returns why it cannot be placed.
func try(w *harness.Model, job string) *verdict.Verdict {
	s := w.Open()
	j := w.JobNamed(job)
	return gang.Place(s, j, s.Pending(j))
}

// reserved is what the tasks of a job hold besides room, "g-0: g-0=v1" or, for a volume that is to be made, "g-0: g-0
// on n0".
func reserved(w *harness.Model, job string) []string {
	var held []string
	for _, t := range w.JobNamed(job).Tasks() {
		if t.Reservation == nil {
			continue
		}
		for _, v := range t.Reservation.Volumes {
			if v.Volume != "" {
				held = append(held, fmt.Sprintf("%s: %s=%s", t.Key().Name, v.Claim.Name, v.Volume))
			} else {
				held = append(held, fmt.Sprintf("%s: %s on %s", t.Key().Name, v.Claim.Name, t.Node.Name))
			}
		}
		for _, d := range t.Reservation.Devices {
			for _, r := range d.Allocation.Devices.Results {
				held = append(held, fmt.Sprintf("%s: %s=%s/%s", t.Key().Name, d.Claim.Name, r.Pool, r.Device))
			}
		}
	}
	slices.Sort(held)
	return held
}

func expectReserved(t *testing.T, w *harness.Model, job string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, reserved(w, job)); diff != "" {
		t.Errorf("what is reserved differs (-want +got):\n%s", diff)
	}
}

func TestEachMemberOfAGangHasItsVolumeMadeWhereItIsPlaced(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=1"), fixture.Node("n1", "cpu=1"), fixture.LateClass("late", fixture.Provisioner))
	w.Set(fixture.GangWithClaims("g", 2, "late"))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: g-0 on n0", "g-1: g-1 on n1")
}

func TestTheNextMemberDoesNotGetTheVolumeOfTheOneBefore(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.Set(fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"), fixture.Volume("v1", "local", "2Gi", corev1.LabelHostname, "n0"))
	w.Set(fixture.GangWithClaims("g", 2, "local"))
	places := placeAll(t, w, "g")
	if places["g-0"] != "n0" || places["g-1"] != "n0" {
		t.Errorf("placed %v", places)
	}
	expectReserved(t, w, "g", "g-0: g-0=v0", "g-1: g-1=v1")
}

func TestAGangThatFindsTooFewVolumesHoldsNone(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.Set(fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"), fixture.Volume("v1", "local", "1Gi", corev1.LabelHostname, "n1"))
	w.Set(fixture.GangWithClaims("g", 3, "local"))
	v := try(w, "g")
	want := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpSupply, Placed: 2, Wanted: 3, Fitting: []string{"g-0", "g-1"},
		Nodes:  []verdict.NodeReason{{Kind: verdict.NodeVolume, Reason: "node(s) didn't find available persistent volumes to bind", Nodes: 2, Example: "n0"}},
		Detail: "PersistentVolumeClaim work/g-2 is not bound and no volume of StorageClass local fits"}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("the verdict differs (-want +got):\n%s", diff)
	}
	expectReserved(t, w, "g")
	for _, key := range w.Cluster.Supplies().Keys() {
		if volume, ok := w.Cluster.Supplies().Get(key).(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
			t.Errorf("volume %s is left to %s", volume.Name, volume.Spec.ClaimRef.Name)
		}
	}
}

func TestAJobThatLacksAVolumeIsLookedAtAgainWhenOneComes(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""))
	w.Set(fixture.GangWithClaims("g", 1, "local"))
	s := w.Open()
	s.AddVerdict(w.JobNamed("g"), gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))))
	if w.Cluster.ShouldRetry(w.JobNamed("g"), s.Now) {
		t.Error("it is looked at again though nothing has come")
	}
	w.Set(fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"))
	if !w.Cluster.ShouldRetry(w.JobNamed("g"), s.Now) {
		t.Error("it is not looked at again")
	}
	placeAll(t, w, "g")
}

func TestPodsGoWhereTheirVolumesAre(t *testing.T) {
	inZone := func(zone string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone }
	}
	ofZone := func(v *corev1.PersistentVolume) { v.Labels[corev1.LabelTopologyZone] = "b" }
	attached := func(node string) *corev1.Pod {
		return fixture.Pod("other", fixture.On(node), fixture.Mounting("other"))
	}
	iscsi := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "iqn.1"}}}}
	}
	cases := map[string]struct {
		objects []runtime.Object
		pod     func(*corev1.Pod)
		want    string // the node, or part of what is said
	}{
		"to the node of a local volume": {[]runtime.Object{fixture.Claim("c", "late", fixture.BoundTo("v")),
			fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, "b0", fixture.OfClaim("c"))}, fixture.Mounting("c"), "b0"},
		"to the zone in the labels of the volume": {[]runtime.Object{fixture.Claim("c", "late", fixture.BoundTo("v")),
			fixture.Volume("v", "late", "1Gi", "kubernetes.io/os", "linux", fixture.OfClaim("c"), ofZone)}, fixture.Mounting("c"), "b0"},
		"to the node that was selected before": {[]runtime.Object{fixture.Claim("c", "late", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations["volume.kubernetes.io/selected-node"] = "b0"
		})}, fixture.Mounting("c"), "b0"},
		"past a node that can attach no more": {[]runtime.Object{fixture.Driver("a0", 1), fixture.Driver("b0", 1),
			fixture.Claim("other", "late", fixture.BoundTo("w")), fixture.Volume("w", "late", "1Gi", "kubernetes.io/os", "linux", fixture.OfClaim("other")), attached("a0"),
			fixture.Claim("c", "late", fixture.BoundTo("v")), fixture.Volume("v", "late", "1Gi", "kubernetes.io/os", "linux", fixture.OfClaim("c"))},
			fixture.Mounting("c"), "b0"},
		"past a node where the disk is in use": {[]runtime.Object{fixture.Pod("other", fixture.On("a0"), iscsi)}, iscsi, "b0"},
		"nowhere without its claim": {nil, fixture.Mounting("c"),
			`persistentvolumeclaim "c" not found (such as a0); PersistentVolumeClaim work/c does not exist`},
		"nowhere before its claim is bound": {[]runtime.Object{fixture.EarlyClass("early", fixture.Provisioner), fixture.Claim("c", "early")}, fixture.Mounting("c"),
			"pod has unbound immediate PersistentVolumeClaims (such as a0); PersistentVolumeClaim work/c is not bound yet, and its " +
				"StorageClass early does not wait for a pod"},
		"nowhere without a StorageClass": {[]runtime.Object{fixture.Claim("c", "none")}, fixture.Mounting("c"),
			"PersistentVolumeClaim work/c is not bound and its StorageClass none does not exist"},
		"nowhere while another pod has a claim for one": {[]runtime.Object{fixture.Claim("other", "late", fixture.ForOnePod, fixture.BoundTo("w")),
			fixture.Volume("w", "late", "1Gi", "kubernetes.io/os", "linux", fixture.OfClaim("other")), attached("b0")}, fixture.Mounting("other"),
			"node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			linux := func(n *corev1.Node) { n.Labels["kubernetes.io/os"] = "linux" }
			w := placing(t).Set(fixture.Node("a0", "cpu=8", inZone("a"), linux), fixture.Node("b0", "cpu=8", inZone("b"), linux), fixture.LateClass("late", fixture.Provisioner))
			w.Set(c.objects).Set(fixture.Group("g", "default", 1), fixture.Pod("g-0", fixture.In("g"), c.pod))
			if v := try(w, "g"); v != nil {
				if !strings.Contains(v.Sentence(), c.want) {
					t.Errorf("said is %q, want %q", v.Sentence(), c.want)
				}
			} else if got := w.TaskNamed("g-0").Node.Name; got != c.want {
				t.Errorf("it went to %s, want %s", got, c.want)
			}
		})
	}
}

func TestPodsThatShareAClaimGoToTheNodeOfTheFirst(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("late", fixture.Provisioner), fixture.Claim("shared", "late"))
	w.Set(gangOf("g", 2, fixture.Mounting("shared")))
	if places := placeAll(t, w, "g"); distinct(places) != 1 {
		t.Errorf("placed %v", places)
	}
	if w.Cluster.Undo(0); len(reserved(w, "g")) > 0 {
		t.Errorf("after all is undone %v is reserved", reserved(w, "g"))
	}
}

// packed is a cluster in which pods go to the fullest node: so many of two CPUs and one of eight.
func packed(t *testing.T, small int, large string) *harness.Model {
	w := placing(t, "gang", "predicates", "binpack").Set(fixture.LateClass("late", fixture.Provisioner), fixture.Claim("shared", "late"), fixture.Node("large", "cpu="+large))
	for i := range small {
		w.Set(fixture.Node(fmt.Sprintf("small%d", i), "cpu=2"))
	}
	return w
}

func TestPodsThatShareAClaimGoWhereAllOfThemFit(t *testing.T) {
	for name, large := range map[string]string{"with room to spare": "8", "with room for them alone": "4"} {
		t.Run(name, func(t *testing.T) {
			w := packed(t, 20, large).Set(gangOf("g", 4, fixture.Mounting("shared"), fixture.Asks("cpu=1")))
			for pod, node := range placeAll(t, w, "g") {
				if node != "large" {
					t.Errorf("%s is placed on %s", pod, node)
				}
			}
		})
	}
}

func TestWhoNeedsAVolumeIsNotKeptFromItsNodeByOnesOwnGang(t *testing.T) {
	w := placing(t, "gang", "predicates", "binpack").Set(fixture.LateClass("local", ""), fixture.Node("n0", "cpu=2"), fixture.Node("n1", "cpu=8"),
		fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"), fixture.Claim("disk", "local"))
	w.Set(gangOf("g", 3)).Set(fixture.Pod("g-2", fixture.In("g"), fixture.As("worker", 2), fixture.Mounting("disk")))
	if places := placeAll(t, w, "g"); places["g-2"] != "n0" {
		t.Errorf("placed %v", places)
	}
}

func TestWherePodsThatShareAClaimFitNowhereTogetherNothingIsHeld(t *testing.T) {
	w := packed(t, 20, "3").Set(gangOf("g", 4, fixture.Mounting("shared"), fixture.Asks("cpu=1")))
	if v := try(w, "g"); v == nil || v.Code != verdict.NotEnoughResources || v.Placed >= 4 {
		t.Errorf("the verdict is %v", v)
	}
	if w.Cluster.Mark() != 0 || len(reserved(w, "g")) > 0 {
		t.Errorf("%v is reserved", reserved(w, "g"))
	}
}

func TestAPodWithoutVolumesIsPlacedAsIfThereWereNone(t *testing.T) {
	w := placing(t).Set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""), fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"))
	w.Set(gangOf("g", 1))
	placeAll(t, w, "g")
	if k := w.TaskNamed("g-0").Class; k.NeedsSupplies() || k.Plain != k {
		t.Error("its class needs volumes or devices")
	}
	expectReserved(t, w, "g")
}

func TestTheVolumeThatIsUsedBestDecidesWhereItIsScored(t *testing.T) {
	shape := "predicates {volumebinding.shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}"
	w := placing(t, "gang", shape).Set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.Set(fixture.Volume("v0", "local", "100Gi", corev1.LabelHostname, "n0"), fixture.Volume("v1", "local", "2Gi", corev1.LabelHostname, "n1"))
	w.Set(fixture.GangWithClaims("g", 1, "local"))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: g-0=v1")
}

// allSupplies are all volumes and devices as they are seen.
func allSupplies(c *model.Cluster) map[supplies.Key]supplies.Object {
	seen := map[supplies.Key]supplies.Object{}
	for _, key := range c.Supplies().Keys() {
		seen[key] = c.Supplies().Get(key)
	}
	return seen
}

func TestAGangThatFailsLeavesNothingReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := placing(t).Set(harness.Supplies(t))
		s := w.Open()
		for _, j := range w.Cluster.Jobs() {
			before := allSupplies(w.Cluster)
			x := s.Begin()
			if gang.Place(s, j, s.Pending(j)) == nil {
				if rapid.Bool().Draw(t, "keep") {
					x.Commit()
					continue
				}
				x.Undo()
			}
			if diff := cmp.Diff(before, allSupplies(w.Cluster)); diff != "" {
				t.Fatalf("after gang %s failed or was undone (-before +after):\n%s", j.ID, diff)
			}
			if held := reserved(w, j.ID.Name); len(held) > 0 {
				t.Fatalf("gang %s holds %v", j.ID, held)
			}
		}
		checkShared(t, w)
		for _, problem := range w.Audit() {
			t.Fatal(problem)
		}
	})
}

// checkShared makes sure that no volume and no device is reserved for two claims, and each can be used where the pod
// is.
func checkShared(t *rapid.T, w *harness.Model) {
	owner := map[string]types.NamespacedName{}
	own := func(what string, claim types.NamespacedName) {
		if other, taken := owner[what]; taken && other != claim {
			t.Fatalf("%s is reserved for %s and for %s", what, claim, other)
		}
		owner[what] = claim
	}
	for _, j := range w.Cluster.Jobs() {
		for _, task := range j.Tasks() {
			if task.Reservation == nil {
				continue
			}
			for _, v := range task.Reservation.Volumes {
				if v.Volume != "" {
					own("volume "+v.Volume, v.Claim)
					if !strings.HasPrefix(v.Volume, "v"+task.Node.Name[1:]+"-") {
						t.Fatalf("%s is on %s and is to have volume %s", task.Key().Name, task.Node.Name, v.Volume)
					}
				} else {
					own("node of "+v.Claim.Name+" "+task.Node.Name, v.Claim)
				}
			}
			for _, d := range task.Reservation.Devices {
				for _, r := range d.Allocation.Devices.Results {
					own("device "+r.Pool+"/"+r.Device, d.Claim)
					if r.Pool != task.Node.Name {
						t.Fatalf("%s is on %s and is to have device %s/%s", task.Key().Name, task.Node.Name, r.Pool, r.Device)
					}
				}
			}
		}
	}
}
