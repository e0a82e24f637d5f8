package simulation

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What operators do: the controller of a kind that no other program knows makes Jobs of its objects, and lets
// them run whenever they do not.

const jobSets = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"

// defineJobSets creates a definition of JobSets that takes any spec.
func (d *driver) defineJobSets() {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	must(d.create("admin", definitions, map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "jobsets.jobset.x-k8s.io",
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, simulated"}},
		"spec": map[string]any{"group": "jobset.x-k8s.io", "scope": "Namespaced", "names": map[string]any{"plural": "jobsets", "singular": "jobset", "kind": "JobSet"},
			"versions": []any{map[string]any{"name": "v1alpha2", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}}}},
	}), "definition of JobSets")
}

// submitJobSet submits a JobSet, and its operator makes the Job of it.
func submitJobSet(d *driver, random *rand.Rand) bool {
	made := d.newJob(random)
	child := unstructured.Unstructured{Object: made.object}
	namespace, name := child.GetNamespace(), child.GetName()+"-set"
	metadata := map[string]any{"name": name, "namespace": namespace}
	if random.IntN(2) == 0 {
		metadata["labels"] = map[string]any{queueLabel: "lq"}
	}
	if !d.create("user", pathOf(jobSets, namespace, ""), map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}) {
		return false
	}
	d.look()
	delete(child.Object["spec"].(map[string]any), "suspend") // it keeps its label, as from the template of a JobSet
	child.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"name": name, "uid": string(d.observer.get(jobSets, namespace, name).GetUID()), "controller": true, "blockOwnerDeletion": true}}
	return d.create("operator", made.path, child.Object)
}

// submitForeignWorkload makes a Workload of a kind whose controller is not there.
func submitForeignWorkload(d *driver, random *rand.Rand) bool {
	namespace, name := some(random, tenants...), d.name("foreign")
	return d.create("user", pathOf(workloads, namespace, ""), map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
		"metadata": map[string]any{"name": name, "namespace": namespace, "ownerReferences": []any{map[string]any{
			"apiVersion": "example.com/v1", "kind": "Flow", "name": name, "uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", d.names), "controller": true}}},
		"spec": map[string]any{"queueName": "lq", "podSets": []any{map[string]any{"name": "main", "count": 1, "template": map[string]any{"spec": podSpec(random, "")}}}},
	})
}

// operator lets the Jobs of JobSets run: what it does follows from the Jobs, as with a controller.
type operator struct {
	driver  *driver
	stopped map[string]bool
}

// seen takes in a change.
func (o *operator) seen(_, now *object) {
	if now == nil || now.collection != jobs || !isChild(now) {
		return
	}
	delete(o.stopped, now.id())
	if suspended, _, _ := unstructured.NestedBool(now.Object, "spec", "suspend"); suspended {
		o.stopped[now.id()] = true
	}
}

func isChild(o *object) bool {
	ref := owner(o)
	return ref != nil && ref.Kind == "JobSet"
}

func (o *operator) options() []option {
	var all []option
	for _, job := range o.driver.observer.all(jobs) {
		if o.stopped[job.id()] {
			all = append(all, option{2, "operator " + job.id(), func() {
				if o.driver.merge("operator", job.path(), map[string]any{"spec": map[string]any{"suspend": false}}) {
					delete(o.stopped, job.id())
				}
			}})
		}
	}
	return all
}

// leavePodsBehind deletes a Job of a queue without its pods, of which some run.
func leavePodsBehind(d *driver, random *rand.Rand) bool {
	var running []*object
	for _, o := range d.observer.all(jobs) {
		if active, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "active"); active != nil && o.GetLabels()[queueLabel] != "" && !isChild(o) {
			running = append(running, o)
		}
	}
	o, ok := pick(random, running)
	return ok && d.delete("user", o.path(), map[string]any{"propagationPolicy": "Orphan"})
}

// foreign are the rules about objects that others look after: the Job of an operator is not queued by itself, and a
// Workload whose job no program here starts holds no quota.
type foreign struct {
	driver   *driver
	children map[types.UID]bool
}

// seen looks at a change.
func (s *foreign) seen(_, now *object) {
	switch {
	case now == nil:
	case now.collection == jobs && isChild(now):
		s.children[now.GetUID()] = true
	case now.collection == workloads:
		ref := owner(now)
		if ref == nil {
			return
		}
		if s.children[ref.UID] {
			s.driver.rules.violate("%s is of Job %s, which an operator makes and starts", now.id(), ref.Name)
		}
		if ref.Kind == "Flow" && hasCondition(now, "QuotaReserved") {
			s.driver.rules.violate("%s has quota, and no program starts its job", now.id())
		}
	}
}
