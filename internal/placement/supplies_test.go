package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

const made = "made.example.com" // a provisioner

// host is the label that a node has to itself.
const host = corev1.LabelHostname

// gangWithClaims is a gang of which each pod has a claim of its own, of a class.
func gangWithClaims(name string, size int, class string, options ...func(*corev1.Pod)) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, "default", int32(size))}
	for i := range size {
		pod := fmt.Sprintf("%s-%d", name, i)
		objects = append(objects, fixture.Claim(pod, class), fixture.Pod(pod,
			append([]func(*corev1.Pod){fixture.In(name), fixture.As("worker", i), fixture.Mounting(pod)}, options...)...))
	}
	return objects
}

// try places a gang, and returns why it cannot be placed.
func try(w *setup, job string) *verdict.Verdict {
	s := w.open()
	j := w.JobNamed(job)
	return gang.Place(s, j, s.Pending(j))
}

// reserved is what the tasks of a job hold besides room, "g-0: g-0=v1" or, for a volume that is to be made, "g-0: g-0 on n0".
func reserved(w *setup, job string) []string {
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

func expectReserved(t *testing.T, w *setup, job string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, reserved(w, job)); diff != "" {
		t.Errorf("what is reserved differs (-want +got):\n%s", diff)
	}
}

func TestEachMemberOfAGangHasItsVolumeMadeWhereItIsPlaced(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=1"), fixture.Node("n1", "cpu=1"), fixture.LateClass("late", made))
	w.set(gangWithClaims("g", 2, "late"))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: g-0 on n0", "g-1: g-1 on n1")
}

func TestTheNextMemberDoesNotGetTheVolumeOfTheOneBefore(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.set(fixture.Volume("v0", "local", "1Gi", host, "n0"), fixture.Volume("v1", "local", "2Gi", host, "n0"))
	w.set(gangWithClaims("g", 2, "local"))
	places := placeAll(t, w, "g")
	if places["g-0"] != "n0" || places["g-1"] != "n0" {
		t.Errorf("placed %v", places)
	}
	expectReserved(t, w, "g", "g-0: g-0=v0", "g-1: g-1=v1")
}

func TestAGangThatFindsTooFewVolumesHoldsNone(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.set(fixture.Volume("v0", "local", "1Gi", host, "n0"), fixture.Volume("v1", "local", "1Gi", host, "n1"))
	w.set(gangWithClaims("g", 3, "local"))
	v := try(w, "g")
	want := &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpSupply, Placed: 2, Wanted: 3, Fitting: []string{"g-0", "g-1"},
		Nodes:  []verdict.NodeReason{{Reason: "node(s) didn't find available persistent volumes to bind", Nodes: 2, Example: "n0"}},
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
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""))
	w.set(gangWithClaims("g", 1, "local"))
	s := w.open()
	s.AddVerdict(w.JobNamed("g"), gang.Place(s, w.JobNamed("g"), s.Pending(w.JobNamed("g"))))
	if w.Cluster.Hopeful(w.JobNamed("g"), s.Now) {
		t.Error("it is looked at again though nothing has come")
	}
	w.set(fixture.Volume("v0", "local", "1Gi", host, "n0"))
	if !w.Cluster.Hopeful(w.JobNamed("g"), s.Now) {
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
			fixture.Volume("v", "late", "1Gi", host, "b0", fixture.OfClaim("c"))}, fixture.Mounting("c"), "b0"},
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
		"nowhere before its claim is bound": {[]runtime.Object{fixture.EarlyClass("early", made), fixture.Claim("c", "early")}, fixture.Mounting("c"),
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
			w := newSetup(t).set(fixture.Node("a0", "cpu=8", inZone("a"), linux), fixture.Node("b0", "cpu=8", inZone("b"), linux), fixture.LateClass("late", made))
			w.set(c.objects).set(fixture.Group("g", "default", 1), fixture.Pod("g-0", fixture.In("g"), c.pod))
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
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("late", made), fixture.Claim("shared", "late"))
	w.set(gangOf("g", 2, fixture.Mounting("shared")))
	if places := placeAll(t, w, "g"); distinct(places) != 1 {
		t.Errorf("placed %v", places)
	}
	if w.Cluster.Undo(0); len(reserved(w, "g")) > 0 {
		t.Errorf("after all is undone %v is reserved", reserved(w, "g"))
	}
}

