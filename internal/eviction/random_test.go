package eviction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/eviction"
	"hekla.sh/hekla/pkg/actions/preempt"
	"hekla.sh/hekla/pkg/actions/reclaim"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// drawWorld draws up to four nodes full of jobs of three queues, and up to ten jobs that wait.
func drawWorld(t *rapid.T) []runtime.Object {
	var objects []runtime.Object
	room := map[string]int{}
	var names []string
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		names, room[name] = append(names, name), rapid.IntRange(1, 6).Draw(t, "size")
		objects = append(objects, fixture.Node(name, fmt.Sprintf("cpu=%d", room[name])))
	}
	cpus := func(label string) string {
		if n := rapid.IntRange(0, 4).Draw(t, label); n > 0 {
			return fmt.Sprintf("cpu=%d", n)
		}
		return ""
	}
	queues := []string{"qa", "qb", "qc"}
	for _, name := range queues {
		objects = append(objects, queue(name, rapid.Int32Range(0, 2).Draw(t, "rank"), cpus("deserved"), cpus("guarantee"), ""))
	}
	classes := rapid.SampledFrom([]string{"low", "mid", "high"})
	running := rapid.IntRange(1, 6).Draw(t, "running")
	for i := range running + rapid.IntRange(1, 10).Draw(t, "waiting") {
		waits := i >= running
		size := rapid.IntRange(1, 2).Draw(t, "pod")
		var pods []string
		for range rapid.IntRange(1, 3).Draw(t, "pods") {
			node := rapid.SampledFrom(names).Draw(t, "node")
			switch {
			case waits:
				pods = append(pods, "-")
			case room[node] >= size:
				room[node] -= size
				pods = append(pods, node)
			}
		}
		options := []option{one(0, ranking(fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "task")))), one(1, startedAt(rapid.IntRange(0, 3).Draw(t, "start")))}
		if rapid.IntRange(0, 5).Draw(t, "marked") == 0 {
			options = append(options, one(0, unmarked))
		}
		if rapid.Bool().Draw(t, "guarded") {
			options = append(options, each(budgeted))
		}
		if !waits {
			options = append(options, asking(fmt.Sprintf("cpu=%d", size)))
		} else {
			if len(pods) == 1 && rapid.IntRange(0, 2).Draw(t, "lone") == 0 {
				options = append(options, lone)
			}
			options = append(options, asking(fmt.Sprintf("cpu=%d", rapid.IntRange(1, 4).Draw(t, "asks"))))
		}
		objects = append(objects, job(fmt.Sprintf("j%02d", i), rapid.SampledFrom(queues).Draw(t, "queue"), classes.Draw(t, "class"),
			rapid.IntRange(0, len(pods)).Draw(t, "minimum"), strings.Join(pods, " "), options...)...)
	}
	return append(objects, fixture.Budget("b", "guarded", rapid.Int32Range(0, 2).Draw(t, "allowed")))
}

// live runs a few cycles: bound pods run, evicted pods are gone after the next cycle. It returns the decisions.
func live(w *loop.Loop, objects []runtime.Object) string {
	w.Set(objects)
	var story []string
	for range 6 {
		story = append(story, loop.Describe(w.Cycle()))
		w.StartBound()
		for _, p := range w.Result.Decisions.Plans {
			for _, e := range p.Evictions {
				w.Terminate(e.Pod.Name)
			}
		}
		story = append(story, loop.Describe(w.Cycle()))
		w.StartBound()
		for _, j := range w.Jobs() {
			for _, t := range slices.Clone(j.Tasks()) {
				if t.Status == cluster.Releasing {
					w.Remove(t.Pod)
				}
			}
		}
	}
	return strings.Join(story, "\n")
}

// forgetful is preempt or reclaim with a new search for each preemptor, which has stored nothing. With triesAll it
// tries all nodes.
type forgetful struct {
	framework.Action
	triesAll bool
}

func (f forgetful) EvictionRules() framework.EvictionRules {
	scopes := decision.ScopesOf(decision.BetweenJobs, decision.Anywhere)
	if f.Name() == reclaim.Name {
		scopes = decision.ScopesOf(decision.BetweenQueues)
	}
	return framework.EvictionRules{Scopes: scopes, AllowWholeGang: true, Budgets: true, Ends: true, Starts: true}
}

func (forgetful) AdmitsByEviction(*framework.Session, *cluster.Job) (bool, *verdict.Verdict) {
	return false, nil
}

func (forgetful) MakeRoom(*framework.Session, *cluster.Job) {}

