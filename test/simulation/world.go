package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

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

func (s submission) name() string { return (&unstructured.Unstructured{Object: s.object}).GetName() }
func (s submission) namespace() string {
	return (&unstructured.Unstructured{Object: s.object}).GetNamespace()
}

// world is the cluster of a run as it is in the beginning.
type world struct {
	nodes, cpus   int // how many nodes there are, and what each has
	quota         int // of each ClusterQueue
	configuration string

	lacksWatchLists bool // the API server refuses a watch that begins with a list, as those before Kubernetes 1.32 do
}

// configurations have all actions that evict, and quotas.
func configurations() []string {
	var all []string
	for _, queues := range []string{"proportion", "capacity"} {
		protecting := ""
		if queues == "capacity" {
			protecting = "\n  - name: pdb"
		}
		for _, arguments := range []string{"", "fairSharing: true", "waitForPodsReady: {enable: true}"} {
			all = append(all, `
actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance`+protecting+`
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: `+queues+`
  - name: nodeorder
  - name: binpack
  - name: cohorts
    arguments: {`+arguments+`}
`)
		}
	}
	return all
}

// keepsBudgets reports whether no budget is broken. Without the plugin pdb the scheduler deletes pods in spite of their
// budgets where there is no other way.
func (w *world) keepsBudgets() bool { return strings.Contains(w.configuration, "pdb") }

func newWorld(random *rand.Rand) world {
	return world{nodes: 1 + random.IntN(3), cpus: some(random, 4, 6, 8), quota: some(random, 3, 4, 8), configuration: some(random, configurations()...),
		lacksWatchLists: random.IntN(2) == 0}
}

// enoughQuota and enoughCPUs are enough for every job that users submit.
const enoughQuota, enoughCPUs = 16, 48

// install creates the definitions of the installer.
func (d *driver) install() {
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	must(err == nil, fmt.Sprint(err))
	for _, m := range manifests {
		if m.GetKind() == "CustomResourceDefinition" {
			must(d.create("admin", definitions, m.Object), m.GetName())
			d.definitions = append(d.definitions, m.Object)
		}
	}
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// build makes what is there before the programs start.
func (d *driver) build() {
	for _, namespace := range []string{"default", "kube-system", "volcano-system"} {
		d.create("admin", namespaces, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	}
	d.defineDevices()
	for _, class := range []struct {
		name  string
		value int
	}{{"high", 1000}, {"low", 10}} {
		must(d.create("admin", "/apis/scheduling.k8s.io/v1/priorityclasses", map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
			"metadata": map[string]any{"name": class.name}, "value": class.value}), "priority classes")
	}
	must(d.create("admin", "/api/v1/namespaces/volcano-system/configmaps", map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
		"data":     map[string]any{"volcano-scheduler.conf": d.world.configuration}}), "configuration")
	for _, name := range []string{"q1", "q2"} {
		must(d.create("admin", queues, map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"weight": 1}}), "queues")
	}
	must(d.create("admin", "/apis/kueue.x-k8s.io/v1beta2/resourceflavors", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
		"metadata": map[string]any{"name": "default"}}), "flavors")
	for _, tenant := range tenants {
		must(d.create("admin", clusterQueues, map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
			"metadata": map[string]any{"name": "cq-" + tenant}, "spec": map[string]any{
				"cohortName": "all", "namespaceSelector": map[string]any{}, "resourceGroups": quota(d.world.quota),
				"preemption": map[string]any{"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
			}}), "cluster queues")
		must(d.addNamespace(tenant, "cq-"+tenant), "namespaces of users")
	}
	for i := range d.world.nodes {
		must(d.addNode(fmt.Sprintf("base-%d", i), d.world.cpus), "nodes")
	}
	d.look()
}

// heal takes back what operators and faults have done, so that every job can end.
func (d *driver) heal() {
	must(d.addNode("last", enoughCPUs), "nodes")
	d.look()
	for _, o := range d.observer.all(nodes) {
		if o.node.Spec.Unschedulable {
			must(d.merge("admin", o.path(), map[string]any{"spec": map[string]any{"unschedulable": false}}), "uncordon")
		}
	}
	for _, tenant := range tenants {
		must(d.setQuota("cq-"+tenant, enoughQuota), "quota")
	}
	for _, tenant := range tenants {
		must(d.merge("admin", clusterQueues+"/cq-"+tenant, map[string]any{"spec": map[string]any{"stopPolicy": "None"}}), "stop policy")
	}
	must(d.merge("admin", queues+"/q1", map[string]any{"spec": map[string]any{"capability": nil}}), "capability")
	for _, o := range d.observer.all(volcanoJobs) {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "state", "phase"); phase == "Aborted" || phase == "Aborting" {
			d.delete("user", o.path(), nil)
		}
	}
	for _, o := range d.observer.all(jobs) {
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); suspended && o.GetLabels()[queueLabel] == "" {
			d.merge("user", o.path(), map[string]any{"spec": map[string]any{"suspend": false}})
		}
	}
	for _, o := range d.observer.all(cronJobs) {
		d.suspend(o, true)
	}
	for _, name := range d.projects() {
		must(d.delete("admin", namespaces+"/"+name, nil), "namespaces")
	}
	d.scaleDown()
	d.tidy()
}

// tidy deletes pods of gangs whose Job users have deleted without them. Its PodGroup stays, and must come to rest.
func (d *driver) tidy() {
	for _, o := range d.observer.all(pods) {
		if len(o.GetOwnerReferences()) == 0 && !strings.HasPrefix(o.GetName(), "pod-") && !strings.HasPrefix(o.GetName(), "group-") {
			d.delete("user", o.path(), nil)
		}
	}
	d.look()
}

// giveUpGroups deletes PodGroups that users have left without a Job and without pods: to each of them the scheduler
// gives room now and then, in case its pods come, and so several of them are hardly ever at rest together. One stays.
func (d *driver) giveUpGroups() {
	isFirst := true
	for _, group := range d.observer.all(podGroups) {
		hasPods := slices.ContainsFunc(d.observer.all(pods), func(pod *object) bool {
			return pod.GetNamespace() == group.GetNamespace() && pod.GetAnnotations()[groupAnnotation] == group.GetName()
		})
		if owner(group) != nil || hasPods {
			continue
		}
		if !isFirst {
			d.delete("user", group.path(), nil)
		}
		isFirst = false
	}
	d.look()
}

// groupAnnotation of a pod names its PodGroup.
const groupAnnotation = "scheduling.k8s.io/group-name"

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
