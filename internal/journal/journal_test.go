package journal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

var at = fixture.Birth

// world is a model with jobs in queue q.
func world(jobs ...string) *model.Cluster {
	return worldOf(map[string][]string{"q": jobs})
}

// worldOf is a model with jobs in queues.
func worldOf(queues map[string][]string) *model.Cluster {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	for queue, jobs := range queues {
		c.Apply(cache.Set{Object: fixture.Queue(queue)})
		for _, name := range jobs {
			c.Apply(cache.Set{Object: fixture.Group(name, queue, 1)})
		}
	}
	c.Settle()
	return c.Cluster
}

func bind(job, pod string) decision.Bind {
	return decision.Bind{Pod: fixture.Key(pod), Job: cluster.GroupID(fixture.Key(job)), Node: "n"}
}

// lines are entries in short.
func lines(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimSpace(fmt.Sprint(e.Cycle, " ", e.Kind, " ", strings.TrimPrefix(e.Job, "work/"), " ", strings.TrimPrefix(e.Pod, "work/"), " ", e.Reason)))
	}
	return all
}

func TestWhatIsDecidedIsFoundByJobPodAndQueue(t *testing.T) {
	c := world("preemptor", "giver")
	preemptor := c.Job(cluster.GroupID(fixture.Key("preemptor")))
	l := New(DefaultLimits)
	c.SetVerdict(preemptor, &verdict.Verdict{Code: verdict.Preempting, Fitting: []string{"preemptor-0"}})
	l.Cycle(1, at, c, &decision.Decisions{Plans: []decision.PlanStart{{ID: "p", Job: preemptor.ID, Evictions: []decision.Eviction{
		{Pod: fixture.Key("giver-0"), Node: "n", VictimJob: cluster.GroupID(fixture.Key("giver")), For: preemptor.ID, Action: "preempt", Rule: "J1", Message: "why"}}}}}, []*cluster.Job{preemptor})
	l.Cycle(2, at.Add(time.Second), c, &decision.Decisions{}, nil)
	c.SetVerdict(preemptor, nil)
	l.Cycle(3, at.Add(2*time.Second), c, &decision.Decisions{Binds: []decision.Bind{bind("preemptor", "preemptor-0")}}, []*cluster.Job{preemptor})
	for name, test := range map[string]struct {
		got  []Entry
		want []string
	}{
		"the preemptor": {l.OfJob(preemptor.ID, 10), []string{"1 PlanBegun preemptor", "1 Evicted giver giver-0", "1 VerdictChanged preemptor  Preempting",
			"3 PlanFulfilled preemptor", "3 Bound preemptor preemptor-0", "3 NothingInTheWay preemptor"}},
		"the giver":       {l.OfJob(cluster.GroupID(fixture.Key("giver")), 10), []string{"1 Evicted giver giver-0"}},
		"the victim":      {l.OfPod(fixture.Key("giver-0"), 10), []string{"1 Evicted giver giver-0"}},
		"the last of all": {l.All(2), []string{"3 Bound preemptor preemptor-0", "3 NothingInTheWay preemptor"}},
		"another queue":   {l.OfQueue("other", 10), nil},
	} {
		if got := lines(test.got); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if all := l.OfQueue("q", 10); len(all) != 6 || all[1].Rule != "J1" || all[1].For != "work/preemptor" || all[1].Message != "why" || !all[5].Time.Equal(at.Add(2*time.Second)) {
		t.Errorf("of the queue: %+v", all)
	}
}

func TestAPlanThatIsCancelledIsNotFulfilled(t *testing.T) {
	c := world("j")
	j := c.Job(cluster.GroupID(fixture.Key("j")))
	l := New(DefaultLimits)
	l.Cycle(1, at, c, &decision.Decisions{Plans: []decision.PlanStart{{ID: "p", Job: j.ID}}}, []*cluster.Job{j})
	l.Cycle(2, at, c, &decision.Decisions{Ended: []decision.PlanEnd{{ID: "p", Job: j.ID, Why: "node n is gone"}}}, []*cluster.Job{j})
	l.Cycle(3, at, c, &decision.Decisions{}, []*cluster.Job{j})
	entries := l.OfJob(j.ID, 10)
	if got, want := lines(entries), []string{"1 PlanBegun j", "2 PlanCancelled j"}; !slices.Equal(got, want) || entries[1].Message != "node n is gone" {
		t.Errorf("the entries are %q, want %q", got, want)
	}
}

// shelf is a stock.
type shelf struct{}

func (shelf) Left() int64          { return 0 }
func (shelf) Source() verdict.Help { return verdict.HelpNode }

func TestNothingIsKeptOfAJobThatIsGoneButItsEntries(t *testing.T) {
	c := world("j")
	j := c.Job(cluster.GroupID(fixture.Key("j")))
	refusal := func() *verdict.Verdict {
		return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpStock, Lacks: verdict.Lacks{{Stock: shelf{}, Needed: 1}}}
	}
	c.SetVerdict(j, refusal())
	l := New(DefaultLimits)
	l.Cycle(1, at, c, &decision.Decisions{Plans: []decision.PlanStart{{ID: "p", Job: j.ID}}}, []*cluster.Job{j})
	for i := l.oldest; i != none; i = l.record(i).next {
		if v := l.record(i).verdict; v != nil && v.Lacks != (verdict.Lacks{}) {
			t.Errorf("entry %d keeps the stocks that a verdict names", i)
		}
	}
	c = world("j") // another of its name, which waits for the same
	j = c.Job(j.ID)
	c.SetVerdict(j, refusal())
	l.Cycle(2, at, c, &decision.Decisions{GoneGroups: []types.NamespacedName{fixture.Key("j")}}, nil)
	if known := l.jobs[j.ID]; known.verdict != nil || known.plan != "" || known.entries != 2 {
		t.Errorf("of the job that is gone %+v is known", known)
	}
	l.Cycle(3, at, c, &decision.Decisions{}, []*cluster.Job{j})
	if got, want := lines(l.OfJob(j.ID, 10)), []string{"1 PlanBegun j", "1 VerdictChanged j  NotEnoughResources", "3 VerdictChanged j  NotEnoughResources"}; !slices.Equal(got, want) {
		t.Errorf("the entries are %q, want %q", got, want)
	}
}

