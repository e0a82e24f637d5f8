package cache

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/topology"
	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// nodes applies events about nodes, HyperNodes, volumes and devices.
type nodes struct {
	*base
	taints   taints.Tracker // and the tolerations of this scheduler's pods that are not finished
	topology *topology.Tree
}

func newNodes(b *base) nodes { return nodes{base: b, taints: taints.New(), topology: topology.New()} }

// settle makes the HyperNodes again if they have changed.
func (k *nodes) settle() {
	if k.topology.Settle() {
		k.writer.SetHyperNodes(k.topology.HyperNodes())
	}
}

func (k *nodes) set(object *corev1.Node) {
	n := k.writer.Nodes.Named(object.Name)
	if n.Object != nil && k.isSame(n, object) { // most updates are heartbeats
		n.Object = object
		return
	}
	k.show(n, object)
	k.topology.SetNode(n.Name, object.Labels)
}

// show updates a node, or with nil says that its object is deleted.
func (k *nodes) show(n *cluster.Node, object *corev1.Node) {
	k.taints.SetNode(n.Name, n.Object, object)
	state := model.NodeState{Object: object}
	if object != nil {
		state.Ready, state.Allocatable = same.IsReady(object), k.allocatable(object)
		state.Standing = k.standingOf(object)
	}
	state.Difference = k.difference(n, &state)
	state.IsRelabelled = n.Object == nil || object == nil || !maps.Equal(n.Object.Labels, object.Labels)
	k.writer.Nodes.Show(n, state)
}

// isSame reports whether a new state of a node is the same for decisions.
func (k *nodes) isSame(n *cluster.Node, object *corev1.Node) bool {
	return n.Object.UID == object.UID && same.NodeState(n.Object, object) && maps.Equal(n.Object.Labels, object.Labels) && same.NodeAnnotations(k.writer.Classes().Keys(), n.Object, object) &&
		maps.EqualFunc(n.Object.Status.Allocatable, object.Status.Allocatable, resource.Quantity.Equal) && same.Images(n.Object, object)
}

// difference is what a new state of a node may change.
func (k *nodes) difference(n *cluster.Node, now *model.NodeState) model.NodeDifference {
	keys, isLess, isMore := k.writer.Classes().Keys(), !n.Allocatable.LessEqual(now.Allocatable), !now.Allocatable.LessEqual(n.Allocatable)
	switch {
	case n.Object == nil && now.Object != nil:
		return model.NodeMore
	case n.Object != nil && now.Object == nil:
		return model.NodeClosed
	case n.Object == nil, n.Object.UID != now.Object.UID, !same.NodeAnnotations(keys, n.Object, now.Object), !same.NodeLabels(k.isLabelRead, n.Object, now.Object),
		!same.IsNodeNoMoreOpen(n.Object, now.Object), isLess && isMore:
		return model.NodeAny
	case !same.NodeState(n.Object, now.Object):
		if isMore {
			return model.NodeAny
		}
		return model.NodeClosed
	case isLess:
		return model.NodeLess
	case isMore:
		return model.NodeMore
	}
	return model.NodeScores // kubelets tell of each image that they pull or remove
}

// isLabelRead reports whether a pod selects nodes by a label, or a plugin reads it.
func (k *nodes) isLabelRead(label string) bool {
	classes := k.writer.Classes()
	keys := classes.Keys()
	return keys.AnyOfNodes || classes.SelectsBy(label) || slices.Contains(keys.NodeLabels, label)
}

func (k *nodes) drop(object *corev1.Node) {
	n := k.Node(object.Name)
	if n == nil || n.Object == nil || n.Object.UID != object.UID {
		return
	}
	k.show(n, nil)
	n.Load = cluster.Load{}
	k.topology.DeleteNode(n.Name)
	// Tasks that are pipelined there by plans are released. Pods that are bound there, or nominated by other
	// schedulers, stay until they are deleted, and binds in flight until the API server answers.
	tasks := n.Tasks()
	for i := len(tasks) - 1; i >= 0; i-- {
		if t := tasks[i]; t.Status == cluster.Pipelined && t.Job != nil {
			if t.Job.Plan != nil {
				t.Job.Plan.Lost = n.Name
			}
			k.writer.Tasks.Release(t, cluster.Pending)
		}
	}
	k.writer.Nodes.DropIfEmpty(n)
}

