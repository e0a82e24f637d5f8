package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/resources"
)

// Code is why a job waits, in one word. It appears as the reason of conditions and in `hekla simulate`.
type Code string

// The codes, in the order in which they must be put right.
const (
	// QueueNotFound: the job names a queue that does not exist.
	QueueNotFound Code = "QueueNotFound"
	// QueueInvalid: the queue's place in the tree is wrong (parent missing, a cycle).
	QueueInvalid Code = "QueueInvalid"
	// QueueNotLeaf: the queue has child queues, and jobs run in leaves only.
	QueueNotLeaf Code = "QueueNotLeaf"
	// QueueClosed: the queue is not Open.
	QueueClosed Code = "QueueClosed"
	// NotEnoughTasks: the job has fewer pods than its minimum.
	NotEnoughTasks Code = "NotEnoughTasks"
	// NotEnoughPodsOfTask: the job has fewer pods of one role than the role's minimum.
	NotEnoughPodsOfTask Code = "NotEnoughPodsOfTask"
	// SchedulingGated: too many of the pods are held by scheduling gates.
	SchedulingGated Code = "SchedulingGated"
	// ResourceReservationTimeout: the gang got no nodes in time, or its pods were not created in time, and its waiting
	// pods fail.
	ResourceReservationTimeout Code = "ResourceReservationTimeout"
	// TooLargeForQueue: the minimum of the job alone is more than its queue may ever hold.
	TooLargeForQueue Code = "TooLargeForQueue"
	// TooLargeForCluster: the minimum of the job alone is more than all nodes together have.
	TooLargeForCluster Code = "TooLargeForCluster"
	// TooManyApplications: a queue has as many admitted jobs as it may have.
	TooManyApplications Code = "TooManyApplications"
	// OverCapability: the queue, or a queue above it, would hold more than its capability.
	OverCapability Code = "OverCapability"
	// Refused: a ResourceQuota of the namespace has no room, the configuration lacks an action or plugin, or a plugin
	// from another module refuses.
	Refused Code = "Refused"
	// OverCluster: the queue, or a queue above it, would hold more than the cluster has apart from the guarantees of
	// other queues.
	OverCluster Code = "OverCluster"
	// OverShare: the queue holds what it deserves, and other queues may claim the rest.
	OverShare Code = "OverShare"
	// OverCommitted: the jobs admitted so far claim all that overcommit allows.
	OverCommitted Code = "OverCommitted"
	// HeldUp: another job of the queue comes first, and the queue serves its jobs strictly in order.
	HeldUp Code = "HeldUp"
	// Preempting: the job has nominated nodes, and pods are being evicted from them.
	Preempting Code = "Preempting"
	// Delayed: the job may evict pods of other queues, and has not waited long enough.
	Delayed Code = "Delayed"
	// NotGuaranteed: the job's queue has what it is guaranteed, so no pods of other queues are evicted for it.
	NotGuaranteed Code = "NotGuaranteed"
	// NotEnoughResources: no suitable nodes have enough room for the whole gang at once.
	NotEnoughResources Code = "NotEnoughResources"
	// Quarantined: the scheduler panicked over the job more than once, and ignores it until it changes.
	Quarantined Code = "Quarantined"
	// PodsMissing: the job was admitted, its pods were not created in time, and it is pending admission again.
	PodsMissing Code = "PodsMissing"
	// NamespaceBackingOff: other jobs of its namespace were admitted and created no pods, and jobs of other namespaces
	// wait.
	NamespaceBackingOff Code = "NamespaceBackingOff"
	// BackingOff: the API server refused a binding, a nomination or an eviction; the job is tried again later.
	BackingOff Code = "BackingOff"
)

var order = func() map[Code]int {
	ranks := map[Code]int{}
	for i, code := range []Code{QueueNotFound, QueueInvalid, QueueNotLeaf, QueueClosed, NotEnoughTasks, NotEnoughPodsOfTask,
		SchedulingGated, ResourceReservationTimeout, TooLargeForQueue, TooLargeForCluster, TooManyApplications, OverCapability, Refused, OverCluster, OverShare, OverCommitted, HeldUp, Preempting, Delayed, NotGuaranteed, NotEnoughResources, Quarantined, PodsMissing, NamespaceBackingOff, BackingOff} {
		ranks[code] = i
	}
	return ranks
}()

// Precedes reports whether c must be put right before d. A code that is not of this list comes last.
func (c Code) Precedes(d Code) bool { return c.rank() < d.rank() }

func (c Code) rank() int {
	if rank, ok := order[c]; ok {
		return rank
	}
	return len(order)
}

