package settings_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// read decodes an object from YAML, and refuses what its kind does not have.
func read[T any, P interface {
	*T
	bounds.Strict
}](t *testing.T, text string) P {
	t.Helper()
	object := P(new(T))
	if err := yaml.UnmarshalStrict([]byte(text), object.Plain()); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

const group = "resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 4, borrowingLimit: 2, lendingLimit: 1}, {name: memory, nominalQuota: 8Gi}]}]}]"

func TestBothSpellingsOfAClusterQueueReadAlike(t *testing.T) {
	older := read[v1beta2.ClusterQueue](t, `
metadata: {name: a}
spec:
  cohort: all
  admissionChecks: [budget]
  flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
  `+group)
	newer := read[v1beta2.ClusterQueue](t, `
metadata: {name: a}
spec:
  cohortName: all
  admissionChecksStrategy: {admissionChecks: [{name: budget}]}
  flavorFungibility: {whenCanBorrow: MayStopSearch, whenCanPreempt: MayStopSearch}
  `+group)
	a, b := settings.OfClusterQueue(older), settings.OfClusterQueue(newer)
	if !equality.Semantic.DeepEqual(a, b) {
		t.Errorf("v1beta1 reads as\n%+v\nv1beta2 as\n%+v", a, b)
	}
	if a.Cohort != "all" || len(a.Checks) != 1 || a.Checks[0].Name != "budget" || a.WhenCanPreempt != v1beta2.MayStopSearch || a.Problem != "" {
		t.Errorf("it reads as %+v", a)
	}
	quota := a.Groups[0].Flavors[0].Quotas
	if quota[0].Borrowing.Value() != 2 || quota[0].Lending.Value() != 1 || quota[1].Nominal.Value() != 8<<30 || quota[1].Borrowing != nil {
		t.Errorf("the quotas read as %+v", quota)
	}
}

func TestAClusterQueueThatSaysLittleHasTheDefaults(t *testing.T) {
	q := settings.OfClusterQueue(read[v1beta2.ClusterQueue](t, "metadata: {name: a, annotations: {hekla.sh/queue: research}}"))
	want := settings.ClusterQueue{
		Name: "a", Queue: "research", Groups: []settings.ResourceGroup{}, Namespaces: labels.Nothing(),
		WhenCanBorrow: v1beta2.MayStopSearch, WhenCanPreempt: v1beta2.TryNextFlavor, Preference: v1beta2.BorrowingOverPreemption,
		WithinClusterQueue: v1beta2.PreemptNever, ReclaimWithinCohort: v1beta2.PreemptNever, BorrowWithinCohort: v1beta2.PreemptNever,
		Stop: v1beta2.StopNone, WeightNanos: 1e9,
	}
	if !equality.Semantic.DeepEqual(want, q) {
		t.Errorf("it reads as\n%+v, want\n%+v", q, want)
	}
	if all := settings.OfClusterQueue(read[v1beta2.ClusterQueue](t, "metadata: {name: a}\nspec: {namespaceSelector: {}}")); !all.Namespaces.Matches(labels.Set{"a": "b"}) {
		t.Error("an empty selector does not match all namespaces")
	}
}

func TestWhatCannotBeMeantMakesAnObjectInactive(t *testing.T) {
	queue := func(text string) string {
		return settings.OfClusterQueue(read[v1beta2.ClusterQueue](t, "metadata: {name: a}\nspec: "+text)).Problem
	}
	cohort := func(text string) string {
		return settings.OfCohort(read[v1beta2.Cohort](t, "metadata: {name: a}\nspec: "+text)).Problem
	}
	quotas := func(quotas string) string {
		return "{cohort: c, resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: f, resources: [" + quotas + "]}]}]}"
	}
	for name, test := range map[string]struct{ got, want string }{
		"two cohorts":                {queue("{cohort: a, cohortName: b}"), `spec.cohort: Invalid value: "a": must not differ from cohortName, which is "b"`},
		"one cohort twice":           {queue("{cohort: a, cohortName: a}"), ""},
		"two lists of checks":        {queue("{admissionChecks: [a], admissionChecksStrategy: {admissionChecks: [{name: b}]}}"), "spec.admissionChecks: Invalid value"},
		"one list of checks twice":   {queue("{admissionChecks: [a], admissionChecksStrategy: {admissionChecks: [{name: a}]}}"), ""},
		"more lent than there is":    {queue(quotas("{name: cpu, nominalQuota: 1, lendingLimit: 2}, {name: memory, nominalQuota: 1}")), "resources[0].lendingLimit: Invalid value: \"2\": must be less than or equal to the nominalQuota"},
		"a quota below nothing":      {queue(quotas("{name: cpu, nominalQuota: -1}, {name: memory, nominalQuota: 1}")), "nominalQuota: Invalid value: \"-1\": must be greater than or equal to 0"},
		"another order":              {queue(quotas("{name: memory, nominalQuota: 1}, {name: cpu, nominalQuota: 1}")), "must match the name in coveredResources"},
		"a resource without quota":   {queue(quotas("{name: cpu, nominalQuota: 1}")), "flavors must have the same number of resources as the coveredResources"},
		"a limit without a cohort":   {queue(strings.Replace(quotas("{name: cpu, nominalQuota: 1, borrowingLimit: 1}, {name: memory, nominalQuota: 1}"), "cohort: c, ", "", 1)), "borrowingLimit: Invalid value: \"1\": must be nil when cohort is empty"},
		"a weight that is too small": {queue("{fairSharing: {weight: 1n}}"), "must be 0 or greater than 1e-9"},
		"a weight of nothing":        {queue("{fairSharing: {weight: 0}}"), ""},
		"borrowing without reclaim":  {queue("{preemption: {borrowWithinCohort: {policy: LowerPriority}}}"), "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"},
		"a preference without both":  {queue("{flavorFungibility: {preference: PreemptionOverBorrowing}}"), "preference can only be set"},
		"a selector that is none":    {queue("{namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}}"), "spec.namespaceSelector.matchExpressions[0].operator"},
		"a scope":                    {queue("{admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}}"), "spec.admissionScope is set, and Hekla does not serve it"},
		"a policy of another Kueue":  {queue("{concurrentAdmissionPolicy: {}}"), "spec.concurrentAdmissionPolicy is set, and Hekla does not serve it"},
		"a flavor in two groups": {queue("{resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]}, {coveredResources: [memory], flavors: [{name: f, resources: [{name: memory, nominalQuota: 1}]}]}]}"),
			"spec.resourceGroups[1].flavors[0].name: Duplicate value: \"f\""},
		"a cohort below itself":          {cohort("{parentName: a}"), "a cohort cannot be its own parent"},
		"a limit of a cohort of no one":  {cohort("{resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1, lendingLimit: 1}]}]}]}"), "must be nil when parent is empty"},
		"a cohort that lends more":       {cohort("{parentName: b, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1, lendingLimit: 2}]}]}]}"), ""},
		"a weight among LocalQueues":     {settings.OfLocalQueue(read[v1beta2.LocalQueue](t, "spec: {fairSharing: {weight: 2}}")).Problem, "spec.fairSharing.weight is set, and Hekla does not serve it"},
		"the weight that all have":       {settings.OfLocalQueue(read[v1beta2.LocalQueue](t, "spec: {fairSharing: {weight: 1}}")).Problem, ""},
		"a Workload without constraints": {settings.OfWorkload(read[v1beta2.Workload](t, "spec: {podSets: [{name: a, count: 1, topologyRequest: {unconstrained: true}, template: {}}]}")).Problem, ""},
		"a Workload for one rack":        {settings.OfWorkload(read[v1beta2.Workload](t, "spec: {podSets: [{name: a, count: 1, topologyRequest: {required: rack}, template: {}}]}")).Problem, "spec.podSets[0].topologyRequest is set"},
		"a flavor with a topology":       {settings.OfFlavor(read[v1beta2.ResourceFlavor](t, "spec: {topologyName: racks}")).Problem, "spec.topologyName is set, and Hekla does not serve it"},
		"a taint without effect":         {settings.OfFlavor(read[v1beta2.ResourceFlavor](t, "spec: {nodeTaints: [{key: a}]}")).Problem, "spec.nodeTaints[0].effect: Unsupported value"},
		"a check of several clusters":    {settings.OfCheck(read[v1beta2.AdmissionCheck](t, "spec: {controllerName: kueue.x-k8s.io/multikueue}")).NotServed, "the controller kueue.x-k8s.io/multikueue is not served by Hekla"},
	} {
		if !strings.Contains(test.got, test.want) || (test.want == "") != (test.got == "") {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
}

func TestBothSpellingsOfAWorkloadReadAlike(t *testing.T) {
	const rest = "queueName: q, priority: 5, active: false, maximumExecutionTimeSeconds: 60, podSets: [{count: 3, minCount: 2, template: {spec: {containers: []}}}]}\nstatus: {reclaimablePods: [{name: main, count: 1}], "
	older := settings.OfWorkload(read[v1beta2.Workload](t, "spec: {priorityClassName: high, priorityClassSource: kueue.x-k8s.io/workloadpriorityclass, "+rest+"accumulatedPastExexcutionTimeSeconds: 7}"))
	newer := settings.OfWorkload(read[v1beta2.Workload](t, "spec: {priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}, "+rest+"accumulatedPastExecutionTimeSeconds: 7}"))
	if diff := cmp.Diff(older, newer); diff != "" {
		t.Errorf("v1beta1 and v1beta2 differ:\n%s", diff)
	}
	p := newer.PodSets[0]
	if newer.IsActive || newer.MaxSeconds != 60 || newer.PastSeconds != 7 || p.Name != "main" || p.Count != 3 || p.MinCount != 2 || p.Reclaimable != 1 {
		t.Errorf("it reads as %+v", newer)
	}
	both := settings.OfWorkload(read[v1beta2.Workload](t, "spec: {priorityClassName: low, priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}, "+rest+"}"))
	if !strings.Contains(both.Problem, `spec.priorityClassName: Invalid value: "low": must not differ from priorityClassRef.name, which is "high"`) {
		t.Errorf("two classes: %q", both.Problem)
	}
	two := settings.OfWorkload(read[v1beta2.Workload](t, "spec: {preemptionGates: [{name: a}], podSets: [{name: a, count: 2, minCount: 1, template: {}}, {name: b, count: 2, minCount: 1, topologyRequest: {required: rack}, template: {}}]}"))
	for _, want := range []string{"at most one podSet can use minCount", "spec.podSets[1].topologyRequest is set", "spec.preemptionGates is set"} {
		if !strings.Contains(two.Problem, want) {
			t.Errorf("%q does not say %q", two.Problem, want)
		}
	}
}

func TestNodesAreReadInEitherForm(t *testing.T) {
	nodes := []settings.NodeCount{{"n1", 2}, {"n2", 1}}
	back, err := settings.Nodes(settings.Topology(nodes))
	if err != nil || !cmp.Equal(nodes, back) {
		t.Errorf("written and read: %v, %v", back, err)
	}
	assignment := func(text string) *v1beta2.TopologyAssignment {
		a := &v1beta2.TopologyAssignment{}
		if err := yaml.UnmarshalStrict([]byte(text), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	const levels = "levels: [kubernetes.io/hostname]\n"
	got, err := settings.Nodes(assignment(levels + `slices: [{domainCount: 2, valuesPerLevel: [{individual: {prefix: "n", roots: ["1", "2"]}}], podCounts: {individual: [2, 1]}}]`))
	if err != nil || !cmp.Equal(nodes, got) {
		t.Errorf("in columns: %v, %v", got, err)
	}
	for _, bad := range []string{
		"levels: [rack]\ndomains: [{values: [r1], count: 1}]",
		levels + "domains: [{values: [a, b], count: 1}]",
		levels + "slices: [{domainCount: 2000000000, valuesPerLevel: [{universal: a}], podCounts: {universal: 1}}]",
		levels + "slices: [{domainCount: -1, valuesPerLevel: [{individual: {roots: []}}], podCounts: {universal: 1}}]",
		levels + "slices: [{domainCount: 2, valuesPerLevel: [], podCounts: {universal: 1}}]",
	} {
		if got, err := settings.Nodes(assignment(bad)); err == nil {
			t.Errorf("%s reads as %v", bad, got)
		}
	}
	if got, err := settings.Nodes(nil); got != nil || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}
