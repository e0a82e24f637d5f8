package rows

import (
	"cmp"
	"slices"
	"time"

	"hekla.sh/hekla/internal/explain"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Maker makes boards of one model. It makes the row of a job or node again only if what the row shows may have changed
// since the last board. To find that out costs much less than a row. Only the goroutine that owns the model may use it.
type Maker struct {
	jobs   map[*cluster.Job]*jobEntry
	order  []*jobEntry // by id
	boards int         // how many were made
	nodes  []nodeEntry // by slot

	workloads map[*workloads.Entry]*workloadEntry
}

// jobEntry is a job, and its row with all that the row follows from.
type jobEntry struct {
	job  *cluster.Job
	id   string
	seen int  // the last board for which it was there
	row  *Job // nil if it is on no board

	shape    shape
	group    *schedulingv1beta1.PodGroup
	verdict  *verdict.Verdict
	requests resources.Vector
}

// shape is what a row shows of a job itself.
type shape struct {
	queue, state              string
	priority                  int32
	minAvailable, lacks, pods int
	isForeign                 bool
	scheduler                 string // another one
}

// nodeEntry is the row of a node with all that the row follows from.
type nodeEntry struct {
	node       *cluster.Node
	generation uint64
	pods       int
	hyperNode  string
	row        *Node
}

// Board returns all rows. An asker with many readers asks once for all.
func (k *Maker) Board(m *explain.Model, now time.Time) Board {
	var b Board
	m.Session(now, func(s *framework.Session) {
		c := s.Cluster
		b.Resources = make([]string, c.Resources.Len())
		b.Quotas, b.LocalQueues = quotaRows(m, c.Resources)
		for d, name := range c.Resources.Resources() {
			b.Resources[d] = string(name)
		}
		queues := c.Queues()
		b.Queues = make([]*Queue, 0, len(queues))
		own := make(map[*cluster.Queue]*Queue, len(queues))
		for _, q := range queues {
			row := queueRow(s, q)
			b.Queues, own[q] = append(b.Queues, row), row
		}
		b.Jobs = merged(k.jobRows(c, own), k.workloadRows(m, c, b.Quotas, b.LocalQueues))
		b.Nodes = k.nodeRows(c)
	})
	return b
}

// jobRows returns the rows of jobs, and counts them for their queues.
func (k *Maker) jobRows(c *model.Cluster, own map[*cluster.Queue]*Queue) []*Job {
	k.list(c)
	jobs := make([]*Job, 0, len(k.order))
	for _, e := range k.order {
		if !e.isCurrent() {
			e.read()
		}
		if e.row == nil {
			continue
		}
		jobs = append(jobs, e.row)
		if q := own[e.job.Queue]; q != nil {
			q.count(e.row)
		}
		if e.row.State == StatePending {
			for q := e.job.Queue; q != nil; q = q.Parent {
				own[q].wait(e.job.Needs())
			}
		}
	}
	return jobs
}

// list brings the jobs and their order up to date.
func (k *Maker) list(c *model.Cluster) {
	if k.jobs == nil {
		k.jobs = map[*cluster.Job]*jobEntry{}
	}
	k.boards++
	var added []*jobEntry
	seen := 0
	list := func(j *cluster.Job) {
		if j.IsOfWorkload() {
			return // see workloadRows
		}
		e := k.jobs[j]
		if e == nil {
			e = &jobEntry{job: j, id: j.ID.String()}
			k.jobs[j] = e
			added = append(added, e)
		}
		e.seen = k.boards
		seen++
	}
	c.EachJob(list)
	c.EachWithoutGroup(list)
	if seen-len(added) < len(k.order) {
		k.order = slices.DeleteFunc(k.order, func(e *jobEntry) bool {
			if e.seen != k.boards {
				delete(k.jobs, e.job)
			}
			return e.seen != k.boards
		})
	}
	if len(added) > 0 {
		k.order = append(k.order, added...)
		slices.SortFunc(k.order, func(x, y *jobEntry) int { return cmp.Compare(x.id, y.id) })
	}
}

// shapeOf returns what a row shows of the job itself.
func shapeOf(j *cluster.Job) shape {
	s := shape{queue: j.QueueName, state: stateOf(j), priority: j.Priority, minAvailable: j.MinMember, lacks: max(j.Lacks(), 0),
		pods: len(j.Tasks()), isForeign: j.IsForeign}
	if j.IsForeign {
		s.scheduler = j.Scheduler()
	}
	return s
}

// isCurrent reports whether the row is still right.
func (e *jobEntry) isCurrent() bool {
	j := e.job
	return e.group == j.Group && e.verdict == j.Verdict && e.shape == shapeOf(j) &&
		slices.Equal(e.requests, trimmed(j.Usage.Request))
}

// read makes the row of a job.
func (e *jobEntry) read() {
	j := e.job
	e.group, e.verdict, e.shape = j.Group, j.Verdict, shapeOf(j)
	e.requests = rowAmounts(j.Usage.Request)
	e.row = nil
	if j.IsForeign && e.shape.state != StateForeign {
		return
	}
	e.row = &Job{Job: e.id, Kind: KindPodGroup, Name: j.Name(), Queue: j.QueueName, State: e.shape.state, Priority: j.Priority, MinAvailable: j.MinMember, Lacks: e.shape.lacks,
		Pods: e.shape.pods, Created: j.Created(), Requests: e.requests}
	if j.Group == nil {
		reason, message, _ := j.WhyPodsWait()
		e.row.Reason, e.row.Message = reason, cut(message)
	} else if e.row.State == StateForeign {
		c := explain.OfAnotherScheduler(j)
		e.row.Reason, e.row.Message = c.Code, c.Message
	} else if v := j.Verdict; v != nil && e.row.State != StateFinished {
		e.row.Subject = v.Subject
		code, sentence := j.Reason()
		e.row.Reason, e.row.Message = string(code), cut(sentence())
	}
}

// nodeRows returns the rows of nodes.
func (k *Maker) nodeRows(c *model.Cluster) []*Node {
	if missing := len(c.BySlot()) - len(k.nodes); missing > 0 {
		k.nodes = append(k.nodes, make([]nodeEntry, missing)...)
	}
	nodes := make([]*Node, 0, len(c.Nodes()))
	for _, n := range c.Nodes() {
		if n.Object == nil {
			continue
		}
		e := &k.nodes[n.Slot]
		if e.node != n || e.generation != n.Generation || e.pods != len(n.Tasks()) || e.hyperNode != lowestHyperNode(n) {
			*e = nodeEntry{node: n, generation: n.Generation, pods: len(n.Tasks()), hyperNode: lowestHyperNode(n), row: nodeRow(n)}
		}
		nodes = append(nodes, e.row)
	}
	return nodes
}
