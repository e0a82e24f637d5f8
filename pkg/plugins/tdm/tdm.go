package tdm

import (
	"errors"
	"strconv"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "tdm"

const (
	zonePrefix = "tdm.revocable-zone."
	periodKey  = "tdm.evict.period"
)

// Why pods may not be evicted, and why nodes refuse pods.
const (
	takesNothing = "the pod that waits may be evicted itself, or use revocable nodes"
	notUsable    = "they stand on revocable nodes"

	unknownZone = "node(s) were in a revocable zone that is not configured"
	closedZone  = "node(s) were in a revocable zone that is closed"
	othersZone  = "node(s) were in a revocable zone, which the pod may not use"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: zonePrefix + "<zone>", Kind: conf.String, Default: "", Check: isHours, Doc: "The hours at which the nodes of a zone are lent, every day."},
			{Name: periodKey, Kind: conf.Duration, Default: time.Minute, Check: aboveZero, Doc: "How often pods are taken off the nodes of closed zones."},
		}},
		New: newPlugin,
	}
}

func isHours(value any) error {
	hours, ok := value.(string)
	if !ok || hours == "" {
		return nil
	}
	_, err := readZone("", hours)
	return err
}

func aboveZero(value any) error {
	if period, ok := value.(time.Duration); ok && period <= 0 {
		return errors.New("above zero")
	}
	return nil
}

type plugin struct {
	zones  []zone // by name
	byName map[string]*zone
	period time.Duration

	session   *framework.Session
	isOpen    map[string]bool // the configured zones
	byDefault bool            // pods without a mark may be evicted
	named     time.Time       // when pods were last named, zero before the first time
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{period: arguments.Duration(periodKey), byName: map[string]*zone{}, isOpen: map[string]bool{}}
	for name, hours := range arguments.Each(zonePrefix) {
		z, err := readZone(name, hours.(string))
		if err != nil {
			return nil, errors.New(zonePrefix + name + " must be " + err.Error())
		}
		p.zones = append(p.zones, z)
	}
	for i := range p.zones {
		p.byName[p.zones[i].name] = &p.zones[i]
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

// DeclareKeys declares the annotations that allow a pod to use zones.
func (*plugin) DeclareKeys() cluster.Keys {
	return cluster.Keys{PodAnnotations: []string{schedulingv1beta1.RevocableZoneKey, schedulingv1beta1.PreemptableKey}}
}

// DeclareNodeKeys declares the label that says in which zone a node is.
func (*plugin) DeclareNodeKeys() (annotations, labels []string) {
	return nil, []string{schedulingv1beta1.RevocableZoneKey}
}

func (p *plugin) OpenSession(s *framework.Session) {
	p.session, p.byDefault = s, s.Policy.Configuration.Compatibility.PreemptableByDefault
	turned := map[string]bool{}
	for i := range p.zones {
		z := &p.zones[i]
		isOpen := z.isOpen(s.Now)
		if was, known := p.isOpen[z.name]; known && was != isOpen {
			turned[z.name] = true
		}
		p.isOpen[z.name] = isOpen
	}
	if len(turned) == 0 {
		return
	}
	// Answers about these nodes are kept until they change, and only the time has changed.
	for _, n := range s.Cluster.Nodes() {
		if turned[zoneOf(n)] {
			s.Cluster.Touch(n)
		}
	}
}

// WakeAt is when a zone opens or closes, or when a period ends in which pods were named.
func (p *plugin) WakeAt() time.Time {
	var next time.Time
	if p.session == nil {
		return next
	}
	now := p.session.Now
	sooner := func(when time.Time) {
		if when.After(now) && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	for i := range p.zones {
		sooner(p.zones[i].next(now))
	}
	if !p.named.IsZero() {
		sooner(p.named.Add(p.period))
	}
	return next
}

// zoneOf is the zone of a node, "" if it is in none.
func zoneOf(n *cluster.Node) string {
	if n == nil || n.Object == nil {
		return ""
	}
	return n.Object.Labels[schedulingv1beta1.RevocableZoneKey]
}

// mayUseZones reports whether a pod with some annotations may run on revocable nodes.
func mayUseZones(annotations map[string]string) bool {
	if zone := annotations[schedulingv1beta1.RevocableZoneKey]; zone != "" {
		return zone == "*"
	}
	isMarked, err := strconv.ParseBool(annotations[schedulingv1beta1.PreemptableKey])
	return err == nil && isMarked
}

// RefuseNode refuses nodes of closed zones, and all revocable nodes for pods that may not use them.
func (p *plugin) RefuseNode(k *cluster.Class, n *cluster.Node) string {
	name := zoneOf(n)
	if name == "" {
		return ""
	}
	switch isOpen, isKnown := p.isOpen[name]; {
	case !isKnown:
		return unknownZone
	case !isOpen:
		return closedZone
	case !mayUseZones(k.Pod.Annotations):
		return othersZone
	}
	return ""
}

// ScoreNode prefers revocable nodes, which other jobs cannot use.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	if name := zoneOf(n); name != "" && p.isOpen[name] && mayUseZones(k.Pod.Annotations) {
		return 100 * framework.Point
	}
	return 0
}

// CompareJobs puts jobs that may be evicted after those that may not.
func (p *plugin) CompareJobs(a, b *cluster.Job) int {
	switch marked, other := p.isMarked(a), p.isMarked(b); {
	case marked == other:
		return 0
	case marked:
		return 1
	}
	return -1
}

// isMarked reports whether the PodGroup of a job says that its pods may be evicted.
func (p *plugin) isMarked(j *cluster.Job) bool {
	if j.Group == nil {
		return false
	}
	mark, ok := j.Group.Annotations[schedulingv1beta1.PreemptableKey]
	if !ok {
		mark = j.Group.Labels[schedulingv1beta1.PreemptableKey]
	}
	return p.reads(mark)
}

// reads reports whether a mark means yes (rule P2).
func (p *plugin) reads(mark string) bool { return cluster.IsYes(mark, p.byDefault) }

// IsStarving reports whether a job that may not be evicted has a pending task.
func (p *plugin) IsStarving(j *cluster.Job) bool {
	return !p.isMarked(j) && j.Count(cluster.Pending) > 0
}

// VotePreempt permits evictions for a pod that does not use revocable nodes, as far as the budget of the victims' job
// allows.
func (p *plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if p.takesNothing(d) {
		return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: takesNothing}
	}
	running, isUsable := 0, false
	for _, t := range d.Victims {
		if t.Status == cluster.Running {
			running++
		}
		isUsable = isUsable || zoneOf(t.Node) == ""
	}
	if !isUsable {
		return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: notUsable}
	}
	if left, isBounded := slack(d.VictimJob()); isBounded && running > left {
		return framework.Reject, verdict.Protection{Kind: verdict.ByBudget, Detail: "the disruption budget of their job is spent"}
	}
	return framework.Permit, verdict.Protection{}
}

func (p *plugin) takesNothing(d *framework.VictimProposal) bool {
	if d.For == nil {
		return p.isMarked(d.Preemptor)
	}
	mark, _ := d.For.Mark()
	return p.reads(mark) || mayUseZones(d.For.Pod.Annotations)
}
