package scheduler_test

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// numbersIn calls a function for each whole number in a value, with what sets it; also for those that are left out.
func numbersIn(v reflect.Value, do func(set func(int64))) {
	isNumber := func(k reflect.Kind) bool { return k == reflect.Int || k == reflect.Int32 || k == reflect.Int64 }
	switch kind := v.Kind(); {
	case kind == reflect.Pointer && isNumber(v.Type().Elem().Kind()):
		do(func(n int64) {
			v.Set(reflect.New(v.Type().Elem()))
			v.Elem().SetInt(n)
		})
	case kind == reflect.Pointer && !v.IsNil():
		numbersIn(v.Elem(), do)
	case isNumber(kind):
		do(v.SetInt)
	case kind == reflect.Struct && v.Type().PkgPath() != "k8s.io/apimachinery/pkg/api/resource": // amounts have tests of their own
		for i := range v.NumField() {
			numbersIn(v.Field(i), do)
		}
	case kind == reflect.Slice:
		for i := range v.Len() {
			numbersIn(v.Index(i), do)
		}
	case kind == reflect.Map && isNumber(v.Type().Elem().Kind()):
		for _, key := range v.MapKeys() {
			do(func(n int64) { v.SetMapIndex(key, reflect.ValueOf(n).Convert(v.Type().Elem())) })
		}
	}
}

// groupWithAllNumbers is a PodGroup in which each number of its kind stands somewhere.
func groupWithAllNumbers(policies int) *schedulingv1beta1.PodGroup {
	group := fixture.Group("g", "default", 1)
	group.Spec.MinTaskMember = map[string]int32{"a": 1, "b": 1}
	group.Spec.NetworkTopology = &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.HardNetworkTopologyMode}
	for i := range policies {
		value := string(rune('a' + i%26))
		group.Spec.SubGroupPolicy = append(group.Spec.SubGroupPolicy, schedulingv1beta1.SubGroupPolicySpec{
			Name: value, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": value}}, MatchLabelKeys: []string{"index"},
			NetworkTopology: &schedulingv1beta1.NetworkTopologySpec{Mode: schedulingv1beta1.SoftNetworkTopologyMode},
		})
	}
	return group
}

func podWithAllNumbers() *corev1.Pod {
	every := &metav1.LabelSelector{}
	pod := fixture.Pod("p", fixture.In("g"), fixture.Asks("cpu=1"), fixture.Labelled("part", "a"), fixture.Labelled("index", "0"))
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Protocol: corev1.ProtocolTCP}}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: every}, {TopologyKey: "rack", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: every}}
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{}}},
		PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: every}}}},
	}
	return pod
}

// TestNoNumberOfAnObjectIsCountedUp adds PodGroups and pods with large numbers, one at a time and all at once, as the
// API server stores them for users who may edit a namespace. Neither memory nor time may grow with a number, and other
// jobs start.
func TestNoNumberOfAnObjectIsCountedUp(t *testing.T) {
	for name, number := range map[string]int64{"many": 1 << 26, "the most": math.MaxInt32} {
		for what, policies := range map[string]int{"one policy": 1, "all policies": schedulingv1beta1.MaxSubGroupPolicies} {
			t.Run(name+", "+what, func(t *testing.T) {
				found := tryNumbers(t, policies, func(int) bool { return true }, number)
				if found < 3*policies+8 {
					t.Fatalf("only %d numbers were found", found)
				}
				for i := range min(found, 40) {
					tryNumbers(t, policies, func(at int) bool { return at == i }, number)
				}
			})
		}
	}
}

// tryNumbers sets those numbers of a PodGroup and its pod that are asked for, and has a scheduler decide. It returns
// how many numbers there are.
func tryNumbers(t *testing.T, policies int, isSet func(at int) bool, number int64) (found int) {
	t.Helper()
	group, pod := groupWithAllNumbers(policies), podWithAllNumbers()
	for _, spec := range []any{&group.Spec, &pod.Spec} {
		numbersIn(reflect.ValueOf(spec).Elem(), func(set func(int64)) {
			if isSet(found) {
				set(number)
			}
			found++
		})
	}
	l := loop.New(t, loop.Evicting("gang", "priority", "drf", "overcommit", "network-topology-aware", "predicates", "nodeorder", "proportion")).
		Set(fixture.Node("n1", "cpu=8"), fixture.Group("other", "default", 1), fixture.Pod("other-0", fixture.In("other"), fixture.Asks("cpu=1")))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	decided := loop.Describe(l.Set(group).Cycle())
	l.Set(pod)
	for range 3 {
		decided += loop.Describe(l.Cycle())
	}
	l.Remove(group).Cycle()
	runtime.ReadMemStats(&after)
	if megabytes, took := (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(begin); megabytes > 32 || took > 5*time.Second {
		t.Fatalf("it took %d MiB and %v", megabytes, took)
	}
	if !strings.Contains(decided, "other-0 is bound") {
		t.Errorf("another job does not start: %s", decided)
	}
	return found
}
