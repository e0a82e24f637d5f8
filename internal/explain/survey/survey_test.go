package survey_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func of(t *testing.T, l *loop.Loop, gangs ...survey.Gang) (found survey.Survey) {
	t.Helper()
	m, err := l.Scheduler.Reader()
	if err != nil {
		t.Fatal(err)
	}
	m.Session(l.Now, func(s *framework.Session) { found = survey.Of(s, gangs) })
	return found
}

func TestRoomForGangsIsCountedNodeByNode(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates", "nodeorder"))
	cordoned := fixture.Node("n4", "cpu=64", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	l.Set(fixture.Node("n1", "cpu=8 example.com/gpu=4"), fixture.Node("n2", "cpu=8 example.com/gpu=3"), fixture.Node("n3", "cpu=3"), cordoned)
	l.Set(fixture.Group("held", "default", 1), fixture.Pod("held-0", fixture.In("held"), fixture.On("n1"), fixture.Asks("cpu=1 example.com/gpu=1")))
	l.Set(fixture.Group("large", "default", 2), fixture.Pod("large-0", fixture.In("large"), fixture.Asks("cpu=8")),
		fixture.Pod("large-1", fixture.In("large"), fixture.Asks("cpu=8")))
	l.Rest()
	quantity := resource.MustParse
	found := of(t, l, survey.Gang{Pods: 2, Request: corev1.ResourceList{corev1.ResourceCPU: quantity("3")}},
		survey.Gang{Pods: 1, Request: corev1.ResourceList{"example.com/gpu": quantity("3")}},
		survey.Gang{Pods: 1, Request: corev1.ResourceList{"example.com/nothing": quantity("1")}})
	for i, want := range []survey.GangRoom{{Pods: 2, Room: 2 + 2 + 1, Gangs: 2}, {Pods: 1, Room: 2, Gangs: 2}, {Pods: 1}} {
		if got := found.Room.Asked[i]; got.Pods != want.Pods || got.Room != want.Room || got.Gangs != want.Gangs {
			t.Errorf("gang %d has %+v, want %+v", i, got, want)
		}
	}
	// One of the two pods fits, on n2: so no gang like the one that waits can start.
	if w := found.Room.Waiting; len(w) != 1 || w[0].Like != "work/large" || w[0].Pods != 2 || w[0].Room != 1 || w[0].Gangs != 0 || w[0].Request["cpu"] != "8" {
		t.Errorf("room for what waits is %+v", w)
	}
	gpu := found.Room.Free[slices.IndexFunc(found.Room.Free, func(f survey.Free) bool { return f.Resource == "example.com/gpu" })]
	if gpu.Allocatable != "7" || gpu.Free != "6" || gpu.Largest != "3" || gpu.Pieces[0].Pods != 6 || gpu.Pieces[1].Pods != 2 || gpu.Pieces[2].Pods != 0 {
		t.Errorf("free is %+v", gpu)
	}
	if n := found.Nodes; n.Total != 4 || n.Usable != 3 || n.Pods != 1 || n.Cordoned.Count != 1 || n.Cordoned.Nodes[0] != "n4" {
		t.Errorf("the nodes are %+v", n)
	}
}

func TestEachQueueNamesItsOldestJobAndTheOneTriedFirst(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates", "nodeorder", "priority"))
	l.Set(fixture.Node("n1", "cpu=1"), fixture.Queue("q"), fixture.PriorityClass("high", 10))
	for i, name := range []string{"old", "urgent"} {
		group := fixture.Group(name, "q", 1)
		group.CreationTimestamp = metav1.NewTime(fixture.Birth.Add(time.Duration(i) * time.Minute))
		if name == "urgent" {
			group.Spec.PriorityClassName = "high"
		}
		l.Set(group, fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=2")))
	}
	l.Set(fixture.Group("lost", "nowhere", 1), fixture.Pod("lost-0", fixture.In("lost"), fixture.Asks("cpu=1")))
	l.Rest()
	lines := map[string]survey.Line{}
	for _, line := range of(t, l).Queues {
		lines[line.Queue] = line
	}
	if q := lines["q"]; q.Jobs != 2 || q.Pods != 2 || q.State != "Open" || q.Oldest.Job != "work/old" || q.Head.Job != "work/urgent" || q.Head.Reason != "TooLargeForAnyNode" ||
		q.Reasons["TooLargeForAnyNode"] != 2 || !q.Oldest.Since.Equal(fixture.Birth) {
		t.Errorf("q is %+v, its oldest %+v, its head %+v", q, q.Oldest, q.Head)
	}
	if n := lines["nowhere"]; n.State != survey.Missing || n.Head == nil || n.Head.Reason != "QueueNotFound" {
		t.Errorf("nowhere is %+v", n)
	}
	if d := lines["default"]; d.Jobs != 0 || d.Oldest != nil || d.Head != nil {
		t.Errorf("default is %+v", d)
	}
}

func TestNodesThatDoNotReportAreNamed(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates"))
	reported := func(ago time.Duration) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(l.Now.Add(-ago))}}
		}
	}
	l.Set(fixture.Node("fine", "cpu=1", reported(5*time.Minute)), fixture.Node("silent", "cpu=1", reported(12*time.Minute)), fixture.Node("ahead", "cpu=1", reported(-time.Minute)),
		fixture.Node("down", "cpu=1", func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}), fixture.Pod("stray", fixture.On("gone")))
	n := of(t, l).Nodes
	for name, list := range map[string]survey.NodeList{"silent": n.Silent, "ahead": n.Ahead, "down": n.NotReady, "gone": n.Unknown} {
		if list.Count != 1 || list.Nodes[0] != name {
			t.Errorf("%s: %+v", name, list)
		}
	}
}
