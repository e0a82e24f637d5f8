package steering

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// podsByWorkload is the index of pods by the Workload that they belong to.
const podsByWorkload = "workload"

// podsSettle is how long pods that come are gathered before their Workload is looked at.
const podsSettle = 50 * time.Millisecond

// Reconciler steers the pods of one Workload at a time. Add puts it to work.
type Reconciler struct {
	client client.Client
	isOn   func() bool
}

// Add puts the controller into the manager. isOn says whether Workloads are served.
func Add(mgr manager.Manager, name string, workers int, isOn func() bool) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, podsByWorkload, func(o client.Object) []string {
		if of := o.GetAnnotations()[v1beta2.WorkloadAnnotation]; of != "" {
			return []string{of}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing pods by Workload: %w", err)
	}
	return builder.ControllerManagedBy(mgr).Named(name).
		Watches(&corev1.Pod{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) { wake(e.Object, queue) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) { wake(e.ObjectNew, queue) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) { wake(e.Object, queue) },
		}).
		WithOptions(work.Options(workers)).
		Complete(&Reconciler{client: mgr.GetClient(), isOn: isOn})
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wake queues the Workload of a pod if the pod waits for a node, or has given one back.
func wake(object client.Object, queue queue) {
	pod, is := object.(*corev1.Pod)
	name := object.GetAnnotations()[v1beta2.WorkloadAnnotation]
	if !is || name == "" || !IsGated(pod) && pod.Spec.NodeSelector[corev1.LabelHostname] == "" {
		return
	}
	queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}}, podsSettle)
}

// IsGated reports whether a pod waits for the name of its node.
func IsGated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == v1beta2.TopologyGate })
}

// Reconcile gives each pod that waits a node with a free place.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.isOn() {
		return reconcile.Result{}, nil
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(request.Namespace), client.MatchingFields{podsByWorkload: request.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing pods: %w", err)
	}
	if !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return IsGated(&p) }) {
		return reconcile.Result{}, nil
	}
	w := &v1beta2.Workload{}
	if err := r.client.Get(ctx, request.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !conditions.Is(w, v1beta2.Admitted) || conditions.Is(w, v1beta2.Evicted) || w.Status.Admission == nil {
		return reconcile.Result{}, nil
	}
	chosen, err := choose(w.Status.Admission, pods.Items)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("steering the pods of Workload %s: %w", w.Name, err)
	}
	for _, c := range chosen {
		err := r.send(ctx, c.pod, c.node)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("sending pod %s to node %s: %w", c.pod.Name, c.node, err)
		}
	}
	return reconcile.Result{}, nil
}

// choice is the node of a pod.
type choice struct {
	pod  *corev1.Pod
	node string
}

// choose gives pods that wait the free places of their podset, both in order.
func choose(admission *v1beta2.Admission, pods []corev1.Pod) ([]choice, error) {
	var chosen []choice
	for i := range admission.PodSetAssignments {
		p := &admission.PodSetAssignments[i]
		places, err := settings.Nodes(p.TopologyAssignment)
		if err != nil {
			return nil, fmt.Errorf("podset %s: %w", p.Name, err)
		}
		var waiting []*corev1.Pod
		for j := range pods {
			pod := &pods[j]
			if pod.Labels[v1beta2.PodSetLabel] != p.Name || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
				continue
			}
			if IsGated(pod) {
				if pod.DeletionTimestamp == nil {
					waiting = append(waiting, pod)
				}
				continue
			}
			node := pod.Spec.NodeSelector[corev1.LabelHostname]
			if at := slices.IndexFunc(places, func(n settings.NodeCount) bool { return n.Node == node }); at >= 0 {
				places[at].Count--
			}
		}
		slices.SortFunc(waiting, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		for _, pod := range waiting {
			at := slices.IndexFunc(places, func(n settings.NodeCount) bool { return n.Count > 0 })
			if at < 0 {
				break
			}
			places[at].Count--
			chosen = append(chosen, choice{pod, places[at].Node})
		}
	}
	return chosen, nil
}

// send puts a node into the selector of a pod, and takes away its gate.
func (r *Reconciler) send(ctx context.Context, pod *corev1.Pod, node string) error {
	gates := slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool { return g.Name == v1beta2.TopologyGate })
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pod.ResourceVersion},
		"spec":     map[string]any{"nodeSelector": map[string]string{corev1.LabelHostname: node}, "schedulingGates": gates},
	})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
}
