package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// maxDepth is how many owners above an object are looked for: a pod of a Ray job has three.
const maxDepth = 5

// tops are kinds that a user makes, or that hardly anything else makes: their owners are not looked for.
var tops = []schema.GroupKind{session.JobKind.GroupKind(), batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), {Kind: "Node"}}

// Name is what an object is called in a list of jobs: its kind and name. Jobs of Volcano are vcjob, as kubectl has
// them, because Job is that of batch/v1.
func Name(kind schema.GroupKind, name string) string {
	if kind == session.JobKind.GroupKind() {
		return "vcjob/" + name
	}
	return kind.Kind + "/" + name
}

// Of is the owner of an object that controls it, or the first one; nil if it has none.
func Of(object metav1.Object) *metav1.OwnerReference {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller
	}
	if owners := object.GetOwnerReferences(); len(owners) > 0 {
		return &owners[0]
	}
	return nil
}

// KindOf is the kind of an owner.
func KindOf(owner *metav1.OwnerReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
}

// Chain finds the objects at the top. It reads each kind once, in the namespaces of a scope.
type Chain struct {
	client client.Reader
	scope  string // "" for all namespaces
	lists  map[schema.GroupVersionKind]map[types.UID]*metav1.PartialObjectMetadata
}

// NewChain returns one for a namespace, or for all if it is "".
func NewChain(c client.Reader, namespace string) *Chain {
	return &Chain{client: c, scope: namespace, lists: map[schema.GroupVersionKind]map[types.UID]*metav1.PartialObjectMetadata{}}
}

// Top is the last owner above an object that can be read, and all UIDs on the way there; nil if it has none.
func (c *Chain) Top(ctx context.Context, object metav1.Object) (top *metav1.OwnerReference, passed []types.UID) {
	for range maxDepth {
		owner := Of(object)
		if owner == nil {
			return top, passed
		}
		top, passed = owner, append(passed, owner.UID)
		kind := KindOf(owner)
		if slices.Contains(tops, kind.GroupKind()) {
			return top, passed
		}
		next := c.list(ctx, kind)[owner.UID]
		if next == nil {
			return top, passed
		}
		object = next
	}
	return top, passed
}

// list reads the metadata of a kind; none if that fails.
func (c *Chain) list(ctx context.Context, kind schema.GroupVersionKind) map[types.UID]*metav1.PartialObjectMetadata {
	if known, isKnown := c.lists[kind]; isKnown {
		return known
	}
	found := map[types.UID]*metav1.PartialObjectMetadata{}
	c.lists[kind] = found
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if c.client.List(ctx, list, client.InNamespace(c.scope)) != nil {
		return found
	}
	for i := range list.Items {
		found[list.Items[i].UID] = &list.Items[i]
	}
	return found
}

// Job is what stands for what a user has made: a Workload or a PodGroup.
type Job struct {
	Name       string
	IsWorkload bool
}

// errNone says that nothing stands for an object.
var errNone = errors.New("it has no Workload, no PodGroup, and no pods of one")

// Find returns what stands for an object of a kind: Workloads first, then PodGroups, the oldest first, then those of
// its pods. There is at least one, or an error.
func Find(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace, name string) ([]Job, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, err
	}
	chain, uid := NewChain(c, namespace), object.UID
	isOf := func(o metav1.Object) bool {
		_, passed := chain.Top(ctx, o)
		return slices.Contains(passed, uid)
	}
	byAge := func(a, b metav1.Object) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.GetName(), b.GetName()))
	}
	workloads := &v1beta2.WorkloadList{}
	if err := c.List(ctx, workloads, client.InNamespace(namespace)); err == nil { // without the kinds of Kueue there are none
		slices.SortFunc(workloads.Items, func(a, b v1beta2.Workload) int { return byAge(&a, &b) })
		var found []Job
		for i := range workloads.Items {
			if isOf(&workloads.Items[i]) {
				found = append(found, Job{workloads.Items[i].Name, true})
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	groups := &scheduling.PodGroupList{}
	if err := c.List(ctx, groups, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	slices.SortFunc(groups.Items, func(a, b scheduling.PodGroup) int { return byAge(&a, &b) })
	var found []Job
	for i := range groups.Items {
		if g := &groups.Items[i]; isOf(g) || g.UID == uid {
			found = append(found, Job{Name: g.Name})
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	return findByPods(ctx, c, namespace, isOf)
}

// findByPods returns the PodGroups that the pods of an object name.
func findByPods(ctx context.Context, c client.Reader, namespace string, isOf func(metav1.Object) bool) ([]Job, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var found []Job
	for i := range pods.Items {
		group := pods.Items[i].Annotations[scheduling.KubeGroupNameAnnotationKey]
		if group != "" && isOf(&pods.Items[i]) && !slices.Contains(found, Job{Name: group}) {
			found = append(found, Job{Name: group})
		}
	}
	if len(found) == 0 {
		return nil, errNone
	}
	return found, nil
}

// Split reads TYPE/NAME.
func Split(text string) (kind, name string, err error) {
	kind, name, isPair := strings.Cut(text, "/")
	if !isPair || kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is not TYPE/NAME, such as job/train or raycluster/big", text)
	}
	return kind, name, nil
}
