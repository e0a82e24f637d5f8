package admission

import (
	"context"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// workload is one of two podsets, with three pods each.
func workload(namespace string) *v1beta2.Workload {
	set := func(name string) v1beta2.PodSet {
		return v1beta2.PodSet{Name: name, Count: 3, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}}
	}
	return &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "w-"}, Spec: v1beta2.WorkloadSpec{
		QueueName: "q", PodSets: []v1beta2.PodSet{set("a"), set("b")}}}
}

// admitted is an admission of its podsets, with so much cpu each.
func admitted(cpu string) *v1beta2.Admission {
	assignment := func(name string) v1beta2.PodSetAssignment {
		return v1beta2.PodSetAssignment{Name: name, Count: ptr.To(int32(3)), Flavors: map[corev1.ResourceName]string{"cpu": "f"},
			ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
	}
	return &v1beta2.Admission{ClusterQueue: "cq", PodSetAssignments: []v1beta2.PodSetAssignment{assignment("a"), assignment("b")}}
}

func reserve(w *v1beta2.Workload, cpu string) {
	w.Status.Admission = admitted(cpu)
	conditions.Reserve(w, "cq", time.Now())
}

// refusedBy says with which kind of error a write was refused.
func refusedBy(err error) string {
	switch {
	case err == nil:
		return ""
	case apierrors.IsForbidden(err):
		return "forbidden"
	case apierrors.IsInvalid(err):
		return "invalid"
	}
	return err.Error()
}

func ready(updates ...v1beta2.PodSetUpdate) v1beta2.AdmissionCheckState {
	return v1beta2.AdmissionCheckState{Name: "check", State: v1beta2.CheckReady, LastTransitionTime: metav1.Now(), PodSetUpdates: updates}
}

func TestTheStatusOfAWorkloadFitsToItsSpec(t *testing.T) {
	namespace := namespaceFor(t, "status", nil)
	nothing := func(*v1beta2.Workload) {}
	reserved := func(w *v1beta2.Workload) { reserve(w, "3") }
	reclaim := func(a, b int32) func(*v1beta2.Workload) {
		return func(w *v1beta2.Workload) {
			reserve(w, "3")
			w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "a", Count: a}, {Name: "b", Count: b}}
		}
	}
	checked := func(updates ...v1beta2.PodSetUpdate) func(*v1beta2.Workload) {
		return func(w *v1beta2.Workload) { w.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{ready(updates...)} }
	}
	for name, test := range map[string]struct {
		before, change func(*v1beta2.Workload)
		want           string
	}{
		"an admission":                   {nothing, reserved, ""},
		"one of parts of a cpu":          {nothing, func(w *v1beta2.Workload) { reserve(w, "300m") }, ""},
		"one that the pods do not share": {nothing, func(w *v1beta2.Workload) { reserve(w, "1") }, "forbidden"},
		"another cluster queue":          {reserved, func(w *v1beta2.Workload) { w.Status.Admission.ClusterQueue = "other" }, "forbidden"},
		"another flavor":                 {reserved, func(w *v1beta2.Workload) { w.Status.Admission.PodSetAssignments[0].Flavors["cpu"] = "g" }, "forbidden"},
		"more usage":                     {reserved, func(w *v1beta2.Workload) { w.Status.Admission = admitted("6") }, "forbidden"},
		"the same usage in other words":  {reserved, func(w *v1beta2.Workload) { w.Status.Admission = admitted("3000m") }, ""},
		"no admission any more":          {reserved, func(w *v1beta2.Workload) { conditions.Release(w, time.Now()) }, ""},
		"quota without an admission":     {nothing, func(w *v1beta2.Workload) { conditions.Reserve(w, "cq", time.Now()) }, "forbidden"},
		"a podset too many": {nothing, func(w *v1beta2.Workload) {
			reserve(w, "3")
			w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, v1beta2.PodSetAssignment{Name: "c"})
		}, "invalid"},
		"a podset of another name":           {nothing, func(w *v1beta2.Workload) { reserve(w, "3"); w.Status.Admission.PodSetAssignments[1].Name = "c" }, "forbidden"},
		"a podset that has no name":          {nothing, func(w *v1beta2.Workload) { reserve(w, "3"); w.Status.Admission.PodSetAssignments[1].Name = "@" }, "invalid"},
		"a cluster queue that has no name":   {nothing, func(w *v1beta2.Workload) { reserve(w, "3"); w.Status.Admission.ClusterQueue = "@" }, "invalid"},
		"reclaimable pods":                   {reclaim(1, 1), reclaim(1, 2), ""},
		"fewer reclaimable pods":             {reclaim(1, 1), reclaim(1, 0), "forbidden"},
		"no reclaimable pods":                {reclaim(1, 1), func(w *v1beta2.Workload) { w.Status.ReclaimablePods = nil }, "forbidden"},
		"none when it holds nothing":         {reclaim(1, 1), func(w *v1beta2.Workload) { conditions.Release(w, time.Now()); w.Status.ReclaimablePods = nil }, ""},
		"more reclaimable pods than there":   {nothing, reclaim(4, 0), "forbidden"},
		"reclaimable pods of another podset": {nothing, func(w *v1beta2.Workload) { w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "c", Count: 1}} }, "forbidden"},
		"updates of a check":                 {nothing, checked(v1beta2.PodSetUpdate{Name: "a", Labels: map[string]string{"team.io/x": "y"}, Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}}), ""},
		"updates of another podset":          {nothing, checked(v1beta2.PodSetUpdate{Name: "c"}), "forbidden"},
		"a label that is none":               {nothing, checked(v1beta2.PodSetUpdate{Name: "a", Labels: map[string]string{"@abc": "x"}}), "forbidden"},
		"a value that is none":               {nothing, checked(v1beta2.PodSetUpdate{Name: "a", Labels: map[string]string{"abc": "@x"}}), "forbidden"},
		"a selector that is none":            {nothing, checked(v1beta2.PodSetUpdate{Name: "a", NodeSelector: map[string]string{"@abc": "x"}}), "forbidden"},
		"a toleration of no taint":           {nothing, checked(v1beta2.PodSetUpdate{Name: "a", Tolerations: []corev1.Toleration{{Key: "@", Operator: corev1.TolerationOpExists}}}), "forbidden"},
		"a toleration that cannot be":        {nothing, checked(v1beta2.PodSetUpdate{Name: "a", Tolerations: []corev1.Toleration{{Value: "x"}}}), "invalid"},
		"other updates of a ready check":     {checked(v1beta2.PodSetUpdate{Name: "a"}), checked(v1beta2.PodSetUpdate{Name: "b"}), "forbidden"},
		"a ready check that says more":       {checked(v1beta2.PodSetUpdate{Name: "a"}), func(w *v1beta2.Workload) { w.Status.AdmissionChecks[0].Message = "new" }, ""},
		"a cluster that was not nominated":   {nothing, func(w *v1beta2.Workload) { w.Status.ClusterName = ptr.To("x") }, "forbidden"},
		"nodes in columns": {nothing, func(w *v1beta2.Workload) {
			reserve(w, "3")
			w.Status.Admission.PodSetAssignments[0].TopologyAssignment = &v1beta2.TopologyAssignment{Levels: []string{"h"}, Slices: []v1beta2.TopologyAssignmentSlice{{DomainCount: 2,
				ValuesPerLevel: []v1beta2.TopologyAssignmentSliceLevelValues{{Individual: &v1beta2.TopologyAssignmentSliceLevelIndividualValues{Roots: []string{"1", "2"}}}},
				PodCounts:      v1beta2.TopologyAssignmentSlicePodCounts{Individual: []int32{1, 2}}}}}
		}, ""},
		"nodes in columns of different length": {nothing, func(w *v1beta2.Workload) {
			reserve(w, "3")
			w.Status.Admission.PodSetAssignments[0].TopologyAssignment = &v1beta2.TopologyAssignment{Levels: []string{"h"}, Slices: []v1beta2.TopologyAssignmentSlice{{DomainCount: 2,
				ValuesPerLevel: []v1beta2.TopologyAssignmentSliceLevelValues{{Individual: &v1beta2.TopologyAssignmentSliceLevelIndividualValues{Roots: []string{"1"}}}},
				PodCounts:      v1beta2.TopologyAssignmentSlicePodCounts{Universal: ptr.To(int32(1))}}}}
		}, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, w := apitest.Context(t), workload(namespace)
			if err := api.Create(ctx, w); err != nil {
				t.Fatal(err)
			}
			// One Update of the status after the other, as typed clients write.
			test.before(w)
			if err := api.Status().Update(ctx, w); err != nil {
				t.Fatal(err)
			}
			test.change(w)
			if err := api.Status().Update(ctx, w); refusedBy(err) != test.want {
				t.Errorf("it is refused as %q: %v", refusedBy(err), err)
			}
		})
	}
}

