package overcommit

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// pendingAdmission is a job that was not admitted yet.
func pendingAdmission(name, minimum string) runtime.Object {
	return fixture.Group(name, "q", 1, fixture.PendingAdmission, fixture.Wanting(minimum))
}

func sixCPUs(tb testing.TB, arguments string, objects ...runtime.Object) *harness.Model {
	return harness.ForPlugin(tb, Factory(), arguments).Set(fixture.Node("n1", "cpu=2 memory=4Gi"), fixture.Node("n2", "cpu=4 memory=16Gi"),
		fixture.Queue("q")).Set(objects)
}

func TestAdmissionIsALittleWiderThanTheCluster(t *testing.T) {
	w := sixCPUs(t, "", fixture.Group("booked", "q", 1, fixture.Wanting("cpu=2 memory=2Gi")), pendingAdmission("fits", "cpu=2 memory=2Gi"),
		pendingAdmission("exactly", "cpu=5200m"), pendingAdmission("too-much", "cpu=5201m"), pendingAdmission("huge", "cpu=20 memory=20Gi"),
		fixture.Group("silent", "q", 1, fixture.PendingAdmission), pendingAdmission("empty", ""))
	s := w.Open()
	for job, want := range map[string]string{
		"fits": "", "exactly": "", "silent": "", "empty": "",
		"too-much": "OverCommitted: cpu: needs 5201m, has 5200m, short by 1m",
		"huge":     "TooLargeForCluster: cpu: needs 20, has 6, short by 14",
	} {
		if diff := cmp.Diff(want, harness.Describe(s.MayEnqueue(w.JobNamed(job)))); diff != "" {
			t.Errorf("job %s: %s", job, diff)
		}
	}
	s.Admit(w.JobNamed("fits"))
	want := &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpNode | verdict.HelpQueue,
		Shortages: []verdict.Shortage{{Resource: "cpu", Need: 5200, Have: 3200}}}
	if diff := cmp.Diff(want, s.MayEnqueue(w.JobNamed("exactly"))); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAJobHoldsIsNotCountedTwice(t *testing.T) {
	w := sixCPUs(t, "overcommit-factor: 1", fixture.Group("half", "q", 1, fixture.Wanting("cpu=4")),
		fixture.Pod("a", fixture.In("half"), fixture.Asks("cpu=2"), fixture.On("n2")),
		fixture.Pod("b", fixture.In("half"), fixture.Asks("cpu=2")), pendingAdmission("j", "cpu=2"), pendingAdmission("k", "cpu=2001m"))
	s := w.Open()
	for range 2 {
		// The second time round the job's other pod is on its way, which makes no difference.
		if v := s.MayEnqueue(w.JobNamed("j")); v != nil {
			t.Fatal(harness.Describe(v))
		}
		if s.MayEnqueue(w.JobNamed("k")) == nil {
			t.Fatal("more is admitted than there is")
		}
		if b := w.TaskNamed("b"); b.Status == cluster.Pending {
			s.Begin().Place(b, w.Node("n1"))
		}
	}
}

func TestAJobPendingAdmissionDoesNotAskForWhatItHolds(t *testing.T) {
	w := sixCPUs(t, "overcommit-factor: 1", pendingAdmission("j", "cpu=5"), pendingAdmission("k", "cpu=5"),
		fixture.Pod("a", fixture.In("j"), fixture.Asks("cpu=2"), fixture.On("n1")))
	s := w.Open()
	for job, want := range map[string]string{"j": "", "k": "OverCommitted: cpu: needs 5, has 4, short by 1"} {
		if diff := cmp.Diff(want, harness.Describe(s.MayEnqueue(w.JobNamed(job)))); diff != "" {
			t.Errorf("job %s: %s", job, diff)
		}
	}
}

func TestPodsOfOthersTakeRoom(t *testing.T) {
	foreign := fixture.Pod("foreign", fixture.Asks("cpu=4"), fixture.On("n2"))
	foreign.Spec.SchedulerName = "default-scheduler"
	w := sixCPUs(t, "overcommit-factor: 1", foreign, pendingAdmission("j", "cpu=3"))
	if v := w.Open().MayEnqueue(w.JobNamed("j")); v == nil || v.Shortages[0].Have != 2000 {
		t.Errorf("verdict %v, should say that there are two CPUs", v)
	}
}

