package guarantees

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// mutants make of a cluster in which a plan is allowed one in which the judge must object to it, by a rule. They get
// the queues of the job and of the first victim.
var mutants = map[string]func(j *judge, toQueue, fromQueue string, victim *corev1.Pod){
	"G2": func(j *judge, _, fromQueue string, _ *corev1.Pod) {
		j.guaranteed[fromQueue] = map[string]int{"cpu": 1000}
	},
	"G3": func(j *judge, toQueue, _ string, victim *corev1.Pod) {
		group := j.groupOf(victim).DeepCopy()
		group.Spec.Queue = toQueue
		j.groups[group.Name] = group
	},
	"G4": func(j *judge, toQueue, _ string, _ *corev1.Pod) {
		for _, q := range j.way(toQueue, "") {
			j.guaranteed[q] = map[string]int{"cpu": 0}
		}
	},
	"G6": func(j *judge, toQueue, fromQueue string, _ *corev1.Pod) {
		way := j.way(fromQueue, j.common(toQueue, fromQueue))
		highest := j.set[way[len(way)-1]]
		highest.PriorityOffset += 1000
		j.set[way[len(way)-1]] = highest
	},
	"G7: it is outside": func(j *judge, toQueue, _ string, _ *corev1.Pod) {
		set := j.set[toQueue]
		set.TakesFence = true
		j.set[toQueue] = set
	},
	"disabled": func(j *judge, _, fromQueue string, _ *corev1.Pod) {
		set := j.set[fromQueue]
		set.GivesNothing = true
		j.set[fromQueue] = set
	},
	"G9": func(j *judge, toQueue, _ string, _ *corev1.Pod) {
		set, long := j.set[toQueue], 1000*time.Hour
		set.PreemptionDelay = &long
		j.set[toQueue] = set
	},
	"Q4": func(j *judge, toQueue, _ string, _ *corev1.Pod) {
		q := j.queues[toQueue].DeepCopy()
		q.Spec.Capability = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0")}
		j.queues[toQueue] = q
	},
	"K2": func(j *judge, _, _ string, victim *corev1.Pod) {
		for _, name := range []string{"cpu", "memory", "pods"} {
			j.free[victim.Spec.NodeName][name] += 100
		}
		for name, q := range j.queues {
			q = q.DeepCopy()
			q.Spec.Capability = nil
			j.queues[name] = q
		}
		group := j.groupOf(victim).DeepCopy()
		group.Spec.MinMember = 1
		j.groups[group.Name] = group
	},
}

// others are mutants of what the judge checks apart from plans by rule G4. They report whether they have made a
// cluster, or decisions, to which the judge must object.
var others = map[string]func(j *judge, d *decision.Decisions) bool{
	"G8": func(j *judge, d *decision.Decisions) bool {
		if len(d.Plans) != 1 || len(d.Binds) > 0 || len(d.Plans[0].Evictions) != 1 || len(d.Plans[0].Nominations) != 1 || d.Plans[0].Evictions[0].Rule != "G4" {
			return false
		}
		victim := j.pods[d.Plans[0].Evictions[0].UID]
		if !j.isSingle(victim) || len(j.places) > 0 || yunikorn.ApplicationID(victim.Labels, victim.Annotations) != "" {
			return false
		}
		// One like it, that started later.
		other, group := victim.DeepCopy(), j.groupOf(victim).DeepCopy()
		other.Name, other.UID, group.Name = "later", "later", "later"
		other.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: "later"}
		late := metav1.NewTime(j.now)
		other.Status.StartTime = &late
		j.pods[other.UID], j.groups[group.Name] = other, group
		j.requests["work/later"], j.queueOf["work/later"] = j.requests[nameOf(victim)], j.queueOf[nameOf(victim)]
		j.book(j.held, "work/later", +1)
		for _, x := range j.way(j.queueOf[nameOf(victim)], "") {
			if most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]; ok && j.held[x]["cpu"] > int(most.Value()) {
				return false // that is against Q4
			}
		}
		return !j.goesOn(d) && j.compareVictims(other, victim, j.groups[d.Plans[0].Job.Name].Spec.Queue) < 0
	},
	"S1": func(j *judge, d *decision.Decisions) bool {
		if len(d.Plans) != 1 || len(d.Binds) > 0 || len(d.Plans[0].Nominations) != 1 || len(d.Plans[0].Evictions) != 1 || d.Plans[0].Evictions[0].Rule != "G4" {
			return false
		}
		node := j.nodes[0].DeepCopy()
		node.Name = "empty"
		j.nodes, j.free["empty"] = append(j.nodes, node), map[string]int{"cpu": 100, "memory": 100, "pods": 100}
		for _, x := range j.way(j.groups[d.Plans[0].Job.Name].Spec.Queue, "") {
			if len(j.queues[x].Spec.Capability) > 0 {
				return false
			}
		}
		return !j.goesOn(d)
	},
	"J2": func(j *judge, d *decision.Decisions) bool {
		if j.goesOn(d) {
			return false
		}
		for _, p := range d.Plans {
			for _, e := range p.Evictions {
				group := j.groupOf(j.pods[e.UID])
				for uid, pod := range j.pods {
					if uid != e.UID && j.groupOf(pod) == group && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && group.Name != "" &&
						!slices.ContainsFunc(p.Evictions, func(e decision.Eviction) bool { return e.UID == uid }) && j.sparkOf(group.Name) == nil {
						group = group.DeepCopy()
						group.Spec.MinMember = 9
						j.groups[group.Name] = group
						return true
					}
				}
			}
		}
		return false
	},
	"G10": func(j *judge, d *decision.Decisions) bool {
		if len(d.Plans) != 1 || len(d.Plans[0].Evictions) == 0 || d.Plans[0].Evictions[0].Rule != "G10" || len(d.Binds) > 0 || j.goesOn(d) {
			return false
		}
		group := j.groupOf(j.pods[d.Plans[0].Evictions[0].UID]).DeepCopy()
		group.Spec.PriorityClassName = "p99"
		j.groups[group.Name] = group
		return true
	},
	"G13: pod": func(j *judge, d *decision.Decisions) bool {
		for _, b := range d.Binds {
			if a := j.sparkOf(b.Job.Name); a != nil && !j.hasRunning(a.group) && decision.StandInsOf(j.groups[a.group]).Since == nil && !decision.StandInsOf(j.groups[a.group]).IsOver {
				wants := *a
				wants.executors = 99
				j.story.all = append([]*spark{&wants}, j.story.all...)
				return true
			}
		}
		return false
	},
	"before": func(j *judge, d *decision.Decisions) bool {
		if len(d.Binds) == 0 || len(d.Ended) > 0 || len(j.places) > 0 {
			return false
		}
		b := j.pods[d.Binds[0].UID]
		if nodeOf(b) != "" || isOfDaemonSet(b) || j.sparkOf(d.Binds[0].Job.Name) != nil {
			return false
		}
		// One like it in another queue, for which the queue below the common one has a high offset.
		from := j.groupOf(b).Spec.Queue
		for _, to := range j.leaves {
			if to == from || j.queues[to] == nil {
				continue
			}
			other, group := b.DeepCopy(), j.groupOf(b).DeepCopy()
			other.Name, other.UID, group.Name, group.Spec.MinMember, group.Spec.Queue = "urgent", "urgent", "urgent", 1, to
			other.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: "urgent"}
			group.Status.Phase = schedulingv1beta1.PodGroupInqueue
			j.pods[other.UID], j.groups["urgent"] = other, group
			j.requests["work/urgent"], j.queueOf["work/urgent"] = map[string]int{"cpu": 1}, to
			for _, x := range j.way(to, "") {
				q := j.queues[x].DeepCopy()
				q.Spec.Capability = nil
				j.queues[x] = q
			}
			c := j.common(from, to)
			for _, x := range j.way(c, "") {
				set := j.set[x]
				set.PriorityOrder = nil
				j.set[x] = set
			}
			set := j.set[j.childOf(c, to)]
			set.PriorityOffset += 1000
			j.set[j.childOf(c, to)] = set
			return true
		}
		return false
	},
}