func TestTheSpecOfAWorkloadIsCheckedAsKueueDoes(t *testing.T) {
	namespace := namespaceFor(t, "spec", nil)
	container := func(w *v1beta2.Workload) *corev1.Container { return &w.Spec.PodSets[0].Template.Spec.Containers[0] }
	for name, test := range map[string]struct {
		edit func(*v1beta2.Workload)
		want string
	}{
		"as it is":                  {func(*v1beta2.Workload) {}, ""},
		"of nothing":                {func(w *v1beta2.Workload) { w.Spec.PodSets = nil }, "invalid"},
		"with a name in capitals":   {func(w *v1beta2.Workload) { w.Spec.PodSets[0].Name = "A" }, "invalid"},
		"of a queue without a name": {func(w *v1beta2.Workload) { w.Spec.QueueName = "@" }, "invalid"},
		"that requests pods":        {func(w *v1beta2.Workload) { container(w).Resources.Requests["pods"] = resource.MustParse("1") }, "forbidden"},
		"that requests below zero":  {func(w *v1beta2.Workload) { container(w).Resources.Requests["cpu"] = resource.MustParse("-1") }, "forbidden"},
		"with two that shrink": {func(w *v1beta2.Workload) {
			w.Spec.PodSets[0].MinCount, w.Spec.PodSets[1].MinCount = ptr.To(int32(1)), ptr.To(int32(1))
		}, "forbidden"},
		"with one variable twice": {func(w *v1beta2.Workload) {
			container(w).Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}
			container(w).Ports = []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 80}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(namespace)
			test.edit(w)
			if err := api.Create(apitest.Context(t), w); refusedBy(err) != test.want {
				t.Errorf("it is refused as %q: %v", refusedBy(err), err)
			}
		})
	}
	w := workload(namespace)
	ctx := apitest.Context(t)
	if err := api.Create(ctx, w); err != nil {
		t.Fatal(err)
	}
	reserve(w, "3")
	if err := api.Status().Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	w.Spec.PodSets[0].Count = 2
	if err := api.Update(ctx, w); refusedBy(err) != "forbidden" {
		t.Errorf("podsets that hold quota can be changed: %v", err)
	}
}

