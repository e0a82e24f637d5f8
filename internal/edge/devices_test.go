package edge

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/apitest"
)

const attached, broken = "gpus.example.com/Attached", "gpus.example.com/Broken"

// wantsAttached is a claim of a device that has to be attached to its node first.
func wantsAttached(claim *resourcev1.ResourceClaim) supplies.DeviceReservation {
	d := wantsDevice(claim)
	d.Allocation.Devices.Results[0].BindingConditions = []string{attached}
	d.Allocation.Devices.Results[0].BindingFailureConditions = []string{broken}
	return d
}

// allocated waits until a claim has devices, and returns it.
func (n *needy) allocated(name string) *resourcev1.ResourceClaim {
	n.Helper()
	var claim *resourcev1.ResourceClaim
	eventually(n.T, func(ctx context.Context) (problem string) {
		var err error
		if claim, err = n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil || claim.Status.Allocation == nil {
			return fmt.Sprintf("the claim has no devices: %v", err)
		}
		return ""
	})
	return claim
}

// reports plays the driver of a claim's device: it says that a condition is met.
func (n *needy) reports(name, condition string) {
	n.Helper()
	claim := n.allocated(name)
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "gpus.example.com", Pool: "node", Device: "gpu-0",
		Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Said", Message: "by the driver",
			LastTransitionTime: metav1.Now()}}}}
	if _, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).UpdateStatus(apitest.Context(n.T), claim, metav1.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
}

// isFree makes sure that a claim has no devices.
func (n *needy) isFree(name string) {
	n.Helper()
	claim, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(n.T), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	if claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0 || len(claim.Status.Devices) > 0 {
		n.Errorf("the claim says %+v", claim.Status)
	}
}

func TestDevicesThatMustBeAttached(t *testing.T) {
	// Who binds has the documented permissions, and no other.
	t.Run("the pod is bound once they are ready", func(t *testing.T) {
		n := newNeedy(t)
		_, c := adminClients(t)
		clusterRules, rules := documentedRules(t)
		clients, err := apiserver.Connect(confined(t, c, n.admin.Core, "attacher", clusterRules, rules), 2000, 2000)
		if err != nil {
			t.Fatal(err)
		}
		results, _ := n.hand(clients, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wantsAttached(n.devices("device"))}})
		if claim := n.allocated("device"); claim.Status.Allocation.AllocationTimestamp == nil {
			t.Error("nobody can tell since when the device is waited for")
		}
		if node := nodeOf(t, n.admin, n.pod); node != "" {
			t.Fatalf("the pod was bound to %s before its device was ready", node)
		}
		n.reports("device", attached)
		expectResult(t, results, binder.Bound)
	})
	t.Run("they are taken back if they do not get ready", func(t *testing.T) {
		t.Run("since they fail", func(t *testing.T) {
			n := newNeedy(t)
			results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wantsAttached(n.devices("device"))}})
			n.reports("device", broken)
			n.refused(results, reasons, fmt.Sprintf("device gpus.example.com/node/gpu-0 of ResourceClaim %s/device has failed: %s, Said: by the driver", n.namespace, broken))
			n.isFree("device")
		})
		t.Run("since they take too long", func(t *testing.T) {
			n := newNeedy(t)
			results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: time.Second, Devices: []supplies.DeviceReservation{wantsAttached(n.devices("device"))}})
			n.refused(results, reasons, fmt.Sprintf("the devices of ResourceClaim %s/device were not ready within 1s", n.namespace))
			n.isFree("device")
		})
		t.Run("though nobody was given them by this scheduler", func(t *testing.T) {
			n := newNeedy(t)
			wanted := wantsAttached(n.devices("device"))
			claim := n.devices("other")
			claim.Finalizers = []string{resourcev1.Finalizer}
			claims := n.admin.Core.ResourceV1().ResourceClaims(n.namespace)
			claim, err := claims.Update(apitest.Context(t), claim, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			claim.Status.Allocation = wanted.Allocation.DeepCopy()
			if claim, err = claims.UpdateStatus(apitest.Context(t), claim, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			n.reports("other", broken)
			results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wantsAttached(claim)}})
			n.refused(results, reasons, "has failed")
			n.isFree("other")
		})
	})
	t.Run("failed ones stay, and no other pod gets them", func(t *testing.T) {
		n := newNeedy(t)
		claim := n.devices("device")
		wanted := wantsAttached(claim)
		results, _ := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wanted}})
		n.reports("device", attached)
		expectResult(t, results, binder.Bound)
		n.reports("device", broken)
		n.pod = createPod(t, n.admin, n.namespace, "second")
		results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wanted}})
		n.refused(results, reasons, "has failed")
		if now := n.allocated("device"); len(now.Status.ReservedFor) != 1 || now.Status.ReservedFor[0].Name != "pod" {
			t.Errorf("the claim is for %v, want the pod that runs with it", now.Status.ReservedFor)
		}
	})
	t.Run("an outbox that is closed does not wait for them", func(t *testing.T) {
		n := newNeedy(t)
		o, results, _ := outboxThatSays(t, n.admin)
		d := bindOf(n.pod, "node")
		d.Binds[0].Reservation = &supplies.Reservation{Patience: time.Hour, DevicePatience: time.Hour, Devices: []supplies.DeviceReservation{wantsAttached(n.devices("device"))}}
		o.Do(d)
		n.allocated("device")
		if err := o.Drain(apitest.Context(t)); err != nil {
			t.Fatal(err)
		}
		expectResult(t, results, binder.Unsent)
		if claim := n.allocated("device"); !isReserved(claim, n.pod) {
			t.Error("what the next leader is to wait for was taken back")
		}
	})
}

