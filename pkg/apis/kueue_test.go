package apis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestBothVersionsOfTheKindsOfKueueAreServedWithOneSchema(t *testing.T) {
	count := 0
	for kind, definition := range loadDefinitions(t) {
		if definition.crd.Spec.Group != "kueue.x-k8s.io" {
			continue
		}
		count++
		versions := definition.crd.Spec.Versions
		if len(versions) != 2 || versions[0].Name != "v1beta2" || versions[1].Name != "v1beta1" {
			t.Fatalf("%s has the versions %+v", kind, versions)
		}
		newer, older := versions[0], versions[1]
		if !newer.Served || !older.Served || !newer.Storage || older.Storage || definition.crd.Spec.Conversion != nil {
			t.Errorf("%s: v1beta2 is not the stored one, or one is not served, or something is converted", kind)
		}
		if !equality.Semantic.DeepEqual(newer.Schema, older.Schema) || !equality.Semantic.DeepEqual(newer.AdditionalPrinterColumns, older.AdditionalPrinterColumns) {
			t.Errorf("%s: the versions differ", kind)
		}
	}
	if count != 7 {
		t.Errorf("%d kinds, want 7", count)
	}
}

// An object that is read back has what it has with the definitions of Kueue 0.15.
func TestDefaultsAreThoseOfKueue(t *testing.T) {
	for kind, want := range map[string]map[string]string{
		"ClusterQueue": {
			".spec.queueingStrategy": `"BestEffortFIFO"`, ".spec.stopPolicy": `"None"`, ".spec.fairSharing.weight": "1",
			".spec.flavorFungibility": "{}", ".spec.flavorFungibility.whenCanBorrow": `"MayStopSearch"`, ".spec.flavorFungibility.whenCanPreempt": `"TryNextFlavor"`,
			".spec.preemption": "{}", ".spec.preemption.borrowWithinCohort": "{}", ".spec.preemption.borrowWithinCohort.policy": `"Never"`,
			".spec.preemption.reclaimWithinCohort": `"Never"`, ".spec.preemption.withinClusterQueue": `"Never"`,
		},
		"Cohort":     {".spec.fairSharing.weight": "1"},
		"LocalQueue": {".spec.stopPolicy": `"None"`, ".spec.fairSharing.weight": "1"},
		"Workload": {
			".spec.active": "true", ".spec.podSets[].count": "1", ".spec.podSets[].name": `"main"`,
			".status.admission.podSetAssignments[].name": `"main"`,
		},
		"ResourceFlavor": {}, "WorkloadPriorityClass": {}, "AdmissionCheck": {},
	} {
		got := map[string]string{}
		defaultsOf(loadDefinitions(t)[kind].crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", got)
		for path := range got {
			if strings.Contains(path, ".template.") {
				delete(got, path) // those of Kubernetes
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestTheKindsOfKueueAreCheckedByTheirDefinitions(t *testing.T) {
	clusterQueue := func(spec string) string { return "metadata: {name: a}\nspec: " + spec }
	group := func(resource string) string {
		return "resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [" + resource + "]}]}]"
	}
	workload := func(spec string) string { return "metadata: {name: a}\nspec: " + spec }
	definitions := loadDefinitions(t)
	for _, test := range []struct{ name, kind, object, refusal string }{
		{"a limit needs a cohort", "ClusterQueue", clusterQueue("{" + group("{name: cpu, nominalQuota: 1, borrowingLimit: 1}") + "}"), "borrowingLimit must be nil when cohort is empty"},
		{"a cohort allows a limit", "ClusterQueue", clusterQueue("{cohortName: c, " + group("{name: cpu, nominalQuota: 1, borrowingLimit: 1}") + "}"), ""},
		{"so does its older spelling", "ClusterQueue", clusterQueue("{cohort: c, " + group("{name: cpu, nominalQuota: 1, borrowingLimit: 1}") + "}"), ""},
		{"two spellings do not differ", "ClusterQueue", clusterQueue("{cohort: c, cohortName: d}"), "cohort and cohortName are two spellings of one field"},
		{"every covered resource has a quota", "ClusterQueue", clusterQueue("{resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}]}"),
			"flavors must have the same number of resources as the coveredResources"},
		{"borrowing needs reclaim", "ClusterQueue", clusterQueue("{preemption: {borrowWithinCohort: {policy: LowerPriority}}}"), "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"},
		{"a preference needs both policies", "ClusterQueue", clusterQueue("{flavorFungibility: {preference: BorrowingOverPreemption}}"), "preference can only be set when both"},
		{"a strategy is one of two", "ClusterQueue", clusterQueue("{queueingStrategy: LIFO}"), "spec.queueingStrategy: Unsupported value"},
		{"fields that are not served are stored", "ClusterQueue", clusterQueue("{admissionScope: {admissionMode: a}, concurrentAdmissionPolicy: {migration: {mode: b}}}"), ""},
		{"a toleration of all needs Exists", "ResourceFlavor", "metadata: {name: a}\nspec: {tolerations: [{operator: Equal, value: b}]}", "operator must be Exists when 'key' is empty"},
		{"a taint has an effect", "ResourceFlavor", "metadata: {name: a}\nspec: {nodeTaints: [{key: a, effect: Never}]}", "supported taint effect values"},
		{"a topology needs labels", "ResourceFlavor", "metadata: {name: a}\nspec: {topologyName: racks, nodeLabels: {}}", "at least one nodeLabel is required when topology is set"},
		{"a minimum is at most the count", "Workload", workload("{podSets: [{count: 2, minCount: 3, template: {}}]}"), "minCount should be positive and less or equal to count"},
		{"a class needs a priority", "Workload", workload("{priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: a}, podSets: [{template: {}}]}"), "priority should not be nil when priorityClassRef is set"},
		{"so does its older spelling", "Workload", workload("{priorityClassName: a, podSets: [{template: {}}]}"), "priority should not be nil when priorityClassName is set"},
		{"a class is of the kind of its group", "Workload", workload("{priority: 1, priorityClassRef: {group: kueue.x-k8s.io, kind: PriorityClass, name: a}, podSets: [{template: {}}]}"), "only the WorkloadPriorityClass kind is allowed"},
		{"a check has a controller", "AdmissionCheck", "metadata: {name: a}\nspec: {}", "spec.controllerName: Required value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, errs := definitions[test.kind].create(parse(t, test.object))
			said := ""
			if len(errs) > 0 {
				said = errs.ToAggregate().Error()
			}
			if !strings.Contains(said, test.refusal) || (said == "") != (test.refusal == "") {
				t.Errorf("%q, want %q", said, test.refusal)
			}
		})
	}
}

func TestAWorkloadThatHoldsQuotaKeepsItsQueueAndItsClass(t *testing.T) {
	definition := loadDefinitions(t)["Workload"]
	const (
		head     = "metadata: {name: a}\nspec: {podSets: [{template: {}}], priority: 1, "
		reserved = "}\nstatus: {conditions: [{type: QuotaReserved, status: 'True', reason: QuotaReserved, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
	)
	const class = "priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, name: "
	for _, test := range []struct{ before, after, status, refusal string }{
		{"queueName: a", "queueName: b", reserved, "queueName is immutable while workload quota reserved"},
		{"queueName: a", "queueName: b", "}", ""},
		{class + "a}", class + "b}", reserved, "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved"},
		{class + "a}", "active: true", reserved, "priorityClassRef is immutable while workload quota reserved"},
		{"priorityClassName: a, priorityClassSource: scheduling.k8s.io/priorityclass", "priorityClassName: b, priorityClassSource: scheduling.k8s.io/priorityclass", reserved,
			"priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload quota reserved"},
		{"active: true", "active: false", reserved, ""},
	} {
		stored, _, errs := definition.create(parse(t, head+test.before+test.status))
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		said := ""
		if errs := definition.update(parse(t, head+test.after+test.status), stored); len(errs) > 0 {
			said = errs.ToAggregate().Error()
		}
		if !strings.Contains(said, test.refusal) || (said == "") != (test.refusal == "") {
			t.Errorf("%s → %s: %q, want %q", test.before, test.after, said, test.refusal)
		}
	}
}