func TestAdmissionsAreNotedAsTheyHappen(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cache.Set{Object: fixture.Queue("q")}, cache.Set{Object: fixture.Group("new", "q", 1, fixture.PendingAdmission)},
		cache.Set{Object: fixture.Group("old", "q", 1)})
	c.Settle()
	l := New(DefaultLimits)
	touched := []*cluster.Job{c.Job(cluster.GroupID(fixture.Key("new"))), c.Job(cluster.GroupID(fixture.Key("old")))}
	l.Cycle(1, at, c.Cluster, &decision.Decisions{}, touched)
	c.SetPhase(touched[0], schedulingv1beta1.PodGroupInqueue)
	l.Cycle(2, at, c.Cluster, &decision.Decisions{}, touched)
	l.Cycle(3, at, c.Cluster, &decision.Decisions{}, touched)
	c.SetPhase(touched[0], schedulingv1beta1.PodGroupPending)
	l.Cycle(4, at, c.Cluster, &decision.Decisions{}, touched)
	if got, want := lines(l.All(10)), []string{"2 Admitted new", "4 SentBack new"}; !slices.Equal(got, want) {
		t.Errorf("the entries are %q, want %q", got, want)
	}
}

func TestTheStoryOfAWorkloadSaysForWhomItLeft(t *testing.T) {
	c := world()
	l := New(DefaultLimits)
	key := fixture.Key("w")
	l.Cycle(1, at, c, &decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, Reserve: &v1beta2.Admission{}, Admit: true}}}, nil)
	l.Cycle(2, at, c, &decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, Pend: &decision.WorkloadRefusal{Reason: "WaitingForQuota"}}}}, nil)
	l.Cycle(3, at, c, &decision.Decisions{Workloads: []decision.WorkloadStatus{{Workload: key, Evict: &decision.WorkloadEviction{Message: "for another"}}}}, nil)
	entries := l.OfJob(cluster.WorkloadID(key.Namespace, key.Name), 10)
	if got, want := lines(entries), []string{"1 Admitted workload/w", "3 SentBack workload/w"}; !slices.Equal(got, want) || entries[1].Message != "for another" {
		t.Errorf("the entries are %q, want %q", got, want)
	}
}

