package statuses

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Reasons of Events about the configuration of guaranteed shares.
const (
	// InvalidAllowPreemption: the annotation of a pod or PriorityClass is neither "true" nor "false".
	InvalidAllowPreemption = "InvalidAllowPreemption"
	// SubtreeNotFound: a queue that the plugin names does not exist, so that its rules do not hold below it.
	SubtreeNotFound = "SubtreeNotFound"
	// SubtreeNested: a queue that the plugin names is below another, which has the effect alone.
	SubtreeNested = "SubtreeNested"
)

// warnOfMarks makes an Event for each mark that cannot be read and each subtree without a queue, once for each change.
func (r *Reporter) warnOfMarks(c *cache.Cache, d *decision.Decisions) {
	marks := c.Marks.Take()
	if r.policy == nil {
		return
	}
	subtrees := r.policy.Subtrees()
	if subtrees == nil {
		return
	}
	for _, m := range marks {
		d.Events = append(d.Events, decision.Notice{Regarding: m.Object, Type: corev1.EventTypeWarning, Reason: InvalidAllowPreemption,
			Message: fmt.Sprintf("annotation %s: %.100q, allowed are true and false; true holds", yunikorn.AllowPreemptionKey, m.Value)})
	}
	if len(subtrees.Missing)+len(subtrees.Nested)+len(r.memory.subtrees) == 0 {
		return
	}
	now := map[string]bool{}
	warn := func(names []string, reason, message string) {
		for _, name := range names {
			if now[name] = true; r.memory.subtrees[name] {
				continue
			}
			d.Events = append(d.Events, decision.Notice{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(message, name),
				Regarding: corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "Queue", Name: name}})
		}
	}
	warn(subtrees.Missing, SubtreeNotFound, "subtrees of guaranteed-shares names queue %s, which does not exist; guarantees are not enforced below it")
	warn(subtrees.Nested, SubtreeNested, "subtrees of guaranteed-shares names queue %s, which is below another of them; only the upper one counts")
	r.memory.subtrees = now
}
