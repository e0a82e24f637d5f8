package order_test

import (
	"fmt"
	"math"
	"slices"
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

// The first question about a long line puts it in order. That is work of the answer.
func TestTheOrderOfALineIsCountedAsWork(t *testing.T) {
	l := loop.New(t, "").Set(fixture.Node("n", "cpu=1"))
	for i := range 400 {
		name := fmt.Sprintf("job-%04d", i*7919%10_000)
		l.Set(fixture.Group(name, "default", 1), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=2")))
	}
	l.Cycle()
	var b order.Backlog
	steps, most := 0, math.MaxInt
	b.Meter(func(more int) {
		if steps += more; steps > most {
			panic("enough")
		}
	})
	j, s := l.Job(cluster.GroupID(fixture.Key("job-0000"))), l.Open()
	line, _ := b.Around(j, s, 1)
	if steps < 400/8 || len(line) != 400 {
		t.Errorf("to put %d jobs in order took %d steps", len(line), steps)
	}
	whole := steps
	if b.Around(j, s, 1); steps != whole {
		t.Errorf("to ask again took %d steps", steps-whole)
	}
	var ended order.Backlog
	ended.Meter(func(more int) {
		if steps += more; steps > most {
			panic("enough")
		}
	})
	steps, most = 0, whole/2
	defer func() {
		if recover() == nil {
			t.Error("the work is not ended")
		}
		most = math.MaxInt
		if again, _ := ended.Around(j, s, 1); !slices.Equal(again, line) {
			t.Error("after work that was ended the order is another")
		}
	}()
	ended.Around(j, s, 1)
}
