package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/explain/order"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/pdb"
	"hekla.sh/hekla/pkg/plugins/tdm"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Cause is the one reason for which a job waits: of several the one that must be put right first.
type Cause struct {
	// Code is a code of package verdict, or one of those below.
	Code string `json:"code"`
	// Message is a sentence with the numbers.
	Message string `json:"message"`
	// Waits says that the job waits at all.
	Waits bool `json:"waits"`
	// Never says that the job cannot start as the cluster and its objects are now, however long it waits.
	Never bool `json:"never,omitempty"`
	// Where is the queue, node or object where it lacks something.
	Where string `json:"where,omitempty"`
	// Pod is a pod that is stopped, such as the first that has no place.
	Pod   string     `json:"pod,omitempty"`
	Short []Shortage `json:"short,omitempty"`
	// Nodes is why nodes refuse Pod, the most frequent reason first. Suitable counts those that could hold it if they were empty.
	Nodes    []NodeReason `json:"nodes,omitempty"`
	Suitable int          `json:"suitable"`
	// Promised counts the nodes that would have room but for what is promised to other jobs, with the job as the reason.
	Promised []NodeReason `json:"promised,omitempty"`
	// Protected counts by rule the pods that hold room and may not be evicted for the job.
	Protected []Protected `json:"protected,omitempty"`
}

// The codes beside those of package verdict. The first say that a job does not wait; the others say more precisely what NotEnoughResources
// means for it.
const (
	// Running: all pods that must start together have nodes, and no further pod waits.
	Running = "Running"
	// Finished: the job has ended.
	Finished = "Finished"
	// ForeignScheduler: the PodGroup belongs to another scheduler.
	ForeignScheduler = "ForeignScheduler"
	// FailedCreate: the API server refuses the pods, such as for a quota of the namespace. The controllers have written so to the PodGroup.
	FailedCreate = "FailedCreate"
	// NotTriedYet: the scheduler has not tried the job since it changed.
	NotTriedYet = "NotTriedYet"
	// WorkloadsOff: it is a Workload, and the scheduler's configuration has none admitted.
	WorkloadsOff = "WorkloadsOff"
	// TooLargeForAnyNode: one of its pods requests more than any node has even if it were empty.
	TooLargeForAnyNode = "TooLargeForAnyNode"
	// NodeTaints: all nodes that have not refused for another reason have taints that the pods do not tolerate.
	NodeTaints = "NodeTaints"
	// NodeMismatch: no node has the labels that selectors or affinities of the pods ask for, nodes are cordoned, or a plugin keeps the pods
	// away from them.
	NodeMismatch = "NodeMismatch"
	// PodAffinity: pods on the nodes, or their absence, keep the pods away, also by host ports that they use.
	PodAffinity = "PodAffinity"
	// VolumeUnavailable: a volume is missing, or can be used on no node with room.
	VolumeUnavailable = "VolumeUnavailable"
	// DeviceUnavailable: a device of a ResourceClaim, or the claim, is missing.
	DeviceUnavailable = "DeviceUnavailable"
	// GangShort: some pods have a place, and fewer than must start together.
	GangShort = "GangShort"
	// PromisedToOthers: nodes would have room but for what is promised to jobs whose victims are leaving.
	PromisedToOthers = "PromisedToOthers"
	// VictimsOptedOut: the pods that hold the room could be evicted for the job if they were marked as preemptable.
	VictimsOptedOut = "VictimsOptedOut"
	// BudgetSpent: the same, and disruption budgets protect them.
	BudgetSpent = "BudgetSpent"
)

// Refinements are the codes into which NotEnoughResources is divided, in the order in which they are put right.
var Refinements = []string{TooLargeForAnyNode, NodeTaints, NodeMismatch, PodAffinity, VolumeUnavailable, DeviceUnavailable, GangShort, PromisedToOthers,
	VictimsOptedOut, BudgetSpent}

// maxAmount is above all amounts that a node can have; devices count as more.
const maxAmount = math.MaxInt64 / 8

func dim(d int) resources.Dim { return resources.Dim(d) }

// cause finds the dominant reason.
func (m *Model) cause(s *framework.Session, j *cluster.Job, state *Job) Cause {
	switch {
	case j.IsForeign:
		return Cause{Code: ForeignScheduler, Message: "its PodGroup belongs to the scheduler " + j.Scheduler()}
	case j.Over():
		return Cause{Code: Finished, Message: "all its pods have ended"}
	case state.Verdict == nil && !order.Waits(j) && j.Lacks() <= 0 && j.Queue != nil:
		return Cause{Code: Running, Message: "all pods that must start together have nodes"}
	}
	pending := s.Pending(j)
	v := j.Verdict
	if state.Verdict == nil || v == nil {
		v = s.Validate(j)
	}
	if v == nil {
		return Cause{Code: NotTriedYet, Message: "the scheduler has not tried it since it changed", Waits: true}
	}
	c := Cause{Code: string(v.Code), Message: v.Sentence(), Waits: true, Where: v.Subject, Short: shortages(v.Shortages), Nodes: nodeReasons(v.Nodes),
		Protected: protected(v.Spared), Never: slices.Contains(never, v.Code)}
	sortReasons(c.Nodes)
	if refused := podsRefused(j, v); refused != "" {
		c.Code, c.Message, c.Where = FailedCreate, refused, "Job "+j.Name()
		return c
	}
	if c.Where == "" && v.Kinds()&(verdict.HelpQueue|verdict.HelpOwnQueue) != 0 {
		c.Where = j.QueueName
	}
	if v.Looked && slices.Contains(full, v.Code) {
		c.protectedVictims(0)
	}
	if j.IsPendingAdmission() && slices.Contains(full, v.Code) {
		exceedsCluster(m, j, &c)
	}
	if len(pending) == 0 || v.Code.Precedes(verdict.TooLargeForQueue) {
		return c // the queue or the pods come first
	}
	for _, t := range cluster.OnePerClass(pending) {
		if m.isImpossible(s, t, &c) {
			return c
		}
	}
	if v.Code.LacksRoom() {
		m.refine(s, j, pending[0], v, state, &c)
	}
	return c
}

