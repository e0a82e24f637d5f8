package explain

import "time"

// Amounts are quantities by resource name, in the notation of Kubernetes: cpu in cores, memory in bytes, others in pieces. A
// resource of which there is nothing is left out.
type Amounts map[string]string

// Verdict is why a job waits.
type Verdict struct {
	Code string `json:"code"`
	// Message says it to a person, with every number.
	Message string `json:"message"`
	// Subject is the queue, task or pod that stands in the way; empty if it is the job itself.
	Subject string `json:"subject,omitempty"`
	// Placed is how many pods found a place in the last attempt, Wanted how many must at the least.
	Placed int `json:"placed,omitempty"`
	Wanted int `json:"wanted,omitempty"`
	// Short is what is short on the nodes of the right kind, or in the queue.
	Short []Shortage `json:"short,omitempty"`
	// Nodes counts the nodes that refuse, by reason.
	Nodes []NodeReason `json:"nodes,omitempty"`
	// Protected counts the pods that may not be evicted for the job, by rule.
	Protected []Protected `json:"protected,omitempty"`
	// Vetoed counts the nodes that evictions would open and that are refused all the same.
	Vetoed []NodeReason `json:"vetoed,omitempty"`
	// Helps are the kinds of change that could help: node, queue, job, time, pod, volume.
	Helps []string `json:"helps,omitempty"`
}

// Shortage is a need for one resource that is not met. Quantities are as in [Amounts].
type Shortage struct {
	Resource  string `json:"resource"`
	Needed    string `json:"needed"`
	Available string `json:"available"`
	Missing   string `json:"missing"`
}

// NodeReason counts the nodes that refuse for one reason.
type NodeReason struct {
	Reason  string `json:"reason"`
	Nodes   int    `json:"nodes"`
	Example string `json:"example"` // the first of them by name
}

// Protected counts pods that may not be evicted, by the rule that protects them.
type Protected struct {
	Rule string `json:"rule"`
	Pods int    `json:"pods"`
}

// Bound says that a queue may not hold what a job still needs to start, in one resource.
type Bound struct {
	Queue    string `json:"queue"`
	Resource string `json:"resource"`
	// Limit is capability (what the queue may ever hold), or deserved (what it may hold while others claim the rest).
	Limit string `json:"limit"`
	// May is the bound, Holds what the queue and those below it hold, Needed what the job would add, Exceeds by how much that is
	// more than the bound.
	May     string `json:"may"`
	Holds   string `json:"holds"`
	Needed  string `json:"needed"`
	Exceeds string `json:"exceeds"`
}

// Refusals say which nodes refuse pods of one kind, and why.
type Refusals struct {
	// Pod is the first of its kind, Pods how many of the job's waiting pods are of it.
	Pod   string       `json:"pod"`
	Pods  int          `json:"pods"`
	Nodes []NodeReason `json:"nodes"`
	Short []Shortage   `json:"short,omitempty"`
}

// Candidates are the pods that an action could evict for a job as things stand, none of which need be enough.
type Candidates struct {
	Action string `json:"action"`
	// Scope says among which pods the action looks: between queues, between jobs of the queue, anywhere, or within the job.
	Scope string `json:"scope"`
	// MayLeave is how many could be evicted, Pods the first of them in the order in which they are asked.
	MayLeave  int         `json:"mayLeave"`
	Pods      []string    `json:"pods,omitempty"`
	Protected []Protected `json:"protected,omitempty"`
	// NotLookedAt is set if there are too many pods to look at between two cycles. The verdict has the numbers of the last cycle that
	// looked for victims.
	NotLookedAt bool `json:"notLookedAt,omitempty"`
}

// Plan is how room is being made for a job.
type Plan struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"`
	// Since is when it was decided. It is cancelled if it still waits at Deadline.
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	// Evictions is how many pods have to leave, Left how many of them are gone already, Leaving names those that are not.
	Evictions int      `json:"evictions"`
	Left      int      `json:"left"`
	Leaving   []string `json:"leaving,omitempty"`
	// Promised are the nodes that are kept for pods of the job.
	Promised []Placement `json:"promised,omitempty"`
}

