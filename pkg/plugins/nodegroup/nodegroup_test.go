package nodegroup_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/nodegroup"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

const (
	noGroup   = "node(s) were in no node group"
	queueless = "node(s) were in a node group, and the queue names none"
	others    = "node(s) were in a node group that is not the queue's"
	spent     = "node(s) were in a node group of which the queue may use no more"
)

// inGroup puts a node into a group.
func inGroup(group string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[schedulingv1beta1.NodeGroupNameKey] = group }
}

// to makes the pods of a queue run on groups, separated by commas: required, preferred, forbidden, and to be avoided.
func to(required, preferred, forbidden, avoided string) fixture.QueueOption {
	list := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	}
	return func(q *schedulingv1beta1.Queue) {
		q.Spec.Affinity = &schedulingv1beta1.Affinity{
			NodeGroupAffinity: &schedulingv1beta1.NodeGroupAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: list(required), PreferredDuringSchedulingIgnoredDuringExecution: list(preferred)},
			NodeGroupAntiAffinity: &schedulingv1beta1.NodeGroupAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: list(forbidden), PreferredDuringSchedulingIgnoredDuringExecution: list(avoided)},
		}
	}
}

// limited sets the limits of a queue.
func limited(text string) fixture.QueueOption {
	return fixture.QueueAnnotated(schedulingv1beta1.NodeGroupResourceLimitsKey, text)
}

// fourGroups are nodes n1 to n4 of groups g1 to g4, n5 of none, and a pod p of queue q.
func fourGroups(w *harness.Model, queues ...runtime.Object) *framework.Session {
	for _, name := range []string{"1", "2", "3", "4"} {
		w.Set(fixture.Node("n"+name, "cpu=8", inGroup("g"+name)))
	}
	w.Set(fixture.Node("n5", "cpu=8"), fixture.Group("g", "q", 1), fixture.Pod("p", fixture.In("g"), fixture.Asks("cpu=1")))
	return w.Set(queues).Open()
}

// refusals are what the nodes n1 to n5 say, by number: "yes", or a word of why not.
func refusals(w *harness.Model, s *framework.Session) string {
	words := map[string]string{"": "yes", noGroup: "none", queueless: "queueless", others: "others", spent: "spent"}
	var all []string
	for _, n := range w.Nodes() {
		all = append(all, words[s.Policy.Filters[0].RefuseNode(w.TaskNamed("p").Class, n)])
	}
	return strings.Join(all, " ")
}

// scores are what the nodes are worth, in points.
func scores(w *harness.Model, s *framework.Session) [5]int64 {
	var all [5]int64
	for i, n := range w.Nodes() {
		all[i] = s.Policy.Scorers[0].ScoreNode(w.TaskNamed("p").Class, n) / framework.Point
	}
	return all
}

