package cache

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/topology"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/resources"
)

// nodes takes in nodes, HyperNodes, volumes and devices.
type nodes struct {
	*base
	taints   taints.Tracker // and the tolerations of this scheduler's pods that are not finished
	topology *topology.Tree
}

func newNodes(b *base) nodes { return nodes{base: b, taints: taints.New(), topology: topology.New()} }

// settle makes the HyperNodes anew if they have changed.
func (k *nodes) settle() {
	if k.topology.Settle() {
		k.writer.SetHyperNodes(k.topology.HyperNodes())
	}
}

func (k *nodes) set(object *corev1.Node) {
	n := k.writer.Nodes.Named(object.Name)
	if n.Object != nil && n.Object.UID == object.UID && same.Node(n.Object, object) {
		n.Object = object
		return
	}
	k.show(n, object)
	k.topology.SetNode(n.Name, object.Labels)
}

// show sets what a node has, or with nil that it is gone.
func (k *nodes) show(n *cluster.Node, object *corev1.Node) {
	k.taints.SetNode(n.Name, n.Object, object)
	state := model.NodeState{Object: object}
	if object != nil {
		state.Ready, state.Allocatable = same.IsReady(object), k.allocatable(object)
		state.Standing = k.standingOf(object)
	}
	k.writer.Nodes.Show(n, state)
}

func (k *nodes) drop(object *corev1.Node) {
	n := k.Node(object.Name)
	if n == nil || n.Object == nil || n.Object.UID != object.UID {
		return
	}
	k.show(n, nil)
	n.Load = cluster.Load{}
	k.topology.DeleteNode(n.Name)
	// What was promised or assumed there will not come true. Pods that are bound there stay until they are deleted, and
	// bindings under way until the API server answers.
	tasks := n.Tasks()
	for i := len(tasks) - 1; i >= 0; i-- {
		if t := tasks[i]; t.Status == cluster.Pipelined {
			if t.Job != nil && t.Job.Plan != nil {
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

// tolerate counts tolerations of a task's pod in place of those that were counted for it before. Nodes with a taint that comes to be
// tolerated, or no longer is, count in other totals.
func (k *nodes) tolerate(t *cluster.Task, tolerations []corev1.Toleration) {
	t.Internal.Tolerations = k.taints.Count(t.Internal.Tolerations, tolerations, func(name string) {
		n := k.Node(name)
		k.writer.Nodes.SetStanding(n, k.standingOf(n.Object))
	})
}

// allocatable returns what a node has.
func (k *nodes) allocatable(object *corev1.Node) resources.Vector {
	v := k.Resources.Vector(object.Status.Allocatable)
	v.Set(resources.CPU, v.At(resources.CPU)+oversubscribed(object, schedulingv1beta1.OversubscriptionCPUKey))
	v.Set(resources.Memory, v.At(resources.Memory)+oversubscribed(object, schedulingv1beta1.OversubscriptionMemoryKey))
	k.writer.Served().AddTo(&v)
	return v
}

// oversubscribed is what the agent of a node says may be requested beyond what the node has, since those who hold it do not use it:
// thousandths of a CPU, or bytes. As in Volcano it is room for every pod, whatever the label volcano.sh/oversubscription says; what
// cannot be read is none.
func oversubscribed(node *corev1.Node, key string) int64 {
	amount, err := strconv.ParseFloat(node.Annotations[key], 64)
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

// serve counts a DeviceClass instead of what it was before; nil is none. If other resources are served then, the nodes have
// others, and pods others that they get as devices.
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

// measure notes how busy a node was found.
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