// podsRefused returns why the API server refuses the pods that a job lacks, "" if it does not, or the job waits for something else.
func podsRefused(j *cluster.Job, v *verdict.Verdict) string {
	if j.Group == nil || v == nil || !slices.Contains(lacksPods, v.Code) {
		return ""
	}
	return j.Group.Annotations[schedulingv1beta1.PodsRefusedKey]
}

// lacksPods are the codes of jobs without enough pods.
var lacksPods = []verdict.Code{verdict.NotEnoughTasks, verdict.NotEnoughPodsOfTask, verdict.PodsMissing}

// never are the codes of what time does not mend.
var never = []verdict.Code{verdict.QueueNotFound, verdict.QueueInvalid, verdict.QueueNotLeaf, verdict.TooLargeForQueue, verdict.Quarantined}

// full are the codes of a job that would be admitted if others left.
var full = []verdict.Code{verdict.OverCluster, verdict.OverCommitted, verdict.OverShare}

// exceedsCluster says so of a job that requests more than all nodes together have, also those that are out of use now.
func exceedsCluster(m *Model, j *cluster.Job, c *Cause) {
	for d, need := range j.MinResources {
		have := m.cluster.Totals.Size(dim(d)) + m.cluster.Tainted.Size(dim(d)) + m.cluster.Unusable.Size(dim(d))
		if need > have {
			name := m.cluster.Resources.Name(dim(d))
			c.Never = true
			c.Message += fmt.Sprintf("; it requests %s %s in all, and all nodes together have %s", resources.Format(name, need), name, resources.Format(name, have))
			return
		}
	}
}

// protectedVictims says that victims are there and protected, if no pod may leave and the owners of some could change that.
func (c *Cause) protectedVictims(leaving int) {
	optedOut, budgeted := 0, 0
	for _, p := range c.Protected {
		switch p.Rule {
		case rules.NotMarked, rules.MarkedFalse:
			optedOut += p.Pods
		case pdb.Spent, tdm.BudgetSpent:
			budgeted += p.Pods
		}
	}
	switch {
	case leaving > 0:
	case optedOut > 0 && optedOut >= budgeted:
		c.Code = VictimsOptedOut
	case budgeted > 0:
		c.Code = BudgetSpent
	}
}

func sortReasons(reasons []NodeReason) {
	slices.SortStableFunc(reasons, func(a, b NodeReason) int { return cmp.Compare(b.Nodes, a.Nodes) })
}

// isImpossible reports whether no node could hold a task if it were empty, and says why.
func (m *Model) isImpossible(s *framework.Session, t *cluster.Task, c *Cause) bool {
	if c.Suitable = suitable(m, t); c.Suitable > 0 {
		return false
	}
	nodes, _ := s.Placer.Explain(t)
	c.Nodes, c.Pod = nodeReasons(nodes), t.Key().String()
	sortReasons(c.Nodes)
	if short := m.largest(t); len(short) > 0 {
		c.Code, c.Short, c.Never = TooLargeForAnyNode, short, true
		c.Message = fmt.Sprintf("pod %s requests more than any node has, even if it were empty: %s", c.Pod, sentenceOf(short))
		return true
	}
	code, reason := dominant(c.Nodes)
	if code == "" {
		code = TooLargeForAnyNode
		c.Message = fmt.Sprintf("no node could hold pod %s even if it were empty: those that it may use are too small", c.Pod)
	} else {
		c.Message = fmt.Sprintf("no node could hold pod %s even if it were empty: %s", c.Pod, sentenceOfNodes(c.Nodes))
		c.Where = reason.Example
	}
	c.Code, c.Never = code, code != VolumeUnavailable && code != DeviceUnavailable
	return true
}

func sentenceOf(short []Shortage) string {
	var parts []string
	for _, s := range short {
		parts = append(parts, fmt.Sprintf("%s: needs %s, the largest node has %s, short by %s", s.Resource, s.Needed, s.Available, s.Missing))
	}
	return strings.Join(parts, ", ")
}

