package guaranteedshares

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// ranked is a job of a class.
func ranked(name, queue, class, asks string) []runtime.Object {
	group := fixture.Group(name, queue, 1)
	group.Spec.PriorityClassName = class
	return []runtime.Object{group, fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(asks))}
}

func TestQueuesAreServedWhereTheirWaysPart(t *testing.T) {
	set := func(key, value string) fixture.QueueOption { return fixture.QueueAnnotated(key, value) }
	for name, test := range map[string]struct {
		tops  []runtime.Object // queues a and b; a1 is below a, b1 below b
		class [2]string        // of the jobs that wait in a1 and b1
		held  [2]string
		first string
	}{
		"the higher priority of a waiting job": {[]runtime.Object{fixture.Queue("a"), fixture.Queue("b")}, [2]string{"", "high"}, [2]string{}, "b1"},
		"with the offsets of the queues": {[]runtime.Object{fixture.Queue("a"), fixture.Queue("b", set(schedulingv1beta1.PriorityOffsetKey, "-200"))},
			[2]string{"", "high"}, [2]string{}, "a1"},
		"behind a fence its offset alone": {[]runtime.Object{fixture.Queue("a"), fixture.Queue("b", set(schedulingv1beta1.PriorityPolicyKey, "fence"),
			set(schedulingv1beta1.PriorityOffsetKey, "1"))}, [2]string{"", "high"}, [2]string{}, "b1"},
		"not if the queue above both says so": {[]runtime.Object{fixture.Queue("root", set(schedulingv1beta1.ApplicationSortPriorityKey, "disabled")),
			fixture.Queue("a"), fixture.Queue("b")}, [2]string{"", "high"}, [2]string{}, "a1"},
		"then the smaller part of the guarantee": {[]runtime.Object{fixture.Queue("a", fixture.Guaranteed("cpu=4")), fixture.Queue("b", fixture.Guaranteed("cpu=10"))},
			[2]string{}, [2]string{"cpu=2", "cpu=3"}, "b1"},
		"of the capability without a guarantee": {[]runtime.Object{fixture.Queue("a", fixture.Capped("cpu=4")), fixture.Queue("b")},
			[2]string{}, [2]string{"cpu=2", "cpu=3"}, "b1"},
		"then the name": {[]runtime.Object{fixture.Queue("a"), fixture.Queue("b")}, [2]string{}, [2]string{}, "a1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), fixture.PriorityClass("high", 100)).Set(test.tops).
				Set(fixture.Queue("a1", fixture.Below("a")), fixture.Queue("b1", fixture.Below("b")))
			for i, queue := range []string{"a1", "b1"} {
				w.Set(ranked("waits-"+queue, queue, test.class[i], "cpu=1"))
				if test.held[i] != "" {
					w.Set(job("runs-"+queue, queue, test.held[i], "n1"))
				}
			}
			s, other := w.Open(), map[string]string{"a1": "b1", "b1": "a1"}[test.first]
			if a, b := w.Queue(test.first), w.Queue(other); s.CompareQueues(a, b) >= 0 || s.CompareQueues(b, a) <= 0 {
				t.Errorf("%s should be served before %s", test.first, other)
			}
		})
	}
}

func TestJobsAreServedByPriorityAndInTheOrderFairByWhatTheyHold(t *testing.T) {
	for policy, want := range map[string]int{"fifo": 0, "fair": 1} {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), fixture.PriorityClass("high", 100),
			fixture.Queue("top", fixture.QueueAnnotated(schedulingv1beta1.ApplicationSortPolicyKey, policy)), fixture.Queue("q", fixture.Below("top")))
		w.Set(job("holds", "q", "cpu=2", "n1")).Set(job("waits", "q", "cpu=1")).Set(ranked("high", "q", "high", "cpu=1"))
		p := &plugin{names: []string{"root"}}
		p.OpenSession(w.Open())
		if got := p.CompareJobs(w.JobNamed("holds"), w.JobNamed("waits")); got != want {
			t.Errorf("%s: of the jobs of one priority the order is %d, want %d", policy, got, want)
		}
		if got := p.CompareJobs(w.JobNamed("high"), w.JobNamed("waits")); got >= 0 {
			t.Errorf("%s: the job of higher priority comes later", policy)
		}
	}
}

func TestOnlySoManyJobsAreAdmitted(t *testing.T) {
	limit := func(name, most string, options ...fixture.QueueOption) runtime.Object {
		return fixture.Queue(name, append(options, fixture.QueueAnnotated(schedulingv1beta1.MaxApplicationsKey, most))...)
	}
	w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=16"), limit("top", "2"), limit("a", "1", fixture.Below("top")),
		fixture.Queue("b", fixture.Below("top")), fixture.Queue("other"))
	w.Set(job("runs", "a", "cpu=1", "n1"))
	for _, queue := range []string{"a", "b", "other"} {
		w.Set(fixture.Group("wants-"+queue, queue, 1, fixture.PendingAdmission), fixture.Group("also-"+queue, queue, 1, fixture.PendingAdmission))
	}
	s := w.Open()
	ask := func(name, want string) {
		t.Helper()
		v := s.LimitAdmission(w.JobNamed(name))
		got := ""
		if v != nil {
			got = fmt.Sprintf("%s %s: %s", v.Code, v.Subject, v.Detail)
		}
		if got != want {
			t.Errorf("admission of %s: %q, want %q", name, got, want)
		}
	}
	ask("wants-a", "TooManyApplications a: it has 1 admitted jobs of 1 (maxapplications)")
	ask("wants-b", "")
	ask("also-b", "") // the other was not admitted after all
	s.Admit(w.JobNamed("wants-b"))
	ask("also-b", "TooManyApplications top: it has 2 admitted jobs of 2 (maxapplications)")
	ask("wants-other", "")
	if !verdict.TooLargeForQueue.Precedes(verdict.TooManyApplications) || !verdict.TooManyApplications.Precedes(verdict.OverCapability) {
		t.Error("the reason does not stand after TooLargeForQueue")
	}
}
