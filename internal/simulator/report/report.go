package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/journal"
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
	Workloads   []Workload   `json:"workloads,omitempty"`
	LeftOut     []LeftOut    `json:"leftOut,omitempty"`
	// Explanations are the state at the end in full, and Journal what was decided and how verdicts changed, the oldest
	// first. Both are there if they are asked for.
	Explanations *Explanations   `json:"explanations,omitempty"`
	Journal      []journal.Entry `json:"journal,omitempty"`
	// Asked are the answers about the Workloads that are asked about by name, for Go code alone.
	Asked []explain.Why `json:"-"`
}

// Explanations are the answers that a running scheduler gives to questions, by name.
type Explanations struct {
	Jobs   []explain.Job   `json:"jobs"`
	Queues []explain.Queue `json:"queues"`
	Nodes  []explain.Node  `json:"nodes"`
	// Starts says when the jobs that wait would start, absent if none does.
	Starts []Start `json:"starts,omitempty"`
	// Workloads are those of kueue.x-k8s.io, absent if there are none.
	Workloads []queued.Workload `json:"workloads,omitempty"`
}

// Start says when a job would start.
type Start struct {
	Job string        `json:"job"`
	ETA *forecast.ETA `json:"eta"`
}

// Bind says that a pod was bound. Pods are named by namespace and name.
type Bind struct {
	Cycle int    `json:"cycle"`
	Pod   string `json:"pod"`
	Node  string `json:"node"`
}

// Eviction says that a pod was evicted, by which action and rule, and for which job. If it has a Workload, all of its
// pods were evicted together, for another Workload or for none, and pod and node are empty.
type Eviction struct {
	Cycle   int    `json:"cycle"`
	Pod     string `json:"pod"`
	Node    string `json:"node"`
	Action  string `json:"action"`
	Rule    string `json:"rule"`
	For     string `json:"for"`
	Message string `json:"message"`

	Workload string `json:"workload,omitempty"`
	Reason   string `json:"reason,omitempty"` // as the condition Preempted has it, or else Evicted
}

// Authority says for which job the pod is evicted, and by which action and rule.
func (e *Eviction) Authority() string {
	if e.Workload != "" {
		if e.For == "" {
			return e.Reason
		}
		return "for " + e.For + " (" + e.Reason + ")"
	}
	text := "by " + e.Action
	if e.Rule != "" {
		text += " (" + e.Rule + ")"
	}
	if e.For != "" {
		text = "for " + e.For + " " + text
	}
	return text
}

// places are the nodes that a Workload has, with how many pods, over all pod sets.
func (w *Workload) places() string {
	counts := map[string]int{}
	for _, nodes := range w.Nodes {
		for name, count := range nodes {
			counts[name] += count
		}
	}
	said := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		said = append(said, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return strings.Join(said, ", ")
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

// Workload is where a Workload stands at the end. Flavors are by pod set and resource, nodes by pod set, with how many
// pods.
type Workload struct {
	Workload     string                       `json:"workload"`
	ClusterQueue string                       `json:"clusterQueue"`
	Admitted     bool                         `json:"admitted"`
	Flavors      map[string]map[string]string `json:"flavors"`
	Nodes        map[string]map[string]int    `json:"nodes"`
	Reason       string                       `json:"reason"`
	Message      string                       `json:"message"`
}

// LeftOut names an object of the input, as "Kind namespace/name", that the simulation does nothing with, or which
// refers to one that the input does not have.
type LeftOut struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// New returns a report without anything decided.
func New() *Report {
	// Lists are printed as [] when they are empty, never as null.
	return &Report{Binds: []Bind{}, Evictions: []Eviction{}, Nominations: []Nomination{}, Jobs: []Job{}, Queues: []Queue{}}
}

// Rows is how much was decided so far.
func (r *Report) Rows() int { return len(r.Binds) + len(r.Evictions) + len(r.Nominations) }

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
	if len(r.Workloads) > 0 {
		fmt.Fprintln(w, "  WORKLOAD\tCLUSTERQUEUE\tADMITTED\tNODES")
	}
	for _, q := range r.Workloads {
		fmt.Fprintf(w, "  %s\t%s\t%t\t%s\n", q.Workload, q.ClusterQueue, q.Admitted, q.places())
	}
	for _, q := range r.Workloads {
		if q.Reason != "" {
			fmt.Fprintf(w, "%s waits: %s: %s\n", q.Workload, q.Reason, q.Message)
		}
	}
	for _, j := range r.Jobs {
		if j.Reason != "" {
			fmt.Fprintf(w, "%s waits: %s: %s\n", j.Job, j.Reason, j.Message)
		}
	}
	for _, left := range r.LeftOut {
		fmt.Fprintf(w, "%s: %s\n", left.Object, left.Reason)
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
		if e.Cycle == cycle && e.Workload != "" {
			row("evict\t%s\t%s: %s", e.Workload, e.Authority(), e.Message)
		} else if e.Cycle == cycle {
			row("evict\t%s\tfrom %s\t%s: %s", e.Pod, e.Node, e.Authority(), e.Message)
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
