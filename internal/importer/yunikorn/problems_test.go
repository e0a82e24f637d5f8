package yunikorn_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/internal/importer/yunikorn"
	keys "hekla.sh/hekla/pkg/apis/yunikorn"
)

// problems imports a text that must be refused, and checks that each of the sentences is told.
func problems(t *testing.T, text string, options yunikorn.Options, wants ...string) {
	t.Helper()
	result, err := yunikorn.Import(text, options)
	var all source.Problems
	if !errors.As(err, &all) || result != nil {
		t.Errorf("%s\nis accepted: %v", text, err)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis refused without %q:\n%v", text, want, err)
		}
	}
	if len(all) != len(wants) {
		t.Errorf("%s\nhas %d problems, want %d:\n%v", text, len(all), len(wants), err)
	}
}

func TestATextThatYuniKornWouldRefuseIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":               "the text is empty",
		"# nothing":      "the text is empty",
		"partitions: [":  "not valid YAML",
		"- a":            "expected a mapping",
		"partitions: []": "there is none",
		"partitions: a":  `is "a", expected a list`,
		"Partitions: []": "there is no such key; write partitions",
		"partitions: [{name: x, queues: [{name: root}]}]":                                                                 `there is no partition "default"`,
		"partitions: [{queues: [{name: root}]}]":                                                                          "a partition needs a name",
		"partitions: [{name: default}]":                                                                                   "YuniKorn needs at least root",
		"partitions: [{name: default, queues: [{name: root}]}]\n---\na: b":                                                "a second YAML document",
		"partitions: [{name: default, queues: [{name: root}, {}]}]":                                                       "a queue needs a name",
		"partitions: [{name: default, x: 1, queues: [{name: root}]}]":                                                     "partitions[default].x: there is no such key",
		"partitions: [{name: default, queues: [{name: root, name: b}]}]":                                                  "stands here and on line 1",
		"partitions: [{name: default, preemption: {enabled: maybe}, queues: [{name: root}]}]":                             "allowed is true or false",
		"partitions: [{name: default, nodesortpolicy: {type: best}, queues: [{name: root}]}]":                             "allowed is fair or binpacking",
		"partitions: [{name: default, nodesortpolicy: {resourceweights: {vcore: -1}}, queues: [{name: root}]}]":           "allowed is a number from 0",
		"partitions: [{name: default, nodesortpolicy: {resourceweights: {vcore: NaN}}, queues: [{name: root}]}]":          "allowed is a number from 0",
		"partitions: [{name: default, placementrules: [{name: a b}], queues: [{name: root}]}]":                            "no name of a placement rule",
		"partitions: [{name: default, placementrules: [{name: tag}], queues: [{name: root}]}]":                            "needs a value",
		"partitions: [{name: default, placementrules: [{name: fixed, value: a}], queues: [{name: root}]}]":                "there is no queue root.a",
		"partitions: [{name: default, placementrules: [{name: fixed, value: root}], queues: [{name: root}]}]":             "root has queues below it",
		"partitions: [{name: default, placementrules: [{name: provided, filter: {type: some}}], queues: [{name: root}]}]": "allowed is allow or deny",
		"partitions: [{name: default, limits: [{maxapplications: -1}], queues: [{name: root}]}]":                          "allowed is a number from 0",
		"partitions: [{name: default, limits: [{maxresources: {vcore: x}}], queues: [{name: root}]}]":                     "allowed is a quantity",
		"partitions: [{name: default, queues: [{name: root, resources: {max: {vcore: 1}}}]}]":                             "root is the whole cluster",
		"kind: ConfigMap\ndata: {other.yaml: x}":                                                                          "no key queues.yaml",
		"kind: ConfigMap\ndata: {queues.yaml: ''}":                                                                        "the text is empty",
	} {
		if want == "no key queues.yaml" {
			problems(t, text, yunikorn.Options{}, "data[other.yaml]: YuniKorn has no such key", want)
			continue
		}
		problems(t, text, yunikorn.Options{}, want)
	}
}

