package plans

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"hekla.sh/hekla/internal/edge/apiserver"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// EvictionResult is how an eviction ended.
type EvictionResult string

// How an eviction ends.
const (
	// EvictionSent: the API server has taken it, under the disruption budget if there is one.
	EvictionSent EvictionResult = "evicted"
	// EvictionForced: the pod was deleted without asking for a budget.
	EvictionForced EvictionResult = "deleted"
	// EvictionNeedless: the pod was gone, going, or done already.
	EvictionNeedless EvictionResult = "gone"
	// EvictionRefused: the API server does not carry it out, or a budget forbids it.
	EvictionRefused EvictionResult = "refused"
	// EvictionDropped: its plan was cancelled or refused before it was sent.
	EvictionDropped EvictionResult = "unsent"
	// EvictionUnknown: its plan was cancelled while the API server gave no answer.
	EvictionUnknown EvictionResult = "unknown"
)

// EvictionResults are all results there are.
var EvictionResults = []EvictionResult{EvictionSent, EvictionForced, EvictionNeedless, EvictionRefused, EvictionDropped, EvictionUnknown}

// step is what is done with one pod for a plan.
type step uint8

const (
	nominate step = iota // writes which node the pod is promised
	ask                  // has the API server say whether it would evict the pod
	mark                 // writes on a victim that it is to leave, and why
	evict                // tells it to leave
	restate              // writes again why it leaves: the API server puts its own words in the place of ours
	spare                // takes the mark off a victim that stays
	withdraw             // takes a promise back
)

var doing = [...]string{nominate: "nominating", ask: "evicting", mark: "marking", evict: "evicting", restate: "marking", spare: "sparing",
	withdraw: "taking back the promise to"}

// preemptionCancelled is the reason of the condition that a pod is not to leave after all.
const preemptionCancelled = "PreemptionCancelled"

// podStep is one step with one pod.
type podStep struct {
	of     *planExecution
	step   step
	pod    types.NamespacedName
	uid    types.UID
	node   string  // to nominate
	victim *victim // to ask about, to mark and to evict
	// refusal is what is to be written, beside that the pod stays, of its eviction that was refused; "" if it was not.
	refusal string
	record  string // to write beside a nomination, or on a pod that stays; "" takes it off

	backOff  wait.Backoff
	requests int
	returned chan struct{} // closed when the request under way has returned

	isQueued  bool // its stage has begun
	isRunning bool // a request is under way
	isVoid    bool // it is not to be repeated
	isOver    bool
}

// victim is a pod that is to leave, through all steps.
type victim struct {
	decision.Eviction
	isOut       bool // there is no pod to evict any more
	isRewritten bool // the API server has put its own reason on it
	isRefused   bool // the API server will not have it evicted
}

// messenger does podSteps.
type messenger struct{ clients *apiserver.Clients }

// do does a step once. ErrObjectGone says that the pod does not exist any more, or does not matter any more. The result
// is that of an eviction, "" while it is not known.
func (m messenger) do(ctx context.Context, e *podStep) (EvictionResult, error) {
	switch e.step {
	case nominate:
		return "", m.nominate(ctx, e)
	case ask:
		_, err := m.evict(ctx, e, true)
		return "", err
	case mark:
		return "", m.mark(ctx, e)
	case evict:
		return m.evict(ctx, e, false)
	case restate:
		if !e.victim.isRewritten {
			return "", nil
		}
		return "", m.mark(ctx, e)
	case spare:
		return "", m.spare(ctx, e)
	}
	return "", m.withdraw(ctx, e)
}

// patch changes the status of a pod and its record in one request. It changes only the pod with this UID, and, if a version
// is given, only in this version. The result is stored in into, unless that is nil.
func (m messenger) patch(ctx context.Context, e *podStep, version string, change apiserver.PodWrite, into *corev1.Pod) error {
	core := m.clients.Core.CoreV1()
	result := apiserver.PatchStatus(ctx, core.RESTClient(), "pods", e.pod, types.StrategicMergePatchType,
		apiserver.PodPatch(e.uid, version, change))
	err := result.Error()
	if err == nil && into != nil {
		err = result.Into(into)
	}
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, e.uid, func() (metav1.Object, error) { return apiserver.ReadPod(ctx, core, e.pod) })
}

func (m messenger) nominate(ctx context.Context, e *podStep) error {
	err := m.patch(ctx, e, "", promised(e.node, e.record), nil)
	if err == nil || !apiserver.IsFinal(err) {
		return err
	}
	// A pod that has a node is promised none, and needs no promise.
	if live, problem := apiserver.ReadPod(ctx, m.clients.Core.CoreV1(), e.pod); problem == nil && live.Spec.NodeName != "" {
		return nil
	}
	return err
}

// promised has a pod be promised a node, none if it is "".
func promised(node, record string) apiserver.PodWrite {
	return apiserver.PodWrite{Status: map[string]any{"nominatedNodeName": apiserver.OrNull(node)}, Annotations: map[string]any{schedulingv1beta1.PromiseRecordKey: apiserver.OrNull(record)}}
}

