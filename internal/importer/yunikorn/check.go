package yunikorn

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
)

// checker lists what is wrong with a partition.
type checker struct{ *source.Report }

// check lists what YuniKorn itself would refuse of a partition, and values that Hekla cannot read.
func (c checker) check(p *partition) {
	if len(p.root.guaranteed)+len(p.root.max) > 0 {
		at := p.root.guaranteedAt
		at.Path = strings.TrimSuffix(at.Path, ".guaranteed")
		c.Refuse(at, "root is the whole cluster and has no resources of its own")
	}
	c.checkQueue(p.root)
	for _, q := range p.root.queues {
		c.checkAmounts(q, nil)
	}
	for _, placement := range p.rules {
		c.checkRule(placement)
	}
	switch p.nodeOrder.policy.Text {
	case "", "fair", "binpacking":
	default:
		c.Refuse(p.nodeOrder.policy, "is %q, allowed is fair or binpacking", source.Shorten(p.nodeOrder.policy.Text))
	}
	for _, e := range p.nodeOrder.weights {
		if weight, err := bounds.ParseNumber(e.Text); err != nil || !(weight >= 0 && weight <= maxWeight) {
			c.Refuse(e.Field, "is %q, allowed is a number from 0 to %d", source.Shorten(e.Text), maxWeight)
		}
	}
}

// maxWeight bounds the weights of resources, because the scheduler adds scores.
const maxWeight = 1_000_000

// checkQueue checks what one queue says, and all below it.
func (c checker) checkQueue(q *queue) {
	c.checkSettings(q.settings)
	if q.template != nil {
		c.checkSettings(q.template.settings)
		guaranteed, max := readAmounts(c.Report, q.template.guaranteed), readAmounts(c.Report, q.template.max)
		if name, has, limit, found := exceeding(guaranteed, max); found && !isZero(max) {
			c.Refuse(q.template.Field, "guaranteed %s is %s, above its max, which is %s", name, has.String(), limit.String())
		}
	}
	for _, acl := range []source.Field{q.submit, q.admin} {
		if len(strings.Fields(acl.Text)) > 2 {
			c.Refuse(acl, "is %q, allowed is a list of users, a space, and a list of groups", source.Shorten(acl.Text))
		}
	}
	limit := applicationsOf(q.settings)
	for _, below := range q.queues {
		if own := applicationsOf(below.settings); limit > 0 && own > limit {
			c.Refuse(below.applications, "is %d, above that of the queue above, which is %d", own, limit)
		}
		c.checkQueue(below)
	}
}

// applicationsOf returns how many applications a queue may run, 0 if it sets no limit.
func applicationsOf(s settings) int64 {
	number, err := strconv.ParseInt(s.applications.Text, 10, 32)
	if err != nil {
		return 0
	}
	return number
}

func (c checker) checkSettings(s settings) {
	if s.applications.IsWritten() {
		readNumber(c.Report, s.applications)
	}
	for _, e := range s.properties {
		switch annotation, isKnown := annotations[e.Key]; {
		case isUnneeded(e.Key):
		case !isKnown:
			c.Refuse(e.Field, "YuniKorn has no such property, and drops it silently")
		default:
			if _, problems := properties.Read(map[string]string{annotation: e.Text}); len(problems) > 0 {
				c.Refuse(e.Field, "is %q, allowed is %s", source.Shorten(e.Text), problems[0].Allowed)
			}
		}
	}
}

// checkAmounts checks the resources of a queue and of all below it. The bound is the least that the queues above may
// hold. It returns what the queue is guaranteed, or what those below it are together.
func (c checker) checkAmounts(q *queue, bound corev1.ResourceList) corev1.ResourceList {
	guaranteed, max := readAmounts(c.Report, q.guaranteed), readAmounts(c.Report, q.max)
	if isZero(max) {
		max = nil // which sets no limit
	}
	if name, has, limit, found := exceeding(guaranteed, max); found {
		c.Refuse(q.guaranteedAt, "guaranteed %s is %s, above its max, which is %s", name, has.String(), limit.String())
	}
	if name, has, limit, found := exceeding(max, bound); found && !q.isMade {
		c.Refuse(q.maxAt, "max %s is %s, above that of a queue above, which is %s", name, has.String(), limit.String())
	}
	bound = lowest(max, bound)
	total := corev1.ResourceList{}
	for _, below := range q.queues {
		sum(total, c.checkAmounts(below, bound))
	}
	if name, has, limit, found := exceeding(total, guaranteed); found {
		c.Refuse(q.guaranteedAt, "the queues below are guaranteed %s %s together, and this one only %s", name, has.String(), limit.String())
	}
	if name, has, limit, found := exceeding(total, bound); found {
		at := q.maxAt
		if !at.IsWritten() {
			at = q.name
		}
		c.Refuse(at, "the queues below are guaranteed %s %s together, and may hold only %s", name, has.String(), limit.String())
	}
	if isZero(guaranteed) || len(guaranteed) == 0 {
		return total
	}
	return guaranteed
}

func (c checker) checkRule(q *rule) {
	if (q.name.Text == ruleFixed || q.name.Text == ruleTag) && q.value.Text == "" {
		c.Refuse(q.name, "the rule %s needs a value", q.name.Text)
	}
	if q.parent != nil {
		c.checkRule(q.parent)
	}
}
