package framework

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Plugin is a piece of policy. It takes part in a decision by implementing one of the interfaces below; each can be
// switched off in the configuration by the switch its comment names. A plugin lives as long as its configuration is in
// force and is used by one goroutine.
type Plugin interface {
	// Name is the name in the configuration.
	Name() string
}

// SessionOpener is told that a session begins, before any other question, in the order of the configuration. Here a
// plugin works out what it needs from the totals of the model; what it kept from the session before may be stale. It is told twice
// of the first session of a process: again when the plans that the process before has written down are in force.
type SessionOpener interface {
	OpenSession(s *Session)
}

// RemotePlugin is a plugin that asks another process, and may wait for its answer, as Volcano's extender does. It has no switch. It takes
// part in decisions as any other; where an answer must not wait, to questions about the model, it is not asked.
type RemotePlugin interface {
	Plugin
	// AsksOver says by what means it asks, for messages.
	AsksOver() string
}

// QueueOrderer says which queue is served first (enableQueueOrder). Negative: a before b. The first answer other than
// zero counts.
type QueueOrderer interface {
	CompareQueues(a, b *cluster.Queue) int
}

// JobOrderer says which job of a queue is served first (enableJobOrder). Negative: a before b. The first answer other
// than zero counts.
type JobOrderer interface {
	CompareJobs(a, b *cluster.Job) int
}

// TaskOrderer says which task of a job is placed first (enableTaskOrder). Negative: a before b. The first answer other
// than zero counts.
type TaskOrderer interface {
	CompareTasks(a, b *cluster.Task) int
}

// JobValidator says whether a job can be looked at at all. It has no switch. A verdict leaves the job out of the session
// and is what its owner reads; the first one counts.
type JobValidator interface {
	ValidateJob(j *cluster.Job) *verdict.Verdict
}

// Vote is an answer to a question that a plugin may leave to others.
type Vote int8

// The votes. In a tier one Reject decides against, else one Permit decides for; if all abstain the next tier is asked,
// and after the last the answer is yes.
const (
	Reject  Vote = -1
	Abstain Vote = 0
	Permit  Vote = 1
)

// JobEnqueuer says whether a job may be admitted, from Pending to Inqueue (enableJobEnqueued; Volcano's JobEnqueueable). A Reject keeps
// it pending, and carries the verdict.
type JobEnqueuer interface {
	MayEnqueue(j *cluster.Job) (Vote, *verdict.Verdict)
}

// QueueOveruseChecker says that a queue has enough (enabledOverused; Volcano's Overused). A verdict keeps every job of the queue waiting for the
// rest of the action; the first one counts.
type QueueOveruseChecker interface {
	Overused(q *cluster.Queue) *verdict.Verdict
}

