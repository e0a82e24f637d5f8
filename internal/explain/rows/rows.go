package rows

import (
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Board is the whole cluster at a glance: a row for each job, queue and node, sorted by name.
//
// Amounts are numbers in the order of Resources: CPU in thousandths of a core, memory and storage in bytes, others by
// number. A list may be shorter than Resources; what it lacks is 0. In limits and shares -1 says that there is none.
//
// Boards share the rows of jobs and nodes that have not changed in between, so the rows must not be changed.
type Board struct {
	Resources []string `json:"resources"`
	// Jobs are PodGroups and Workloads.
	Jobs   []*Job   `json:"jobs"`
	Queues []*Queue `json:"queues"`
	Nodes  []*Node  `json:"nodes"`
	// Quotas are the ClusterQueues and Cohorts of kueue.x-k8s.io.
	Quotas      []*Quota      `json:"quotas"`
	LocalQueues []*LocalQueue `json:"localQueues"`
}

// The states of jobs on a board.
const (
	StatePending  = "Pending"  // waits for admission
	StateAdmitted = "Admitted" // is admitted, and waits for nodes or pods
	StateRunning  = "Running"  // has what it needs to start
	StateFinished = "Finished"
	// StateForeign is that of a PodGroup that names a queue of this scheduler, and has pods without a node that name
	// another scheduler.
	StateForeign = "Foreign"
)

// The kinds of jobs on a board.
const (
	KindPodGroup = "PodGroup"
	KindWorkload = "Workload"
)

// Job is a job on a board.
type Job struct {
	// Job is the namespace and name of the PodGroup. That of a Workload is NAMESPACE/workload/NAME, as in the journal.
	Job  string `json:"job"`
	Kind string `json:"kind"`
	Name string `json:"name"` // namespace and name of what users call the job
	// Owner is the kind and name of the object that a Workload stands for, "" if it stands for none.
	Owner string `json:"owner,omitempty"`
	// Queue is the Queue of a PodGroup, and of a Workload the ClusterQueue, "" if it is in none. LocalQueue is that of
	// a Workload, in its namespace.
	Queue      string `json:"queue"`
	LocalQueue string `json:"localQueue,omitempty"`
	State      string `json:"state"`
	Priority   int32  `json:"priority"`
	// MinAvailable is how many pods must start together, Lacks how many of them have no node yet, Pods how many there
	// are.
	MinAvailable int `json:"minAvailable"`
	Lacks        int `json:"lacks"`
	Pods         int `json:"pods"`
	// Reason is the code of the reason for which it waits, as in the answer about it, Message a sentence; both are
	// empty if the job does not wait.
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Subject  string    `json:"subject,omitempty"` // the queue, job or pod that is the cause; empty if it is the job itself
	Created  time.Time `json:"created"`
	Requests []int64   `json:"requests,omitempty"`
}

// Queue is a queue on a board. Amounts include the queues below it, numbers of jobs do not.
type Queue struct {
	Queue    string `json:"queue"`
	Parent   string `json:"parent,omitempty"`
	State    string `json:"state"`
	Problem  string `json:"problem,omitempty"`
	Priority int32  `json:"priority"`
	Weight   int64  `json:"weight"`
	// Guarantee is reserved, Deserved the share by right, Ceiling the most that it may hold.
	Guarantee []int64 `json:"guarantee,omitempty"`
	Deserved  []int64 `json:"deserved,omitempty"`
	Ceiling   []int64 `json:"ceiling,omitempty"`
	// NotEnforced says why the ceiling does not bound the queues below it, "" if it does, or there are none, or the
	// queue has no capability.
	NotEnforced string  `json:"notEnforced,omitempty"`
	Holds       []int64 `json:"holds,omitempty"`
	Requests    []int64 `json:"requests,omitempty"`
	// Borrowed is what it holds beyond Deserved.
	Borrowed []int64 `json:"borrowed,omitempty"`
	// Waiting is what jobs need that wait for admission.
	Waiting []int64 `json:"waiting,omitempty"`
	Counts
}

// Counts count jobs by state. Oldest is when the oldest job that waits was made, nil if none waits.
type Counts struct {
	Pending  int        `json:"pending"`
	Admitted int        `json:"admitted"`
	Running  int        `json:"running"`
	Oldest   *time.Time `json:"oldest,omitempty"`
}

// Node is a node on a board.
type Node struct {
	Node          string  `json:"node"`
	Ready         bool    `json:"ready"`
	Unschedulable bool    `json:"unschedulable,omitempty"`
	HyperNode     string  `json:"hyperNode,omitempty"` // of the lowest tier
	Pods          int     `json:"pods"`
	Allocatable   []int64 `json:"allocatable,omitempty"`
	Used          []int64 `json:"used,omitempty"`
	Leaving       []int64 `json:"leaving,omitempty"`
	Promised      []int64 `json:"promised,omitempty"`
	Idle          []int64 `json:"idle,omitempty"`
}

func dim(d int) resources.Dim { return resources.Dim(d) }

func queueRow(s *framework.Session, q *cluster.Queue) *Queue {
	row := &Queue{Queue: q.Name, State: "Open", Problem: q.Problem, Priority: q.Priority, Weight: q.Weight, Guarantee: rowLimits(q.Guarantee),
		Ceiling: rowLimits(q.Capability), Holds: rowAmounts(q.Subtree.Allocated), Requests: rowAmounts(q.Subtree.Request)}
	if !q.Open() {
		row.State = q.Closed
	}
	if q.Parent != nil {
		row.Parent = q.Parent.Name
	}
	if len(q.Below()) > 0 && isLimited(row.Ceiling) && !s.Policy.BoundsBelow(q) {
		row.NotEnforced = "its capability does not hold for the queues below it: the configuration has no enableHierarchy"
		if s.Policy.Shares() == nil {
			row.NotEnforced = "its capability does not hold: the configuration has no plugin that enforces it"
		}
	}
	share, ok := s.Policy.Share(q)
	if !ok {
		return row
	}
	row.Deserved = rowLimits(share.Deserved)
	if !share.Ceiling.IsEmpty() {
		row.Ceiling = rowLimits(share.Ceiling)
	}
	for i, deserved := range row.Deserved {
		if beyond := q.Subtree.Allocated.At(dim(i)) - deserved; deserved >= 0 && beyond > 0 {
			row.Borrowed = append(row.Borrowed, make([]int64, i-len(row.Borrowed))...)
			row.Borrowed = append(row.Borrowed, beyond)
		}
	}
	return row
}

// wait adds what a job needs that waits for admission.
func (q *Queue) wait(needs resources.Vector) { (*resources.Vector)(&q.Waiting).Add(trimmed(needs)) }

// longestMessage is the length to which the sentence of a row is cut, in bytes, and longestEnd how much of that is its
// end.
const longestMessage, longestEnd = 400, 120

// cut returns a sentence as a row shows it. What is too long loses its middle: the numbers are at the end.
func cut(sentence string) string {
	if len(sentence) <= longestMessage {
		return sentence
	}
	const gap = " … "
	head, end := sentence[:longestMessage-longestEnd-len(gap)], sentence[len(sentence)-longestEnd:]
	return strings.ToValidUTF8(head, "") + gap + strings.ToValidUTF8(end, "")
}

func stateOf(j *cluster.Job) string {
	switch {
	case j.Over():
		return StateFinished
	case j.IsForeign && j.Queue != nil && j.Lacks() > 0:
		return StateForeign
	case j.IsPendingAdmission():
		return StatePending
	case j.Lacks() > 0:
		return StateAdmitted
	}
	return StateRunning
}

// count counts a job.
func (c *Counts) count(j *Job) {
	switch j.State {
	case StateFinished, StateForeign:
		return
	case StateRunning:
		c.Running++
		return
	case StateAdmitted:
		c.Admitted++
	default:
		c.Pending++
	}
	if c.Oldest == nil || j.Created.Before(*c.Oldest) {
		c.Oldest = &j.Created
	}
}

func nodeRow(n *cluster.Node) *Node {
	row := &Node{Node: n.Name, Ready: n.Ready(), Unschedulable: n.Object.Spec.Unschedulable, Pods: len(n.Tasks()), Allocatable: rowAmounts(n.Allocatable),
		Used: rowAmounts(n.Used), Leaving: rowAmounts(n.Releasing), Promised: rowAmounts(n.Promised), Idle: make([]int64, len(n.Allocatable))}
	for d := range row.Idle {
		row.Idle[d] = max(n.Free(dim(d)), 0)
		if d < len(row.Allocatable) && row.Allocatable[d] == supplies.Boundless {
			row.Allocatable[d], row.Idle[d] = 0, 0 // which devices there are, the node does not say
		}
	}
	row.HyperNode = lowestHyperNode(n)
	return row
}

func lowestHyperNode(n *cluster.Node) string {
	if above := n.HyperNodes(); len(above) > 0 {
		return above[0].Name
	}
	return ""
}

// rowAmounts copies amounts, nil if there are none.
func rowAmounts(v resources.Vector) []int64 { return append([]int64(nil), trimmed(v)...) }

// trimmed leaves out zeros at the end.
func trimmed(v resources.Vector) []int64 {
	last := len(v)
	for last > 0 && v[last-1] == 0 {
		last--
	}
	return v[:last]
}

// noLimit stands for the absence of a limit.
const noLimit = -1

// isLimited reports whether limits limit anything.
func isLimited(limits []int64) bool {
	return slices.ContainsFunc(limits, func(limit int64) bool { return limit != noLimit })
}

func rowLimits(l resources.Limits) []int64 {
	var row []int64
	for i := range l.Len() {
		value, ok := l.At(dim(i))
		if !ok || value == resources.Unlimited {
			value = noLimit
		}
		row = append(row, value)
	}
	return row
}
