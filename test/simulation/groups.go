package simulation

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
)

// What people do who submit groups of pods: they submit each pod, and another in the place of one that is lost.

const (
	groupLabel = "kueue.x-k8s.io/pod-group-name"
	groupTotal = "kueue.x-k8s.io/pod-group-total-count"
	// memberOf is the annotation that says of which member of its group a pod is, whatever the name of the pod.
	memberOf = "simulation.hekla.sh/member"
)

// submitGroup submits pods that are one Workload, not all of them at once.
func submitGroup(d *driver, random *rand.Rand) bool {
	namespace, name := d.someNamespace(random), d.name("group")
	total := 1 + random.IntN(3)
	for i := range total {
		annotations := fate(random)
		delete(annotations, exitCode) // such a pod and all in its place would fail
		annotations[groupTotal] = fmt.Sprint(total)
		m := &member{namespace: namespace, group: name, number: i, annotations: annotations, spec: podSpec(random, "volcano")}
		if !d.submitMember(m, m.id()) {
			return false
		}
		d.groups.members = append(d.groups.members, m)
	}
	return true
}

// submitMember submits a pod as the admission webhook would leave it.
func (d *driver) submitMember(m *member, name string) bool {
	m.annotations[memberOf] = m.id()
	m.spec["schedulingGates"] = []any{map[string]any{"name": "kueue.x-k8s.io/admission"}}
	return d.create("user", pathOf(pods, m.namespace, ""), map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": m.spec, "metadata": map[string]any{
		"name": name, "namespace": m.namespace, "annotations": m.annotations, "finalizers": []any{managedFinalizer},
		"labels": map[string]any{queueLabel: "lq", groupLabel: m.group, "kueue.x-k8s.io/managed": "true"}}})
}

// groups are the groups of pods that were submitted. A member that has no pod which waits, runs or has succeeded gets
// another one, as long as the group has any pod and has not ended: a group without pods has been given up.
type groups struct {
	driver  *driver
	members []*member
}

type member struct {
	namespace, group  string
	number            int
	annotations, spec map[string]any
}

func (m *member) id() string { return fmt.Sprintf("%s-%d", m.group, m.number) }

func (g *groups) options() []option {
	d := g.driver
	has, lives := map[string]bool{}, map[string]bool{}
	for _, o := range d.observer.all(pods) {
		if group := o.GetLabels()[groupLabel]; group != "" {
			has[o.GetNamespace()+"/"+group] = true
			if o.pod.Status.Phase == corev1.PodSucceeded || o.pod.Status.Phase != corev1.PodFailed && o.GetDeletionTimestamp() == nil {
				lives[o.GetNamespace()+"/"+o.GetAnnotations()[memberOf]] = true
			}
		}
	}
	var all []option
	for _, m := range g.members {
		in := d.observer.get(namespaces, "", m.namespace)
		w := d.observer.get(workloads, m.namespace, m.group)
		if w != nil && hasCondition(w, "Finished") {
			continue
		}
		if in != nil && in.GetDeletionTimestamp() == nil && has[m.namespace+"/"+m.group] && !lives[m.namespace+"/"+m.id()] {
			all = append(all, option{1, "replace " + m.namespace + "/" + m.id(), func() {
				if d.submitMember(m, d.name(m.id()+"-again")) {
					d.count(memberReplaced)
				}
			}})
		}
	}
	return all
}
