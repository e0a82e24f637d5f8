package rules

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/harness"
)

// clustersEnv is the variable that says how many random clusters are led; without it there are plainClusters. seedEnv
// says which they are, 0 that they are others each time; without it they are always the same, so that a failure is of
// the change that is tested.
const (
	clustersEnv   = "HEKLA_RULES_WORLDS"
	plainClusters = 5_000
	seedEnv       = "HEKLA_RULES_SEED"
	plainSeed     = "3"
)

// tally counts what happened in all clusters, to show that the tests have teeth.
type tally struct{ clusters, steps, plans, evictions, cancelled, continued, crashes, binds, promises, rewrites int }

func (t *tally) String() string {
	return fmt.Sprintf("%d clusters, %d steps, %d plans, %d evictions, %d plans cancelled, %d crashes, %d plans taken up after one, %d binds; "+
		"%d plans of room that was free, %d cycles that wrote though nothing had happened",
		t.clusters, t.steps, t.plans, t.evictions, t.cancelled, t.crashes, t.continued, t.binds, t.promises, t.rewrites)
}

func (t *tally) add(w *testCluster) {
	t.clusters++
	for _, turn := range w.turns {
		if turn.crash {
			t.crashes++
		} else {
			t.steps++
		}
	}
	t.plans += w.judge.plans
	t.evictions += w.judge.evictions
	t.cancelled += w.judge.cancelled
	t.continued += w.judge.continued
	t.binds += w.judge.binds
	t.promises += w.judge.promises
	t.rewrites += w.judge.rewrites
}

// holds leads so many clusters under one of some settings each, and fails if a rule is broken, or if there is hardly a
// plan.
func holds(t *testing.T, clusters int, all []setting, build func(setting, chooser) *testCluster) {
	t.Helper()
	sum := &tally{}
	check(t, clusters, func(choose chooser) outcome {
		w := leadCluster(build(all[choose(len(all))], choose), choose)
		sum.add(w)
		return w.outcome()
	})
	t.Log(sum)
	if sum.plans < sum.clusters/10 {
		t.Errorf("only %d plans in %d clusters: the test shows nothing", sum.plans, sum.clusters)
	}
}

// Whatever the cluster is like and whatever happens in it, the rules hold. More of it: HEKLA_RULES_WORLDS=100000
// HEKLA_RULES_SEED=0 go test ./test/rules.
func TestTheRulesHoldInRandomClusters(t *testing.T) {
	clusters := clustersOf(t, plainClusters)
	all := settings()
	sum := &tally{}
	check(t, clusters, func(choose chooser) outcome {
		w := lead(all[choose(len(all))], choose)
		sum.add(w)
		return w.outcome()
	})
	t.Log(sum)
	if sum.plans < clusters/6 || sum.evictions < clusters/6 {
		t.Errorf("only %d plans and %d evictions in %d clusters: the test shows nothing", sum.plans, sum.evictions, clusters)
	}
}

// shortPart is which part of the clusters a short run leads.
const shortPart = 5

// clustersOf is how many clusters are to be led.
func clustersOf(t *testing.T, plain int) int {
	t.Helper()
	if testing.Short() {
		plain /= shortPart
	}
	return harness.Number(t, clustersEnv, plain)
}

// check leads random clusters and fails with the smallest of which the outcome is bad.
func check(t *testing.T, clusters int, lead func(chooser) outcome) {
	t.Helper()
	checks := clusters
	if testing.Short() {
		checks *= 5 // rapid makes a fifth of them in a short run, and here the number is meant
	}
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.seed": cmp.Or(os.Getenv(seedEnv), plainSeed)} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	outcomes := rapid.Custom(func(t *rapid.T) outcome {
		return lead(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	})
	rapid.Check(t, func(t *rapid.T) {
		if o := outcomes.Draw(t, "cluster"); o != "" {
			t.Fatal(string(o))
		}
	})
}

// outcome is what the judge objects to, with the story of the cluster; "" if nothing.
type outcome string

// GoString keeps a failing test from telling the story twice.
func (o outcome) GoString() string { return fmt.Sprintf("%d letters", len(o)) }

