package conformance_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/conformance"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func TestWhatTheClusterLivesOnNeverLeaves(t *testing.T) {
	const protected = verdict.RuleCritical
	for name, test := range map[string]struct {
		namespace, class string
		want             verdict.ProtectionKind
	}{
		"a pod like any other":           {"work", "", ""},
		"a pod of a user's class":        {"work", "high", ""},
		"critical for the cluster":       {"work", "system-cluster-critical", protected},
		"critical for a node":            {"work", "system-node-critical", protected},
		"of the namespace kube-system":   {"kube-system", "", protected},
		"of a namespace that is like it": {"kube-system-tools", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := func(p *corev1.Pod) { p.Namespace, p.Spec.PriorityClassName = test.namespace, test.class }
			group := fixture.Group("g", "default", 1)
			group.Namespace = test.namespace
			w := harness.ForPlugin(t, conformance.Factory(), "").Set(fixture.Queue("default"), fixture.Node("n", "cpu=9"), group,
				fixture.Group("preemptor", "default", 1), fixture.Pod("t0", fixture.In("preemptor")),
				fixture.Pod("plain", fixture.In("g"), fixture.On("n"), func(p *corev1.Pod) { p.Namespace = test.namespace }),
				fixture.Pod("v", fixture.In("g"), fixture.On("n"), in))
			s := w.Open()
			var all []*cluster.Task
			for _, n := range w.Nodes() {
				all = append(all, n.Tasks()...)
			}
			d := &framework.VictimProposal{Preemptor: w.JobNamed("preemptor"), For: w.TaskNamed("t0"), Victims: all, Whole: true}
			for kind, poll := range map[string]framework.Poll{"preempt": s.PollPreempt(), "reclaim": s.PollReclaim()} {
				if why, by := poll.Ask(d); why.Kind != test.want || by != 0 {
					t.Errorf("%s: tier %d says %q, want %q of the first", kind, by, why, test.want)
				}
			}
		})
	}
}
