package workload_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// cores is an amount of the only flavor.
func cores(t *trees.Trees, cores int64) []cohort.Amount {
	return []cohort.Amount{{FR: t.FR(), Value: 1000 * cores}}
}

// names lists Workloads by name.
func names(all []*workload.Workload) string {
	var said []string
	for _, w := range all {
		said = append(said, w.Name)
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

func ExampleQueues() {
	t := trees.New()
	queue := t.Queue("team", "all", 1)
	t.Grow()
	t.Wait(queue, "first", 1, 0)
	t.Wait(queue, "second", 1, 0)
	tell := func(when string) {
		fmt.Printf("%s: %q hold quota, it is the turn of %q\n", when, names(queue.Holders()), names(t.Heads()))
	}

	tell("at first")
	first := queue.Head()
	t.Remove(first)
	t.Charge(first, cores(t, 1)) // its quota is reserved
	tell("the first is admitted")
	t.Refuse(queue.Head(), &workload.Assignment{Mode: workload.NoFit, Lacks: []resources.FR{t.FR()}})
	tell("the second does not fit")
	t.Release(first) // it has finished
	tell("the first has finished")
	// Output:
	// at first: "" hold quota, it is the turn of "first"
	// the first is admitted: "first" hold quota, it is the turn of "second"
	// the second does not fit: "first" hold quota, it is the turn of ""
	// the first has finished: "" hold quota, it is the turn of "second"
}

func TestAWorkloadIsChargedIfAndOnlyIfItsQueueHasIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := trees.New()
		queues := []*workload.Queue{all.Queue("a", "all", 4), all.Queue("b", "all", 4)}
		all.Grow()
		var workloads []*workload.Workload
		for i := range 6 {
			workloads = append(workloads, all.Workload(queues[i%2], fmt.Sprint("w", i), 1, 0))
		}
		charged := map[*workload.Workload]int64{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w := rapid.SampledFrom(workloads).Draw(t, "workload")
			if charged[w] == 0 && rapid.Bool().Draw(t, "charge") {
				charged[w] = rapid.Int64Range(1, 5).Draw(t, "cores")
				all.Charge(w, cores(all, charged[w]))
			} else {
				all.Release(w) // also of one that is not charged
				delete(charged, w)
			}
			for _, q := range queues {
				want := int64(0)
				for _, w := range workloads {
					holds := slices.Contains(q.Holders(), w)
					if isIts := w.Queue == q && charged[w] > 0; holds != isIts || w.Queue == q && (w.IsCharged() != isIts || (w.Charge != nil) != isIts) {
						t.Fatalf("%s is to be charged in %s: %t; it is among the holders: %t, it says: %t", w.Name, q.Name, isIts, holds, w.IsCharged())
					}
					if holds {
						want += 1000 * charged[w]
					}
				}
				if have := q.Usage(all.FR()); have != want {
					t.Fatalf("%s uses %d, its Workloads are charged %d", q.Name, have, want)
				}
			}
			if found := all.Audit(); len(found) > 0 {
				t.Fatal(found)
			}
		}
	})
}

func TestWorkloadsComeByPriorityThenByAgeThenByUID(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for seed := range uint64(20) {
			all := trees.New()
			queue := all.Queue("team", "all", 1)
			queue.Strict = strict
			all.Grow()
			var want []*workload.Workload // in their order
			for _, priority := range []int32{10, 0, -10} {
				for second := range 3 {
					for _, uid := range []string{"a", "b"} {
						w := all.Workload(queue, fmt.Sprintf("%d/%d/%s", priority, second, uid), 1, priority)
						w.UID, w.Timestamp = uid, trees.Start.Add(time.Duration(second)*time.Second)
						want = append(want, w)
					}
				}
			}
			for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(want)) {
				all.Add(want[i])
			}
			for _, w := range want {
				head := queue.Head()
				if head != w {
					t.Fatalf("it is the turn of %s, want %s", head.Name, w.Name)
				}
				all.Remove(head)
			}
		}
	}
}

