package intake

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

func TestAPodIsKeptOnceHoweverOftenItIsSeen(t *testing.T) {
	s, known := newSlimmer(), map[string]*cluster.Pod{}
	s.cached = func(pod *corev1.Pod) *cluster.Pod { return known[pod.Name] }
	slimmed := func(pod *corev1.Pod) *cluster.Pod {
		o, err := s.slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.slim(o)
		if err != nil || again != o {
			t.Errorf("slimmed twice it is %v, %v", again, err)
		}
		return o.(*cluster.Pod)
	}
	first := slimmed(fixture.LivePod(1, 1))
	known[first.Name] = first
	second := slimmed(fixture.LiveOn(fixture.LivePod(1, 1), "node"))
	if first.Template != second.Template || second.NodeName != "node" || first.NodeName != "" {
		t.Errorf("two states of a pod share no template, or a node: %q, %q", first.NodeName, second.NodeName)
	}
}

func TestANodeKeepsItsImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{
		Images: []corev1.ContainerImage{{Names: []string{"image"}}}, Addresses: []corev1.NodeAddress{{Address: "10.0.0.1"}},
		Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}
	if _, err := newSlimmer().slim(node); err != nil {
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
		slimmed, err := newSlimmer().slim(pod)
		if err != nil {
			t.Fatal(err)
		}
		requests := resourcehelper.PodRequests(slimmed.(*cluster.Pod).Object(), resourcehelper.PodResourcesOptions{SkipPodLevelResources: true})
		if cpu := requests[corev1.ResourceCPU]; cpu.MilliValue() != 3000 {
			t.Errorf("an amount within bounds was changed: %s", cpu.String())
		}
		if index := resources.NewIndex(); index.Vector(requests)[index.Dim(corev1.ResourceMemory)] != resources.MaxQuantity {
			t.Errorf("requested are %v", requests)
		}
		claim, err := newSlimmer().slim(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
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
		if _, err := newSlimmer().slim(claim); err != nil {
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
