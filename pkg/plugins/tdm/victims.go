package tdm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// ChooseVictims names pods on nodes of closed zones, once in a period.
func (p *plugin) ChooseVictims() []framework.Chosen {
	s := p.session
	if !p.named.IsZero() && s.Now.Before(p.named.Add(p.period)) {
		return nil
	}
	strays := map[*cluster.Job][]*cluster.Task{}
	var jobs []*cluster.Job
	for _, n := range s.Cluster.Nodes() {
		if isOpen, isKnown := p.isOpen[zoneOf(n)]; isOpen || !isKnown {
			continue
		}
		for _, t := range n.Tasks() {
			if j := t.Job; j != nil && j.Group != nil && t.Status.Evictable() && p.mayLeave(t) {
				if strays[j] == nil {
					jobs = append(jobs, j)
				}
				strays[j] = append(strays[j], t)
			}
		}
	}
	slices.SortFunc(jobs, cluster.CompareJobs)
	var chosen []framework.Chosen
	for _, j := range jobs {
		chosen = append(chosen, p.chooseOf(j, strays[j])...)
	}
	if len(chosen) > 0 {
		p.named = s.Now
	}
	return chosen
}

// mayLeave reports whether a pod is marked as one that may be evicted (rule P2).
func (p *plugin) mayLeave(t *cluster.Task) bool { return t.IsMarked(p.byDefault) }

// chooseOf names the pods of a job to evict in this period, from those on nodes of closed zones.
func (p *plugin) chooseOf(j *cluster.Job, strays []*cluster.Task) []framework.Chosen {
	slices.SortFunc(strays, func(a, b *cluster.Task) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Started().Compare(a.Started()), cluster.CompareTasks(b, a))
	})
	left, isBounded := slack(j)
	if !isBounded {
		left = 1
	}
	var chosen []framework.Chosen
	var leaving cluster.Leaving
	for _, t := range strays {
		if len(chosen) < left && j.KeepsMinimum(t, leaving) {
			leaving.Add(t.Role, t.Subgroup)
			z := p.byName[zoneOf(t.Node)]
			chosen = append(chosen, framework.Chosen{Task: t, Why: fmt.Sprintf("revocable zone %s is closed, its hours are %s", z.name, z.hours)})
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	if !isBounded {
		left = math.MaxInt
	}
	return p.wholeGang(j, strays[0], left)
}

// wholeGang names all pods of a job, if all may be evicted and their number is within the budget.
func (p *plugin) wholeGang(j *cluster.Job, stray *cluster.Task, left int) []framework.Chosen {
	if j.Count(cluster.Binding) > 0 || j.Count(cluster.Running) > left {
		return nil
	}
	var all []*cluster.Task
	evictions := map[*cluster.Budget]int{}
	for _, t := range j.Tasks() {
		if !t.Status.Evictable() {
			continue
		}
		if !p.mayLeave(t) {
			return nil
		}
		for _, b := range p.session.Cluster.Budgets(t) {
			if evictions[b]++; evictions[b] > b.Left() {
				return nil
			}
		}
		all = append(all, t)
	}
	slices.SortFunc(all, cluster.CompareTasks)
	z := p.byName[zoneOf(stray.Node)]
	chosen := make([]framework.Chosen, len(all))
	for i, t := range all {
		chosen[i] = framework.Chosen{Task: t, Why: fmt.Sprintf("its gang leaves as a whole: revocable zone %s is closed, its hours are %s", z.name, z.hours)}
	}
	return chosen
}

// slack is how many more pods of a job may be missing; isBounded is false if the job has no budget.
func slack(j *cluster.Job) (left int, isBounded bool) {
	text, isMinimum, isBounded := budgetOf(j)
	if !isBounded {
		return 0, false
	}
	total, running := len(j.Tasks()), j.Count(cluster.Running)
	bound, ok := readBound(text, total)
	switch {
	case !ok:
		return 0, true
	case isMinimum:
		return max(running-bound, 0), true
	}
	missing := total - j.Count(cluster.Succeeded) - j.Count(cluster.Failed) - running
	return max(bound-missing, 0), true
}

// budgetOf finds the budget of a job, or of its first pod with one.
func budgetOf(j *cluster.Job) (text string, isMinimum, ok bool) {
	if j.Group != nil {
		if text, isMinimum, ok = boundIn(j.Group.Annotations); ok {
			return text, isMinimum, ok
		}
	}
	var first *cluster.Task
	for _, t := range j.Tasks() {
		if _, _, says := boundIn(t.Pod.Annotations); says && (first == nil || cluster.CompareTasks(t, first) < 0) {
			first = t
		}
	}
	if first == nil {
		return "", false, false
	}
	return boundIn(first.Pod.Annotations)
}

func boundIn(annotations map[string]string) (text string, isMinimum, ok bool) {
	if text, ok = annotations[schedulingv1beta1.JDBMinAvailableKey]; ok {
		return text, true, true
	}
	text, ok = annotations[schedulingv1beta1.JDBMaxUnavailableKey]
	return text, false, ok
}

// readBound reads a number of pods, or a percentage of total, rounded up.
func readBound(text string, total int) (bound int, ok bool) {
	value := intstr.Parse(text)
	bound, err := intstr.GetScaledValueFromIntOrPercent(&value, total, true)
	return bound, err == nil && bound >= 0
}
