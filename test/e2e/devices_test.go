package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const attached, broken = "gpus.hekla.sh/Attached", "gpus.hekla.sh/Broken"

// attach plays a driver that attaches each device that is given out, as long as the test runs. The first that it is to
// attach breaks; it returns for which claim that was.
func attach(t *testing.T) func() types.UID {
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	var first types.UID
	var mutex sync.Mutex
	t.Cleanup(func() { cancel(); working.Wait() })
	attachOne := func(claim *resourcev1.ResourceClaim) error {
		if claim.Status.Allocation == nil || len(claim.Status.Devices) > 0 {
			return nil
		}
		condition := metav1.Condition{Type: attached, Status: metav1.ConditionTrue, Reason: "Done", LastTransitionTime: metav1.Now()}
		mutex.Lock()
		defer mutex.Unlock()
		if first == "" {
			first, condition.Type = claim.UID, broken
		}
		result := claim.Status.Allocation.Devices.Results[0]
		claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: result.Driver, Pool: result.Pool, Device: result.Device,
			Conditions: []metav1.Condition{condition}}}
		_, err := core.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) && condition.Type == broken {
			first = ""
		}
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	working.Go(func() {
		for ctx.Err() == nil {
			claims, err := core.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err == nil {
				for i := range claims.Items {
					err = errors.Join(err, attachOne(&claims.Items[i]))
				}
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(poll)
		}
	})
	return func() types.UID {
		mutex.Lock()
		defer mutex.Unlock()
		return first
	}
}

// gpuClass makes the class of all devices of our driver, which may stand for a resource.
func gpuClass(t *testing.T, resource string) {
	t.Helper()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: `device.driver == "gpus.hekla.sh"`}}}}}
	if resource != "" {
		class.Spec.ExtendedResourceName = &resource
	}
	having(t, core.ResourceV1().DeviceClasses(), class)
}

// withDevice gives each pod a claim of one device.
func withDevice(t *testing.T) func(*corev1.PodSpec) {
	t.Helper()
	having(t, core.ResourceV1().ResourceClaimTemplates(metav1.NamespaceDefault), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "one-gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}})
	return func(spec *corev1.PodSpec) {
		template := "one-gpu"
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
		spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
}

func TestAGangStartsWhenItsDevicesAreAttachedAndPassesTaintedOnesBy(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	names := nodeNames(t)
	gpuClass(t, "")
	tainted := slice(names[0], 2)
	having(t, core.ResourceV1().ResourceSlices(), tainted)
	having(t, core.ResourceV1beta2().DeviceTaintRules(), &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "maintenance"},
		Spec: resourcev1beta2.DeviceTaintRuleSpec{DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Pool: &names[0]},
			Taint: resourcev1beta2.DeviceTaint{Key: "maintenance", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}}})
	create(t, gangJob("attached", 2, "1", withDevice(t)))
	awaitReason(t, "attached", "DeviceUnavailable", "cannot allocate all claims")
	fabric := slice(names[1], 2)
	for i := range fabric.Spec.Devices {
		fabric.Spec.Devices[i].BindingConditions, fabric.Spec.Devices[i].BindingFailureConditions = []string{attached}, []string{broken}
	}
	first := attach(t)
	having(t, core.ResourceV1().ResourceSlices(), fabric)
	awaitRunning(t, "attached", 2)
	if nodes := nodesOf(t, "attached"); nodes[names[1]] != 2 {
		t.Errorf("the pods are on %v", nodes)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		events, err := core.EventsV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "FailedBinding" && strings.Contains(e.Note, "has failed: "+broken) {
				return nil
			}
		}
		return fmt.Errorf("nobody says that the device of claim %s failed", first())
	})
	nothingWasForbidden(t)
}

// slice is so many devices of a node.
func slice(node string, devices int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpus.hekla.sh", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return s
}

func TestAGangGetsTheDevicesOfTwoNodes(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	names := nodeNames(t)
	gpuClass(t, "")
	having(t, core.ResourceV1().ResourceSlices(), slice(names[0], 1))
	create(t, gangJob("devices", 3, "1", withDevice(t)))
	awaitReason(t, "devices", "DeviceUnavailable", "1 of the 3 pods", "cannot allocate all claims", "has no devices and no node has them free")
	allocated := func(ctx context.Context) (pools map[string]int, err error) {
		claims, err := core.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		pools = map[string]int{}
		for i := range claims.Items {
			if a := claims.Items[i].Status.Allocation; a != nil {
				for _, r := range a.Devices.Results {
					pools[r.Pool]++
				}
			}
		}
		return pools, nil
	}
	if pools, err := allocated(t.Context()); err != nil || len(pools) > 0 {
		t.Errorf("devices of %v are given out, and the gang cannot start: %v", pools, err)
	}
	having(t, core.ResourceV1().ResourceSlices(), slice(names[1], 2))
	awaitRunning(t, "devices", 3)
	if nodes := nodesOf(t, "devices"); nodes[names[0]] != 1 || nodes[names[1]] != 2 {
		t.Errorf("the pods are on %v", nodes)
	}
	if pools, err := allocated(t.Context()); err != nil || pools[names[0]] != 1 || pools[names[1]] != 2 {
		t.Errorf("the devices given out are of %v: %v", pools, err)
	}
	nothingWasForbidden(t)
}

func TestAGangThatRequestsAResourceGetsTheDevicesThatAClassStandsFor(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	names := nodeNames(t)
	gpuClass(t, "hekla.sh/gpu")
	having(t, core.ResourceV1().ResourceSlices(), slice(names[0], 1))
	create(t, gangJob("resources", 3, "1", func(spec *corev1.PodSpec) {
		for _, list := range []*corev1.ResourceList{&spec.Containers[0].Resources.Requests, &spec.Containers[0].Resources.Limits} {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)["hekla.sh/gpu"] = resource.MustParse("1")
		}
	}))
	awaitReason(t, "resources", "DeviceUnavailable", "1 of the 3 pods", "cannot allocate all claims",
		"no node has the devices of DeviceClass gpu free that hekla.sh/gpu stands for")
	claims := core.ResourceV1().ResourceClaims(metav1.NamespaceDefault)
	if made, err := claims.List(t.Context(), metav1.ListOptions{}); err != nil || len(made.Items) > 0 {
		t.Errorf("%d claims are made, and the gang cannot start: %v", len(made.Items), err)
	}
	having(t, core.ResourceV1().ResourceSlices(), slice(names[1], 2))
	awaitRunning(t, "resources", 3)
	pods, err := podsOf(t.Context(), "resources")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for i := range pods {
		status := pods[i].Status.ExtendedResourceClaimStatus
		if status == nil || len(status.RequestMappings) != 1 || status.RequestMappings[0].ResourceName != "hekla.sh/gpu" {
			t.Fatalf("pod %s does not say which claim was made for it: %+v", pods[i].Name, status)
		}
		claim, err := claims.Get(t.Context(), status.ResourceClaimName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		result := claim.Status.Allocation.Devices.Results[0]
		if result.Pool != pods[i].Spec.NodeName || held[result.Pool+result.Device] {
			t.Errorf("pod %s on %s has device %s/%s", pods[i].Name, pods[i].Spec.NodeName, result.Pool, result.Device)
		}
		held[result.Pool+result.Device] = true
	}
	nothingWasForbidden(t)
}
