package board

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
)

// View is what a reader may see.
type View struct {
	Everything bool     // all namespaces
	Namespaces []string // those that the reader may see, sorted, if not all
	Nodes      bool
}

// Sees reports whether the view shows names of a namespace.
func (v *View) Sees(namespace string) bool {
	if v.Everything {
		return true
	}
	_, found := slices.BinarySearch(v.Namespaces, namespace)
	return found
}

// SeesNothing reports whether the view has no namespace and no nodes.
func (v *View) SeesNothing() bool { return !v.Everything && !v.Nodes && len(v.Namespaces) == 0 }

func (v *View) seesName(name string) bool {
	namespace, _, _ := strings.Cut(name, "/")
	return v.Sees(namespace)
}

// hash tells views apart in tokens.
func (v *View) hash() uint64 {
	h := fnv.New64a()
	for _, word := range v.Namespaces {
		_, _ = h.Write([]byte(word + "/"))
	}
	hash := h.Sum64() << 2
	if v.Everything {
		hash |= 1
	}
	if v.Nodes {
		hash |= 2
	}
	return hash
}

// JobCounts counts jobs by state.
type JobCounts struct {
	Pending  int `json:"pending"`
	Admitted int `json:"admitted"`
	Running  int `json:"running"`
	Finished int `json:"finished"`
	Foreign  int `json:"foreign"` // they name queues of this scheduler, and wait for another one
}

func (c *JobCounts) add(state string) {
	switch state {
	case rows.StatePending:
		c.Pending++
	case rows.StateAdmitted:
		c.Admitted++
	case rows.StateRunning:
		c.Running++
	case rows.StateForeign:
		c.Foreign++
	default:
		c.Finished++
	}
}

// Jobs are the rows of jobs.
type Jobs struct {
	List[rows.Job]
	Resources []string `json:"resources"`
	// Others counts the jobs that the reader may not see, in OtherNamespaces namespaces.
	Others          JobCounts `json:"others"`
	OtherNamespaces int       `json:"otherNamespaces"`
}

// Queues are the rows of queues.
type Queues struct {
	List[rows.Queue]
	Resources []string `json:"resources"`
}

// Quotas are the rows of ClusterQueues and Cohorts.
type Quotas struct {
	List[rows.Quota]
	Resources []string `json:"resources"`
}

// LocalQueues are the rows of LocalQueues in namespaces that the reader may see.
type LocalQueues struct {
	List[rows.LocalQueue]
	// Others counts those that the reader may not see.
	Others int `json:"others"`
}

// Nodes are the rows of nodes, or none if the reader may not see them, and their sums.
type Nodes struct {
	List[rows.Node]
	Resources []string   `json:"resources"`
	Hidden    bool       `json:"hidden,omitempty"`
	Totals    NodeTotals `json:"totals"`
}

// NodeTotals are sums over nodes. Those that are not ready, or cordoned, count for no amount but Used.
type NodeTotals struct {
	Nodes         int     `json:"nodes"`
	NotReady      int     `json:"notReady"`
	Unschedulable int     `json:"unschedulable"`
	Allocatable   []int64 `json:"allocatable"`
	Used          []int64 `json:"used"`
	Leaving       []int64 `json:"leaving"`
	Promised      []int64 `json:"promised"`
	Idle          []int64 `json:"idle"`
}

func (t *NodeTotals) add(n *rows.Node) {
	t.Nodes++
	add(&t.Used, n.Used)
	switch {
	case !n.Ready:
		t.NotReady++
	case n.Unschedulable:
		t.Unschedulable++
	default:
		add(&t.Allocatable, n.Allocatable)
		add(&t.Leaving, n.Leaving)
		add(&t.Promised, n.Promised)
		add(&t.Idle, n.Idle)
	}
}

func add(sum *[]int64, amounts []int64) {
	for len(*sum) < len(amounts) {
		*sum = append(*sum, 0)
	}
	for d, amount := range amounts {
		(*sum)[d] += amount
	}
}

// Reason counts the jobs that wait for one reason.
type Reason struct {
	Reason string `json:"reason"`
	Jobs   int    `json:"jobs"`
}

// Summary is the cluster in sums. They are of all namespaces.
type Summary struct {
	Token     string    `json:"token"`
	Cycle     uint64    `json:"cycle"`
	Resources []string  `json:"resources"`
	Jobs      JobCounts `json:"jobs"`
	// Waiting says why jobs wait, the most frequent reason first.
	Waiting []Reason `json:"waiting"`
	// Oldest is when the oldest waiting job was made, nil if none waits.
	Oldest *time.Time `json:"oldest,omitempty"`
	Queues int        `json:"queues"`
	// ClusterQueues counts those, Workloads the jobs that are Workloads and have not finished.
	ClusterQueues int        `json:"clusterQueues"`
	Workloads     int        `json:"workloads"`
	Nodes         NodeTotals `json:"nodes"`
	Evictions     int        `json:"evictions"` // in the minutes of Decisions
	Decisions     []Minute   `json:"decisions"`
	// Namespaces are those that the reader may see; Everything says that these are all.
	Namespaces []string `json:"namespaces,omitempty"`
	Everything bool     `json:"everything"`
}

func (s *Store) token(v *View) token {
	return token{process: s.process, view: v.hash(), version: s.version}
}

