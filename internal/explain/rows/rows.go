package rows

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/explain"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Board is the whole cluster at a glance: a row for each job, queue and node, sorted by name.
//
// Amounts are numbers in the order of Resources: CPU in thousandths of a core, memory and storage in bytes, others by number. A list may be
// shorter than Resources; what it lacks is 0. In limits and shares -1 says that there is none.
type Board struct {
	Resources []string `json:"resources"`
	Jobs      []Job    `json:"jobs"`
	Queues    []Queue  `json:"queues"`
	Nodes     []Node   `json:"nodes"`
}

// The states of jobs on a board.
const (
	StatePending  = "Pending"  // waits for admission
	StateAdmitted = "Admitted" // is admitted, and waits for nodes or pods
	StateRunning  = "Running"  // has what it needs to start
	StateFinished = "Finished"
)

// Job is a job on a board.
type Job struct {
	Job      string `json:"job"`  // namespace and name of the PodGroup
	Name     string `json:"name"` // namespace and name of what users call the job
	Queue    string `json:"queue"`
	State    string `json:"state"`
	Priority int32  `json:"priority"`
	// MinAvailable is how many pods must start together, Lacks how many of them have no node yet, Pods how many there are.
	MinAvailable int `json:"minAvailable"`
	Lacks        int `json:"lacks"`
	Pods         int `json:"pods"`
	// Reason is the code of the reason for which it waits ([explain.Model.Brief]), Message a sentence; both are empty if the job does not wait.
	// The answer about the job alone may be more precise.
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"message,omitempty"`
	Subject  string    `json:"subject,omitempty"` // the queue, job or pod that is the cause; empty if it is the job itself
	Created  time.Time `json:"created"`
	Requests []int64   `json:"requests,omitempty"`
	Workload bool      `json:"workload,omitempty"` // a Workload of Kueue's API, not a PodGroup
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
	Holds     []int64 `json:"holds,omitempty"`
	Requests  []int64 `json:"requests,omitempty"`
	// Borrowed is what it holds beyond Deserved.
	Borrowed []int64 `json:"borrowed,omitempty"`
	// Pending, Admitted and Running count its jobs by state. Oldest is when the oldest job that waits was made, nil if none waits.
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

// longestMessage is the length to which the sentence of a row is cut, in bytes. A table shows no more.
const longestMessage = 400

// Maker makes boards. It remembers the names, their order and the sentences of the last one, because most jobs are still there on the next, and
// wait for the same reason. Only the goroutine that owns the model may use it.
type Maker struct {
	sentences map[*verdict.Verdict]string
	jobs      map[*cluster.Job]*known
	order     []*known // by id
	boards    int      // how many were made
}

// known is what is remembered of a job.
type known struct {
	job      *cluster.Job
	id, name string
	group    *schedulingv1beta1.PodGroup // that the name is of
	seen     int                         // the last board that it is on
}

// Board returns all rows. It costs some milliseconds with ten thousand jobs and five thousand nodes: an asker with many readers asks once for
// all.
func (k *Maker) Board(m *explain.Model, now time.Time) Board {
	var b Board
	m.Session(now, func(s *framework.Session) {
		c := s.Cluster
		for d := range c.Resources.Len() {
			b.Resources = append(b.Resources, string(c.Resources.Name(dim(d))))
		}
		queues := c.Queues()
		b.Queues = make([]Queue, 0, len(queues))
		own := make(map[*cluster.Queue]*Queue, len(queues))
		for _, q := range queues {
			b.Queues = append(b.Queues, queueRow(s, q))
			own[q] = &b.Queues[len(b.Queues)-1]
		}
		k.jobRows(m, c, &b, own)
		for _, n := range c.Nodes() {
			if n.Object != nil {
				b.Nodes = append(b.Nodes, nodeRow(n))
			}
		}
	})
	slices.SortFunc(b.Queues, func(x, y Queue) int { return cmp.Compare(x.Queue, y.Queue) })
	slices.SortFunc(b.Nodes, func(x, y Node) int { return cmp.Compare(x.Node, y.Node) })
	return b
}

func dim(d int) resources.Dim { return resources.Dim(d) }

func queueRow(s *framework.Session, q *cluster.Queue) Queue {
	row := Queue{Queue: q.Name, State: "Open", Problem: q.Problem, Priority: q.Priority, Weight: q.Weight, Guarantee: rowLimits(q.Guarantee),
		Ceiling: rowLimits(q.Capability), Holds: rowAmounts(q.Subtree.Allocated), Requests: rowAmounts(q.Subtree.Request)}
	if !q.Open() {
		row.State = q.Closed
	}
	if q.Parent != nil {
		row.Parent = q.Parent.Name
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

// jobRows adds the jobs, and counts them for their queues.
func (k *Maker) jobRows(m *explain.Model, c *model.Cluster, b *Board, own map[*cluster.Queue]*Queue) {
	before := k.sentences
	k.sentences = make(map[*verdict.Verdict]string, len(before))
	k.follow(c)
	dims := c.Resources.Len()
	b.Jobs = make([]Job, len(k.order))
	space := make([]int64, len(k.order)*dims) // one allocation for all amounts
	for i, e := range k.order {
		j, row := e.job, &b.Jobs[i]
		requests := space[i*dims : i*dims : (i+1)*dims]
		*row = Job{Job: e.id, Name: e.name, Queue: j.QueueName, Priority: j.Priority, MinAvailable: j.MinMember, Lacks: max(j.Lacks(), 0),
			Pods: len(j.Tasks()), Created: j.Created(), Requests: append(requests, trimmed(j.Usage.Request)...), State: stateOf(j), Workload: j.Workload != nil}
		if v := j.Verdict; v != nil && row.State != StateFinished {
			row.Subject = v.Subject
			row.Reason, row.Message = m.Brief(j)
			if row.Message == "" {
				sentence, ok := before[v]
				if !ok {
					sentence = cut(v.Sentence())
				}
				k.sentences[v], row.Message = sentence, sentence
			}
			row.Message = cut(row.Message)
		}
		if q := own[j.Queue]; q != nil {
			q.count(row)
		}
	}
}

// follow brings the jobs and their order up to date.
func (k *Maker) follow(c *model.Cluster) {
	if k.jobs == nil {
		k.jobs = map[*cluster.Job]*known{}
	}
	k.boards++
	var added []*known
	c.EachJob(func(j *cluster.Job) {
		if j.IsForeign || j.Group == nil && j.Workload == nil {
			return
		}
		e := k.jobs[j]
		if e == nil {
			e = &known{job: j, id: j.ID.String()}
			k.jobs[j] = e
			added = append(added, e)
		}
		if e.seen = k.boards; j.Workload != nil {
			e.name = j.Workload.Key()
		} else if e.group != j.Group {
			e.name, e.group = j.Name(), j.Group
		}
	})
	k.order = slices.DeleteFunc(k.order, func(e *known) bool {
		if e.seen != k.boards {
			delete(k.jobs, e.job)
		}
		return e.seen != k.boards
	})
	if len(added) > 0 {
		k.order = append(k.order, added...)
		slices.SortFunc(k.order, func(x, y *known) int { return cmp.Compare(x.id, y.id) })
	}
}

// cut returns a sentence as a row shows it.
func cut(sentence string) string {
	if len(sentence) <= longestMessage {
		return sentence
	}
	return strings.ToValidUTF8(sentence[:longestMessage-len(" …")], "") + " …"
}

func stateOf(j *cluster.Job) string {
	switch {
	case j.Workload != nil && j.Workload.Charge == nil:
		return StatePending
	case j.Workload != nil:
		return StateRunning
	case j.Over():
		return StateFinished
	case j.IsPendingAdmission():
		return StatePending
	case j.Lacks() > 0:
		return StateAdmitted
	}
	return StateRunning
}

func (q *Queue) count(j *Job) {
	switch j.State {
	case StateFinished:
		return
	case StateRunning:
		q.Running++
		return
	case StateAdmitted:
		q.Admitted++
	default:
		q.Pending++
	}
	if q.Oldest == nil || j.Created.Before(*q.Oldest) {
		q.Oldest = &j.Created
	}
}

func nodeRow(n *cluster.Node) Node {
	row := Node{Node: n.Name, Ready: n.Ready(), Unschedulable: n.Object.Spec.Unschedulable, Pods: len(n.Tasks()), Allocatable: rowAmounts(n.Allocatable),
		Used: rowAmounts(n.Used), Leaving: rowAmounts(n.Releasing), Promised: rowAmounts(n.Promised), Idle: make([]int64, len(n.Allocatable))}
	for d := range row.Idle {
		row.Idle[d] = max(n.Free(dim(d)), 0)
		if d < len(row.Allocatable) && row.Allocatable[d] == supplies.Boundless {
			row.Allocatable[d], row.Idle[d] = 0, 0 // which devices there are, the node does not say
		}
	}
	if above := n.HyperNodes(); len(above) > 0 {
		row.HyperNode = above[0].Name
	}
	return row
}

func rowAmounts(v resources.Vector) []int64 { return slices.Clone(trimmed(v)) }

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
