package statuses

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	r, now := New(), fixture.Birth
	var d decision.Decisions
	report := func(events ...cache.Event) int {
		c.Apply(events...)
		c.Settle()
		d = decision.Decisions{}
		r.Forget(c, &d)
		r.Statuses(c, now, &d)
		now = now.Add(cluster.GroupingPause)
		r.Statuses(c, now, &d)
		return len(r.memory.jobs) + len(r.memory.queues) + len(r.memory.pods)
	}
	objects := []runtime.Object{fixture.Queue("q"), fixture.Group("g", "q", 1), fixture.Pod("runs", fixture.In("g"), fixture.On("n")),
		fixture.Pod("early", fixture.In("later")), fixture.Pod("alone")}
	var come, gone []cache.Event
	for _, o := range objects {
		come, gone = append(come, cache.Set{Object: o}), append(gone, cache.Delete{Object: o})
	}
	if got := report(come...); got != 5 || len(d.GoneGroups)+len(d.GonePods) > 0 {
		t.Errorf("of two jobs, a queue and two pods that wait %d are remembered, and decisions about %v and %v are void", got, d.GoneGroups, d.GonePods)
	}
	if got := report(gone...); got != 0 || len(r.Stale(c.Cluster)) != 0 {
		t.Errorf("all objects are gone, and of %d is remembered what was decided: %v", got, r.Stale(c.Cluster))
	}
	if got := fmt.Sprint(d.GoneGroups, d.GonePods); got != "[work/g work/later] [work/alone work/early]" {
		t.Errorf("of PodGroups and pods, decisions about %s are void", got)
	}
	now = now.Add(time.Hour)
	if got := report(); got != 0 || len(r.arriving)+len(r.ungrouped) != 0 {
		t.Errorf("then it still waits for the pods of %d jobs, and the PodGroups of %d pods", len(r.arriving), len(r.ungrouped))
	}
}