func TestAQueueThatYuniKornWouldRefuseIsRefused(t *testing.T) {
	for queues, want := range map[string]string{
		"- name: a.b":                                                                        "no name of a queue",
		"- name: a\n- name: A":                                                               "two queues of one parent",
		"- name: a_b\n- name: a-b":                                                           "which is that of root.a_b",
		"- name: __":                                                                         "no Queue can be named",
		"- name: root":                                                                       "the Queue above all",
		"- {name: a, weight: 1}":                                                             "queues[root.a].weight: there is no such key",
		"- {name: a, parent: perhaps}":                                                       "allowed is true or false",
		"- {name: a, maxapplications: -1}":                                                   "allowed is a number from 0",
		"- {name: a, maxapplications: many}":                                                 "allowed is a number from 0",
		"- {name: a, maxapplications: 99999999999}":                                          "allowed is a number from 0",
		"- {name: a, submitacl: a b c}":                                                      "a list of users, a space, and a list of groups",
		"- {name: a, adminacl: [a]}":                                                         "expected a text",
		"- {name: a, properties: [x]}":                                                       "expected a mapping",
		"- {name: a, properties: {sort: fair}}":                                              "no such property",
		"- {name: a, properties: {preemption.policy: never}}":                                "allowed is default, fence or disabled",
		"- {name: a, properties: {preemption.delay: soon}}":                                  "allowed is a duration above 0",
		"- {name: a, properties: {priority.policy: high}}":                                   "allowed is default or fence",
		"- {name: a, properties: {priority.offset: 1.5}}":                                    "a whole number",
		"- {name: a, properties: {application.sort.policy: lifo}}":                           "allowed is fifo, fair or stateaware",
		"- {name: a, properties: {application.sort.priority: yes!}}":                         "allowed is enabled or disabled",
		"- {name: a, properties: {quota.preemption.delay: -1s}}":                             "allowed is a duration",
		"- {name: a, resources: {guaranteed: {vcore: many}}}":                                "allowed is a quantity",
		"- {name: a, resources: {guaranteed: {vcore: 1e-2000000000}}}":                       "allowed is a quantity",
		"- {name: a, resources: {max: {memory: -1}}}":                                        "it is negative",
		"- {name: a, resources: {max: {pods: 1500m}}}":                                       "whole numbers only",
		"- {name: a, resources: {max: {'a b': 1}}}":                                          "no name of a resource",
		"- {name: a, resources: {max: {vcore: 1, cpu: 1}}}":                                  "the same resource",
		"- {name: a, resources: {min: {vcore: 1}}}":                                          "there is no such key",
		"- {name: a, childtemplate: {queues: []}}":                                           "there is no such key",
		"- {name: a, childtemplate: {properties: {x: y}}}":                                   "no such property",
		"- {name: a, resources: {guaranteed: {vcore: 2}, max: {vcore: 1}}}":                  "above its max",
		"- {name: a, childtemplate: {resources: {guaranteed: {vcore: 2}, max: {vcore: 1}}}}": "above its max",
		"- {name: a, resources: {max: {vcore: 1}}, queues: [{name: b, queues: [{name: c, resources: {max: {vcore: 2}}}]}]}":                                          "above that of a queue above",
		"- {name: a, resources: {guaranteed: {vcore: 3}}, queues: [{name: b, resources: {guaranteed: {vcore: 2}}}, {name: c, resources: {guaranteed: {vcore: 2}}}]}": "guaranteed cpu 4 together, and this one only 3",
		"- {name: a, resources: {max: {vcore: 3}}, queues: [{name: b, resources: {guaranteed: {vcore: 2}}}, {name: c, resources: {guaranteed: {vcore: 2}}}]}":        "guaranteed cpu 4 together, and may hold only 3",
		"- {name: a, maxapplications: 2, queues: [{name: b, maxapplications: 3}]}":                                                                                   "above that of the queue above, which is 2",
	} {
		problems(t, partition("", queues), yunikorn.Options{}, want)
	}
}

func TestAllProblemsAreToldInTheOrderOfTheText(t *testing.T) {
	text := partition("colour: red\n", "- {name: a, weight: 1, properties: {x: y}, resources: {max: {vcore: x}}}\n- {name: b, maxapplications: x}")
	problems(t, text, yunikorn.Options{}, "colour: there is no such key", "weight: there is no such key", "properties[x]", "max[vcore]", "maxapplications")
	_, err := yunikorn.Import(text, yunikorn.Options{})
	lines := strings.Split(err.Error(), "\n")
	if !strings.HasPrefix(lines[0], "line 3: partitions[default].colour") || !strings.HasPrefix(lines[len(lines)-1], "line 8: queues[root.b]") {
		t.Errorf("they are\n%v", err)
	}
}

func TestANamespaceThatCannotBeReadIsRefused(t *testing.T) {
	rules := "placementrules: [{name: tag, value: namespace, create: true}]\n"
	for _, test := range []struct{ key, value, want string }{
		{keys.NamespaceQuotaKey, "cpu: 5", "allowed is a JSON object of quantities"},
		{keys.NamespaceQuotaKey, `{"cpu": "many"}`, "allowed is a quantity"},
		{keys.NamespaceQuotaKey, `{"cpu": ["1"]}`, "cpu is no quantity"},
		{keys.NamespaceGuaranteedKey, `null`, "allowed is a JSON object of quantities"},
		{keys.NamespaceGuaranteedKey, `{"pods": "-1"}`, "it is negative"},
		{keys.NamespaceMaxAppsKey, "some", "allowed is a number from 0"},
		{keys.NamespaceMaxCPUKey, "some", "allowed is a quantity"},
		{keys.NamespaceMaxMemoryKey, "some", "allowed is a quantity"},
		{keys.ParentQueueKey, "root.tenant.", "allowed is the path of a queue"},
	} {
		problems(t, partition(rules, "- name: a"), yunikorn.Options{Namespaces: []*corev1.Namespace{namespace("n", test.key, test.value)}}, test.want)
	}
}

func TestAnAliasStandsForWhatItNames(t *testing.T) {
	text := partition("", "- name: a\n  resources: &same {max: {vcore: 1}}\n- name: b\n  resources: *same\n")
	got := imports(t, text, yunikorn.Options{})
	if got.queues["b"].Spec.Capability.Cpu().Value() != 1 {
		t.Errorf("b may hold %v", got.queues["b"].Spec.Capability)
	}
	endless := "partitions:\n- name: default\n  queues: &all\n  - name: a\n    queues: *all\n"
	problems(t, endless, yunikorn.Options{}, "more than 100 levels of queues")
}
