package admission

import (
	"hekla.sh/hekla/internal/admission/held"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestTheFirstGroupThatAPodBelongsToDecides(t *testing.T) {
	groups, err := parseGroups([]byte(`
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [mng-1, mng-2]}
  schedulerName: default-scheduler
  labels: {tier: management}
  tolerations: [{effect: NoSchedule, key: mng, operator: Exists}]
- resourceGroup: cpu
  object: {key: annotation, value: ["example.com/kind: cpu", "example.com/kind: both"]}
  schedulerName: volcano
- resourceGroup: gpu
  labels: {tier: gpu}
  affinity: '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}}'
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, pod, want string }{
		{"by namespace", "{metadata: {namespace: mng-2}, spec: {nodeSelector: {tier: other, zone: a}, tolerations: [{key: x}]}}",
			"{nodeSelector: {tier: management, zone: a}, schedulerName: default-scheduler, tolerations: [{key: x}, {effect: NoSchedule, key: mng, operator: Exists}]}"},
		{"what is tolerated already", "{metadata: {namespace: mng-1}, spec: {tolerations: [{effect: NoSchedule, key: mng, operator: Exists}]}}",
			"{nodeSelector: {tier: management}, schedulerName: default-scheduler, tolerations: [{effect: NoSchedule, key: mng, operator: Exists}]}"},
		{"by annotation", "{metadata: {annotations: {example.com/kind: both}}, spec: {schedulerName: other}}", "{schedulerName: volcano}"},
		{"by the group's name", "{metadata: {annotations: {volcano.sh/resource-group: gpu}}, spec: {affinity: {}, schedulerName: other}}",
			"{affinity: {}, schedulerName: other, nodeSelector: {tier: gpu}}"},
		{"with affinity", "{metadata: {annotations: {volcano.sh/resource-group: gpu}}}",
			"{nodeSelector: {tier: gpu}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]}}}}"},
		{"by the name of a group that has a key", "{metadata: {annotations: {volcano.sh/resource-group: cpu}}}", "{}"},
		{"by none", "{metadata: {namespace: lab}}", "{}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pod corev1.Pod
			var want corev1.PodSpec
			for text, into := range map[string]any{test.pod: &pod, test.want: &want} {
				if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time nothing is left to do
				for i := range groups {
					if groups[i].has(&pod) {
						groups[i].place(&pod)
						break
					}
				}
				if diff := cmp.Diff(want, pod.Spec); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestGroupsThatCannotBeMeantAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"resourceGroup: []":                                                                  `unknown field "resourceGroup"`,
		"resourceGroups: [{resourceGrop: a}]":                                                `unknown field "resourceGrop"`,
		"resourceGroups: [{object: {key: label}}]":                                           `resourceGroups[0] (): object.key: "label" is neither namespace nor annotation`,
		"resourceGroups: [{resourceGroup: a, affinity: '{\"nodeAfinity\": {}}'}]":            `resourceGroups[0] (a): affinity: error unmarshaling JSON: while decoding JSON: json: unknown field "nodeAfinity"`,
		"resourceGroups: [{resourceGroup: a, object: {key: namespace, value: [A]}}]":         `resourceGroups[0] (a): object.value: "A" is no name of a namespace`,
		"resourceGroups: [{resourceGroup: a, object: {key: annotation, value: [x]}}]":        `resourceGroups[0] (a): object.value: "x" is no annotation; write it as "key: value"`,
		"resourceGroups: [{resourceGroup: a, object: {key: annotation, value: ['a b: c']}}]": `"a b" is no key of an annotation`,
		"resourceGroups: [{resourceGroup: a, tolerations: [{key: a, tolerationSecond: 1}]}]": `tolerationSecond`,
		"resourceGroups: []":                     "",
		"":                                       "",
		"# resourceGroups:\n# - a comment alone": "",
	} {
		_, err := parseGroups([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestABadFileNeverReplacesAGoodOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "conf")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("resourceGroups: [{resourceGroup: a}]")
	groups, content, err := readGroups(file)
	if err != nil {
		t.Fatal(err)
	}
	c := &registrar{options: Options{ConfigFile: file}, server: &server{}, config: content, log: logr.Discard()}
	c.server.settings.Store(c.options.settings(groups, held.Known{}))
	for _, test := range []struct{ text, error, name string }{
		{"resourceGroups: [{resourceGroup: b}]", "", "b"},
		{"resourceGroups: [{nonsense: c}]", "nonsense", "b"},
		{"resourceGroups: [{resourceGroup: d}]", "", "d"},
	} {
		write(test.text)
		err := c.reload()
		if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
			t.Errorf("%s: %v", test.text, err)
		}
		if got := c.server.settings.Load().groups[0].Name; got != test.name {
			t.Errorf("after %s the group is %s, want %s", test.text, got, test.name)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := c.reload(); err != nil || len(c.server.settings.Load().groups) > 0 {
		t.Errorf("a file that is gone: %v", err)
	}
}
