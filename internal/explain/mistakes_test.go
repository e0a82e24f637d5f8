package explain_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

func (a *asker) why(name string) explain.Why {
	a.tb.Helper()
	why, err := a.model().Why(a.Now, cluster.JobID{Namespace: fixture.Namespace, Name: name}, false)
	if err != nil {
		a.tb.Fatal(err)
	}
	return why
}

func said(found []mistakes.Mistake) string {
	var all []string
	for _, m := range found {
		all = append(all, m.Message)
	}
	return strings.Join(all, "\n")
}

func TestAJobSaysWhichOfItsNamesNothingHas(t *testing.T) {
	accelerated := func(n *corev1.Node) { n.Labels["accelerator"] = "a100" }
	for name, test := range map[string]struct {
		queue, request string
		options        []func(*corev1.Pod)
		annotations    map[string]string
		want           string
	}{
		"a queue":    {queue: "reserch", request: "cpu=1", want: "there is no queue reserch; did you mean research?"},
		"a resource": {queue: "research", request: "nvidia.com/gpus=1", want: "no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?"},
		"a label": {queue: "research", request: "cpu=1", options: []func(*corev1.Pod){fixture.Selecting("acelerator", "a100")},
			want: "no node has the label acelerator; did you mean accelerator?"},
		"two of them": {queue: "reserch", request: "nvidia.com/gpus=1",
			want: "there is no queue reserch; did you mean research?\nno node offers nvidia.com/gpus; did you mean nvidia.com/gpu?"},
		"a key of the PodGroup": {queue: "reserch", request: "cpu=1", annotations: map[string]string{"volcano.sh/sla-waiting": "1h"},
			want: "there is no queue reserch; did you mean research?\nthe annotation volcano.sh/sla-waiting is not known; did you mean volcano.sh/sla-waiting-time?"},
		"none": {queue: "research", request: "cpu=99"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t, evicting, fixture.Node("n1", "cpu=4 nvidia.com/gpu=8", accelerated), fixture.Queue("research"))
			group, pods := gang("g", test.queue, 2, test.request, test.options...)
			group.Annotations = test.annotations
			submission := a.submit(group.DeepCopy(), pods[0].DeepCopy(), pods[1].DeepCopy())
			if got := said(submission.Mistakes); got != test.want {
				t.Errorf("the mistakes of the submission are\n%s\nwant\n%s", got, test.want)
			}
			a.Set(group, pods[0], pods[1])
			a.Rest()
			a.unchanged(func() {
				if got := said(a.why("g").Mistakes); got != test.want {
					t.Errorf("the mistakes are\n%s\nwant\n%s", got, test.want)
				}
			})
		})
	}
}

func TestWhatIsOfferedIsReadAgainWhenANodeChanges(t *testing.T) {
	a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"))
	group, pods := gang("g", "default", 1, "nvidia.com/gpu=1")
	a.Set(group, pods[0])
	a.Rest()
	if got := said(a.why("g").Mistakes); got != "no node offers nvidia.com/gpu" {
		t.Errorf("the mistakes are %q", got)
	}
	a.Set(fixture.Node("n2", "cpu=4 nvidia.com/gpu=1", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	a.Rest()
	if got := said(a.why("g").Mistakes); got != "" {
		t.Errorf("the mistakes are %q", got)
	}
}

func TestTwoCausesAreBothNamed(t *testing.T) {
	for name, test := range map[string]struct {
		queue, request, minimum string
		code, also              string
	}{
		"no such queue, and no node that is large enough":     {queue: "nowhere", request: "cpu=99", code: "QueueNotFound", also: "TooLargeForAnyNode"},
		"no node that is large enough, and too small a queue": {queue: "small", request: "cpu=99", minimum: "cpu=99", code: "TooLargeForAnyNode", also: "TooLargeForQueue"},
		"one":  {queue: "small", request: "cpu=4", minimum: "cpu=4", code: "TooLargeForQueue"},
		"none": {queue: "default", request: "cpu=3", code: "GangShort"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t, evicting, fixture.Node("n1", "cpu=4"), fixture.Queue("small", capability("cpu=2")))
			group, pods := gang("g", test.queue, 2, test.request)
			if test.minimum != "" {
				fixture.Wanting(test.minimum)(group)
				group.Status.Phase = v1beta1.PodGroupPending
			}
			a.Set(group, pods[0], pods[1])
			a.Rest()
			why := a.why("g")
			var also []string
			for _, c := range why.Also {
				also = append(also, c.Code)
				if c.Message == "" || !c.Never {
					t.Errorf("it says %+v", c)
				}
			}
			if why.Cause.Code != test.code || strings.Join(also, " ") != test.also {
				t.Errorf("it waits for %s (%s) and for %v, want %s and %s", why.Cause.Code, why.Cause.Message, also, test.code, test.also)
			}
		})
	}
}

