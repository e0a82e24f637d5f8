package queueing

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// served are the kinds of which Workloads are made here, of them or of their pods.
func served() []schema.GroupKind {
	all := []schema.GroupKind{{Group: corev1.GroupName, Kind: "Pod"}}
	for _, kind := range kinds {
		all = append(all, kind.GroupKind())
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		all = append(all, schema.GroupKind{Group: appsv1.GroupName, Kind: kind})
	}
	return all
}

// servable are the others of which Kueue makes Workloads.
var servable = []schema.GroupKind{
	{Group: "jobset.x-k8s.io", Kind: "JobSet"},
	{Group: "kubeflow.org", Kind: "JAXJob"},
	{Group: "kubeflow.org", Kind: "MPIJob"},
	{Group: "kubeflow.org", Kind: "PaddleJob"},
	{Group: "kubeflow.org", Kind: "PyTorchJob"},
	{Group: "kubeflow.org", Kind: "TFJob"},
	{Group: "kubeflow.org", Kind: "XGBoostJob"},
	{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"},
	{Group: "ray.io", Kind: "RayCluster"},
	{Group: "ray.io", Kind: "RayJob"},
	{Group: "ray.io", Kind: "RayService"},
	{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"},
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"},
	{Group: "workload.codeflare.dev", Kind: "AppWrapper"},
}

// KindOf is the kind that a reference names.
func KindOf(owner *metav1.OwnerReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
}

// IsServed reports whether a queue here takes the objects of a kind.
func IsServed(kind schema.GroupVersionKind) bool { return slices.Contains(served(), kind.GroupKind()) }

// IsServable reports whether a queue takes the objects of a kind, here or in Kueue, or by the configuration: external
// are the kinds whose own controllers follow Workloads.
func IsServable(kind schema.GroupVersionKind, external []schema.GroupVersionKind) bool {
	return IsServed(kind) || slices.Contains(servable, kind.GroupKind()) || slices.Contains(external, kind)
}

// NotServable is an expression of the API server that is true of an object whose controller is of no kind for which
// [IsServable] is true.
func NotServable(external []schema.GroupVersionKind) string {
	var kinds []string
	for _, kind := range slices.Concat(served(), servable) {
		kinds = append(kinds, strconv.Quote(kind.Group+"/"+kind.Kind))
	}
	for _, kind := range external {
		kinds = append(kinds, strconv.Quote(kind.Group+"/"+kind.Kind))
	}
	return fmt.Sprintf("!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && "+
		"(o.apiVersion.contains('/') ? o.apiVersion.split('/')[0] : '') + '/' + o.kind in [%s])", strings.Join(kinds, ", "))
}

// MostOwners bounds how many owners of an object are followed.
const MostOwners = 10

// ReadOwner reads the metadata of an owner, nil if there is none of its UID.
func ReadOwner(ctx context.Context, reader client.Reader, namespace string, owner *metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, object)
	switch {
	case apierrors.IsNotFound(err), err == nil && object.UID != owner.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the owner %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	}
	return object, nil
}

// IsUnreadable reports whether an error says that owners of a kind cannot be read: this process may not read them, or
// the API server does not know the kind. Trying again does not help.
func IsUnreadable(err error) bool { return apierrors.IsForbidden(err) || meta.IsNoMatchError(err) }

const (
	// keptOwners is how many owners are remembered, and keptFor how long: who owns an object hardly ever changes.
	keptOwners = 4096
	keptFor    = 10 * time.Minute
)

// OwnerFinder follows the owners of objects.
type OwnerFinder struct {
	reader client.Reader         // of the API server
	above  *cache.LRUExpireCache // by the UID of an owner, the reference to its own; nil for none
}

// NewOwnerFinder returns a finder that reads what it may of the API server.
func NewOwnerFinder(reader client.Reader) *OwnerFinder {
	return &OwnerFinder{reader: reader, above: cache.NewLRUExpireCache(keptOwners)}
}

// Top is the highest owner of an object that a queue takes or could take, nil if there is none.
func (f *OwnerFinder) Top(ctx context.Context, object metav1.Object, external []schema.GroupVersionKind) (top *metav1.OwnerReference, err error) {
	owner := metav1.GetControllerOfNoCopy(object)
	for range MostOwners {
		if owner == nil {
			break
		}
		if IsServable(KindOf(owner), external) {
			top = owner
		}
		if owner, err = f.ownerOf(ctx, object.GetNamespace(), owner); err != nil {
			return top, err
		}
	}
	return top, nil
}

// Labels are those of an owner, nil if it does not exist or may not be read.
func (f *OwnerFinder) Labels(ctx context.Context, namespace string, owner *metav1.OwnerReference) (map[string]string, error) {
	object, err := f.read(ctx, namespace, owner)
	if object == nil {
		return nil, err
	}
	return object.Labels, nil
}

// read reads an owner, nil if it does not exist or may not be read.
func (f *OwnerFinder) read(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*metav1.PartialObjectMetadata, error) {
	object, err := ReadOwner(ctx, f.reader, namespace, owner)
	if IsUnreadable(err) {
		return nil, nil
	}
	return object, err
}

// ownerOf is the controller of an owner, nil if it has none or may not be read.
func (f *OwnerFinder) ownerOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	if owner.Kind == "CronJob" && owner.APIVersion == batchv1.SchemeGroupVersion.String() {
		return nil, nil // users make them
	}
	if known, is := f.above.Get(owner.UID); is {
		return known.(*metav1.OwnerReference), nil
	}
	object, err := f.read(ctx, namespace, owner)
	if err != nil {
		return nil, err
	}
	var above *metav1.OwnerReference
	if object != nil {
		above = metav1.GetControllerOf(object)
	}
	f.above.Add(owner.UID, above, keptFor)
	return above, nil
}
