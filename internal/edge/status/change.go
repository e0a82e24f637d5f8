package status

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// The kinds of changes, as logs show them.
const (
	ofGroup = "PodGroup"
	ofPlace = "HyperNode of a PodGroup"
	ofQueue = "Queue"
	ofPod   = "condition of a Pod"
	ofGate  = "gate of a Pod"
	ofWait  = "stand-ins of a PodGroup"
	ofEnd   = "failure of a Pod"
)

// key tells apart what is written: for each key there is one write at a time.
type key struct {
	what string
	name types.NamespacedName
}

// Group writes the whole status of a PodGroup: all of it is the scheduler's.
type Group decision.GroupStatus

func (c Group) key() key       { return key{ofGroup, c.Job.Key()} }
func (c Group) uid() types.UID { return c.UID }

// urgent is true of a new phase: a controller waits for it with the pods.
func (c Group) urgent(last Change) bool {
	before, ok := last.(Group)
	return !ok || before.UID != c.UID || before.Status.Phase != c.Status.Phase
}

func (c Group) write(ctx context.Context, clients *apiserver.Clients) error {
	scheduling := clients.Batch.SchedulingV1beta1()
	body := []apiserver.Operation{apiserver.OnlyIf(c.UID), apiserver.Add("/status", &c.Status)}
	look := func() (metav1.Object, error) {
		return scheduling.PodGroups(c.Job.Namespace).Get(ctx, c.Job.Name, metav1.GetOptions{})
	}
	err := apiserver.PatchStatus(ctx, scheduling.RESTClient(), "podgroups", c.key().name, types.JSONPatchType, body).Error()
	if err == nil {
		return nil
	}
	if apierrors.IsNotFound(err) {
		// Volcano's own definition has no subresource status, and answers as if there were no such PodGroup. There the
		// status is a field like any other. To send it there first would be lost in silence as soon as the definition
		// is another.
		if live, problem := look(); problem == nil && live.GetUID() == c.UID {
			err = apiserver.PatchTo(ctx, scheduling.RESTClient(), "podgroups", nil, c.key().name, types.JSONPatchType, body).Error()
		}
	}
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, c.UID, look)
}

func (c Group) refresh() bool { return c.IsRefresh }

// awaited is true of a phase for which a controller waits with the pods.
func (c Group) awaited() bool { return c.AwaitsPods }

// Place writes in which HyperNode the pods of a PodGroup are.
type Place decision.GroupPlace

func (c Place) key() key                { return key{ofPlace, c.Job.Key()} }
func (c Place) refresh() bool           { return false }
func (c Place) uid() types.UID          { return c.UID }
func (c Place) urgent(last Change) bool { return last.uid() != c.UID }
func (c Place) awaited() bool           { return false }

func (c Place) write(ctx context.Context, clients *apiserver.Clients) error {
	return annotateGroup(ctx, clients, c.Job.Key(), c.UID, schedulingv1beta1.JobAllocatedHyperNodeKey, c.HyperNode)
}

// annotateGroup writes an annotation of a PodGroup, or removes it if the value is empty.
func annotateGroup(ctx context.Context, clients *apiserver.Clients, name types.NamespacedName, uid types.UID, key, text string) error {
	groups := clients.Batch.SchedulingV1beta1().PodGroups(name.Namespace)
	var value any // null takes the annotation away
	if text != "" {
		value = text
	}
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "annotations": map[string]any{key: value}}})
	_, err := groups.Patch(ctx, name.Name, types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, uid, func() (metav1.Object, error) { return groups.Get(ctx, name.Name, metav1.GetOptions{}) })
}

// StandIns records on a PodGroup which nodes are held for pods that do not exist yet.
type StandIns decision.GroupStandIns

func (c StandIns) key() key                { return key{ofWait, c.Job.Key()} }
func (c StandIns) refresh() bool           { return false }
func (c StandIns) uid() types.UID          { return c.UID }
func (c StandIns) urgent(last Change) bool { return true }

// awaited is true because a scheduler that starts again finds the nodes by the record alone.
func (c StandIns) awaited() bool { return true }

func (c StandIns) write(ctx context.Context, clients *apiserver.Clients) error {
	return annotateGroup(ctx, clients, c.Job.Key(), c.UID, schedulingv1beta1.StandInsKey, c.Record)
}

// Failure says that a pod which waits has failed.
type Failure decision.PodFailure

func (c Failure) key() key                { return key{ofEnd, c.Pod} }
func (c Failure) refresh() bool           { return false }
func (c Failure) uid() types.UID          { return c.UID }
func (c Failure) urgent(last Change) bool { return last.uid() != c.UID }
func (c Failure) awaited() bool           { return false }

