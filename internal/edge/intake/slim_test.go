package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/resources"
)

// largePod has a bit of everything.
func largePod() *corev1.Pod {
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	always := corev1.ContainerRestartPolicyAlways
	container := corev1.Container{
		Name: "main", Image: "image", Command: []string{"run"}, Args: []string{"fast"},
		Env:           []corev1.EnvVar{{Name: "SECRET", Value: "1"}},
		Ports:         []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
		Resources:     corev1.ResourceRequirements{Requests: amount},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		RestartPolicy: &always,
	}
	status := corev1.ContainerStatus{Name: "main", ImageID: "sha", AllocatedResources: amount,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "scheduling.k8s.io/group-name": "g"},
			Labels:      map[string]string{"app": "a"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container}, Containers: []corev1.Container{container},
			NodeName: "node", SchedulerName: "volcano", ServiceAccountName: "default", Overhead: amount,
			Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{status},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
}

func TestWhatDecisionsReadOfAPodStays(t *testing.T) {
	before := largePod()
	after, err := slim(largePod())
	if err != nil {
		t.Fatal(err)
	}
	want := before.DeepCopy()
	want.ManagedFields = nil
	delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, containers := range [][]corev1.Container{want.Spec.InitContainers, want.Spec.Containers} {
		c := &containers[0]
		c.Command, c.Args, c.Env, c.VolumeMounts = nil, nil, nil, nil
	}
	want.Spec.ServiceAccountName, want.Spec.Volumes = "", want.Spec.Volumes[1:]
	want.Status.PodIP = ""
	want.Status.ContainerStatuses[0].ImageID, want.Status.ContainerStatuses[0].State = "", corev1.ContainerState{}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("slimmed (-want +got):\n%s", diff)
	}
	again, err := slim(after.(*corev1.Pod).DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, again); diff != "" {
		t.Errorf("slimmed twice (-once +twice):\n%s", diff)
	}
}

func TestANodeKeepsItsImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{
		Images: []corev1.ContainerImage{{Names: []string{"image"}}}, Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}
	if _, err := slim(node); err != nil {
		t.Fatal(err)
	}
	if len(node.Status.Images) != 1 || node.Status.Addresses != nil || node.Status.Capacity == nil {
		t.Errorf("left is %+v", node.Status)
	}
}

func TestAmountsOfMillionsOfDigitsCostNoMoreThanOthers(t *testing.T) {
	t.Run("in the requests of a pod", func(t *testing.T) {
		const costly = "1e2000000000" // to add one to it takes longer than the test may
		lists := func() corev1.ResourceRequirements {
			return corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(costly), corev1.ResourceCPU: resource.MustParse("1500m")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(costly)},
			}
		}
		whole := lists()
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Resources: lists()}}, Containers: []corev1.Container{{Resources: lists()}, {Resources: lists()}},
			Overhead: lists().Limits, Resources: &whole,
		}}
		slimmed, err := slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		requests := resourcehelper.PodRequests(slimmed.(*corev1.Pod), resourcehelper.PodResourcesOptions{SkipPodLevelResources: true})
		if cpu := requests[corev1.ResourceCPU]; cpu.MilliValue() != 3000 {
			t.Errorf("an amount within bounds was changed: %s", cpu.String())
		}
		if index := resources.NewIndex(); index.Vector(requests)[index.Dim(corev1.ResourceMemory)] != resources.MaxQuantity {
			t.Errorf("requested are %v", requests)
		}
		claim, err := slim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(costly)}}}})
		if err != nil {
			t.Fatal(err)
		}
		storage := claim.(*corev1.PersistentVolumeClaim).Spec.Resources.Requests[corev1.ResourceStorage]
		if storage.Cmp(resource.MustParse("1Ti")) <= 0 {
			t.Errorf("the claim requests %s", storage.String())
		}
	})
	t.Run("in a claim for devices", func(t *testing.T) {
		const costly = "1e2000000000" // to compare it with another takes longer than the test may
		asked := func() *resourcev1.CapacityRequirements {
			return &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
				"memory": resource.MustParse(costly), "small": resource.MustParse("10Gi")}}
		}
		claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Exactly: &resourcev1.ExactDeviceRequest{Capacity: asked()}}, {Exactly: &resourcev1.ExactDeviceRequest{}},
			{FirstAvailable: []resourcev1.DeviceSubRequest{{Capacity: asked()}, {}}}}}}}
		claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{ConsumedCapacity: asked().Requests}, {}}}}
		if _, err := slim(claim); err != nil {
			t.Fatal(err)
		}
		requests := claim.Spec.Devices.Requests
		for where, list := range map[string]map[resourcev1.QualifiedName]resource.Quantity{
			"exactly": requests[0].Exactly.Capacity.Requests, "firstAvailable": requests[2].FirstAvailable[0].Capacity.Requests,
			"consumedCapacity": claim.Status.Allocation.Devices.Results[0].ConsumedCapacity,
		} {
			large, small := list["memory"], list["small"]
			if large.Cmp(resource.MustParse("1Ti")) <= 0 || large.CmpInt64(resources.MaxQuantity) != 0 {
				t.Errorf("%s: asked for are %s", where, large.String())
			}
			if small.Cmp(resource.MustParse("10Gi")) != 0 {
				t.Errorf("%s: an amount within bounds was changed: %s", where, small.String())
			}
		}
	})
}
