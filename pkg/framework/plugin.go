package framework

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Plugin is a policy with a name. It answers questions by implementing some of the interfaces below. The switch in the
// comment of an interface turns that answer off in the configuration. A plugin is built when its configuration comes
// into force, serves until the next one does, and is used by one goroutine.
type Plugin interface {
	// Name is the name of the plugin in the configuration.
	Name() string
}

// SessionOpener is told that a session begins, as Volcano's OnSessionOpen is: before any question, in the order of the
// configuration. Here a plugin works out what it needs from the totals of the model. What it kept from the session
// before may be out of date. In the first session of a process it is called twice, again after recovered plans are in
// force.
type SessionOpener interface {
	OpenSession(s *Session)
}

// RemotePlugin is a plugin that asks another process and may wait for the answer, as Volcano's extender does. It has no
// switch. It takes part in scheduling like any other plugin. Questions about the model must not wait, and are answered
// without it.
type RemotePlugin interface {
	Plugin
	// AsksOver names the protocol, such as HTTP. It is used in messages.
	AsksOver() string
}

// QueueOrderer says which queue is served first (enableQueueOrder; Volcano's QueueOrder). A negative answer puts a
// before b. The first answer other than zero counts. Where two queues meet in a subtree, only the plugin that declares
// it is asked (rule G14).
type QueueOrderer interface {
	CompareQueues(a, b *cluster.Queue) int
}

// JobOrderer says which job of a queue is served first (enableJobOrder; Volcano's JobOrder). A negative answer puts a
// before b. The first answer other than zero counts. In a subtree only the plugin that declares it is asked (rule G14).
type JobOrderer interface {
	CompareJobs(a, b *cluster.Job) int
}

// TaskOrderer says which task of a job is placed first (enableTaskOrder; Volcano's TaskOrder). A negative answer puts a
// before b. The first answer other than zero counts.
type TaskOrderer interface {
	CompareTasks(a, b *cluster.Task) int
}

// JobValidator says whether a job can be scheduled at all (Volcano's JobValid). It has no switch. With a verdict the
// job is left out of the session, and the user reads the verdict. The first verdict counts.
type JobValidator interface {
	ValidateJob(j *cluster.Job) *verdict.Verdict
}

// Vote is an answer from which a plugin may abstain.
type Vote int8

// The votes. One Reject decides a tier against the proposal, otherwise one Permit decides it in favour. If all plugins
// of a tier abstain, the next tier is asked. If all tiers abstain, the answer is yes.
const (
	Reject  Vote = -1
	Abstain Vote = 0
	Permit  Vote = 1
)

// JobEnqueuer says whether a job may be admitted, from Pending to Inqueue (enableJobEnqueued; Volcano's
// JobEnqueueable). With a Reject and its verdict the job stays pending.
type JobEnqueuer interface {
	MayEnqueue(j *cluster.Job) (Vote, *verdict.Verdict)
}

// AdmissionStockkeeper is a [JobEnqueuer] that rejects jobs which need more than is left of an amount. A job that waits
// for it is not looked at before enough is left.
type AdmissionStockkeeper interface {
	JobEnqueuer
	// LackToAdmit returns what the job lacks, if anything.
	LackToAdmit(j *cluster.Job) verdict.Lack
}

// AllocationStockkeeper is an [AllocationGuard] that refuses what is more than is left of an amount. A job that waits
// for it is not looked at before enough is left.
type AllocationStockkeeper interface {
	AllocationGuard
	// LackToPlace returns what a queue lacks without which it may not hold so much more, if anything.
	LackToPlace(q *cluster.Queue, more resources.Vector) verdict.Lack
}

// ReclaimStockkeeper is a [QueueReclaimChecker] that refuses what is more than is left of an amount.
type ReclaimStockkeeper interface {
	QueueReclaimChecker
	// LackToReclaim returns what a queue lacks without which it may not reclaim so much, if anything.
	LackToReclaim(q *cluster.Queue, more resources.Vector) verdict.Lack
}

