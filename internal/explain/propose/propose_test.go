package propose_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/propose"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/capacity"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// asker looks for changes with which job waits would start.
type asker struct {
	*harness.Model
	trials int
}

// waiting is a cluster of a node with eight CPUs, of which four are free, in which job waits of some pods needs nodes.
func waiting(t harness.TB, minimum, size int, request string, more ...any) *asker {
	t.Helper()
	m := harness.ForPlugins(t, harness.Entry{Factory: harness.Made(harness.Gang{})}, harness.Entry{Factory: capacity.Factory()}).Placing()
	m.Set(fixture.Queue("default", fixture.Capped("cpu=100")), fixture.Node("a", "cpu=8"), fixture.Group("runs", "default", 1),
		fixture.Pod("r", fixture.In("runs"), fixture.Asks("cpu=4"), fixture.On("a"))).Gang("waits", "default", minimum, size, request).Set(more...)
	return &asker{Model: m}
}

// propose asks about job waits, of which a scheduler has said that it lacks CPU on the nodes.
func (a *asker) propose(change func(*propose.Job)) (found []propose.Proposal, why string) {
	a.Open()
	j := propose.Job{Job: a.JobNamed("waits"), Cluster: a.Cluster, Engine: a.Outlook, Code: string(verdict.NotEnoughResources), Short: []string{"cpu"}, IsRefused: true}
	j.Job.Verdict = &verdict.Verdict{Code: verdict.NotEnoughResources}
	j.Suppose = func(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, look func(*framework.Session, *cluster.Job)) error {
		a.trials++
		return a.Suppose(group, pods, func() {}, func(j *cluster.Job) { look(a.Open(), j) })
	}
	if change != nil {
		change(&j)
	}
	return propose.For(j)
}

