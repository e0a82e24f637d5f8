package apis_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDefinitionsCarryTheNamesThatVolcanoUsersType(t *testing.T) {
	type names struct {
		Name, Kind, ListKind, Singular string
		ShortNames                     []string
		Scope                          apiextensionsv1.ResourceScope
		StatusSubresource              bool
	}
	want := map[string]names{
		"Job": {
			"jobs.batch.volcano.sh", "Job", "JobList", "job",
			[]string{"vcjob", "vj"}, apiextensionsv1.NamespaceScoped, true,
		},
		"PodGroup": {
			"podgroups.scheduling.volcano.sh", "PodGroup", "PodGroupList", "podgroup",
			[]string{"pg", "podgroup-v1beta1"}, apiextensionsv1.NamespaceScoped, true,
		},
		"Queue": {
			"queues.scheduling.volcano.sh", "Queue", "QueueList", "queue",
			[]string{"q", "queue-v1beta1"}, apiextensionsv1.ClusterScoped, true,
		},
		"CronJob": {
			"cronjobs.batch.volcano.sh", "CronJob", "CronJobList", "cronjob",
			[]string{"cronvcjob", "cronvj"}, apiextensionsv1.NamespaceScoped, true,
		},
		"Command": {
			"commands.bus.volcano.sh", "Command", "CommandList", "command",
			nil, apiextensionsv1.NamespaceScoped, false,
		},
		"JobFlow": {
			"jobflows.flow.volcano.sh", "JobFlow", "JobFlowList", "jobflow",
			[]string{"jf"}, apiextensionsv1.NamespaceScoped, true,
		},
		"JobTemplate": {
			"jobtemplates.flow.volcano.sh", "JobTemplate", "JobTemplateList", "jobtemplate",
			[]string{"jt"}, apiextensionsv1.NamespaceScoped, true,
		},
		"HyperNode": {
			"hypernodes.topology.volcano.sh", "HyperNode", "HyperNodeList", "hypernode",
			[]string{"hn"}, apiextensionsv1.ClusterScoped, true,
		},
	}
	got := map[string]names{}
	for kind, definition := range loadDefinitions(t) {
		spec, subresources := definition.crd.Spec, definition.crd.Spec.Versions[0].Subresources
		got[kind] = names{
			definition.crd.Name, spec.Names.Kind, spec.Names.ListKind, spec.Names.Singular, spec.Names.ShortNames,
			spec.Scope, subresources != nil && subresources.Status != nil,
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestDefinitionsShowTheColumnsThatVolcanoUsersRead(t *testing.T) {
	want := map[string][]string{
		"Job":         {"STATUS", "minAvailable", "RUNNINGS", "AGE"},
		"CronJob":     {"AGE"},
		"PodGroup":    {"STATUS", "minMember", "RUNNINGS", "AGE"},
		"Queue":       {"PARENT"},
		"Command":     nil,
		"JobFlow":     {"Status", "Age"},
		"JobTemplate": nil,
		"HyperNode":   {"Tier", "TierName", "NodeCount", "Age"},
	}
	got := map[string][]string{}
	for kind, definition := range loadDefinitions(t) {
		got[kind] = nil
		for _, column := range definition.crd.Spec.Versions[0].AdditionalPrinterColumns {
			// Columns of a higher priority appear in the wide view only.
			if column.Priority == 0 {
				got[kind] = append(got[kind], column.Name)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestDefinitionsFitIntoTheAnnotationOfKubectlApply(t *testing.T) {
	const annotationLimit = 256 << 10
	for kind, definition := range loadDefinitions(t) {
		content, err := json.Marshal(definition.crd)
		if err != nil {
			t.Fatal(err)
		}
		// Half the limit leaves room for other annotations and for pods to grow new fields.
		if len(content) > annotationLimit/2 {
			t.Errorf("%s has %d bytes", kind, len(content))
		}
	}
}

func TestEveryFieldOfOurOwnIsDocumented(t *testing.T) {
	embedded := map[string]bool{"template": true, "volumeClaim": true, "metadata": true}
	for kind, definition := range loadDefinitions(t) {
		var visit func(path string, properties *apiextensionsv1.JSONSchemaProps)
		visit = func(path string, node *apiextensionsv1.JSONSchemaProps) {
			for name, property := range node.Properties {
				if property.Description == "" && name != "metadata" {
					t.Errorf("%s%s.%s has no description", kind, path, name)
				}
				if !embedded[name] {
					visit(path+"."+name, &property)
				}
			}
			if node.Items != nil {
				visit(path+"[]", node.Items.Schema)
			}
		}
		visit("", definition.crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

func TestEveryKindAndItsListAreRegistered(t *testing.T) {
	scheme := newScheme(t)
	for kind, definition := range loadDefinitions(t) {
		group := schema.GroupVersion{Group: definition.crd.Spec.Group, Version: definition.crd.Spec.Versions[0].Name}
		for _, name := range []string{kind, definition.crd.Spec.Names.ListKind} {
			if !scheme.Recognizes(group.WithKind(name)) {
				t.Errorf("%s is not in the scheme", group.WithKind(name))
			}
		}
	}
}
