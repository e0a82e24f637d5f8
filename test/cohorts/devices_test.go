package cohorts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
)

// supplied is what a kind of claim adds to a world, and to pods.
type supplied struct {
	spec  string                           // of pods, apart from their containers
	asks  string                           // of containers, apart from CPU
	add   func(w *world.World)             // what there is for two pods
	claim func(w *world.World, pod string) // makes the claim of a pod
}

const gpu = "example.com/gpu"

var suppliedKinds = map[string]supplied{
	"devices": {
		spec: "resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]",
		asks: "claims: [{name: gpu}]",
		add: func(w *world.World) {
			w.Set(fixture.Devices("gpu"), fixture.Slice("n1", 2), oneGPU())
		},
		claim: func(w *world.World, name string) {
			pod := w.Task(types.NamespacedName{Namespace: world.Namespace, Name: name}).Pod.Object()
			claim := deviceClaimOf(name)
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: pod.UID, Controller: ptr.To(true)}}
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To(claim.Name)}}
			w.Set(claim, pod)
		},
	},
	"devices that stand for a resource": {
		asks:  "requests: {" + gpu + ": 1}",
		add:   func(w *world.World) { w.Set(fixture.DevicesOf("gpu", gpu), fixture.Slice("n1", 2)) },
		claim: func(*world.World, string) {},
	},
	"volumes that exist": {
		spec: "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: local, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]",
		add: func(w *world.World) {
			w.Set(fixture.LateClass("local", ""), fixture.Volume("v0", "local", "1Gi", "kubernetes.io/hostname", "n1"), fixture.Volume("v1", "local", "1Gi", "kubernetes.io/hostname", "n1"))
		},
		claim: func(w *world.World, name string) {
			claim := fixture.Claim(name+"-scratch", "local")
			claim.Namespace = world.Namespace
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: w.Task(types.NamespacedName{Namespace: world.Namespace, Name: name}).UID(), Controller: ptr.To(true)}}
			w.Set(claim)
		},
	},
}

func oneGPU() *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "one-gpu", UID: "t"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: fixture.DeviceClaim("c", "gpu", 1).Spec}}
}

func deviceClaimOf(pod string) *resourcev1.ResourceClaim {
	claim := fixture.DeviceClaim(pod+"-gpu", "gpu", 1)
	claim.Namespace = world.Namespace
	return claim
}

// suppliedWorld has room for two pods with claims, and two Workloads that want them, the first of which comes first.
func suppliedWorld(t *testing.T, kind *supplied) *world.World {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=9")
	kind.add(w)
	addQueue(w)
	w.Apply(kind.workload("a", 2))
	passSeconds(w, 3)
	w.Apply(kind.workload("b", 1))
	passSeconds(w, 7)
	if o := w.Workload("a"); !conditions.Is(o, v1beta2.Admitted) || len(w.Pods("a")) != 2 {
		t.Fatalf("the first has pods %v, and says %+v", w.Pods("a"), o.Status.Conditions)
	}
	if conditions.Is(w.Workload("b"), v1beta2.QuotaReserved) {
		t.Fatal("the second is admitted, and the first holds all there is")
	}
	return w
}

func addQueue(w *world.World) {
	w.Apply("{kind: ResourceFlavor, metadata: {name: any}}")
	w.Apply("{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu, " + gpu + "], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 9}, {name: " + gpu + ", nominalQuota: 9}]}]}]}}")
	w.Apply("{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}")
}

func (k *supplied) workload(name string, pods int) string {
	asks := "requests: {cpu: 1}"
	switch {
	case strings.HasPrefix(k.asks, "requests"):
		asks = "requests: {cpu: 1, " + gpu + ": 1}"
	case k.asks != "":
		asks += ", " + k.asks
	}
	spec := "containers: [{name: c, image: i, resources: {" + asks + "}}]"
	if k.spec != "" {
		spec += ", " + k.spec
	}
	return fmt.Sprintf("{kind: Workload, metadata: {name: %s}, spec: {queueName: q, podSets: [{name: main, count: %d, template: {spec: {%s}}}]}}", name, pods, spec)
}

func passSeconds(w *world.World, seconds int) {
	for range seconds {
		w.Step()
		w.Now = w.Now.Add(time.Second)
	}
}

// The pods come one after the other, and their claims later. Until then nothing else gets what is held for them.
func TestPodsGetWhatStandInsHeldForThem(t *testing.T) {
	for name, kind := range suppliedKinds {
		t.Run(name, func(t *testing.T) {
			w := suppliedWorld(t, &kind)
			for i, pod := range w.Pods("a") {
				kind.claim(w, pod)
				passSeconds(w, 5)
				if on := w.Running("a"); on["n1"] <= i || conditions.Of(w.Workload("a"), v1beta2.Evicted) != nil {
					t.Fatalf("with claims of %d pods it runs on %v and says %+v", i+1, on, w.Workload("a").Status.Conditions)
				}
				if conditions.Is(w.Workload("b"), v1beta2.QuotaReserved) {
					t.Fatal("the second is admitted, and the first holds all there is")
				}
			}
		})
	}
}

// What was held for pods that never come is free again.
func TestWhatStandInsHeldIsFreeWithoutThem(t *testing.T) {
	for name, kind := range suppliedKinds {
		t.Run(name, func(t *testing.T) {
			w := suppliedWorld(t, &kind)
			w.Mark("a")
			passSeconds(w, 5)
			if !conditions.Is(w.Workload("b"), v1beta2.Admitted) {
				t.Errorf("the second says %+v", w.Workload("b").Status.Conditions)
			}
		})
	}
}

// A Workload waits for the template of its claims, and starts when that comes.
func TestAWorkloadStartsWhenTheTemplateOfItsClaimsComes(t *testing.T) {
	kind := suppliedKinds["devices"]
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=9")
	w.Set(fixture.Devices("gpu"), fixture.Slice("n1", 2))
	addQueue(w)
	w.Apply(kind.workload("a", 2))
	passSeconds(w, 10)
	if o := w.Workload("a"); conditions.Is(o, v1beta2.QuotaReserved) {
		t.Fatalf("without the template it says %+v", o.Status.Conditions)
	}
	w.Set(oneGPU())
	passSeconds(w, 3)
	if o := w.Workload("a"); !conditions.Is(o, v1beta2.Admitted) || len(w.Pods("a")) != 2 {
		t.Errorf("with the template it has pods %v, and says %+v", w.Pods("a"), o.Status.Conditions)
	}
}
