package cluster_test

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

func TestARunningPodIsImaginedAsOneThatWaits(t *testing.T) {
	c := cluster.New(cluster.Options{SchedulerNames: []string{"volcano"}})
	selecting := fixture.Selecting("disk", "fast")
	c.Apply(cluster.Set{Object: fixture.Queue("q")}, cluster.Set{Object: fixture.Group("g", "q", 1)}, cluster.Set{Object: fixture.Node("n", "cpu=4")},
		cluster.Set{Object: fixture.Pod("runs", fixture.In("g"), fixture.On("n"), selecting)},
		cluster.Set{Object: fixture.Pod("waits", fixture.In("g"), selecting)})
	c.Settle()
	runs, waits := c.Task(fixture.Key("runs")), c.Task(fixture.Key("waits"))
	if runs.Class == waits.Class {
		t.Fatal("the pod that runs has the class of one that waits anyway")
	}
	var seen *cluster.Task
	c.Imagine(runs, func(again *cluster.Task) {
		seen = again
		if again.Class != waits.Class || again.Job != runs.Job || again.Status != cluster.Pending || again.Node != nil || again.Pod.Spec.NodeName != "" {
			t.Errorf("it is %+v", again)
		}
	})
	if seen == nil || runs.Node == nil || runs.Pod.Spec.NodeName != "n" || len(runs.Job.Tasks()) != 2 {
		t.Errorf("the task itself is %+v now, and its job has %d tasks", runs, len(runs.Job.Tasks()))
	}
	for _, problem := range c.Audit() {
		t.Error(problem)
	}
	// The class of a shape that nobody has is forgotten.
	c.Apply(cluster.Delete{Object: waits.Pod})
	var class *cluster.Class
	c.Imagine(runs, func(again *cluster.Task) { class = again.Class })
	if class.InUse() {
		t.Error("the class is still in use")
	}
}
