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

// EvictionResult is the result of an eviction.
type EvictionResult string

// How an eviction ends.
const (
	// EvictionSent: the API server has accepted it, within the disruption budget if there is one.
	EvictionSent EvictionResult = "evicted"
	// EvictionForced: the pod was deleted, past its disruption budgets.
	EvictionForced EvictionResult = "deleted"
	// EvictionNeedless: the pod was deleted, terminating, or finished already.
	EvictionNeedless EvictionResult = "gone"
	// EvictionRefused: the API server has refused it, or a disruption budget forbids it.
	EvictionRefused EvictionResult = "refused"
	// EvictionDropped: its plan was cancelled or refused before it was sent.
	EvictionDropped EvictionResult = "unsent"
	// EvictionUnknown: its plan was cancelled before the API server answered.
	EvictionUnknown EvictionResult = "unknown"
)

// EvictionResults are all results there are.
var EvictionResults = []EvictionResult{EvictionSent, EvictionForced, EvictionNeedless, EvictionRefused, EvictionDropped, EvictionUnknown}

// step is one kind of write to a pod for a plan.
type step uint8

const (
	nominate step = iota // writes the nominated node
	ask                  // asks the API server for a dry run of the eviction
	mark                 // writes on a victim why it will be evicted
	evict                // evicts the pod
	restate              // writes the reason again, because the API server has replaced it by its own
	spare                // removes the mark of a victim that stays
	withdraw             // removes the nominated node
)

var doing = [...]string{nominate: "nominating", ask: "evicting", mark: "marking", evict: "evicting", restate: "marking", spare: "sparing",
	withdraw: "taking back the promise to"}

// preemptionCancelled is the reason in the condition of a victim that stays.
const preemptionCancelled = "PreemptionCancelled"

// podStep is one step for one pod.
type podStep struct {
	of     *planExecution
	step   step
	pod    types.NamespacedName
	uid    types.UID
	node   string  // to nominate, or not to withdraw
	victim *victim // for ask, mark and evict
	// refusal is the text about a refused eviction to write on a pod that stays; "" if there was none.
	refusal string
	record  string // the record to write with a nomination, or on a pod that stays; "" removes it

	backOff  wait.Backoff
	requests int
	returned chan struct{} // closed when the request in flight has returned

	isQueued  bool // its stage is current
	isRunning bool // a request is in flight
	isVoid    bool // it must not be repeated
	isOver    bool
}

// victim is a pod to evict, through all its steps.
type victim struct {
	decision.Eviction
	isOut       bool // the pod is gone or terminating already
	isRewritten bool // the API server has replaced the reason by its own
	isRefused   bool // the API server has refused its eviction
}

// messenger sends the requests of steps.
type messenger struct{ clients *apiserver.Clients }

// do sends the request of a step. ErrObjectGone says that the pod does not exist or no longer matters. The result is
// that of an eviction, "" while it is unknown.
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

// patch changes the status of a pod and its record in one request. It changes only the pod with this UID, and, if a
// version is given, only in this version. The result is stored in into, unless that is nil.
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
	// A pod with a node has no nominated node, and needs none.
	if live, problem := apiserver.ReadPod(ctx, m.clients.Core.CoreV1(), e.pod); problem == nil && live.Spec.NodeName != "" {
		return nil
	}
	return err
}

// promised sets the nominated node of a pod, none if it is "".
func promised(node, record string) apiserver.PodWrite {
	return apiserver.PodWrite{Status: map[string]any{"nominatedNodeName": apiserver.OrNull(node)}, Annotations: map[string]any{schedulingv1beta1.PromiseRecordKey: apiserver.OrNull(record)}}
}

// disruption sets the condition that says whether a pod will be evicted.
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

// isOut reports whether a pod is terminating or finished. Evicting a finished pod would delete its logs and its result.
func isOut(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// evict evicts a pod. As a dry run it changes nothing, but everything that may refuse is asked: disruption budgets,
// policies and webhooks.
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
		request.Param("dryRun", metav1.DryRunAll) // webhooks and policies need it too
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
	// The refusal may be about another pod of the same name, or about a repetition.
	live, problem := apiserver.ReadPod(ctx, core, e.pod)
	switch {
	case apierrors.IsNotFound(problem) || problem == nil && (live.UID != e.uid || isOut(live)):
		return EvictionNeedless, nil
	case problem != nil:
		return "", problem
	}
	return "", err
}

// cannotTell reports whether a request was refused only because a webhook does not support dry runs.
func cannotTell(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// forbids reports whether an eviction was refused because of a disruption budget. If the API server says when to retry,
// the budget's status only was not up to date.
func forbids(err error) bool {
	if !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		return false
	}
	_, later := apierrors.SuggestsClientDelay(err)
	return !later
}

// spare removes the mark of a scheduler from a pod. If its eviction was refused, it writes that instead.
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

// withdraw removes the nominated node of a pod without a node, unless it is that of the step.
func (m messenger) withdraw(ctx context.Context, e *podStep) error {
	live, err := m.live(ctx, e)
	if err != nil || live.Spec.NodeName != "" || live.Status.NominatedNodeName == "" || live.Status.NominatedNodeName == e.node {
		return err
	}
	return m.patch(ctx, e, live.ResourceVersion, promised("", ""), nil)
}

// live reads a pod. ErrObjectGone says that it is deleted or terminating.
func (m messenger) live(ctx context.Context, e *podStep) (*corev1.Pod, error) {
	live, err := apiserver.ReadPod(ctx, m.clients.Core.CoreV1(), e.pod)
	if apierrors.IsNotFound(err) || err == nil && (live.UID != e.uid || live.DeletionTimestamp != nil) {
		return nil, apiserver.ErrObjectGone
	}
	return live, err
}
