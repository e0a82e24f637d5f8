package job

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/podspec"
)

// given returns what the pods of tasks of a namespace will be, with what its LimitRanges and their RuntimeClasses add.
func given(ctx context.Context, api client.Reader, namespace string) (func(*batch.TaskSpec) *corev1.PodSpec, error) {
	list := &corev1.LimitRangeList{}
	if err := api.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	all := podspec.Given{}
	for i := range list.Items {
		all.LimitRanges = append(all.LimitRanges, &list.Items[i])
	}
	return func(task *batch.TaskSpec) *corev1.PodSpec {
		of := all
		if name := task.Template.Spec.RuntimeClassName; name != nil {
			class := &nodev1.RuntimeClass{}
			if api.Get(ctx, client.ObjectKey{Name: *name}, class) == nil { // pods of one that is missing are refused
				of.RuntimeClass = class
			}
		}
		return podspec.Completed(&task.Template.Spec, of)
	}, nil
}

// wakeLimited wakes the Jobs of the namespace of a LimitRange whose pods do not exist yet.
func wakeLimited(api client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) (requests []reconcile.Request) {
		list := &batch.JobList{}
		if api.List(ctx, list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		for i := range list.Items {
			if s := &list.Items[i].Status; s.State.Phase == batch.Pending && s.TaskStatusCount == nil {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: list.Items[i].Name}})
			}
		}
		return requests
	}
}
