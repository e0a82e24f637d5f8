package order_test

import (
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func TestTheOrderOfALongBacklogMayBeSomeSecondsOld(t *testing.T) {
	for _, jobs := range []int{10, order.Short + 10, order.PerSecond + 1000} {
		l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"))
		name := func(i int) string { return fmt.Sprintf("job-%04d", i) }
		for i := range jobs {
			l.Set(fixture.Group(name(i), "default", 1), fixture.Pod(name(i)+"-0", fixture.In(name(i)), fixture.Asks("cpu=2")))
		}
		l.Cycle()
		m, err := l.Scheduler.Reader()
		if err != nil {
			t.Fatal(err)
		}
		placeOf := func(i int, now time.Time) int {
			t.Helper()
			found, err := m.Job(now, cluster.GroupID(fixture.Key(name(i))))
			if err != nil || found.Order == nil {
				t.Fatalf("%+v, %v", found, err)
			}
			return found.Order.Place
		}
		last := jobs - 1
		if got := placeOf(last, l.Now); got != jobs {
			t.Errorf("of %d jobs the last has place %d", jobs, got)
		}
		l.Remove(fixture.Pod(name(0)+"-0"), fixture.Group(name(0), "default", 1))
		soon, want := placeOf(last, l.Now.Add(order.Life(jobs)-time.Second)), jobs
		if jobs <= order.Short {
			want--
		}
		if later := placeOf(last, l.Now.Add(order.Life(jobs))); soon != want || later != jobs-1 {
			t.Errorf("of %d jobs the last has place %d soon and %d later, after the first has gone", jobs, soon, later)
		}
		l.Set(fixture.Group("new", "default", 1), fixture.Pod("new-0", fixture.In("new"), fixture.Asks("cpu=2")))
		if found, err := m.Job(l.Now.Add(order.Life(jobs)), cluster.GroupID(fixture.Key("new"))); err != nil || found.Order == nil || found.Order.Place != jobs {
			t.Errorf("a new job among %d is %+v, %v", jobs, found.Order, err)
		}
	}
}
