package scheduler_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// crowded is a cluster in which so many pods ask for resources of their own that further ones are not told apart.
func crowded(t *testing.T) *loop.Loop {
	l := loop.New(t, "").Set(fixture.Node("n", "cpu=8"))
	for i := range resources.MaxInvented {
		name := fmt.Sprint("hostile-", i)
		l.Set(fixture.Group(name, "default", 1), fixture.Pod(name, fixture.In(name), fixture.Asks(fmt.Sprintf("cpu=1 example.com/r%d=1", i))))
	}
	return l
}

func TestAResourceThatANodeBringsIsToldApart(t *testing.T) {
	l := crowded(t)
	for _, name := range []string{"first", "second"} {
		l.Set(fixture.Group(name, "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1 example.com/device=2")),
			fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=1 example.com/device=2")))
	}
	l.Set(fixture.Group("other", "default", 1), fixture.Pod("other", fixture.In("other"), fixture.Asks("cpu=1 example.com/other=1")))
	l.Set(fixture.Pod("runs", fixture.On("m"), fixture.Asks("cpu=1 example.com/device=1")))
	l.Expect("")
	for _, name := range []string{"first", "second", "other"} {
		if asks := l.Task(fixture.Key(name)).Request(); asks.At(l.Resources.Dim(resources.Further)) != 1 {
			t.Fatalf("%s asks for %v, which is told apart already", name, l.Resources.List(asks))
		}
	}
	// One of the devices is in use. That is counted too, or both jobs would have room.
	l.Set(fixture.Node("m", "cpu=8 example.com/device=4"))
	l.Expect("first is bound to m")
	if asks := l.Job(cluster.GroupID(fixture.Key("second"))).MinResources; asks.At(l.Resources.Dim("example.com/device")) != 2 {
		t.Errorf("the PodGroup wants %v", l.Resources.List(asks))
	}
	l.Set(fixture.Node("m", "cpu=8 example.com/device=5"))
	l.Expect("second is bound to m")
}

func TestAResourceThatAQueueNamesIsToldApart(t *testing.T) {
	l := crowded(t)
	l.Set(fixture.Group("late", "default", 1), fixture.Pod("late", fixture.In("late"), fixture.Asks("cpu=1 example.com/device=2")))
	l.Expect("")
	l.Set(fixture.Queue("q", fixture.Capped("example.com/device=1")))
	l.Expect("")
	if asks := l.Task(fixture.Key("late")).Request(); asks.At(l.Resources.Dim("example.com/device")) != 2 {
		t.Errorf("the pod asks for %v", l.Resources.List(asks))
	}
}