// AllocationGuard says whether a queue may take one more task (enabledAllocatable; Volcano's Allocatable). A verdict keeps the task waiting; the
// first one counts.
type AllocationGuard interface {
	MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// BindingGuard says whether a queue may take one more task at once, while evictions of its pods that were decided may be refused
// still: with these pods and the task it must not hold more than it ever may (rule Q4). Answered by those that guard allocation;
// a verdict keeps the task waiting until the evictions are sent.
type BindingGuard interface {
	MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// JobReadyChecker says whether enough of a job is placed to start it (enableJobReady; Volcano's JobReady). All must agree before anything of
// the job is bound.
type JobReadyChecker interface {
	IsReady(j *cluster.Job) bool
}

// AllocationObserver is told of every task that comes to count, or counts no longer, for its job and its queue in a session: placed,
// promised room, evicted, or any of that taken back. It is for plugins that keep totals the model does not have. When a
// transaction is undone, all of it is undone before the follower hears of its tasks, and it may hear of one more than once:
// what counts is how the task stands.
type AllocationObserver interface {
	TaskMoved(t *cluster.Task)
}

// KeyDeclarer is implemented by plugins that look, where they are asked about a class of pods, at an annotation or a label of a pod,
// its PodGroup or its queue, or at the namespace, the job, the role or the queue of a pod. It has no switch. Pods that differ in
// nothing that any plugin of the configuration has declared, and in nothing that places them, are of one class: the answers for one
// hold for all of them, and the class shows nothing else. It is asked once, when the configuration is built.
type KeyDeclarer interface {
	DeclareKeys() cluster.Keys
}

// NodeFilter says why a node cannot hold pods of a class, whatever room it has; "" if it can (enablePredicate). It may
// look at the node and what is on it, and is asked again only when that has changed; one that looks further is an [NodeInvalidator] too.
type NodeFilter interface {
	RefuseNode(k *cluster.Class, n *cluster.Node) string
}

// NodeInvalidator is implemented by filters and scorers whose answer about a node rests on others as well. It has no switch. Code that
// keeps answers has InvalidateNodes called before they are used: it has every node looked at again (see [cluster.Cluster.Outdate])
// of which the plugin would now say something else than it did.
type NodeInvalidator interface {
	InvalidateNodes()
}

// Point is one point of a score. Scores are integers; kube-scheduler's 0 to 100 are 0 to 100 points.
const Point = 1000

// NodeScorer says how good a node is for pods of a class (enableNodeOrder): the sum over all scorers decides, and among
// equals the name of the node. It may look at the node and what is on it, and is asked again only when that has changed.
// Asked only about nodes that fit. The unit is a thousandth of a point, see Point.
type NodeScorer interface {
	ScoreNode(k *cluster.Class, n *cluster.Node) int64
}

// HyperNodeGrader says in which HyperNodes pods that are to be close to each other are placed (enabledHyperNodeGradient). The
// first plugin that implements it decides. Without any, a job that must be kept close waits, and one that should be is not.
type HyperNodeGrader interface {
	// GradeHyperNodes sorts HyperNodes into groups. Those of the first group are tried first, the best of each group first, and
	// one that is in no group never. They come with the lowest tier first, then by name.
	GradeHyperNodes(among []*cluster.HyperNode) [][]*cluster.HyperNode
	// MaxEvicting is in how many of them, at least one, room is sought by evictions for one job: that takes longer.
	MaxEvicting() int
}

// HyperNodeScorer says how good a HyperNode is for what a job requests at the least (enabledHyperNodeOrder): the sum over all
// scorers decides, and among equals the name. The unit is that of NodeScorer.
type HyperNodeScorer interface {
	ScoreHyperNode(request resources.Vector, h *cluster.HyperNode) int64
}

// KubeFilterer names kube-scheduler plugins whose filters apply (enablePredicate).
type KubeFilterer interface {
	KubeFilters() []string
}

// KubeScore is the name of a kube-scheduler plugin that scores, and how much each of its 0 to 100 points counts.
type KubeScore struct {
	Name   string
	Weight int64
}

// KubeScorer names kube-scheduler plugins whose scores count (enableNodeOrder).
type KubeScorer interface {
	KubeScores() []KubeScore
}

// KubeArguments are arguments of kube-scheduler plugins.
type KubeArguments struct {
	BindTimeout   time.Duration // how long volumes may take to be bound
	VolumeShape   []ShapePoint  // how nodes are scored by their volumes; empty if they are not
	DeviceTimeout time.Duration // how long to look for devices on one node; 0 is without end
	// DeviceBindTimeout is how long devices may take to be ready once they were given out.
	DeviceBindTimeout time.Duration
}

// ShapePoint is one point of a function from a utilisation, 0 to 100, to a score, 0 to 10.
type ShapePoint struct{ Utilization, Score int32 }

// KubeArguer gives kube-scheduler plugins their arguments. It has no switch.
type KubeArguer interface {
	KubeArguments() KubeArguments
}

// Waker is implemented by plugins whose answers change with time alone. It has no switch. WakeAt is asked at the end of each
// cycle: at that time every job that waits is looked at anew. Zero means never.
type Waker interface {
	WakeAt() time.Time
}

// Hierarchical is implemented by plugins that order queues by more than their own totals, so that a placement in one
// queue can change the order of others. The order is then worked out anew after each placement.
type Hierarchical interface {
	IsHierarchical() bool
}

// QueueShares is implemented by plugins that give queues a share. The first that does decides; it has no switch.
type QueueShares interface {
	// Shares are what the queues deserve in this session, and what they may hold.
	Shares() *quota.View
}
