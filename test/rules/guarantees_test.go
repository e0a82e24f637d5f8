package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// What differs between queues where guaranteed shares hold (docs/guaranteed-shares.md). Package guarantees has a survey
// of its own, with annotations of queues, task groups and DaemonSets. Here the oracle tries all plans that these rules
// allow.

// guaranteedShares is the plugin as the sharer of a setting.
const guaranteedShares = "guaranteed-shares"

// askDelay is how long a pod waits in these settings before others are evicted for it.
const askDelay = time.Second

// guarantees reports whether guaranteed shares decide between queues.
func (s setting) guarantees() bool { return s.sharer == guaranteedShares }

// spares is [picture.protects] for a pod of another queue.
func (p *picture) spares(preemptor *job, v *pod) (rule, why string) {
	if value := mark(v); value != "" && value != "true" {
		return "G1", "it is marked " + value
	}
	if p.isCritical(v) {
		return "P5", "it is critical"
	}
	if v.bestEffort() {
		return "G5", "it holds nothing that could be asked for"
	}
	if v.job.priority > preemptor.priority {
		return "G6", "the priority of its job is higher"
	}
	for _, q := range way(v.job.queue, preemptor.queue) {
		if !q.reclaimable() {
			return "Q3", "queue " + q.name + " is not reclaimable"
		}
	}
	return "", ""
}

// way are a queue and those above it, up to but without the lowest that is also above another.
func way(q, other *queue) []*queue {
	all := q.upwards()
	if c := slices.IndexFunc(all, func(above *queue) bool { return slices.Contains(other.upwards(), above) }); c >= 0 {
		return all[:c]
	}
	return all
}

// entitled judges that the preemptor's queue may have what a plan takes from other queues: G4, G5 and G9.
func (h *planCheck) entitled() {
	queue, asked := h.decided.queues[h.preemptor.queue.name], h.asked()
	for _, v := range h.victims {
		if v.job.queue == h.preemptor.queue {
			continue
		}
		if !slices.ContainsFunc(namesIn(v.wants), func(name corev1.ResourceName) bool { return asked[name] > 0 }) {
			h.breach("G5", "plan %s evicts %s, which holds %s, for %s", h.plan.id, v.name, v.wants, asked)
		}
		isNamed := false
		for _, name := range namesIn(asked) {
			for _, q := range way(queue, h.decided.queues[v.job.queue.name]) {
				guarantee, ok := q.guarantee[name]
				if !ok {
					continue
				}
				if isNamed = true; q.allocated()[name] > guarantee {
					h.breach("G4", "plan %s gives queue %s %s, of %s guaranteed", h.plan.id, q.name, q.allocated(), q.guarantee)
				}
				break
			}
		}
		if !isNamed {
			h.breach("G4", "plan %s evicts %s for queue %s, which is guaranteed nothing of %s", h.plan.id, v.name, queue.name, asked)
		}
	}
	for _, t := range h.comers {
		if due := t.object.CreationTimestamp.Add(askDelay); h.plan.action == "reclaim" && !h.isRecovered && len(h.victims) > 0 && h.before.now.Before(due) {
			h.breach("G9", "plan %s evicts pods for %s before %s", h.plan.id, t.name, due)
		}
	}
}

// namesIn are the resources of an amount but the places of pods, in no order.
func namesIn(a amounts) (names []corev1.ResourceName) {
	for name, value := range a {
		if value > 0 && name != corev1.ResourcePods {
			names = append(names, name)
		}
	}
	return names
}

// newGuaranteeTrial is [newTrial] for reclaim where guaranteed shares hold: the queue of t is guaranteed one CPU, and
// nothing has a mark.
func newGuaranteeTrial() *trial {
	t := newTrial("reclaim")
	t.with(func(s *setting) { s.sharer = guaranteedShares })
	t.now = t.now.Add(time.Hour)
	t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List("cpu=1") })
	t.group("a", func(g *schedulingv1beta1.PodGroup) { delete(g.Annotations, schedulingv1beta1.PreemptableKey) })
	return t
}

func TestTheJudgeKnowsWhatGuaranteedSharesForbid(t *testing.T) {
	if breaches := newGuaranteeTrial().verdict(); len(breaches) > 0 {
		t.Errorf("an allowed plan: %s", strings.Join(breaches, "; "))
	}
	no := false
	for rule, mutate := range map[string]func(*trial){
		"G1": func(t *trial) {
			t.pod("a-1", func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "false" })
		},
		"Q2": func(t *trial) {
			t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List("cpu=2") })
		},
		"Q3": func(t *trial) { t.queue("qa", func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = &no }) },
		"Q4": func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Capability = fixture.List("cpu=500m") })
		},
		"G4: plan p gives": func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List("cpu=500m") })
		},
		"G4: plan p evicts": func(t *trial) {
			t.queue("qb", func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = fixture.List("memory=1") })
		},
		"G5": func(t *trial) { t.pod("a-1", fixture.Asks("")) },
		"G6": func(t *trial) {
			t.group("a", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "high" })
			t.group("t", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "low" })
		},
		"G9": func(t *trial) { t.pod("t-0", func(p *corev1.Pod) { p.CreationTimestamp.Time = t.now }) },
		"A3": func(t *trial) {
			yes := true
			t.decisions.Plans[0].Evictions = []decision.Eviction{eviction("a-1", "a", "t", "preempt")}
			t.group("t", func(g *schedulingv1beta1.PodGroup) {
				g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "t-0", Controller: &yes}}
			})
		},
	} {
		world := newGuaranteeTrial()
		mutate(world)
		if breaches := world.verdict(); !slices.ContainsFunc(breaches, func(b string) bool { return strings.HasPrefix(b, rule) }) {
			t.Errorf("%s: the judge says %q", rule, breaches)
		}
	}
}
