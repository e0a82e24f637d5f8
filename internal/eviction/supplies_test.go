package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// mounting has each pod of a job mount claims.
func mounting(claims ...string) option { return each(fixture.Mounting(claims...)) }

// twoFullNodes is a world with a job giver of a pod on each of two nodes, which are full.
func twoFullNodes(t *testing.T) *world {
	return newWorld(t, everything).set(nodes("cpu=1", "n1", "n2"), job("giver", "default", "low", 0, "n1 n2"), fixture.LateClass("local", ""))
}

func TestRoomIsMadeWhereTheVolumeOfTheTakerIs(t *testing.T) {
	w := twoFullNodes(t).set(fixture.Claim("c", "local", fixture.BoundTo("v")), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
		job("taker", "default", "high", 1, "-", mounting("c")))
	w.expect("giver-0 leaves n1 for taker by J1; taker-0 is promised n1").die("giver-0")
	w.expect("taker-0 goes to n1")
}

func TestAVolumeIsKeptForThePodThatIsPromisedANode(t *testing.T) {
	w := twoFullNodes(t).set(fixture.Claim("c", "local"), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2"),
		job("taker", "default", "high", 1, "-", mounting("c")))
	w.expect("giver-1 leaves n2 for taker by J1; taker-0 is promised n2")
	// Somebody else with a claim of the class finds room at once, and no volume.
	w.set(fixture.Node("n3", "cpu=1"), fixture.Claim("d", "local"), job("other", "default", "high", 1, "-", mounting("d"))).expect("")
	w.die("giver-1").expect("taker-0 goes to n2")
	bound := w.decided.Binds[0].Reservation
	if bound == nil || len(bound.Volumes) != 1 || bound.Volumes[0].Volume != "v" {
		t.Errorf("the binding takes %+v", bound)
	}
}

func TestAPlanEndsWhoseVolumeSomebodyElseTook(t *testing.T) {
	w := twoFullNodes(t).set(fixture.Claim("c", "local"), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2"),
		job("taker", "default", "high", 1, "-", mounting("c")))
	w.expect("giver-1 leaves n2 for taker by J1; taker-0 is promised n2")
	w.set(fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n2", fixture.OfClaim("another")))
	if got := w.cycle(); !strings.HasPrefix(got, "the plan of taker ends: ") || !strings.HasSuffix(got, "giver-1 stays, taker-0 waits") {
		t.Errorf("the cycle decides %s", got)
	}
}

func TestNobodyLeavesForAVolumeOrADeviceThatAnotherClaimHas(t *testing.T) {
	w := twoFullNodes(t).set(fixture.Claim("mine", "local"), fixture.Claim("c", "local", fixture.BoundTo("v")),
		fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
		job("holder", "default", "low", 0, "n1", mounting("c")), job("taker", "default", "high", 1, "-", mounting("mine")))
	w.expect("")
	if j := w.Cluster().Job(fixture.Key("taker")); j.Count(cluster.Pending) != 1 || j.Plan != nil {
		t.Error("it does not wait")
	}
}

func TestAPodLeavesForTheClaimThatItAloneMayUse(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=2", "n1"), fixture.LateClass("local", ""),
		fixture.Claim("c", "local", fixture.ForOnePod, fixture.BoundTo("v")), fixture.Volume("v", "local", "1Gi", corev1.LabelHostname, "n1", fixture.OfClaim("c")),
		job("giver", "default", "low", 0, "n1", mounting("c")), job("taker", "default", "high", 1, "-", mounting("c")))
	w.expect("giver-0 leaves n1 for taker by J1; taker-0 is promised n1").leave("giver-0").expect("")
	w.die("giver-0").expect("taker-0 goes to n1")
}