// A client of one version drops the fields of the other when it writes an object back.
func TestClientsOfBothVersionsWriteAWorkloadThatHoldsQuota(t *testing.T) {
	namespace := namespaceFor(t, "versions", nil)
	ctx, w := apitest.Context(t), workload(namespace)
	w.Spec.Priority = ptr.To(int32(7))
	w.Spec.PriorityClassRef = &v1beta2.PriorityClassRef{Group: v1beta2.WorkloadPriorityClassGroup, Kind: v1beta2.WorkloadPriorityClassKind, Name: "high"}
	w.Spec.PriorityClassName, w.Spec.PriorityClassSource = "high", v1beta2.WorkloadPriorityClassSource
	if err := api.Create(ctx, w); err != nil {
		t.Fatal(err)
	}
	reserve(w, "3")
	if err := api.Status().Update(ctx, w); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, version string
		edit          func(spec map[string]any)
		want          string
	}{
		{"the older one", "v1beta1", func(spec map[string]any) { delete(spec, "priorityClassRef"); spec["active"] = false }, ""},
		{"the newer one", "v1beta2", func(spec map[string]any) {
			spec["priorityClassRef"] = map[string]any{"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}
			delete(spec, "priorityClassName")
			delete(spec, "priorityClassSource")
		}, ""},
		{"another class", "v1beta2", func(spec map[string]any) { spec["priorityClassRef"].(map[string]any)["name"] = "low" }, ""},
		{"another kind", "v1beta2", func(spec map[string]any) {
			spec["priorityClassRef"] = map[string]any{"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "low"}
		}, "invalid"},
		{"no class", "v1beta2", func(spec map[string]any) { delete(spec, "priorityClassRef") }, "invalid"},
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: v1beta2.GroupName, Version: test.version, Kind: "Workload"})
		if err := api.Get(ctx, client.ObjectKeyFromObject(w), object); err != nil {
			t.Fatal(err)
		}
		test.edit(object.Object["spec"].(map[string]any))
		if err := api.Update(ctx, object); refusedBy(err) != test.want {
			t.Errorf("%s: it is refused as %q: %v", test.name, refusedBy(err), err)
		}
	}
}

