package edge

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// errObjectGone says that the object a status was for does not exist any more, though one of the same name may.
var errObjectGone = errors.New("the object is gone")

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// onlyIf keeps a patch from applying to another object of the same name. The API server ignores metadata in a write to
// the status of a custom resource, so a UID there would check nothing.
func onlyIf(uid types.UID) operation { return operation{"test", "/metadata/uid", uid} }

// patch sends a patch of a status.
func patch(ctx context.Context, client rest.Interface, resource string, k key, kind types.PatchType, body any) error {
	return sendPatch(ctx, client, resource, k, kind, body).Error()
}

func sendPatch(ctx context.Context, client rest.Interface, resource string, k key, kind types.PatchType, body any) rest.Result {
	return sendTo(ctx, client, resource, []string{"status"}, k, kind, body)
}

func sendTo(ctx context.Context, client rest.Interface, resource string, subresource []string, k key, kind types.PatchType, body any) rest.Result {
	// What cannot be encoded is a defect here; as no valid JSON it is refused.
	encoded, _ := json.Marshal(body)
	return client.Patch(kind).NamespaceIfScoped(k.namespace, k.namespace != "").Resource(resource).Name(k.name).
		SubResource(subresource...).Body(encoded).Timeout(requestTimeout).MaxRetries(0).Do(ctx)
}

// explain turns the refusal of a patch into errObjectGone if that is what it means.
func explain(refusal error, uid types.UID, look func() (metav1.Object, error)) error {
	if apierrors.IsNotFound(refusal) {
		return errObjectGone
	}
	if !isFinal(refusal) && !apierrors.IsConflict(refusal) {
		return refusal
	}
	live, err := look()
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != uid {
		return errObjectGone
	}
	return refusal
}

// groupChange writes the whole status of a PodGroup: all of it is the scheduler's.
type groupChange cluster.GroupStatus

func (c groupChange) key() key       { return key{groupKind, c.Job.Namespace, c.Job.Name} }
func (c groupChange) uid() types.UID { return c.UID }

// urgent is true of a new phase: a controller waits for it with the pods.
func (c groupChange) urgent(last change) bool {
	before, ok := last.(groupChange)
	return !ok || before.UID != c.UID || before.Status.Phase != c.Status.Phase
}

func (c groupChange) write(ctx context.Context, clients *Clients) error {
	scheduling := clients.Batch.SchedulingV1beta1()
	body := []operation{onlyIf(c.UID), {"add", "/status", &c.Status}}
	look := func() (metav1.Object, error) {
		return scheduling.PodGroups(c.Job.Namespace).Get(ctx, c.Job.Name, metav1.GetOptions{})
	}
	err := patch(ctx, scheduling.RESTClient(), "podgroups", c.key(), types.JSONPatchType, body)
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		// Volcano's own definition has no subresource status, and answers as if there were no such PodGroup. There the status is a
		// field like any other. To send it there first would be lost in silence as soon as the definition is another.
		if live, problem := look(); problem == nil && live.GetUID() == c.UID {
			err = sendTo(ctx, scheduling.RESTClient(), "podgroups", nil, c.key(), types.JSONPatchType, body).Error()
		}
	}
	if err == nil {
		return nil
	}
	return explain(err, c.UID, look)
}

// placeChange writes in which HyperNode the pods of a PodGroup are.
type placeChange cluster.GroupPlace

func (c placeChange) key() key                { return key{placeKind, c.Job.Namespace, c.Job.Name} }
func (c placeChange) uid() types.UID          { return c.UID }
func (c placeChange) urgent(last change) bool { return last.uid() != c.UID }

func (c placeChange) write(ctx context.Context, clients *Clients) error {
	scheduling := clients.Batch.SchedulingV1beta1()
	var value any // null takes the annotation away
	if c.HyperNode != "" {
		value = c.HyperNode
	}
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": c.UID,
		"annotations": map[string]any{schedulingv1beta1.JobAllocatedHyperNodeKey: value}}})
	_, err := scheduling.PodGroups(c.Job.Namespace).Patch(ctx, c.Job.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		return nil
	}
	return explain(err, c.UID, func() (metav1.Object, error) {
		return scheduling.PodGroups(c.Job.Namespace).Get(ctx, c.Job.Name, metav1.GetOptions{})
	})
}

// gateChange takes the gate of queue admission off a pod.
type gateChange cluster.GateOpening

func (c gateChange) key() key                { return key{gateKind, c.Pod.Namespace, c.Pod.Name} }
func (c gateChange) uid() types.UID          { return c.UID }
func (c gateChange) urgent(last change) bool { return last.uid() != c.UID }

