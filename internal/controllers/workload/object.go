package workload

import (
	"context"
	"errors"
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/similar"
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
	return found, l.get("WorkloadPriorityClass", name, found, &v1beta2.WorkloadPriorityClassList{})
}

// PriorityClass implements [queueing.Lookup].
func (l lookup) PriorityClass(name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		found := &schedulingv1.PriorityClass{}
		return found, l.get("PriorityClass", name, found, &schedulingv1.PriorityClassList{})
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
	return found, l.get("ResourceFlavor", name, found, &v1beta2.ResourceFlavorList{})
}

// get reads an object that a job or Workload names. That it does not exist is no sign that the job is gone, so the
// error of the API server is not in the one that is returned. Of those that do exist it names the one that may have
// been meant.
func (l lookup) get(kind, name string, into client.Object, all client.ObjectList) error {
	err := l.client.Get(l.ctx, client.ObjectKey{Name: name}, into)
	if err == nil {
		return nil
	}
	message := fmt.Sprintf("reading %s %q: %s", kind, name, err.Error())
	if apierrors.IsNotFound(err) && l.client.List(l.ctx, all) == nil {
		var known []string
		_ = meta.EachListItem(all, func(o runtime.Object) error { // which fails only if what is called does
			known = append(known, o.(client.Object).GetName())
			return nil
		})
		if meant := similar.Nearest(name, known); meant != "" {
			message += fmt.Sprintf("; did you mean %s?", meant)
		}
	}
	return errors.New(message)
}