// goesOn reports whether a plan is one of a scheduler before, which was judged when it was made.
func (j *judge) goesOn(d *decision.Decisions) bool {
	return slices.ContainsFunc(d.Plans, func(p decision.PlanStart) bool {
		return slices.ContainsFunc(p.Nominations, func(n decision.Nomination) bool { return nodeOf(j.pods[n.UID]) != "" })
	})
}

// with returns a judge of its own of what a story decides, so that it may be given another cluster.
func (s *story) with() *judge {
	j := s.look(s.led.Objects(), s.judge.places)
	honest := *s.randomCluster
	honest.guaranteed, honest.requests, honest.queueOf = maps.Clone(honest.guaranteed), maps.Clone(honest.requests), maps.Clone(honest.queueOf)
	told := *s
	told.randomCluster = &honest
	j.story = &told
	return j
}

func TestTheJudgeFindsWhatEachRuleForbids(t *testing.T) {
	plans, tried := 0, map[string]int{}
	for seed := uint64(1); plans < 40 || len(tried) < len(others); seed++ {
		if seed > 400 {
			t.Fatalf("of mutants are tried only: %v", tried)
		}
		s, err := tell(seed)
		if err != nil {
			t.Fatal(err)
		}
		s.tamper = func(d *decision.Decisions) {
			for rule, mutate := range others {
				if j := s.with(); mutate(j, d) {
					tried[rule]++
					if err := j.cycle(d); err == nil || !strings.Contains(err.Error(), rule) {
						t.Errorf("seed %d: of what breaks %s the judge says %v", seed, rule, err)
					}
				}
			}
			// A plan alone in its cycle, so that it is this one which the judge objects to.
			if len(d.Plans) != 1 || len(d.Ended)+len(d.Binds) > 0 || len(d.Plans[0].Evictions) == 0 || d.Plans[0].Evictions[0].Rule != "G4" || len(d.Plans[0].Nominations) == 0 {
				return
			}
			if s.judge.goesOn(d) {
				return
			}
			plans++
			for rule, mutate := range mutants {
				j := s.with()
				victim := j.pods[d.Plans[0].Evictions[0].UID]
				toQueue := j.groups[d.Plans[0].Job.Name].Spec.Queue
				mutate(j, toQueue, j.groupOf(victim).Spec.Queue, victim)
				if err := j.cycle(d); err == nil || !strings.Contains(err.Error(), rule) {
					t.Errorf("seed %d: of what breaks %s the judge says %v", seed, rule, err)
				}
			}
		}
		for range stepsOfAStory / 2 {
			if err := s.happen(); err != nil {
				t.Fatal(err)
			}
			if err := s.step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rules := slices.Sorted(maps.Keys(mutants)); len(rules) < 9 {
		t.Errorf("only %v are tried", rules)
	}
}
