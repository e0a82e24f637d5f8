package held

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Known is what is known of the workloads of a cluster. The zero value has nothing held back.
type Known struct {
	// IsOn says that the scheduler admits workloads, by its configuration.
	IsOn bool
	// KueueRuns says that Kueue itself runs, and the objects are its own.
	KueueRuns bool
	// HoldsUnnamed says that Jobs which name no LocalQueue are suspended, in namespaces that Managed selects: the text
	// of a selector.
	HoldsUnnamed bool
	Managed      string
	// External are the kinds whose own controllers follow Workloads, each as Kind.version.group, divided by commas.
	External string
	// HaveDefaultQueue says that a namespace has a LocalQueue for jobs that name none.
	HaveDefaultQueue bool
}

// AreAdmitted reports whether our scheduler would admit what is held back.
func (k Known) AreAdmitted() bool { return k.IsOn && !k.KueueRuns }

// Jobs are the conditions under which a Job is looked at: it names a LocalQueue, or there may be one for those that
// name none. Those that another object has made which a queue serves, or could serve, are left out.
func (k Known) Jobs() []admissionregistrationv1.MatchCondition {
	conditions := []admissionregistrationv1.MatchCondition{{Name: "has-no-queued-owner", Expression: queueing.NotServable(k.ExternalKinds())}}
	if k.HaveDefaultQueue || k.HoldsUnnamed {
		return conditions
	}
	return append([]admissionregistrationv1.MatchCondition{isQueued()}, conditions...)
}

// ExternalKinds are the kinds of External.
func (k Known) ExternalKinds() (kinds []schema.GroupVersionKind) {
	for name := range strings.SplitSeq(k.External, ",") {
		if kind, _ := schema.ParseKindArg(name); kind != nil {
			kinds = append(kinds, *kind)
		}
	}
	return kinds
}

// Pods are the conditions under which a pod is looked at: it names a LocalQueue, and no job has made it that keeps its
// pods, nor one that was started with its Workload.
func Pods() []admissionregistrationv1.MatchCondition {
	var jobs []string
	for _, kind := range queueing.AllKinds() {
		is := fmt.Sprintf("o.kind == %q && o.apiVersion == %q", kind.Kind, kind.GroupVersion())
		if !kind.KeepsPods {
			is += fmt.Sprintf(" && object.metadata.?annotations[%q].orValue('') != ''", v1beta2.WorkloadAnnotation)
		}
		jobs = append(jobs, is)
	}
	return []admissionregistrationv1.MatchCondition{isQueued(), {Name: "has-no-started-job", Expression: fmt.Sprintf(
		"!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && (%s))", strings.Join(jobs, " || "))}}
}

func isQueued() admissionregistrationv1.MatchCondition {
	return admissionregistrationv1.MatchCondition{
		Name: "is-queued", Expression: fmt.Sprintf("object.metadata.?labels[%q].orValue('') != ''", v1beta2.QueueNameLabel),
	}
}

// Relabelled are the conditions under which a change of a job or pod is looked at: it names a LocalQueue, or did, and
// one of these labels or annotations differs.
func Relabelled(labels, annotations []string) []admissionregistrationv1.MatchCondition {
	var differs []string
	for _, label := range labels {
		differs = append(differs, fmt.Sprintf("object.metadata.?labels[?%[1]q] != oldObject.metadata.?labels[?%[1]q]", label))
	}
	for _, annotation := range annotations {
		differs = append(differs, fmt.Sprintf("object.metadata.?annotations[?%[1]q] != oldObject.metadata.?annotations[?%[1]q]", annotation))
	}
	return []admissionregistrationv1.MatchCondition{
		{Name: "is-or-was-queued", Expression: fmt.Sprintf("[object, oldObject].exists(o, o.metadata.?labels[?%q].orValue('') != '')", v1beta2.QueueNameLabel)},
		{Name: "is-relabelled", Expression: strings.Join(differs, " || ")},
	}
}

// Finder reads the owners of jobs and pods.
type Finder struct {
	reader client.Reader // of the API server
	owners *queueing.OwnerFinder
}

// NewFinder returns a finder that reads what it may of the API server.
func NewFinder(reader client.Reader) *Finder {
	return &Finder{reader: reader, owners: queueing.NewOwnerFinder(reader)}
}

// IsMade reports whether a Job was made by an object that a queue serves, or could serve.
func (f *Finder) IsMade(ctx context.Context, k Known, job metav1.Object) (bool, error) {
	top, err := f.owners.Top(ctx, job, k.ExternalKinds())
	return top != nil, err
}

// IsByItsOwner reports whether the owner of a pod is queued in its place: it is a job that is queued itself.
func (f *Finder) IsByItsOwner(ctx context.Context, k Known, pod metav1.Object) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	kind := queueing.KindOfOwner(owner)
	if kind == nil || kind.KeepsPods {
		return kind != nil, nil
	}
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(kind.GroupVersionKind)
	if err := f.reader.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}, job); err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", kind.Kind, pod.GetNamespace(), owner.Name, err)
	}
	if job.UID != owner.UID || job.Labels[v1beta2.QueueNameLabel] == "" {
		return false, nil
	}
	isMade, err := f.IsMade(ctx, k, job)
	return !isMade, err
}