func (c gateChange) write(ctx context.Context, clients *Clients) error {
	pods := clients.Core.CoreV1().Pods(c.Pod.Namespace)
	err := openGate(ctx, clients.Core.CoreV1(), c.Pod, c.UID)
	if err == nil {
		return nil
	}
	return explain(err, c.UID, func() (metav1.Object, error) { return pods.Get(ctx, c.Pod.Name, metav1.GetOptions{}) })
}

// openGate takes the gate of queue admission off a pod. If it has none, nothing changes.
func openGate(ctx context.Context, pods typedcorev1.CoreV1Interface, pod types.NamespacedName, uid types.UID) error {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "spec": map[string]any{
		"schedulingGates": []any{map[string]any{"$patch": "delete", "name": schedulingv1beta1.QueueAllocationGateKey}}}})
	return pods.RESTClient().Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(body).Timeout(requestTimeout).MaxRetries(0).Do(ctx).Error()
}

// queueChange writes what a queue holds. The rest of its status is the controllers'.
type queueChange cluster.QueueStatus

func (c queueChange) key() key                { return key{queueKind, "", c.Queue} }
func (c queueChange) uid() types.UID          { return c.UID }
func (c queueChange) urgent(last change) bool { return last.uid() != c.UID }

func (c queueChange) write(ctx context.Context, clients *Clients) error {
	if !c.HasStatus {
		return c.begin(ctx, clients)
	}
	allocated := c.Allocated
	if allocated == nil {
		allocated = corev1.ResourceList{}
	}
	scheduling := clients.Batch.SchedulingV1beta1()
	err := patch(ctx, scheduling.RESTClient(), "queues", c.key(), types.JSONPatchType,
		[]operation{onlyIf(c.UID), {"add", "/status/allocated", allocated}})
	if err == nil {
		return nil
	}
	err = explain(err, c.UID, func() (metav1.Object, error) { return scheduling.Queues().Get(ctx, c.Queue, metav1.GetOptions{}) })
	if !isFinal(err) || err == errObjectGone {
		return err
	}
	return c.begin(ctx, clients) // somebody has taken the status away
}

// begin writes into a queue that had no status when it was seen last. JSON patches refuse to add to what is not there, and other
// patches leave what is there and should not be; so the queue is read first, and written only if nothing has happened to it
// since.
func (c queueChange) begin(ctx context.Context, clients *Clients) error {
	scheduling := clients.Batch.SchedulingV1beta1()
	live, err := scheduling.Queues().Get(ctx, c.Queue, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != c.UID {
		return errObjectGone
	}
	if err != nil {
		return err
	}
	allocated := map[string]any{}
	for name := range live.Status.Allocated {
		allocated[string(name)] = nil
	}
	for name, quantity := range c.Allocated {
		allocated[string(name)] = quantity
	}
	return patch(ctx, scheduling.RESTClient(), "queues", c.key(), types.MergePatchType,
		map[string]any{"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "status": map[string]any{"allocated": allocated}})
}

// podWrite is what is to be written on a pod. The API server takes annotations in a write to the status of a pod, so both are there
// or neither is.
type podWrite struct {
	status      map[string]any
	annotations map[string]any // null takes one away
}

// podPatch changes a pod of a UID, if a version is given only while it is that.
func podPatch(uid types.UID, version string, write podWrite) map[string]any {
	metadata := map[string]any{"uid": uid}
	if write.annotations != nil {
		metadata["annotations"] = write.annotations
	}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	return map[string]any{"metadata": metadata, "status": write.status}
}

// podChange writes one condition of a pod.
type podChange cluster.PodCondition

func (c podChange) key() key                { return key{podKind, c.Pod.Namespace, c.Pod.Name} }
func (c podChange) uid() types.UID          { return c.UID }
func (c podChange) urgent(last change) bool { return last.uid() != c.UID }

func (c podChange) write(ctx context.Context, clients *Clients) error {
	core := clients.Core.CoreV1()
	err := patch(ctx, core.RESTClient(), "pods", c.key(), types.StrategicMergePatchType,
		podPatch(c.UID, "", podWrite{status: map[string]any{"conditions": []corev1.PodCondition{c.Condition}}}))
	if err == nil {
		return nil
	}
	return explain(err, c.UID, func() (metav1.Object, error) {
		return core.Pods(c.Pod.Namespace).Get(ctx, c.Pod.Name, metav1.GetOptions{})
	})
}
