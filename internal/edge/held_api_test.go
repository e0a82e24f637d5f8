package edge

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/apitest"
)

// leave writes what a binding that did not come to its end leaves: devices, reserved for some pods.
func leave(t *testing.T, client kubernetes.Interface, claim *resourcev1.ResourceClaim, pods ...*corev1.Pod) *resourcev1.ResourceClaim {
	t.Helper()
	claims := client.ResourceV1().ResourceClaims(claim.Namespace)
	claim.Finalizers = []string{resourcev1.Finalizer}
	claim, err := claims.Update(apitest.Context(t), claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = wantsDevice(claim).Allocation
	for _, pod := range pods {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	}
	if claim, err = claims.UpdateStatus(apitest.Context(t), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestDevicesAreTakenBackFromPodsWithoutANode(t *testing.T) {
	const often = 100 * time.Millisecond
	n := newNeedy(t)
	core := n.admin.Core
	bind := func(pod *corev1.Pod) {
		t.Helper()
		err := core.CoreV1().Pods(n.namespace).Bind(apitest.Context(t), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
			Target: corev1.ObjectReference{Kind: "Node", Name: "elsewhere"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	running := createPod(t, n.admin, n.namespace, "running")
	bind(running)
	others, err := core.CoreV1().Pods(n.namespace).Create(apitest.Context(t), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "others"},
		Spec: corev1.PodSpec{SchedulerName: "another", Containers: running.Spec.Containers}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := leave(t, core, n.devices("left"), n.pod)
	owned := n.devices("owned")
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(n.pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	owned = leave(t, core, owned)
	shared := leave(t, core, n.devices("shared"), n.pod, running)
	used := leave(t, core, n.devices("used"), running)
	foreign := leave(t, core, n.devices("foreign"), others)
	unreserved := leave(t, core, n.devices("unreserved"))

	// The binding of this one is under way: its device is not ready.
	bound := createPod(t, n.admin, n.namespace, "bound")
	o, _ := startOutbox(t, n.admin)
	d := bindOf(bound, "node")
	d.Binds[0].Reservation = &supplies.Reservation{Patience: time.Hour, DevicePatience: time.Hour,
		Devices: []supplies.DeviceReservation{wantsAttached(n.devices("attaching"))}}
	o.Do(d)
	attaching := n.allocated("attaching")

	inbox := startInbox(t, n.admin, intake.Options{})
	// This one has been bound, and the caches do not know it yet.
	late := createPod(t, n.admin, n.namespace, "late")
	kept := leave(t, core, n.devices("kept"), late)
	var held []intake.Held
	eventually(t, func(context.Context) string {
		held = slices.DeleteFunc(inbox.HeldDevices([]string{"volcano"}), func(h intake.Held) bool { return h.Claim.Namespace != n.namespace })
		if len(held) != 5 {
			return fmt.Sprintf("%d claims are held, want 5", len(held))
		}
		return ""
	})
	bind(late)
	go o.takeDevicesBack(t.Context(), often, func() []intake.Held { return held })

	is := func(was *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
		t.Helper()
		claim, err := core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(t), was.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return claim
	}
	eventually(t, func(context.Context) string {
		for _, claim := range []*resourcev1.ResourceClaim{left, owned} {
			if now := is(claim); now.Status.Allocation != nil || len(now.Status.ReservedFor) > 0 {
				return fmt.Sprintf("claim %s says %+v", claim.Name, now.Status)
			}
		}
		if now := is(shared); now.Status.Allocation == nil || len(now.Status.ReservedFor) != 1 || now.Status.ReservedFor[0].UID != running.UID {
			return fmt.Sprintf("the shared claim says %+v", now.Status)
		}
		return ""
	})
	time.Sleep(5 * often)
	for _, claim := range []*resourcev1.ResourceClaim{used, foreign, unreserved, attaching, kept} {
		if now := is(claim); now.ResourceVersion != claim.ResourceVersion {
			t.Errorf("claim %s was changed: %+v", claim.Name, now.Status)
		}
	}
}

// What is held must be seen twice before it is taken back: a binding may be on its way to the binder.
func TestDevicesThatAreSeenOnceAreNotTakenBack(t *testing.T) {
	n := newNeedy(t)
	left := leave(t, n.admin.Core, n.devices("left"), n.pod)
	o, _ := startOutbox(t, n.admin)
	asks, ended := make(chan bool), make(chan bool)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		o.takeDevicesBack(ctx, time.Millisecond, func() []intake.Held {
			asks <- true
			<-asks
			return []intake.Held{{Claim: left, Pods: left.Status.ReservedFor}}
		})
		close(ended)
	}()
	<-asks
	asks <- true
	<-asks // what came of the first look is over
	if now := n.allocated("left"); now.ResourceVersion != left.ResourceVersion {
		t.Errorf("the claim says %+v", now.Status)
	}
	stop()
	asks <- true
	<-ended
}