// standingOf works out in which totals a node counts (rule Q6).
func (k *nodes) standingOf(object *corev1.Node) cluster.Standing {
	switch {
	case !same.IsReady(object) || object.Spec.Unschedulable:
		return cluster.StandsUnusable
	case !k.taints.AreTolerated(object):
		return cluster.StandsTainted
	}
	return cluster.StandsUsable
}

// tolerate replaces the tolerations that are counted for a task's pod. Nodes with a taint that begins or ceases to be
// tolerated then count in other totals.
func (k *nodes) tolerate(t *cluster.Task, tolerations []corev1.Toleration) {
	t.Internal.Tolerations = k.taints.Count(t.Internal.Tolerations, tolerations, func(name string) {
		n := k.Node(name)
		k.writer.Nodes.SetStanding(n, k.standingOf(n.Object))
	})
}

// allocatable returns the allocatable resources of a node.
func (k *nodes) allocatable(object *corev1.Node) resources.Vector {
	v := k.Resources.Vector(object.Status.Allocatable)
	v.Set(resources.CPU, v.At(resources.CPU)+oversubscribed(object, schedulingv1beta1.OversubscriptionCPUKey))
	v.Set(resources.Memory, v.At(resources.Memory)+oversubscribed(object, schedulingv1beta1.OversubscriptionMemoryKey))
	k.writer.Served().AddTo(&v)
	return v
}

// oversubscribed is what Volcano's agent adds to the allocatable resources of a node, because its pods do not use all
// of them: in thousandths of a CPU, or in bytes. As in Volcano every pod may use it, whatever the label
// volcano.sh/oversubscription says. A value that cannot be read adds nothing.
func oversubscribed(node *corev1.Node, key string) int64 {
	amount, err := bounds.ParseNumber(node.Annotations[key])
	if err != nil || !(amount > 0) {
		return 0
	}
	return int64(min(amount, float64(resources.MaxQuantity)))
}

func (k *nodes) setSupply(kind supplies.Kind, o supplies.Object) {
	if before, isNew := k.Supplies().Set(kind, o); isNew {
		k.serve(before, o)
		k.Note(wake.SupplyShown)
	}
}

func (k *nodes) dropSupply(kind supplies.Kind, o supplies.Object) {
	if before := k.Supplies().Delete(kind, o); before != nil {
		k.serve(before, nil)
		k.Note(wake.SupplyShown)
	}
}

// serve replaces a DeviceClass; nil is none. If the extended resources of DeviceClasses change, the resources of nodes
// and the classes of pods change too.
func (k *nodes) serve(before, now supplies.Object) {
	if !k.writer.Served().Replace(before, now) {
		return
	}
	k.writer.Classes().IsStale = true
	for _, n := range k.BySlot() {
		if n != nil && n.Object != nil {
			k.show(n, n.Object)
		}
	}
}

// measure stores the load of a node.
func (k *nodes) measure(e Measured) {
	n := k.Node(e.Node)
	if n == nil || n.Object == nil || e.At.Before(n.Load.At) {
		return
	}
	if e.Absolute {
		e.CPU = resources.Millionths(e.CPU, max(n.Allocatable.At(resources.CPU), 1))
		e.Memory = resources.Millionths(e.Memory, max(n.Allocatable.At(resources.Memory), 1))
	}
	n.Load = cluster.Load{CPU: min(max(e.CPU, 0), resources.Million), Memory: min(max(e.Memory, 0), resources.Million), At: e.At}
}
