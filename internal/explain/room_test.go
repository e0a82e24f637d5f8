package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/journal/history"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// held says in a line who holds what a job waits for.
func (a *asker) held(id cluster.JobID) string {
	a.tb.Helper()
	m := a.model()
	forecaster := forecast.New(history.New(), a.Now, func(*cluster.Job) int64 { return 0 })
	if id.Kind == cluster.WorkloadID("", "").Kind {
		why, err := m.WhyWorkload(types.NamespacedName{Namespace: id.Namespace, Name: id.Name})
		if err != nil {
			a.tb.Fatal(err)
		}
		return inLine(m.Holders(id, &why, forecaster.Ends), a.Now)
	}
	why, err := m.Why(a.Now, id, false)
	if err != nil {
		a.tb.Fatal(err)
	}
	return inLine(m.Holders(id, &why, forecaster.Ends), a.Now)
}

func inLine(h *holders.Holders, now time.Time) string {
	if h == nil {
		return "none"
	}
	kept := func(amount, why string) string {
		if amount == "" {
			return ""
		}
		return " and " + amount + " kept" + why
	}
	said := fmt.Sprintf("%s%s of %s %s of %s", h.Held, kept(h.Kept, ""), h.Total, h.Resource, h.Where)
	for _, j := range h.Jobs {
		said += fmt.Sprintf("; %s %s%s", strings.TrimPrefix(j.Job, fixture.Namespace+"/"), j.Held, kept(j.Kept, " for "+j.KeptFor))
		if j.Ends.Latest != nil {
			said += fmt.Sprintf(" %s until %s", j.Ends.Basis, j.Ends.Latest.Sub(now))
		}
	}
	for _, q := range h.Queues {
		said += fmt.Sprintf("; queue %s %s%s of %d", q.Name, q.Held, kept(q.Kept, ""), q.Jobs)
	}
	return said
}

// A job that waits for nodes is told who holds those that could take its pods, and one that waits for its queue who is
// in that queue. Pods without a job are in the sums.
func TestWhoHoldsWhatAJobWaitsFor(t *testing.T) {
	gpu := func(n *corev1.Node) { n.Labels["kind"] = "gpu" }
	a := newAsker(t, evicting, fixture.Node("large", "cpu=8 pods=20", gpu), fixture.Node("other", "cpu=8 pods=20"), fixture.Queue("small", fixture.Capped("cpu=4")), fixture.Queue("b"))
	onGPU := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kind": "gpu"} }
	runs := func(name, queue string, pods int, node string) {
		group := fixture.Group(name, queue, int32(pods))
		a.Set(group)
		for i := range pods {
			deadline := int64(600)
			a.Set(fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), fixture.On(node), func(p *corev1.Pod) {
				p.Spec.ActiveDeadlineSeconds = &deadline
				p.Status.StartTime = &metav1.Time{Time: a.Now}
			}))
		}
	}
	runs("three", "small", 3, "large")
	runs("two", "b", 2, "large")
	runs("seven", "b", 7, "other")
	a.Set(fixture.Pod("lone", fixture.On("large")))
	wait := func(name, queue string, pods int, options ...func(*corev1.Pod)) cluster.JobID {
		group, all := gang(name, queue, pods, "cpu=1", options...)
		a.Set(group)
		for _, p := range all {
			a.Set(p)
		}
		return cluster.GroupID(fixture.Key(name))
	}
	selects, any, over := wait("selects", "b", 4, onGPU), wait("any", "b", 4), wait("over", "small", 2)
	a.CycleFor(10 * time.Second)
	ends := " Declared until 10m29s"
	for id, want := range map[cluster.JobID]string{
		selects: "6 of 8 cpu of 1 node; three 3" + ends + "; two 2" + ends + "; queue small 3 of 1; queue b 2 of 1",
		any:     "13 of 16 cpu of 2 nodes; seven 7" + ends + "; three 3" + ends + "; two 2" + ends + "; queue b 9 of 2; queue small 3 of 1",
		over:    "3 of 4 cpu of queue small; three 3" + ends + "; queue small 3 of 1",
	} {
		if got := a.held(id); got != want {
			t.Errorf("of job %s it is said\n%s, want\n%s", id, got, want)
		}
	}
}

