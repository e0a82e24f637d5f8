package simulator

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// quota is a ResourceQuota and what its namespace uses beside the pods that are known: what the input says is used, less what
// its pods use.
type quota struct {
	object *corev1.ResourceQuota
	beside corev1.ResourceList
}

// addQuota puts a quota of the input into the cluster, whose pods are there already.
func (s *simulation) addQuota(object *corev1.ResourceQuota) error {
	used, err := s.usage(object)
	if err != nil {
		return fmt.Errorf("ResourceQuota %s/%s: %w", object.Namespace, object.Name, err)
	}
	object = object.DeepCopy()
	q := &quota{object: object}
	if object.Status.Used != nil {
		q.beside = quotav1.Subtract(quotav1.Mask(object.Status.Used, quotav1.ResourceNames(used)), used)
	}
	if object.Status.Hard == nil {
		object.Status.Hard = object.Spec.Hard
	}
	s.quotas = append(s.quotas, q)
	s.set(object)
	return nil
}

// countQuotas brings what quotas say is used up to date with the pods, as the quota controller does.
func (s *simulation) countQuotas() error {
	for _, q := range s.quotas {
		used, err := s.usage(q.object)
		if err != nil {
			return fmt.Errorf("ResourceQuota %s/%s: %w", q.object.Namespace, q.object.Name, err)
		}
		status := q.object.Status.DeepCopy()
		if status.Used == nil {
			status.Used = corev1.ResourceList{}
		}
		for name, amount := range quotav1.Add(q.beside, used) {
			status.Used[name] = amount
		}
		if !equality.Semantic.DeepEqual(&q.object.Status, status) {
			q.object = q.object.DeepCopy()
			q.object.Status = *status
			s.set(q.object)
		}
	}
	return nil
}

// usage is what the pods use of what a quota limits.
func (s *simulation) usage(object *corev1.ResourceQuota) (corev1.ResourceList, error) {
	evaluator := core.NewPodEvaluator(nil, instant{at: s.now})
	names := evaluator.MatchingResources(quotav1.ResourceNames(object.Spec.Hard))
	used := corev1.ResourceList{}
	for _, name := range names {
		used[name] = resource.Quantity{Format: resource.DecimalSI}
	}
	for _, pod := range s.pods {
		if pod.Namespace != object.Namespace {
			continue
		}
		matches, err := evaluator.Matches(object, pod)
		if err != nil {
			return nil, err
		}
		if !matches {
			continue
		}
		usage, err := evaluator.Usage(pod)
		if err != nil {
			return nil, err
		}
		used = quotav1.Add(used, quotav1.Mask(usage, names))
	}
	return used, nil
}

// instant is a clock that stands.
type instant struct {
	clock.RealClock
	at time.Time
}

// Now returns when it stands.
func (i instant) Now() time.Time { return i.at }
