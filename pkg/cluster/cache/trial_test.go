package cache

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/verdict"
)

// unchanged is the model bit for bit, with all that a trial restores and undoing does not.
func unchanged(c *Cache) any {
	grows := []string{"base.writer", "Plans.model", "attention.generation", "attention.changes", "Cluster.log", "Terms.generation", "Class.matched",
		"Class.matchedWhen", "Time.loc", "term.selector", "TaskInternals.InNode", "TaskInternals.Budgets", "Budget.selector",
		"Store.changes", "Subgroup.parent", "Subgroup.of", "policy.selector", "nodes.topology", "base.pods", "Table.amounts", "Tracker.last", "Cluster.talliedAt", "NodeInternals.Tallied", "NodeInternals.TalliedUsed"}
	generations := map[string]uint64{}
	for _, n := range c.Nodes() {
		generations[n.Name] = n.Generation
	}
	classes := map[string]string{}
	for _, t := range tasksOf(c) {
		classes[t.Key().String()] = fmt.Sprintf("%p", t.Class)
	}
	return map[string]any{"model": newDumper(c, true, grows).home(reflect.ValueOf(c)), "generations": generations,
		"classes": classes, "world": fmt.Sprint(counts(c))}
}

func closed(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "closed", Effect: corev1.TaintEffectNoSchedule}}
}

func TestATrialLeavesTheModelAsItWas(t *testing.T) {
	c := newCluster(Set{node("n1", "cpu=4 pods=110")}, Set{node("n2", "cpu=4 pods=110", closed)}, Set{queue("q", "")}, Set{group("a", "q")},
		Set{group("b", "q")}, Set{pod("a0", in("a"), on("n1"), phase(corev1.PodRunning))}, Set{pod("b0", in("b"), labelled("app", "b"))})
	c.SetVerdict(c.Job(jobID("b")), &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpQueue})
	c.TakeTouchedJobs()
	c.TakeTouchedQueues()
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	claiming := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
	}
	rapid.Check(t, func(t *rapid.T) {
		g := group("new", "q", needs("cpu=2"), func(g *schedulingv1beta1.PodGroup) { g.Status.Phase = schedulingv1beta1.PodGroupInqueue })
		var pods []*corev1.Pod
		options := map[string]podOption{"apart": keepsAwayFrom("app", "b"), "labelled": labelled("app", "b"), "tolerant": tolerant,
			"claiming": claiming, "gated": gated, "large": asks("cpu=3 example.com/gpu=1")}
		names := []string{"apart", "claiming", "gated", "labelled", "large", "tolerant"}
		for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
			p := pod(fmt.Sprintf("new-%d", i))
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "like") {
				options[name](p)
			}
			pods = append(pods, p)
		}
		c.Resources.Vector(list("example.com/gpu=1"))
		before := unchanged(c)
		panics := rapid.Bool().Draw(t, "panics")
		func() {
			defer func() { _ = recover() }()
			if err := c.Suppose(g, pods, func() {}, func(j *cluster.Job) {
				if len(j.Tasks()) != len(pods) || j.Queue != c.Queue("q") || c.Job(j.ID) != j || j.IsForeign {
					t.Fatalf("the job is not what was supposed: %d tasks in %s", len(j.Tasks()), j.QueueName)
				}
				for _, task := range j.Pending(cluster.CompareTasks) {
					if rapid.Bool().Draw(t, "placed") {
						c.Place(task, c.Node("n1"))
					}
				}
				if rapid.Bool().Draw(t, "evicts") {
					c.Evict(c.Task(key("a0")))
				}
				c.Touch(c.Node("n2"))
				c.SetVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources})
				for _, problem := range c.Audit() {
					t.Errorf("inside: %s", problem)
				}
				if panics {
					panic("the function fails")
				}
			}); err != nil {
				t.Fatal(err)
			}
		}()
		if diff := cmp.Diff(before, unchanged(c)); diff != "" {
			t.Fatalf("the model is another (-before +after):\n%s", diff)
		}
		for _, problem := range c.Audit() {
			t.Error(problem)
		}
		if c.IsHelped(c.Job(jobID("b"))) {
			t.Fatal("a job that waits is woken by what was only supposed")
		}
	})
}

// Who has followed the changes up to a trial has nothing to look at after it; who has followed them into it has.
func TestWhoDidNotLookIntoATrialSeesNoChange(t *testing.T) {
	c := newCluster(Set{node("n1", "cpu=4 pods=110")}, Set{group("a", "q")}, Set{pod("a0", in("a"))})
	_, before, _ := c.Changes(0)
	var within uint64
	for range 3 {
		c.Try(func() {
			c.Place(c.Task(key("a0")), c.Node("n1"))
			_, within, _ = c.Changes(0)
		})
	}
	if slots, _, ok := c.Changes(before); len(slots) > 0 || !ok {
		t.Errorf("who did not look sees the changes %v", slots)
	}
	if slots, _, _ := c.Changes(within); len(slots) == 0 {
		t.Error("who looked while a pod was placed does not see that it is not")
	}
	c.Apply(Set{node("n2", "cpu=4 pods=110")})
	if slots, _, _ := c.Changes(before); len(slots) != 1 || c.BySlot()[slots[0]].Name != "n2" {
		t.Errorf("after a node has come the changes are %v", slots)
	}
	_, before, _ = c.Changes(0)
	c.Try(func() { c.Outdate(c.Node("n1")) })
	if slots, _, _ := c.Changes(before); len(slots) == 0 {
		t.Error("what plugins say of a node has changed, and nobody sees it")
	}
}

func TestOnlyWhatCouldBeSubmittedIsSupposed(t *testing.T) {
	c := newCluster(Set{group("there", "q")}, Set{pod("there", in("there"))}, Set{pod("early", in("late"))}, Set{pod("other", in("x"), scheduler("other"))})
	for name, test := range map[string]struct {
		group string
		pods  []*corev1.Pod
		want  string
	}{
		"a PodGroup that is there":     {"there", nil, "PodGroup ns/there exists already"},
		"one that pods wait for":       {"late", nil, "pods name PodGroup ns/late already"},
		"one that has no name":         {"", nil, "no name"},
		"a pod that is there":          {"new", []*corev1.Pod{pod("there")}, "pod ns/there exists already"},
		"a pod of another scheduler":   {"new", []*corev1.Pod{pod("p", scheduler("other"))}, `pod ns/p is not for this scheduler: spec.schedulerName is "other"`},
		"a pod that another has":       {"new", []*corev1.Pod{pod("other")}, "pod ns/other exists already"},
		"a pod twice":                  {"new", []*corev1.Pod{pod("p"), pod("p")}, "pod ns/p is there twice"},
		"a pod without a name":         {"new", []*corev1.Pod{pod("")}, "a pod has no name"},
		"a pod that has a node":        {"new", []*corev1.Pod{pod("p", on("n"))}, `pod ns/p has a node already: spec.nodeName is "n"`},
		"a pod from another namespace": {"new", []*corev1.Pod{func() *corev1.Pod { p := pod("p"); p.Namespace = "far"; return p }()}, "pod far/p is not in the namespace of PodGroup ns/new"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Suppose(group(test.group, "q"), test.pods, func() {}, func(*cluster.Job) { t.Error("it is supposed") })
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}
