package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/cluster"
)

// Report is what a simulation decided, in the order decided, and the state at its end, by name.
type Report struct {
	Cycles      int          `json:"cycles"`
	Stable      bool         `json:"stable"`
	Binds       []Bind       `json:"binds"`
	Evictions   []Eviction   `json:"evictions"`
	Nominations []Nomination `json:"nominations"`
	Jobs        []Job        `json:"jobs"`
	Queues      []Queue      `json:"queues"`
	// Explanations are the state at the end in full, and Journal what was decided and how verdicts changed, the oldest first. Both
	// are there if they are asked for.
	Explanations *Explanations   `json:"explanations,omitempty"`
	Journal      []journal.Entry `json:"journal,omitempty"`
}

// Explanations are the answers that a running scheduler gives to questions, by name.
type Explanations struct {
	Jobs   []explain.Job   `json:"jobs"`
	Queues []explain.Queue `json:"queues"`
	Nodes  []explain.Node  `json:"nodes"`
}

// Bind says that a pod was bound. Pods are named by namespace and name.
type Bind struct {
	Cycle int    `json:"cycle"`
	Pod   string `json:"pod"`
	Node  string `json:"node"`
}

// Eviction says that a pod was evicted, by which action and rule, and for which job.
type Eviction struct {
	Cycle   int    `json:"cycle"`
	Pod     string `json:"pod"`
	Node    string `json:"node"`
	Action  string `json:"action"`
	Rule    string `json:"law"`
	For     string `json:"for"`
	Message string `json:"message"`
}

// authority says for which job the pod is evicted, and by which action and rule.
func (e *Eviction) authority() string {
	text := "by " + e.Action
	if e.Rule != "" {
		text += " (" + e.Rule + ")"
	}
	if e.For != "" {
		text = "for " + e.For + " " + text
	}
	return text
}

// Nomination says that a pod was promised a node.
type Nomination struct {
	Cycle int    `json:"cycle"`
	Pod   string `json:"pod"`
	Node  string `json:"node"`
}

// Job is where a job stands at the end.
type Job struct {
	Job          string `json:"job"`
	Queue        string `json:"queue"`
	Phase        string `json:"phase"`
	Ready        int    `json:"ready"`
	MinAvailable int    `json:"minAvailable"`
	Reason       string `json:"reason"`
	Message      string `json:"message"`
}

// Queue is what a queue holds and may hold at the end. Share is the largest ratio of allocated to deserved; it is null
// where the queue holds something of which it deserves nothing.
type Queue struct {
	Queue     string            `json:"queue"`
	Allocated map[string]string `json:"allocated"`
	Deserved  map[string]string `json:"deserved"`
	Share     *float64          `json:"share"`
}

func newReport() *Report {
	// Lists are printed as [] when they are empty, never as null.
	return &Report{Binds: []Bind{}, Evictions: []Eviction{}, Nominations: []Nomination{}, Jobs: []Job{}, Queues: []Queue{}}
}

// rows is how much was decided so far.
func (r *Report) rows() int { return len(r.Binds) + len(r.Evictions) + len(r.Nominations) }

// finish adds the state at the end.
func (r *Report) finish(s *simulation) {
	c := s.scheduler.Cluster()
	for _, j := range c.Jobs() {
		row := Job{Job: s.names[j.ID], Queue: j.QueueName, Phase: string(j.Phase), Ready: j.Ready(), MinAvailable: j.MinMember}
		if v := j.Verdict; v != nil && !j.Over() && (j.IsPendingAdmission() || j.Lacks() > 0 || j.Count(cluster.Pending) > 0) {
			row.Reason, row.Message = string(v.Code), v.Sentence()
		}
		r.Jobs = append(r.Jobs, row)
	}
	slices.SortStableFunc(r.Jobs, func(a, b Job) int { return cmp.Compare(a.Job, b.Job) })
	for _, q := range c.Queues() {
		row := Queue{Queue: q.Name, Allocated: printed(c.Resources.List(q.Subtree.Allocated)), Deserved: map[string]string{}}
		if share, ok := s.scheduler.Policy().Share(q); ok {
			row.Deserved = printed(c.Resources.List(share.Deserved.Vector()))
			if value := share.Share.Float(); !math.IsInf(value, 0) {
				row.Share = &value
			}
		}
		r.Queues = append(r.Queues, row)
	}
}

// explain adds the state at the end in full, as a running scheduler explains it.
func (r *Report) explain(s *simulation) error {
	c := s.scheduler.Cluster()
	m, err := s.scheduler.Reader()
	if err != nil {
		return err
	}
	all := &Explanations{Jobs: []explain.Job{}, Queues: []explain.Queue{}, Nodes: []explain.Node{}}
	for _, j := range c.Jobs() {
		answer, err := m.Job(s.now, j.ID)
		if err != nil {
			return err
		}
		all.Jobs = append(all.Jobs, answer)
	}
	for _, q := range c.Queues() {
		answer, err := m.Queue(s.now, q.Name)
		if err != nil {
			return err
		}
		all.Queues = append(all.Queues, answer)
	}
	for _, n := range c.Nodes() {
		answer, err := m.Node(n.Name)
		if err != nil {
			return err
		}
		all.Nodes = append(all.Nodes, answer)
	}
	r.Explanations, r.Journal = all, s.scheduler.Journal().All(journal.DefaultLimits.Entries)
	return nil
}

func printed(list corev1.ResourceList) map[string]string {
	texts := make(map[string]string, len(list))
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}
	return texts
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText tells the report to a person: a table per cycle, then who waits and why.
func (r *Report) WriteText(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for cycle := 1; cycle <= r.Cycles; cycle++ {
		r.writeCycle(w, cycle)
	}
	rest := "not at rest"
	if r.Stable {
		rest = "at rest"
	}
	fmt.Fprintf(w, "After %d cycles, %s\n", r.Cycles, rest)
	fmt.Fprintln(w, "  JOB\tQUEUE\tPHASE\tREADY\tMIN")
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\n", j.Job, j.Queue, j.Phase, j.Ready, j.MinAvailable)
	}
	for _, j := range r.Jobs {
		if j.Reason != "" {
			fmt.Fprintf(w, "%s waits: %s: %s\n", j.Job, j.Reason, j.Message)
		}
	}
	return w.Flush()
}

func (r *Report) writeCycle(w io.Writer, cycle int) {
	began := false
	row := func(format string, arguments ...any) {
		if !began {
			fmt.Fprintf(w, "Cycle %d\n", cycle)
			began = true
		}
		fmt.Fprintf(w, "  "+format+"\n", arguments...)
	}
	for _, e := range r.Evictions {
		if e.Cycle == cycle {
			row("evict\t%s\tfrom %s\t%s: %s", e.Pod, e.Node, e.authority(), e.Message)
		}
	}
	for _, n := range r.Nominations {
		if n.Cycle == cycle {
			row("nominate\t%s\tto %s", n.Pod, n.Node)
		}
	}
	for _, b := range r.Binds {
		if b.Cycle == cycle {
			row("bind\t%s\tto %s", b.Pod, b.Node)
		}
	}
}
