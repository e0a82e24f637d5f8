package jobs

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/benchmark/testbed"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// admitAll admits every PodGroup of a namespace, as the scheduler does when there is room. The function that it returns
// ends that and says what went wrong.
func (b *bench) admitAll(ctx context.Context, namespace string) (end func() error, err error) {
	groups := b.Clients.Batch.SchedulingV1beta1().PodGroups(namespace)
	list, err := groups.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var patches errgroup.Group
	patches.SetLimit(testbed.Creators)
	admitted := []byte(fmt.Sprintf(`{"status":{"phase":%q}}`, schedulingv1beta1.PodGroupInqueue))
	stop, err := testbed.Watch(ctx, list.ResourceVersion, groups.Watch, func(event watch.Event) {
		group, isGroup := event.Object.(*schedulingv1beta1.PodGroup)
		if !isGroup || event.Type != watch.Added {
			return
		}
		patches.Go(func() error {
			_, err := groups.Patch(ctx, group.Name, types.MergePatchType, admitted, metav1.PatchOptions{}, "status")
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		stop()
		if err := patches.Wait(); err != nil {
			return fmt.Errorf("admit the PodGroups: %w", err)
		}
		return nil
	}, nil
}

// removeJobs deletes everything of a namespace and returns when it is gone.
func (b *bench) removeJobs(ctx context.Context, namespace string) error {
	pods := b.Clients.Core.CoreV1().Pods(namespace)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	err := testbed.UntilGone(ctx, func(ctx context.Context) (left int, err error) {
		err = errors.Join(
			b.Clients.Batch.BatchV1alpha1().Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			b.Clients.Batch.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			pods.DeleteCollection(ctx, now, metav1.ListOptions{}))
		if err != nil {
			return 0, err
		}
		list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	})
	if err != nil {
		return fmt.Errorf("remove the pods: %w", err)
	}
	return nil
}