// LacksRoom reports whether room on nodes would help a job with this code.
func (c Code) LacksRoom() bool {
	return c == NotEnoughResources || c == Delayed || c == NotGuaranteed
}

// Help is a set of kinds of change after which a refused job is tried again.
type Help uint16

// The kinds of change.
const (
	HelpNode       Help = 1 << iota // a node joins, changes, or gets room
	HelpQueue                       // a queue changes, or holds less
	HelpJob                         // the job or one of its pods changes
	HelpTime                        // time passes
	HelpPod                         // a pod gets a node or other labels, which matters for affinity
	HelpSupply                      // a volume, a device or a claim is added, changes or is released
	HelpRoom                        // nodes have room for as many pods as the job needs of one class
	HelpVictims                     // a pod may be a victim that could not be one before: it is new, or an object that protects it has changed
	HelpOwnQueue                    // the job's queue, or one above it, holds less or has a larger share
	HelpOwnVictims                  // as HelpVictims, but only a pod of the job's own queue
	HelpStock                       // as much is left of one of the stocks in Lacks as is needed, or objects change that they depend on
	HelpShares                      // a queue deserves less, so that more of its pods may be reclaimed
	HelpEmptyNodes                  // a node joins, or its object changes, so that nodes could hold more if they were empty
	HelpPlaces                      // a node has less than before, so that pods which had a place in the attempt may have none
)

// Stock is an amount that jobs share, such as what a queue may still hold of a resource. It must be comparable: two
// that are equal are the same.
type Stock interface {
	// Left returns how much is left now, in the unit of its resource.
	Left() int64
	// Source is what more of it comes from: HelpNode for nodes, HelpQueue for queues.
	Source() Help
}

// Lack is an amount that a job needs of a stock of which less is left. The zero value is none.
type Lack struct {
	Stock  Stock
	Needed int64
}

// IsMet reports whether enough is left now.
func (l Lack) IsMet() bool { return l.Stock != nil && l.Stock.Left() >= l.Needed }

// Lacks are some that a job has. If one is met, that may be enough.
type Lacks [2]Lack

// AnyIsMet reports whether enough is left now of one of the stocks.
func (l Lacks) AnyIsMet() bool { return l[0].IsMet() || l[1].IsMet() }

// with adds those of another verdict. It reports false if there are too many.
func (l Lacks) with(other Lacks) (Lacks, bool) {
	for _, lack := range other {
		if lack.Stock == nil || slices.Contains(l[:], lack) {
			continue
		}
		free := slices.Index(l[:], Lack{})
		if free < 0 {
			return l, false
		}
		l[free] = lack
	}
	return l, true
}

// Shortage is a lack of one resource, in the resource's unit (see package resources).
type Shortage struct {
	Resource corev1.ResourceName
	Need     int64 // what is requested
	Have     int64 // what is available
}

// Verdict is why a job waits.
type Verdict struct {
	Code    Code
	Subject string // the queue, task or pod that is the cause; empty if it is the job itself
	Help    Help
	Lacks   Lacks // with HelpStock

	Placed, Wanted int // how many pods had a place in the attempt, and the minimum
	// Fitting names the pods that had a place in the attempt, which was undone because there were too few, in the order
	// of placement. It is not part of the sentence.
	Fitting []string

	Shortages []Shortage
	Nodes     []NodeReason
	// Spared counts the pods that may not be evicted, by what protects them, in any order. It is set if the job looked
	// for victims.
	Spared []Spared
	// Impossible is set if no node could hold a pod of the job, even if it were empty.
	Impossible *Impossible
	// Promised is set if a node would have room but for what is promised to other jobs.
	Promised bool
	// BeyondNodes is set if no node that is added could hold a waiting pod of the job, because of its affinity.
	BeyondNodes bool
	// OfCluster is set if the limit of the queue follows from the size of the cluster.
	OfCluster bool
	// Vetoed counts the nodes that evictions would open and that plugins veto.
	Vetoed []NodeReason
	// Looked is set if the job looked for victims.
	Looked bool
	// RetryAt is when the job is tried again even if nothing has happened, zero if time alone does not help.
	RetryAt time.Time
	Detail  string // an addition by a plugin or the API server, a clause without a full stop
}

// Equal reports whether two verdicts say the same about the job and its pods. A nil verdict is no refusal.
func (v *Verdict) Equal(w *Verdict) bool {
	if v == nil || w == nil {
		return v == w
	}
	return v.Code == w.Code && v.tellsVictims() == w.tellsVictims() && slices.Equal(v.Fitting, w.Fitting) &&
		(v.isLike(w) || v.Reason() == w.Reason() && v.IsHelpedByNodes() == w.IsHelpedByNodes() && v.Sentence() == w.Sentence())
}

