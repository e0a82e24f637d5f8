package admission

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

func TestHyperNodesThatCanHoldNothingAreRefused(t *testing.T) {
	of := func(members ...string) string {
		return "{metadata: {name: h}, spec: {tier: 1, members: [" + strings.Join(members, ", ") + "]}}"
	}
	const (
		byName = "{type: Node, selector: {exactMatch: {name: n0}}}"
		broken = "{type: Node, selector: {regexMatch: {pattern: 'n-('}}}"
	)
	for _, test := range []struct{ name, object, before, want string }{
		{"one of each", of(byName, "{type: HyperNode, selector: {exactMatch: {name: s0}}}", "{type: Node, selector: {regexMatch: {pattern: ^n-}}}",
			"{type: Node, selector: {labelMatch: {matchLabels: {a: b}}}}"), "", ""},
		{"no members", of(), "", "spec.members: Required value: member must have at least one member: a HyperNode of no members is of no use"},
		{"one selected in no way", of("{type: Node, selector: {}}"), "",
			"spec.members[0].selector: Required value: member selector must have one of regexMatch or exactMatch: Either ExactMatch or RegexMatch or LabelMatch must be specified: exactly one of exactMatch, regexMatch and labelMatch is needed"},
		{"one selected in two ways", of("{type: Node, selector: {exactMatch: {name: a}, labelMatch: {}}}"), "",
			"spec.members[0].selector: Forbidden: member selector cannot have both regexMatch and exactMatch: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified: exactly one of exactMatch, regexMatch and labelMatch is needed"},
		{"an expression that is none", of(byName, broken), "",
			`spec.members[1].selector.regexMatch.pattern: Invalid value: "n-(": member regexMatch pattern is invalid: error parsing regexp: missing closing )`},
		{"labels that are none", of("{type: Node, selector: {labelMatch: {matchExpressions: [{key: a, operator: Is}]}}}"), "",
			"spec.members[0].selector.labelMatch: Invalid value"},
		{"a kind that is none", of("{type: Rack, selector: {exactMatch: {name: a}}}"), "", `spec.members[0].type: Invalid value: "Rack": unknown member type Rack: there are Node and HyperNode`},
		{"all that is wrong at once", of(broken, "{type: Node, selector: {}}"), "", "spec.members[1].selector: Required value"},
		{"a new mistake", of(broken), of(byName), "spec.members[0].selector.regexMatch.pattern"},
		{"the same mistake", of(broken, byName), of(broken), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, &shelf{}, nil)
			request := asked{path: "/hypernodes/validate", operation: admissionv1.Create, object: test.object}
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
