package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// diary is an inbox and an outbox that notes when cycles begin.
type diary struct {
	wake   chan struct{}
	begin  time.Time
	cycles []string
}

func (d *diary) Wake() <-chan struct{} { return d.wake }

func (d *diary) Take() ([]cache.Event, *framework.Policy) {
	select {
	case <-d.wake:
	default:
	}
	d.cycles = append(d.cycles, fmt.Sprint(time.Since(d.begin)))
	return nil, nil
}

func TestCyclesFollowEventsAtOnceUnlessThereAreMany(t *testing.T) {
	for name, test := range map[string]struct {
		isBusy bool            // the outbox
		events []time.Duration // the times of events
		want   []string
	}{
		"one event":             {true, []time.Duration{30}, []string{"30ms"}},
		"a few after a pause":   {true, []time.Duration{30, 31, 33}, []string{"30ms", "31ms", "33ms"}},
		"more than the burst":   {true, []time.Duration{30, 31, 32, 33, 34}, []string{"30ms", "31ms", "32ms", "35ms"}},
		"the burst comes again": {true, []time.Duration{30, 31, 32, 33, 100, 101}, []string{"30ms", "31ms", "32ms", "35ms", "100ms", "101ms"}},
		"nothing to send":       {false, []time.Duration{30, 31, 32, 33, 34, 35}, []string{"30ms", "31ms", "32ms", "33ms", "34ms", "36ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				d := &diary{wake: make(chan struct{}, 1), begin: time.Now()}
				s := newScheduler(t, fixture.Node("n", "cpu=2"))
				ended := make(chan struct{})
				out := newMailbox()
				out.isBusy = test.isBusy
				go func() {
					defer close(ended)
					s.Run(ctx, realTime{}, d, out, Pace{Coalesce: 5 * time.Millisecond, Least: 2 * time.Millisecond, Burst: 3, Period: time.Hour})
				}()
				for _, at := range test.events {
					time.Sleep(time.Until(d.begin.Add(at * time.Millisecond)))
					select {
					case d.wake <- struct{}{}:
					default:
					}
					synctest.Wait()
				}
				time.Sleep(time.Second)
				cancel()
				<-ended
				if !slices.Equal(d.cycles, test.want) {
					t.Errorf("cycles begin at %v, want %v", d.cycles, test.want)
				}
			})
		})
	}
}