// Placement is a pod and its node.
type Placement struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// Order is the place of a job among those that wait. Places count from 1.
type Order struct {
	// Place is that among the waiting jobs of its queue that are where it is, admitted or not, Of how many there are.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Next is the job before it, empty if it is the first.
	Next string `json:"next,omitempty"`
	// QueuePlace is that of its queue among the queues with waiting jobs, as things stand; it changes with every placement.
	QueuePlace int `json:"queuePlace"`
	Queues     int `json:"queues"`
}

// BackOff says that a job is not tried before a time.
type BackOff struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Job is where a job stands and why.
type Job struct {
	Job      string `json:"job"`      // namespace and name of its PodGroup
	Workload string `json:"workload"` // namespace and name of what a person calls the job
	Queue    string `json:"queue"`
	Phase    string `json:"phase"`
	Admitted bool   `json:"admitted"`
	Priority int32  `json:"priority"`
	// MinAvailable is how many pods must start together, Lacks how many more of them must be placed for that.
	MinAvailable int `json:"minAvailable"`
	Lacks        int `json:"lacks"`
	// Pods counts its pods by status, as Volcano spells it.
	Pods map[string]int `json:"pods"`
	// Holds is what its pods hold, or are promised; Requests what all of them request, placed or not.
	Holds    Amounts   `json:"holds"`
	Requests Amounts   `json:"requests"`
	Created  time.Time `json:"created"`
	// Verdict is why it waits, absent if nothing stands in its way.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Attempts is how many cycles have looked at it in vain.
	Attempts   uint64       `json:"attempts"`
	Bounds     []Bound      `json:"bounds,omitempty"`
	Refusals   []Refusals   `json:"refusals,omitempty"`
	Candidates []Candidates `json:"candidates,omitempty"`
	Plan       *Plan        `json:"plan,omitempty"`
	Order      *Order       `json:"order,omitempty"` // absent if it does not wait
	BackOffs   []BackOff    `json:"backOffs,omitempty"`
	// NotAsked are plugins that were not asked, since they ask another process.
	NotAsked []string `json:"notAsked,omitempty"`
}

// Pod is where a pod stands.
type Pod struct {
	Pod      string  `json:"pod"`
	Job      string  `json:"job,omitempty"`
	Queue    string  `json:"queue,omitempty"`
	Status   string  `json:"status"`
	Priority int32   `json:"priority"` // inside its job
	Requests Amounts `json:"requests"`
	// Node is where it is, or where room is promised to it (status Pipelined).
	Node    string     `json:"node,omitempty"`
	Verdict *Verdict   `json:"verdict,omitempty"` // of its job, while it waits
	Nodes   []Refusals `json:"refusals,omitempty"`
	// LeavesFor is the job that it is evicted for, by Plan; empty if it is not.
	LeavesFor string `json:"leavesFor,omitempty"`
	Plan      string `json:"plan,omitempty"`
	// Evictable says that it is marked as one that may be evicted; rules may protect it all the same.
	Evictable bool `json:"evictable"`
	// Refused is why the API server refused to evict it last.
	Refused  string   `json:"refused,omitempty"`
	NotAsked []string `json:"notAsked,omitempty"`
}

// Relation says whether one queue may take from another, and the rule that decides.
type Relation struct {
	Queue string `json:"queue"`
	May   bool   `json:"may"`
	Rule  string `json:"rule,omitempty"`
}

