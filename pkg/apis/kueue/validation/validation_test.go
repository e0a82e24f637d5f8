package validation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
)

// queueOf returns a ClusterQueue with one flavor and its quota of CPUs.
func queueOf(quota v1beta2.ResourceQuota) *v1beta2.ClusterQueue {
	quota.Name = corev1.ResourceCPU
	return &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: v1beta2.ClusterQueueSpec{ResourceGroups: []v1beta2.ResourceGroup{{
		CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []v1beta2.FlavorQuotas{{Name: "spot", Resources: []v1beta2.ResourceQuota{quota}}},
	}}}}
}

// workloadOf returns a Workload with podsets that request CPUs.
func workloadOf(requests ...string) *v1beta2.Workload {
	w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
	for i, request := range requests {
		w.Spec.PodSets = append(w.Spec.PodSets, v1beta2.PodSet{Name: fmt.Sprintf("set%d", i), Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(request)}}}},
		}}})
	}
	return w
}

// A webhook refuses a ClusterQueue with the first list, and a controller makes it inactive with the second.
func ExampleClusterQueue() {
	q := queueOf(v1beta2.ResourceQuota{NominalQuota: resource.MustParse("8"), BorrowingLimit: ptr.To(resource.MustParse("4"))})
	q.Spec.AdmissionScope = &v1beta2.AdmissionScope{}
	for _, problem := range validation.ClusterQueue(q) {
		fmt.Println(problem.Field+":", problem.Detail)
	}
	fmt.Println(validation.ClusterQueueNotServed(q))
	// Output:
	// spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: must be nil when cohort is empty
	// [spec.admissionScope is set, and Hekla does not serve it]
}

// The problems of a map come from its keys, which Go gives in any order.
func TestTheSameObjectGetsTheSameProblemsInTheSameOrder(t *testing.T) {
	bad := map[string]string{}
	requests := corev1.ResourceList{}
	for _, name := range strings.Split("abcdefgh", "") {
		bad["/"+name] = "/" + name
		requests[corev1.ResourceName(name)] = resource.MustParse("-1")
	}
	flavor := &v1beta2.ResourceFlavor{Spec: v1beta2.ResourceFlavorSpec{NodeLabels: bad}}
	queue := &v1beta2.ClusterQueue{Spec: v1beta2.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: bad}}}
	workload := workloadOf("1")
	workload.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests = requests
	for name, problems := range map[string]func() field.ErrorList{
		"the labels of a flavor":      func() field.ErrorList { return validation.ResourceFlavor(flavor) },
		"the selector of a queue":     func() field.ErrorList { return validation.ClusterQueue(queue) },
		"the requests of a container": func() field.ErrorList { return validation.Workload(workload) },
	} {
		t.Run(name, func(t *testing.T) {
			texts := func() (all []string) {
				for _, problem := range problems() {
					all = append(all, problem.Error())
				}
				return all
			}
			first := texts()
			if len(first) < len(bad) {
				t.Fatalf("the problems are %q", first)
			}
			for range 20 {
				if again := texts(); !slices.Equal(first, again) {
					t.Fatalf("the problems are %q,\nand then %q", first, again)
				}
			}
		})
	}
}

