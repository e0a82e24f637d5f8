package rules

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// trial is a cluster with one decision for the judge. The decision that newTrial makes is allowed.
type trial struct {
	*testCluster
	decisions decision.Decisions
}

// newTrial is a node of two CPUs, full of the two pods of job a, one of which may go, and the pod of job t that waits.
//
// With reclaim, a's queue holds one CPU more than it deserves, and t's queue deserves one. With preempt, both are of
// one queue and t has the higher priority. For a lone pod they are of two queues, and neither has anything to spare.
func newTrial(kind string) *trial {
	s := plain
	w := newTestCluster(s, func(int) int { return 0 })
	w.makeClasses()
	from, class := "qa", "low"
	if kind == "preempt" || kind == "within" {
		from, class = "qb", "high"
	}
	w.set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=1 pods=1"), fixture.Queue("qa"), fixture.Queue("qb"))
	w.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=1") })
	w.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=1") })
	w.set(fixture.Group("a", from, 1), fixture.Group("t", "qb", 1))
	w.set(fixture.Pod("a-0", fixture.In("a"), fixture.On("n1")), fixture.Pod("a-1", fixture.In("a"), fixture.On("n1")))
	w.set(fixture.Pod("o", fixture.On("n2"), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
	w.group("a", func(g *schedulingv1beta1.PodGroup) {
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		g.Spec.PriorityClassName = "low"
	})
	owner := "t"
	if kind == "within" {
		owner = "a"
		w.pod("a-1", func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey] = "-1" })
	}
	w.set(fixture.Pod("t-0", fixture.In(owner)))
	yes := true
	w.group("t", func(g *schedulingv1beta1.PodGroup) {
		g.Spec.PriorityClassName = class
		if kind == "lone" {
			g.Spec.PriorityClassName = "high"
			g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "t-0", Controller: &yes}}
		}
	})
	if kind == "lone" {
		w.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=2") })
	}
	t := &trial{testCluster: w}
	action := "preempt"
	if kind == "reclaim" {
		action = kind
	}
	t.decisions.Plans = []decision.PlanStart{{ID: "p", Job: decision.JobID{Namespace: fixture.Namespace, Name: owner}, Nominations: []decision.Nomination{nomination("t-0", "n1")},
		Evictions: []decision.Eviction{eviction("a-1", "a", owner, action)}}}
	return t
}

func nomination(pod, node string) decision.Nomination {
	return decision.Nomination{Pod: fixture.Key(pod), UID: fixture.Pod(pod).UID, Node: node}
}

func eviction(pod, victim, preemptor, action string) decision.Eviction {
	return decision.Eviction{Pod: fixture.Key(pod), UID: fixture.Pod(pod).UID, Node: "n1", VictimJob: decision.JobID{Namespace: fixture.Namespace, Name: victim}, For: decision.JobID{Namespace: fixture.Namespace, Name: preemptor},
		Action: action, Rule: "some", Message: "for a reason"}
}

func bind(pod, node, job string) decision.Bind {
	return decision.Bind{Pod: fixture.Key(pod), UID: fixture.Pod(pod).UID, Node: node, Job: decision.JobID{Namespace: fixture.Namespace, Name: job}}
}

func (w *testCluster) queue(name string, how func(*schedulingv1beta1.Queue)) { how(w.queues[name]) }

func (w *testCluster) group(name string, how func(*schedulingv1beta1.PodGroup)) { how(w.groups[name]) }

func (w *testCluster) pod(name string, how func(*corev1.Pod)) { how(w.pods[name]) }

func (w *testCluster) with(how func(*setting)) {
	how(&w.setting)
	w.judge.setting = w.setting
}

// verdict is what the judge says of the decisions.
func (t *trial) verdict() []string {
	at := take(t.setting, &t.objects, t.judge.memory, t.now)
	t.judge.cycle(&t.decisions, at)
	return t.judge.breaches
}

func TestTheJudgeAcceptsAllowedPlans(t *testing.T) {
	for _, kind := range []string{"reclaim", "preempt", "within", "lone"} {
		if breaches := newTrial(kind).verdict(); len(breaches) > 0 {
			t.Errorf("%s: %s", kind, strings.Join(breaches, "; "))
		}
	}
}