func TestAWorkloadSaysWhichOfItsNamesNothingHas(t *testing.T) {
	a := newAsker(t, "", fixture.Node("n", "cpu=8 nvidia.com/gpu=8"), &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: "f"}})
	a.quotaOf("research", "f", 4, "")
	a.localQueue("lost", "reserch", "")
	a.workload("typo", "reserch", 1, "1")
	a.workload("lost", "lost", 1, "1")
	a.workload("device", "research", 1, "1 nvidia.com/gpus=1")
	a.workload("fine", "research", 99, "1")
	a.Cycle()
	for name, want := range map[string]string{
		"typo":   "there is no LocalQueue reserch in namespace work; did you mean research?",
		"lost":   "there is no ClusterQueue reserch, which LocalQueue lost names; did you mean research?",
		"device": "no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?",
		"fine":   "",
	} {
		why, err := a.model().WhyWorkload(fixture.Key(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := said(why.Mistakes); got != want {
			t.Errorf("%s: the mistakes are %q, want %q", name, got, want)
		}
	}
}

// A pod of a class that does not exist is refused, so the class is named by the Job, or by the API server.
func TestAJobSaysThatItsPriorityClassDoesNotExist(t *testing.T) {
	const want = "there is no PriorityClass hihg; did you mean high?"
	named, refused, right := fixture.Group("named", "default", 1), fixture.Group("refused", "default", 2), fixture.Group("right", "default", 1)
	named.Spec.PriorityClassName, right.Spec.PriorityClassName = "hihg", "high"
	refused.Annotations = map[string]string{v1beta1.PodsRefusedKey: `pods "refused-0" is forbidden: no PriorityClass with name hihg was found`}
	a := newAsker(t, "", fixture.Node("n1", "cpu=1"), fixture.PriorityClass("high", 10), fixture.PriorityClass("low", 1), named, refused, right,
		fixture.Pod("named-0", fixture.In("named"), fixture.Asks("cpu=2")), fixture.Pod("right-0", fixture.In("right"), fixture.Asks("cpu=2")))
	a.Rest()
	for name, want := range map[string]string{"named": want, "refused": want, "right": ""} {
		if got := said(a.why(name).Mistakes); got != want {
			t.Errorf("of %s it says %q, want %q", name, got, want)
		}
	}
	group, pods := gang("new", "default", 1, "cpu=2", func(p *corev1.Pod) { p.Spec.PriorityClassName = "hihg" })
	if got := said(a.submit(group, pods...).Mistakes); got != want {
		t.Errorf("of what would be submitted it says %q", got)
	}
	refused = fixture.Group("missing", "default", 1)
	refused.Annotations = map[string]string{v1beta1.PodsRefusedKey: `pods "missing-0" is forbidden: no PriorityClass with name hihg was found`}
	if got := a.submit(refused); got.Verdict == nil || got.Verdict.Code != "FailedCreate" || got.Verdict.Message != refused.Annotations[v1beta1.PodsRefusedKey] || said(got.Mistakes) != want {
		t.Errorf("of what would be submitted without its pods it says %+v", got)
	}
}