func TestPodsGoToTheGroupsOfTheirQueue(t *testing.T) {
	below := func(parent string, options ...fixture.QueueOption) runtime.Object {
		return fixture.Queue("q", append(options, fixture.Below(parent))...)
	}
	root := fixture.Queue("root", to("g1,g3", "g3", "g2,g4", "g4"))
	for name, test := range map[string]struct {
		arguments string
		on        []conf.Switch
		queues    []runtime.Object
		want      string
		scores    [5]int64
	}{
		"what is preferred is required too": {"", nil, []runtime.Object{fixture.Queue("q", to("g1,g3", "g3", "g2,g4", "g4"))},
			"yes others yes yes none", [5]int64{100, 0, 150, -1, 0}},
		"what is preferred is not required": {"", nil, []runtime.Object{fixture.Queue("q", to("g1", "g3", "g2", "g4"))},
			"yes others yes yes none", [5]int64{100, 0, 50, -1, 0}},
		"only groups to keep off": {"", nil, []runtime.Object{fixture.Queue("q", to("", "", "g2", "g4"))},
			"yes others yes yes none", [5]int64{0, 0, 0, -1, 0}},
		"the queue says nothing": {"", nil, []runtime.Object{fixture.Queue("q")},
			"queueless queueless queueless queueless none", [5]int64{}},
		"the queue says nothing, not strict": {"strict: false", nil, []runtime.Object{fixture.Queue("q")},
			"queueless queueless queueless queueless yes", [5]int64{}},
		"an empty affinity says nothing": {"strict: false", nil, []runtime.Object{fixture.Queue("q", to("", "", "", ""))},
			"queueless queueless queueless queueless yes", [5]int64{}},
		"not strict is for those that say nothing": {"strict: false", nil, []runtime.Object{fixture.Queue("q", to("g1", "", "", ""))},
			"yes others others others none", [5]int64{100, 0, 0, 0, 0}},
		"preferred in their order": {"enablePreferredOrder: true", nil, []runtime.Object{fixture.Queue("q", to("", "g1,g3", "", ""))},
			"yes others yes others none", [5]int64{50, 0, 25, 0, 0}},
		"preferred in no order, named twice": {"", nil, []runtime.Object{fixture.Queue("q", to("", "g1,g3,g3", "", ""))},
			"yes others yes others none", [5]int64{50, 0, 50, 0, 0}},
		"the parent's": {"", []conf.Switch{conf.EnableHierarchy}, []runtime.Object{fixture.Queue("parent", to("g1", "", "", "")), below("parent")},
			"yes others others others none", [5]int64{100, 0, 0, 0, 0}},
		"the root's": {"", []conf.Switch{conf.EnableHierarchy}, []runtime.Object{root, fixture.Queue("parent"), below("parent")},
			"yes others yes yes none", [5]int64{100, 0, 150, -1, 0}},
		"the nearest's": {"", []conf.Switch{conf.EnableHierarchy}, []runtime.Object{root, fixture.Queue("parent", to("g2", "", "", "")), below("parent")},
			"others yes others others none", [5]int64{0, 100, 0, 0, 0}},
		"its own, though the parent has one": {"", []conf.Switch{conf.EnableHierarchy}, []runtime.Object{root, below("root", to("g2", "", "", ""))},
			"others yes others others none", [5]int64{0, 100, 0, 0, 0}},
		"not the parent's without the switch": {"", nil, []runtime.Object{fixture.Queue("parent", to("g1", "", "", "")), below("parent")},
			"queueless queueless queueless queueless none", [5]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, nodegroup.Factory(), test.arguments, test.on...)
			s := fourGroups(w, test.queues...)
			if got := refusals(w, s); got != test.want {
				t.Errorf("the nodes say %s, want %s", got, test.want)
			}
			if got := scores(w, s); got != test.scores {
				t.Errorf("the scores are %v, want %v", got, test.scores)
			}
		})
	}
}