func TestTheFactorIsTakenAsItIsWritten(t *testing.T) {
	for arguments, want := range map[string]int64{
		"":                             12 << 30,
		"overcommit-factor: 1.2":       12 << 30,
		`overcommit-factor: "1.2"`:     12 << 30,
		"overcommit-factor: 1":         10 << 30,
		"overcommit-factor: 2":         20 << 30,
		"overcommit-factor: 0.5":       12 << 30, // counts as 1.2
		"overcommit-factor: -3":        12 << 30,
		"overcommit-factor: 1.0000001": 10<<30 + 1073,
		"overcommit-factor: 1e30":      resources.Unlimited,
	} {
		w := harness.ForPlugin(t, Factory(), arguments).Set(fixture.Node("n", "memory=10Gi"), fixture.Queue("q"), pendingAdmission("j", "memory=1"))
		s := w.Open()
		if v := s.MayEnqueue(w.JobNamed("j")); v != nil {
			t.Fatal(harness.Describe(v))
		}
		factory := Factory()
		made, err := factory.New(s.Policy.Configuration.Tiers[0].Plugins[0].Switches, s.Policy.Configuration.Tiers[0].Plugins[0].Arguments)
		if err != nil {
			t.Fatal(err)
		}
		p := made.(*plugin)
		p.OpenSession(s)
		if got := p.usable.of(p, resources.Memory, s.Cluster.Totals.Size(resources.Memory)); got != want {
			t.Errorf("%q: %d bytes are admitted, should be %d", arguments, got, want)
		}
	}
}

func TestNoMoreIsAdmittedThanTheFactorAllows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := sixCPUs(t, "overcommit-factor: 1.5")
		for i := range rapid.IntRange(1, 9).Draw(r, "jobs") {
			name, cpu := fmt.Sprintf("j%d", i), rapid.IntRange(1, 6000).Draw(r, "cpu")
			w.Set(pendingAdmission(name, fmt.Sprintf("cpu=%dm", cpu)), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(fmt.Sprintf("cpu=%dm", cpu))))
		}
		s := w.Open()
		const limit = 9000
		for _, j := range s.Jobs(w.Queue("q")) {
			before := w.Used.At(resources.CPU) + w.Root().Subtree.Inqueue.At(resources.CPU)
			fits := before+j.MinResources.At(resources.CPU) <= limit
			if let := s.MayEnqueue(j) == nil; let != fits {
				t.Fatalf("with %d of %d taken, %v is admitted: %t", before, limit, j.MinResources, let)
			} else if !let {
				continue
			}
			s.Admit(j)
			if rapid.Bool().Draw(r, "placed") && w.Node("n2").Room(s.Pending(j)[0].Request()) {
				x := s.Begin()
				x.Place(s.Pending(j)[0], w.Node("n2"))
				x.Commit()
			}
		}
	})
}

func BenchmarkOpenSession(b *testing.B) {
	w := sixCPUs(b, "")
	s := w.Open()
	factory := Factory()
	made, _ := factory.New(s.Policy.Configuration.Tiers[0].Plugins[0].Switches, s.Policy.Configuration.Tiers[0].Plugins[0].Arguments)
	p := made.(*plugin)
	b.ReportAllocs()
	for b.Loop() {
		p.OpenSession(s)
	}
}

func BenchmarkMayEnqueue(b *testing.B) {
	w := sixCPUs(b, "", pendingAdmission("j", "cpu=1 memory=1Gi"))
	s := w.Open()
	b.ReportAllocs()
	for b.Loop() {
		if v := s.MayEnqueue(w.JobNamed("j")); v != nil {
			b.Fatal(harness.Describe(v))
		}
	}
}

func TestRoomThatIsPromisedCountsAsUsedAndRoomThatIsLeftDoesNot(t *testing.T) {
	w := sixCPUs(t, "overcommit-factor: 1", pendingAdmission("j", "cpu=3"),
		fixture.Group("runs", "q", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=4"), fixture.On("n2")),
		fixture.Group("preemptor", "q", 1), fixture.Pod("preemptor-0", fixture.In("preemptor"), fixture.Asks("cpu=4")))
	s := w.Open()
	refused := func() bool { return s.MayEnqueue(w.JobNamed("j")) != nil }
	if !refused() {
		t.Fatal("with four of six CPUs taken three more are admitted")
	}
	x := s.Begin()
	w.EvictPods(x, "runs-0")
	if refused() {
		t.Error("what leaves is still counted")
	}
	w.Nominate(x, "preemptor-0", "n2")
	if !refused() {
		t.Error("what is promised is not counted")
	}
	x.Undo()
}
