package admission

import (
	"cmp"
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/admission/queuetree"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/scheduling/validation"
)

// defaultPodGroup puts a PodGroup that has not chosen a queue into that of its namespace. So does an update that takes
// its queue away: some operators write again and again the spec that they made it with. Other updates leave a PodGroup
// where it is.
func defaultPodGroup(ctx context.Context, s *server, asked change[*scheduling.PodGroup]) error {
	group := asked.after
	if asked.operation == admissionv1.Update && queueOf(asked.before) == queueOf(group) {
		return nil
	}
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

// queueOf is the queue of a PodGroup.
func queueOf(group *scheduling.PodGroup) string {
	return cmp.Or(group.Spec.Queue, scheduling.DefaultQueue)
}

// judgePodGroup says what is wrong with a PodGroup.
func judgePodGroup(ctx context.Context, _ *server, from client.Reader, asked change[*scheduling.PodGroup]) (ruling, error) {
	var said ruling
	path := field.NewPath("spec")
	said.refuse(validation.ValidatePodGroup(asked.after)...)
	queues, err := queuetree.List(ctx, from)
	if err != nil {
		return ruling{}, err
	}
	if problem := takesWork(queues, "PodGroup", queueOf(asked.after), asked.after.Namespace, path.Child("queue")); problem != nil {
		said.refuse(problem)
	}
	return said, nil
}
