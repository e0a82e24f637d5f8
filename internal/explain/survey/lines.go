package survey

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
)

// NotTriedYet is the reason of jobs that no cycle has looked at since they changed.
const NotTriedYet = "NotTriedYet"

// Backlog is what waits in a queue.
type Backlog struct {
	Reasons map[string]int // jobs by the code of their reason
	Pods    int            // without a node
	// OldestPod is when the oldest of them was created, zero if there is none. Oldest is the job that waits longest,
	// nil if none does.
	OldestPod time.Time
	Oldest    *cluster.Job
	jobs      []*cluster.Job
}

// Backlogs returns what waits in each queue with waiting jobs, by name, also in queues that do not exist.
func Backlogs(c *model.Cluster) map[string]*Backlog {
	all := map[string]*Backlog{}
	for _, j := range c.Waiting() {
		if j.IsForeign || j.Group == nil || j.QueueName == "" || j.Over() {
			continue
		}
		b := all[j.QueueName]
		if b == nil {
			b = &Backlog{Reasons: map[string]int{}}
			all[j.QueueName] = b
		}
		b.add(j)
	}
	return all
}

func (b *Backlog) add(j *cluster.Job) {
	b.jobs = append(b.jobs, j)
	b.Reasons[reasonOf(j)]++
	b.Pods += j.Count(cluster.Pending)
	for _, t := range j.Tasks() {
		if at := t.Created(); t.Status == cluster.Pending && !t.IsStandIn && (b.OldestPod.IsZero() || at.Before(b.OldestPod)) {
			b.OldestPod = at
		}
	}
	if b.Oldest == nil || j.Created().Before(b.Oldest.Created()) || j.Created().Equal(b.Oldest.Created()) && j.ID.Compare(b.Oldest.ID) < 0 {
		b.Oldest = j
	}
}

func reasonOf(j *cluster.Job) string {
	if j.Verdict == nil {
		return NotTriedYet
	}
	code, _ := j.Reason()
	return string(code)
}

// Line is what waits in a queue, as plain data.
type Line struct {
	Queue string `json:"queue"`
	State string `json:"state"` // Open, another state of a Queue, or Missing
	Jobs  int    `json:"jobs"`  // that wait, for admission or for nodes
	Pods  int    `json:"pods"`  // that have no node
	// Reasons counts the jobs by the code of their reason.
	Reasons map[string]int `json:"reasons,omitempty"`
	// Oldest is the job that waits longest, Head the one that is tried first. They are absent if none waits.
	Oldest *Waiting `json:"oldest,omitempty"`
	Head   *Waiting `json:"head,omitempty"`
}

// Waiting is a job that waits.
type Waiting struct {
	Job     string    `json:"job"`
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
}

func waiting(j *cluster.Job) *Waiting {
	w := &Waiting{Job: j.Name(), Since: j.Created(), Reason: reasonOf(j)}
	_, sentence := j.Reason()
	w.Message = sentence()
	return w
}

// Missing is the state of a queue that does not exist and that jobs name.
const Missing = "Missing"

// lines lists the queues in which jobs may be, by name, and the missing ones.
func lines(s *framework.Session) []Line {
	backlogs := Backlogs(s.Cluster)
	var all []Line
	for _, q := range s.Cluster.Queues() {
		b := backlogs[q.Name]
		if q.Object == nil || b == nil && len(q.Children) > 0 {
			continue
		}
		delete(backlogs, q.Name)
		line := Line{Queue: q.Name, State: "Open"}
		if !q.Open() {
			line.State = string(q.Object.Status.State)
		}
		line.fill(b, s.CompareJobs)
		all = append(all, line)
	}
	for _, name := range sortedKeys(backlogs) {
		line := Line{Queue: name, State: Missing}
		line.fill(backlogs[name], cluster.CompareJobs)
		all = append(all, line)
	}
	return all
}

func (l *Line) fill(b *Backlog, compare func(a, b *cluster.Job) int) {
	if b == nil {
		return
	}
	l.Jobs, l.Pods, l.Reasons, l.Oldest = len(b.jobs), b.Pods, b.Reasons, waiting(b.Oldest)
	head := b.jobs[0]
	for _, j := range b.jobs[1:] {
		// A job that has been admitted comes before those that have not.
		if j.IsPendingAdmission() != head.IsPendingAdmission() {
			if head.IsPendingAdmission() {
				head = j
			}
		} else if compare(j, head) < 0 {
			head = j
		}
	}
	l.Head = waiting(head)
}
