package hypernode

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/topology"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// Reconciler keeps the statuses of all HyperNodes up to date. Add puts it to work.
type Reconciler struct {
	client client.Client
	events events.EventRecorder
}

// Reconcile works out what every HyperNode holds and writes the statuses that differ.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	hyperNodes := &topologyv1alpha1.HyperNodeList{}
	if err := r.client.List(ctx, hyperNodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing HyperNodes: %w", err)
	}
	if len(hyperNodes.Items) == 0 {
		return reconcile.Result{}, nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes: %w", err)
	}
	tree := topology.New()
	for i := range nodes.Items {
		tree.SetNode(nodes.Items[i].Name, nodes.Items[i].Labels)
	}
	for i := range hyperNodes.Items {
		if !work.LeavesAlone(r.events, &hyperNodes.Items[i]) {
			tree.Set(&hyperNodes.Items[i])
		}
	}
	tree.Settle()
	var problems []error
	for _, h := range tree.HyperNodes() {
		if err := r.write(ctx, h); client.IgnoreNotFound(err) != nil {
			problems = append(problems, fmt.Errorf("writing the status of HyperNode %s: %w", h.Name, err))
		}
	}
	return reconcile.Result{}, errors.Join(problems...)
}

func (r *Reconciler) write(ctx context.Context, h *topology.HyperNode) error {
	if h.Object.DeletionTimestamp != nil {
		return nil
	}
	updated := h.Object.DeepCopy()
	setStatus(updated, h)
	if apiequality.Semantic.DeepEqual(&h.Object.Status, &updated.Status) {
		return nil
	}
	return r.client.Status().Patch(ctx, updated, client.MergeFrom(h.Object))
}

// maxMessage is how long the message of a condition may be.
const maxMessage = 32768

// setStatus says what became of a HyperNode.
func setStatus(object *topologyv1alpha1.HyperNode, h *topology.HyperNode) {
	object.Status.NodeCount = int64(len(h.Nodes))
	condition := metav1.Condition{Type: topologyv1alpha1.ReadyCondition, Status: metav1.ConditionTrue,
		Reason: topologyv1alpha1.ReasonInForce, ObservedGeneration: object.Generation}
	if h.Problem != "" {
		condition.Status, condition.Reason = metav1.ConditionFalse, topologyv1alpha1.ReasonInvalid
		condition.Message = h.Problem[:min(len(h.Problem), maxMessage)]
	}
	meta.SetStatusCondition(&object.Status.Conditions, condition)
}
