package explain

import (
	"time"

	"hekla.sh/hekla/internal/explain/mistakes"
)

// Amounts are quantities by resource name, in the notation of Kubernetes: cpu in cores, memory in bytes, others by
// number. A resource with an amount of zero is left out.
type Amounts map[string]string

// Verdict is why a job waits.
type Verdict struct {
	Code string `json:"code"`
	// Message is a sentence for the user, with every number.
	Message string `json:"message"`
	// Subject is the queue, task or pod that is the cause; empty if it is the job itself.
	Subject string `json:"subject,omitempty"`
	// Placed is how many pods had a place in the last attempt, Wanted is the minimum.
	Placed int `json:"placed,omitempty"`
	Wanted int `json:"wanted,omitempty"`
	// Short is what is short on suitable nodes, or in the queue.
	Short []Shortage `json:"short,omitempty"`
	// Nodes counts the nodes that refuse, by reason.
	Nodes []NodeReason `json:"nodes,omitempty"`
	// Protected counts the pods that may not be evicted for the job, by rule.
	Protected []Protected `json:"protected,omitempty"`
	// Vetoed counts the nodes that evictions would open and that plugins veto.
	Vetoed []NodeReason `json:"vetoed,omitempty"`
	// Helps are the kinds of change that may help: node, queue, job, time, pod, volume.
	Helps []string `json:"helps,omitempty"`
}

// Shortage is a lack of one resource. Quantities are as in [Amounts].
type Shortage struct {
	Resource  string `json:"resource"`
	Needed    string `json:"needed"`
	Available string `json:"available"`
	Missing   string `json:"missing"`
}

// NodeReason counts the nodes that refuse for one reason.
type NodeReason struct {
	// Kind is what about the nodes refuses: Room, State, Taint, Labels, Pods, Ports, Volume, Device or Plugin; empty
	// for promised room.
	Kind    string `json:"kind,omitempty"`
	Reason  string `json:"reason"`
	Nodes   int    `json:"nodes"`
	Example string `json:"example"` // the first by name
	// Detail says of the example what the reason leaves out: the taints that the pods do not tolerate.
	Detail string `json:"detail,omitempty"`
	// Job is the one to which room is promised.
	Job string `json:"job,omitempty"`
}

// Protected counts pods that may not be evicted, by what protects them.
type Protected struct {
	Protection
	Pods int `json:"pods"`
}

// Protection is what protects pods. Programs read its fields, people Rule.
type Protection struct {
	// Rule says in words what protects them.
	Rule string `json:"rule,omitempty"`
	// Kind is one of [verdict.ProtectionKind]: a rule such as NotMarked, or for an objection of a plugin Plugin, Mark
	// or Budget.
	Kind string `json:"kind,omitempty"`
	// Number is that of the rule, such as P2.
	Number string `json:"number,omitempty"`
	// Plugin objects. It is empty for a rule.
	Plugin string `json:"plugin,omitempty"`
}

// Bound says that the limit of a queue leaves no room for what a job still needs to start, in one resource.
type Bound struct {
	Queue    string `json:"queue"`
	Resource string `json:"resource"`
	// Limit is capability (the upper limit of the queue), or deserved (what it may hold while others claim the rest).
	Limit string `json:"limit"`
	// May is the limit, Holds what the queue and those below it hold, and Needed what the job would add. Kept is what a
	// job that waits for admission finds kept for admitted ones besides, "" if nothing is. Exceeds is by how much the
	// sum is above the limit.
	May     string `json:"may"`
	Holds   string `json:"holds"`
	Kept    string `json:"kept,omitempty"`
	Needed  string `json:"needed"`
	Exceeds string `json:"exceeds"`
}

// Refusals say which nodes refuse pods of one class, and why.
type Refusals struct {
	// Pod is the first of the class, Pods the number of the job's pending pods in it.
	Pod   string       `json:"pod"`
	Pods  int          `json:"pods"`
	Nodes []NodeReason `json:"nodes"`
	Short []Shortage   `json:"short,omitempty"`
}