// tellsVictims reports whether the sentence says why no pods are evicted for the job.
func (v *Verdict) tellsVictims() bool { return v.Looked && (len(v.Spared) > 0 || len(v.Vetoed) == 0) }

// isLike reports whether two verdicts of one code have equal parts and so the same sentence, which takes time to build.
func (v *Verdict) isLike(w *Verdict) bool {
	return v.Promised == w.Promised && v.BeyondNodes == w.BeyondNodes && v.OfCluster == w.OfCluster && v.Impossible.equal(w.Impossible) && v.Subject == w.Subject && v.Placed == w.Placed && v.Wanted == w.Wanted && v.Looked == w.Looked && v.Detail == w.Detail && v.RetryAt.Equal(w.RetryAt) &&
		slices.Equal(v.Shortages, w.Shortages) && slices.Equal(v.Nodes, w.Nodes) && slices.Equal(v.Spared, w.Spared) && slices.Equal(v.Vetoed, w.Vetoed)
}

// IsDue reports whether the time has come at which the job is to be tried again. Without a verdict it is not.
func (v *Verdict) IsDue(now time.Time) bool {
	return v != nil && !v.RetryAt.IsZero() && !now.Before(v.RetryAt)
}

// With combines two refusals of one job. It returns the one that must be put right first, v if neither must, with the
// help of both, because it may be enough to help a part of the job. Spared and Fitting come from the other if it has
// none itself, and the detail if it has the same code. Neither verdict is changed. Nil is no refusal.
func (v *Verdict) With(w *Verdict) *Verdict {
	switch {
	case v == nil:
		return w
	case w == nil:
		return v
	case w.Code.Precedes(v.Code):
		v, w = w, v
	}
	both := *v
	both.addHelp(w)
	both.Looked = v.Looked || w.Looked
	if both.RetryAt.IsZero() || !w.RetryAt.IsZero() && w.RetryAt.Before(both.RetryAt) {
		both.RetryAt = w.RetryAt
	}
	if both.Detail == "" && v.Code == w.Code {
		both.Detail = w.Detail
	}
	if both.Impossible == nil {
		both.Impossible = w.Impossible
	}
	both.Promised, both.BeyondNodes = v.Promised || w.Promised, v.BeyondNodes || w.BeyondNodes
	both.Spared = addSpared(v.Spared, w.Spared)
	if both.Fitting == nil {
		both.Fitting = w.Fitting
	}
	both.Vetoed = append(v.Vetoed[:len(v.Vetoed):len(v.Vetoed)], w.Vetoed...)
	return &both
}

// Kinds returns the kinds of help as users see them: in place of stocks what they come from.
func (v *Verdict) Kinds() Help {
	kinds := v.Help &^ HelpStock
	for _, lack := range v.Lacks {
		if lack.Stock != nil {
			kinds |= lack.Stock.Source()
		}
	}
	return kinds
}

// addHelp adds the help of another verdict.
func (v *Verdict) addHelp(w *Verdict) {
	v.Help |= w.Help
	lacks, ok := v.Lacks.with(w.Lacks)
	if v.Lacks = lacks; !ok {
		v.Help |= HelpNode | HelpQueue | HelpOwnQueue // whatever adds to any stock
	}
}

// Await returns a copy of a verdict by which the job waits until a lack is met, and for those kinds of help in the
// verdict that are in keep.
func (v *Verdict) Await(lack Lack, keep Help) *Verdict {
	return v.AwaitAny(Lacks{lack}, keep)
}

// AwaitAny is Await until one of several lacks is met.
func (v *Verdict) AwaitAny(lacks Lacks, keep Help) *Verdict {
	waits := *v
	waits.Help, waits.Lacks = HelpStock|v.Help&keep, lacks
	return &waits
}

// And adds a lack. It reports false if there are too many.
func (l Lacks) And(lack Lack) (Lacks, bool) { return l.with(Lacks{lack}) }

