package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/test/apitest"
)

// stories are sequences that chance would hardly find. Each line is a method, a path and a body; merge patches are of
// the method PATCH, and what is applied of the method APPLY.
var stories = map[string]string{
	"an eviction within a budget, and one beyond it": `
POST core/pods {"metadata":{"name":"a","labels":{"app":"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}
POST core/pods {"metadata":{"name":"b","labels":{"app":"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}
POST policy/v1/poddisruptionbudgets {"metadata":{"name":"p"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}
POST core/pods/a/eviction {"metadata":{"name":"a"}}
PATCH core/pods/a/status {"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}
PATCH core/pods/b/status {"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}
PATCH policy/v1/poddisruptionbudgets/p/status {"status":{"observedGeneration":1,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2}}
POST core/pods/a/eviction {"metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}
POST core/pods/a/eviction {"metadata":{"name":"a"}}
GET core/pods/a
GET policy/v1/poddisruptionbudgets/p
POST core/pods/b/eviction {"metadata":{"name":"b"}}
POST core/pods/a/eviction {"metadata":{"name":"a"}}
POST policy/v1/poddisruptionbudgets {"metadata":{"name":"q"},"spec":{"minAvailable":1,"selector":{}}}
POST core/pods/b/eviction {"metadata":{"name":"b"}}
DELETE core/pods/a {"gracePeriodSeconds":0}
GET core/pods`,
	"a quota is charged and refuses": `
POST core/resourcequotas {"metadata":{"name":"q"},"spec":{"hard":{"pods":"1","requests.cpu":"1","count/podgroups.scheduling.volcano.sh":"1"}}}
POST core/pods {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]}}
PATCH core/resourcequotas/q/status {"status":{"hard":{"pods":"1","requests.cpu":"1","count/podgroups.scheduling.volcano.sh":"1"},"used":{"pods":"0","requests.cpu":"0","count/podgroups.scheduling.volcano.sh":"0"}}}
POST core/pods {"metadata":{"name":"none"},"spec":{"containers":[{"name":"c","image":"i"}]}}
POST core/pods {"metadata":{"name":"large"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"2"}}}]}}
POST core/pods {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"500m"}}}]}}
POST core/pods {"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"500m"}}}]}}
POST scheduling.volcano.sh/v1beta1/podgroups {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"}}
POST scheduling.volcano.sh/v1beta1/podgroups {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"b"}}
GET core/resourcequotas/q`,
	"limits are filled in and held": `
POST core/limitranges {"metadata":{"name":"l"},"spec":{"limits":[{"type":"Container","default":{"cpu":"500m"},"defaultRequest":{"cpu":"200m"},"max":{"cpu":"1"},"maxLimitRequestRatio":{"cpu":"4"}},{"type":"Pod","max":{"memory":"1Gi"}}]}}
POST core/pods {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}
POST core/pods {"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"2","memory":"512Mi"}}}]}}
POST core/pods {"metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m"}}}]}}`,
	"a namespace that ends takes nothing": `
POST core/configmaps {"metadata":{"name":"a","finalizers":["example.com/held"]}}
DELETE . {}
GET .
POST core/configmaps {"metadata":{"name":"b"}}
POST scheduling.volcano.sh/v1beta1/podgroups {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"b"}}
PATCH core/configmaps/a {"data":{"a":"1"}}
DELETE core/configmaps/a {}
GET core/configmaps/a
PATCH core/configmaps/a {"metadata":{"finalizers":["example.com/held","example.com/late"]}}
PATCH core/configmaps/a {"metadata":{"finalizers":null}}
GET core/configmaps/a`,
	"two managers apply": `
APPLY scheduling.volcano.sh/v1beta1/podgroups/a?fieldManager=one {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a","labels":{"l":"1"}},"spec":{"minMember":2,"queue":"q"}}
APPLY scheduling.volcano.sh/v1beta1/podgroups/a?fieldManager=two {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"spec":{"minMember":3}}
APPLY scheduling.volcano.sh/v1beta1/podgroups/a?fieldManager=two&force=true {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"spec":{"minMember":3}}
APPLY scheduling.volcano.sh/v1beta1/podgroups/a?fieldManager=one {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"spec":{"queue":"q"}}
APPLY scheduling.volcano.sh/v1beta1/podgroups/a/status?fieldManager=one {"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"a"},"status":{"phase":"Running"}}
APPLY core/pods/a?fieldManager=one {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"}]}]}}
APPLY core/pods/a?fieldManager=two {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"j"}]}}
APPLY core/pods/a?fieldManager=two&force=true {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"j"}]}}
APPLY core/pods/a?fieldManager=one {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c"}]}}
GET scheduling.volcano.sh/v1beta1/podgroups/a`,
	"pods end in their grace": `
POST core/pods {"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}
POST core/pods/a/binding {"metadata":{"name":"a"},"target":{"kind":"Node","name":"n"}}
POST core/pods/a/binding {"metadata":{"name":"a"},"target":{"kind":"Node","name":"n"}}
DELETE core/pods/a {}
DELETE core/pods/a {"gracePeriodSeconds":50}
DELETE core/pods/a {"gracePeriodSeconds":3}
POST core/pods/a/binding {"metadata":{"name":"a"},"target":{"kind":"Node","name":"m"}}
PATCH core/pods/a/status {"status":{"phase":"Succeeded"}}
DELETE core/pods/a {"gracePeriodSeconds":0}
POST core/pods {"metadata":{"name":"b","finalizers":["batch.kubernetes.io/job-tracking"]},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}
DELETE core/pods/b {"gracePeriodSeconds":0}
GET core/pods/b
PATCH core/pods/b {"metadata":{"finalizers":null}}
GET core/pods/b
POST core/pods {"metadata":{"name":"c"},"spec":{"schedulingGates":[{"name":"example.com/g"}],"containers":[{"name":"c","image":"i"}]}}
POST core/pods/c/binding {"metadata":{"name":"c"},"target":{"kind":"Node","name":"m"}}
DELETE core/pods/c {}
GET core/pods/c`,
}

