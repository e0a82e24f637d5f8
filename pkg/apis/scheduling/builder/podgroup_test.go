package builder

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

func TestALonePodGetsAPodGroupOfItsOwn(t *testing.T) {
	pod := fixture.LonePod(map[string]string{"volcano.sh/preemptable": "true", "note": "the pod's own"})
	pod.Labels = map[string]string{"volcano.sh/qos-level": "BE", "app": "web"}
	group, problems := PodGroup(pod, Surroundings{})
	want := &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "podgroup-p-1",
			Labels:          map[string]string{"volcano.sh/qos-level": "BE"},
			Annotations:     map[string]string{"volcano.sh/preemptable": "true", scheduling.SchedulerNameKey: "volcano"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "one", UID: "p-1", Controller: new(bool)}},
		},
		Spec: scheduling.PodGroupSpec{
			MinMember: 1, Queue: "default", PriorityClassName: "high", MinResources: &corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi"),
				corev1.ResourceRequestsCPU: resource.MustParse("2"), corev1.ResourceRequestsMemory: resource.MustParse("1Gi"),
				corev1.ResourcePods: resource.MustParse("1"), "count/pods": resource.MustParse("1"),
			},
		},
	}
	*want.OwnerReferences[0].Controller = true
	if len(problems) > 0 || !apiequality.Semantic.DeepEqual(want, group) {
		t.Errorf("problems %v, PodGroup (-want +got):\n%s", problems, cmp.Diff(want, group))
	}
}

