package same_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
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
		"which queue is charged for it":     {func(p *corev1.Pod) { p.Annotations[decision.AccountAnnotation] = "q/j" }, true, true},
		"an annotation of somebody else":    {func(p *corev1.Pod) { p.Annotations["example.com/a"] = "b" }, false, true},
		"an annotation that a plugin reads": {func(p *corev1.Pod) { p.Annotations["example.com/read"] = "b" }, false, false},
		"whether it may be evicted":         {func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "true" }, false, false},
		"a label":                           {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false, false},
		"the claim that was made for it": {func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "device", ResourceClaimName: new("device-2")}}
		}, false, true},
		"its generation": {func(p *corev1.Pod) { p.Generation++ }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Pod{}
			before.Generation, before.Annotations = 1, map[string]string{"example.com/other": "c"}
			before.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "device", ResourceClaimName: new("device-1")}}
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
	if !same.NodeState(before, beat) {
		t.Error("a node that says that it is ready differs from one that says nothing")
	}
	beat.Status.Conditions[0].Status = corev1.ConditionFalse
	if same.NodeState(before, beat) {
		t.Error("a node that is not ready is the same")
	}
}

func TestOnlyWhatIsReadTellsTwoStatesOfANodeApart(t *testing.T) {
	for name, test := range map[string]struct {
		change              func(*corev1.Node)
		annotations, labels bool
	}{
		"an annotation of an agent":         {func(n *corev1.Node) { n.Annotations["example.com/seen"] = "now" }, true, true},
		"an annotation that a plugin reads": {func(n *corev1.Node) { n.Annotations["example.com/read"] = "b" }, false, true},
		"an annotation of the scheduler":    {func(n *corev1.Node) { delete(n.Annotations, schedulingv1beta1.OversubscriptionCPUKey) }, false, true},
		"a label":                           {func(n *corev1.Node) { n.Labels["other"] = "b" }, true, true},
		"a label that is read":              {func(n *corev1.Node) { n.Labels["zone"] = "b" }, true, false},
		"a label that is read goes":         {func(n *corev1.Node) { delete(n.Labels, "zone") }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &corev1.Node{}
			before.Annotations, before.Labels = map[string]string{schedulingv1beta1.OversubscriptionCPUKey: "1"}, map[string]string{"zone": "a", "other": "a"}
			now := before.DeepCopy()
			test.change(now)
			keys := &podclass.Keys{NodeAnnotations: []string{"example.com/read"}}
			if got := same.NodeAnnotations(keys, before, now); got != test.annotations {
				t.Errorf("the same annotations: %t", got)
			}
			if got := same.NodeLabels(func(label string) bool { return label == "zone" }, before, now); got != test.labels {
				t.Errorf("the same labels: %t", got)
			}
			if keys.AnyOfNodes = true; name == "an annotation of an agent" && same.NodeAnnotations(keys, before, now) {
				t.Error("a plugin that reads everything sees no difference")
			}
		})
	}
}

func TestAQueueIsTheSameButForWhatIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*schedulingv1beta1.Queue)
		same, butWeight bool
	}{
		"an annotation of a user": {func(q *schedulingv1beta1.Queue) { q.Annotations["example.com/a"] = "b" }, true, true},
		"the hierarchy":           {func(q *schedulingv1beta1.Queue) { q.Annotations[schedulingv1beta1.HierarchyAnnotationKey] = "root/a" }, false, false},
		"a property":              {func(q *schedulingv1beta1.Queue) { q.Annotations[schedulingv1beta1.PreemptionPolicyKey] = "fence" }, false, false},
		"its weight":              {func(q *schedulingv1beta1.Queue) { q.Generation, q.Spec.Weight = 2, 7 }, false, true},
		"its priority":            {func(q *schedulingv1beta1.Queue) { q.Generation, q.Spec.Priority = 2, 7 }, false, false},
		"its state":               {func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := &schedulingv1beta1.Queue{}
			before.Generation, before.Annotations = 1, map[string]string{}
			now := before.DeepCopy()
			test.change(now)
			if got := same.Queue(&podclass.Keys{}, before, now); got != test.same {
				t.Errorf("the same: %t", got)
			}
			if got := same.QueueButWeight(&podclass.Keys{}, before, now); got != test.butWeight {
				t.Errorf("the same but for its weight: %t", got)
			}
		})
	}
}