func TestARefusedWorkloadIsTriedAgainOnceWhatItLacksChanges(t *testing.T) {
	lacksQuota := func(t *trees.Trees) *workload.Assignment {
		return &workload.Assignment{Mode: workload.NoFit, Lacks: []resources.FR{t.FR()}}
	}
	evicting := func(t *trees.Trees) *workload.Assignment {
		return &workload.Assignment{Mode: workload.NoCandidates, Lacks: []resources.FR{t.FR()}}
	}
	lacksNodes := func(*trees.Trees) *workload.Assignment {
		return &workload.Assignment{Mode: workload.NoFit, NodesLacked: true}
	}
	charge := func(q, _ *workload.Queue, t *trees.Trees) {
		t.Charge(t.Workload(q, "more", 1, 0), cores(t, 1))
		t.Settle()
	}
	for name, test := range map[string]struct {
		refused func(*trees.Trees) *workload.Assignment
		happens func(q, elsewhere *workload.Queue, t *trees.Trees)
		want    bool
	}{
		"nothing happens":               {lacksQuota, func(_, _ *workload.Queue, t *trees.Trees) { t.Settle() }, false},
		"quota is free":                 {lacksQuota, func(q, _ *workload.Queue, t *trees.Trees) { t.Release(q.Holders()[0]) }, true},
		"quota of another tree is free": {lacksQuota, func(_, other *workload.Queue, t *trees.Trees) { t.Release(other.Holders()[0]) }, false},
		"quota of another flavor is free": {lacksQuota, func(q, _ *workload.Queue, t *trees.Trees) {
			t.Freed(q, []cohort.Amount{{FR: t.Index.OfFlavor("other", "cpu"), Value: 1}})
		}, false},
		"there is more to evict":             {evicting, charge, true},
		"there is, and evicting cannot help": {lacksQuota, charge, false},
		"nodes have changed":                 {lacksNodes, func(_, _ *workload.Queue, t *trees.Trees) { t.NodesChanged() }, true},
		"nodes have, and quota is short":     {lacksQuota, func(_, _ *workload.Queue, t *trees.Trees) { t.NodesChanged() }, false},
		"quota is free, and nodes are short": {lacksNodes, func(q, _ *workload.Queue, t *trees.Trees) { t.Release(q.Holders()[0]) }, false},
		"its tree has changed":               {lacksQuota, func(_, _ *workload.Queue, t *trees.Trees) { t.Grow() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			all := trees.New()
			queue, elsewhere := all.Queue("team", "all", 1), all.Queue("elsewhere", "others", 1)
			all.Grow()
			all.Hold(queue, "holder", 1, 0)
			all.Hold(elsewhere, "stranger", 1, 0)
			all.Settle()
			w := all.Wait(queue, "waits", 1, 0)
			all.Refuse(w, test.refused(all))
			if queue.Head() != nil || !w.IsRefused() {
				t.Fatal("it is tried again at once")
			}
			test.happens(queue, elsewhere, all)
			if isTried := queue.Head() == w; isTried != test.want || w.IsRefused() == test.want {
				t.Errorf("it is tried again: %t, want %t", isTried, test.want)
			}
		})
	}
}

func TestEqualWorkloadsShareARefusal(t *testing.T) {
	for name, test := range map[string]struct {
		change func(w, refused *workload.Workload)
		want   bool
	}{
		"a later one":              {func(*workload.Workload, *workload.Workload) {}, true},
		"an earlier one":           {func(w, _ *workload.Workload) { w.Timestamp = trees.Start }, false},
		"one of another shape":     {func(w, _ *workload.Workload) { w.Shape = "large" }, false},
		"one that was evicted":     {func(w, refused *workload.Workload) { w.EvictedFor(refused) }, false},
		"one that shares no shape": {func(w, refused *workload.Workload) { w.Shape, refused.Shape = "", "" }, false},
	} {
		for _, isThere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, there before: %t", name, isThere), func(t *testing.T) {
				all := trees.New()
				queue := all.Queue("team", "all", 1)
				all.Grow()
				refused, w := all.Workload(queue, "refused", 1, 0), all.Workload(queue, "w", 1, 0)
				refused.Shape, w.Shape = "small", "small"
				test.change(w, refused)
				all.Add(refused)
				if isThere {
					all.Add(w)
				}
				all.Refuse(refused, &workload.Assignment{Lacks: []resources.FR{all.FR()}})
				if !isThere {
					all.Add(w)
				}
				if w.IsRefused() != test.want || (queue.Head() == nil) != test.want {
					t.Errorf("it shares the refusal: %t, want %t", w.IsRefused(), test.want)
				}
				all.Freed(queue, cores(all, 1))
				if refused.IsRefused() || w.IsRefused() {
					t.Error("one is still refused though what it lacks is free")
				}
				if active, inadmissible := queue.Waiting(); active != 2 || inadmissible != 0 {
					t.Errorf("%d wait to be tried, and %d are inadmissible", active, inadmissible)
				}
			})
		}
	}
}

func TestNoWorkloadEvictsThoseItHadToLeaveFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]*workload.Workload, 5)
		for i := range all {
			all[i] = &workload.Workload{Name: fmt.Sprint("w", i)}
		}
		leftFor := map[[2]int]bool{} // who was evicted for whom
		for range rapid.IntRange(1, 20).Draw(t, "evictions") {
			victim, preemptor := rapid.IntRange(0, 4).Draw(t, "victim"), rapid.IntRange(0, 4).Draw(t, "preemptor")
			if victim != preemptor && !all[preemptor].Spares()[all[victim]] {
				all[victim].EvictedFor(all[preemptor])
				leftFor[[2]int{victim, preemptor}] = true
			}
		}
		if gone := rapid.IntRange(-1, 4).Draw(t, "gone"); gone >= 0 {
			all[gone].Forget()
			for pair := range leftFor {
				if slices.Contains(pair[:], gone) {
					delete(leftFor, pair)
				}
			}
		}
		for by := range all { // directly, and then in turn
			for from := range all {
				for to := range all {
					if leftFor[[2]int{from, by}] && leftFor[[2]int{by, to}] {
						leftFor[[2]int{from, to}] = true
					}
				}
			}
		}
		for i, w := range all {
			for k, other := range all {
				if have, want := w.Spares()[other], leftFor[[2]int{i, k}]; have != want {
					t.Fatalf("%s must not evict %s: %t, want %t", w.Name, other.Name, have, want)
				}
			}
			if w.Spares()[w] {
				t.Fatalf("%s was evicted for itself in turn", w.Name)
			}
		}
	})
}