// AdmissionLimiter says whether a job may not be admitted, whatever room there is (enableJobEnqueued). It is asked
// before every JobEnqueuer, also about jobs without minResources, and evictions do not help. The first verdict counts.
type AdmissionLimiter interface {
	LimitAdmission(j *cluster.Job) *verdict.Verdict
}

// QueueOveruseChecker says whether a queue holds its whole share (enabledOverused; Volcano's Overused). With a verdict
// all jobs of the queue wait for the rest of the action. The first verdict counts.
type QueueOveruseChecker interface {
	Overused(q *cluster.Queue) *verdict.Verdict
}

// AllocationGuard says whether a queue may hold one more task (enabledAllocatable; Volcano's Allocatable). With a
// verdict the task waits. The first verdict counts.
type AllocationGuard interface {
	MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// BindingGuard says whether a task may be bound while planned evictions of its queue are not sent yet
// (enabledAllocatable). The evictions may still be refused. So the queue must stay within its upper limit even if their
// victims stay (rule Q4). With a verdict the task waits until the evictions are sent.
type BindingGuard interface {
	MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// JobReadyChecker says whether enough of a job is placed to start it (enableJobReady; Volcano's JobReady). All plugins
// must agree before any task of the job is bound.
type JobReadyChecker interface {
	IsReady(j *cluster.Job) bool
}

// PodCounter is a [JobReadyChecker] that goes by the number of pods.
type PodCounter interface {
	JobReadyChecker
	// LacksToStart returns how many more pods of a job must be placed, at least, before it may start.
	LacksToStart(j *cluster.Job) int
}

// AllocationObserver is told of every task that begins or ceases to count for its job and queue in a session (Volcano's
// AllocateFunc and DeallocateFunc). That is when it is placed, pipelined or evicted, and when that is undone. It is for
// plugins that keep totals which the model does not have. A transaction is undone as a whole before its tasks are
// reported, and a task may be reported more than once. So an observer must go by the status of the task.
type AllocationObserver interface {
	TaskMoved(t *cluster.Task)
}

// KeyDeclarer declares what a plugin reads of a class of pods: annotations and labels of a pod, its PodGroup or its
// queue, or the names of its namespace, job, role or queue. It has no switch. It is asked once, when the policy is
// built. Pods are in one class if they do not differ in what any plugin has declared, nor in what decides where they
// fit. An answer for one pod of a class holds for all of them. What no plugin has declared is not visible through the
// class.
type KeyDeclarer interface {
	DeclareKeys() cluster.Keys
}

// NodeKeyDeclarer declares which annotations and labels of nodes the answers of a [NodeFilter] or [NodeVetoer] depend
// on. It has no switch. Waiting jobs are not tried again when others change. Without it any may matter.
type NodeKeyDeclarer interface {
	DeclareNodeKeys() (annotations, labels []string)
}

// NodeFilter says why a node cannot run pods of a class, however much is free on it; "" if it can (enablePredicate;
// Volcano's Predicate). It may look at the node and its pods, and is asked again only when these have changed. A filter
// that looks at anything else must also be a [NodeInvalidator].
type NodeFilter interface {
	RefuseNode(k *cluster.Class, n *cluster.Node) string
}

// NodeInvalidator is implemented by filters and scorers whose answer about a node depends on more than this node. It
// has no switch. InvalidateNodes is called before answers from a cache are used. For each node on which its answer may
// have changed, the plugin then calls [model.Cluster.Outdate].
type NodeInvalidator interface {
	InvalidateNodes()
}

// Point is one point of a score. Scores are integers. The scores of kube-scheduler, 0 to 100, are 0 to 100 points.
const Point = 1000

// NodeScorer says how good a node is for pods of a class (enableNodeOrder; Volcano's NodeOrder). The node with the
// largest sum over all scorers is chosen, the first by name among equals. A scorer is asked only about nodes that fit.
// It may look at the node and its pods, and is asked again only when these have changed. The unit is a thousandth of a
// point, see [Point].
type NodeScorer interface {
	ScoreNode(k *cluster.Class, n *cluster.Node) int64
}

// NodeTableScorer is implemented by scorers that look at nothing of a node but its allocatable and used amounts, and at
// nothing of a class but its Request and NonZero. It has no switch. Code that rates many nodes for one class asks it
// for all of them at once, which takes a fraction of the time. Classes that request the same share the scores if all
// scorers are of this kind.
type NodeTableScorer interface {
	NodeScorer
	// AddScores adds to scores[i] what ScoreNode says of the node that has slots[i], if that is as the table shows it.
	AddScores(k *cluster.Class, t *cluster.NodeTable, slots []int32, scores []int64)
}

// HyperNodeGrader says in which HyperNodes the pods of a job with a network topology are placed
// (enabledHyperNodeGradient; Volcano's HyperNodeGradient). The first plugin that implements it decides. Without any, a
// job in the mode hard waits, and a job in the mode soft is placed anywhere.
type HyperNodeGrader interface {
	// GradeHyperNodes sorts HyperNodes into groups. Groups are tried in their order, in each group the best HyperNode
	// first. A HyperNode in no group is not used. The HyperNodes are passed with the lowest tier first, then by name.
	GradeHyperNodes(among []*cluster.HyperNode) [][]*cluster.HyperNode
	// MaxEvicting is in how many HyperNodes, at least one, an evicting action searches for one job. Each costs a
	// search.
	MaxEvicting() int
}

// HyperNodeScorer says how good a HyperNode is for the request of a job's minimum (enabledHyperNodeOrder; Volcano's
// HyperNodeOrder). The HyperNode with the largest sum over all scorers is chosen, the first by name among equals. The
// unit is that of NodeScorer.
type HyperNodeScorer interface {
	ScoreHyperNode(request resources.Vector, h *cluster.HyperNode) int64
}

// KubeFilterer names plugins of kube-scheduler whose filters apply (enablePredicate).
type KubeFilterer interface {
	KubeFilters() []string
}

// KubeScore is the name of a kube-scheduler plugin that scores nodes, and the weight of its 0 to 100 points.
type KubeScore struct {
	Name   string
	Weight int64
}

// KubeScorer names plugins of kube-scheduler whose scores count (enableNodeOrder).
type KubeScorer interface {
	KubeScores() []KubeScore
}

// KubeArguments are the arguments of kube-scheduler plugins.
type KubeArguments struct {
	BindTimeout   time.Duration // how long binding volumes may take
	VolumeShape   []ShapePoint  // the score of a node by the use of its volumes; empty if volumes do not count
	DeviceTimeout time.Duration // how long to look for devices on one node; 0 sets no limit
	// DeviceBindTimeout is how long devices may take to get ready once they are allocated.
	DeviceBindTimeout time.Duration
}

// ShapePoint maps a utilization of 0 to 100 to a score of 0 to 10.
type ShapePoint struct{ Utilization, Score int32 }

// KubeArguer sets the arguments of kube-scheduler plugins. It has no switch.
type KubeArguer interface {
	KubeArguments() KubeArguments
}

// Waker is implemented by plugins whose answers change with time alone. It has no switch. At the end of each cycle the
// scheduler asks for the time at which it has to look at all waiting jobs again. Zero means never.
type Waker interface {
	WakeAt() time.Time
}

// Hierarchical is implemented by plugins that order queues by more than their own totals. If it says true, a placement
// in one queue may change the order of other queues, and they are sorted again after each placement.
type Hierarchical interface {
	IsHierarchical() bool
}

// SubtreeDeclarer says below which queues the rules of guaranteed shares hold (rule G0), which Volcano does not have.
// It has no switch. The first one decides. Inside a subtree the share of a queue is its guarantee.
type SubtreeDeclarer interface {
	// Subtrees are those of this session, nil if there are none. They are known before other plugins open the session.
	Subtrees() *guarantee.Subtrees
	// HasAll reports whether the root is the top of a subtree, so that no other plugin may give queues a share.
	HasAll() bool
}

// QueueShares is implemented by plugins that work out shares of queues. The first one decides. It has no switch. In
// subtrees of guaranteed shares ([SubtreeDeclarer]) it abstains: its view sees each of them as one queue.
type QueueShares interface {
	// Shares are the bounds of all queues in this session: what each deserves, and what it may hold.
	Shares() *quota.View
}
