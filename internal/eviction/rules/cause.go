package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Cause returns the rule by which a victim is evicted, and a message with the preemptor and the numbers. placed are the
// preemptor's tasks in the plan.
func (r *Rules) Cause(victim *cluster.Task, placed []*cluster.Task) (rule, message string) {
	preemptor, j := r.Preemptor, victim.Job
	switch {
	case r.Scope == decision.WithinJob:
		highest := slices.MaxFunc(placed, func(t, v *cluster.Task) int { return cmp.Compare(t.Priority, v.Priority) })
		return "P1", fmt.Sprintf("Preempted by pod %s (task priority %d) of the same job: higher task priority than %d (rule P1)",
			highest.Pod.Name, highest.Priority, victim.Priority)
	case r.Scope == decision.Anywhere:
		return "A3", fmt.Sprintf("Preempted by job %s (priority %d) in queue %s: a lone pod of higher priority than %d (rule A3)",
			preemptor.Name(), preemptor.Priority, preemptor.QueueName, j.Priority)
	case r.Scope == decision.BetweenJobs:
		return "J1", fmt.Sprintf("Preempted by job %s (priority %d) in queue %s: higher job priority than %d (rule J1)",
			preemptor.Name(), preemptor.Priority, preemptor.QueueName, j.Priority)
	case r.IsGoverned(j):
		return r.Guarantees.cause(victim, placed)
	case !r.NeedsRight(j):
		return "Q1", fmt.Sprintf("Preempted by job %s in queue %s (queue priority %d): higher queue priority than %d of queue %s (rule Q1)",
			preemptor.Name(), preemptor.QueueName, r.Queues.Priority(preemptor.QuotaNode()), r.Queues.Priority(j.QuotaNode()), j.QueueName)
	}
	message = fmt.Sprintf("Preempted by job %s in queue %s: queue %s holds more than it deserves (rule Q1)",
		preemptor.Name(), preemptor.QueueName, j.QueueName)
	if keeps := r.keeps(j.QuotaNode(), victim); keeps != "" {
		message += "; it keeps " + keeps
	}
	return "Q1", message
}

// keeps lists what a queue still holds and what it deserves, of the resources that a pod requests.
func (r *Rules) keeps(q *quota.Node, t *cluster.Task) string {
	standing := r.Queues.Standing(q)
	var parts []string
	for i, amount := range t.Request() {
		d := resources.Dim(i)
		limit, ok := standing.Deserved.At(d)
		if amount <= 0 || !ok || d == resources.Pods {
			continue
		}
		name := r.Session.Cluster.Resources.Name(d)
		parts = append(parts, fmt.Sprintf("%s %s and deserves %s", name, resources.Format(name, standing.Held.At(d)),
			resources.Format(name, limit)))
	}
	return strings.Join(parts, ", ")
}
