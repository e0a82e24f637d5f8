package rules

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Clusters in which pods have terms about each other, gangs have subgroups, and pods take long to end. The judge does
// not know what affinity and spread allow, so it does not say which victims might have stayed. It checks that plans are
// fulfilled and that the cluster comes to rest. It does not rest if plans are made in one order and checked in another.

// subgroupLabel tells the subgroups of a gang apart.
const subgroupLabel = "part"

// bindTerms gives a gang terms about its own pods or those of others, or subgroups.
func (w *testCluster) bindTerms(g *schedulingv1beta1.PodGroup, pods []*corev1.Pod) {
	if !w.hasTerms || len(pods) == 0 {
		return
	}
	choose := w.choose
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"gang": g.Name}}
	selector := own
	if choose.once(3) {
		selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": choose.oneOf("x", "y")}}
	}
	key := choose.oneOf("zone", corev1.LabelHostname)
	kind := choose.oneOf("none", "near", "apart", "spread", "parts", "none", "spread", "near")
	onlyRole := choose.oneOf("", "worker", "master")
	for i, p := range pods {
		p.Labels["gang"] = g.Name
		p.Labels[subgroupLabel] = []string{"a", "b"}[i%2]
		if onlyRole != "" && p.Annotations["volcano.sh/task-spec"] != onlyRole {
			continue
		}
		term := []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: selector}}
		switch kind {
		case "near":
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
		case "apart":
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
		case "spread":
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector}}
		}
	}
	if kind == "parts" {
		size, least := int32(2), int32(choose(2))
		g.Spec.SubGroupPolicy = []schedulingv1beta1.SubGroupPolicySpec{{Name: "part", SubGroupSize: &size, MinSubGroups: &least,
			LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{subgroupLabel}}}
	}
}

// graceOf is how long a pod may take to end.
func (w *testCluster) graceOf() time.Duration {
	if w.hasTerms && w.choose.once(6) {
		return 10 * time.Minute
	}
	return time.Duration(5*(1+w.choose(3))) * time.Second
}

// skip goes on to when the next pod ends or the scheduler wakes, if nothing else is under way.
func (w *testCluster) skip() {
	if !w.hasTerms || len(w.binds)+len(w.letters)+len(w.events) > 0 {
		return
	}
	next := w.wake
	for uid, at := range w.deaths {
		isThere := slices.ContainsFunc(slices.Collect(maps.Values(w.pods)), func(p *corev1.Pod) bool { return p.UID == uid && !w.immortal[uid] })
		if isThere && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next = next.Add(-time.Second); next.After(w.now) {
		w.now = next
	}
}

// parts judges that no part of a subgroup starts (S5).
func (j *judge) parts(binds []decision.Bind, at *picture) {
	if len(binds) == 0 {
		return
	}
	after := j.look(at)
	for _, b := range binds {
		g, t := after.jobs[b.Job.Name], after.pods[b.Pod.Name]
		if g == nil || t == nil || len(g.object.Spec.SubGroupPolicy) == 0 {
			continue
		}
		has := 0
		for _, p := range g.pods {
			if (p.done || p.state == binding || p.state == placed) && p.object.Labels[subgroupLabel] == t.object.Labels[subgroupLabel] {
				has++
			}
		}
		if size := int(*g.object.Spec.SubGroupPolicy[0].SubGroupSize); has < size {
			j.breach("S5", "subgroup %s of %s has %d pods that start, it needs %d", t.object.Labels[subgroupLabel], g.name, has, size)
		}
	}
}

// overruled judges that no gang is left broken whose promise another job takes (J2), and notes who takes which.
func (j *judge) overruled(d *decision.Decisions, at *picture) {
	j.displaced = map[string]displaced{}
	for _, e := range d.Ended {
		g := at.jobs[e.Job.Name]
		if g == nil || !strings.Contains(e.Why, "takes the room that was promised") || j.memory.plans[e.ID] == nil {
			continue
		}
		j.displaced[e.ID] = displaced{plan: j.memory.plans[e.ID], why: e.Why}
		runs := g.count("", func(t *pod) bool { return (t.state == binding || t.state == placed) && !isEvicted(d.Plans, t.uid()) })
		if runs > 0 && !g.enough(g.ready) {
			j.breach("J2", "plan %s of %s ends for another job and leaves it %d pods of at least %d", e.ID, g.name, runs, g.object.Spec.MinMember)
		}
	}
}

// isEvicted reports whether a plan of a cycle evicts a pod.
func isEvicted(plans []decision.PlanStart, uid types.UID) bool {
	return slices.ContainsFunc(plans, func(p decision.PlanStart) bool {
		return slices.ContainsFunc(p.Evictions, func(e decision.Eviction) bool { return e.UID == uid })
	})
}

// Gangs whose pods attract, repel or spread, with subgroups, next to pods that take long to end: every plan comes true
// or is cancelled for a change from outside, and there is rest.
func TestTheRulesHoldAmongPodsWithTerms(t *testing.T) {
	// Guaranteed shares say nothing of where pods may be.
	all := slices.DeleteFunc(settings(), func(s setting) bool { return !s.gang || s.guarantees() })
	holds(t, clustersOf(t, plainTermClusters), all, termCluster)
}

// plainTermClusters is how many of these clusters are led without clustersEnv.
const plainTermClusters = 1_200

func termCluster(s setting, choose chooser) *testCluster {
	w := newTestCluster(s, choose)
	w.hasTerms, w.judge.hasTerms = true, true
	w.populate()
	for i := range w.choose(2) {
		// One more of the same priority, for the same room.
		w.makeJob("e"+string(rune('0'+i)), 1, false)
	}
	return w
}