// watches are made after a story, from its start: with what comes first, with selectors, and refused ones.
var watches = []string{
	"core/pods?resourceVersion=START", "core/pods?resourceVersion=START&allowWatchBookmarks=true&labelSelector=app%3Dx", "core/pods?resourceVersion=START&fieldSelector=spec.nodeName%3Dn",
	"core/pods?resourceVersion=START&fieldSelector=status.phase%3DRunning", "core/pods?resourceVersion=0", "core/pods",
	"core/configmaps?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
	"core/pods?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app%3Dx", "core/pods?sendInitialEvents=true&allowWatchBookmarks=true",
	"scheduling.volcano.sh/v1beta1/podgroups?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "core/pods?resourceVersion=x",
	"core/pods?resourceVersion=START&fieldSelector=nonsense%3Dn", "core/nonsense?resourceVersion=START", "core/pods?resourceVersionMatch=Exact&resourceVersion=START",
	"scheduling.volcano.sh/v1beta1/podgroups?resourceVersion=START&labelSelector=l%3D1", "policy/v1/poddisruptionbudgets?resourceVersion=START",
}

func TestTheSameStoriesGetTheSameAnswers(t *testing.T) {
	servers := [2]*answerer{realServer(t), simulatedServer(t)}
	warm(t, servers[0])
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			r := begin(t, servers)
			for line := range strings.Lines(story) {
				if line = strings.TrimSpace(line); line != "" {
					r.both(r.call(line))
				}
			}
			var all []call
			for i, watch := range watches {
				c := r.call("GET " + watch)
				c.query += "&watch=true&timeoutSeconds=1"
				if i%4 == 0 {
					c.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
				}
				all = append(all, c)
			}
			r.watch(true, all...)
		})
	}
}

// call reads a line of a story.
func (r *run) call(line string) call {
	method, rest, _ := strings.Cut(line, " ")
	path, body, _ := strings.Cut(rest, " ")
	c := call{method: method, body: body, kind: "application/json"}
	path, c.query, _ = strings.Cut(path, "?")
	switch method {
	case "PATCH":
		c.kind = "application/merge-patch+json"
	case "APPLY":
		c.method, c.kind = "PATCH", "application/apply-patch+yaml"
	}
	parts := strings.Split(path, "/")
	switch {
	case path == ".":
		c.path = "/api/v1/namespaces/" + r.space
	case parts[0] == "core":
		c.path = "/api/v1/namespaces/" + r.space + "/" + strings.Join(parts[1:], "/")
	default:
		c.path = "/apis/" + parts[0] + "/" + parts[1] + "/namespaces/" + r.space + "/" + strings.Join(parts[2:], "/")
	}
	return c
}

// unserved are the resources of the groups that are served which the server in memory leaves out.
var unserved = []string{
	"componentstatuses", "nodes/proxy", "pods/attach", "pods/exec", "pods/log", "pods/portforward", "pods/proxy", "serviceaccounts/token", "services/proxy",
}