// Candidates are the pods that an action could evict for a job now. They need not be enough.
type Candidates struct {
	Action string `json:"action"`
	// Scope says which pods the action looks at: between queues, between jobs of the queue, anywhere, or within the
	// job.
	Scope string `json:"scope"`
	// MayLeave is the number of pods that could be evicted. Pods names the first of them in the order in which they are
	// tried.
	MayLeave  int         `json:"mayLeave"`
	Pods      []string    `json:"pods,omitempty"`
	Protected []Protected `json:"protected,omitempty"`
	// NotLookedAt is set if there are too many pods to look at between two cycles. The verdict has the numbers of the
	// last cycle that looked for victims.
	NotLookedAt bool `json:"notLookedAt,omitempty"`
}

// Plan is the plan in force for a job.
type Plan struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Rule   string `json:"rule,omitempty"`
	// Since is when it was made. It is cancelled if it is not fulfilled at Deadline.
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	// Evictions is the number of its victims, Left how many of them are gone already. Leaving names the others.
	Evictions int      `json:"evictions"`
	Left      int      `json:"left"`
	Leaving   []string `json:"leaving,omitempty"`
	// Promised are the nominated nodes of the job's pods.
	Promised []Placement `json:"promised,omitempty"`
}

// Placement is a pod and its node.
type Placement struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// Order is the place of a job among the waiting jobs. Places count from 1. If more than 500 jobs wait it may be some
// seconds old.
type Order struct {
	// Place is the place among the Of jobs of its queue that wait like it, for admission or for nodes.
	Place int `json:"place"`
	Of    int `json:"of"`
	// Next is the job before it, empty if it is the first.
	Next string `json:"next,omitempty"`
	// QueuePlace is the place of its queue among the queues with waiting jobs. It changes with every placement.
	QueuePlace int `json:"queuePlace"`
	Queues     int `json:"queues"`
}

// BackOff says that a job is not tried before a time.
type BackOff struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Job is the state of a job.
type Job struct {
	Job      string `json:"job"`      // namespace and name of the PodGroup
	Workload string `json:"workload"` // namespace and name of what users call the job
	Queue    string `json:"queue"`
	Phase    string `json:"phase"`
	Admitted bool   `json:"admitted"`
	Priority int32  `json:"priority"`
	// MinAvailable is how many pods must start together, Lacks how many of them have no node yet.
	MinAvailable int `json:"minAvailable"`
	Lacks        int `json:"lacks"`
	// Pods counts its pods by status, in Volcano's spelling.
	Pods map[string]int `json:"pods"`
	// Tasks are the first of its pods, by name.
	Tasks []JobPod `json:"tasks,omitempty"`
	// Holds is the sum of its pods with a node or nominated node, Requests of all its pods.
	Holds    Amounts   `json:"holds"`
	Requests Amounts   `json:"requests"`
	Created  time.Time `json:"created"`
	// Verdict is why it waits, absent if it does not.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Attempts is how many cycles have tried it without success.
	Attempts   uint64       `json:"attempts"`
	Bounds     []Bound      `json:"bounds,omitempty"`
	Refusals   []Refusals   `json:"refusals,omitempty"`
	Candidates []Candidates `json:"candidates,omitempty"`
	Plan       *Plan        `json:"plan,omitempty"`
	Order      *Order       `json:"order,omitempty"` // absent if it does not wait
	BackOffs   []BackOff    `json:"backOffs,omitempty"`
	// NotAsked names plugins that were left out because they ask another process.
	NotAsked []string `json:"notAsked,omitempty"`
}

// JobPod is a pod in the list of a job.
type JobPod struct {
	Pod      string  `json:"pod"`
	Status   string  `json:"status"`
	Node     string  `json:"node,omitempty"` // or its nominated node (status Pipelined)
	Requests Amounts `json:"requests"`
}