func TestPodsOfOneControllerShareAPodGroup(t *testing.T) {
	pod := fixture.Controlled(fixture.LonePod(nil), "apps/v1", "ReplicaSet")
	around := Surroundings{Owner: map[string]string{
		scheduling.GroupMinMemberAnnotationKey: "3",
		scheduling.QueueNameAnnotationKey:      "research",
		"volcano.sh/sla-waiting-time":          "1h",
		"deployment.kubernetes.io/revision":    "7",
	}}
	group, problems := PodGroup(pod, around)
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	owner := metav1.GetControllerOf(group)
	if group.Name != "podgroup-r-1" || owner == nil || owner.UID != "r-1" || owner.Kind != "ReplicaSet" || len(group.OwnerReferences) != 1 {
		t.Errorf("PodGroup %s with owners %+v", group.Name, group.OwnerReferences)
	}
	if group.Spec.MinMember != 3 || group.Spec.Queue != "research" || group.Spec.MinResources.Cpu().Value() != 6 {
		t.Errorf("spec %+v", group.Spec)
	}
	if diff := cmp.Diff(map[string]string{"volcano.sh/sla-waiting-time": "1h", scheduling.SchedulerNameKey: "volcano"}, group.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestTheQueueComesFromTheNearest(t *testing.T) {
	says := func(queue string) map[string]string {
		return map[string]string{scheduling.QueueNameAnnotationKey: queue}
	}
	for _, test := range []struct {
		name    string
		pod     map[string]string
		around  Surroundings
		want    string
		problem string
	}{
		{"nobody says", nil, Surroundings{}, "default", ""},
		{"the namespace says", nil, Surroundings{Namespace: says("n")}, "n", ""},
		{"the owner says", nil, Surroundings{Owner: says("o"), Namespace: says("n")}, "o", ""},
		{"the pod says", says("p"), Surroundings{Owner: says("o"), Namespace: says("n")}, "p", ""},
		{"the pod mumbles", says("No Queue"), Surroundings{Namespace: says("n")}, "n", `queue-name: "No Queue"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			group, problems := PodGroup(fixture.LonePod(test.pod), test.around)
			if group.Spec.Queue != test.want {
				t.Errorf("queue %q, want %q", group.Spec.Queue, test.want)
			}
			if got := strings.Join(problems, "; "); (got != "") != (test.problem != "") || !strings.Contains(got, test.problem) {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
		})
	}
}

func TestTheMinimumIsReadWhereItCanBeMet(t *testing.T) {
	says := func(number string) map[string]string {
		return map[string]string{scheduling.GroupMinMemberAnnotationKey: number}
	}
	ofController := func(annotations map[string]string) *corev1.Pod {
		return fixture.Controlled(fixture.LonePod(annotations), "apps/v1", "StatefulSet")
	}
	for _, test := range []struct {
		name    string
		pod     *corev1.Pod
		owner   map[string]string
		want    int32
		problem string
	}{
		{"nobody says", ofController(nil), nil, 1, ""},
		{"the owner says", ofController(nil), says("4"), 4, ""},
		{"the pod says", ofController(says("2")), says("4"), 2, ""},
		{"one is fine for a lone pod", fixture.LonePod(says("1")), nil, 1, ""},
		{"a lone pod cannot be two", fixture.LonePod(says("2")), nil, 1, "group-min-member: 2 cannot be met"},
		{"not a number", ofController(nil), says("many"), 1, `group-min-member: "many" is not a number`},
		{"zero", ofController(nil), says("0"), 1, `group-min-member: "0" is not a number`},
		{"negative", ofController(nil), says("-1"), 1, `group-min-member: "-1" is not a number`},
		{"too large", ofController(nil), says("99999999999"), 1, `group-min-member: "99999999999" is not a number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			group, problems := PodGroup(test.pod, Surroundings{Owner: test.owner})
			if group.Spec.MinMember != test.want {
				t.Errorf("minMember %d, want %d", group.Spec.MinMember, test.want)
			}
			if got := strings.Join(problems, "; "); (got != "") != (test.problem != "") || !strings.Contains(got, test.problem) {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
		})
	}
}

func TestTheMinimumOfResourcesIsReadOrCounted(t *testing.T) {
	says := func(text string) map[string]string {
		return map[string]string{scheduling.GroupMinResourcesAnnotationKey: text, scheduling.GroupMinMemberAnnotationKey: "2"}
	}
	counted := requests("4", "2Gi")
	for name, quantity := range map[corev1.ResourceName]string{"requests.cpu": "4", "requests.memory": "2Gi", "pods": "2", "count/pods": "2"} {
		counted[name] = resource.MustParse(quantity)
	}
	for _, test := range []struct {
		name, pod, owner string
		want             corev1.ResourceList
		problem          string
	}{
		{"nobody says", "", "", counted, ""},
		{"the owner says", "", `{"cpu": "7", "memory": 1024}`, requests("7", "1Ki"), ""},
		{"the pod says", `{"cpu": 1}`, `{"cpu": 7}`, requests("1", ""), ""},
		{"nothing is needed", `{}`, "", corev1.ResourceList{}, ""},
		{"not JSON", "cpu: 1", "", counted, `"cpu: 1" is not a JSON object of quantities`},
		{"a quantity that nobody could parse", `{"cpu": "1e-2000000000"}`, "", counted, `cpu: Invalid value: "1e-2000000000": the exponent of a quantity has at most 2 digits`},
		{"not quantities", `{"cpu": "many"}`, "", counted, "group-min-resources"},
		{"not an object", `null`, "", counted, "group-min-resources"},
		{"negative", `{"cpu": -1}`, "", counted, "cpu is negative"},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod, around := fixture.Controlled(fixture.LonePod(nil), "apps/v1", "StatefulSet"), Surroundings{Owner: map[string]string{scheduling.GroupMinMemberAnnotationKey: "2"}}
			if test.pod != "" {
				pod.Annotations = says(test.pod)
			}
			if test.owner != "" {
				around.Owner = says(test.owner)
			}
			group, problems := PodGroup(pod, around)
			if !apiequality.Semantic.DeepEqual(*group.Spec.MinResources, test.want) {
				t.Errorf("minResources %v, want %v", *group.Spec.MinResources, test.want)
			}
			if got := strings.Join(problems, "; "); (got != "") != (test.problem != "") || !strings.Contains(got, test.problem) {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
		})
	}
}

func TestTheNetworkTopologyIsRead(t *testing.T) {
	three := 3
	const mode, tier = scheduling.NetworkTopologyModeKey, scheduling.NetworkTopologyHighestTierKey
	hard, soft := scheduling.HardNetworkTopologyMode, scheduling.SoftNetworkTopologyMode
	for _, test := range []struct {
		name       string
		pod, owner map[string]string
		want       *scheduling.NetworkTopologySpec
		problem    string
	}{
		{"nobody says", nil, nil, nil, ""},
		{"the pod says", map[string]string{mode: "soft", tier: "3"}, nil, &scheduling.NetworkTopologySpec{Mode: soft, HighestTierAllowed: &three}, ""},
		{"the owner says", nil, map[string]string{mode: "Hard"}, &scheduling.NetworkTopologySpec{Mode: hard}, ""},
		{"each says a part", map[string]string{tier: "3"}, map[string]string{mode: "soft", tier: "4"},
			&scheduling.NetworkTopologySpec{Mode: soft, HighestTierAllowed: &three}, ""},
		{"only the tier", map[string]string{tier: "3"}, nil, &scheduling.NetworkTopologySpec{Mode: hard, HighestTierAllowed: &three}, ""},
		{"another mode", map[string]string{mode: "firm"}, nil, &scheduling.NetworkTopologySpec{Mode: hard}, `network-topology-mode: "firm" is neither`},
		{"no tier", map[string]string{mode: "soft", tier: "low"}, nil, &scheduling.NetworkTopologySpec{Mode: soft}, `highest-tier: "low" is not a number`},
		{"a tier below all", map[string]string{tier: "-1"}, nil, &scheduling.NetworkTopologySpec{Mode: hard}, `highest-tier: "-1" is not a number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			group, problems := PodGroup(fixture.LonePod(test.pod), Surroundings{Owner: test.owner})
			if diff := cmp.Diff(test.want, group.Spec.NetworkTopology); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := strings.Join(problems, "; "); (got != "") != (test.problem != "") || !strings.Contains(got, test.problem) {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
		})
	}
}
