package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func TestDevicesOfAPodThatLeavesAreNotCountedOn(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Devices("gpu"), fixture.Slice("n0", 1), fixture.Group("g", "default", 1))
	used := fixture.DeviceClaim("used", "gpu", 1)
	used.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpus", Driver: "gpus.example.com", Pool: "n0", Device: "gpu-0"}}}}
	leaving := fixture.Pod("leaving", fixture.On("n0"), fixture.Using("used"))
	leaving.DeletionTimestamp = &metav1.Time{Time: fixture.Birth.Add(time.Hour)}
	w.set(used, leaving, fixture.DeviceClaim("c", "gpu", 1), fixture.Pod("g-0", fixture.In("g"), fixture.Using("c")))
	w.open()
	if task := w.TaskNamed("g-0"); w.Outlook.Fits(task, w.Cluster.Node("n0")) || w.Outlook.CanOpen(task, w.Cluster.Node("n0")) {
		t.Error("the device counts as free, though its claim has it")
	}
}

func TestAClaimForOnePodIsFreeOnceThePodThatHasItHasLeft(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("late", fixture.Provisioner), fixture.Group("g", "default", 1),
		fixture.Claim("c", "late", fixture.ForOnePod, fixture.BoundTo("v")), fixture.Volume("v", "late", "1Gi", corev1.LabelHostname, "n0", fixture.OfClaim("c")))
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
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.LateClass("local", ""), fixture.Volume("v0", "local", "1Gi", corev1.LabelHostname, "n0"))
	w.set(fixture.GangWithClaims("g", 1, "local")).set(fixture.GangWithClaims("h", 1, "local"))
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

func TestWhatFitsIsWhatIsBestForPodsWithVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSetup(t).set(harness.Supplies(t))
		w.open()
		// With a vetoer all nodes are ranked, without one the best is on top of a heap. Both must give the same.
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

// A claim may ask for more devices than a node has in a way that takes the search through all ways to choose some of
// them. It ends after a number of steps, and other pods get their devices.
func TestASearchForDevicesEndsAfterItsSteps(t *testing.T) {
	const devices, nodes = 24, 12
	w := newSetup(t).set(fixture.Devices("gpu"), fixture.Group("g", "default", 1))
	for i := range nodes {
		w.set(fixture.Node(fmt.Sprint("n", i), "cpu=8"), fixture.Slice(fmt.Sprint("n", i), devices))
	}
	claim := fixture.DeviceClaim("hostile", "gpu", devices/2)
	more := claim.Spec.Devices.Requests[0]
	more.Name, more.Exactly = "more", &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: devices/2 + 1, AllocationMode: resourcev1.DeviceAllocationModeExactCount}
	claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, more)
	w.set(claim, fixture.DeviceClaim("usual", "gpu", devices), fixture.Pod("hostile", fixture.In("g"), fixture.Using("hostile")), fixture.Pod("usual", fixture.In("g"), fixture.Using("usual")))
	w.open()
	steps := 0
	w.Engine.Meter(func(n int) { steps += n })
	if n := w.Engine.Best(w.TaskNamed("hostile")); n != nil {
		t.Errorf("it gets %s", n.Name)
	}
	if steps < 4<<13 || steps > 5<<13 {
		t.Errorf("the search on %d nodes took %d steps", nodes, steps)
	}
	if w.Engine.Best(w.TaskNamed("usual")) == nil {
		t.Error("another pod gets no devices")
	}
}

func TestAPodOfTooManyTopologyKeysIsRefused(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8"), fixture.Group("g", "default", 1))
	for name, keys := range map[string]int{"few": domains.MaxKeys, "many": domains.MaxKeys + 1} {
		pod := fixture.Pod(name, fixture.In("g"))
		for i := range keys {
			pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1,
				TopologyKey: fmt.Sprint("key-", i), WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}})
		}
		w.set(pod)
	}
	w.open()
	if w.Engine.Best(w.TaskNamed("few")) == nil {
		t.Error("one with as many as it may have gets no node")
	}
	if n := w.Engine.Best(w.TaskNamed("many")); n != nil {
		t.Errorf("one with more gets %s", n.Name)
	}
	if reasons, _ := w.Engine.Explain(w.TaskNamed("many")); len(reasons) != 1 || !strings.Contains(reasons[0].Reason, "65 topology keys") {
		t.Errorf("it waits because of %v", reasons)
	}
}

func TestAPodOfTooManyTermsIsRefusedAndMatchedWithNoPod(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=8000"), fixture.Group("g", "default", 1))
	for i := range 100 {
		w.set(fixture.Pod(fmt.Sprint("run-", i), fixture.In("g"), fixture.On("n0")))
	}
	terms := func(n int, values ...string) *corev1.Affinity {
		anti := &corev1.PodAntiAffinity{}
		for i := range n {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 1,
				PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: fmt.Sprint("label-", i), Operator: metav1.LabelSelectorOpNotIn, Values: append([]string{"a"}, values...)}}}}})
		}
		return &corev1.Affinity{PodAntiAffinity: anti}
	}
	pods := map[string]*corev1.Affinity{"few": terms(domains.MaxTerms / 3), "many": terms(domains.MaxTerms/3 + 1), "values": terms(1, make([]string, domains.MaxTerms)...)}
	for name, affinity := range pods {
		pod := fixture.Pod(name, fixture.In("g"))
		pod.Spec.Affinity = affinity
		w.set(pod)
	}
	w.open()
	steps := 0
	w.Engine.Meter(func(n int) { steps += n })
	for name, want := range map[string]string{"few": "", "many": "pod has 258 terms, namespaces, expressions and values in its affinity and spread constraints, and may have 256", "values": "pod has 259 terms"} {
		steps = 0
		if n := w.Engine.Best(w.TaskNamed(name)); (n != nil) != (want == "") {
			t.Errorf("%s gets %v", name, n)
		}
		t.Logf("%s: %d steps", name, steps)
		if want == "" {
			continue
		}
		if reasons, _ := w.Engine.Explain(w.TaskNamed(name)); len(reasons) != 1 || !strings.Contains(reasons[0].Reason, want) {
			t.Errorf("%s waits because of %v", name, reasons)
		}
		if steps > 20 {
			t.Errorf("%s takes %d steps, and is matched with no pod", name, steps)
		}
	}
}
