package simulation

import (
	"math/rand/v2"
	"strings"
)

const namespaces = "/api/v1/namespaces"

// ofProject begins the names of namespaces that come and go.
const ofProject = "project-"

// addProject makes a namespace with a queue for a while.
func addProject(d *driver, random *rand.Rand) bool {
	return len(d.projects()) < 3 && d.addNamespace(d.name("project"), "cq-"+some(random, tenants...))
}

// addNamespace makes a namespace whose Jobs a ClusterQueue admits.
func (d *driver) addNamespace(name, clusterQueue string) bool {
	return d.create("admin", namespaces, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}) &&
		d.create("admin", pathOf(localQueues, name, ""), map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
			"metadata": map[string]any{"name": "lq", "namespace": name}, "spec": map[string]any{"clusterQueue": clusterQueue}}) &&
		d.addClaimTemplate(name)
}

// projects are the namespaces that come and go, and do not go yet.
func (d *driver) projects() (names []string) {
	for _, o := range d.observer.all(namespaces) {
		if strings.HasPrefix(o.GetName(), ofProject) && o.GetDeletionTimestamp() == nil {
			names = append(names, o.GetName())
		}
	}
	return names
}

// someNamespace is where a user submits something.
func (d *driver) someNamespace(random *rand.Rand) string {
	return some(random, append(d.projects(), tenants...)...)
}

// deleteProject deletes a namespace with all that is in it.
func deleteProject(d *driver, random *rand.Rand) bool {
	name, ok := pick(random, d.projects())
	return ok && d.delete("admin", namespaces+"/"+name, nil)
}
