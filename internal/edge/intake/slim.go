package intake

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
)

// slimmer makes decoded objects small before they are cached: the caches and the model hold every object of the
// cluster. Any goroutine may use it.
type slimmer struct {
	mutex sync.Mutex
	pods  *pods.Table
	texts pods.Texts
	sets  podSets
	// cached returns what is cached of a pod, nil if nothing is.
	cached func(pod *corev1.Pod) *cluster.Pod
}

func newSlimmer() *slimmer {
	s := &slimmer{pods: pods.NewTable(), cached: func(*corev1.Pod) *cluster.Pod { return nil }}
	s.pods.OwnsObjects = true
	return s
}

// slim drops the fields of a decoded object that no decision reads. Of a pod it returns a [cluster.Pod]. It may be
// applied twice.
func (s *slimmer) slim(o any) (any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if pod, ok := o.(*corev1.Pod); ok {
		return s.pods.Of(pod, s.cached(pod)), nil
	}
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := o.(type) {
	case *corev1.Node:
		o.Status.Addresses, o.Status.VolumesInUse, o.Status.VolumesAttached, o.Status.Config = nil, nil, nil, nil
		o.Status.NodeInfo = corev1.NodeSystemInfo{}
		for i := range o.Status.Images { // many nodes have the same
			for k, name := range o.Status.Images[i].Names {
				o.Status.Images[i].Names[k] = s.texts.One(name)
			}
		}
	case *corev1.PersistentVolumeClaim:
		resources.Clamp(o.Spec.Resources.Requests, o.Spec.Resources.Limits)
	case *resourcev1.ResourceClaim:
		slimClaim(o)
	case *policyv1.PodDisruptionBudget:
		o.Status.Conditions = nil
	case *v1beta2.Workload:
		s.slimWorkload(o)
	}
	return o, nil
}

// slimClaim limits the amounts that a claim requests of devices, and those of its allocation.
func slimClaim(claim *resourcev1.ResourceClaim) {
	clamp := func(capacity *resourcev1.CapacityRequirements) {
		if capacity != nil {
			resources.Clamp(capacity.Requests)
		}
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if request.Exactly != nil {
			clamp(request.Exactly.Capacity)
		}
		for k := range request.FirstAvailable {
			clamp(request.FirstAvailable[k].Capacity)
		}
	}
	if claim.Status.Allocation != nil {
		for i := range claim.Status.Allocation.Devices.Results {
			resources.Clamp(claim.Status.Allocation.Devices.Results[i].ConsumedCapacity)
		}
	}
}