// packed is a cluster in which pods go to the fullest node: so many of two CPUs and one of eight.
func packed(t *testing.T, small int, large string) *setup {
	w := newSetup(t, "gang", "predicates", "binpack").set(fixture.LateClass("late", made), fixture.Claim("shared", "late"), fixture.Node("large", "cpu="+large))
	for i := range small {
		w.set(fixture.Node(fmt.Sprintf("small%d", i), "cpu=2"))
	}
	return w
}

func TestPodsThatShareAClaimGoWhereAllOfThemFit(t *testing.T) {
	for name, large := range map[string]string{"with room to spare": "8", "with room for them alone": "4"} {
		t.Run(name, func(t *testing.T) {
			w := packed(t, 20, large).set(gangOf("g", 4, fixture.Mounting("shared"), fixture.Asks("cpu=1")))
			for pod, node := range placeAll(t, w, "g") {
				if node != "large" {
					t.Errorf("%s is placed on %s", pod, node)
				}
			}
		})
	}
}

func TestWhoNeedsAVolumeIsNotKeptFromItsNodeByOnesOwnGang(t *testing.T) {
	w := newSetup(t, "gang", "predicates", "binpack").set(fixture.LateClass("local", ""), fixture.Node("n0", "cpu=2"), fixture.Node("n1", "cpu=8"),
		fixture.Volume("v0", "local", "1Gi", host, "n0"), fixture.Claim("disk", "local"))
	w.set(gangOf("g", 3)).set(fixture.Pod("g-2", fixture.In("g"), fixture.As("worker", 2), fixture.Mounting("disk")))
	if places := placeAll(t, w, "g"); places["g-2"] != "n0" {
		t.Errorf("placed %v", places)
	}
}

func TestWherePodsThatShareAClaimFitNowhereTogetherNothingIsHeld(t *testing.T) {
	w := packed(t, 20, "3").set(gangOf("g", 4, fixture.Mounting("shared"), fixture.Asks("cpu=1")))
	if v := try(w, "g"); v == nil || v.Code != verdict.NotEnoughResources || v.Placed >= 4 {
		t.Errorf("the verdict is %v", v)
	}
	if w.Cluster.Mark() != 0 || len(reserved(w, "g")) > 0 {
		t.Errorf("%v is reserved", reserved(w, "g"))
	}
}

func TestAPodWithoutVolumesIsPlacedAsIfThereWereNone(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""), fixture.Volume("v0", "local", "1Gi", host, "n0"))
	w.set(gangOf("g", 1))
	placeAll(t, w, "g")
	if k := w.TaskNamed("g-0").Class; k.NeedsSupplies() || k.Plain != k {
		t.Error("its class needs volumes or devices")
	}
	expectReserved(t, w, "g")
}

func TestTheVolumeThatIsUsedBestDecidesWhereItIsScored(t *testing.T) {
	shape := "predicates\n    arguments:\n      volumebinding.shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
	w := newSetup(t, "gang", shape).set(fixture.Node("n0", "cpu=8"), fixture.Node("n1", "cpu=8"), fixture.LateClass("local", ""))
	w.set(fixture.Volume("v0", "local", "100Gi", host, "n0"), fixture.Volume("v1", "local", "2Gi", host, "n1"))
	w.set(gangWithClaims("g", 1, "local"))
	placeAll(t, w, "g")
	expectReserved(t, w, "g", "g-0: g-0=v1")
}

func TestAClaimForOnePodIsFreeOnceThePodThatHasItHasLeft(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("late", made), fixture.Group("g", "default", 1),
		fixture.Claim("c", "late", fixture.ForOnePod, fixture.BoundTo("v")), fixture.Volume("v", "late", "1Gi", host, "n0", fixture.OfClaim("c")))
	leaving := fixture.Pod("leaving", fixture.On("n0"), fixture.Mounting("c"))
	leaving.DeletionTimestamp = &metav1.Time{Time: fixture.Birth.Add(time.Hour)}
	w.set(leaving, fixture.Pod("g-0", fixture.In("g"), fixture.Mounting("c")))
	w.open()
	n := w.Cluster.Node("n0")
	if w.Engine.Fits(w.TaskNamed("g-0"), n) || !w.Outlook.Fits(w.TaskNamed("g-0"), n) {
		t.Error("it is to be free once the pod has left, and not before")
	}
}

