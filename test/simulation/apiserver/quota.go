package apiserver

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// quotas charges ResourceQuotas, by the rules of the API server's plugin and without its goroutines.
type quotas struct {
	*admission.Handler

	client   kubernetes.Interface
	lister   corelisters.ResourceQuotaLister
	registry quota.Registry
	ignored  []string
}

var _ admission.ValidationInterface = (*quotas)(nil)

func newQuotas(s *Server, client kubernetes.Interface, served serverstorage.APIResourceConfigSource) (*quotas, error) {
	configuration, err := install.NewQuotaConfigurationForAdmission(s.informers, served)
	if err != nil {
		return nil, err
	}
	q := &quotas{
		Handler: admission.NewHandler(admission.Create, admission.Update), client: client,
		lister:   s.informers.Core().V1().ResourceQuotas().Lister(),
		registry: generic.NewRegistry(configuration.Evaluators()),
	}
	for resource := range configuration.IgnoredResources() {
		q.ignored = append(q.ignored, resource.String())
	}
	return q, nil
}

// Validate refuses what goes beyond a quota, and charges what does not.
func (q *quotas) Validate(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	namespace := attributes.GetNamespace()
	isNamespace := attributes.GetOperation() == admission.Create && attributes.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
	if namespace == "" || isNamespace {
		return nil
	}
	of := attributes.GetResource().GroupResource()
	if slices.Contains(q.ignored, of.String()) {
		return nil
	}
	evaluator := q.registry.Get(of)
	if evaluator == nil {
		evaluator = generic.NewObjectCountEvaluator(of, nil, "")
		q.registry.Add(evaluator)
	}
	if !evaluator.Handles(attributes) {
		return nil
	}
	before, err := q.inNamespace(namespace)
	if err != nil || len(before) == 0 {
		return err
	}
	after, err := resourcequota.CheckRequest(before, attributes, evaluator, nil)
	if err != nil || attributes.IsDryRun() {
		return err
	}
	for i := range after {
		if quota.Equals(before[i].Status.Used, after[i].Status.Used) {
			continue
		}
		if err := q.charge(&after[i]); err != nil {
			return err
		}
	}
	return nil
}

func (q *quotas) inNamespace(namespace string) ([]corev1.ResourceQuota, error) {
	listed, err := q.lister.ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	found := make([]corev1.ResourceQuota, 0, len(listed))
	for _, one := range listed {
		found = append(found, *one.DeepCopy())
	}
	slices.SortFunc(found, func(a, b corev1.ResourceQuota) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// charge writes what a quota has in use. As in the real server it does not end with the request.
func (q *quotas) charge(to *corev1.ResourceQuota) error {
	usage := to.DeepCopy()
	usage.ObjectMeta = metav1.ObjectMeta{
		Name: to.Name, Namespace: to.Namespace, ResourceVersion: to.ResourceVersion, Labels: to.Labels, Annotations: to.Annotations,
	}
	_, err := q.client.CoreV1().ResourceQuotas(to.Namespace).UpdateStatus(context.Background(), usage, metav1.UpdateOptions{})
	return err
}
