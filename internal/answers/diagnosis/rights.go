package diagnosis

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// right is what may be done with resources of a group.
type right struct {
	group            string
	resources, verbs []string
}

// needed are the rights of the ClusterRole volcano-scheduler that every configuration needs. A test holds the two
// equal.
var needed = []right{
	{"", []string{"pods"}, []string{"get", "list", "watch", "delete"}},
	{"", []string{"pods/binding", "pods/eviction"}, []string{"create"}},
	{"", []string{"pods/status"}, []string{"patch"}},
	{"", []string{"nodes"}, []string{"get", "list", "watch"}},
	{"", []string{"namespaces", "resourcequotas", "limitranges"}, []string{"list", "watch"}},
	{"node.k8s.io", []string{"runtimeclasses"}, []string{"list", "watch"}},
	{"", []string{"persistentvolumes", "persistentvolumeclaims"}, []string{"get", "list", "watch", "update"}},
	{"", []string{"events"}, []string{"create", "patch"}},
	{"storage.k8s.io", []string{"storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"}, []string{"list", "watch"}},
	{"resource.k8s.io", []string{"resourceclaims"}, []string{"get", "list", "watch", "create", "update", "delete"}},
	{"resource.k8s.io", []string{"resourceclaims/status", "resourceclaims/binding"}, []string{"update"}},
	{"resource.k8s.io", []string{"resourceslices", "deviceclasses", "devicetaintrules", "resourceclaimtemplates"}, []string{"list", "watch"}},
	{"policy", []string{"poddisruptionbudgets"}, []string{"list", "watch"}},
	{"scheduling.volcano.sh", []string{"podgroups", "queues"}, []string{"get", "list", "watch"}},
	{"scheduling.volcano.sh", []string{"podgroups", "podgroups/status", "queues/status"}, []string{"patch"}},
	{"topology.volcano.sh", []string{"hypernodes"}, []string{"list", "watch"}},
	{"kueue.x-k8s.io", []string{"clusterqueues", "cohorts", "localqueues", "resourceflavors", "admissionchecks", "workloads"}, []string{"list", "watch"}},
	{"kueue.x-k8s.io", []string{"workloads"}, []string{"get", "patch"}},
	{"kueue.x-k8s.io", []string{"workloads/status"}, []string{"patch"}},
	{"scheduling.k8s.io", []string{"priorityclasses"}, []string{"list", "watch"}},
}

// nowhere is a namespace for which rights are listed that hold in all: rights in a namespace of its own are none of
// them.
const nowhere = "hekla-no-such-namespace"

// MissingRights asks the API server what the scheduler may do in the whole cluster, and returns what it lacks, such as
// "create pods/binding".
func MissingRights(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx,
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: nowhere}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("the API server could not be asked: %w", err)
	}
	var missing []string
	for _, r := range needed {
		for _, resource := range r.resources {
			for _, verb := range r.verbs {
				if !isAllowed(review.Status.ResourceRules, r.group, resource, verb) {
					name := verb + " " + resource
					if r.group != "" {
						name += "." + r.group
					}
					missing = append(missing, name)
				}
			}
		}
	}
	if len(missing) > 0 && review.Status.Incomplete {
		return nil, fmt.Errorf("the API server does not list all rights: %s", review.Status.EvaluationError)
	}
	return missing, nil
}

func isAllowed(rules []authorizationv1.ResourceRule, group, resource, verb string) bool {
	has := func(list []string, item string) bool {
		return slices.Contains(list, item) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return len(r.ResourceNames) == 0 && has(r.APIGroups, group) && has(r.Resources, resource) && has(r.Verbs, verb)
	})
}