// A job that waits for admission is told for which admitted jobs room is kept, so that the sum says why there is none.
func TestRoomThatIsKeptForAdmittedJobsIsNamed(t *testing.T) {
	a := newAsker(t, loop.Evicting("predicates", "capacity", "overcommit", "nodeorder"), fixture.Node("n", "cpu=8 pods=20"), fixture.Queue("small", fixture.Capped("cpu=6")))
	a.running("runs", "default", "n", "cpu=1", 2)
	a.Set(fixture.Group("admitted", "small", 3, fixture.Wanting("cpu=5")), fixture.Group("over", "small", 1, fixture.PendingAdmission, fixture.Wanting("cpu=2")),
		fixture.Group("full", "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=5")))
	a.CycleFor(10 * time.Second)
	for name, want := range map[string]string{
		"over": "0 and 5 kept of 6 cpu of queue small; admitted 0 and 5 kept for Admission; queue small 0 and 5 kept of 1",
		"full": "2 and 5 kept of 8 cpu of 1 node; admitted 0 and 5 kept for Admission; runs 2; queue small 0 and 5 kept of 1; queue default 2 of 1",
	} {
		if got := a.held(cluster.GroupID(fixture.Key(name))); got != want {
			t.Errorf("of job %s it is said\n%s, want\n%s", name, got, want)
		}
	}
	want := explain.Bound{Queue: "small", Resource: "cpu", Limit: "capability", May: "6", Holds: "0", Kept: "5", Needed: "2", Exceeds: "1"}
	if j := a.job("over"); !slices.Contains(j.Bounds, want) {
		t.Errorf("the bounds are %+v, want %+v", j.Bounds, want)
	}
}

// What a plan has promised is kept as far as it does not come from pods that leave, which still hold their part. Of the
// three cores that are promised two come from pods that leave, and what is left of the node has got a third job.
func TestRoomThatAPlanHasPromisedIsNamed(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n", "cpu=4 pods=20"), fixture.PriorityClass("high", 10))
	a.running("low", "default", "n", "cpu=1", 2, preemptable)
	group, pods := gang("g", "default", 1, "cpu=3")
	class("high")(group)
	late, others := gang("late", "default", 1, "cpu=1")
	a.Set(group, pods[0], late, others[0])
	a.CycleFor(10 * time.Second)
	const want = "3 and 1 kept of 4 cpu of 1 node; low 2 Room until 35s; g 0 and 1 kept for Plan; late 1; queue default 3 and 1 kept of 3"
	if got := inLine(&a.model().HoldersOfNodes(forecast.New(history.New(), a.Now, func(*cluster.Job) int64 { return 0 }).Ends)[0], a.Now); got != want {
		t.Errorf("it is said\n%s, want\n%s", got, want)
	}
}

// A Workload is told who holds the quota, in its ClusterQueue and in those that share it.
func TestWhoHoldsTheQuotaThatAWorkloadWaitsFor(t *testing.T) {
	a := newAsker(t, "", fixture.Node("n", "cpu=80 pods=100"), &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "f"}})
	a.quotaOf("alone", "f", 4, "")
	a.quotaOf("q", "f", 4, "cohortName: both,")
	a.quotaOf("lender", "f", 4, "cohortName: both,")
	for _, queue := range []string{"alone", "q", "lender"} {
		a.workload("in-"+queue, queue, 3, "1")
		a.Cycle()
	}
	a.workload("own", "alone", 2, "1")
	a.workload("shared", "q", 3, "1")
	a.CycleFor(5 * time.Second)
	for name, want := range map[string]string{
		"own":    "3 of 4 cpu of ClusterQueue alone, flavor f; in-alone 3; queue alone 3 of 1",
		"shared": "6 of 8 cpu of Cohort both, flavor f; in-lender 3; in-q 3; queue lender 3 of 1; queue q 3 of 1",
	} {
		if got := a.held(cluster.WorkloadID(fixture.Namespace, name)); got != want {
			t.Errorf("of Workload %s it is said\n%s, want\n%s", name, got, want)
		}
	}
}

// The summary of a cause has no numbers that the answer gives elsewhere, and says all else that the message does.
func TestTheSummaryOfACauseLeavesOutTheNumbers(t *testing.T) {
	taint := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}
	a := newAsker(t, evicting, fixture.Node("n", "cpu=4"), fixture.Node("tainted", "cpu=9", taint), fixture.Queue("small", fixture.Capped("cpu=1")))
	for name, test := range map[string]struct {
		queue, request, want string
	}{
		"over":  {"small", "cpu=2", "the job is larger than queue small may ever be; evicting other pods would not make room for it"},
		"large": {"default", "cpu=20", "pod work/large-0 requests more than any node has, even if it were empty"},
		"kept":  {"default", "cpu=8", "no node could hold pod work/kept-0 even if it were empty"},
	} {
		group, pods := gang(name, test.queue, 1, test.request)
		a.Set(group)
		a.Set(pods[0])
		a.CycleFor(3 * time.Second)
		why, err := a.model().Why(a.Now, cluster.GroupID(fixture.Key(name)), false)
		if err != nil {
			t.Fatal(err)
		}
		if c := why.Cause; c.Summary != test.want || len(c.Message) <= len(c.Summary) {
			t.Errorf("of %s it is said %q and %q, want %q", name, c.Summary, c.Message, test.want)
		}
		for _, n := range why.Cause.Nodes {
			if n.Example == "tainted" && n.Kind == "Taint" && n.Detail != "team=a:NoSchedule" {
				t.Errorf("of the taint it is said %q", n.Detail)
			}
		}
	}
}
