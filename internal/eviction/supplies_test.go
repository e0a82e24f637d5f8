package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// mounting makes each pod of a job mount claims.
func mounting(claims ...string) option { return each(fixture.Mounting(claims...)) }

// twoFullNodes is a world with two full nodes and a pod of job victim on each.
func twoFullNodes(t *testing.T) *loop.Loop {
	return start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 0, "n1 n2"), fixture.LateClass("local", ""))
}

func TestPlansKeepVolumesAndDevices(t *testing.T) {
	t.Run("room is made where the volume of the preemptor is", func(t *testing.T) {
		w := twoFullNodes(t).Set(fixture.Claim("c", "local", fixture.BoundTo("v")), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
			job("preemptor", "default", "high", 1, "-", mounting("c")))
		w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").RemovePods("victim-0")
		w.Expect("preemptor-0 is bound to n1")
	})
	t.Run("a volume is kept for the pod that is nominated", func(t *testing.T) {
		w := twoFullNodes(t).Set(fixture.Claim("c", "local"), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2"),
			job("preemptor", "default", "high", 1, "-", mounting("c")))
		w.Expect("victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2")
		// Another job with a claim of the class gets room at once, and no volume.
		w.Set(fixture.Node("n3", "cpu=1"), fixture.Claim("d", "local"), job("other", "default", "high", 1, "-", mounting("d"))).Expect("")
		w.RemovePods("victim-1").Expect("preemptor-0 is bound to n2")
		bound := w.Result.Decisions.Binds[0].Reservation
		if bound == nil || len(bound.Volumes) != 1 || bound.Volumes[0].Volume != "v" {
			t.Errorf("the binding takes %+v", bound)
		}
	})
	t.Run("a plan ends if another pod took its volume", func(t *testing.T) {
		w := twoFullNodes(t).Set(fixture.Claim("c", "local"), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2"),
			job("preemptor", "default", "high", 1, "-", mounting("c")))
		w.Expect("victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2")
		w.Set(fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2", fixture.OfClaim("another")))
		if got := loop.Describe(w.Cycle()); !strings.HasPrefix(got, "the plan for preemptor ends: ") || !strings.HasSuffix(got, "victim-1 stays, preemptor-0 waits") {
			t.Errorf("the cycle decides %s", got)
		}
	})
	t.Run("no pod is evicted for a volume or device it does not free", func(t *testing.T) {
		w := twoFullNodes(t).Set(fixture.Claim("mine", "local"), fixture.Claim("c", "local", fixture.BoundTo("v")),
			fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
			job("holder", "default", "low", 0, "n1", mounting("c")), job("preemptor", "default", "high", 1, "-", mounting("mine")))
		w.Expect("")
		if j := w.Job(cluster.GroupID(fixture.Key("preemptor"))); j.Count(cluster.Pending) != 1 || j.Plan != nil {
			t.Error("it does not wait")
		}
	})
	t.Run("a pod leaves for a claim that one pod alone may use", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=2", "n1"), fixture.LateClass("local", ""),
			fixture.Claim("c", "local", fixture.ForOnePod, fixture.BoundTo("v")), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
			job("victim", "default", "low", 0, "n1", mounting("c")), job("preemptor", "default", "high", 1, "-", mounting("c")))
		w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").Terminate("victim-0").Expect("")
		w.RemovePods("victim-0").Expect("preemptor-0 is bound to n1")
	})
}
