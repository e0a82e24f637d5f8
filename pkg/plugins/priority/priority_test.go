package priority_test

import (
	"testing"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/plugins/priority"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func classed(name string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = name }
}

func TestPriorityOrders(t *testing.T) {
	t.Run("jobs of a higher class are served first", func(t *testing.T) {
		w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.PriorityClass("high", 10), fixture.PriorityClass("low", -10),
			fixture.Group("a", "default", 1, classed("low")), fixture.Group("b", "default", 1), fixture.Group("c", "default", 1, classed("high")),
			fixture.Group("d", "default", 1, classed("unknown")))
		s := w.Open()
		order := []string{"c", "b", "d", "a"} // no class and one that does not exist count zero; of equals the one with the lower UID
		for i, later := range order[1:] {
			if s.CompareJobs(w.JobNamed(order[i]), w.JobNamed(later)) >= 0 {
				t.Errorf("%s is not before %s", order[i], later)
			}
		}
	})

	t.Run("a class that changes changes its jobs", func(t *testing.T) {
		w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.PriorityClass("class", -1),
			fixture.Group("a", "default", 1, classed("class")), fixture.Group("b", "default", 1))
		if s := w.Open(); s.CompareJobs(w.JobNamed("a"), w.JobNamed("b")) <= 0 {
			t.Error("a job of a class below zero comes before one without class")
		}
		w.Set(fixture.PriorityClass("class", 1))
		if s := w.Open(); s.CompareJobs(w.JobNamed("a"), w.JobNamed("b")) >= 0 {
			t.Error("the new value does not count")
		}
	})

	t.Run("tasks of higher priority are placed first", func(t *testing.T) {
		task := schedulingv1beta1.TaskPriorityAnnotationKey
		w := harness.ForPlugin(t, priority.Factory(), "").Set(fixture.Queue("default"), fixture.Group("g", "default", 1),
			fixture.Pod("plain", fixture.In("g"), fixture.As("worker", 0)),
			fixture.Pod("own", fixture.In("g"), fixture.As("worker", 1), fixture.WithPriority(5)),
			fixture.Pod("task", fixture.In("g"), fixture.As("worker", 2), fixture.WithPriority(1), fixture.Annotated(task, "7")),
			fixture.Pod("unreadable", fixture.In("g"), fixture.As("worker", 3), fixture.WithPriority(6), fixture.Annotated(task, "much")))
		s := w.Open()
		for i, want := range []string{"task", "unreadable", "own", "plain"} {
			if got := s.Pending(w.JobNamed("g"))[i].Key().Name; got != want {
				t.Errorf("number %d is %s, want %s", i, got, want)
			}
		}
	})
}
