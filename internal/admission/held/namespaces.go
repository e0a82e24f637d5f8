package held

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Manages reports whether Jobs of a namespace that name no LocalQueue are managed.
func (k Known) Manages(ctx context.Context, reader client.Reader, name string) (bool, error) {
	managed, err := labels.Parse(k.Managed)
	if err != nil || managed.Empty() {
		return err == nil, err
	}
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return managed.Matches(labels.Set(namespace.Labels)), nil
}

// HasDefaultQueue reports whether a namespace has a LocalQueue for jobs that name none. Clusters without the definition
// have none.
func HasDefaultQueue(ctx context.Context, reader client.Reader, namespace string) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1beta2.DefaultLocalQueueName}, &v1beta2.LocalQueue{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