// Summary returns the sums.
func (s *Store) Summary(v *View) Summary {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	answer := Summary{Token: s.token(v).String(), Cycle: s.cycle, Resources: s.resources, Queues: len(s.queues.rows), Waiting: []Reason{},
		Namespaces: v.Namespaces, Everything: v.Everything, Decisions: slices.Clone(s.minutes[max(len(s.minutes)-maxMinutes, 0):])}
	reasons := map[string]int{}
	for _, r := range s.jobs.rows {
		j := r.value
		answer.Jobs.add(j.State)
		if j.Kind == rows.KindWorkload && j.State != rows.StateFinished {
			answer.Workloads++
		}
		if j.State != rows.StatePending && j.State != rows.StateAdmitted {
			continue
		}
		reasons[j.Reason]++
		if answer.Oldest == nil || j.Created.Before(*answer.Oldest) {
			answer.Oldest = &j.Created
		}
	}
	for _, r := range s.quotas.rows {
		if r.value.Kind == rows.KindClusterQueue {
			answer.ClusterQueues++
		}
	}
	for reason, jobs := range reasons {
		answer.Waiting = append(answer.Waiting, Reason{reason, jobs})
	}
	slices.SortFunc(answer.Waiting, func(a, b Reason) int {
		if a.Jobs != b.Jobs {
			return b.Jobs - a.Jobs
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	for _, r := range s.nodes.rows {
		answer.Nodes.add(r.value)
	}
	for _, m := range answer.Decisions {
		answer.Evictions += m.Evicted
	}
	return answer
}

// Jobs returns the rows of jobs that have changed since the list with a token, or all.
func (s *Store) Jobs(v *View, since string) Jobs {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	now := s.token(v)
	answer := Jobs{Resources: s.resources}
	others := map[string]bool{}
	answer.List = s.jobs.since(now.sinceOf(since), func(j *rows.Job) bool {
		namespace, _, _ := strings.Cut(j.Job, "/")
		if v.Sees(namespace) {
			return true
		}
		others[namespace] = true
		answer.Others.add(j.State)
		return false
	}, v.seesName)
	answer.Token, answer.OtherNamespaces = now.String(), len(others)
	return answer
}

// Queues returns the rows of queues likewise.
func (s *Store) Queues(v *View, since string) Queues {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	now := s.token(v)
	answer := Queues{Resources: s.resources}
	answer.List = s.queues.since(now.sinceOf(since), func(*rows.Queue) bool { return true }, func(string) bool { return true })
	answer.Token = now.String()
	return answer
}

// Quotas returns the rows of ClusterQueues and Cohorts likewise.
func (s *Store) Quotas(v *View, since string) Quotas {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	now := s.token(v)
	answer := Quotas{Resources: s.resources}
	answer.List = s.quotas.since(now.sinceOf(since), func(*rows.Quota) bool { return true }, func(string) bool { return true })
	answer.Token = now.String()
	return answer
}

// LocalQueues returns the rows of LocalQueues likewise.
func (s *Store) LocalQueues(v *View, since string) LocalQueues {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	now := s.token(v)
	answer := LocalQueues{}
	answer.List = s.locals.since(now.sinceOf(since), func(l *rows.LocalQueue) bool {
		if v.seesName(l.LocalQueue) {
			return true
		}
		answer.Others++
		return false
	}, v.seesName)
	answer.Token = now.String()
	return answer
}

// Nodes returns the rows of nodes likewise, and their sums.
func (s *Store) Nodes(v *View, since string) Nodes {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	now := s.token(v)
	answer := Nodes{Resources: s.resources, Hidden: !v.Nodes}
	answer.List = s.nodes.since(now.sinceOf(since), func(n *rows.Node) bool {
		answer.Totals.add(n)
		return v.Nodes
	}, func(string) bool { return v.Nodes })
	answer.Token = now.String()
	return answer
}

// Evictions are the last evictions of pods and of Workloads of which the reader may see the victim or the preemptor,
// the newest first.
type Evictions struct {
	Token string          `json:"token"`
	Rows  []journal.Entry `json:"rows"`
	// Since is from when on all evictions are listed that the reader may see: since the process leads, or since the
	// oldest of as many as are remembered.
	Since time.Time `json:"since"`
	// Others counts the evictions between jobs that the reader may not see.
	Others int `json:"others"`
}

// Evictions returns the last evictions. Names that the reader may not see are still in them.
func (s *Store) Evictions(v *View) Evictions {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	answer := Evictions{Token: s.token(v).String(), Rows: []journal.Entry{}}
	evictions := last(s.evictions, maxEvictions)
	if answer.Since = s.complete; len(evictions) == maxEvictions {
		answer.Since = evictions[maxEvictions-1].Time
	}
	for _, e := range evictions {
		if v.seesName(e.Job) || v.seesName(e.Pod) || v.seesName(e.For) {
			answer.Rows = append(answer.Rows, e)
		} else {
			answer.Others++
		}
	}
	return answer
}

// Cycles are the last cycles that decided something, the newest first.
type Cycles struct {
	Token string  `json:"token"`
	Rows  []Cycle `json:"rows"`
	// Since is from when on all of them are listed, as of [Evictions].
	Since time.Time `json:"since"`
}

// Cycles returns the last cycles. Of the decisions those are left out that concern only jobs that the reader may not
// see; names that the reader may not see are still in the others. The numbers are of all.
func (s *Store) Cycles(v *View) Cycles {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	answer := Cycles{Token: s.token(v).String(), Rows: last(s.cycles, maxCycles), Since: s.complete}
	if len(answer.Rows) == maxCycles {
		answer.Since = answer.Rows[maxCycles-1].Time
	}
	for i := range answer.Rows {
		c := &answer.Rows[i]
		all := c.Decisions
		c.Decisions = nil
		for _, e := range all {
			if v.seesName(e.Job) || e.For != "" && v.seesName(e.For) {
				c.Decisions = append(c.Decisions, e)
			} else {
				c.More++
			}
		}
	}
	return answer
}