func TestDiscoverySaysTheSame(t *testing.T) {
	servers := [2]*answerer{realServer(t), simulatedServer(t)}
	read := func(a *answerer, path, accept string) map[string]any {
		t.Helper()
		code, body := a.ask(t, call{method: "GET", path: path, accept: accept})
		var read map[string]any
		if err := json.Unmarshal([]byte(body), &read); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, code, body, err)
		}
		delete(read, "serverAddressByClientCIDRs")
		return read
	}
	groups := []string{
		"apps", "batch", "coordination.k8s.io", "policy", "scheduling.k8s.io", "storage.k8s.io", "resource.k8s.io", "events.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io",
		"batch.volcano.sh", "scheduling.volcano.sh", "kueue.x-k8s.io", "bus.volcano.sh", "flow.volcano.sh", "topology.volcano.sh",
	}
	paths := []string{"/api", "/api/v1"}
	for _, group := range groups {
		group := "/apis/" + group
		paths = append(paths, group)
		for _, version := range read(servers[0], group, "")["versions"].([]any) {
			paths = append(paths, "/apis/"+version.(map[string]any)["groupVersion"].(string))
		}
	}
	for _, path := range paths {
		want, got := read(servers[0], path, ""), read(servers[1], path, "")
		if resources, is := want["resources"].([]any); is {
			want["resources"] = slices.DeleteFunc(resources, func(r any) bool { return slices.Contains(unserved, r.(map[string]any)["name"].(string)) })
		}
		for _, list := range []map[string]any{want, got} {
			if resources, is := list["resources"].([]any); is { // that of a definition comes when its controller comes to it
				slices.SortFunc(resources, func(a, b any) int {
					return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
				})
			}
		}
		if difference := cmp.Diff(want, got); difference != "" {
			t.Errorf("%s:\n%s", path, difference)
		}
	}
	const all = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	byName := func(a *answerer) map[string]any {
		found := map[string]any{}
		for _, item := range read(a, "/apis", all)["items"].([]any) {
			found[item.(map[string]any)["metadata"].(map[string]any)["name"].(string)] = item.(map[string]any)["versions"]
		}
		return found
	}
	want, got := byName(servers[0]), byName(servers[1])
	for _, group := range groups {
		if difference := cmp.Diff(want[group], got[group]); difference != "" || want[group] == nil {
			t.Errorf("aggregated discovery of %s:\n%s", group, difference)
		}
	}
}

func TestDefinitionsComeAndGoInTheSameWay(t *testing.T) {
	servers := [2]*answerer{realServer(t), simulatedServer(t)}
	r := begin(t, servers)
	const definitions, objects = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/namespaces/SPACE/things"
	spoken := func(kind, schema string) string {
		return `{"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"` + kind + `"},
			"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":` + schema + `}}]}}`
	}
	post := func(path, body string) {
		t.Helper()
		r.both(call{method: "POST", path: strings.ReplaceAll(path, "SPACE", r.space), body: body, kind: "application/json"})
	}
	// until waits for the real server.
	until := func(path string, code int, part string) {
		t.Helper()
		apitest.Eventually(t, func(context.Context) error {
			if got, body := servers[0].ask(t, call{method: "GET", path: strings.ReplaceAll(path, "SPACE", r.space)}); got != code || !strings.Contains(body, part) {
				return fmt.Errorf("%s: %d %s", path, got, body)
			}
			return nil
		})
		r.both(call{method: "GET", path: strings.ReplaceAll(path, "SPACE", r.space)})
	}
	const schema = `{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer","default":3,"maximum":5}},"x-kubernetes-validations":[{"rule":"self.a != 4","message":"not four"}]}}}`
	post(definitions, spoken("Thing", `{"type":"nothing"}`))
	post(definitions, spoken("Thing", schema))
	until(definitions+"/things.example.com", 200, `"InitialNamesAccepted"`)
	until("/apis/example.com/v1", 200, `"things"`)
	until(objects, 200, "")
	thing := func(name, spec, more string) string {
		return `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"` + name + `"` + more + `},"spec":` + spec + `}`
	}
	time.Sleep(2 * time.Second) // the real server waits so long before it takes objects of a new definition
	post(objects, thing("a", `{}`, `,"finalizers":["example.com/held"]`))
	post(objects, thing("b", `{"a":4}`, ""))
	post(objects, thing("b", `{"a":9,"b":1}`, ""))
	post(objects, thing("b", `{"a":2,"b":1}`, ""))
	r.both(call{method: "DELETE", path: definitions + "/things.example.com"})
	until(strings.ReplaceAll(objects, "SPACE", r.space)+"/b", 404, "")
	until(strings.ReplaceAll(objects, "SPACE", r.space)+"/a", 200, "deletionTimestamp")
	post(objects, thing("c", `{}`, ""))
	r.both(call{method: "PATCH", path: strings.ReplaceAll(objects, "SPACE", r.space) + "/a", body: `{"metadata":{"finalizers":null}}`, kind: "application/merge-patch+json"})
	until(definitions+"/things.example.com", 404, "")
}
