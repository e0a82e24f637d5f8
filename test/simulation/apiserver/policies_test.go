package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
)

// addPolicies creates the policies of the installer on both servers, and returns their paths.
func (r *run) addPolicies(t *testing.T) (made []string) {
	t.Helper()
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	rank := func(o *unstructured.Unstructured) int { return strings.Count(o.GetKind(), "Binding") }
	slices.SortStableFunc(manifests, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	for _, object := range manifests {
		path := policies + map[string]string{"ValidatingAdmissionPolicy": "ies", "ValidatingAdmissionPolicyBinding": "ybindings"}[object.GetKind()]
		if path != policies {
			r.both(call{method: "POST", path: path, body: mustJSON(t, object), kind: "application/json"})
			made = append(made, path+"/"+object.GetName())
		}
	}
	return made
}

// drop deletes objects of the real server.
func (r *run) drop(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		apitest.Eventually(t, func(context.Context) error {
			if code, body := r.real.ask(t, call{method: "DELETE", path: path}); code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", path, code, body)
			}
			return nil
		})
	}
}

func TestPoliciesRefuseWithTheSameWords(t *testing.T) {
	servers := [2]*answerer{realServer(t), simulatedServer(t)}
	r := begin(t, servers)
	policies := r.addPolicies(t)
	const queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
	queue := func(method, name, more string) call {
		c := call{method: method, path: queues, body: `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"` + name + `"` + more + `}}`, kind: "application/json"}
		if method != "POST" {
			c.path += "/" + name
		}
		return c
	}
	var made []string
	for _, name := range []string{"default", "root", "restricted"} {
		more := ""
		if name == "restricted" {
			more = `,"labels":{"scheduling.volcano.sh/queue-access":"restricted"},"annotations":{"scheduling.volcano.sh/queue-namespaces":"elsewhere"}`
		}
		r.both(queue("POST", name, more))
		made = append(made, queues+"/"+name)
	}
	defer func() { r.drop(t, append(policies, made...)...) }() // policies first, which keep queues
	inRestricted := r.call(`POST scheduling.volcano.sh/v1beta1/podgroups?dryRun=All {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"spec":{"queue":"restricted"}}`)
	for _, refused := range []call{{method: "DELETE", path: queues + "/default", query: "dryRun=All"}, inRestricted} {
		apitest.Eventually(t, func(context.Context) error { // the real server reads policies some time later
			if code, body := servers[0].ask(t, refused); code < 400 || strings.Contains(body, "not yet") {
				return fmt.Errorf("%d %s", code, body)
			}
			return nil
		})
	}
	time.Sleep(2 * time.Second) // it looks once a second, and may have seen some of them only
	refusals := 0
	refused := func(code int) {
		if code >= 400 {
			refusals++
		}
	}
	for _, name := range []string{"default", "root", "restricted"} {
		c := queue("DELETE", name, "")
		c.query, c.body = "dryRun=All", ""
		refused(r.both(c))
	}
	refused(r.both(call{method: "PATCH", path: queues + "/root", body: `{"spec":{"capability":{"cpu":"1"}}}`, kind: "application/merge-patch+json"}))
	for _, line := range []string{
		`POST batch.volcano.sh/v1alpha1/jobs {"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"queue":"restricted","tasks":[{"name":"t","replicas":1,"template":{"spec":` + pod + `}}]}}`,
		`POST batch.volcano.sh/v1alpha1/jobs {"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"b"},"spec":{"queue":"default","tasks":[{"name":"t","replicas":1,"template":{"spec":` + pod + `}}]}}`,
		`POST scheduling.volcano.sh/v1beta1/podgroups {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"spec":{"queue":"restricted"}}`,
		`POST core/pods {"metadata":{"name":"a","annotations":{"scheduling.volcano.sh/queue-name":"restricted"}},"spec":{"schedulerName":"volcano","containers":[{"name":"c","image":"i"}]}}`,
		`POST kueue.x-k8s.io/v1beta2/workloads {"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","metadata":{"name":"w"},"spec":{"queueName":"q","podSets":[{"name":"main","count":1,"template":{"spec":` + pod + `}}]}}`,
		`PATCH kueue.x-k8s.io/v1beta2/workloads/w/status {"status":{"admission":{"clusterQueue":"c","podSetAssignments":[{"name":"other"}]}}}`,
		`PATCH kueue.x-k8s.io/v1beta2/workloads/w/status {"status":{"admission":{"clusterQueue":"c","podSetAssignments":[{"name":"main","count":5}]}}}`,
	} {
		refused(r.both(r.call(line)))
	}
	if refusals < 6 {
		t.Errorf("only %d requests are refused", refusals)
	}
}
