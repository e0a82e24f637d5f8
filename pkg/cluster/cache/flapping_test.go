package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"hekla.sh/hekla/pkg/verdict"
)

// TestWhatCannotHelpWakesNoJob changes objects that many controllers, kubelets or users may change without end. A job
// waits for anything that could help it.
func TestWhatCannotHelpWakesNoJob(t *testing.T) {
	holding := func(images ...string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: images, SizeBytes: 1 << 30}} }
	}
	globally := func(name string, value int32) Set {
		return Set{&schedulingv1.PriorityClass{ObjectMeta: meta(name), Value: value, GlobalDefault: true}}
	}
	class := func(name string) Delete { return Delete{&schedulingv1.PriorityClass{ObjectMeta: meta(name)}} }
	named, unnamed := group("named", ""), group("unnamed", "")
	named.Spec.PriorityClassName = "used"
	for name, test := range map[string]struct {
		before, event Event
		wakes         bool
	}{
		"a node pulls an image":               {nil, Set{node("n", "cpu=1", holding("a", "b"))}, false},
		"and has more room":                   {nil, Set{node("n", "cpu=2", holding("a", "b"))}, true},
		"and has another label":               {nil, Set{node("n", "cpu=1", holding("a", "b"), func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} })}, true},
		"it is another node of this name":     {nil, Set{node("n", "cpu=1", holding("a", "b"), func(n *corev1.Node) { n.UID = "another" })}, true},
		"a class is made that no job has":     {nil, classOf("other", 5), false},
		"and deleted":                         {classOf("other", 5), class("other"), false},
		"a class is made that a job names":    {nil, classOf("used", 0), true},
		"and deleted, with its value 0":       {classOf("used", 0), class("used"), true},
		"the class of jobs that name none":    {nil, globally("default", 0), true},
		"it is the class no more":             {globally("default", 0), classOf("default", 0), true},
		"a class of more than the lowest one": {globally("default", 0), globally("second", 5), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=1", holding("a"))}, Set{named}, Set{unnamed}, Set{group("g", "")}, Set{pod("p", in("g"))})
			if test.before != nil {
				c.Apply(test.before)
				c.Settle()
			}
			j := c.Job(jobID("g"))
			c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources,
				Help: verdict.HelpNode | verdict.HelpRoom | verdict.HelpPod | verdict.HelpQueue | verdict.HelpOwnQueue | verdict.HelpVictims | verdict.HelpOwnVictims})
			_, from, _ := c.Changes(0)
			c.Apply(test.event)
			c.Settle()
			if c.IsHelped(j) != test.wakes {
				t.Errorf("the job is looked at again: %t", !test.wakes)
			}
			changed, _, ok := c.Changes(from)
			if set, isSet := test.event.(Set); isSet && isNode(set) && (!ok || len(changed) == 0) {
				t.Error("what is stored of the node's scores stays valid")
			}
		})
	}
}

func isNode(e Set) bool {
	_, is := e.Object.(*corev1.Node)
	return is
}
