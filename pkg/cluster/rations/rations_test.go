package rations

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhatAQuotaCountsOfPods(t *testing.T) {
	for name, want := range map[corev1.ResourceName]Measure{
		"pods": {Resource: "pods"}, "count/pods": {Resource: "pods"}, "cpu": {Resource: "cpu"}, "requests.cpu": {Resource: "cpu"},
		"limits.memory": {"memory", true}, "requests.nvidia.com/gpu": {Resource: "nvidia.com/gpu"}, "hugepages-2Mi": {Resource: "hugepages-2Mi"},
	} {
		if got, ok := MeasureOf(name); !ok || got != want {
			t.Errorf("%s counts %v, %v", name, got, ok)
		}
	}
	for _, name := range []corev1.ResourceName{"services", "requests.storage", "count/jobs.batch", "persistentvolumeclaims"} {
		if got, ok := MeasureOf(name); ok {
			t.Errorf("%s counts %v of pods", name, got)
		}
	}
}

func TestAQuotaCountsThePodsOfItsScopes(t *testing.T) {
	of := func(scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Scopes: scopes}}
	}
	high := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}}}}}
	for i, test := range []struct {
		quota        *corev1.ResourceQuota
		class        string
		isBestEffort bool
		want         bool
	}{
		{of(), "", false, true}, {of(corev1.ResourceQuotaScopeBestEffort), "", true, true}, {of(corev1.ResourceQuotaScopeBestEffort), "", false, false},
		{of(corev1.ResourceQuotaScopeNotBestEffort), "", false, true}, {of(corev1.ResourceQuotaScopePriorityClass), "", false, false},
		{of(corev1.ResourceQuotaScopeTerminating), "", false, false}, {high, "high", false, true}, {high, "low", false, false}, {high, "", false, false},
	} {
		if got := Selects(test.quota, test.class, test.isBestEffort); got != test.want {
			t.Errorf("%d: it counts them: %v", i, got)
		}
	}
}
