package apis_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDefinitionsCarryTheNamesThatUsersType(t *testing.T) {
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
		"ClusterQueue": {
			"clusterqueues.kueue.x-k8s.io", "ClusterQueue", "ClusterQueueList", "clusterqueue",
			[]string{"cq"}, apiextensionsv1.ClusterScoped, true,
		},
		"Cohort": {
			"cohorts.kueue.x-k8s.io", "Cohort", "CohortList", "cohort",
			[]string{"co"}, apiextensionsv1.ClusterScoped, true,
		},
		"LocalQueue": {
			"localqueues.kueue.x-k8s.io", "LocalQueue", "LocalQueueList", "localqueue",
			[]string{"queue", "queues", "lq"}, apiextensionsv1.NamespaceScoped, true,
		},
		"ResourceFlavor": {
			"resourceflavors.kueue.x-k8s.io", "ResourceFlavor", "ResourceFlavorList", "resourceflavor",
			[]string{"flavor", "flavors", "rf"}, apiextensionsv1.ClusterScoped, false,
		},
		"Workload": {
			"workloads.kueue.x-k8s.io", "Workload", "WorkloadList", "workload",
			[]string{"kwl", "kueueworkload", "kueueworkloads"}, apiextensionsv1.NamespaceScoped, true,
		},
		"WorkloadPriorityClass": {
			"workloadpriorityclasses.kueue.x-k8s.io", "WorkloadPriorityClass", "WorkloadPriorityClassList", "workloadpriorityclass",
			[]string{"wpc"}, apiextensionsv1.ClusterScoped, false,
		},
		"AdmissionCheck": {
			"admissionchecks.kueue.x-k8s.io", "AdmissionCheck", "AdmissionCheckList", "admissioncheck",
			[]string{"ac"}, apiextensionsv1.ClusterScoped, true,
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

func TestDefinitionsShowTheColumnsThatUsersRead(t *testing.T) {
	want := map[string][]string{
		"Job":         {"STATUS", "minAvailable", "RUNNINGS", "AGE"},
		"CronJob":     {"AGE"},
		"PodGroup":    {"STATUS", "minMember", "RUNNINGS", "AGE"},
		"Queue":       {"PARENT"},
		"Command":     nil,
		"JobFlow":     {"Status", "Age"},
		"JobTemplate": nil,
		"HyperNode":   {"Tier", "TierName", "NodeCount", "Age"},

		"ClusterQueue":          {"Cohort", "Pending Workloads"},
		"Cohort":                nil,
		"LocalQueue":            {"ClusterQueue", "Pending Workloads", "Admitted Workloads"},
		"ResourceFlavor":        nil,
		"Workload":              {"Queue", "Reserved in", "Admitted", "Finished", "Age"},
		"WorkloadPriorityClass": {"Value"},
		"AdmissionCheck":        nil,
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
		// Half the limit leaves room for other annotations and for pods to grow new fields. A kind with two versions
		// has its schema twice: three quarters leave as much for each.
		limit := annotationLimit / 2
		if len(definition.crd.Spec.Versions) > 1 {
			limit = annotationLimit * 3 / 4
		}
		if len(content) > limit {
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
