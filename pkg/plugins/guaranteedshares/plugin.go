package guaranteedshares

import (
	"fmt"
	"slices"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "guaranteed-shares"

// The arguments.
const (
	subtreesKey   = "subtrees"
	delayKey      = "preemptionDelay"
	daemonSetsKey = "daemonSets"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Needs: []conf.Need{{Action: "reclaim", Lack: "no pod is evicted for what another queue is guaranteed"}}, Arguments: []conf.Argument{
			{Name: subtreesKey, Kind: conf.Any, Default: []any{schedulingv1beta1.RootQueue}, Check: areNames,
				Doc: "The queues below which guarantees are enforced. None of them may be below another."},
			{Name: delayKey, Kind: conf.Duration, Default: 30 * time.Second, Check: isAboveZero,
				Doc: "How long a job waits before pods of other queues are evicted for it, where no queue says otherwise."},
			{Name: daemonSetsKey, Kind: conf.Bool, Default: true,
				Doc: "Pods of DaemonSets take room on their nodes, from pods that are not of higher priority."},
		}},
		New: func(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
			return &plugin{names: namesOf(arguments.Any(subtreesKey)), delay: arguments.Duration(delayKey), daemonSets: arguments.Bool(daemonSetsKey)}, nil
		},
	}
}

func areNames(value any) error {
	const allowed = "a list of names of queues, each once"
	names := namesOf(value)
	if list, ok := value.([]any); !ok || len(list) == 0 || len(names) != len(list) {
		return fmt.Errorf("%s", allowed)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(value.([]any)) {
		return fmt.Errorf("%s", allowed)
	}
	return nil
}

// namesOf returns the texts of a list.
func namesOf(value any) (names []string) {
	list, _ := value.([]any)
	for _, element := range list {
		if name, ok := element.(string); ok && name != "" {
			names = append(names, name)
		}
	}
	return names
}

func isAboveZero(value any) error {
	if delay, ok := value.(time.Duration); ok && delay <= 0 {
		return fmt.Errorf("a duration above 0")
	}
	return nil
}

type plugin struct {
	names      []string // of the tops
	delay      time.Duration
	daemonSets bool
	cluster    *model.Cluster
	subtrees   *guarantee.Subtrees
	written    *quota.View

	service      service
	applications applications
	excess       excess
}

func (*plugin) Name() string { return Name }

// OpenSession looks up the tops of the subtrees. A top that does not exist, or that is below another, is left out.
func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster, p.written = s.Cluster, quota.Written(quota.Policy{})
	p.service, p.applications = service{session: s}, newApplications(s)
	var tops []*quota.Node
	var missing, nested []string
	for _, name := range p.names {
		q := s.Cluster.Queue(name)
		if name == schedulingv1beta1.RootQueue {
			q = s.Cluster.Root() // it exists even without an object
		}
		if q != nil && q.HasPlace() {
			tops = append(tops, q.QuotaNode())
		} else {
			missing = append(missing, name)
		}
	}
	p.subtrees = guarantee.NewSubtrees(slices.DeleteFunc(slices.Clone(tops), func(n *quota.Node) bool {
		isNested := slices.ContainsFunc(tops, func(other *quota.Node) bool { return other != n && other.Contains(n) })
		if isNested {
			nested = append(nested, n.Name)
		}
		return isNested
	}), p.delay)
	p.subtrees.DaemonSets, p.subtrees.Missing, p.subtrees.Nested = p.daemonSets, missing, nested
	p.excess.follow(s, p.subtrees)
	p.subtrees.NextCut = p.excess.next
}

// Subtrees are those of this session.
func (p *plugin) Subtrees() *guarantee.Subtrees { return p.subtrees }

// HasAll reports whether the rules hold between all queues.
func (p *plugin) HasAll() bool { return slices.Contains(p.names, schedulingv1beta1.RootQueue) }

// ValidateJob refuses jobs in queues that have queues below them.
func (p *plugin) ValidateJob(j *cluster.Job) *verdict.Verdict {
	if j.Queue.IsLeaf() || !p.subtrees.Contains(j.QuotaNode()) {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueNotLeaf, Subject: j.Queue.Name, Help: verdict.HelpQueue}
}

// MayAllocate keeps the queue, and all queues above it, within their capabilities.
func (p *plugin) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(q.QuotaNode(), quota.ToPlace(t.Request()))
}

// MayBind does the same while planned evictions may still be refused.
func (p *plugin) MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(q.QuotaNode(), quota.ToBind(t.Request()))
}

// MayEnqueue admits a job that fits under the capabilities of its queue and all above it, in addition to the jobs
// admitted before.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	if !p.subtrees.Contains(j.QuotaNode()) {
		return framework.Abstain, nil
	}
	if v := p.refusal(j.QuotaNode(), quota.ToAdmit(j.MinResources, j)); v != nil {
		return framework.Reject, v
	}
	return framework.Permit, nil
}

// StockView returns the capabilities as they are written.
func (p *plugin) StockView(quota.Purpose) *quota.View { return p.written }

// LackToAdmit returns what MayEnqueue refuses a job for.
func (p *plugin) LackToAdmit(j *cluster.Job) verdict.Lack {
	if !p.subtrees.Contains(j.QuotaNode()) {
		return verdict.Lack{}
	}
	return quota.LackToAdmit(p, false, j.QuotaNode(), quota.ToAdmit(j.MinResources, j))
}

// LackToPlace returns what MayAllocate refuses pods for that request so much together.
func (p *plugin) LackToPlace(q *cluster.Queue, more resources.Vector) verdict.Lack {
	if !p.subtrees.Contains(q.QuotaNode()) {
		return verdict.Lack{}
	}
	return quota.LackToHold(p, q.QuotaNode(), more)
}

// refusal says why a claim does not fit, nil if it does.
func (p *plugin) refusal(n *quota.Node, claim quota.Claim) *verdict.Verdict {
	if !p.subtrees.Contains(n) {
		return nil
	}
	return p.written.Refuse(p.cluster.Resources, n, claim)
}
