package intake

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/pkg/client/informers/externalversions"
)

// pageSize is how many objects are listed with one request, and pagesAhead how many such lists may wait to be made
// small. So few objects are held as they were decoded at any time.
const pageSize, pagesAhead = 2000, 1

// pages lists a kind in pages, and keeps of each object only what its transformation leaves. By default client-go has
// the API server send each object as an event of its own, which takes both sides more CPU time. Its lists hold all
// objects as they were decoded.
type pages struct{ toolscache.ListWatch }

// IsWatchListSemanticsUnSupported makes the informer list instead of having the objects sent as events.
func (*pages) IsWatchListSemanticsUnSupported() bool { return true }

// listFunc lists objects as the client of a kind does.
type listFunc[L runtime.Object] func(context.Context, metav1.ListOptions) (L, error)

// inPages makes the informer of a kind, which lists so many objects with one request. A list is as new as its first
// request.
func inPages[L runtime.Object](kind runtime.Object, size int, list listFunc[L], follow func(context.Context, metav1.ListOptions) (watch.Interface, error),
	transform toolscache.TransformFunc) toolscache.SharedIndexInformer {
	p := &pages{ListWatch: toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return listPages(ctx, size, options, list, transform)
		},
		WatchFuncWithContext: follow,
	}}
	return toolscache.NewSharedIndexInformerWithOptions(p, kind, toolscache.SharedIndexInformerOptions{
		Indexers: toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}})
}

// listPages lists all objects, transformed. An error of one page is one of the list: the informer begins again.
func listPages[L runtime.Object](ctx context.Context, size int, options metav1.ListOptions, list listFunc[L],
	transform toolscache.TransformFunc) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit, options.Continue = "", "", 0, ""
	all := &metainternalversion.List{}
	one := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := list(ctx, options)
		if err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err == nil && options.Continue == "" { // that of all pages
			all.ResourceVersion = about.GetResourceVersion()
		}
		return page, err
	})
	one.PageSize, one.PageBufferSize = int64(size), pagesAhead
	err := one.EachListItemWithAlloc(ctx, options, func(o runtime.Object) error {
		small, err := transform(o)
		if err == nil {
			all.Items = append(all.Items, small.(runtime.Object))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// listInPages makes the informers of the kinds of which there are most, before anything else asks the factories for
// them.
func listInPages(core informers.SharedInformerFactory, batch externalversions.SharedInformerFactory, size int, transform toolscache.TransformFunc) {
	batch.InformerFor(&schedulingv1beta1.PodGroup{}, func(client versioned.Interface, _ time.Duration) toolscache.SharedIndexInformer {
		groups := client.SchedulingV1beta1().PodGroups(metav1.NamespaceAll)
		return inPages(&schedulingv1beta1.PodGroup{}, size, groups.List, groups.Watch, transform)
	})
	core.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, _ time.Duration) toolscache.SharedIndexInformer {
		pods := client.CoreV1().Pods(metav1.NamespaceAll)
		return inPages(&corev1.Pod{}, size, pods.List, pods.Watch, transform)
	})
	core.InformerFor(&corev1.Node{}, func(client kubernetes.Interface, _ time.Duration) toolscache.SharedIndexInformer {
		nodes := client.CoreV1().Nodes()
		return inPages(&corev1.Node{}, size, nodes.List, nodes.Watch, transform)
	})
}