func TestANoisyJobPushesOutNoOther(t *testing.T) {
	c := world("noisy", "quiet")
	l := New(Limits{Entries: 50, PerJob: 10, Bytes: 1 << 20})
	l.Cycle(1, at, c, &decision.Decisions{Binds: []decision.Bind{bind("quiet", "quiet-0")}}, nil)
	for cycle := range uint64(1000) {
		l.Cycle(cycle+2, at, c, &decision.Decisions{Binds: []decision.Bind{bind("noisy", fmt.Sprint("noisy-", cycle))}}, nil)
	}
	if got := len(l.OfJob(cluster.GroupID(fixture.Key("noisy")), 100)); got != 10 {
		t.Errorf("of the noisy job there are %d entries, want 10", got)
	}
	if got := lines(l.OfJob(cluster.GroupID(fixture.Key("quiet")), 100)); !slices.Equal(got, []string{"1 Bound quiet quiet-0"}) {
		t.Errorf("of the quiet job there are %q", got)
	}
}

// TestTheJournalIsASuffixWithinItsLimits compares it with a list that keeps everything.
func TestTheJournalIsASuffixWithinItsLimits(t *testing.T) {
	c := world("a", "b", "c")
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Entries: rapid.IntRange(1, 20).Draw(t, "entries"), PerJob: rapid.IntRange(1, 10).Draw(t, "per job"),
			Bytes: rapid.IntRange(1, 20*recordBytes).Draw(t, "bytes")}
		l := New(limits)
		var model []string // job and cycle, the oldest first
		for cycle := range uint64(rapid.IntRange(0, 100).Draw(t, "cycles")) {
			job := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "job")
			l.Cycle(cycle, at, c, &decision.Decisions{Binds: []decision.Bind{bind(job, "p")}}, nil)
			of := func(line string) bool { return strings.HasPrefix(line, job+" ") }
			if n := len(slices.DeleteFunc(slices.Clone(model), func(line string) bool { return !of(line) })); n >= limits.PerJob {
				first := slices.IndexFunc(model, of)
				model = slices.Delete(model, first, first+1)
			}
			for len(model) > 0 && (len(model) >= limits.Entries || (len(model)+1)*recordBytes > limits.Bytes) {
				model = model[1:]
			}
			model = append(model, fmt.Sprint(job, " ", cycle))
			var got []string
			for _, e := range l.All(1000) {
				got = append(got, fmt.Sprint(strings.TrimPrefix(e.Job, "work/"), " ", e.Cycle))
			}
			if !slices.Equal(got, model) {
				t.Fatalf("it holds %q, want %q", got, model)
			}
			if int(l.space) > limits.Entries || l.entries > 1 && l.bytes > limits.Bytes {
				t.Fatalf("it has space for %d entries and holds %d bytes; the limits are %+v", l.space, l.bytes, limits)
			}
		}
	})
}

func TestACycleInWhichNothingChangesCostsNothing(t *testing.T) {
	c := world("j")
	j := c.Job(cluster.GroupID(fixture.Key("j")))
	c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources})
	l := New(DefaultLimits)
	touched, nothing := []*cluster.Job{j}, &decision.Decisions{}
	l.Cycle(1, at, c, nothing, touched)
	if allocations := testing.AllocsPerRun(100, func() { l.Cycle(2, at, c, nothing, touched) }); allocations > 0 {
		t.Errorf("it allocates %g times", allocations)
	}
	if len(l.All(10)) != 1 {
		t.Errorf("it has written %q", lines(l.All(10)))
	}
}

