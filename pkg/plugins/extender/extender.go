package extender

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/extender/callout"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// anyHelp is what may change an answer whose reasons are unknown: any event, and the passing of time.
const anyHelp = verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpTime

// Why pods may not be evicted.
const (
	keeps    = "it does not let them go"
	isSilent = "it gives no answer"
)

// longestText is how many bytes of an extender's text are shown.
const longestText = 200

// asker sends questions to the extender.
type asker interface {
	Call(verb string, question, answer any) error
}

type plugin struct {
	extender  asker
	verbs     map[string]string // names of the verbs, by argument
	ignorable bool
	managed   []corev1.ResourceName

	cluster *model.Cluster
	dims    []resources.Dim // managed resources that some node or pod has
	silent  error           // set once a question of this session had no answer
	moved   []*cluster.Task // tasks that have moved in the session, each once
	told    map[*cluster.Task]bool
	unknown []string // nodes about which there was no answer
}

func (*plugin) Name() string { return Name }

// AsksOver implements [framework.RemotePlugin].
func (*plugin) AsksOver() string { return "HTTP" }

func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster, p.silent = s.Cluster, nil
	p.tell()
	p.moved, p.told = p.moved[:0], map[*cluster.Task]bool{}
	// An answer about a node is kept until the node changes. Without an answer, the node must be asked about again.
	slices.Sort(p.unknown)
	for _, name := range slices.Compact(p.unknown) {
		if n := s.Cluster.Node(name); n != nil {
			s.Cluster.Touch(n)
		}
	}
	p.unknown = p.unknown[:0]
	p.dims = p.dims[:0]
	for _, name := range p.managed {
		if d, ok := s.Cluster.Resources.Find(name); ok {
			p.dims = append(p.dims, d)
		}
	}
	if p.has(onSessionOpen) {
		// The extender decides what it does with this. An error will show at the next question.
		_ = p.ask(onSessionOpen, p.session(), nil)
	}
}

func (p *plugin) session() aboutSession {
	s := aboutSession{Jobs: map[string]job{}, Nodes: map[string]node{}, Queues: map[string]queue{}}
	for _, j := range p.cluster.Waiting() {
		s.Jobs[j.ID.String()] = p.job(j)
	}
	for _, n := range p.cluster.Nodes() {
		if n.Object != nil {
			s.Nodes[n.Name] = p.node(n)
			s.NodeList = append(s.NodeList, n.Name)
		}
	}
	for _, q := range p.cluster.Queues() {
		s.Queues[q.Name] = p.queue(q)
	}
	return s
}

func (p *plugin) has(verb string) bool { return p.verbs[verb] != "" }

// ask sends a question, unless an earlier one of the session had no answer.
func (p *plugin) ask(verb string, question, answer any) error {
	if p.silent != nil {
		return p.silent
	}
	err := p.extender.Call(p.verbs[verb], question, answer)
	if errors.Is(err, callout.ErrSilent) {
		p.silent = err
	}
	return err
}

// TaskMoved notes a task that is to be reported to the extender.
func (p *plugin) TaskMoved(t *cluster.Task) {
	if !p.has(allocateFunc) && !p.has(deallocateFunc) {
		return
	}
	if _, known := p.told[t]; !known {
		// A task that moves for the first time in the session counted before if it does not count now, and the other
		// way round.
		p.told[t] = !t.Status.Counts()
		p.moved = append(p.moved, t)
	}
}

// tell reports the tasks that have ceased to count since the last report, then those that have begun to. So what is
// freed is reported before it is used.
func (p *plugin) tell() {
	p.tellOf(false, deallocateFunc)
	p.tellOf(true, allocateFunc)
}

func (p *plugin) tellOf(counting bool, verb string) {
	for _, t := range p.moved {
		if t.Status.Counts() != counting || p.told[t] == counting {
			continue
		}
		p.told[t] = counting
		if p.has(verb) {
			_ = p.ask(verb, aboutTask{Task: p.taskAndPod(t)}, nil)
		}
	}
}

// manages reports whether the extender is asked about pods with this request.
func (p *plugin) manages(request resources.Vector) bool {
	return len(p.managed) == 0 || slices.ContainsFunc(p.dims, func(d resources.Dim) bool { return request.At(d) > 0 })
}