func TestAPromisedVolumeIsNoOtherPods(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""), fixture.Volume("v0", "local", "1Gi", host, "n0"))
	w.set(gangWithClaims("g", 1, "local")).set(gangWithClaims("h", 1, "local"))
	s := w.open()
	s.Outlook = w.Outlook
	x := s.Begin()
	x.Pipeline(w.TaskNamed("g-0"), w.Cluster.Node("n0"))
	if w.Engine.Best(w.TaskNamed("h-0")) != nil {
		t.Error("the volume is given to another")
	}
	x.Undo()
	if w.Engine.Best(w.TaskNamed("h-0")) == nil {
		t.Error("the volume is not free again")
	}
}

// supplyCluster is a cluster of few volumes and devices and gangs that want them.
func supplyCluster(t *rapid.T) *setup {
	w := newSetup(t).set(fixture.LateClass("local", ""), fixture.LateClass("late", made), standsFor(fixture.Devices("gpu")), fixture.Claim("shared", "late"))
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		name := fmt.Sprint("n", i)
		w.set(fixture.Node(name, fmt.Sprintf("cpu=%d", rapid.IntRange(1, 4).Draw(t, "cpus"))), fixture.Slice(name, rapid.IntRange(0, 2).Draw(t, "devices")))
		for k := range rapid.IntRange(0, 2).Draw(t, "volumes") {
			w.set(fixture.Volume(fmt.Sprintf("v%d-%d", i, k), "local", fmt.Sprintf("%dGi", rapid.IntRange(1, 3).Draw(t, "size")), host, name))
		}
	}
	for g := range rapid.IntRange(1, 3).Draw(t, "gangs") {
		name := fmt.Sprint("g", g)
		size := rapid.IntRange(1, 4).Draw(t, "size of the gang")
		w.set(fixture.Group(name, "default", int32(size)))
		for i := range size {
			pod := fmt.Sprintf("%s-%d", name, i)
			options := []func(*corev1.Pod){fixture.In(name), fixture.As("worker", i)}
			switch rapid.SampledFrom([]string{"none", "local", "late", "shared", "device", "resource"}).Draw(t, "needs") {
			case "local":
				w.set(fixture.Claim(pod, "local"))
				options = append(options, fixture.Mounting(pod))
			case "late":
				w.set(fixture.Claim(pod, "late"))
				options = append(options, fixture.Mounting(pod))
			case "shared":
				options = append(options, fixture.Mounting("shared"))
			case "device":
				w.set(fixture.DeviceClaim(pod, "gpu", 1))
				options = append(options, fixture.Using(pod))
			case "resource":
				options = append(options, asking("1"))
			}
			w.set(fixture.Pod(pod, options...))
		}
	}
	return w
}

// allSupplies are all volumes and devices as they are seen.
func allSupplies(c *cluster.Cluster) map[supplies.Key]supplies.Object {
	seen := map[supplies.Key]supplies.Object{}
	for _, key := range c.Supplies().Keys() {
		seen[key] = c.Supplies().Get(key)
	}
	return seen
}

func TestAGangThatFailsLeavesNothingReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := supplyCluster(t)
		s := w.open()
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
		for _, problem := range w.Cluster.Audit() {
			t.Fatal(problem)
		}
	})
}

// checkShared makes sure that no volume and no device is reserved for two claims, and each can be used where the pod is.
func checkShared(t *rapid.T, w *setup) {
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

func TestWhatFitsIsWhatIsBestForPodsWithVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := supplyCluster(t)
		w.open()
		// Where somebody may veto, all nodes are ranked; else they are taken off the heap. Both must say the same.
		ranking, err := placer.New(w.Cluster, newSetup(t, "gang", "predicates", "nodeorder", "content").Policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range w.Cluster.Jobs() {
			for _, task := range j.Tasks() {
				best := w.Engine.Best(task)
				fits := slices.ContainsFunc(w.Cluster.Nodes(), func(n *cluster.Node) bool { return w.Engine.Fits(task, n) })
				if (best != nil) != fits {
					t.Fatalf("the best node for %s is %s; that one fits is %t", task.Key().Name, nameOf(best), fits)
				}
				if ranked := ranking.Best(task); ranked != best {
					t.Fatalf("the best node for %s is %s, of all ranked %s", task.Key().Name, nameOf(best), nameOf(ranked))
				}
				if best == nil {
					continue
				}
				if _, ok := w.Engine.Reserve(task, best); !ok || !w.Engine.Fits(task, best) || best.Free(resources.CPU) < 1000 {
					t.Fatalf("%s does not have what %s needs", best.Name, task.Key().Name)
				}
			}
		}
	})
}