// Pod is the state of a pod.
type Pod struct {
	Pod      string  `json:"pod"`
	Job      string  `json:"job,omitempty"`
	Queue    string  `json:"queue,omitempty"`
	Status   string  `json:"status"`
	Priority int32   `json:"priority"` // inside its job
	Requests Amounts `json:"requests"`
	// Node is its node, or its nominated node (status Pipelined).
	Node    string     `json:"node,omitempty"`
	Verdict *Verdict   `json:"verdict,omitempty"` // of its job, while it waits
	Nodes   []Refusals `json:"refusals,omitempty"`
	// Reason and Message are what the scheduler says in its condition PodScheduled, "" if that is nothing.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LeavesFor is the job for which it is evicted, by Plan; empty if it is not.
	LeavesFor string `json:"leavesFor,omitempty"`
	Plan      string `json:"plan,omitempty"`
	// Evictable says that it is marked as preemptable. Rules may still protect it.
	Evictable bool `json:"evictable"`
	// Refused is why the API server last refused to evict it.
	Refused  string   `json:"refused,omitempty"`
	NotAsked []string `json:"notAsked,omitempty"`
}

// Relation says whether one queue may reclaim from another, and which rule decides that.
type Relation struct {
	Queue string `json:"queue"`
	May   bool   `json:"may"`
	Protection
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
	// KeptForAdmitted is what admitted jobs lack of their minResources.
	KeptForAdmitted Amounts `json:"keptForAdmitted"`
	Deserved        Amounts `json:"deserved"`
	Guarantee       Amounts `json:"guarantee"`
	Capability      Amounts `json:"capability"`
	// Share is the largest ratio of what the queue holds to what it deserves. It is absent if no plugin gives shares,
	// or if the queue deserves nothing of something that it holds.
	Share    *float64 `json:"share,omitempty"`
	Jobs     JobList  `json:"jobs"`
	Children []string `json:"children,omitempty"`
	// TakesFrom and GivesTo are the other queues without children, by name.
	TakesFrom []Relation `json:"takesFrom,omitempty"`
	GivesTo   []Relation `json:"givesTo,omitempty"`
}

// JobList counts the queue's own jobs, and lists the first, each by namespace and the name that users know.
type JobList struct {
	// Pending are pending admission, Admitted wait for nodes or pods, Running have what they need to start.
	Pending  int      `json:"pending"`
	Admitted int      `json:"admitted"`
	Running  int      `json:"running"`
	Waiting  []string `json:"waiting,omitempty"` // pending or admitted
}

// Node is what a node has and which pods are on it.
type Node struct {
	Node          string   `json:"node"`
	Known         bool     `json:"known"` // false if the Node object is missing and only pods name it
	Ready         bool     `json:"ready"`
	Unschedulable bool     `json:"unschedulable"`
	HyperNodes    []string `json:"hyperNodes,omitempty"` // the lowest tier first
	Allocatable   Amounts  `json:"allocatable"`
	// Used is what pods hold, and Leaving the part of it held by terminating or evicted pods. Promised is kept for
	// nominated pods. Idle is free now.
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

// Victim is a pod that would be evicted, with the rule and a message.
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
	// Bound: the pods of its minimum would be placed on free nodes.
	OutcomeBound Outcome = "Bound"
	// Preempting: they would be placed after evictions.
	OutcomePreempting Outcome = "Preempting"
	// Waiting: it would be admitted, but not placed.
	OutcomeWaiting Outcome = "Waiting"
	// NotAdmitted: it would be pending admission.
	OutcomeNotAdmitted Outcome = "NotAdmitted"
)

// Submission is what would happen if a PodGroup and its pods were submitted now.
type Submission struct {
	Job     string  `json:"job"`
	Outcome Outcome `json:"outcome"`
	// Verdict is why it would wait, absent if it would not.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Order is the place that it would have, absent if it would not wait, or its queue does not exist.
	Order *Order `json:"order,omitempty"`
	// Mistakes are names in the job that nothing in the cluster has, if it would wait.
	Mistakes []mistakes.Mistake `json:"mistakes,omitempty"`
	// Placements are the nodes of its pods: where they would be bound or, with Victims, nominated.
	Placements []Placement `json:"placements,omitempty"`
	// Action is the action that would evict the victims.
	Action  string   `json:"action,omitempty"`
	Victims []Victim `json:"victims,omitempty"`
	// Unplaced is how many of its pods would have no node, also of its surplus.
	Unplaced int `json:"unplaced"`
	// Searched is the number of nodes to which the search for victims was limited, those with most evictable pods; 0 if
	// it was not. Other nodes might be better.
	Searched int      `json:"searched,omitempty"`
	NotAsked []string `json:"notAsked,omitempty"`
}
