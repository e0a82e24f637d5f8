package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestAHighestTierIsNamedInOneWay(t *testing.T) {
	tier := 2
	once := &scheduling.NetworkTopologySpec{HighestTierAllowed: &tier}
	twice := &scheduling.NetworkTopologySpec{HighestTierAllowed: &tier, HighestTierName: "rack"}
	for name, test := range map[string]struct {
		group, policy *scheduling.NetworkTopologySpec
		want          string
	}{
		"none":             {},
		"by number":        {group: once, policy: once},
		"of the PodGroup":  {group: twice, want: `spec.networkTopology: Invalid value: "rack": must not specify 'highestTierAllowed' and`},
		"of a part of one": {policy: twice, want: `spec.subGroupPolicy[0].networkTopology: Invalid value: "rack": in subGroupPolicy 'workers': must not specify`},
	} {
		group := &scheduling.PodGroup{Spec: scheduling.PodGroupSpec{NetworkTopology: test.group,
			SubGroupPolicy: []scheduling.SubGroupPolicySpec{{Name: "workers", NetworkTopology: test.policy}}}}
		problems := ValidatePodGroup(group)
		if (len(problems) == 0) != (test.want == "") || len(problems) > 0 && !strings.HasPrefix(problems[0].Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, problems, test.want)
		}
	}
}

func TestAPathOfAHierarchyHasAWeightForEachPart(t *testing.T) {
	for _, test := range []struct{ path, weights, want string }{
		{"", "", ""},
		{"root/science/physics", "1/2/0.5", ""},
		{"root/science", "1", `metadata.annotations[volcano.sh/hierarchy-weights]: Invalid value: "1": volcano.sh/hierarchy must have the same length`},
		{"root//physics", "1/2/3", `metadata.annotations[volcano.sh/hierarchy]: Invalid value: "root//physics": its parts must not be empty`},
		{"root/science", "1/much", `"1/much": much in the 1/much is invalid number`},
		{"root/science", "1/NaN", `NaN in the 1/NaN is invalid number`},
		{"root/science", "1/-2", `-2 in the 1/-2 must be larger than 0`},
	} {
		queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			scheduling.HierarchyAnnotationKey: test.path, scheduling.HierarchyWeightsAnnotationKey: test.weights}}}
		problems := ValidateQueueHierarchy(queue)
		if (len(problems) == 0) != (test.want == "") || len(problems) > 0 && !strings.Contains(problems[0].Error(), test.want) {
			t.Errorf("%q with %q: %v, want %q", test.path, test.weights, problems, test.want)
		}
	}
}

func TestAPropertyOfAQueueIsRefusedWithWhatIsAllowed(t *testing.T) {
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "q", Annotations: map[string]string{
		scheduling.PreemptionDelayKey: "soon", scheduling.PreemptionPolicyKey: "fence"}}}
	problems := ValidateQueueProperties(queue, nil)
	want := `metadata.annotations[hekla.sh/preemption.delay]: Invalid value: "soon": queue q: allowed is a duration above 0, such as 30s`
	if len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("said is %v, want %s", problems, want)
	}
	if problems := ValidateQueueProperties(queue, map[string]string{scheduling.PreemptionDelayKey: "soon"}); len(problems) != 0 {
		t.Errorf("a queue that had the value before cannot be changed: %v", problems)
	}
}