func kindsOf(found []propose.Proposal) (kinds []string) {
	for _, p := range found {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

func ExampleFor() {
	found, _ := waiting(new(testing.T), 3, 3, "cpu=2").propose(nil)
	for _, p := range found {
		fmt.Printf("%s (starts: %t): %s\n", p.Kind, p.Starts, p.Message)
	}
	// Output:
	// fewerPods (starts: true): with minAvailable 2 instead of 3 its first 2 pods would start now
	// smallerRequests (starts: true): would start now if its pods requested less: cpu 1333m instead of 2
	// newNodes (starts: false): there would be room with 1 more node like a, which holds 4 such pods if it is empty
}

func TestNothingIsSaidToStartThatWasNotTried(t *testing.T) {
	starting := func(change func(*propose.Job)) (kinds []string) {
		found, _ := waiting(t, 3, 3, "cpu=2", fixture.Queue("other")).propose(change)
		for _, p := range found {
			if p.Starts {
				kinds = append(kinds, p.Kind)
			}
		}
		return kinds
	}
	if kinds := starting(nil); len(kinds) == 0 {
		t.Fatal("no change is proposed with which the job starts")
	}
	for name, suppose := range map[string]func(*schedulingv1beta1.PodGroup, []*corev1.Pod, func(*framework.Session, *cluster.Job)) error{
		"the trial fails": func(*schedulingv1beta1.PodGroup, []*corev1.Pod, func(*framework.Session, *cluster.Job)) error {
			return errors.New("it fails")
		},
		"nothing was looked at": func(*schedulingv1beta1.PodGroup, []*corev1.Pod, func(*framework.Session, *cluster.Job)) error {
			return nil
		},
	} {
		if kinds := starting(func(j *propose.Job) { j.Suppose = suppose }); len(kinds) > 0 {
			t.Errorf("%s: the job is said to start with %v", name, kinds)
		}
	}
}

func TestWhatIsTriedLeavesNoTrace(t *testing.T) {
	a := waiting(t, 5, 5, "cpu=2", fixture.Queue("other"))
	a.propose(nil) // what only grows has grown
	before := a.Dump()
	a.propose(nil)
	if after := a.Dump(); after != before || a.Mark() != 0 {
		t.Errorf("the model is\n%s\nand was\n%s", after, before)
	}
}

func TestTheNumberOfTrialsIsLimited(t *testing.T) {
	const most = 40
	for _, size := range []int{2, 20, 200} {
		var queues []any
		for i := range 50 {
			queues = append(queues, fixture.Queue(fmt.Sprint("queue-", i), fixture.Capped("cpu=0")))
		}
		a := waiting(t, size, size, "cpu=3", queues...)
		if a.propose(nil); a.trials == 0 || a.trials > most {
			t.Errorf("for a job of %d pods %d changes are tried", size, a.trials)
		}
	}
	a := waiting(t, 201, 201, "cpu=3")
	if found, why := a.propose(nil); a.trials > 0 || len(found) > 0 || why != "the job has more than 200 waiting pods" {
		t.Errorf("for a job of 201 pods %d changes are tried, and it is said %v, %q", a.trials, found, why)
	}
}

func TestAnotherQueueIsProposedOnlyIfTheJobStartsThere(t *testing.T) {
	full := func(j *propose.Job) {
		j.Code, j.Short, j.IsRefused = string(verdict.OverCapability), nil, false
		j.Job.Verdict = &verdict.Verdict{Code: verdict.OverCapability}
	}
	capped := fixture.Queue("default", fixture.Capped("cpu=4"))
	for name, test := range map[string]struct {
		queues []any
		want   string
	}{
		"one with quota":       {[]any{fixture.Queue("free")}, "in queue free it would start now"},
		"one without":          {[]any{fixture.Queue("tight", fixture.Capped("cpu=1"))}, ""},
		"one that is closed":   {[]any{fixture.Queue("shut", fixture.Closed)}, ""},
		"the first that helps": {[]any{fixture.Queue("b"), fixture.Queue("a", fixture.Capped("cpu=1"))}, "in queue b it would start now"},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := waiting(t, 2, 2, "cpu=1", append(test.queues, capped)...).propose(full)
			got := ""
			for _, p := range found {
				if p.Kind == "anotherQueue" {
					got = p.Message
				}
			}
			if got != test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
			at := slices.IndexFunc(found, func(p propose.Proposal) bool { return p.Kind == "moreQuota" })
			if at < 0 || found[at].Starts || !strings.HasPrefix(found[at].Message, "queue default needs the capability cpu 6 instead of 4; each of the pods has room") {
				t.Errorf("of quota it is said %+v", found)
			}
		})
	}
}

func TestNothingIsProposedForAJobThatNoChangeIsKnownFor(t *testing.T) {
	started := fixture.Pod("waits-0", fixture.In("waits"), fixture.As("worker", 0), fixture.On("a"))
	for name, test := range map[string]struct {
		more []any
		want string
	}{
		"some pods have started": {[]any{started}, "some of its pods have started already"},
		"its pods must be close": {[]any{fixture.Group("waits", "default", 2, fixture.Within(1))}, "its pods must be close to each other, for which no changes are tried"},
	} {
		t.Run(name, func(t *testing.T) {
			a := waiting(t, 2, 2, "cpu=3", test.more...)
			if found, why := a.propose(nil); why != test.want || len(found) > 0 || a.trials > 0 {
				t.Errorf("it is said %q and %v after %d trials, want %q", why, kindsOf(found), a.trials, test.want)
			}
		})
	}
}

// said is what is proposed of a kind, "" if nothing is.
func said(found []propose.Proposal, kind string) string {
	for _, p := range found {
		if p.Kind == kind {
			return p.Message
		}
	}
	return ""
}

