package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/internal/topology"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	flowvalidation "hekla.sh/hekla/pkg/apis/flow/validation"
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyapi "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
	remove = admissionregistrationv1.Delete
)

// service is one webhook: a path, what is sent there, and who answers.
type service struct {
	// path is the name by which --enabled-admission switches it on. One that ends in /mutate may change the object.
	path string

	// name is that of the webhook in its configuration. It stands in every message to a user.
	name string

	resource   schema.GroupVersionResource
	operations []admissionregistrationv1.OperationType

	// failurePolicy is Fail only where nothing but the user's own request waits, and only for kinds of ours.
	failurePolicy admissionregistrationv1.FailurePolicyType

	// conditions are what must hold for a request to be sent at all; isNeeded is false while none could. nil sends all.
	conditions func(s *settings) (conditions []admissionregistrationv1.MatchCondition, isNeeded bool)

	handle handler
}

// services are all there are, in the order in which they are registered. A kind of its own gets a line here, a function
// that says what is wrong with an object, and nothing else.
func services() []*service {
	return append([]*service{
		{
			path: "/jobs/mutate", name: "mutatejob.volcano.sh",
			resource: batch.GroupVersion.WithResource("jobs"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Fail, conditions: specChanges, handle: mutates(defaultJob),
		},
		{
			path: "/jobs/validate", name: "validatejob.volcano.sh",
			resource: batch.GroupVersion.WithResource("jobs"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Fail, conditions: specChanges,
			handle: validates(batch.GroupVersion.WithKind("Job").GroupKind(), judgeJob),
		},
		{
			path: "/queues/mutate", name: "mutatequeue.volcano.sh",
			resource: scheduling.GroupVersion.WithResource("queues"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Fail, handle: mutates(defaultQueue),
		},
		{
			path: "/queues/validate", name: "validatequeue.volcano.sh",
			resource: scheduling.GroupVersion.WithResource("queues"), operations: []admissionregistrationv1.OperationType{create, update, remove},
			failurePolicy: admissionregistrationv1.Fail, conditions: queueChanges,
			handle: validates(scheduling.GroupVersion.WithKind("Queue").GroupKind(), judgeQueue),
		},
		{
			path: "/podgroups/mutate", name: "mutatepodgroup.volcano.sh",
			resource: scheduling.GroupVersion.WithResource("podgroups"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Ignore, conditions: inDefaultQueue, handle: mutates(defaultPodGroup),
		},
		{
			path: "/podgroups/validate", name: "validatepodgroup.volcano.sh",
			resource: scheduling.GroupVersion.WithResource("podgroups"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Ignore,
			handle:        validates(scheduling.GroupVersion.WithKind("PodGroup").GroupKind(), judgePodGroup),
		},
		{
			path: "/pods/mutate", name: "mutatepod.volcano.sh",
			resource: corev1.SchemeGroupVersion.WithResource("pods"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Ignore, conditions: inResourceGroupOrGated, handle: mutates(changePod),
		},
		{
			path: "/pods/validate", name: "validatepod.volcano.sh",
			resource: corev1.SchemeGroupVersion.WithResource("pods"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Ignore, conditions: hasBudget,
			handle: validates(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), judgePod),
		},
		{
			path: "/cronjobs/validate", name: "validatecronjob.volcano.sh",
			resource: batch.GroupVersion.WithResource("cronjobs"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Fail, conditions: specChanges,
			handle: validates(batch.GroupVersion.WithKind("CronJob").GroupKind(), alone(problemsOfCronJob)),
		},
		{
			path: "/jobflows/validate", name: "validatejobflow.volcano.sh",
			resource: flow.GroupVersion.WithResource("jobflows"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Fail, conditions: specChanges,
			handle: validates(flow.GroupVersion.WithKind("JobFlow").GroupKind(),
				alone(func(object *flow.JobFlow, _ *settings) field.ErrorList {
					if len(object.Spec.Flows) == 0 {
						return nil // As in Volcano it is stored; its status says that it needs a flow.
					}
					return flowvalidation.ValidateJobFlow(object)
				})),
		},
		{
			// Those that are discovered do not wait for an answer.
			path: "/hypernodes/validate", name: "validatehypernodes.volcano.sh",
			resource: topologyapi.GroupVersion.WithResource("hypernodes"), operations: []admissionregistrationv1.OperationType{create, update},
			failurePolicy: admissionregistrationv1.Ignore, conditions: specChanges,
			handle: validates(topologyapi.GroupVersion.WithKind("HyperNode").GroupKind(),
				alone(func(object *topologyapi.HyperNode, _ *settings) field.ErrorList { return topology.Validate(object) })),
		},
	}, kueueServices()...)
}

// DefaultEnabled are the paths that are served unless others are asked for: Volcano's default, and those of the kinds
// of Kueue. What holds jobs and pods back is registered only while the scheduler admits workloads.
func DefaultEnabled() []string {
	return []string{"/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate", "/queues/mutate", "/queues/validate",
		"/kueue/clusterqueues/validate", "/kueue/cohorts/validate", "/kueue/localqueues/validate", "/kueue/resourceflavors/validate", "/kueue/workloads/validate",
		"/kueue/jobs/mutate", "/kueue/pods/mutate", "/kueue/jobs/validate", "/kueue/pods/validate", "/kueue/volcanojobs/validate"}
}

// Paths are all that can be enabled.
func Paths() []string {
	var paths []string
	for _, service := range services() {
		paths = append(paths, service.path)
	}
	return paths
}

// selected returns the services with these paths.
func selected(paths []string) ([]*service, error) {
	all := services()
	for _, path := range paths {
		if !slices.ContainsFunc(all, func(s *service) bool { return s.path == path }) {
			return nil, fmt.Errorf("there is no admission %q; there are %s", path, strings.Join(Paths(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(s *service) bool { return !slices.Contains(paths, s.path) }), nil
}

// specChanges leaves out updates that change no spec, such as those by which objects are deleted step by step: they
// must go on when no webhook answers.
func specChanges(*settings) ([]admissionregistrationv1.MatchCondition, bool) {
	return []admissionregistrationv1.MatchCondition{{
		Name: "spec-changes", Expression: "request.operation != 'UPDATE' || object.spec != oldObject.spec",
	}}, true
}

// queueChanges does the same for queues, which say a part of what they are in annotations.
func queueChanges(*settings) ([]admissionregistrationv1.MatchCondition, bool) {
	expression := "request.operation != 'UPDATE' || object.spec != oldObject.spec"
	for _, key := range append(properties.Keys(), scheduling.HierarchyAnnotationKey, scheduling.HierarchyWeightsAnnotationKey) {
		expression += fmt.Sprintf(" || object.metadata.?annotations[%[1]s] != oldObject.metadata.?annotations[%[1]s]", literal(key))
	}
	return []admissionregistrationv1.MatchCondition{{Name: "spec-changes", Expression: expression}}, true
}

// inDefaultQueue sends PodGroups that have not chosen a queue, and updates by which they have none any more.
func inDefaultQueue(*settings) ([]admissionregistrationv1.MatchCondition, bool) {
	isIn := func(object string) string {
		return fmt.Sprintf("%s.?spec.?queue.orValue('') in ['', %s]", object, literal(scheduling.DefaultQueue))
	}
	return []admissionregistrationv1.MatchCondition{
		{Name: "in-default-queue", Expression: isIn("object")},
		{Name: "queue-changes", Expression: "request.operation != 'UPDATE' || !(" + isIn("oldObject") + ")"},
	}, true
}

// hasBudget sends pods of our schedulers that say how many of their job may be missing.
func hasBudget(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
	return []admissionregistrationv1.MatchCondition{
		{Name: "is-ours", Expression: fmt.Sprintf("object.spec.?schedulerName.orValue('') in %s", literals(s.schedulerNames))},
		{Name: "has-budget", Expression: fmt.Sprintf("object.metadata.?annotations.orValue({}).exists(key, key in %s)",
			literals([]string{scheduling.JDBMinAvailableKey, scheduling.JDBMaxUnavailableKey}))},
	}, true
}

// clientConfig returns where the API server finds a path.
func (o *Options) clientConfig(path string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	if o.URL != "" {
		url := strings.TrimSuffix(o.URL, "/") + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	}
	port := servicePort
	return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: o.Namespace, Name: o.ServiceName, Path: &path, Port: &port,
	}}
}

// webhooks returns what must be registered. Every field that the API server would fill in is filled in, so that what is
// registered can be compared with it.
func (o *Options) webhooks(enabled []*service, s *settings, bundle []byte) (mutating []admissionregistrationv1.MutatingWebhook,
	validating []admissionregistrationv1.ValidatingWebhook) {
	for _, service := range enabled {
		var conditions []admissionregistrationv1.MatchCondition
		isNeeded := true
		if service.conditions != nil {
			conditions, isNeeded = service.conditions(s)
		}
		if !isNeeded {
			continue
		}
		hook := o.webhook(service, conditions, bundle)
		if strings.HasSuffix(service.path, "/mutate") {
			mutating = append(mutating, hook)
			continue
		}
		validating = append(validating, admissionregistrationv1.ValidatingWebhook{
			Name: hook.Name, ClientConfig: hook.ClientConfig, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
			MatchPolicy: hook.MatchPolicy, NamespaceSelector: hook.NamespaceSelector, ObjectSelector: hook.ObjectSelector,
			SideEffects: hook.SideEffects, TimeoutSeconds: hook.TimeoutSeconds, AdmissionReviewVersions: hook.AdmissionReviewVersions,
			MatchConditions: hook.MatchConditions,
		})
	}
	return mutating, validating
}

func (o *Options) webhook(service *service, conditions []admissionregistrationv1.MatchCondition, bundle []byte) admissionregistrationv1.MutatingWebhook {
	scope, match, sideEffects := admissionregistrationv1.AllScopes, admissionregistrationv1.Equivalent, admissionregistrationv1.SideEffectClassNone
	reinvocation, seconds, policy := admissionregistrationv1.NeverReinvocationPolicy, int32(webhookTimeout.Seconds()), service.failurePolicy
	namespaces := &metav1.LabelSelector{}
	if !strings.HasSuffix(service.resource.Group, ".volcano.sh") {
		// What keeps the cluster running, and this server itself, is no batch job.
		namespaces.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem, cmp.Or(o.Namespace, metav1.NamespaceSystem)},
		}}
	}
	return admissionregistrationv1.MutatingWebhook{
		Name:         service.name,
		ClientConfig: o.clientConfig(service.path, bundle),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: service.operations,
			Rule: admissionregistrationv1.Rule{APIGroups: []string{service.resource.Group}, APIVersions: []string{service.resource.Version},
				Resources: []string{service.resource.Resource}, Scope: &scope},
		}},
		FailurePolicy: &policy, MatchPolicy: &match, SideEffects: &sideEffects, TimeoutSeconds: &seconds,
		NamespaceSelector: namespaces, ObjectSelector: &metav1.LabelSelector{},
		AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: &reinvocation, MatchConditions: conditions,
	}
}