// VetoNode asks about the node that would be chosen.
func (p *plugin) VetoNode(t *cluster.Task, n *cluster.Node) string {
	if !p.has(predicate) || !p.manages(t.Request()) {
		return ""
	}
	p.tell()
	var answer ofNode
	if err := p.ask(predicate, aboutNode{Task: p.taskAndPod(t), Node: p.nodeAndTasks(n)}, &answer); err != nil {
		p.unknown = append(p.unknown, n.Name)
		if p.ignorable {
			return ""
		}
		return "node(s) were not agreed to by the extender: " + err.Error()
	}
	text := answer.Status
	if text == "" {
		text = answer.ErrorMessage
	}
	if text == "" {
		return ""
	}
	return "node(s) were refused by the extender: " + strings.ToValidUTF8(text[:min(len(text), longestText)], "")
}

// VotePreempt asks about victims for a preemptor of their queue.
func (p *plugin) VotePreempt(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(preemptable, d)
}

// VoteReclaim is the same between queues.
func (p *plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return p.vote(reclaimable, d)
}

func (p *plugin) vote(verb string, d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if !p.has(verb) {
		return framework.Abstain, verdict.Protection{}
	}
	wanted := d.Preemptor.MinResources
	if d.For != nil {
		wanted = d.For.Request()
	}
	if !p.manages(wanted) {
		return framework.Abstain, verdict.Protection{}
	}
	p.tell()
	question := aboutVictims{Evictor: p.preemptor(d)}
	for _, t := range d.Victims {
		question.Evictees = append(question.Evictees, p.taskAndPod(t))
	}
	var answer ofVictims
	if err := p.ask(verb, question, &answer); err != nil {
		if p.ignorable {
			return framework.Abstain, verdict.Protection{}
		}
		return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: isSilent}
	}
	if answer.Status == int(framework.Abstain) {
		return framework.Abstain, verdict.Protection{}
	}
	for _, t := range d.Victims {
		if answer.Status < 0 || !slices.ContainsFunc(answer.Victims, func(v victim) bool { return v.UID == t.UID() }) {
			return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: keeps}
		}
	}
	return framework.Permit, verdict.Protection{}
}

// preemptor encodes the preemptor. A job pending admission has no pods yet, and is encoded as one pod with the request
// of its minimum.
func (p *plugin) preemptor(d *framework.VictimProposal) task {
	if d.For != nil {
		return p.taskAndPod(d.For)
	}
	request := p.amounts(d.Preemptor.MinResources)
	return task{Job: d.Preemptor.ID.String(), Namespace: d.Preemptor.ID.Namespace, Resreq: request, InitResreq: request,
		Status: statuses[cluster.Pending], Priority: d.Preemptor.Priority}
}

// MayEnqueue asks whether a job may be admitted.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	if !p.has(jobEnqueueable) {
		return framework.Abstain, nil
	}
	p.tell()
	var answer ofVote
	if err := p.ask(jobEnqueueable, aboutJob{Job: p.jobAndTasks(j)}, &answer); err != nil {
		if p.ignorable {
			return framework.Abstain, nil
		}
		return framework.Reject, refusal(err)
	}
	switch {
	case answer.Status < 0:
		return framework.Reject, refusal(nil)
	case answer.Status > 0:
		return framework.Permit, nil
	}
	return framework.Abstain, nil
}

// Overused asks whether a queue holds its whole share.
func (p *plugin) Overused(q *cluster.Queue) *verdict.Verdict {
	if !p.has(queueOverused) {
		return nil
	}
	p.tell()
	var answer ofQueue
	if err := p.ask(queueOverused, aboutQueue{Queue: p.queue(q)}, &answer); err != nil {
		if p.ignorable {
			return nil
		}
		return refusal(err)
	}
	if answer.Overused {
		v := refusal(nil)
		v.Detail = "it says that queue " + q.Name + " has enough"
		return v
	}
	return nil
}

// refusal is the verdict if the extender refuses or does not answer.
func refusal(err error) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.Refused, Subject: "the extender", Help: anyHelp}
	if err != nil {
		v.Detail = err.Error()
	}
	return v
}

// IsReady asks whether a job may start.
func (p *plugin) IsReady(j *cluster.Job) bool {
	if !p.has(jobReady) {
		return true
	}
	p.tell()
	var answer ofReady
	if err := p.ask(jobReady, aboutJob{Job: p.jobAndTasks(j)}, &answer); err != nil {
		return p.ignorable
	}
	return answer.Status
}