// Queue is what a queue holds and may hold. All amounts include the queues below it.
type Queue struct {
	Queue       string  `json:"queue"`
	Parent      string  `json:"parent,omitempty"`
	State       string  `json:"state"`
	Problem     string  `json:"problem,omitempty"`
	Priority    int32   `json:"priority"`
	Weight      int64   `json:"weight"`
	Reclaimable bool    `json:"reclaimable"`
	Holds       Amounts `json:"holds"`
	Requests    Amounts `json:"requests"`
	// KeptForAdmitted is what admitted jobs still lack of their minResources.
	KeptForAdmitted Amounts `json:"keptForAdmitted"`
	Deserved        Amounts `json:"deserved"`
	Guarantee       Amounts `json:"guarantee"`
	Capability      Amounts `json:"capability"`
	// Share is the largest ratio of what it holds to what it deserves; absent where it holds something of which it deserves
	// nothing, or no plugin gives shares.
	Share    *float64 `json:"share,omitempty"`
	Jobs     JobList  `json:"jobs"`
	Children []string `json:"children,omitempty"`
	// TakesFrom and GivesTo are the other queues without children, by name.
	TakesFrom []Relation `json:"takesFrom,omitempty"`
	GivesTo   []Relation `json:"givesTo,omitempty"`
}

// JobList counts the jobs of a queue itself, and names the first by namespace and name.
type JobList struct {
	// Pending wait for admission, Admitted wait for nodes or pods, Running have what they need to start.
	Pending  int      `json:"pending"`
	Admitted int      `json:"admitted"`
	Running  int      `json:"running"`
	Waiting  []string `json:"waiting,omitempty"` // of the first two
}

// Node is what a node has and who is there.
type Node struct {
	Node          string   `json:"node"`
	Known         bool     `json:"known"` // false if only pods name it
	Ready         bool     `json:"ready"`
	Unschedulable bool     `json:"unschedulable"`
	HyperNodes    []string `json:"hyperNodes,omitempty"` // the lowest tier first
	Allocatable   Amounts  `json:"allocatable"`
	// Used is what pods hold, Leaving the part of it that is on its way out, Promised what is kept for pods that are to come,
	// Idle what may be taken now.
	Used     Amounts   `json:"used"`
	Leaving  Amounts   `json:"leaving"`
	Promised Amounts   `json:"promised"`
	Idle     Amounts   `json:"idle"`
	PodCount int       `json:"podCount"`
	Pods     []NodePod `json:"pods,omitempty"`
}

// NodePod is a pod on a node.
type NodePod struct {
	Pod      string  `json:"pod"`
	Job      string  `json:"job,omitempty"`
	Queue    string  `json:"queue,omitempty"`
	Status   string  `json:"status"`
	Requests Amounts `json:"requests"`
}

// Victim is a pod that would be evicted, by which law and for what reason.
type Victim struct {
	Pod     string `json:"pod"`
	Node    string `json:"node"`
	Job     string `json:"job"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Outcome is what would become of a job.
type Outcome string

// The outcomes.
const (
	// Bound: as many of its pods as must start together find free room.
	OutcomeBound Outcome = "Bound"
	// Preempting: they find room if the victims leave.
	OutcomePreempting Outcome = "Preempting"
	// Waiting: it would be admitted and find no room.
	OutcomeWaiting Outcome = "Waiting"
	// NotAdmitted: it would wait for admission.
	OutcomeNotAdmitted Outcome = "NotAdmitted"
)

// Submission is what would happen if a PodGroup and its pods were submitted, as things stand.
type Submission struct {
	Job     string  `json:"job"`
	Outcome Outcome `json:"outcome"`
	// Verdict is why it would wait, absent if it would not.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Placements are the nodes of its pods: those that would be bound or, with Victims, those that would be kept for them.
	Placements []Placement `json:"placements,omitempty"`
	// Action is the one that would evict the victims.
	Action  string   `json:"action,omitempty"`
	Victims []Victim `json:"victims,omitempty"`
	// Unplaced is how many of its pods would have no node, beyond those that must start together too.
	Unplaced int `json:"unplaced"`
	// Searched is how many nodes the search for victims was confined to, those with most that could be evicted; 0 if it was not. More
	// room, or cheaper room, may be found on the others.
	Searched int      `json:"searched,omitempty"`
	NotAsked []string `json:"notAsked,omitempty"`
}
