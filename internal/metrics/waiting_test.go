package metrics

import (
	"strconv"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

// victims is a scheduler with guaranteed shares, in which all of a node is held by queue b, and a job of a waits for
// what a is guaranteed.
func victims(t *testing.T) *running {
	r := run(t, "guaranteed-shares")
	if err := r.scheduler.Use(policyOf(t, "actions: enqueue, allocate, reclaim\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: guaranteed-shares}]")); err != nil {
		t.Fatal(err)
	}
	waits := fixture.Pod("n1", fixture.In("new"), fixture.Asks("cpu=1"))
	r.now = waits.CreationTimestamp.Add(-2 * time.Second)
	r.cycle(cache.Set{Object: fixture.Node("n", "cpu=2")}, cache.Set{Object: fixture.Queue("a", fixture.Guaranteed("cpu=2"))}, cache.Set{Object: fixture.Queue("b")},
		cache.Set{Object: fixture.Group("old", "b", 1)}, cache.Set{Object: fixture.Group("new", "a", 1)}, cache.Set{Object: fixture.Group("lost", "nowhere", 1)},
		cache.Set{Object: fixture.Pod("o1", fixture.In("old"), fixture.On("n"), fixture.Asks("cpu=1"))},
		cache.Set{Object: fixture.Pod("o2", fixture.In("old"), fixture.On("n"), fixture.Asks("cpu=1"))}, cache.Set{Object: waits},
		cache.Set{Object: fixture.Pod("l1", fixture.In("lost"), fixture.Asks("cpu=1"))})
	return r
}

func TestWhatWaitsIsShownWithItsReasonAndAge(t *testing.T) {
	r := victims(t)
	r.cycle(cache.Set{Object: fixture.Pod("u1", fixture.In("ungrouped"), fixture.Asks("cpu=1"))}, cache.Set{Object: fixture.Pod("u2", fixture.In("ungrouped"), fixture.Asks("cpu=1"))})
	r.expect("hekla_queue_pending_jobs", map[string]string{`hekla_queue_pending_jobs{queue="",reason="PodGroupNotFound"}`: "1",
		`hekla_queue_pending_jobs{queue="a",reason="Delayed"}`: "1", `hekla_queue_pending_jobs{queue="nowhere",reason="QueueNotFound"}`: "1"})
	if got := shown(t, r.Metrics, "hekla_queue_pending_pods"); got[`hekla_queue_pending_pods{queue="a"}`] != "1" || got[`hekla_queue_pending_pods{queue="b"}`] != "0" {
		t.Errorf("the pending pods are %v", got)
	}
	ages := shown(t, r.Metrics, "hekla_queue_oldest_pending_seconds")
	age, err := strconv.ParseFloat(ages[`hekla_queue_oldest_pending_seconds{queue="a"}`], 64)
	if want := time.Since(fixture.Birth).Seconds(); err != nil || age < want-600 || age > want+600 {
		t.Errorf("the oldest pod of a has waited %v s, want about %v", age, want)
	}
	if got := ages[`hekla_queue_oldest_pending_seconds{queue="b"}`]; got != "0" {
		t.Errorf("in b nothing waits, and the oldest pod has waited %s s", got)
	}
	// The queue is guaranteed two CPUs, requests one, and holds none.
	r.expect("hekla_queue_fairness_error", map[string]string{`hekla_queue_fairness_error{queue="a"}`: "0.5"})
}

func TestItIsTimedHowLongARoomTakesThatPodsLeave(t *testing.T) {
	r := victims(t)
	r.now = r.now.Add(time.Minute)
	result := r.scheduler.Cycle(r.now, nil)
	r.Plans(r.scheduler.Cluster(), result.Decisions.Plans, result.Decisions.Ended)
	if len(result.Decisions.Plans) != 1 || len(result.Decisions.Plans[0].Evictions) != 1 {
		t.Fatalf("the plans are %+v", result.Decisions.Plans)
	}
	victim := result.Decisions.Plans[0].Evictions[0]
	r.now = r.now.Add(6 * time.Second)
	r.cycle(cache.Delete{Object: fixture.Pod(victim.Pod.Name)}) // a second later
	got := shown(t, r.Metrics, "hekla_eviction_to_start_seconds")
	if got["hekla_eviction_to_start_seconds_count"] != "1" || got["hekla_eviction_to_start_seconds_sum"] != "7" {
		t.Errorf("timed is %v", got)
	}
}
