package cache_test

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

func TestARunningPodIsImaginedAsOneThatWaits(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	selecting := fixture.Selecting("disk", "fast")
	c.Apply(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Group("g", "q", 1)}, cache.Set{Object: fixture.Node("n", "cpu=4")},
		cache.Set{Object: fixture.Pod("runs", fixture.In("g"), fixture.On("n"), selecting)},
		cache.Set{Object: fixture.Pod("waits", fixture.In("g"), selecting)})
	c.Settle()
	runs, waits := c.Task(fixture.Key("runs")), c.Task(fixture.Key("waits"))
	if runs.Class == waits.Class {
		t.Fatal("the pod that runs has the class of one that waits anyway")
	}
	var seen *cluster.Task
	c.AsPending(runs, func(again *cluster.Task) {
		seen = again
		if again.Class != waits.Class || again.Job != runs.Job || again.Status != cluster.Pending || again.Node != nil || again.Pod.NodeName != "" {
			t.Errorf("it is %+v", again)
		}
	})
	if seen == nil || runs.Node == nil || runs.Pod.NodeName != "n" || len(runs.Job.Tasks()) != 2 {
		t.Errorf("the task itself is %+v now, and its job has %d tasks", runs, len(runs.Job.Tasks()))
	}
	for _, problem := range c.Audit() {
		t.Error(problem)
	}
	// A class without pods is dropped.
	c.Apply(cache.Delete{Object: waits.Pod})
	var class *cluster.Class
	c.AsPending(runs, func(again *cluster.Task) { class = again.Class })
	if class.InUse() {
		t.Error("the class is still in use")
	}
}
