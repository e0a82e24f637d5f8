package simulation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

// submission is what a user has submitted.
type submission struct {
	path   string
	object map[string]any
}

// configuration has all actions that evict, and quotas.
const configuration = `
actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: cohorts
`

// baseNodes and baseQuota are there in the beginning, and in the end: enough for every job that users submit.
const (
	baseNodes, baseCPUs = 3, 8
	baseQuota           = 8
)

// install creates the definitions of the installer.
func (d *driver) install() {
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	must(err == nil, fmt.Sprint(err))
	for _, m := range manifests {
		if m.GetKind() == "CustomResourceDefinition" {
			must(d.create("admin", definitions, m.Object), m.GetName())
		}
	}
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// build makes what is there before the programs start.
func (d *driver) build() {
	for _, namespace := range append([]string{"default", "kube-system", "volcano-system"}, tenants...) {
		d.create("admin", "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	}
	for _, class := range []struct {
		name  string
		value int
	}{{"high", 1000}, {"low", 10}} {
		must(d.create("admin", "/apis/scheduling.k8s.io/v1/priorityclasses", map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
			"metadata": map[string]any{"name": class.name}, "value": class.value}), "priority classes")
	}
	must(d.create("admin", "/api/v1/namespaces/volcano-system/configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
		"data":     map[string]any{"volcano-scheduler.conf": configuration}}), "configuration")
	for _, name := range []string{"q1", "q2"} {
		must(d.create("admin", queues, map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"weight": 1}}), "queues")
	}
	must(d.create("admin", "/apis/kueue.x-k8s.io/v1beta2/resourceflavors", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
		"metadata": map[string]any{"name": "default"}}), "flavors")
	for _, tenant := range tenants {
		must(d.create("admin", clusterQueues, map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
			"metadata": map[string]any{"name": "cq-" + tenant}, "spec": map[string]any{
				"cohortName": "all", "namespaceSelector": map[string]any{}, "resourceGroups": quota(baseQuota),
				"preemption": map[string]any{"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
			}}), "cluster queues")
		must(d.create("admin", pathOf(localQueues, tenant, ""), map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
			"metadata": map[string]any{"name": "lq", "namespace": tenant}, "spec": map[string]any{"clusterQueue": "cq-" + tenant}}), "local queues")
	}
	for i := range baseNodes {
		must(d.addNode(fmt.Sprintf("base-%d", i), baseCPUs), "nodes")
	}
	d.look()
}

// heal takes back what operators and faults have done, so that every job can end.
func (d *driver) heal() {
	for i := range baseNodes {
		if name := fmt.Sprintf("base-%d", i); d.observer.get(nodes, "", name) == nil {
			must(d.addNode(name, baseCPUs), "nodes")
		}
	}
	d.look()
	for _, o := range d.observer.all(nodes) {
		if o.node.Spec.Unschedulable {
			must(d.merge("admin", o.path(), map[string]any{"spec": map[string]any{"unschedulable": false}}), "uncordon")
		}
	}
	for _, tenant := range tenants {
		must(d.setQuota("cq-"+tenant, baseQuota), "quota")
	}
	for _, o := range d.observer.all(jobs) {
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended && o.GetLabels()[queueLabel] == "" {
			d.merge("user", o.path(), map[string]any{"spec": map[string]any{"suspend": false}})
		}
	}
	// Who deletes a Job and leaves what it made is left with a PodGroup that asks for pods.
	for _, o := range d.observer.all(podGroups) {
		if len(o.GetOwnerReferences()) == 0 {
			d.delete("user", o.path(), nil)
		}
	}
	d.look()
}

func hasCondition(o *object, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m := c.(map[string]any); m["type"] == kind && m["status"] == "True" {
			return true
		}
	}
	return false
}

// text is a part of an object as JSON, for people.
func text(o *object, path ...string) string {
	part, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	document, _ := json.Marshal(part)
	return clip(string(document))
}

// milli is an amount in thousandths.
func milli(amount any) int64 {
	q, err := resource.ParseQuantity(fmt.Sprint(amount))
	if err != nil {
		return 0
	}
	return q.MilliValue()
}