// Each mutant violates one rule, and the judge names it.
func TestTheJudgeRejectsWhatEachRuleForbids(t *testing.T) {
	no := false
	for _, test := range []struct {
		name, kind, rule string
		mutate           func(*trial)
	}{
		{"preempt takes from another queue", "reclaim", "A1", func(t *trial) { t.decisions.Plans[0].Evictions[0].Action = "preempt" }},
		{"reclaim takes inside a queue", "preempt", "A1", func(t *trial) { t.decisions.Plans[0].Evictions[0].Action = "reclaim" }},
		{"an action that is not configured", "preempt", "A1", func(t *trial) { t.with(func(s *setting) { s.actions = words("allocate reclaim") }) }},
		{"the victim's queue has the higher priority", "reclaim", "A2", func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 1 })
		}},
		{"the same against a lone pod", "lone", "A2", func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 1 })
		}},
		{"the victim's queue is within its share", "reclaim", "Q1", func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=2") })
		}},
		{"a guarantee is broken", "reclaim", "Q2", func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) {
				q.Spec.Priority, q.Spec.Guarantee.Resource = -1, fixture.List("cpu=2")
			})
		}},
		{"the victim's queue is not reclaimable", "reclaim", "Q3", func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = &no })
		}},
		{"the preemptor's queue goes beyond its capability", "preempt", "Q4", func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=1") })
		}},
		{"the preemptor's queue goes beyond its share", "reclaim", "Q4", func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = fixture.List("cpu=500m") })
		}},
		{"the preemptor's queue is closed", "reclaim", "Q5", func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Status.State = "Closed" })
		}},
		{"the priorities of the jobs are equal", "preempt", "J1", func(t *trial) {
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "low" })
		}},
		{"the same for a lone pod", "lone", "J1", func(t *trial) {
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "low" })
		}},
		{"a gang is broken", "reclaim", "J2", func(t *trial) {
			t.group("a", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 2 })
		}},
		{"a role is broken", "reclaim", "J2", func(t *trial) {
			t.pod("a-1", fixture.As("master", 0))
			t.group("a", fixture.NeedingOf("master", 1))
		}},
		{"a whole gang leaves where it may not", "reclaim", "J2", func(t *trial) {
			t.with(func(s *setting) { s.whole = false })
			t.drop(t.pods["a-0"])
		}},
		{"half of the preemptor is placed", "reclaim", "J3", func(t *trial) {
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 2 })
		}},
		{"the preemptor's pod ranks no higher", "within", "P1", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.TaskPriorityAnnotationKey) })
		}},
		{"the victim is not marked", "reclaim", "P2", func(t *trial) {
			t.group("a", func(g *schedulingv1beta1.PodGroup) { delete(g.Annotations, schedulingv1beta1.PreemptableKey) })
		}},
		{"the victim says no, its group yes", "reclaim", "P2", func(t *trial) {
			t.pod("a-1", fixture.Annotated(schedulingv1beta1.PreemptableKey, "yes"))
		}},
		{"the victim is somebody else's", "reclaim", "P2", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })
		}},
		{"the preemptor requests nothing", "preempt", "P3", func(t *trial) {
			t.pod("t-0", fixture.Asks(""))
			t.nodes["n1"].Status.Allocatable = fixture.List("cpu=2 pods=2")
		}},
		{"the victim is leaving already", "reclaim", "P4", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t.now} })
		}},
		{"the victim is another pod of the name", "reclaim", "P4", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.UID = "another" })
		}},
		{"the victim is critical", "reclaim", "P5", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" })
		}},
		{"the preemptor never preempts", "reclaim", "P6", func(t *trial) {
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "polite" })
		}},
		{"the node is cordoned", "reclaim", "K1", func(t *trial) { t.nodes["n1"].Spec.Unschedulable = true }},
		{"one victim too many", "preempt", "K2", func(t *trial) {
			p := &t.decisions.Plans[0]
			p.Evictions = append(p.Evictions, eviction("a-0", "a", "t", "preempt"))
		}},
		{"the node has room without any victim", "reclaim", "K2", func(t *trial) {
			t.nodes["n1"].Status.Allocatable = fixture.List("cpu=3 pods=9")
		}},
		{"more is asked of a budget than it allows", "reclaim", "K3", func(t *trial) { t.budget() }},
		{"a budget is broken where pdb votes", "reclaim", "T1", func(t *trial) {
			t.budget()
			t.decisions.Plans[0].Evictions[0].PastBudget = true
			t.with(func(s *setting) { s.pdb = true })
		}},
		{"the preemptor has a plan already", "reclaim", "K6", func(t *trial) {
			t.judge.memory.plans["before"] = &plan{id: "before", preemptor: "t", action: "reclaim"}
		}},
		{"there is no room although the victim leaves", "reclaim", "S1", func(t *trial) { t.pod("t-0", fixture.Asks("cpu=2")) }},
		{"the room is promised to another", "reclaim", "S1", func(t *trial) {
			t.set(fixture.Pod("x", fixture.In("a")))
			t.judge.memory.plans["before"] = planOf(decision.PlanStart{ID: "before", Job: decision.JobID{Namespace: fixture.Namespace, Name: "a"}, Nominations: []decision.Nomination{nomination("x", "n1")}})
		}},
		{"the victim is never going to leave", "reclaim", "S1", func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t.now.Add(-lingersAfter)} })
			t.decisions.Plans[0].Evictions = nil
		}},
		{"no rule is named", "reclaim", "S4", func(t *trial) { t.decisions.Plans[0].Evictions[0].Rule = "" }},
		{"a pod is bound where there is no room", "reclaim", "S5", func(t *trial) {
			t.decisions = decision.Decisions{Binds: []decision.Bind{bind("t-0", "n1", "t")}}
		}},
		{"a pod is bound that has a node", "reclaim", "S5", func(t *trial) {
			t.decisions = decision.Decisions{Binds: []decision.Bind{bind("a-0", "n2", "a")}}
		}},
		{"a part of a gang is bound", "reclaim", "S5", func(t *trial) {
			t.nodes["n1"].Status.Allocatable = fixture.List("cpu=9 pods=9")
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 2 })
			t.decisions = decision.Decisions{Binds: []decision.Bind{bind("t-0", "n1", "t")}}
		}},
		{"a pod is bound into promised room", "reclaim", "K5", func(t *trial) {
			t.nodes["n1"].Status.Allocatable = fixture.List("cpu=3 pods=9")
			t.set(fixture.Pod("x", fixture.In("a")))
			t.judge.memory.plans["before"] = planOf(decision.PlanStart{ID: "before", Job: decision.JobID{Namespace: fixture.Namespace, Name: "a"}, Nominations: []decision.Nomination{nomination("x", "n1")}})
			t.decisions = decision.Decisions{Binds: []decision.Bind{bind("t-0", "n1", "t")}}
		}},
		{"a part of a gang stays that lost a promise", "preempt", "J2", func(t *trial) {
			t.set(fixture.Pod("x", fixture.In("a")))
			t.group("a", func(g *schedulingv1beta1.PodGroup) { g.Spec.MinMember = 3 })
			id := decision.JobID{Namespace: fixture.Namespace, Name: "a"}
			t.judge.memory.plans["before"] = planOf(decision.PlanStart{ID: "before", Job: id, Nominations: []decision.Nomination{nomination("x", "n1")}})
			t.decisions.Plans = nil
			t.decisions.Ended = []decision.PlanEnd{{ID: "before", Job: id, Why: "job work/t of higher priority takes the room that was promised"}}
		}},
		{"a plan is fulfilled while a victim waits for its end", "reclaim", "S1", func(t *trial) {
			t.nodes["n1"].Status.Allocatable = fixture.List("cpu=3 pods=9")
			t.judge.memory.plans["p"] = planOf(t.decisions.Plans[0])
			t.decisions = decision.Decisions{Binds: []decision.Bind{bind("t-0", "n1", "t")}}
		}},
		{"what a scheduler before has promised is forgotten", "reclaim", "K5", func(t *trial) {
			t.pod("t-0", func(p *corev1.Pod) { p.Status.NominatedNodeName = "n1" })
			t.judge.memory, t.decisions = t.written(), decision.Decisions{}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			trial := newTrial(test.kind)
			test.mutate(trial)
			breaches := trial.verdict()
			found := false
			for _, b := range breaches {
				found = found || strings.HasPrefix(b, test.rule+": ")
			}
			if !found {
				t.Errorf("the judge does not object by %s but says %q", test.rule, breaches)
			}
		})
	}
}

// budget covers the victim and allows nothing.
func (t *trial) budget() {
	least := intstr.FromInt32(2)
	t.pod("a-1", fixture.Labelled("app", "a"))
	t.budgets["b"] = &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
}
