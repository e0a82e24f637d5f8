package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/podspec"
	"hekla.sh/hekla/pkg/apis/termination"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Cause is the one reason for which a job waits: of several the one that must be put right first.
type Cause struct {
	// Code is a code of package verdict, or one of those below.
	Code string `json:"code"`
	// Message is a sentence with the numbers. Summary is without those that Short and Nodes have, "" if it would be the
	// same.
	Message string `json:"message"`
	Summary string `json:"summary,omitempty"`
	// Waits says that the job waits at all.
	Waits bool `json:"waits"`
	// Never says that the job cannot start as the cluster and its objects are now, however long it waits.
	Never bool `json:"never,omitempty"`
	// Where is the queue, node or object where it lacks something.
	Where string `json:"where,omitempty"`
	// Pod is a pod that is stopped, such as the first that has no place.
	Pod   string     `json:"pod,omitempty"`
	Short []Shortage `json:"short,omitempty"`
	// Nodes is why nodes refuse Pod, the most frequent reason first. Suitable counts those that could hold it if they
	// were empty.
	Nodes    []NodeReason `json:"nodes,omitempty"`
	Suitable int          `json:"suitable"`
	// Promised counts the nodes that would have room but for what is promised to other jobs, with the job as the
	// reason.
	Promised []NodeReason `json:"promised,omitempty"`
	// Protected counts by rule the pods that hold room and may not be evicted for the job.
	Protected []Protected `json:"protected,omitempty"`
}

// The codes in addition to the reasons of package verdict.
const (
	// Running: all pods that must start together have nodes, and no further pod waits.
	Running = "Running"
	// Finished: the job has ended.
	Finished = "Finished"
	// ForeignScheduler: the PodGroup belongs to another scheduler.
	ForeignScheduler = "ForeignScheduler"
	// NotTriedYet: the scheduler has not tried the job since it changed.
	NotTriedYet = survey.NotTriedYet
	// WorkloadsOff: it is a Workload, and the scheduler's configuration has none admitted.
	WorkloadsOff = conditions.WorkloadsOff
)

// OfAnotherScheduler is the cause of a job that belongs to another scheduler.
func OfAnotherScheduler(j *cluster.Job) Cause {
	return Cause{Code: ForeignScheduler, Message: "its PodGroup belongs to the scheduler " + j.Scheduler()}
}

// cause finds the dominant reason, with the taints and scheduling gates that are in the way. It names a pod that keeps
// the job from going on since it does not end.
func (m *Model) cause(s *framework.Session, j *cluster.Job, state *Job) Cause {
	c := m.dominant(s, j, state)
	if !j.IsForeign {
		overdue(j, s.Now, &c)
	}
	for i := range c.Nodes {
		if r := &c.Nodes[i]; r.Kind == string(verdict.NodeTaint) {
			r.Detail = m.taintsOf(r.Example, j)
		}
	}
	if gates := gatesOf(j); verdict.Code(c.Code) == verdict.SchedulingGated && len(gates) > 0 {
		c.add(": " + strings.Join(gates, ", "))
	}
	return c
}

// add says more in the sentences.
func (c *Cause) add(text string) {
	c.Message += text
	if c.Summary != "" {
		c.Summary += text
	}
}

// taintsOf lists the taints of a node that keep a pod of the job away.
func (m *Model) taintsOf(node string, j *cluster.Job) string {
	n := m.cluster.Node(node)
	if n == nil || n.Object == nil {
		return ""
	}
	for _, t := range j.Tasks() {
		if t.Status != cluster.Pending {
			continue
		}
		var words []string
		for _, taint := range podspec.Untolerated(n.Object.Spec.Taints, t.Pod.Spec.Tolerations) {
			words = append(words, taint.ToString())
		}
		if len(words) > 0 {
			return strings.Join(words, ", ")
		}
	}
	return ""
}

