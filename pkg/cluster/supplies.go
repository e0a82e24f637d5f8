package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Supplies returns the volumes and devices.
func (c *Cluster) Supplies() *supplies.Store { return c.supplies }

// Users returns the tasks whose pods name a PersistentVolumeClaim, in no particular order. The caller must not change the slice.
func (c *Cluster) Users(claim types.NamespacedName) []*Task { return c.claimUsers[claim] }

func (c *Cluster) setSupply(kind supplies.Kind, o supplies.Object) {
	if before, isNew := c.supplies.Set(kind, o); isNew {
		c.serve(before, o)
		c.world.Note(wake.SupplyShown)
	}
}

func (c *Cluster) dropSupply(kind supplies.Kind, o supplies.Object) {
	if before := c.supplies.Delete(kind, o); before != nil {
		c.serve(before, nil)
		c.world.Note(wake.SupplyShown)
	}
}

// serve counts a DeviceClass instead of what it was before; nil is none. If other resources are served then, the nodes have
// others, and pods others that they get as devices.
func (c *Cluster) serve(before, now supplies.Object) {
	if !c.served.Replace(before, now) {
		return
	}
	c.classes.IsStale = true
	for _, n := range c.bySlot {
		if n != nil && n.Object != nil {
			c.showNode(n, n.Object)
		}
	}
}

// enroll lists a task with the claims that its pod names, or takes it off.
func (c *Cluster) enroll(t *Task, pod *corev1.Pod, isThere bool) {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim := types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}
		users := slices.DeleteFunc(c.claimUsers[claim], func(u *Task) bool { return u == t })
		if isThere {
			users = append(users, t)
		}
		if len(users) == 0 {
			delete(c.claimUsers, claim)
		} else {
			c.claimUsers[claim] = users
		}
	}
}

// Reserve notes what a task that was placed, or was promised a node, takes there besides room. It is undone with it.
func (c *Cluster) Reserve(t *Task, r *supplies.Reservation) {
	invariant(t.Status == Allocated || t.Status == Pipelined, "task %s reserves volumes or devices while %s", t.Key(), t.Status)
	c.log = append(c.log, operation{task: t, status: t.Status, node: t.Node, reservation: t.Reservation})
	c.hold(t, r)
}

// hold makes a reservation the one of a task, instead of the one it had. Nil is none.
func (c *Cluster) hold(t *Task, r *supplies.Reservation) {
	if t.Reservation == r {
		return
	}
	holder := supplies.Pod{NamespacedName: t.Key(), UID: t.UID()}
	if t.Reservation != nil {
		c.supplies.Release(holder, t.Reservation)
	}
	t.Reservation = r
	if r != nil {
		node := ""
		if t.Node != nil {
			node = t.Node.Name
		}
		c.supplies.Hold(holder, node, r)
	}
}

// letGo ends a reservation after what happened outside. If the pod has its node, all was written before; else it is free.
func (c *Cluster) letGo(t *Task, isBound bool) {
	switch {
	case t.Reservation == nil:
	case isBound:
		c.supplies.Write(supplies.Pod{NamespacedName: t.Key(), UID: t.UID()}, t.Reservation)
		t.Reservation = nil
	default:
		c.hold(t, nil)
		c.world.Note(wake.SupplyFreed)
	}
}
