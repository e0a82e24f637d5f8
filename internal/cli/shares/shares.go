package shares

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/guaranteedshares"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/scheduler"
)

// Shares are those of the queues of a cluster.
type Shares struct {
	policy *framework.Policy
	queues map[string]*scheduling.Queue
	read   *scheduler.Scheduler // nil when a Queue has changed
}

// New returns the shares of queues under a configuration of the scheduler. It returns nil if the plugin is not
// configured, and an error if the configuration cannot be read.
func New(configuration string, queues []scheduling.Queue) (*Shares, error) {
	registry := scheduler.NewRegistry()
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		return nil, fmt.Errorf("the configuration of the scheduler: %w", err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		return nil, fmt.Errorf("the configuration of the scheduler: %w", err)
	}
	if !policy.Uses(guaranteedshares.Name) {
		return nil, nil
	}
	s := &Shares{policy: policy, queues: map[string]*scheduling.Queue{}}
	for i := range queues {
		s.queues[queues[i].Name] = &queues[i]
	}
	return s, s.refresh()
}

// refresh makes a scheduler read the Queues. Its queues then hold what the statuses say, since it knows no pods.
func (s *Shares) refresh() error {
	if s.read != nil {
		return nil
	}
	read := scheduler.New(scheduler.Options{})
	if err := read.Use(s.policy); err != nil {
		return err
	}
	events := make([]cache.Event, 0, len(s.queues))
	for _, q := range s.queues {
		events = append(events, cache.Set{Object: q})
	}
	if result := read.Cycle(time.Unix(0, 0), events); result.Panic != "" {
		return fmt.Errorf("the queues cannot be read, please report this: %s", result.Panic)
	}
	for _, q := range read.Cluster().Queues() {
		if q.Object != nil {
			q.Subtree.Allocated = read.Cluster().Resources.Vector(q.Object.Status.Allocated)
		}
	}
	s.read = read
	return nil
}

// Note takes in a Queue that may have changed.
func (s *Shares) Note(q *scheduling.Queue) {
	if known := s.queues[q.Name]; known == nil || known.ResourceVersion != q.ResourceVersion || known.UID != q.UID {
		s.queues[q.Name], s.read = q, nil
	}
}

// of returns a queue as the scheduler has read it, and its balance; false if it is in no subtree.
func (s *Shares) of(name string) (*cluster.Queue, guarantee.Balance, bool) {
	if s.refresh() != nil {
		return nil, guarantee.Balance{}, false
	}
	q := s.read.Cluster().Queue(name)
	if q == nil || q.Problem != "" {
		return nil, guarantee.Balance{}, false
	}
	balance, isInside := s.subtrees().Balance(&q.Node)
	return q, balance, isInside
}

func (s *Shares) subtrees() *guarantee.Subtrees { return s.read.Policy().Subtrees() }

// Guaranteed is what counts of each resource as the guarantee of a queue: its own, or that of the next queue above it.
func (s *Shares) Guaranteed(name string) corev1.ResourceList {
	if _, balance, ok := s.of(name); ok {
		return s.read.Cluster().Resources.LimitList(balance.Guaranteed)
	}
	return nil
}

// Remaining is what is not held of that.
func (s *Shares) Remaining(name string) corev1.ResourceList {
	if _, balance, ok := s.of(name); ok {
		return s.read.Cluster().Resources.LimitList(balance.Remaining)
	}
	return nil
}
