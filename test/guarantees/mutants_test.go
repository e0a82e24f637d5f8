package guarantees

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/cluster/decision"
)

// mutants make of a cluster in which a plan is allowed one in which the judge must object to it, by a rule. They get the queues of
// the job and of the first victim.
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

func TestTheJudgeFindsWhatEachRuleForbids(t *testing.T) {
	plans := 0
	for seed := uint64(1); plans < 40; seed++ {
		s, err := tell(seed)
		if err != nil {
			t.Fatal(err)
		}
		s.tamper = func(d *decision.Decisions) {
			// A plan alone in its cycle, so that it is this one which the judge objects to.
			if len(d.Plans) != 1 || len(d.Ended) > 0 || len(d.Plans[0].Evictions) == 0 || d.Plans[0].Evictions[0].Rule != "G4" || len(d.Plans[0].Nominations) == 0 {
				return
			}
			if promised := promisedOf(s.led.Objects()); promised[d.Plans[0].Nominations[0].Pod.String()] {
				return // the plan of a scheduler before goes on, which was judged when it was made
			}
			plans++
			for rule, mutate := range mutants {
				j := s.look(s.led.Objects())
				honest := *s.randomCluster
				honest.guaranteed = maps.Clone(honest.guaranteed)
				told := *s
				told.randomCluster = &honest
				j.story = &told
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
