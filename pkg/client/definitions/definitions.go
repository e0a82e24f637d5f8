// Package definitions looks at whether the API server's definitions of our kinds can hold what is written to them.
//
// A definition without the subresource status, such as Volcano's own of PodGroups, refuses every write of a status as if the object
// did not exist. A user may apply one at any time, so it is looked at again and again.
package definitions

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// Reason is the reason of the Event of a definition that lacks the subresource.
const Reason = "NoStatusSubresource"

// Period is how often a program looks.
const Period = time.Minute

// Written are the resources whose status is written by programs of Hekla.
var Written = []schema.GroupVersionResource{
	batch.GroupVersion.WithResource("jobs"), batch.GroupVersion.WithResource("cronjobs"),
	flow.GroupVersion.WithResource("jobflows"), flow.GroupVersion.WithResource("jobtemplates"),
	scheduling.GroupVersion.WithResource("podgroups"), scheduling.GroupVersion.WithResource("queues"),
	topology.GroupVersion.WithResource("hypernodes"),
}

// WithoutStatus returns those of the resources that the API server has, without the subresource status. An error is that of
// asking; what could be asked is returned all the same.
func WithoutStatus(api discovery.DiscoveryInterface, resources []schema.GroupVersionResource) (missing []schema.GroupVersionResource, err error) {
	served := map[schema.GroupVersion][]string{}
	for _, resource := range resources {
		version := resource.GroupVersion()
		names, isKnown := served[version]
		if !isKnown {
			list, problem := api.ServerResourcesForGroupVersion(version.String())
			if problem != nil && !apierrors.IsNotFound(problem) {
				err = fmt.Errorf("asking the API server for its resources of %s: %w", version, problem)
			}
			if problem == nil {
				for i := range list.APIResources {
					names = append(names, list.APIResources[i].Name)
				}
			}
			served[version] = names
		}
		if slices.Contains(names, resource.Resource) && !slices.Contains(names, resource.Resource+"/status") {
			missing = append(missing, resource)
		}
	}
	return missing, err
}

// Watch checks the resources at once and then after each period, until the context ends. It reports each resource that
// lacks the subresource once, and again if the resource had it in between.
func Watch(ctx context.Context, api discovery.DiscoveryInterface, resources []schema.GroupVersionResource, period time.Duration,
	tell func(schema.GroupVersionResource)) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var told []schema.GroupVersionResource
	for {
		// What could not be asked is asked again next time.
		if missing, err := WithoutStatus(api, resources); err == nil {
			for _, resource := range missing {
				if !slices.Contains(told, resource) {
					tell(resource)
				}
			}
			told = missing
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Name is the name of the definition of a resource.
func Name(resource schema.GroupVersionResource) string {
	return resource.Resource + "." + resource.Group
}

// Reference names the definition of a resource in an Event.
func Reference(resource schema.GroupVersionResource) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: Name(resource)}
}

// Object is the definition of a resource, as far as an Event needs it.
func Object(resource schema.GroupVersionResource) *metav1.PartialObjectMetadata {
	reference := Reference(resource)
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: reference.Name},
	}
}

// Message says what the lack means, and how it is mended.
func Message(resource schema.GroupVersionResource) string {
	return fmt.Sprintf("the definition %s has no subresource status; apply Hekla's definition (installer/crds) to mend it", Name(resource))
}
