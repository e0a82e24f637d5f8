package cache

import (
	"testing"

	"hekla.sh/hekla/pkg/verdict"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pdbOf covers the pods of an app, all if it is "".
func pdbOf(name, app string, allowed int32, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: meta(name)}
	b.Spec.Selector = &metav1.LabelSelector{}
	if app != "" {
		b.Spec.Selector.MatchLabels = map[string]string{"app": app}
	}
	b.Status.DisruptionsAllowed = allowed
	for _, change := range changes {
		change(b)
	}
	return b
}

// disrupted says that the API server has counted the eviction of a pod.
func disrupted(pod string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.DisruptedPods = map[string]metav1.Time{pod: {Time: birth}}
	}
}

func app(name string) podOption { return labelled("app", name) }

// covering lists the budgets of a pod and how much they have left, "" if the pod is not known.
func covering(c *Cache, name string) map[string]int {
	left := map[string]int{}
	if t := c.Task(key(name)); t != nil {
		for _, b := range c.Budgets(t) {
			left[b.Name] = b.Left()
		}
	}
	return left
}

func TestABudgetCoversWhatItSelects(t *testing.T) {
	elsewhere := pdbOf("elsewhere", "", 1)
	elsewhere.Namespace = "other"
	unreadable := pdbOf("unreadable", "", 1)
	unreadable.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sounds"}}
	none := pdbOf("none", "", 1)
	none.Spec.Selector = nil
	c := newCluster(Set{pdbOf("b", "x", 2)}, Set{pdbOf("a", "", 1)}, Set{elsewhere}, Set{unreadable}, Set{none}, Set{node("n", "cpu=9")},
		Set{pod("p", on("n"), app("x"))}, Set{pod("q", on("n"), app("y"))}, Set{pod("r", on("n"))})
	for name, want := range map[string]map[string]int{"p": {"a": 1, "b": 2}, "q": {"a": 1}, "r": {"a": 1}} {
		if diff := cmp.Diff(want, covering(c, name)); diff != "" {
			t.Errorf("the budgets of %s (-want +have):\n%s", name, diff)
		}
	}
	if list := c.Budgets(c.Task(key("p"))); list[0].Name != "a" || list[1].Name != "b" {
		t.Error("the budgets are not listed by name")
	}
}

func TestABudgetIsSpentByEvictionsUntilTheAPIShowsThem(t *testing.T) {
	p := func(options ...podOption) *corev1.Pod {
		return pod("p", append([]podOption{on("n"), app("x")}, options...)...)
	}
	for name, test := range map[string]struct {
		events []Event
		// What is left of budgets x and y, of which x covers p and r, y nothing at first. Each allows one.
		x, y int
	}{
		"nothing happens":                    {nil, 0, 1},
		"the pod changes in another respect": {[]Event{Set{p(annotated("a", "b"))}}, 0, 1},
		"the pod is labelled again":          {[]Event{Set{p(app("y"))}}, 1, 0},
		"the pod loses its label":            {[]Event{Set{pod("p", on("n"))}}, 1, 1},
		"the pod is labelled again and back": {[]Event{Set{p(app("y"))}, Set{p()}}, 0, 1},
		"the API shows it being deleted":     {[]Event{Set{p(deleting)}}, 1, 1},
		"the pod is gone":                    {[]Event{Delete{p()}}, 1, 1},
		"the pod finishes":                   {[]Event{Set{p(phase(corev1.PodFailed))}}, 1, 1},
		"the pod was made again":             {[]Event{Set{p(uid("later"))}}, 1, 1},
		"the API server has counted it":      {[]Event{Set{pdbOf("x", "x", 0, disrupted("p"))}}, 0, 1},
		"the API server has counted another": {[]Event{Set{pdbOf("x", "x", 0, disrupted("r"))}}, -1, 1},
		"counted, then shown":                {[]Event{Set{pdbOf("x", "x", 0, disrupted("p"))}, Set{p(deleting)}}, 0, 1},
		"the budget allows more":             {[]Event{Set{pdbOf("x", "x", 3)}}, 2, 1},
		"the budget allows none":             {[]Event{Set{pdbOf("x", "x", 0)}}, -1, 1},
		"the budget selects something else":  {[]Event{Set{pdbOf("x", "z", 1)}}, 1, 1},
		"the other budget selects it too":    {[]Event{Set{pdbOf("y", "", 1)}}, 0, 0},
		"the budget was made again":          {[]Event{Delete{pdbOf("x", "x", 1)}, Set{pdbOf("x", "x", 1)}}, 0, 1},
		"an earlier budget of its name is gone": {[]Event{Delete{pdbOf("x", "x", 1, func(b *policyv1.PodDisruptionBudget) { b.UID = "earlier" })}},
			0, 1},
		"the plan fails": {[]Event{PlanFailed{Plan: "plan", At: birth}}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Set{node("n", "cpu=9")}, Set{p()}, Set{pod("r", on("n"), app("x"))}, Set{pdbOf("x", "x", 1)}, Set{pdbOf("y", "y", 1)})
			c.plan("plan", nil, "p")
			for _, event := range test.events {
				c.Apply(event)
				sound(t, c)
			}
			for _, b := range c.BudgetsIn(namespace) {
				if want := map[string]int{"x": test.x, "y": test.y}[b.Name]; b.Left() != want {
					t.Errorf("budget %s has %d left, want %d", b.Name, b.Left(), want)
				}
			}
		})
	}
}