// disruption has a pod say whether it is to leave.
func disruption(status corev1.ConditionStatus, reason, message, record string, at metav1.Time) apiserver.PodWrite {
	return apiserver.PodWrite{
		Status: map[string]any{"conditions": []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: status, Reason: reason,
			Message: message, LastTransitionTime: at}}},
		Annotations: map[string]any{schedulingv1beta1.EvictionRecordKey: apiserver.OrNull(record)},
	}
}

func (m messenger) mark(ctx context.Context, e *podStep) error {
	var live corev1.Pod
	leaves := disruption(corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler, e.victim.Message, e.victim.Record(), e.of.marked)
	err := m.patch(ctx, e, "", leaves, &live)
	if err == apiserver.ErrObjectGone || err == nil && isOut(&live) {
		e.victim.isOut = true
	}
	return err
}

// isOut reports whether a pod makes room already, or has made it. To evict one that is done would delete what it leaves
// behind, its logs and its success.
func isOut(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// evict tells a pod to leave, or has the API server say whether it would let it: whatever may refuse that, disruption budgets, policies
// and webhooks, is asked, and nothing is done.
func (m messenger) evict(ctx context.Context, e *podStep, isDryRun bool) (EvictionResult, error) {
	if e.victim.isOut {
		return EvictionNeedless, nil
	}
	core := m.clients.Core.CoreV1()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.uid}}
	if isDryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	result, request := EvictionSent, core.RESTClient().Post().Namespace(e.pod.Namespace).Resource("pods").Name(e.pod.Name).SubResource("eviction").
		Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: e.pod.Namespace, Name: e.pod.Name}, DeleteOptions: &options})
	if e.victim.PastBudget {
		result, request = EvictionForced, core.RESTClient().Delete().Namespace(e.pod.Namespace).Resource("pods").Name(e.pod.Name).Body(&options)
	}
	if isDryRun {
		request.Param("dryRun", metav1.DryRunAll) // so that webhooks and policies are told, too
	}
	err := request.Timeout(apiserver.RequestTimeout).MaxRetries(0).Do(ctx).Error()
	switch {
	case err == nil && isDryRun, isDryRun && cannotTell(err):
		return "", nil
	case err == nil:
		e.victim.isRewritten = result == EvictionSent
		return result, nil
	case apierrors.IsNotFound(err):
		return EvictionNeedless, nil
	case !apiserver.IsFinal(err) && !forbids(err) && !apierrors.IsConflict(err):
		return "", err
	}
	// The refusal may be of another pod of the same name, or of a repetition.
	live, problem := apiserver.ReadPod(ctx, core, e.pod)
	switch {
	case apierrors.IsNotFound(problem) || problem == nil && (live.UID != e.uid || isOut(live)):
		return EvictionNeedless, nil
	case problem != nil:
		return "", problem
	}
	return "", err
}

// cannotTell reports whether a request was refused only because a webhook is not made for questions.
func cannotTell(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// forbids reports whether an eviction was refused because of a disruption budget. If the API server says when to ask again,
// it only was not ready to count.
func forbids(err error) bool {
	if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return false
	}
	_, later := apierrors.SuggestsClientDelay(err)
	return !later
}

// spare takes the mark off a pod, if it is one of a scheduler, and writes on one whose eviction was refused that it was.
func (m messenger) spare(ctx context.Context, e *podStep) error {
	live, err := m.live(ctx, e)
	if err != nil {
		return err
	}
	reason, message, isMarked := preemptionCancelled, e.of.why, false
	for i := range live.Status.Conditions {
		c := &live.Status.Conditions[i]
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		if isMarked = c.Reason == corev1.PodReasonPreemptionByScheduler; !isMarked {
			return nil
		}
	}
	if e.refusal != "" {
		reason, message = decision.EvictionRefused, e.refusal
	} else if !isMarked {
		return nil
	}
	stays := disruption(corev1.ConditionFalse, reason, message, e.record, metav1.NewTime(time.Now().Truncate(time.Second)))
	return m.patch(ctx, e, live.ResourceVersion, stays, nil)
}

// withdraw takes back what a pod is promised.
func (m messenger) withdraw(ctx context.Context, e *podStep) error {
	live, err := m.live(ctx, e)
	if err != nil || live.Status.NominatedNodeName == "" {
		return err
	}
	return m.patch(ctx, e, live.ResourceVersion, promised("", ""), nil)
}

// live reads a pod; ErrObjectGone says that it is gone or leaves.
func (m messenger) live(ctx context.Context, e *podStep) (*corev1.Pod, error) {
	live, err := apiserver.ReadPod(ctx, m.clients.Core.CoreV1(), e.pod)
	if apierrors.IsNotFound(err) || err == nil && (live.UID != e.uid || live.DeletionTimestamp != nil) {
		return nil, apiserver.ErrObjectGone
	}
	return live, err
}