// asks makes a pod that requests a resource that a class of devices stands for.
func (n *needy) asks() *needy {
	n.Helper()
	deletePod(n.T, n.admin, n.pod)
	n.pod = createPod(n.T, n.admin, n.namespace, "pod", corev1.ResourceList{"example.com/gpu": resource.MustParse("1")})
	return n
}

// wantsMade is a claim that is to be made for the pod, of a resource that its container requests.
func (n *needy) wantsMade() supplies.DeviceReservation {
	made := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: "pod-extended-resources-1",
		Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}, Finalizers: []string{resourcev1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: n.pod.Name, UID: n.pod.UID, Controller: ptr.To(true)}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}}
	d := wantsDevice(made)
	d.UID, d.Made = "anything", made
	d.Requests = []corev1.ContainerExtendedResourceRequest{{ContainerName: n.pod.Spec.Containers[0].Name, ResourceName: "example.com/gpu", RequestName: "gpu"}}
	return d
}

func TestAClaimThatIsMadeForAPod(t *testing.T) {
	// Who binds has the documented permissions, and no other.
	t.Run("is written, and then named in the status of the pod", func(t *testing.T) {
		n := newNeedy(t).asks()
		_, c := adminClients(t)
		clusterRules, rules := documentedRules(t)
		clients, err := apiserver.Connect(confined(t, c, n.admin.Core, "maker", clusterRules, rules), 2000, 2000)
		if err != nil {
			t.Fatal(err)
		}
		wanted := n.wantsMade()
		results, reasons := n.hand(clients, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wanted}})
		if result := <-results; result != binder.Bound {
			t.Fatalf("the pod is %s: %s", result, <-reasons)
		}
		claim := n.allocated(wanted.Claim.Name)
		if !isReserved(claim, n.pod) || !metav1.IsControlledBy(claim, n.pod) || claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
			t.Errorf("the claim is %+v", claim)
		}
		pod, err := n.admin.Core.CoreV1().Pods(n.namespace).Get(apitest.Context(t), n.pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim.Name, RequestMappings: wanted.Requests}
		if diff := cmp.Diff(want, pod.Status.ExtendedResourceClaimStatus); diff != "" {
			t.Errorf("the status of the pod differs (-want +got):\n%s", diff)
		}
	})
	t.Run("is deleted if the pod is not bound", func(t *testing.T) {
		n := newNeedy(t).asks()
		made, gone := n.wantsMade(), wantsDevice(n.devices("gone"))
		gone.UID = "another"
		results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{made, gone}})
		n.refused(results, reasons, "ResourceClaim "+n.namespace+"/gone is gone")
		if _, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(t), made.Claim.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the claim is left: %v", err)
		}
	})
	t.Run("is made again for other devices", func(t *testing.T) {
		n := newNeedy(t).asks()
		first := n.wantsMade()
		first.Made.Spec.Devices.Requests[0].Exactly.Count = 2
		claims := n.admin.Core.ResourceV1().ResourceClaims(n.namespace)
		before, err := claims.Create(apitest.Context(t), first.Made, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before.Status.Allocation = first.Allocation
		if _, err := claims.UpdateStatus(apitest.Context(t), before, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		wanted := n.wantsMade()
		wanted.Allocation.Devices.Results[0].Device = "gpu-1"
		results, _ := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{wanted}})
		expectResult(t, results, binder.Bound)
		if claim := n.allocated(wanted.Claim.Name); claim.UID == before.UID || claim.Status.Allocation.Devices.Results[0].Device != "gpu-1" {
			t.Errorf("the claim is still %+v", claim)
		}
	})
	t.Run("leaves one of its name alone that is not of the pod", func(t *testing.T) {
		n := newNeedy(t).asks()
		foreign := n.devices("pod-extended-resources-1")
		results, reasons := n.hand(n.admin, supplies.Reservation{DevicePatience: apitest.Patience, Devices: []supplies.DeviceReservation{n.wantsMade()}})
		n.refused(results, reasons, "is not that of the pod")
		if _, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(t), foreign.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}