func TestALimitBoundsWhatAQueueUsesOfAGroup(t *testing.T) {
	affinity := to("g1,g2", "", "", "")
	held := func(queue string, options ...func(*corev1.Pod)) []runtime.Object {
		return []runtime.Object{fixture.Group("h", queue, 1),
			fixture.Pod("held", append(options, fixture.In("h"), fixture.Asks("cpu=2"))...)}
	}
	for name, test := range map[string]struct {
		limits  string
		objects []runtime.Object
		want    string
	}{
		"there is room":                        {`{"g1": {"cpu": "3"}}`, held("q", fixture.On("n1")), "yes yes others others none"},
		"it is spent":                          {`{"g1": {"cpu": "2500m"}}`, held("q", fixture.On("n1")), "spent yes others others none"},
		"spent by one that is too large":       {`{"g1": {"cpu": 0.5}}`, nil, "spent yes others others none"},
		"on another node of the group":         {`{"g1": {"cpu": "2500m"}}`, append(held("q", fixture.On("m1")), fixture.Node("m1", "cpu=8", inGroup("g1"))), "spent spent yes others others none"},
		"in another group":                     {`{"g1": {"cpu": "2500m"}}`, held("q", fixture.On("n2")), "yes yes others others none"},
		"by another queue":                     {`{"g1": {"cpu": "2500m"}}`, append(held("other", fixture.On("n1")), fixture.Queue("other")), "yes yes others others none"},
		"of what is not asked for":             {`{"g1": {"nvidia.com/gpu": 0}}`, nil, "yes yes others others none"},
		"what it does not name":                {`{"g1": {"memory": "1Gi"}}`, nil, "yes yes others others none"},
		"of a group that is not the queue's":   {`{"g3": {"cpu": 9}}`, nil, "yes yes others others none"},
		"by a pod that has finished":           {`{"g1": {"cpu": 1}}`, held("q", fixture.On("n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), "yes yes others others none"},
		"of the pods":                          {`{"g1": {"pods": 1}}`, held("q", fixture.On("n1")), "spent yes others others none"},
		"nothing":                              {`{}`, held("q", fixture.On("n1")), "yes yes others others none"},
		"by a pod of the same job, everywhere": {`{"g1": {"cpu": 1}, "g2": {"cpu": 1}}`, []runtime.Object{fixture.Pod("held", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n2"))}, "yes spent others others none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, nodegroup.Factory(), "")
			s := fourGroups(w, append(test.objects, fixture.Queue("q", affinity, limited(test.limits)))...)
			if got := refusals(w, s); got != test.want {
				t.Errorf("the nodes say %s, want %s", got, test.want)
			}
		})
	}
}

func TestLimitsThatCannotBeReadConcernTheirQueueAlone(t *testing.T) {
	for text, want := range map[string]string{
		`{"g1": {"cpu": "-1"}}`:   "cpu of node group g1 is -1, below zero",
		`{"g1": {"cpu": "lots"}}`: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		`g1: 3`:                   "invalid character 'g' looking for beginning of value",
	} {
		w := harness.ForPlugin(t, nodegroup.Factory(), "")
		s := fourGroups(w, fixture.Queue("q", to("g1", "", "", ""), limited(text)), fixture.Queue("r", to("g1", "", "", "")),
			fixture.Group("h", "r", 1), fixture.Pod("o", fixture.In("h")))
		filter := s.Policy.Filters[0]
		want = "node(s) were not for the queue: annotation volcano.sh/nodegroup-resource-limits of queue q cannot be read: " + want
		if got := filter.RefuseNode(w.TaskNamed("p").Class, w.Node("n1")); got != want {
			t.Errorf("%s: the node says\n%s, want\n%s", text, got, want)
		}
		if got := filter.RefuseNode(w.TaskNamed("o").Class, w.Node("n1")); got != "" {
			t.Errorf("%s: to another queue the node says %s", text, got)
		}
	}
}

func TestNodesAreLookedAtAgainWhenARuleChangesAndNotBefore(t *testing.T) {
	w := harness.ForPlugin(t, nodegroup.Factory(), "")
	fourGroups(w, fixture.Queue("q", to("g1", "", "", ""), limited(`{"g1": {"cpu": 4}}`)))
	open := func() int {
		w.Settle()
		_, since, _ := w.Changes(0)
		w.Open()
		changed, _, _ := w.Changes(since)
		return len(changed)
	}
	if got := open(); got != 0 {
		t.Errorf("nothing has changed, and %d nodes are looked at again", got)
	}
	for _, q := range []*schedulingv1beta1.Queue{
		fixture.Queue("q", to("g2", "", "", ""), limited(`{"g1": {"cpu": 4}}`)), fixture.Queue("q", to("g2", "", "", ""), limited(`{"g1": {"cpu": 5}}`)),
		fixture.Queue("q", to("g2", "", "", "")), fixture.Queue("q")} {
		w.Set(q)
		if got := open(); got < 5 {
			t.Errorf("the queue says something else, and %d nodes are looked at again", got)
		}
		if got := open(); got != 0 {
			t.Errorf("nothing has changed, and %d nodes are looked at again", got)
		}
	}
}

// A limit lets go when a pod ends: the job that waits for it must be looked at again.
func TestAPodThatEndsGivesNewHope(t *testing.T) {
	w := harness.ForPlugin(t, nodegroup.Factory(), "")
	held := fixture.Pod("held", fixture.In("g"), fixture.Asks("cpu=1"), fixture.On("n1"))
	s := fourGroups(w, held, fixture.Node("m1", "cpu=8", inGroup("g1")), fixture.Queue("q", to("g1", "", "", ""), limited(`{"g1": {"cpu": 1}}`)))
	if got := s.Policy.Filters[0].RefuseNode(w.TaskNamed("p").Class, w.Node("m1")); got != spent {
		t.Fatalf("the node says %q", got)
	}
	_, since, _ := w.Changes(0)
	w.Remove(held)
	s = w.Open()
	changed, _, _ := w.Changes(since)
	isAgain := false
	for _, slot := range changed {
		isAgain = isAgain || w.BySlot()[slot] == w.Node("m1")
	}
	if !isAgain {
		t.Error("a node of the group is not looked at again")
	}
	if got := s.Policy.Filters[0].RefuseNode(w.TaskNamed("p").Class, w.Node("m1")); got != "" {
		t.Errorf("the node says %q", got)
	}
}

var birth = fixture.Birth.Add(time.Hour)

// tasksOf are the pods of queue q that wait.
func tasksOf(c *model.Cluster) []*cluster.Task {
	var waiting []*cluster.Task
	for _, j := range c.Jobs() {
		waiting = append(waiting, j.Pending(cluster.CompareTasks)...)
	}
	return waiting
}