// These reach the simulator, and older objects the scheduler, without passing a schema.
func TestWhatDecidesAnObjectsMeaningIsCheckedWithoutASchema(t *testing.T) {
	eight, minus := resource.MustParse("8"), resource.MustParse("-1")
	queue := func(change func(*v1beta2.ClusterQueueSpec)) field.ErrorList {
		q := queueOf(v1beta2.ResourceQuota{NominalQuota: eight})
		change(&q.Spec)
		return validation.ClusterQueue(q)
	}
	workload := func(change func(*v1beta2.WorkloadSpec)) field.ErrorList {
		w := workloadOf("1", "1")
		change(&w.Spec)
		return validation.Workload(w)
	}
	const nothing = "<nil>"
	for name, c := range map[string]struct {
		problems field.ErrorList
		want     string
	}{
		"a queue": {queue(func(*v1beta2.ClusterQueueSpec) {}), nothing},
		"a negative quota": {validation.ClusterQueue(queueOf(v1beta2.ResourceQuota{NominalQuota: minus})),
			`spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-1": must be greater than or equal to 0`},
		"a queue that lends more than it has": {queue(func(s *v1beta2.ClusterQueueSpec) {
			s.CohortName, s.ResourceGroups[0].Flavors[0].Resources[0].LendingLimit = "all", ptr.To(resource.MustParse("9"))
		}), `spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: Invalid value: "9": must be less than or equal to the nominalQuota`},
		"a resource of two groups": {queue(func(s *v1beta2.ClusterQueueSpec) {
			other := *s.ResourceGroups[0].DeepCopy()
			other.Flavors[0].Name = "reserved"
			s.ResourceGroups = append(s.ResourceGroups, other)
		}), `spec.resourceGroups[1].coveredResources[0]: Duplicate value: "cpu"`},
		"two spellings of the cohort": {queue(func(s *v1beta2.ClusterQueueSpec) { s.Cohort, s.CohortName = "a", "b" }),
			`spec.cohort: Invalid value: "a": must not differ from cohortName, which is "b"`},
		"borrowing victims without reclaiming": {queue(func(s *v1beta2.ClusterQueueSpec) {
			s.Preemption = &v1beta2.ClusterQueuePreemption{BorrowWithinCohort: &v1beta2.BorrowWithinCohort{Policy: v1beta2.PreemptLowerPriority}}
		}), `spec.preemption.borrowWithinCohort.policy: Invalid value: "LowerPriority": reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never`},
		"a weight too small to divide by": {queue(func(s *v1beta2.ClusterQueueSpec) {
			s.FairSharing = &v1beta2.FairSharing{Weight: ptr.To(resource.MustParse("1n"))}
		}),
			`spec.fairSharing.weight: Invalid value: "1n": must be 0 or greater than 1e-9`},
		"a cohort that is its own parent": {validation.Cohort(&v1beta2.Cohort{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1beta2.CohortSpec{ParentName: "all"}}),
			`spec.parentName: Invalid value: "all": a cohort cannot be its own parent`},
		"a negative weight of a LocalQueue": {validation.LocalQueue(&v1beta2.LocalQueue{Spec: v1beta2.LocalQueueSpec{FairSharing: &v1beta2.FairSharing{Weight: &minus}}}),
			`spec.fairSharing.weight: Invalid value: "-1": must be greater than or equal to 0`},
		"a taint without an effect": {validation.ResourceFlavor(&v1beta2.ResourceFlavor{Spec: v1beta2.ResourceFlavorSpec{NodeTaints: []corev1.Taint{{Key: "gpu"}}}}),
			`spec.nodeTaints[0].effect: Unsupported value: "": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
		"a workload":                     {workload(func(*v1beta2.WorkloadSpec) {}), nothing},
		"a workload without podsets":     {validation.Workload(workloadOf()), `spec.podSets: Required value: a workload has at least one podset`},
		"a workload with 19 podsets":     {validation.Workload(workloadOf(slices.Repeat([]string{"1"}, 19)...)), `spec.podSets: Invalid value: 19: the number of podsets must be ≤ 18`},
		"two podsets of one name":        {workload(func(s *v1beta2.WorkloadSpec) { s.PodSets[1].Name = "set0" }), `spec.podSets[1].name: Duplicate value: "set0"`},
		"a request that adds to a quota": {validation.Workload(workloadOf("-1")), `spec.podSets[0].template.spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		"a minimum above the count": {workload(func(s *v1beta2.WorkloadSpec) { s.PodSets[0].MinCount = ptr.To(int32(2)) }),
			`spec.podSets[0].minCount: Invalid value: 2: minCount should be positive and less or equal to count`},
		"two podsets that may shrink": {workload(func(s *v1beta2.WorkloadSpec) {
			s.PodSets[0].MinCount, s.PodSets[1].MinCount = ptr.To(int32(1)), ptr.To(int32(1))
		}),
			`spec.podSets[1].minCount: Invalid value: 1: at most one podSet can use minCount`},
	} {
		if got := fmt.Sprint(c.problems.ToAggregate()); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// An object that could not be decoded has no spec: nothing else may be said of it.
func TestOfAnUnreadableObjectThatIsTheOnlyProblem(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "all", Annotations: map[string]string{bounds.UnreadableKey: "spec.x: too long"}}
	for kind, problems := range map[string]field.ErrorList{
		"ClusterQueue":   validation.ClusterQueue(&v1beta2.ClusterQueue{ObjectMeta: meta}),
		"Cohort":         validation.Cohort(&v1beta2.Cohort{ObjectMeta: meta, Spec: v1beta2.CohortSpec{ParentName: "all"}}),
		"LocalQueue":     validation.LocalQueue(&v1beta2.LocalQueue{ObjectMeta: meta}),
		"ResourceFlavor": validation.ResourceFlavor(&v1beta2.ResourceFlavor{ObjectMeta: meta}),
		"Workload":       validation.Workload(&v1beta2.Workload{ObjectMeta: meta}),
	} {
		if len(problems) != 1 || problems[0].Error() != "spec: Invalid value: cannot be read: spec.x: too long" {
			t.Errorf("%s: %v", kind, problems)
		}
	}
}

func TestAFieldThatIsNotServedIsNoProblemOfTheWebhook(t *testing.T) {
	queue := queueOf(v1beta2.ResourceQuota{NominalQuota: resource.MustParse("8")})
	queue.Spec.AdmissionScope, queue.Spec.ConcurrentAdmissionPolicy = &v1beta2.AdmissionScope{}, &runtime.RawExtension{Raw: []byte("{}")}
	local := &v1beta2.LocalQueue{Spec: v1beta2.LocalQueueSpec{FairSharing: &v1beta2.FairSharing{Weight: ptr.To(resource.MustParse("2"))}}}
	flavor := &v1beta2.ResourceFlavor{Spec: v1beta2.ResourceFlavorSpec{TopologyName: ptr.To("racks")}}
	workload := workloadOf("1", "1", "1")
	workload.Spec.PodSets[0].TopologyRequest = &v1beta2.PodSetTopologyRequest{Unconstrained: ptr.To(true)}
	workload.Spec.PodSets[1].TopologyRequest = &v1beta2.PodSetTopologyRequest{Required: ptr.To("rack")}
	workload.Spec.PreemptionGates = make([]v1beta2.PreemptionGate, 1)
	for kind, c := range map[string]struct {
		problems  field.ErrorList
		notServed []string
		want      []string
	}{
		"ClusterQueue":   {validation.ClusterQueue(queue), validation.ClusterQueueNotServed(queue), []string{"spec.admissionScope", "spec.concurrentAdmissionPolicy"}},
		"LocalQueue":     {validation.LocalQueue(local), validation.LocalQueueNotServed(local), []string{"spec.fairSharing.weight"}},
		"ResourceFlavor": {validation.ResourceFlavor(flavor), validation.ResourceFlavorNotServed(flavor), []string{"spec.topologyName"}},
		"Workload":       {validation.Workload(workload), validation.WorkloadNotServed(workload), []string{"spec.podSets[1].topologyRequest", "spec.preemptionGates"}},
	} {
		for i, path := range c.want {
			c.want[i] = path + " is set, and Hekla does not serve it"
		}
		if len(c.problems) > 0 || !slices.Equal(c.notServed, c.want) {
			t.Errorf("%s has the problems %v, and not served are %q", kind, c.problems, c.notServed)
		}
	}
	local.Spec.FairSharing.Weight = ptr.To(resource.MustParse("1000m"))
	if got := validation.LocalQueueNotServed(local); got != nil {
		t.Errorf("the weight that all have: %q", got)
	}
	check := &v1beta2.AdmissionCheck{Spec: v1beta2.AdmissionCheckSpec{ControllerName: v1beta2.MultiKueueController}}
	if got := validation.AdmissionCheckNotServed(check); len(got) != 1 {
		t.Errorf("a check of MultiKueue: %q", got)
	}
	check.Spec.ControllerName = "example.com/mine"
	if got := validation.AdmissionCheckNotServed(check); got != nil {
		t.Errorf("a check of users: %q", got)
	}
}

func TestAChangeOfAWorkloadIsJudgedByWhatItChanges(t *testing.T) {
	reserve := func(w *v1beta2.Workload) {
		w.Status.Conditions = []metav1.Condition{{Type: v1beta2.QuotaReserved, Status: metav1.ConditionTrue}}
	}
	for name, c := range map[string]struct {
		before  *v1beta2.Workload
		prepare func(*v1beta2.Workload)
		change  func(*v1beta2.Workload)
		want    string
	}{
		"podsets that wait":           {workloadOf("1"), nil, func(w *v1beta2.Workload) { w.Spec.PodSets[0].Count = 2 }, "<nil>"},
		"podsets with quota":          {workloadOf("1"), reserve, func(w *v1beta2.Workload) { w.Spec.PodSets[0].Count = 2 }, "spec.podSets: Forbidden: field is immutable while quota is reserved"},
		"a queue with quota":          {workloadOf("1"), reserve, func(w *v1beta2.Workload) { w.Spec.QueueName = "other" }, `spec.queueName: Invalid value: "other": field is immutable while quota is reserved; it was ""`},
		"a queue, and its quota goes": {workloadOf("1"), reserve, func(w *v1beta2.Workload) { w.Spec.QueueName, w.Status.Conditions = "other", nil }, "<nil>"},
		"a label of one that is bad":  {workloadOf("-1"), nil, func(w *v1beta2.Workload) { w.Labels = map[string]string{"a": "b"} }, "<nil>"},
		"one that gets worse":         {workloadOf("-1"), nil, func(w *v1beta2.Workload) { w.Spec.PodSets[0].Count = -1 }, "spec.podSets[0].count: Invalid value: -1: must be greater than or equal to 0"},
	} {
		if c.prepare != nil {
			c.prepare(c.before)
		}
		after := c.before.DeepCopy()
		c.change(after)
		if got := fmt.Sprint(validation.WorkloadUpdate(after, c.before).ToAggregate()); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

func TestTheLabelsOfAQueuedJobStayOnceItRuns(t *testing.T) {
	job := func(labels map[string]string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{Name: "train", Labels: labels}
	}
	in := func(queue string) *metav1.ObjectMeta { return job(map[string]string{v1beta2.QueueNameLabel: queue}) }
	for name, c := range map[string]struct {
		before, after                       *metav1.ObjectMeta
		wasSuspended, isSuspended, mustName bool
		problems                            int
	}{
		"another queue while it waits":     {in("a"), in("b"), true, true, false, 0},
		"another queue while it runs":      {in("a"), in("b"), false, false, false, 1},
		"another queue as it starts":       {in("a"), in("b"), true, false, false, 1},
		"no queue while it waits":          {in("a"), in(""), true, true, false, 0},
		"no queue where there is one":      {in("a"), in(""), true, true, true, 1},
		"another time limit as it stops":   {job(map[string]string{v1beta2.MaxExecTimeSecondsLabel: "1"}), job(map[string]string{v1beta2.MaxExecTimeSecondsLabel: "2"}), false, true, false, 1},
		"no priority any more":             {job(map[string]string{v1beta2.PriorityClassLabel: "high"}), job(nil), true, true, false, 1},
		"a bad name that was there before": {in("A"), in("A"), true, true, false, 0},
		"a bad name":                       {in("a"), in("A"), true, true, false, 1},
	} {
		if problems := validation.QueuedUpdate(c.after, c.before, c.wasSuspended, c.isSuspended, c.mustName); len(problems) != c.problems {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestAPodNamesItsGroupAndCountsItOrNeither(t *testing.T) {
	pod := func(group, count, built string) *metav1.ObjectMeta {
		o := &metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}
		for key, value := range map[string]string{v1beta2.PodGroupNameLabel: group, v1beta2.PrebuiltWorkloadLabel: built} {
			if value != "" {
				o.Labels[key] = value
			}
		}
		if count != "" {
			o.Annotations[v1beta2.PodGroupTotalCountAnnotation] = count
		}
		return o
	}
	for name, c := range map[string]struct {
		pod  *metav1.ObjectMeta
		want string
	}{
		"neither":                  {pod("", "", ""), ""},
		"both":                     {pod("g", "2", ""), ""},
		"its workload of one name": {pod("g", "2", "g"), ""},
		"only the group":           {pod("g", "", ""), "metadata.annotations[" + v1beta2.PodGroupTotalCountAnnotation + "]"},
		"only the count":           {pod("", "2", ""), "metadata.labels[" + v1beta2.PodGroupNameLabel + "]"},
		"no pods":                  {pod("g", "0", ""), "metadata.annotations[" + v1beta2.PodGroupTotalCountAnnotation + "]"},
		"another workload":         {pod("g", "2", "w"), "metadata.labels[" + v1beta2.PrebuiltWorkloadLabel + "]"},
	} {
		got := ""
		for _, problem := range validation.GroupedPod(c.pod) {
			got += problem.Field
		}
		if got != c.want {
			t.Errorf("%s: the problem is of %q, want %q", name, got, c.want)
		}
	}
}
