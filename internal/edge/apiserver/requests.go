package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// RequestTimeout limits one request, here and at the server. A healthy server answers within a second.
	RequestTimeout = 15 * time.Second
	// MaxRequests is how often a binding, or a step of a plan, is sent. With the back-off it outlasts a restart of the
	// API server. After that it is better to place the job again than to use a decision that is half a minute old.
	MaxRequests = 8
	// longestPause limits the back-off and the Retry-After of the server.
	longestPause = 10 * time.Second
)

// RequestBackOff is the pause before a request is repeated.
var RequestBackOff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 20, Cap: longestPause}

// ErrObjectGone says that the object of a request no longer exists. Another object with its name may exist.
var ErrObjectGone = errors.New("the object is gone")

// Operation is one step of a JSON patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Add sets a field, whether it exists or not.
func Add(path string, value any) Operation { return Operation{"add", path, value} }

// OnlyIf makes a patch fail for another object with the same name. The API server ignores metadata in a write to the
// status of a custom resource, so a UID there would check nothing.
func OnlyIf(uid types.UID) Operation { return Operation{"test", "/metadata/uid", uid} }

// PatchStatus sends a patch of the status of an object.
func PatchStatus(ctx context.Context, client rest.Interface, resource string, name types.NamespacedName, kind types.PatchType, body any) rest.Result {
	return PatchTo(ctx, client, resource, []string{"status"}, name, kind, body)
}

// PatchTo sends a patch of an object, or of one of its subresources.
func PatchTo(ctx context.Context, client rest.Interface, resource string, subresource []string, name types.NamespacedName, kind types.PatchType,
	body any) rest.Result {
	// A body that cannot be encoded is a bug. The API server refuses it, since it is not valid JSON.
	encoded, _ := json.Marshal(body)
	return client.Patch(kind).NamespaceIfScoped(name.Namespace, name.Namespace != "").Resource(resource).Name(name.Name).
		SubResource(subresource...).Body(encoded).Timeout(RequestTimeout).MaxRetries(0).Do(ctx)
}

// ExplainRefusal turns the error of a write into ErrObjectGone if the object with this UID no longer exists. look reads
// the object with its name.
func ExplainRefusal(refusal error, uid types.UID, look func() (metav1.Object, error)) error {
	if apierrors.IsNotFound(refusal) {
		return ErrObjectGone
	}
	if !IsFinal(refusal) && !apierrors.IsConflict(refusal) {
		return refusal
	}
	live, err := look()
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != uid {
		return ErrObjectGone
	}
	return refusal
}

// ReadPod reads a pod from the API server, past all caches.
func ReadPod(ctx context.Context, pods typedcorev1.CoreV1Interface, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := pods.RESTClient().Get().Namespace(name.Namespace).Resource("pods").Name(name.Name).
		VersionedParams(&metav1.GetOptions{}, scheme.ParameterCodec).
		Timeout(RequestTimeout).MaxRetries(0).Do(ctx).Into(pod)
	return pod, err
}

// IsFinal reports whether the API server has understood a request, and would give the same error again. It is false if
// there was no answer, if the API server was not able to answer, and for a conflict, which may be with an older write.
func IsFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// PauseAfter is how long to wait after an error: the Retry-After of the server, but at least the back-off.
func PauseAfter(err error, backOff *wait.Backoff) time.Duration {
	pause := backOff.Step()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, time.Duration(seconds)*time.Second)
	}
	return min(pause, longestPause)
}

// PodWrite is a change of a pod's status and annotations. The API server accepts annotations in a write to the status,
// so both are written in one request.
type PodWrite struct {
	Status      map[string]any
	Annotations map[string]any // null removes one
}

// PodPatch changes the pod with a UID. If a version is given, it changes only this version.
func PodPatch(uid types.UID, version string, write PodWrite) map[string]any {
	metadata := map[string]any{"uid": uid}
	if write.Annotations != nil {
		metadata["annotations"] = write.Annotations
	}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return map[string]any{"metadata": metadata, "status": write.Status}
}

// Right is one that a setting or a part of this process needs; the rest works without it.
type Right struct {
	Of authorizationv1.ResourceAttributes
	// Missing is said where it is missing: what needs it, and what gives it.
	Missing string
}

// GateRight is what [OpenGate] needs.
var GateRight = Right{authorizationv1.ResourceAttributes{Verb: "patch", Resource: "pods"},
	"the feature gate SchedulingGatesQueueAdmission needs the right to patch pods: kubectl apply -f installer/gates.yaml, " +
		"or set queueAdmissionGates in the values of the chart"}

// IsThere asks the API server whether this process has the right.
func (r Right) IsThere(ctx context.Context, reviews typedauthorizationv1.SelfSubjectAccessReviewsGetter) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r.Of}}
	answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// OpenGate removes the scheduling gate of queue admission from a pod, if it has it. The error of a missing right names
// [GateRight].
func OpenGate(ctx context.Context, pods typedcorev1.CoreV1Interface, pod types.NamespacedName, uid types.UID) error {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "spec": map[string]any{
		"schedulingGates": []any{map[string]any{"$patch": "delete", "name": schedulingv1beta1.QueueAllocationGateKey}}}})
	err := pods.RESTClient().Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(body).Timeout(RequestTimeout).MaxRetries(0).Do(ctx).Error()
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("its scheduling gate stays: %w; %s", err, GateRight.Missing)
	}
	return err
}

// OrNull is a value in a patch, null for "", which removes the field.
func OrNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}
