package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/test/apitest"
)

// needy is a pod whose claims are written and bound, by the test in the place of the controllers that are not there.
type needy struct {
	*testing.T
	admin     *apiserver.Clients
	namespace string
	pod       *corev1.Pod
}

func newNeedy(t *testing.T) *needy {
	t.Helper()
	admin, _ := adminClients(t)
	n := &needy{T: t, admin: admin, namespace: space(t, admin)}
	n.pod = createPod(t, admin, n.namespace, "pod")
	return n
}

var gibibyte = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

func (n *needy) claim(name string) *corev1.PersistentVolumeClaim {
	n.Helper()
	made, err := n.admin.Core.CoreV1().PersistentVolumeClaims(n.namespace).Create(apitest.Context(n.T), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("class"),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: gibibyte}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return made
}

func (n *needy) volume() *corev1.PersistentVolume {
	n.Helper()
	made, err := n.admin.Core.CoreV1().PersistentVolumes().Create(apitest.Context(n.T), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "class", Capacity: gibibyte,
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return made
}

func (n *needy) devices(name string) *resourcev1.ResourceClaim {
	n.Helper()
	made, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Create(apitest.Context(n.T), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	return made
}

func wantsVolume(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) supplies.VolumeReservation {
	v := supplies.VolumeReservation{Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, UID: claim.UID}
	if volume != nil {
		v.Volume, v.VolumeUID = volume.Name, volume.UID
	}
	return v
}

func wantsDevice(claim *resourcev1.ResourceClaim) supplies.DeviceReservation {
	return supplies.DeviceReservation{Claim: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, UID: claim.UID,
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpus.example.com", Pool: "node", Device: "gpu-0"}}}}}
}

// Bound plays the controller of volumes: it binds a claim to a volume.
func (n *needy) bound(name, volume string) {
	n.Helper()
	claims := n.admin.Core.CoreV1().PersistentVolumeClaims(n.namespace)
	claim, err := claims.Get(apitest.Context(n.T), name, metav1.GetOptions{})
	if err != nil {
		n.Fatal(err)
	}
	claim.Spec.VolumeName = volume
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
	if _, err := claims.Update(apitest.Context(n.T), claim, metav1.UpdateOptions{}); err != nil {
		n.Fatal(err)
	}
}

// hand gives an outbox the binding of the pod, and returns how it ends, and why.
func (n *needy) hand(clients *apiserver.Clients, r supplies.Reservation) (<-chan binder.Result, <-chan string) {
	n.Helper()
	o, results, reasons := outboxThatSays(n.T, clients)
	if r.Patience == 0 {
		r.Patience = apitest.Patience
	}
	d := bindOf(n.pod, "node")
	d.Binds[0].Reservation = &r
	o.Do(d)
	return results, reasons
}

// outboxThatSays is startOutbox for who wants to know why a binding was refused.
func outboxThatSays(t *testing.T, clients *apiserver.Clients) (*Outbox, <-chan binder.Result, <-chan string) {
	t.Helper()
	results, reasons := make(chan binder.Result, 10), make(chan string, 10)
	backOff := apiserver.RequestBackOff
	backOff.Duration = 10 * time.Millisecond
	o := NewOutbox(clients, OutboxOptions{Name: "volcano", backOff: &backOff,
		Refuse:  func(e cache.BindFailed) { reasons <- e.Reason },
		Observe: func(outcome binder.Outcome) { results <- outcome.Result }})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(o.Wait)
	t.Cleanup(cancel)
	o.Start(ctx)
	return o, results, reasons
}

func (n *needy) refused(results <-chan binder.Result, reasons <-chan string, want string) {
	n.Helper()
	expectResult(n.T, results, binder.Refused)
	if got := <-reasons; !strings.Contains(got, want) {
		n.Errorf("the reason is %q, want %q", got, want)
	}
	if node := nodeOf(n.T, n.admin, n.pod); node != "" {
		n.Errorf("the pod was bound to %s all the same", node)
	}
}

func TestAPodIsPreparedBeforeItIsBound(t *testing.T) {
	// Who binds has the documented permissions, and no other.
	t.Run("volumes are bound and devices written first", func(t *testing.T) {
		n := newNeedy(t)
		_, c := adminClients(t)
		clusterRules, rules := documentedRules(t)
		clients, err := apiserver.Connect(confined(t, c, n.admin.Core, "binder", clusterRules, rules), 2000, 2000)
		if err != nil {
			t.Fatal(err)
		}
		existing, claim, made, device := n.volume(), n.claim("existing"), n.claim("made"), n.devices("device")
		results, _ := n.hand(clients, supplies.Reservation{
			Volumes: []supplies.VolumeReservation{wantsVolume(claim, existing), wantsVolume(made, nil)},
			Devices: []supplies.DeviceReservation{wantsDevice(device)},
		})
		eventually(t, func(ctx context.Context) string {
			volume, err := n.admin.Core.CoreV1().PersistentVolumes().Get(ctx, existing.Name, metav1.GetOptions{})
			if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID || volume.Annotations[storagehelpers.AnnBoundByController] != "yes" {
				return "the volume is not given to the claim"
			}
			now, err := n.admin.Core.CoreV1().PersistentVolumeClaims(n.namespace).Get(ctx, "made", metav1.GetOptions{})
			if err != nil || now.Annotations[storagehelpers.AnnSelectedNode] != "node" {
				return "the other claim is not given to the node"
			}
			return ""
		})
		n.bound("existing", existing.Name)
		n.bound("made", n.volume().Name)
		expectResult(t, results, binder.Bound)
		given, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(t), "device", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a := given.Status.Allocation; a == nil || a.Devices.Results[0].Device != "gpu-0" || !isReserved(given, n.pod) {
			t.Errorf("the claim of devices says %+v", given.Status)
		}
	})
	t.Run("what a pod cannot get is said", func(t *testing.T) {
		t.Run("a volume that another claim took", func(t *testing.T) {
			n := newNeedy(t)
			volume, first, second := n.volume(), n.claim("first"), n.claim("second")
			taken := wantsVolume(first, volume)
			if _, err := n.admin.Core.CoreV1().PersistentVolumes().Update(apitest.Context(t), taken.Take(volume), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			results, reasons := n.hand(n.admin, supplies.Reservation{Volumes: []supplies.VolumeReservation{wantsVolume(second, volume)}})
			n.refused(results, reasons, fmt.Sprintf("PersistentVolume %s was taken by another claim", volume.Name))
		})
		t.Run("a claim that is gone", func(t *testing.T) {
			n := newNeedy(t)
			v := wantsVolume(n.claim("claim"), nil)
			v.UID = "another"
			results, reasons := n.hand(n.admin, supplies.Reservation{Volumes: []supplies.VolumeReservation{v}})
			n.refused(results, reasons, "PersistentVolumeClaim "+n.namespace+"/claim is gone")
		})
		t.Run("a volume that takes too long", func(t *testing.T) {
			n := newNeedy(t)
			results, reasons := n.hand(n.admin, supplies.Reservation{Patience: 200 * time.Millisecond,
				Volumes: []supplies.VolumeReservation{wantsVolume(n.claim("claim"), nil)}})
			n.refused(results, reasons, "its volumes were not bound within 200ms")
		})
		t.Run("a volume that cannot be made", func(t *testing.T) {
			n := newNeedy(t)
			claims := n.admin.Core.CoreV1().PersistentVolumeClaims(n.namespace)
			results, reasons := n.hand(n.admin, supplies.Reservation{Volumes: []supplies.VolumeReservation{wantsVolume(n.claim("claim"), nil)}})
			eventually(t, func(ctx context.Context) string {
				claim, err := claims.Get(ctx, "claim", metav1.GetOptions{})
				if err != nil || claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
					return "no node was selected"
				}
				delete(claim.Annotations, storagehelpers.AnnSelectedNode)
				if _, err := claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
					return err.Error()
				}
				return ""
			})
			n.refused(results, reasons, "no volume could be made for PersistentVolumeClaim "+n.namespace+"/claim on node node")
		})
	})
	t.Run("devices are taken back if it is not bound", func(t *testing.T) {
		n := newNeedy(t)
		mine, gone := n.devices("mine"), wantsDevice(n.devices("gone"))
		gone.UID = "another"
		results, reasons := n.hand(n.admin, supplies.Reservation{Devices: []supplies.DeviceReservation{wantsDevice(mine), gone}})
		n.refused(results, reasons, "ResourceClaim "+n.namespace+"/gone is gone")
		claim, err := n.admin.Core.ResourceV1().ResourceClaims(n.namespace).Get(apitest.Context(t), "mine", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if claim.Status.Allocation != nil || len(claim.Status.ReservedFor) > 0 {
			t.Errorf("the claim says %+v", claim.Status)
		}
		if claim.ResourceVersion == mine.ResourceVersion {
			t.Error("it was never given anything")
		}
	})
	t.Run("a pod that is deleted meanwhile is not waited for", func(t *testing.T) {
		n := newNeedy(t)
		results, _ := n.hand(n.admin, supplies.Reservation{Volumes: []supplies.VolumeReservation{wantsVolume(n.claim("claim"), nil)}})
		deletePod(t, n.admin, n.pod)
		expectResult(t, results, binder.Gone)
	})
	t.Run("an outbox that is closed does not wait for volumes", func(t *testing.T) {
		n := newNeedy(t)
		o, results, _ := outboxThatSays(t, n.admin)
		d := bindOf(n.pod, "node")
		d.Binds[0].Reservation = &supplies.Reservation{Patience: time.Hour, Volumes: []supplies.VolumeReservation{wantsVolume(n.claim("claim"), nil)}}
		o.Do(d)
		if err := o.Drain(apitest.Context(t)); err != nil {
			t.Fatal(err)
		}
		expectResult(t, results, binder.Unsent)
	})
}

// taintRule makes a rule that taints no device there is.
func (n *needy) taintRule() *resourcev1beta2.DeviceTaintRule {
	n.Helper()
	rules := n.admin.Core.ResourceV1beta2().DeviceTaintRules()
	rule, err := rules.Create(apitest.Context(n.T), &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: resourcev1beta2.DeviceTaintRuleSpec{DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Pool: ptr.To("nobody")},
			Taint: resourcev1beta2.DeviceTaint{Key: "broken", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}}}, metav1.CreateOptions{})
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		if err := rules.Delete(context.Background(), rule.Name, metav1.DeleteOptions{}); err != nil {
			n.Error(err)
		}
	})
	return rule
}

