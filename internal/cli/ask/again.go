package ask

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/owner"
	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// A job that is tried although it exists needs another name, which ends with again and is at most maxName long: pods
// have it as the value of a label.
const (
	again   = "-again"
	maxName = 63
)

var (
	workloadKind = v1beta2.SchemeGroupVersion.WithKind("Workload")
	podsGroup    = scheduling.KubeGroupNameAnnotationKey
)

// resubmitted is the metadata of an object as if it were submitted once more, without what the API server, controllers
// and the scheduler have written.
func resubmitted(o metav1.Object) metav1.ObjectMeta {
	name := o.GetName()
	annotations := maps.Clone(o.GetAnnotations())
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, scheduling.PromiseRecordKey, scheduling.EvictionRecordKey, scheduling.StandInsKey, podsGroup} {
		delete(annotations, key)
	}
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name[:min(len(name), maxName-len(again))] + again, Labels: o.GetLabels(), Annotations: annotations}
}

// existing is a job that is tried once more.
type existing struct {
	*asker
	client          client.Client
	flags           *replayFlags
	namespace, name string
	text            string // TYPE/NAME, as the user names it
}

// tryAgain says what would happen if what stands for an object were submitted once more now, next to what is there.
func tryAgain(ctx context.Context, a *asker, f *replayFlags, kind, name string) error {
	c, err := a.session.Client()
	if err != nil {
		return err
	}
	namespace, err := a.session.Namespace()
	if err != nil {
		return err
	}
	e := &existing{asker: a, client: c, flags: f, namespace: namespace, name: name, text: kind + "/" + name}
	for _, known := range whyKinds { // some of their short names are not those of the API server
		switch {
		case !known.isCalled(kind):
		case known.use == "job":
			return e.job(ctx)
		case known.use == "workload":
			return e.workload(ctx, name)
		}
	}
	resolved, isNamespaced, err := a.session.KindFor(kind)
	switch {
	case err != nil:
		return err
	case !isNamespaced:
		return fmt.Errorf("a %s is no job; jobs can be tried by their names, and queues by --filename", resolved.Kind)
	case resolved.GroupKind() == workloadKind.GroupKind():
		return e.workload(ctx, name)
	case resolved.GroupKind() == session.JobKind.GroupKind():
		return e.job(ctx)
	}
	return e.owned(ctx, resolved)
}

// job tries a Job of Volcano, or, if there is none of the name, one of batch/v1.
func (e *existing) job(ctx context.Context) error {
	job := &batch.Job{}
	err := e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.name}, job)
	switch {
	case err == nil:
		return e.volcano(ctx, job)
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return e.session.Explain(err)
	}
	other := &batchv1.Job{}
	if e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.name}, other) == nil {
		return e.owned(ctx, batchv1.SchemeGroupVersion.WithKind("Job"))
	}
	return fmt.Errorf("%w; %q lists the jobs there are", e.session.Explain(err), e.session.Program+" jobs -n "+e.namespace)
}

// volcano tries a Job of Volcano: all pods that it may have. One in a LocalQueue has a Workload.
func (e *existing) volcano(ctx context.Context, job *batch.Job) error {
	if job.Labels[v1beta2.QueueNameLabel] != "" {
		return e.owned(ctx, session.JobKind)
	}
	wanted, err := e.submission(ctx, &batch.Job{ObjectMeta: resubmitted(job), Spec: job.Spec})
	if err != nil {
		return err
	}
	return submit(ctx, e.asker, wanted, resubmitted(job).Name, e.next(e.namespace))
}

// next is what to type after an answer: it says how the one that is there is.
func (e *existing) next(namespace string) string {
	return fmt.Sprintf("%s why %s -n %s", e.session.Program, e.text, namespace)
}

// owned tries the first of what stands for an object.
func (e *existing) owned(ctx context.Context, kind schema.GroupVersionKind) error {
	found, err := owner.Find(ctx, e.client, kind, e.namespace, e.name)
	if err != nil {
		return fmt.Errorf("%s: %w", owner.Name(kind.GroupKind(), e.name), e.session.Explain(err))
	}
	if found[0].IsWorkload {
		return e.workload(ctx, found[0].Name)
	}
	return e.group(ctx, found[0].Name)
}

// workload tries a Workload.
func (e *existing) workload(ctx context.Context, name string) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(workloadKind)
	if err := e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, o); err != nil {
		return e.session.Explain(err)
	}
	submitted := &unstructured.Unstructured{}
	submitted.SetGroupVersionKind(workloadKind)
	meta := resubmitted(o)
	submitted.SetNamespace(meta.Namespace)
	submitted.SetName(meta.Name)
	submitted.SetLabels(meta.Labels)
	submitted.SetAnnotations(meta.Annotations)
	spec, _, err := unstructured.NestedMap(o.Object, "spec")
	if err != nil {
		return err
	}
	delete(spec, "active") // one that was stopped is not when it is submitted
	submitted.Object["spec"] = spec
	snap, err := e.live(ctx)
	if err != nil {
		return err
	}
	return e.tryQueued(ctx, e.flags, e.text, e.next, snap, submitted)
}

// group tries a PodGroup with its pods, or the Job of Volcano that it belongs to.
func (e *existing) group(ctx context.Context, name string) error {
	g := &scheduling.PodGroup{}
	if err := e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, g); err != nil {
		return e.session.Explain(err)
	}
	if by := owner.Of(g); by != nil && owner.KindOf(by).GroupKind() == session.JobKind.GroupKind() {
		job := &batch.Job{}
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: by.Name}, job); err != nil {
			return e.session.Explain(err)
		}
		return e.volcano(ctx, job)
	}
	pods := &corev1.PodList{}
	if err := e.client.List(ctx, pods, client.InNamespace(e.namespace)); err != nil {
		return e.session.Explain(err)
	}
	// Pods that leave or have failed are left out: others come in their place.
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Annotations[podsGroup] != name || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed
	})
	wanted := &api.Submission{PodGroup: &scheduling.PodGroup{ObjectMeta: resubmitted(g), Spec: g.Spec}}
	for i := range pods.Items {
		pod := &corev1.Pod{ObjectMeta: resubmitted(&pods.Items[i]), Spec: pods.Items[i].Spec}
		pod.Name, pod.Spec.NodeName = fmt.Sprintf("%s-%d", wanted.PodGroup.Name, i), ""
		wanted.Pods = append(wanted.Pods, pod)
	}
	return submit(ctx, e.asker, wanted, wanted.PodGroup.Name, e.next(e.namespace))
}