func (f forgetful) Execute(s *framework.Session) {
	queues := slices.Clone(s.Queues())
	slices.SortFunc(queues, s.CompareQueues)
	for _, q := range queues {
		for _, j := range eviction.Preemptors(s, q) {
			switch {
			case !s.IsStarving(j):
			case f.Name() == reclaim.Name:
				f.search(s).Reclaim(j)
			default:
				f.search(s).Preempt(j)
			}
		}
	}
}

func (f forgetful) search(s *framework.Session) *eviction.Search {
	search := eviction.NewSearch(s, f)
	if f.triesAll {
		search.TryAll()
	}
	return search
}

// mindful is the same with one search for all preemptors.
type mindful struct {
	forgetful
	compare func(counted, tried []verdict.Spared)
}

func (m mindful) Execute(s *framework.Session) {
	queues := slices.Clone(s.Queues())
	slices.SortFunc(queues, s.CompareQueues)
	search := eviction.SearchOf(s, m)
	search.CompareCounts(m.compare)
	for _, q := range queues {
		for _, j := range eviction.Preemptors(s, q) {
			switch {
			case !s.IsStarving(j):
			case m.Name() == reclaim.Name:
				search.Reclaim(j)
			default:
				search.Preempt(j)
			}
		}
	}
}

type named string

func (n named) Name() string             { return string(n) }
func (named) Execute(*framework.Session) {}

func acting(wrap func(framework.Action) framework.Action) []scheduler.Extension {
	var extensions []scheduler.Extension
	for _, name := range []string{preempt.Name, reclaim.Name} {
		extensions = append(extensions, scheduler.WithAction(framework.ActionFactory{Name: name,
			New: func(conf.Arguments) (framework.Action, error) { return wrap(named(name)), nil }}))
	}
	return extensions
}

// A search keeps failures, lower bounds of costs and numbers of spared pods from one preemptor to the next. None may
// change a decision.
func TestWhatIsKeptBetweenSearchesChangesNoDecision(t *testing.T) {
	counts := 0
	defer func() {
		if counts == 0 {
			t.Error("no spared pods were counted without trying")
		}
	}()
	rapid.Check(t, func(r *rapid.T) {
		objects := drawWorld(r)
		// If the job of highest priority came first, the jobs after it could only fail more.
		byAge := with(everything, "- name: priority\n", "- name: priority\n    enableJobOrder: false\n", "- name: gang\n", "- name: gang\n    enableJobOrder: false\n")
		different := "" // a scheduler contains the panic of a failing test
		compare := func(counted, tried []verdict.Spared) {
			counts++
			different += cmp.Diff(tried, counted)
		}
		mindful := live(start(t, byAge, acting(func(a framework.Action) framework.Action { return mindful{forgetful{Action: a}, compare} })...), objects)
		forgetful := live(start(t, byAge, acting(func(a framework.Action) framework.Action { return forgetful{Action: a, triesAll: true} })...), objects)
		if different != "" {
			r.Fatalf("pods that each rule spares (-by trying +counted):\n%s", different)
		}
		if mindful != forgetful {
			r.Fatalf("with what is remembered:\n%s\nwithout:\n%s", mindful, forgetful)
		}
	})
}

func TestTheOrderInWhichObjectsArriveChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		objects := drawWorld(r)
		other := rapid.Permutation(objects).Draw(r, "order")
		if a, b := live(start(t, everything), objects), live(start(t, everything), other); a != b {
			r.Fatalf("in one order:\n%s\nin another:\n%s", a, b)
		}
	})
}

// A preemptor that fails must change nothing: the next one is served as if it had not existed.
func TestAPreemptorThatFailsLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		objects := drawWorld(r)
		failures := job("failures", "qa", "high", 3, "- - -", each(fixture.Selecting("no", "such")))
		rich := job("rich", "qb", "high", 1, "-", asking("cpu=9"))
		if a, b := live(start(t, everything), objects), live(start(t, everything), append(append(failures, rich...), objects...)); a != b {
			r.Fatalf("without it:\n%s\nwith it:\n%s", a, b)
		}
	})
}

func TestAJobThatHadNoRoomTakesWhatAPlanLeavesOver(t *testing.T) {
	byAge := with(everything, "- name: priority\n", "- name: priority\n    enableJobOrder: false\n", "- name: gang\n", "- name: gang\n    enableJobOrder: false\n")
	w := start(t, byAge).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "mid", 2, "n1 n2"), job("stays", "default", "low", 1, "n3", each(unmarked)),
		job("a", "default", "mid", 1, "-"), job("b", "default", "high", 1, "-"), job("c", "default", "mid", 1, "-"))
	w.Expect("victim-1 leaves n2 for b by J1; victim-0 leaves n1 for b by J1; b-0 is nominated to n1; c-0 is nominated to n2")
}