// gatesOf names the scheduling gates of the pods of a job, each once.
func gatesOf(j *cluster.Job) (names []string) {
	for _, t := range j.Tasks() {
		if t.Status != cluster.Gated {
			continue
		}
		for _, gate := range t.Pod.Spec.SchedulingGates {
			if !slices.Contains(names, gate.Name) && len(names) < MaxListed {
				names = append(names, gate.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// dominant is the reason alone.
func (m *Model) dominant(s *framework.Session, j *cluster.Job, state *Job) Cause {
	switch {
	case j.IsForeign:
		return OfAnotherScheduler(j)
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
	v = m.current(pending, v)
	code, sentence := v.Reason(), v.Sentence
	if v == j.Verdict {
		code, sentence = j.Reason()
	}
	c := Cause{Code: string(code), Message: sentence(), Waits: true, Where: whereOf(j, v), Short: shortages(v.Shortages), Nodes: nodeReasons(v.Nodes),
		Protected: protected(v.Spared), Never: v.IsNever()}
	if short := *v; code != verdict.FailedCreate && len(v.Shortages)+len(v.Nodes) > 0 && v.Impossible == nil {
		short.Shortages, short.Nodes = nil, nil
		c.Summary = short.Sentence()
	}
	sortReasons(c.Nodes)
	if code == verdict.FailedCreate {
		c.Where = "Job " + j.Name()
		return c
	}
	if i := v.Impossible; i != nil && code == i.Code() {
		c.impossible(i)
		return c
	}
	if len(pending) == 0 || v.Code.Precedes(verdict.TooLargeForQueue) {
		return c // the queue or the pods come first
	}
	c.Suitable = m.countSuitable(pending[0])
	if v.Code.LacksRoom() {
		m.refine(s, j, pending[0], state, &c)
	}
	return c
}

// whereOf names what a job lacks something of, with its kind.
func whereOf(j *cluster.Job, v *verdict.Verdict) string {
	switch {
	case v.Code == verdict.HeldUp, strings.Contains(v.Subject, " "):
		return v.Subject // a job, or it has its kind
	case v.Code == verdict.NotEnoughPodsOfTask && v.Subject != "":
		return "task " + v.Subject
	case v.Code == verdict.NamespaceBackingOff:
		return "namespace " + v.Subject
	case (v.Code == verdict.NotEnoughResources || v.Code == verdict.BackingOff) && v.Subject != "":
		return "pod " + v.Subject
	case v.Code == verdict.NotGuaranteed, v.Kinds()&(verdict.HelpQueue|verdict.HelpOwnQueue) != 0:
		return queueWord + cmp.Or(v.Subject, j.QueueName)
	}
	return v.Subject
}

// queueWord is what stands before the name of a queue.
const queueWord = "queue "

// overdue names a pod of a job that is being deleted and does not end, so that its successor cannot be made, or the job
// not end, restart or be resumed.
func overdue(j *cluster.Job, now time.Time, c *Cause) {
	pod, first := "", ""
	for _, t := range j.Tasks() {
		if t.Pod == nil {
			continue
		}
		why, _ := termination.Overdue(&t.Pod.ObjectMeta, t.Pod.NodeName, now)
		if key := t.Key().String(); why != "" && (pod == "" || key < pod) {
			pod, first = key, why
		}
	}
	if first == "" {
		return
	}
	c.add("; " + first)
	if c.Where == "" || c.Code == string(verdict.NotEnoughTasks) || c.Code == string(verdict.NotEnoughPodsOfTask) {
		c.Pod, c.Where = pod, "pod "+pod
	}
}

// current returns a verdict without what a change of the nodes has put right since the last cycle.
func (m *Model) current(pending []*cluster.Task, v *verdict.Verdict) *verdict.Verdict {
	if v.Impossible == nil || slices.ContainsFunc(cluster.OnePerClass(pending), func(t *cluster.Task) bool { return m.countSuitable(t) == 0 }) {
		return v
	}
	other := *v
	other.Impossible = nil
	return &other
}

// impossible says that no node could hold a pod even if it were empty.
func (c *Cause) impossible(i *verdict.Impossible) {
	c.Pod, c.Nodes, c.Message, c.Suitable = i.Pod, nodeReasons(i.Nodes), i.Sentence(), 0
	if c.Summary = fmt.Sprintf("no node could hold pod %s even if it were empty", i.Pod); len(i.Short) > 0 {
		c.Summary = fmt.Sprintf("pod %s requests more than any node has, even if it were empty", i.Pod)
	}
	sortReasons(c.Nodes)
	if len(i.Short) > 0 {
		c.Short = shortages(i.Short)
		return
	}
	if _, reason := verdict.Dominant(i.Nodes); reason.Example != "" {
		c.Where = "node " + reason.Example
	}
}

func sortReasons(reasons []NodeReason) {
	slices.SortStableFunc(reasons, func(a, b NodeReason) int { return cmp.Compare(b.Nodes, a.Nodes) })
}

func sentenceOfNodes(reasons []NodeReason) string {
	var parts []string
	for _, r := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s (such as %s)", r.Nodes, r.Reason, r.Example))
	}
	return strings.Join(parts, ", ")
}

// refine adds to a lack of room what a session shows: the pods that could leave, and what is promised to others.
func (m *Model) refine(s *framework.Session, j *cluster.Job, t *cluster.Task, state *Job, c *Cause) {
	c.Pod = t.Key().String()
	if len(c.Nodes) == 0 && len(state.Refusals) > 0 {
		c.Nodes, c.Pod = state.Refusals[0].Nodes, state.Refusals[0].Pod
	}
	if len(c.Short) == 0 && len(state.Refusals) > 0 {
		c.Short = state.Refusals[0].Short
	}
	c.Promised = m.promisedTo(s, j, t)
	spared := []Protected(nil)
	for _, found := range state.Candidates {
		spared = append(spared, found.Protected...)
	}
	if len(spared) > 0 {
		c.Protected = spared
	}
	switch verdict.Code(c.Code) {
	case verdict.NodeTaints, verdict.NodeMismatch, verdict.PodAffinity, verdict.VolumeUnavailable, verdict.DeviceUnavailable:
		c.Summary = fmt.Sprintf("no node accepts pod %s", c.Pod)
		c.Message = c.Summary + ": " + sentenceOfNodes(c.Nodes)
	case verdict.PromisedToOthers:
		if len(c.Promised) > 0 {
			c.Summary = ""
			c.Message = fmt.Sprintf("%s; but for promises there would be room: %s", c.Message, sentenceOfNodes(c.Promised))
		}
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
			if first := holder[promised.Node]; first == nil || p.Job.ID.Compare(first.ID) < 0 {
				holder[promised.Node] = p.Job
			}
		}
	}
	var all []NodeReason
	for _, n := range m.cluster.Nodes() {
		if other := holder[n]; other != nil && n.Object != nil && framework.FitsWithoutPromises(n, t.Request()) && s.Outlook.CanOpen(t, n) {
			all = countPromised(all, other.Name(), n.Name)
		}
	}
	sortReasons(all)
	return all
}

func countPromised(reasons []NodeReason, job, node string) []NodeReason {
	for i := range reasons {
		if reasons[i].Job == job {
			reasons[i].Nodes++
			return reasons
		}
	}
	return append(reasons, NodeReason{Reason: PromisedTo(job), Nodes: 1, Example: node, Job: job})
}

// PromisedTo says of a node to which job its room is promised.
func PromisedTo(job string) string { return "promised to " + job }
