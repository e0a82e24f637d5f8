package cluster

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// allocatable returns what a node has.
func (c *Cluster) allocatable(object *corev1.Node) resources.Vector {
	v := c.Resources.Vector(object.Status.Allocatable)
	v.Set(resources.CPU, v.At(resources.CPU)+oversubscribed(object, schedulingv1beta1.OversubscriptionCPUKey))
	v.Set(resources.Memory, v.At(resources.Memory)+oversubscribed(object, schedulingv1beta1.OversubscriptionMemoryKey))
	c.served.AddTo(&v)
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

// Has reports whether the node itself has a resource: devices that a DeviceClass stands for are not counted.
func (n *Node) Has(d resources.Dim) bool {
	have := n.Allocatable.At(d)
	return have > 0 && have != supplies.Boundless
}