var openings = map[Code]string{
	Preempting:                 "pods are leaving the nominated nodes",
	QueueNotFound:              "queue %s does not exist",
	QueueInvalid:               "queue %s has no valid place in the tree",
	QueueNotLeaf:               "queue %s has child queues; jobs run in leaf queues only",
	QueueClosed:                "queue %s is not open",
	NotEnoughTasks:             "not all pods exist yet",
	NotEnoughPodsOfTask:        "not all pods of task %s exist yet",
	SchedulingGated:            "pods are held by scheduling gates",
	ResourceReservationTimeout: "the gang has waited too long, and its waiting pods fail",
	TooLargeForQueue:           "the job is larger than queue %s may ever be",
	TooLargeForCluster:         "the job requests more than all nodes together have",
	TooManyApplications:        "queue %s has as many admitted jobs as it may have",
	OverCapability:             "queue %s is at its capability",
	OverCluster:                "the cluster has no more for queue %s",
	OverShare:                  "queue %s holds all that it deserves",
	OverCommitted:              "the admitted jobs claim all that overcommit allows",
	HeldUp:                     "job %s comes first",
	Refused:                    "refused by %s",
	Delayed:                    "the job has not waited long enough to take room from others",
	NotGuaranteed:              "no pods of other queues are evicted for the job",
	NotEnoughResources:         "not enough room on the nodes",
	Quarantined:                "the scheduler panicked over this job and ignores it until it changes",
	PodsMissing:                "the job was admitted and its pods did not come",
	NamespaceBackingOff:        "jobs of namespace %s were admitted and brought no pods, and jobs of other namespaces come first",
	BackingOff:                 "the API server refused to bind pod %s, and the job is tried again later",
}

// Sentence formats the verdict for users, with every number.
func (v *Verdict) Sentence() string {
	var b strings.Builder
	if v.Impossible != nil && v.Code != NotEnoughResources && !v.Code.Precedes(TooLargeForQueue) {
		b.WriteString(v.Impossible.Sentence() + "; ")
	}
	opening := openings[v.Code]
	if strings.Contains(opening, "%s") {
		opening = fmt.Sprintf(opening, v.Subject)
	}
	if v.Code == BackingOff && v.Subject == "" {
		opening = "the API server refused a step of the preemption for the job, which is tried again later"
	}
	if v.Code == NotEnoughResources && v.Wanted > 0 {
		opening = fmt.Sprintf("%d of the %d pods that must start together have a place", v.Placed, v.Wanted)
	}
	b.WriteString(opening)
	if v.Code == NotEnoughTasks || v.Code == NotEnoughPodsOfTask || v.Code == SchedulingGated {
		fmt.Fprintf(&b, ": %d of %d", v.Placed, v.Wanted)
	}
	if v.Code == NotEnoughResources && v.Subject != "" {
		fmt.Fprintf(&b, "; %s does not fit", v.Subject)
	}
	if len(v.Nodes) > 0 {
		b.WriteString("; " + v.nodeSentence())
	}
	for i, s := range v.Shortages {
		b.WriteString([]string{": ", ", "}[min(i, 1)] + s.String())
	}
	if v.Detail != "" {
		b.WriteString("; " + v.Detail)
	}
	for _, r := range v.Vetoed {
		fmt.Fprintf(&b, "; refused although evictions would make room: %d %s (such as %s)", r.Nodes, r.Reason, r.Example)
	}
	b.WriteString(v.sparedSentence())
	return b.String()
}

// sparedSentence says why no pods are evicted for the job.
func (v *Verdict) sparedSentence() string {
	if !v.tellsVictims() {
		return ""
	}
	if len(v.Spared) == 0 {
		return "; evicting other pods would not make room for it"
	}
	spared := MostFirst(v.Spared)
	total := 0
	parts := make([]string, len(spared))
	for i, s := range spared {
		total += s.Pods
		parts[i] = fmt.Sprintf("%d by %s", s.Pods, s.Why)
	}
	noun := "pods"
	if total == 1 {
		noun = "pod"
	}
	return fmt.Sprintf("; %d %s cannot be evicted for it: %s", total, noun, strings.Join(parts, ", "))
}

// String says "cpu: needs 4, has 1500m, short by 2500m".
func (s Shortage) String() string {
	return fmt.Sprintf("%s: needs %s, has %s, short by %s", s.Resource, resources.Format(s.Resource, s.Need),
		resources.Format(s.Resource, s.Have), resources.Format(s.Resource, s.Need-s.Have))
}

// nodeSentence is the sentence of kube-scheduler that all users know.
func (v *Verdict) nodeSentence() string {
	total := 0
	for _, r := range v.Nodes {
		total += r.Nodes
	}
	return fmt.Sprintf("0/%d nodes are available: %s", total, nodesSentence(v.Nodes))
}

// nodesSentence lists why nodes refuse, the most frequent reason first.
func nodesSentence(nodes []NodeReason) string {
	reasons := slices.Clone(nodes)
	slices.SortFunc(reasons, func(a, b NodeReason) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Reason, b.Reason))
	})
	parts := make([]string, len(reasons))
	for i, r := range reasons {
		parts[i] = fmt.Sprintf("%d %s (such as %s)", r.Nodes, r.Reason, r.Example)
	}
	return strings.Join(parts, ", ")
}