func (c Failure) write(ctx context.Context, clients *apiserver.Clients) error {
	core := clients.Core.CoreV1()
	err := apiserver.PatchStatus(ctx, core.RESTClient(), "pods", c.key().name, types.StrategicMergePatchType, apiserver.PodPatch(c.UID, "",
		apiserver.PodWrite{Status: map[string]any{"phase": corev1.PodFailed, "reason": c.Reason, "message": c.Message}})).Error()
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, c.UID, func() (metav1.Object, error) {
		return core.Pods(c.Pod.Namespace).Get(ctx, c.Pod.Name, metav1.GetOptions{})
	})
}

// Gate takes the gate of queue admission off a pod.
type Gate decision.GateOpening

func (c Gate) key() key                { return key{ofGate, c.Pod} }
func (c Gate) refresh() bool           { return false }
func (c Gate) uid() types.UID          { return c.UID }
func (c Gate) urgent(last Change) bool { return last.uid() != c.UID }

// awaited is true because a pod with its gate cannot be placed.
func (c Gate) awaited() bool { return true }

func (c Gate) write(ctx context.Context, clients *apiserver.Clients) error {
	pods := clients.Core.CoreV1().Pods(c.Pod.Namespace)
	err := apiserver.OpenGate(ctx, clients.Core.CoreV1(), c.Pod, c.UID)
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, c.UID, func() (metav1.Object, error) { return pods.Get(ctx, c.Pod.Name, metav1.GetOptions{}) })
}

// Queue writes what a queue holds. The rest of its status is the controllers'.
type Queue decision.QueueStatus

func (c Queue) key() key                { return key{ofQueue, types.NamespacedName{Name: c.Queue}} }
func (c Queue) refresh() bool           { return false }
func (c Queue) uid() types.UID          { return c.UID }
func (c Queue) urgent(last Change) bool { return last.uid() != c.UID }
func (c Queue) awaited() bool           { return false }

func (c Queue) write(ctx context.Context, clients *apiserver.Clients) error {
	if !c.HasStatus {
		return c.begin(ctx, clients)
	}
	allocated := c.Allocated
	if allocated == nil {
		allocated = corev1.ResourceList{}
	}
	scheduling := clients.Batch.SchedulingV1beta1()
	err := apiserver.PatchStatus(ctx, scheduling.RESTClient(), "queues", c.key().name, types.JSONPatchType,
		[]apiserver.Operation{apiserver.OnlyIf(c.UID), apiserver.Add("/status/allocated", allocated)}).Error()
	if err == nil {
		return nil
	}
	err = apiserver.ExplainRefusal(err, c.UID, func() (metav1.Object, error) { return scheduling.Queues().Get(ctx, c.Queue, metav1.GetOptions{}) })
	if !apiserver.IsFinal(err) || err == apiserver.ErrObjectGone {
		return err
	}
	return c.begin(ctx, clients) // another client has taken the status away
}

// Begin writes into a queue that had no status when it was seen last. JSON patches cannot add to a missing status, and
// other patches keep fields that should be removed. So the queue is read first, and written only if it has not changed
// since.
func (c Queue) begin(ctx context.Context, clients *apiserver.Clients) error {
	scheduling := clients.Batch.SchedulingV1beta1()
	live, err := scheduling.Queues().Get(ctx, c.Queue, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.UID != c.UID {
		return apiserver.ErrObjectGone
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
	return apiserver.PatchStatus(ctx, scheduling.RESTClient(), "queues", c.key().name, types.MergePatchType,
		map[string]any{"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "status": map[string]any{"allocated": allocated}}).Error()
}

// Pod writes one condition of a pod.
type Pod decision.PodCondition

func (c Pod) key() key                { return key{ofPod, c.Pod} }
func (c Pod) refresh() bool           { return false }
func (c Pod) uid() types.UID          { return c.UID }
func (c Pod) urgent(last Change) bool { return last.uid() != c.UID }
func (c Pod) awaited() bool           { return false }

func (c Pod) write(ctx context.Context, clients *apiserver.Clients) error {
	core := clients.Core.CoreV1()
	err := apiserver.PatchStatus(ctx, core.RESTClient(), "pods", c.key().name, types.StrategicMergePatchType,
		apiserver.PodPatch(c.UID, "", apiserver.PodWrite{Status: map[string]any{"conditions": []corev1.PodCondition{c.Condition}}})).Error()
	if err == nil {
		return nil
	}
	return apiserver.ExplainRefusal(err, c.UID, func() (metav1.Object, error) {
		return core.Pods(c.Pod.Namespace).Get(ctx, c.Pod.Name, metav1.GetOptions{})
	})
}