func TestTheLabelsOfQueuedJobsChangeAsInKueue(t *testing.T) {
	namespace := namespaceFor(t, "labels", nil)
	for name, test := range map[string]struct {
		before, after map[string]string
		runs          bool
		want          string
	}{
		"a class given to one that waits":  {nil, map[string]string{v1beta2.PriorityClassLabel: "high"}, false, ""},
		"a class given to one that runs":   {nil, map[string]string{v1beta2.PriorityClassLabel: "high"}, true, "forbidden"},
		"another class of one that runs":   {map[string]string{v1beta2.PriorityClassLabel: "low"}, map[string]string{v1beta2.PriorityClassLabel: "high"}, true, ""},
		"a class taken away":               {map[string]string{v1beta2.PriorityClassLabel: "low"}, map[string]string{v1beta2.PriorityClassLabel: ""}, false, "forbidden"},
		"another queue of one that waits":  {nil, map[string]string{v1beta2.QueueNameLabel: "other"}, false, ""},
		"another queue of one that runs":   {nil, map[string]string{v1beta2.QueueNameLabel: "other"}, true, "forbidden"},
		"a time limit of one that runs":    {nil, map[string]string{v1beta2.MaxExecTimeSecondsLabel: "9"}, true, "forbidden"},
		"a time limit that is no number":   {nil, map[string]string{v1beta2.MaxExecTimeSecondsLabel: "soon"}, false, "forbidden"},
		"another label of one that runs":   {nil, map[string]string{"team": "a"}, true, ""},
		"another Workload while it runs":   {nil, map[string]string{v1beta2.PrebuiltWorkloadLabel: "w"}, true, "forbidden"},
		"another Workload while it waits":  {nil, map[string]string{v1beta2.PrebuiltWorkloadLabel: "w"}, false, ""},
		"a Workload without a proper name": {nil, map[string]string{v1beta2.PrebuiltWorkloadLabel: "w_w"}, false, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := apitest.Context(t)
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "j-", Labels: map[string]string{v1beta2.QueueNameLabel: "q"}}}
			job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
			for key, value := range test.before {
				job.Labels[key] = value
			}
			if err := api.Create(ctx, job); err != nil {
				t.Fatal(err)
			}
			apitest.Eventually(t, func(ctx context.Context) error {
				if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				job.Spec.Suspend = ptr.To(!test.runs)
				return api.Update(ctx, job)
			})
			var err error
			apitest.Eventually(t, func(ctx context.Context) error {
				if err := api.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				for key, value := range test.after {
					if job.Labels[key] = value; value == "" {
						delete(job.Labels, key)
					}
				}
				if err = api.Update(ctx, job); apierrors.IsConflict(err) {
					return err
				}
				return nil
			})
			if refusedBy(err) != test.want {
				t.Errorf("it is refused as %q: %v", refusedBy(err), err)
			}
		})
	}
}

func TestAWeightOfTwoBillionthsIsAccepted(t *testing.T) {
	for weight, want := range map[string]string{"2n": "", "1n": "forbidden", "0": "", "-1": "forbidden"} {
		queue := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "weight"}, Spec: v1beta2.ClusterQueueSpec{FairSharing: &v1beta2.FairSharing{Weight: ptr.To(resource.MustParse(weight))}}}
		if err := api.Create(apitest.Context(t), queue, client.DryRunAll); refusedBy(err) != want {
			t.Errorf("a weight of %s is refused as %q: %v", weight, refusedBy(err), err)
		}
	}
}