// BenchmarkBinds notes a thousand binds of a hundred jobs.
func BenchmarkBinds(b *testing.B) {
	var names []string
	d := &decision.Decisions{}
	for i := range 100 {
		names = append(names, fmt.Sprint("job-", i))
		for k := range 10 {
			d.Binds = append(d.Binds, bind(names[i], fmt.Sprint(names[i], "-", k)))
		}
	}
	c, l := world(names...), New(DefaultLimits)
	b.ReportAllocs()
	for b.Loop() {
		l.Cycle(1, at, c, d, nil)
	}
}

// TestTheEntriesOfAJobPodOrQueueAreAllThatNameIt compares them with those among all entries.
func TestTheEntriesOfAJobPodOrQueueAreAllThatNameIt(t *testing.T) {
	names := []string{"a", "b", "c"}
	queues := map[string][]string{"q": {"a", "b"}, "r": {"c"}}
	c := worldOf(queues)
	rapid.Check(t, func(t *rapid.T) {
		l := New(Limits{Entries: rapid.IntRange(1, 20).Draw(t, "entries"), PerJob: rapid.IntRange(1, 10).Draw(t, "per job"), Bytes: 1 << 20})
		name := func(what string) string { return rapid.SampledFrom(names).Draw(t, what) }
		for cycle := range uint64(rapid.IntRange(0, 40).Draw(t, "cycles")) {
			d := &decision.Decisions{}
			if rapid.Bool().Draw(t, "binds") {
				d.Binds = append(d.Binds, bind(name("bound"), name("pod")))
			} else {
				of := cluster.GroupID(fixture.Key(name("preemptor")))
				start := decision.PlanStart{ID: fmt.Sprint("p", cycle), Job: of}
				for range rapid.IntRange(1, 3).Draw(t, "victims") {
					start.Evictions = append(start.Evictions, decision.Eviction{Pod: fixture.Key(name("leaves")), VictimJob: cluster.GroupID(fixture.Key(name("victim"))), For: cluster.GroupID(fixture.Key(name("for")))})
				}
				d.Plans = append(d.Plans, start)
			}
			l.Cycle(cycle, at, c, d, nil)
			for _, job := range names {
				id := fixture.Key(job).String()
				want := slices.DeleteFunc(l.All(1000), func(e Entry) bool { return e.Job != id && e.For != id })
				if got := l.OfJob(cluster.GroupID(fixture.Key(job)), 1000); !slices.Equal(got, want) {
					t.Fatalf("of %s there are %q, want %q", job, lines(got), lines(want))
				}
				if got := l.OfJob(cluster.GroupID(fixture.Key(job)), 2); !slices.Equal(got, want[max(len(want)-2, 0):]) {
					t.Fatalf("the last two of %s are %q", job, lines(got))
				}
				pod := fixture.Key(job) // pods have the same names
				want = slices.DeleteFunc(l.All(1000), func(e Entry) bool { return e.Pod != pod.String() })
				if got := l.OfPod(pod, 1000); !slices.Equal(got, want) {
					t.Fatalf("of pod %s there are %q, want %q", pod, lines(got), lines(want))
				}
				if got := l.OfPod(pod, 2); !slices.Equal(got, want[max(len(want)-2, 0):]) {
					t.Fatalf("the last two of pod %s are %q", pod, lines(got))
				}
			}
			for queue := range queues {
				want := slices.DeleteFunc(l.All(1000), func(e Entry) bool { return e.Queue != queue })
				if got := l.OfQueue(queue, 1000); !slices.Equal(got, want) {
					t.Fatalf("of queue %s there are %q, want %q", queue, lines(got), lines(want))
				}
				if got := l.OfQueue(queue, 2); !slices.Equal(got, want[max(len(want)-2, 0):]) {
					t.Fatalf("the last two of queue %s are %q", queue, lines(got))
				}
			}
		}
		if len(l.elsewhere) > len(names) {
			t.Fatalf("%d jobs have entries elsewhere", len(l.elsewhere))
		}
	})
}
