package simulation

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// collections are where the objects of a kind are that may own others.
var collections = map[string]string{
	"v1/Pod": "/api/v1/pods", "v1/Node": "/api/v1/nodes", "batch/v1/Job": "/apis/batch/v1/jobs",
	"apps/v1/Deployment": "/apis/apps/v1/deployments",
	"apps/v1/ReplicaSet": "/apis/apps/v1/replicasets", "apps/v1/StatefulSet": "/apis/apps/v1/statefulsets",
	"jobset.x-k8s.io/v1alpha2/JobSet":        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
	"batch.volcano.sh/v1alpha1/Job":          "/apis/batch.volcano.sh/v1alpha1/jobs",
	"scheduling.volcano.sh/v1beta1/PodGroup": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
	"kueue.x-k8s.io/v1beta1/Workload":        "/apis/kueue.x-k8s.io/v1beta2/workloads",
	"kueue.x-k8s.io/v1beta2/Workload":        "/apis/kueue.x-k8s.io/v1beta2/workloads",
}

// collector is the garbage collector: what it does with an object follows from the object, its owners and what it owns.
type collector struct {
	driver *driver
	dirty  map[string]bool               // ids of objects that are to be looked at
	owned  map[types.UID]map[string]bool // ids by the UID of an owner
}

func newCollector(d *driver) collector {
	return collector{driver: d, dirty: map[string]bool{}, owned: map[types.UID]map[string]bool{}}
}

// seen takes in a change of an object.
func (g *collector) seen(before, now *object) {
	if before != nil {
		for _, r := range before.GetOwnerReferences() {
			delete(g.owned[r.UID], before.id())
		}
	}
	if now != nil {
		for _, r := range now.GetOwnerReferences() {
			if g.owned[r.UID] == nil {
				g.owned[r.UID] = map[string]bool{}
			}
			g.owned[r.UID][now.id()] = true
		}
		if len(now.GetOwnerReferences()) > 0 || now.GetDeletionTimestamp() != nil {
			g.dirty[now.id()] = true
		}
		return
	}
	delete(g.dirty, before.id())
	for id := range g.owned[before.GetUID()] {
		g.dirty[id] = true
	}
	for _, r := range before.GetOwnerReferences() {
		if o := g.owner(before, r); o != nil {
			g.dirty[o.id()] = true
		}
	}
}

// owner returns the object that a reference names, nil if it is not there.
func (g *collector) owner(of *object, r metav1.OwnerReference) *object {
	collection, ok := collections[r.APIVersion+"/"+r.Kind]
	if !ok {
		return nil
	}
	namespace := of.GetNamespace()
	if r.Kind == "Node" {
		namespace = ""
	}
	if o := g.driver.observer.get(collection, namespace, r.Name); o != nil && o.GetUID() == r.UID {
		return o
	}
	return nil
}

func (g *collector) options() []option {
	if len(g.dirty) == 0 {
		return nil
	}
	id := slices.Min(slices.Collect(maps.Keys(g.dirty)))
	return []option{{3, "collect " + id, func() { g.look(id) }}}
}

// look does what is to be done with an object.
func (g *collector) look(id string) {
	delete(g.dirty, id)
	o := g.driver.observer.objects[id]
	switch {
	case o == nil:
	case o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		g.orphan(o)
	case o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		g.deleteOwned(o)
	case o.GetDeletionTimestamp() == nil:
		g.deleteUnowned(o)
	}
}

func (g *collector) dependents(o *object) []*object {
	var all []*object
	for _, id := range slices.Sorted(maps.Keys(g.owned[o.GetUID()])) {
		all = append(all, g.driver.observer.objects[id])
	}
	return all
}

// orphan takes what an object owns from it, and lets it go.
func (g *collector) orphan(o *object) {
	for _, dependent := range g.dependents(o) {
		g.withoutOwners(dependent, func(r metav1.OwnerReference) bool { return r.UID == o.GetUID() })
		g.dirty[o.id()] = true
		return // one request at a time
	}
	g.withoutFinalizer(o, metav1.FinalizerOrphanDependents)
}

// deleteOwned deletes what an object owns before the object itself.
func (g *collector) deleteOwned(o *object) {
	isBlocked := false
	for _, dependent := range g.dependents(o) {
		for _, r := range dependent.GetOwnerReferences() {
			isBlocked = isBlocked || r.UID == o.GetUID() && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
		}
		if dependent.GetDeletionTimestamp() == nil {
			policy := "Background"
			if len(g.owned[dependent.GetUID()]) > 0 {
				policy = "Foreground"
			}
			g.remove(dependent, policy)
			g.dirty[o.id()] = true
			return
		}
	}
	if !isBlocked {
		g.withoutFinalizer(o, metav1.FinalizerDeleteDependents)
	}
}

// deleteUnowned deletes an object whose owners are all gone.
func (g *collector) deleteUnowned(o *object) {
	references := o.GetOwnerReferences()
	gone := 0
	isGone := func(r metav1.OwnerReference) bool {
		return collections[r.APIVersion+"/"+r.Kind] != "" && g.owner(o, r) == nil
	}
	for _, r := range references {
		if isGone(r) {
			gone++
		}
	}
	switch {
	case gone == 0:
	case gone == len(references):
		g.remove(o, "Background")
	default:
		g.withoutOwners(o, isGone)
	}
}

func (g *collector) remove(o *object, policy string) {
	if !g.driver.delete("garbage-collector", o.path(), map[string]any{
		"propagationPolicy": policy, "preconditions": map[string]any{"uid": string(o.GetUID())},
	}) {
		g.dirty[o.id()] = true
	}
}

func (g *collector) withoutOwners(o *object, drops func(metav1.OwnerReference) bool) {
	kept := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), drops)
	if len(kept) == 0 {
		kept = nil
	}
	g.patch(o, map[string]any{"ownerReferences": kept})
}

func (g *collector) withoutFinalizer(o *object, name string) {
	kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name })
	if len(kept) == 0 {
		kept = nil
	}
	g.patch(o, map[string]any{"finalizers": kept})
}

// patch changes metadata of the object as it was seen.
func (g *collector) patch(o *object, metadata map[string]any) {
	metadata["resourceVersion"], metadata["uid"] = o.GetResourceVersion(), string(o.GetUID())
	if !g.driver.merge("garbage-collector", o.path(), map[string]any{"metadata": metadata}) {
		g.dirty[o.id()] = true
	}
}
