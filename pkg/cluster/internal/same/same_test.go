package same_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
)

func TestOnlyWhatADecisionRestsOnTellsTwoStatesOfAPodApart(t *testing.T) {
	for name, test := range map[string]struct {
		change        func(*corev1.Pod)
		pod, asVictim bool
	}{
		"a condition":                       {func(p *corev1.Pod) { p.Status.Message = "x" }, true, true},
		"the record of a plan":              {func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.EvictionRecordKey] = "{}" }, true, true},
		"an annotation of somebody else":    {func(p *corev1.Pod) { p.Annotations["example.com/a"] = "b" }, false, true},
		"an annotation that a plugin reads": {func(p *corev1.Pod) { p.Annotations["example.com/read"] = "b" }, false, false},
		"whether it may be evicted":         {func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "true" }, false, false},
		"a label":                           {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false, false},
		"its generation":                    {func(p *corev1.Pod) { p.Generation++ }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{}
			before.Generation, before.Annotations = 1, map[string]string{"example.com/other": "c"}
			now := before.DeepCopy()
			test.change(now)
			keys := &podclass.Keys{PodAnnotations: []string{"example.com/read"}}
			if got := same.Pod(pods.New(before), pods.New(now)); got != test.pod {
				t.Errorf("the same pod: %t", got)
			}
			if got := same.PodAsVictim(keys, pods.New(before), pods.New(now)); got != test.asVictim {
				t.Errorf("the same as a victim: %t", got)
			}
		})
	}
}

func TestAHeartbeatLeavesANodeTheSame(t *testing.T) {
	before := &corev1.Node{}
	beat := before.DeepCopy()
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if !same.Node(before, beat) {
		t.Error("a node that says that it is ready differs from one that says nothing")
	}
	beat.Status.Conditions[0].Status = corev1.ConditionFalse
	if same.Node(before, beat) {
		t.Error("a node that is not ready is the same")
	}
}