// silent is an API server that does not say that it has DeviceTaintRules, or that it has anything of their version.
type silent struct {
	discovery.DiscoveryInterface
	version bool
}

func (s silent) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	served, err := s.DiscoveryInterface.ServerResourcesForGroupVersion(version)
	if version != resourcev1beta2.SchemeGroupVersion.String() {
		return served, err
	}
	if s.version {
		return nil, apierrors.NewNotFound(resourcev1beta2.Resource(""), "")
	}
	return &metav1.APIResourceList{}, nil
}

// isReserved reports whether a claim is reserved for a pod.
func isReserved(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
}

// withoutRules are clients of such an API server.
type withoutRules struct {
	kubernetes.Interface
	version bool
}

func (w withoutRules) Discovery() discovery.DiscoveryInterface {
	return silent{w.Interface.Discovery(), w.version}
}

func TestWithoutTaintRulesTheDevicesAreWatchedAllTheSame(t *testing.T) {
	for name, version := range map[string]bool{"their version is not served": true, "the version is served without them": false} {
		t.Run(name, func(t *testing.T) {
			n := newNeedy(t)
			device, rule := n.devices("device"), n.taintRule()
			clients := *n.admin
			clients.Core = withoutRules{clients.Core, version}
			inbox, err := intake.New(&clients, intake.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			t.Cleanup(inbox.Wait)
			t.Cleanup(cancel)
			inbox.Start(ctx)
			if err := inbox.WaitSynced(apitest.Context(t)); err != nil {
				t.Fatal(err)
			}
			seen := map[types.UID]bool{}
			for _, e := range inbox.Take() {
				seen[e.(cache.Set).Object.(metav1.Object).GetUID()] = true
			}
			if !seen[device.UID] || seen[rule.UID] {
				t.Errorf("the claim is seen: %t, the rule: %t", seen[device.UID], seen[rule.UID])
			}
		})
	}
}

func TestVolumesAndDevicesAreDelivered(t *testing.T) {
	n := newNeedy(t)
	claim, volume, device, rule := n.claim("claim"), n.volume(), n.devices("device"), n.taintRule()
	inbox := startInbox(t, n.admin, intake.Options{})
	seen := map[types.UID]bool{}
	for _, e := range inbox.Take() {
		seen[e.(cache.Set).Object.(metav1.Object).GetUID()] = true
	}
	for _, made := range []metav1.Object{claim, volume, device, rule} {
		if !seen[made.GetUID()] {
			t.Errorf("%T %s is missing", made, made.GetName())
		}
	}
}