func sentenceOfNodes(reasons []NodeReason) string {
	var parts []string
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s (such as %s)", r.Nodes, r.Reason, r.Example))
	}
	return strings.Join(parts, ", ")
}

// codes are the causes that a node may be by what about it refuses. Room is none: that is refined further.
var codes = map[verdict.NodeKind]string{
	verdict.NodeState: NodeMismatch, verdict.NodeTaint: NodeTaints, verdict.NodeLabels: NodeMismatch, verdict.NodePods: PodAffinity, verdict.NodePorts: PodAffinity,
	verdict.NodeVolume: VolumeUnavailable, verdict.NodeDevice: DeviceUnavailable, verdict.NodePlugin: NodeMismatch,
}

// code returns the cause that the nodes of a reason are, "" if it is a lack of room.
func (r NodeReason) code() string { return codes[verdict.NodeKind(r.Kind)] }

// dominant returns the code for which most nodes refuse that do not just lack room, and its most frequent reason. Nodes that are out of use, such
// as cordoned ones, count only if no others refuse so: what the job lacks the others say.
func dominant(reasons []NodeReason) (code string, of NodeReason) {
	if inUse := slices.DeleteFunc(slices.Clone(reasons), NodeReason.isOutOfUse); len(inUse) > 0 {
		reasons = inUse
	}
	counts := map[string]int{}
	for _, r := range reasons {
		if code := r.code(); code != "" {
			counts[code] += r.Nodes
		}
	}
	for _, candidate := range Refinements {
		if counts[candidate] > counts[code] {
			code = candidate
		}
	}
	for _, r := range reasons {
		if r.code() == code && code != "" && r.Nodes > of.Nodes {
			of = r
		}
	}
	return code, of
}

// isOutOfUse reports whether the nodes take no pods at all: they are not ready, cordoned, or unknown.
func (r NodeReason) isOutOfUse() bool { return r.Kind == string(verdict.NodeState) }

// refine says more precisely what a lack of room means.
func (m *Model) refine(s *framework.Session, j *cluster.Job, t *cluster.Task, v *verdict.Verdict, state *Job, c *Cause) {
	c.Pod = t.Key().String()
	if len(c.Nodes) == 0 && len(state.Refusals) > 0 {
		c.Nodes, c.Pod = state.Refusals[0].Nodes, state.Refusals[0].Pod
	}
	if len(c.Short) == 0 && len(state.Refusals) > 0 {
		c.Short = state.Refusals[0].Short
	}
	c.Promised = m.promisedTo(s, j, t)
	leaving, spared := 0, []Protected(nil)
	for _, found := range state.Candidates {
		leaving += found.MayLeave
		spared = append(spared, found.Protected...)
	}
	if len(spared) > 0 {
		c.Protected = spared
	}
	isRoom := slices.ContainsFunc(c.Nodes, func(r NodeReason) bool { return r.code() == "" })
	code, _ := dominant(c.Nodes)
	switch {
	case v.Code != verdict.NotEnoughResources: // the right to evict comes first
	case !isRoom && code != "":
		c.Code = code
		c.Message = fmt.Sprintf("no node accepts pod %s: %s", c.Pod, sentenceOfNodes(c.Nodes))
	case v.Placed > 0 && v.Wanted > 1:
		c.Code = GangShort
	case len(c.Promised) > 0:
		c.Code = PromisedToOthers
		c.Message = fmt.Sprintf("%s; but for promises there would be room: %s", c.Message, sentenceOfNodes(c.Promised))
	default:
		c.protectedVictims(leaving)
	}
}

// promisedTo counts the nodes on which a task would fit but for what is promised to other jobs.
func (m *Model) promisedTo(s *framework.Session, j *cluster.Job, t *cluster.Task) []NodeReason {
	if m.cluster.Promised.IsZero() {
		return nil
	}
	holder := map[*cluster.Node]*cluster.Job{}
	for _, p := range m.cluster.Plans().All() {
		if p.Job == nil || p.Job == j {
			continue
		}
		for _, promised := range p.Promised() {
			if first := holder[promised.Node]; first == nil || cluster.CompareNames(p.Job.ID, first.ID) < 0 {
				holder[promised.Node] = p.Job
			}
		}
	}
	var all []NodeReason
	for _, n := range m.cluster.Nodes() {
		if other := holder[n]; other != nil && n.Object != nil && fitsBesidePromises(n, t.Request()) && s.Outlook.CanOpen(t, n) {
			all = countNode(all, "promised to "+other.Name(), n.Name)
		}
	}
	sortReasons(all)
	return all
}

// fitsBesidePromises reports whether a request is free on a node now, or will be once leaving pods are gone, without promises.
func fitsBesidePromises(n *cluster.Node, request resources.Vector) bool {
	for d, need := range request {
		if need > 0 && need > n.Future(dim(d))+n.Promised.At(dim(d)) {
			return false
		}
	}
	return true
}

func countNode(reasons []NodeReason, reason, node string) []NodeReason {
	for i := range reasons {
		if reasons[i].Reason == reason {
			reasons[i].Nodes++
			return reasons
		}
	}
	return append(reasons, NodeReason{Reason: reason, Nodes: 1, Example: node})
}
