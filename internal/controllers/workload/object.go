package workload

import (
	"context"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// lookup finds the objects that jobs and Workloads name, by a client.
type lookup struct {
	ctx    context.Context
	client client.Client
}

var _ queueing.Lookup = lookup{}

func (r *writer) lookup(ctx context.Context) lookup { return lookup{ctx, r.client} }

// WorkloadPriorityClass implements [queueing.Lookup].
func (l lookup) WorkloadPriorityClass(name string) (*v1beta2.WorkloadPriorityClass, error) {
	found := &v1beta2.WorkloadPriorityClass{}
	return found, l.get("WorkloadPriorityClass", name, found)
}

// PriorityClass implements [queueing.Lookup].
func (l lookup) PriorityClass(name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		found := &schedulingv1.PriorityClass{}
		return found, l.get("PriorityClass", name, found)
	}
	all := &schedulingv1.PriorityClassList{}
	if err := l.client.List(l.ctx, all); err != nil {
		return nil, fmt.Errorf("listing PriorityClasses: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].GlobalDefault {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// Flavor implements [queueing.Lookup].
func (l lookup) Flavor(name string) (*v1beta2.ResourceFlavor, error) {
	found := &v1beta2.ResourceFlavor{}
	return found, l.get("ResourceFlavor", name, found)
}

// get reads an object that a job or Workload names. That it does not exist is no sign that the job is gone, so the
// error of the API server is not in the one that is returned.
func (l lookup) get(kind, name string, into client.Object) error {
	if err := l.client.Get(l.ctx, client.ObjectKey{Name: name}, into); err != nil {
		return fmt.Errorf("reading %s %q: %s", kind, name, err.Error())
	}
	return nil
}
