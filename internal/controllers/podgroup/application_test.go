package podgroup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

func TestAPodOfAnApplicationStaysWhereItIs(t *testing.T) {
	of := func(named string) *corev1.Pod {
		pod := controlled(lonePod(nil), "v1", "Pod")
		pod.Labels = map[string]string{yunikorn.SparkSelectorKey: "spark"}
		if named != "" {
			pod.Annotations = map[string]string{scheduling.KubeGroupNameAnnotationKey: named}
		}
		return pod
	}
	for _, test := range []struct {
		name, named string
		reads       bool
		want        string
	}{
		{"a new one", "", true, "podgroup-app-spark"},
		{"a new one where labels do not count", "", false, "podgroup-r-1"},
		{"one that was there before labels counted", "podgroup-r-1", true, "podgroup-r-1"},
		{"one that is there after labels counted", "podgroup-app-spark", false, "podgroup-app-spark"},
		{"one that a user put elsewhere", "mine", true, ""},
	} {
		if got := keptGroup(of(test.named), []string{"volcano"}, test.reads); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestThePodGroupOfAnApplicationIsManagedWithoutAnOwner(t *testing.T) {
	pod := lonePod(nil)
	pod.Labels = map[string]string{yunikorn.ApplicationIDKey: "a"}
	group, _ := groupbuilder.ApplicationGroup(pod, groupbuilder.Surroundings{})
	if !isOurs(group) {
		t.Error("it is not ours")
	}
	delete(group.Annotations, yunikorn.AppIDKey)
	if isOurs(group) {
		t.Error("a PodGroup of this name that another client has made is ours")
	}
}
