package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// listPage is how many objects are asked for at a time. An answer that needs more of them than can be read in the time
// there is for it is not given.
const listPage = 1000

// podsIn returns the names of the pods that hold room in a queue: that have a node, and have not finished. The status
// of the queue is what the scheduler knew a moment ago, which is too old for who deletes a queue right after its last
// Job. So the pods themselves are looked for, by the PodGroups that are in the queue; there is no index of either in
// this process, because the question is rare and they are many.
func podsIn(ctx context.Context, live client.Reader, queue string) ([]string, error) {
	members, err := groupsIn(ctx, live, queue)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, namespace := range sortedKeys(members) {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		options := []client.ListOption{client.InNamespace(namespace), client.Limit(listPage), client.MatchingFieldsSelector{Selector: fields.AndSelectors(
			fields.OneTermNotEqualSelector("spec.nodeName", ""),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
			fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
		)}}
		err := eachPage(ctx, live, pods, options, func() {
			for i := range pods.Items {
				annotations := pods.Items[i].Annotations
				group := cmp.Or(annotations[scheduling.KubeGroupNameAnnotationKey], annotations[scheduling.VolcanoGroupNameAnnotationKey])
				if members[namespace][group] {
					found = append(found, namespace+"/"+pods.Items[i].Name)
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
		}
	}
	slices.Sort(found)
	return found, nil
}

// groupsIn returns the names of the PodGroups in a queue, by namespace.
func groupsIn(ctx context.Context, live client.Reader, queue string) (map[string]map[string]bool, error) {
	names := map[string]map[string]bool{}
	groups := &scheduling.PodGroupList{}
	err := eachPage(ctx, live, groups, []client.ListOption{client.Limit(listPage)}, func() {
		for i := range groups.Items {
			if group := &groups.Items[i]; cmp.Or(group.Spec.Queue, scheduling.DefaultQueue) == queue {
				if names[group.Namespace] == nil {
					names[group.Namespace] = map[string]bool{}
				}
				names[group.Namespace][group.Name] = true
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing PodGroups: %w", err)
	}
	return names, nil
}

// eachPage reads a list page by page.
func eachPage(ctx context.Context, live client.Reader, list client.ObjectList, options []client.ListOption, look func()) error {
	for token := ""; ; {
		if err := live.List(ctx, list, append(slices.Clone(options), client.Continue(token))...); err != nil {
			return err
		}
		look()
		if token = list.GetContinue(); token == "" {
			return nil
		}
		list.SetContinue("")
	}
}