func TestABudgetIsNotSpentByWhatIsUndoneOrSpared(t *testing.T) {
	c := newCluster(Set{node("n", "cpu=9")}, Set{pod("p", on("n"), app("x"))}, Set{pod("q", on("n"), app("x"))}, Set{pdbOf("x", "x", 1)})
	mark := c.Mark()
	c.Evict(c.Task(key("p")))
	c.Evict(c.Task(key("q")))
	if diff := cmp.Diff(map[string]int{"x": -1}, covering(c, "p")); diff != "" {
		t.Errorf("after two evictions (-want +have):\n%s", diff)
	}
	c.Spare(c.Task(key("p")))
	if diff := cmp.Diff(map[string]int{"x": 0}, covering(c, "p")); diff != "" {
		t.Errorf("after one is spared (-want +have):\n%s", diff)
	}
	c.Undo(mark)
	if diff := cmp.Diff(map[string]int{"x": 1}, covering(c, "p")); diff != "" {
		t.Errorf("after all is undone (-want +have):\n%s", diff)
	}
	c.Apply(Delete{pdbOf("x", "x", 1)})
	if len(covering(c, "p")) != 0 {
		t.Error("a budget that is gone still covers a pod")
	}
	sound(t, c)
}

func TestQuotasAreListedByNameAndNamespace(t *testing.T) {
	quota := func(name, hard string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: meta(name)}
		q.Spec.Hard = list(hard)
		return q
	}
	another := quota("a", "cpu=1")
	another.UID = "another"
	c := newCluster(Set{quota("b", "cpu=1")}, Set{quota("a", "cpu=1")})
	for _, step := range []struct {
		what  string
		event Event
		wakes bool
		want  map[string]string // how much CPU each quota allows
	}{
		{"it is shown again", Set{quota("a", "cpu=1")}, false, map[string]string{"a": "1", "b": "1"}},
		{"it changes", Set{quota("a", "cpu=2")}, true, map[string]string{"a": "2", "b": "1"}},
		{"another of its name is gone", Delete{another}, false, map[string]string{"a": "2", "b": "1"}},
		{"it is gone", Delete{quota("a", "")}, true, map[string]string{"b": "1"}},
		{"all are gone", Delete{quota("b", "")}, true, map[string]string{}},
	} {
		before := countOf(counts(c), verdict.HelpQueue)
		c.Apply(step.event)
		have, last := map[string]string{}, ""
		for _, q := range c.Quotas(namespace) {
			have[q.Name] = q.Spec.Hard.Cpu().String()
			if q.Name < last {
				t.Errorf("%s: not listed by name", step.what)
			}
			last = q.Name
		}
		if diff := cmp.Diff(step.want, have); diff != "" {
			t.Errorf("%s (-want +have):\n%s", step.what, diff)
		}
		if wakes := countOf(counts(c), verdict.HelpQueue) != before; wakes != step.wakes {
			t.Errorf("%s: those who wait for a quota hear of it: %t", step.what, wakes)
		}
	}
	if len(c.Quotas("other")) != 0 {
		t.Error("a namespace without quotas has some")
	}
}
