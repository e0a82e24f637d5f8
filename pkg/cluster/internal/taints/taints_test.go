package taints_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/internal/taints"
)

func node(keys ...string) *corev1.Node {
	n := &corev1.Node{}
	for _, key := range keys {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	return n
}

func tolerating(keys ...string) (all []corev1.Toleration) {
	for _, key := range keys {
		all = append(all, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return all
}

func TestANodeIsToldWhenATaintComesToBeToleratedAndWhenItNoLongerIs(t *testing.T) {
	x := taints.New()
	x.SetNode("n", nil, node("a"))
	x.SetNode("m", nil, node("b"))
	var told []string
	tell := func(name string) { told = append(told, name) }
	step := func(what string, want []string, areTolerated bool) {
		t.Helper()
		if !slices.Equal(told, want) || x.AreTolerated(node("a")) != areTolerated {
			t.Errorf("%s: told are %v, want %v; tolerated %t", what, told, want, x.AreTolerated(node("a")))
		}
		told = nil
	}
	first := x.Count(nil, tolerating("a"), tell)
	step("the first pod comes", []string{"n"}, true)
	second := x.Count(nil, tolerating("a"), tell)
	step("the second comes", nil, true)
	first = x.Count(first, nil, tell)
	step("the first goes", nil, true)
	second = x.Count(second, tolerating("a", "c"), tell)
	step("the second tolerates more", nil, true)
	x.Count(second, nil, tell)
	step("the second goes", []string{"n"}, false)
	if len(first) != 0 {
		t.Errorf("counted for the first is still %v", first)
	}
}

func TestATaintThatComesLaterKnowsWhoToleratesIt(t *testing.T) {
	x := taints.New()
	x.Count(nil, tolerating("a"), func(string) {})
	x.SetNode("n", nil, node("a", "b"))
	if x.AreTolerated(node("a", "b")) {
		t.Error("one of two taints is tolerated by no pod")
	}
	if x.SetNode("n", node("a", "b"), node("a")); !x.AreTolerated(node("a")) {
		t.Error("the toleration that was there before is forgotten")
	}
}
