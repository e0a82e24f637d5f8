package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestFlowsThatCouldNeverStartAreRefused(t *testing.T) {
	flow := func(flows string) string { return "{metadata: {name: f}, spec: {flows: [" + flows + "]}}" }
	for _, test := range []struct{ name, object, before, want string }{
		{"a diamond", flow("{name: a}, {name: b, dependsOn: {targets: [a]}}, {name: c, dependsOn: {targets: [a]}}, {name: d, dependsOn: {targets: [b, c]}}"), "", ""},
		{"no flows yet", flow(""), "", ""},
		{"one for another that is none", flow("{name: a, dependsOn: {targets: [b]}}"), "", `spec.flows[0].dependsOn.targets[0]: Not found: "b"`},
		{"each for the other", flow("{name: a, dependsOn: {targets: [b]}}, {name: b, dependsOn: {targets: [a]}}"), "",
			`spec.flows: Invalid value: "a → b → a": jobflow Flow is not DAG: these flows wait for each other and could never start`},
		{"one for itself", flow("{name: a, dependsOn: {targets: [a]}}"), "", `spec.flows: Invalid value: "a → a"`},
		{"a new mistake", flow("{name: a, dependsOn: {targets: [b]}}"), flow("{name: a}"), `Not found: "b"`},
		{"the same mistake", flow("{name: c}, {name: a, dependsOn: {targets: [a]}}"), flow("{name: a, dependsOn: {targets: [a]}}"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, &shelf{}, nil)
			request := asked{path: "/jobflows/validate", operation: admissionv1.Create, object: test.object}
			if test.before != "" {
				request.operation, request.before = admissionv1.Update, test.before
			}
			got := refusal(ask(t, handler, request))
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
