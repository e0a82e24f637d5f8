package simulation

import (
	"math/rand/v2"
)

const (
	deployments  = "/apis/apps/v1/deployments"
	replicaSets  = "/apis/apps/v1/replicasets"
	statefulSets = "/apis/apps/v1/statefulsets"
	budgets      = "/apis/policy/v1/poddisruptionbudgets"
)

// replicated are the collections of what runs for ever in a number of pods.
var replicated = []string{deployments, replicaSets, statefulSets}

// submitReplicas submits a Deployment, ReplicaSet or StatefulSet.
func submitReplicas(d *driver, random *rand.Rand) bool {
	namespace, name, collection := d.someNamespace(random), d.name("replicas"), some(random, replicated...)
	kind := map[string]string{deployments: "Deployment", replicaSets: "ReplicaSet", statefulSets: "StatefulSet"}[collection]
	labels := map[string]any{"app": name}
	pod := podSpec(random, "volcano")
	pod["restartPolicy"] = "Always"
	annotations := map[string]any{}
	if random.IntN(3) > 0 {
		annotations["volcano.sh/preemptable"] = "true"
	}
	return d.create("user", pathOf(collection, namespace, ""), map[string]any{"apiVersion": "apps/v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": labels},
		"spec": map[string]any{"replicas": 1 + random.IntN(3), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels, "annotations": annotations}, "spec": pod}},
	})
}

// someReplicas is one of those that users made: the ReplicaSet of a Deployment is not.
func (d *driver) someReplicas(random *rand.Rand) (*object, bool) {
	return pick(random, d.allReplicas())
}

func (d *driver) allReplicas() (all []*object) {
	for _, collection := range replicated {
		for _, o := range d.observer.all(collection) {
			if owner(o) == nil {
				all = append(all, o)
			}
		}
	}
	return all
}

func scaleReplicas(d *driver, random *rand.Rand) bool {
	o, ok := d.someReplicas(random)
	return ok && d.merge("user", o.path(), map[string]any{"spec": map[string]any{"replicas": random.IntN(5)}})
}

func deleteReplicas(d *driver, random *rand.Rand) bool {
	o, ok := d.someReplicas(random)
	return ok && d.delete("user", o.path(), map[string]any{"propagationPolicy": some(random, "Background", "Foreground")})
}

// budget makes a PodDisruptionBudget, of which some forbid any eviction, or deletes it.
func budget(d *driver, random *rand.Rand) bool {
	o, ok := d.someReplicas(random)
	if !ok {
		return false
	}
	if d.observer.get(budgets, o.GetNamespace(), o.GetName()) != nil {
		return d.delete("user", pathOf(budgets, o.GetNamespace(), o.GetName()), nil)
	}
	spec := some(random, map[string]any{"minAvailable": "100%"}, map[string]any{"maxUnavailable": 0}, map[string]any{"maxUnavailable": 1}, map[string]any{"minAvailable": 1})
	made := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": o.GetName()}}}
	for key, value := range spec {
		made[key] = value
	}
	return d.create("user", pathOf(budgets, o.GetNamespace(), ""), map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()}, "spec": made})
}

// scaleDown ends what runs for ever.
func (d *driver) scaleDown() {
	for _, o := range d.observer.all(budgets) {
		must(d.delete("user", o.path(), nil), "budgets")
	}
	for _, o := range d.allReplicas() {
		d.merge("user", o.path(), map[string]any{"spec": map[string]any{"replicas": 0}})
	}
}
