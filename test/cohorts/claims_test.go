package cohorts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
)

// The API server makes the claims of ephemeral volumes after the pods. A pod that is seen before its claim fits on no
// node, and its Workload is not evicted for that.
func TestPodsWaitForTheClaimsThatAreMadeForThem(t *testing.T) {
	for name, mode := range map[string]storagev1.VolumeBindingMode{"late": storagev1.VolumeBindingWaitForFirstConsumer, "early": storagev1.VolumeBindingImmediate} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4")
			class := fixture.LateClass("made", fixture.Provisioner)
			class.VolumeBindingMode = &mode
			w.Set(class)
			w.Apply("{kind: ResourceFlavor, metadata: {name: any}}")
			w.Apply("{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]}}")
			w.Apply("{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}")
			w.Apply("{kind: Workload, metadata: {name: a}, spec: {queueName: q, podSets: [{name: main, count: 2, template: {spec: {" +
				"containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: " +
				"{storageClassName: made, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}}]}}")
			for range 10 {
				w.Step()
				w.Now = w.Now.Add(time.Second)
			}
			if o := w.Workload("a"); !conditions.Is(o, v1beta2.Admitted) || conditions.Of(o, v1beta2.Evicted) != nil || len(w.Pods("a")) != 2 || len(w.Running("a")) > 0 {
				t.Fatalf("without claims it has pods %v, runs on %v and says %+v", w.Pods("a"), w.Running("a"), o.Status.Conditions)
			}
			for _, pod := range w.Pods("a") {
				task := w.Task(types.NamespacedName{Namespace: world.Namespace, Name: pod})
				claim := fixture.Claim(pod+"-scratch", "made")
				claim.Namespace, claim.OwnerReferences = world.Namespace, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: task.UID(), Controller: ptr.To(true)}}
				if mode == storagev1.VolumeBindingImmediate {
					fixture.BoundTo("v-" + pod)(claim)
					volume := fixture.Volume("v-"+pod, "made", "1Gi", "kubernetes.io/hostname", "n1", fixture.OfClaim(claim.Name))
					volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.UID = claim.Namespace, claim.UID
					w.Set(volume)
				}
				w.Set(claim)
			}
			for range 10 {
				w.Step()
				w.Now = w.Now.Add(time.Second)
			}
			if on := w.Running("a"); on["n1"] != 2 || conditions.Of(w.Workload("a"), v1beta2.Evicted) != nil {
				t.Errorf("with claims it runs on %v and says %+v", on, w.Workload("a").Status.Conditions)
			}
		})
	}
}

// A Workload may ask for any number of pods that request nothing. No stand-ins are made of more than all nodes may
// have.
func TestAWorkloadOfMorePodsThanNodesMayHaveWaits(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4 pods=10")
	w.Apply("{kind: ResourceFlavor, metadata: {name: any}}")
	w.Apply("{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]}}")
	w.Apply("{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}")
	for name, count := range map[string]int{"large": 2147483647, "small": 10} {
		w.Apply(fmt.Sprintf("{kind: Workload, metadata: {name: %s}, spec: {queueName: q, podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, image: i}]}}}]}}", name, count))
	}
	w.Rest(30)
	if said := w.Says("large"); !strings.Contains(said, "all nodes together may have 10 pods") {
		t.Errorf("the large one says %q", said)
	}
	w.Expect("small", "admitted")
}
