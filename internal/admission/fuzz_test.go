package admission

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// Every handler gets whatever a body may be. The seeds are run with the other tests; go test -fuzz=FuzzJobs goes on
// from there.

func FuzzJobs(f *testing.F)       { fuzz(f, "/jobs/mutate", "/jobs/validate") }
func FuzzQueues(f *testing.F)     { fuzz(f, "/queues/mutate", "/queues/validate") }
func FuzzPodGroups(f *testing.F)  { fuzz(f, "/podgroups/mutate", "/podgroups/validate") }
func FuzzCronJobs(f *testing.F)   { fuzz(f, "/cronjobs/validate") }
func FuzzJobFlows(f *testing.F)   { fuzz(f, "/jobflows/validate") }
func FuzzHyperNodes(f *testing.F) { fuzz(f, "/hypernodes/validate") }
func FuzzPods(f *testing.F)       { fuzz(f, "/pods/mutate", "/pods/validate") }

// seeds are objects as they should be, as they should not, and as no API server would send them.
var seeds = []string{
	"{}", "{metadata: {name: a}}", "{metadata: {name: root}, spec: {parent: root}}", "{metadata: null, spec: null}",
	"{metadata: {name: a}, spec: {tasks: [{}, {name: default0, replicas: -1, minAvailable: -2}]}}",
	"{metadata: {name: a}, spec: {tasks: [{partitionPolicy: {}, dependsOn: {name: [x]}, template: {spec: {hostNetwork: true}}}], plugins: {mpi: null, ssh: []}}}",
	"{metadata: {name: a}, spec: {minAvailable: 2147483647, tasks: [{replicas: 2147483647}, {replicas: 2147483647, partitionPolicy: {totalPartitions: 65536, partitionSize: 65536}}]}}",
	"{metadata: {name: a}, spec: {policies: [{}, {event: '*', exitCode: 0, timeout: -1s}], volumes: [{}, {volumeClaim: {}, volumeClaimName: X}]}}",
	"{metadata: {name: a}, spec: {tasks: [{topologyPolicy: restricted, template: {spec: {containers: [{resources: {requests: {cpu: 1e100}}}]}}}]}}",
	"{metadata: {name: a, annotations: {volcano.sh/hierarchy: //, volcano.sh/hierarchy-weights: 1/NaN/Inf}}, spec: {parent: a}}",
	"{metadata: {name: company}, spec: {parent: vision, capability: {cpu: 1, '': 1}, deserved: {cpu: 1e-30}, guarantee: {resource: {cpu: -1}}}}",
	"{metadata: {name: a}, spec: {queue: '', networkTopology: {highestTierAllowed: 1, highestTierName: a}, subGroupPolicy: [{}, {networkTopology: {}}]}}",
	"{metadata: {name: a, annotations: {volcano.sh/jdb-min-available: '%', volcano.sh/jdb-max-unavailable: '', volcano.sh/resource-group: gold}}, spec: {schedulerName: volcano}}",
	"{metadata: {name: a}, spec: {schedule: 'TZ=UTC * * * * *', timeZone: '../x', jobTemplate: {spec: {tasks: [{}]}}}}",
	"{metadata: {name: a}, spec: {flows: [{}, {name: a, dependsOn: {targets: ['', a, b]}}, {name: b, patch: {jobSpec: 7}, dependsOn: {}}]}}",
	"{metadata: {name: a}, spec: {tier: -1, members: [{}, {type: Node, selector: {exactMatch: {}, regexMatch: {pattern: '('}, labelMatch: {}}}]}}",
	"{metadata: {name: 7}, spec: []}", "{spec: {tasks: {}}}", "[]", "'text'",
}

func fuzz(f *testing.F, paths ...string) {
	for _, before := range []string{"", seeds[1], seeds[4], seeds[10]} {
		for _, seed := range seeds {
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect} {
				f.Add(asked{operation: operation, namespace: "lab", object: seed, before: before}.review(f))
			}
		}
	}
	for _, body := range []string{"", "{", "null", "[]", `{"request": null}`, `{"request": {"operation": "CREATE"}}`, `{"kind": "AdmissionReview"}`,
		`{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "7", "operation": "CREATE", "object": {}}}`,
		`{"apiVersion": "v1", "kind": "Pod"}`, strings.Repeat("[", 20000)} {
		f.Add([]byte(body))
	}
	groups, err := parseGroups([]byte("resourceGroups: [{resourceGroup: gold, labels: {a: b}, tolerations: [{key: a}], affinity: '{}'}]"))
	if err != nil {
		f.Fatal(err)
	}
	_, handler := newServer(f, treeQueues(f), func(s *settings) { s.groups, s.gatesPods = groups, true })
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range paths {
			first := post(handler, path, body)
			var review admissionv1.AdmissionReview
			if err := json.Unmarshal(first.Body.Bytes(), &review); first.Code != http.StatusOK || err != nil || review.Response == nil {
				t.Fatalf("%s answers %d, %v: %s", path, first.Code, err, first.Body)
			}
			if text := first.Body.String(); strings.Contains(text, "bug: ") || strings.Contains(text, "panic: ") {
				t.Fatalf("%s: %s", path, text)
			}
			if second := post(handler, path, body).Body.String(); second != first.Body.String() {
				t.Fatalf("%s answers the same request in two ways:\n%s%s", path, first.Body, second)
			}
		}
	})
}
