package cluster

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
)

// Boundless is how much a node has of a resource that it does not count itself but DeviceClasses stand for: more than there are
// devices. How many of them can be had there is for the plugin for devices to say. A cluster of many such nodes has no more of
// it than one of large nodes has bytes of memory.
const Boundless = 1 << 40

// served are the resources that DeviceClasses stand for, each with how many do. A pod that requests one of them from a node
// that has none is given devices.
type served map[resources.Dim]int

// resourcesOf returns the resources that a DeviceClass stands for.
func (c *Cluster) resourcesOf(class *resourcev1.DeviceClass) []resources.Dim {
	dims := []resources.Dim{c.Resources.Dim(corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + class.Name))}
	if name := class.Spec.ExtendedResourceName; name != nil && *name != "" {
		dims = append(dims, c.Resources.Dim(corev1.ResourceName(*name)))
	}
	return dims
}

// serve counts a DeviceClass instead of what it was before; nil is none. If other resources are served then, the nodes have
// others, and pods others that they get as devices.
func (c *Cluster) serve(before, now Supply) {
	var gone, come []resources.Dim
	if class, ok := before.(*resourcev1.DeviceClass); ok {
		gone = c.resourcesOf(class)
	}
	if class, ok := now.(*resourcev1.DeviceClass); ok {
		come = c.resourcesOf(class)
	}
	if slices.Equal(gone, come) {
		return
	}
	isNew := false
	for _, d := range come {
		c.served[d]++
		isNew = isNew || c.served[d] == 1
	}
	for _, d := range gone {
		if c.served[d]--; c.served[d] == 0 {
			delete(c.served, d)
			isNew = true
		}
	}
	if !isNew {
		return
	}
	c.classesAreStale = true
	for _, n := range c.bySlot {
		if n != nil && n.Object != nil {
			c.showNode(n, n.Object)
		}
	}
}

// allocatable returns what a node has.
func (c *Cluster) allocatable(object *corev1.Node) resources.Vector {
	v := c.Resources.Vector(object.Status.Allocatable)
	v.Set(resources.CPU, v.At(resources.CPU)+oversubscribed(object, schedulingv1beta1.OversubscriptionCPUKey))
	v.Set(resources.Memory, v.At(resources.Memory)+oversubscribed(object, schedulingv1beta1.OversubscriptionMemoryKey))
	for d := range c.served {
		if v.At(d) == 0 {
			v.Set(d, Boundless)
		}
	}
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

// isServed reports whether a request may be met by devices that the pod does not name.
func (c *Cluster) isServed(request resources.Vector) bool {
	for d := range c.served {
		if request.At(d) > 0 {
			return true
		}
	}
	return false
}

// Has reports whether the node itself has a resource: devices that a DeviceClass stands for are not counted.
func (n *Node) Has(d resources.Dim) bool {
	have := n.Allocatable.At(d)
	return have > 0 && have != Boundless
}
