package eviction

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// preemptorShape is what two preemptors have in common if the second finds no victims when the first found none. The
// second lacks no fewer pods. The only thing that more pods help is the guarantee of their own queue.
type preemptorShape struct {
	scope    decision.Scope
	queue    *cluster.Queue
	priority int32
	mark     string // whether its own pods may be evicted, which plugins may read
	class    *cluster.Class
	// application is that of the preemptor, by namespace and name, if rules protect its pods (rule G3).
	application types.NamespacedName
}

// searchFailure is how many tasks the job lacked, and what the verdict said.
type searchFailure struct {
	lacks  int
	spared []verdict.Spared
	vetoed []verdict.NodeReason
	waits  bool // for other plans to send their evictions
	never  bool // no pod can be evicted for it until objects change
	// promises says that with a plan for it one in force could not be fulfilled, as other pods with nodes may change.
	promises bool
	// tooLarge says that it would not fit if the nodes were empty.
	tooLarge bool
	right    verdict.Help // what would give its queue a right to reclaim, if nothing else could help; otherwise 0
	others   verdict.Help // what would let a pod of another queue be the first to leave, if nothing else could help; otherwise 0
	// ofQueue is what would let its queue hold a pod for which there is room on its way, otherwise 0.
	ofQueue verdict.Help
	// refine makes the verdict more exact, nil if there is nothing to add.
	refine func(v *verdict.Verdict)
}

// likeShape is what two preemptors have in common if the second finds no victims when the first, whose pods request no
// more, found none.
type likeShape struct {
	preemptorShape        // of any class
	constraints    string // of the class
}

func likeShapeOf(shape preemptorShape) likeShape {
	like := likeShape{preemptorShape: shape, constraints: shape.class.Constraints}
	like.class = nil
	return like
}

// failedRequest is the failure of a preemptor whose pods request so much.
type failedRequest struct {
	request resources.Vector
	searchFailure
}

// maxSmallest limits the failures of one [likeShape] that are compared with.
const maxSmallest = 16

// knownFailure returns why a preemptor finds no victims, if an earlier failure shows that.
func (f *Search) knownFailure(shape preemptorShape, lacks int) (why searchFailure, ok bool) {
	if why, ok = f.failures[shape]; ok && lacks >= why.lacks {
		return why, true
	}
	for _, r := range f.smallest[likeShapeOf(shape)] {
		if lacks >= r.lacks && isNoLarger(r.request, shape.class.Request) {
			return r.searchFailure, true
		}
	}
	return searchFailure{}, false
}

// noteFailure stores a failure. It is one of larger pods too, except where a larger request may help, as it may against
// the guarantee of a queue that the preemptor is below. Rules of guaranteed shares name the request in what they say.
func (f *Search) noteFailure(shape preemptorShape, a *attempt, why searchFailure) {
	f.failures[shape] = why
	if a.rules.Guarantees != nil || rules.IsAnyGuaranteed(why.spared) {
		return
	}
	like := likeShapeOf(shape)
	kept := slices.DeleteFunc(f.smallest[like], func(r failedRequest) bool {
		return why.lacks <= r.lacks && isNoLarger(shape.class.Request, r.request) // the new one says all that this does
	})
	if len(kept) < maxSmallest {
		kept = append(kept, failedRequest{request: shape.class.Request, searchFailure: why})
	}
	f.smallest[like] = kept
}

// shapeOf returns the shape of a job whose pods are all of one class and have no nodes yet. Other jobs are not
// comparable. No job is if plugins veto nodes, because these read the pod itself and not only its class.
func (f *Search) shapeOf(scope decision.Scope, j *cluster.Job, pods []*cluster.Task) (shape preemptorShape, ok bool) {
	if len(cluster.OnePerClass(pods)) > 1 {
		return preemptorShape{}, false
	}
	return preemptorShape{scope: scope, queue: j.Queue, priority: j.Priority, mark: markOf(j), class: pods[0].Class,
			application: rules.ApplicationOf(f.session, scope, j)},
		len(f.session.Policy.Vetoers) == 0 && scope != decision.WithinJob && j.Ready() == 0 && !j.ChecksRoles() && goesAnywhere(j)
}

// goesAnywhere reports whether the placement of a job depends only on the classes of its pods.
func goesAnywhere(j *cluster.Job) bool { return !j.Proximity.IsHard() && len(j.Subgroups()) == 0 }

// help is what would make pods evictable, if that is known. It lists no room.
func (why *searchFailure) help(scope decision.Scope) verdict.Help {
	switch {
	case scope == decision.WithinJob, why.promises:
		return 0
	case why.tooLarge:
		return verdict.HelpEmptyNodes
	case why.never && scope == decision.BetweenJobs:
		return verdict.HelpOwnVictims
	case why.never:
		return verdict.HelpVictims
	}
	return why.right | why.others
}
