package workload

import (
	"context"
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

// missing says that an object which a job or Workload names does not exist.
type missing string

// Error is the sentence.
func (m missing) Error() string { return string(m) }

// get reads an object that a job or Workload names. The error is [missing] if it does not exist. That is no sign that
// the job is gone, so the error of the API server is not in the one that is returned. Of those that do exist it names
// the one that may have been meant.
func (l lookup) get(kind, name string, into client.Object, all client.ObjectList) error {
	err := l.client.Get(l.ctx, client.ObjectKey{Name: name}, into)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %s %q: %s", kind, name, err.Error())
	}
	sentence := fmt.Sprintf("there is no %s %s", kind, name)
	if l.client.List(l.ctx, all) == nil {
		var known []string
		_ = meta.EachListItem(all, func(o runtime.Object) error { // which fails only if what is called does
			known = append(known, o.(client.Object).GetName())
			return nil
		})
		if meant := similar.Nearest(name, known); meant != "" {
			sentence += fmt.Sprintf("; did you mean %s?", meant)
		}
	}
	return missing(sentence)
}