// What is proposed is as large as it may be: what is free on a node is filled.
func TestRequestsAreProposedAsLargeAsTheyMayBe(t *testing.T) {
	for name, test := range map[string]struct {
		pods          int
		request, want string
		more          []any
	}{
		"one that may have all that is free":  {1, "cpu=7", "cpu 4 instead of 7", nil},
		"several on one node":                 {3, "cpu=2", "cpu 1333m instead of 2", nil},
		"several, and one has a larger node":  {2, "cpu=9", "cpu 8 instead of 9", []any{fixture.Node("b", "cpu=16")}},
		"what is free on nodes of their size": {3, "cpu=9", "cpu 8 instead of 9", []any{fixture.Node("b", "cpu=8"), fixture.Node("c", "cpu=16")}},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := waiting(t, test.pods, test.pods, test.request, test.more...).propose(nil)
			if got := said(found, "smallerRequests"); got != "would start now if its pods requested less: "+test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
		})
	}
}

func TestTolerationsAreProposedWhereTheyHelp(t *testing.T) {
	tainted := func(taints ...corev1.Taint) []any {
		return []any{fixture.Node("b", "cpu=8", func(n *corev1.Node) { n.Spec.Taints = taints })}
	}
	team := corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	system := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	for name, test := range map[string]struct {
		request string
		taints  []corev1.Taint
		want    string
	}{
		"it fits there":               {"cpu=5", []corev1.Taint{team}, "with tolerations of taint team=a:NoSchedule it would start now"},
		"it does not fit there":       {"cpu=9", []corev1.Taint{team}, ""},
		"Kubernetes has set another":  {"cpu=5", []corev1.Taint{team, system}, ""},
		"a taint that refuses nobody": {"cpu=9", []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := waiting(t, 1, 1, test.request, tainted(test.taints...)...).propose(func(j *propose.Job) { j.Tainted = []string{"b"} })
			if got := said(found, "tolerations"); got != test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
		})
	}
}

// A job that is not admitted has no pods. Its minResources say what they will request.
func TestForAJobThatWaitsForAdmissionItsMinResourcesCount(t *testing.T) {
	door := func(code verdict.Code, more ...any) []propose.Proposal {
		group := fixture.Group("door", "default", 3, fixture.PendingAdmission, fixture.Wanting("cpu=6"))
		a := waiting(t, 1, 1, "cpu=1", append(more, group)...)
		found, why := a.propose(func(j *propose.Job) {
			j.Job, j.Code, j.IsRefused = a.JobNamed("door"), string(code), false
			j.Job.Verdict = &verdict.Verdict{Code: code, Shortages: []verdict.Shortage{{Resource: "cpu", Need: 6000, Have: 1000}}}
		})
		if why != "" {
			t.Fatalf("nothing is looked for: %s", why)
		}
		for _, p := range found {
			if p.Assumes == "" {
				t.Errorf("it is not said what %s assumes", p.Kind)
			}
		}
		return found
	}
	full := door(verdict.OverCommitted)
	for kind, want := range map[string]string{
		"fewerPods":       "with minAvailable 2 instead of 3 its first 2 pods would start now",
		"smallerRequests": "would start now if its pods requested less: cpu 1333m instead of 2",
		"newNodes":        "there would be room with 1 more node like a, which holds 4 such pods if it is empty",
	} {
		if got := said(full, kind); got != want {
			t.Errorf("of %s it is said %q, want %q", kind, got, want)
		}
	}
	capped := door(verdict.OverCapability, fixture.Queue("default", fixture.Capped("cpu=5")), fixture.Queue("free"), fixture.Node("b", "cpu=8"))
	for kind, want := range map[string]string{
		"smallerRequests": "would start now if its pods requested less: cpu 333m instead of 2",
		"anotherQueue":    "in queue free it would start now",
		"moreQuota":       "queue default needs the capability cpu 10 instead of 5; each of the pods has room on a node",
		"newNodes":        "",
	} {
		if got := said(capped, kind); got != want {
			t.Errorf("of %s it is said %q, want %q", kind, got, want)
		}
	}
}