func (w *testCluster) outcome() outcome {
	if len(w.judge.breaches) == 0 {
		return ""
	}
	return outcome(strings.Join(w.judge.breaches, "\n") + "\n" + w.story())
}

// lead leads a scheduler through a random cluster until it is at rest, or the judge objects.
func lead(s setting, choose chooser) *testCluster {
	return leadCluster(randomCluster(s, choose), choose)
}

func leadCluster(w *testCluster, choose chooser) *testCluster {
	for range 3 + choose(6) {
		w.cycle()
		if len(w.judge.breaches) > 0 {
			return w
		}
		w.goOn()
		if choose.once(8) {
			w.crash()
		}
		if choose.once(4) {
			w.disturb()
		}
		w.now = w.now.Add(time.Duration(choose(8)) * time.Second)
	}
	w.rest()
	if len(w.judge.breaches) == 0 {
		w.replay()
	}
	return w
}

// The bounds of S2: within how many cycles a cluster comes to rest that is left alone, and how many then change
// nothing.
const (
	maxCycles   = 150
	quietCycles = 20
)

// rest leaves the cluster alone and judges that it comes to rest, and stays at rest (S2).
func (w *testCluster) rest() {
	w.calm, w.willing = true, true
	for quiet, cycles := 0, 0; quiet < w.quietEnough(); cycles++ {
		if cycles >= maxCycles {
			w.judge.breach("S2", "after %d cycles in which nothing happened there is no rest", cycles)
			return
		}
		w.goOn()
		d := w.cycle()
		if len(w.judge.breaches) > 0 {
			return
		}
		isTold := len(w.events) > 0
		if isTold && !decidesAnything(d) && w.hearsOnlyStatuses() {
			isTold = false // a job whose pods never come is admitted and held again for as long as it stands
		}
		if decidesAnything(d) || isTold || w.acts() {
			quiet = 0
			if !decidesAnything(d) {
				w.skip()
			}
			continue
		}
		quiet++
		if w.wake.After(w.now) {
			w.now = w.wake.Add(-time.Second)
		}
	}
	tries := 0
	for i := range quietCycles {
		w.now = w.now.Add(time.Duration(i*i) * time.Second)
		w.goOn()
		isDue := !w.wake.IsZero() && !w.wake.After(w.now.Add(time.Second))
		d := w.cycle()
		if isDue && w.restsAgain(d) {
			w.rest()
			return
		}
		if decidesAnything(d) {
			w.judge.breach("S2", "at rest, in cycle %d without any event, it decides something", i)
			return
		} else if !d.IsEmpty() {
			w.judge.rewrites++
		}
		if w.isTried && !isDue {
			tries++
		}
	}
	if tries >= quietCycles-1 {
		w.judge.breach("S2", "at rest, without any event and before it is due, pods are tried again in %d of %d cycles", tries, quietCycles)
	}
}

func decidesAnything(d *decision.Decisions) bool { return len(d.Binds)+len(d.Plans)+len(d.Ended) > 0 }

// replay judges that the same events give the same decisions, byte for byte, also if the first objects come in another
// order (S3).
func (w *testCluster) replay() {
	last := 0
	for i, t := range w.turns {
		if t.crash {
			last = i + 1
		}
	}
	turns := w.turns[last:]
	if len(turns) == 0 {
		return
	}
	s := w.setting.start()
	shuffled := slices.Clone(turns[0].events)
	random := rand.New(rand.NewPCG(uint64(w.births), uint64(len(turns))))
	random.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	for i, t := range turns {
		events := t.events
		if i == 0 && onePerObject(events) {
			events = shuffled
		}
		result := s.Cycle(t.now, events)
		if decided := text(&result.Decisions); decided != t.decided {
			w.judge.breach("S3", "told the same again, it decides in cycle %d\n%s\nand before\n%s", last+i, decided, t.decided)
			return
		}
	}
}

// onePerObject reports whether no object is spoken of twice, so that the order cannot matter.
func onePerObject(events []cache.Event) bool {
	seen := map[string]bool{}
	for _, e := range events {
		set, ok := e.(cache.Set)
		if !ok {
			return false
		}
		name := nameOf(set)
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func nameOf(e cache.Set) string {
	object, err := meta.Accessor(e.Object)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%T %s", e.Object, object.GetName())
}
