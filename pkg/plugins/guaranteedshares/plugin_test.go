package guaranteedshares

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func catalogue() conf.Catalogue {
	return conf.Catalogue{Plugins: map[string]conf.Spec{Name: Factory().Spec}, Actions: map[string]conf.Spec{"allocate": {}}}
}

func TestArgumentsThatCannotBeReadAreErrors(t *testing.T) {
	for argument, want := range map[string]string{
		"subtrees: root":        "a list of names of queues, each once",
		"subtrees: []":          "a list of names of queues, each once",
		"subtrees: [a, 7]":      "a list of names of queues, each once",
		"subtrees: [a, a]":      "a list of names of queues, each once",
		"preemptionDelay: 0s":   "a duration above 0",
		"preemptionDelay: -1s":  "a duration above 0",
		"preemptionDelay: soon": "a duration",
		"daemonSets: perhaps":   "true or false",
		"preemptiondelay: 30s":  "preemptiondelay",
		"subtrees: [a, b]":      "",
		"preemptionDelay: 1m":   "",
		"daemonSets: false":     "",
	} {
		_, err := conf.Parse([]byte("actions: allocate\ntiers:\n- plugins:\n  - name: guaranteed-shares\n    arguments:\n      "+argument), catalogue())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", argument, err, want)
		}
	}
}

// job is a job with one pod.
func job(name, queue, asks string, options ...string) []runtime.Object {
	pod := fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(asks))
	for _, node := range options {
		fixture.On(node)(pod)
	}
	return []runtime.Object{fixture.Group(name, queue, 1, fixture.Wanting(asks)), pod}
}

func TestCapabilitiesHoldAndGuaranteesAreNotKeptFree(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), fixture.Queue("top", fixture.Capped("cpu=5")),
		fixture.Queue("leaf", fixture.Below("top"), fixture.Capped("cpu=4")), fixture.Queue("other", fixture.Below("top"), fixture.Guaranteed("cpu=5")))
	w.Set(job("held", "leaf", "cpu=2", "n1")).Set(job("fits", "leaf", "cpu=2")).Set(job("full", "leaf", "cpu=3")).
		Set(job("large", "leaf", "cpu=6")).Set(job("above", "other", "cpu=4"))
	s := w.Open()
	for name, want := range map[string]string{
		"fits":  "",
		"full":  "OverCapability leaf: cpu: needs 3, has 2, short by 1",
		"large": "TooLargeForQueue top: cpu: needs 6, has 5, short by 1",
		"above": "OverCapability top: cpu: needs 4, has 3, short by 1",
	} {
		if diff := cmp.Diff(want, harness.Describe(s.MayAllocate(w.TaskNamed(name+"-0")))); diff != "" {
			t.Errorf("job %s: %s", name, diff)
		}
	}
	if got := harness.Describe(s.MayEnqueue(w.JobNamed("large"))); !strings.HasPrefix(got, "TooLargeForQueue top") {
		t.Errorf("a job that is too large is admitted: %q", got)
	}
}

func TestJobsRunInLeavesOnly(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), fixture.Queue("top"), fixture.Queue("leaf", fixture.Below("top")))
	w.Set(job("a", "top", "cpu=1")).Set(job("b", "leaf", "cpu=1"))
	w.Open()
	if got := harness.Describe(w.JobNamed("a").Verdict); !strings.HasPrefix(got, "QueueNotLeaf top") {
		t.Errorf("the job above the leaf is judged %q", got)
	}
	if v := w.JobNamed("b").Verdict; v != nil {
		t.Errorf("the job in the leaf is judged %s", harness.Describe(v))
	}
}

func TestOutsideItsSubtreesThePluginAbstains(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "subtrees: [inside, lower]").Set(fixture.Node("n1", "cpu=16"), fixture.Queue("inside", fixture.Capped("cpu=1")),
		fixture.Queue("lower", fixture.Below("inside")), fixture.Queue("outside", fixture.Capped("cpu=1")))
	w.Set(job("a", "lower", "cpu=2")).Set(job("b", "outside", "cpu=2"))
	s := w.Open()
	if s.MayAllocate(w.TaskNamed("a-0")) == nil || s.MayEnqueue(w.JobNamed("a")) == nil {
		t.Error("the capability of a top does not hold below it")
	}
	if s.MayAllocate(w.TaskNamed("b-0")) != nil || s.MayEnqueue(w.JobNamed("b")) != nil {
		t.Error("the plugin refuses a job of another queue")
	}
	for queue, want := range map[string]bool{"inside": true, "lower": true, "outside": false} {
		if got := s.Policy.Subtrees().Contains(w.Queue(queue).QuotaNode()); got != want {
			t.Errorf("queue %s is in a subtree: %t", queue, got)
		}
	}
	if top := s.Policy.Subtrees().Top(w.Queue("lower").QuotaNode()); top.Name != "inside" {
		t.Errorf("a top below another is the top of %s", top.Name)
	}
}
