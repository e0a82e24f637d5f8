package admission

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/admission/queuetree"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/scheduling/validation"
)

// defaultPodGroup puts a PodGroup that has not chosen a queue into that of its namespace.
func defaultPodGroup(ctx context.Context, s *server, asked change[*scheduling.PodGroup]) error {
	group := asked.after
	if group.Spec.Queue != "" && group.Spec.Queue != scheduling.DefaultQueue {
		return nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	name := client.ObjectKey{Name: group.Namespace}
	err := s.cached.Get(ctx, name, namespace)
	if apierrors.IsNotFound(err) {
		err = s.live.Get(ctx, name, namespace)
	}
	if err != nil {
		return err
	}
	group.Spec.Queue = cmp.Or(namespace.Annotations[scheduling.QueueNameAnnotationKey], group.Spec.Queue, scheduling.DefaultQueue)
	return nil
}

// judgePodGroup says what is wrong with a PodGroup.
func judgePodGroup(ctx context.Context, _ *server, from client.Reader, asked change[*scheduling.PodGroup]) (ruling, error) {
	var said ruling
	spec, path := &asked.after.Spec, field.NewPath("spec")
	said.refuse(validation.ValidatePodGroup(asked.after)...)
	queues, err := queuetree.List(ctx, from)
	if err != nil {
		return ruling{}, err
	}
	if problem := takesWork(queues, "PodGroup", cmp.Or(spec.Queue, scheduling.DefaultQueue), asked.after.Namespace, path.Child("queue")); problem != nil {
		said.refuse(problem)
	}
	return said, nil
}
