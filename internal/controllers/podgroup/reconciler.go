package podgroup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Reasons of the Events on a pod.
const (
	// ReasonInvalidAnnotation: an annotation of the pod, its owner or its namespace cannot be read.
	ReasonInvalidAnnotation = "InvalidAnnotation"

	// ReasonOwnerNotRead: the owner of the pod is of a kind that the controllers may not read.
	ReasonOwnerNotRead = "OwnerNotRead"

	// ReasonPodGroupError: the PodGroup of the pod could not be made or changed.
	ReasonPodGroupError = "PodGroupError"
)

// Reconciler updates one PodGroup at a time for the pods that need it. Add registers it.
type Reconciler struct {
	client            client.Client
	live              client.Reader
	events            events.EventRecorder
	inheritFromOwners bool
	readsYuniKorn     bool
	defaultQueue      string
	workloads         *workload.Holder
}

// Reconcile is called for the PodGroup of a lone pod or of the pods of one controller. While one of these pods is
// alive, it creates the PodGroup and makes every such pod name it. When no pod is left it deletes the PodGroup.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pods, err := r.members(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	group := &scheduling.PodGroup{}
	err = r.client.Get(ctx, request.NamespacedName, group)
	if apierrors.IsNotFound(err) {
		group = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if len(pods) == 0 {
		return work.UnlessConflict(r.remove(ctx, group))
	}
	if group != nil && work.LeavesAlone(r.events, group) {
		return reconcile.Result{}, nil
	}
	var joining []*corev1.Pod
	for _, pod := range pods {
		if isAlive(pod) && pod.Annotations[scheduling.KubeGroupNameAnnotationKey] == "" {
			joining = append(joining, pod)
		}
	}
	isApplication := groupbuilder.ApplicationGroupName(pods[0]) == request.Name
	model := newest(pods)
	if isApplication {
		model = first(pods)
	}
	if model == nil || (len(joining) == 0 && group != nil && !hasMinimum(group)) {
		return reconcile.Result{}, nil
	}
	roleOf, name := func(*corev1.Pod) string { return "" }, request.Name
	if isApplication {
		roleOf, err = r.ensureApplication(ctx, model, pods, joining, group)
	} else {
		name, err = r.ensure(ctx, request.Name, model, pods, group, len(joining) > 0)
	}
	if err != nil {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return reconcile.Result{}, nil
		}
		r.events.Eventf(model, nil, corev1.EventTypeWarning, ReasonPodGroupError, "Group", "%.1000s", err.Error())
		return reconcile.Result{}, err
	}
	for _, pod := range joining {
		r.tellSchedulingGroup(pod)
	}
	return work.UnlessConflict(r.join(ctx, joining, name, roleOf))
}

// members returns the pods that the PodGroup of this name belongs to, finished ones included. Those of Workloads belong
// to none while these are served. They are the cache's own and not to be changed.
func (r *Reconciler) members(ctx context.Context, group types.NamespacedName) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(group.Namespace),
		client.MatchingFields{podsByGroup: group.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	areServed := r.workloads.AreServed()
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		if !areServed || !isQueued(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// isAlive says whether the pod may still want to be scheduled or is running.
func isAlive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// newest returns the pod by whose spec the PodGroup is made: the last one created that is alive, since in a roll-out it
// carries the template that will stay. It is nil when none is alive.
func newest(pods []*corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for _, pod := range pods {
		if isAlive(pod) && (last == nil || later(pod, last) > 0) {
			last = pod
		}
	}
	return last
}

func later(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// ensure makes the PodGroup as the pod wants it, or brings the present one up to date, and returns its name: it may be
// that of an owner above the pod's controller. What is wrong with annotations is told only if pods are joining.
func (r *Reconciler) ensure(ctx context.Context, name string, model *corev1.Pod, pods []*corev1.Pod, current *scheduling.PodGroup, isJoining bool) (string, error) {
	owner, err := r.owner(ctx, model)
	if err != nil {
		return "", err
	}
	if owner.object == nil && owner.problem == "" && current != nil && !isJoining {
		// It is being deleted, and what it asked for is not known any more.
		return name, nil
	}
	of, err := r.gangOf(ctx, model, pods, owner)
	switch {
	case err != nil:
		return "", err
	case of.name != name && !isJoining:
		return name, nil // a user has put the pods there
	case of.name != name:
		key := types.NamespacedName{Namespace: model.Namespace, Name: of.name}
		if pods, err = r.withMembers(ctx, key, pods); err != nil {
			return "", err
		}
		current = &scheduling.PodGroup{}
		if err = r.client.Get(ctx, key, current); apierrors.IsNotFound(err) {
			current = nil
		} else if err != nil {
			return "", err
		}
	}
	around, err := r.surroundings(ctx, model, owner, &of)
	if err != nil {
		return "", err
	}
	wanted, problems := groupbuilder.PodGroup(model, around)
	note := ""
	if of.maker != nil {
		of.join(wanted, pods)
	} else if note, err = r.lower(ctx, wanted, model, pods, owner.object); err != nil {
		return "", err
	}
	if isJoining {
		r.tell(model, owner.problem, slices.Concat(of.problems, problems, []string{note})...)
	}
	if current == nil {
		if current, err = r.create(ctx, wanted); err != nil || current == nil {
			return of.name, err
		}
	}
	if !isOurs(current) {
		return "", belongsToOthers(current)
	}
	return of.name, r.update(ctx, current, wanted)
}

// update brings a PodGroup up to date.
func (r *Reconciler) update(ctx context.Context, current, wanted *scheduling.PodGroup) error {
	updated := groupbuilder.Renew(current, wanted)
	if apiequality.Semantic.DeepEqual(current, updated) {
		return nil
	}
	return r.client.Patch(ctx, updated, client.MergeFrom(current))
}

// tell shows Events on the pod by which a PodGroup is made.
func (r *Reconciler) tell(model *corev1.Pod, ownerProblem string, problems ...string) {
	if ownerProblem != "" {
		r.events.Eventf(model, nil, corev1.EventTypeNormal, ReasonOwnerNotRead, "Group", "%.1000s", ownerProblem)
	}
	for _, problem := range problems {
		if problem != "" {
			r.events.Eventf(model, nil, corev1.EventTypeWarning, ReasonInvalidAnnotation, "Group", "%.1000s", problem)
		}
	}
}

// create creates a PodGroup. If there is one of its name already, it returns that one.
func (r *Reconciler) create(ctx context.Context, wanted *scheduling.PodGroup) (existing *scheduling.PodGroup, err error) {
	if err := r.client.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	existing = &scheduling.PodGroup{}
	return existing, r.live.Get(ctx, client.ObjectKeyFromObject(wanted), existing)
}

func belongsToOthers(group *scheduling.PodGroup) error {
	return fmt.Errorf("PodGroup %s/%s exists and belongs to something else", group.Namespace, group.Name)
}

// isOurs reports whether the controller of the PodGroup is the object in its name, or the PodGroup is that of an
// application.
func isOurs(group *scheduling.PodGroup) bool {
	owner := metav1.GetControllerOfNoCopy(group)
	if owner == nil {
		return groupbuilder.IsApplicationGroup(group)
	}
	return group.Name == scheduling.PodGroupNamePrefix+string(owner.UID)
}

// remove deletes the PodGroup if there is one and it is ours, unless it changes in between.
func (r *Reconciler) remove(ctx context.Context, group *scheduling.PodGroup) error {
	if group == nil || !isOurs(group) || group.DeletionTimestamp != nil {
		return nil
	}
	err := r.client.Delete(ctx, group, client.Preconditions{UID: &group.UID, ResourceVersion: &group.ResourceVersion})
	return client.IgnoreNotFound(err)
}

// owner is what was read of the controller of a pod.
type owner struct {
	// object is nil if there is no controller, or if it is another one by now, or could not be read, for which problem
	// is a sentence.
	object  *metav1.PartialObjectMetadata
	problem string
	// deadline is the activeDeadlineSeconds of a batch/v1 Job, nil if there is none.
	deadline *int64
}

// owner reads the pod's controller, if its annotations are to be inherited or the pod has a minimum.
//
// It is asked for live: it is needed once per roll-out, and a cache of every ReplicaSet of the cluster would cost more
// than it saves.
func (r *Reconciler) owner(ctx context.Context, pod *corev1.Pod) (found owner, err error) {
	reference := metav1.GetControllerOfNoCopy(pod)
	_, hasMinimum := pod.Annotations[scheduling.GroupMinMemberAnnotationKey]
	if reference == nil || !r.inheritFromOwners && !hasMinimum {
		return owner{}, nil
	}
	if reference.APIVersion == batchv1.SchemeGroupVersion.String() && reference.Kind == "Job" {
		found, err = r.readJob(ctx, pod.Namespace, reference)
	} else {
		found.object, err = queueing.ReadOwner(ctx, r.live, pod.Namespace, reference)
	}
	if queueing.IsUnreadable(err) {
		// The right to read all that may own pods is not granted in advance, and most of it has no annotations of ours.
		return owner{problem: fmt.Sprintf("the annotations of its owner do not count: %s", err)}, nil
	}
	return found, err
}

// readJob reads a batch/v1 Job.
func (r *Reconciler) readJob(ctx context.Context, namespace string, reference *metav1.OwnerReference) (owner, error) {
	job := &batchv1.Job{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, job)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != reference.UID:
		return owner{}, nil
	case err != nil:
		return owner{}, fmt.Errorf("reading Job %s/%s: %w", namespace, reference.Name, err)
	}
	return owner{deadline: job.Spec.ActiveDeadlineSeconds, object: &metav1.PartialObjectMetadata{ObjectMeta: job.ObjectMeta,
		TypeMeta: metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind}}}, nil
}

// surroundings are the annotations of the pod's owner, if they are to be inherited, and of its namespace, and the Queue
// that its labels name.
func (r *Reconciler) surroundings(ctx context.Context, pod *corev1.Pod, of owner, in *gang) (groupbuilder.Surroundings, error) {
	var around groupbuilder.Surroundings
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: pod.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return around, fmt.Errorf("reading namespace %s: %w", pod.Namespace, err)
	}
	around.Namespace = namespace.Annotations
	if around.Owner, around.Maker = in.annotations, in.maker; around.Maker == nil {
		around.Deadline = of.deadline
	}
	around.DefaultQueue = r.defaultQueue
	var err error
	around.LabelQueue, around.LabelProblem, err = r.labelQueue(ctx, pod)
	return around, err
}

// maxParallelPatches bounds the requests for one PodGroup on the way at a time.
const maxParallelPatches = 16

// join writes the name of the PodGroup on the pods, and the role of those that have one. It returns the first error,
// after all pods were tried.
func (r *Reconciler) join(ctx context.Context, pods []*corev1.Pod, group string, roleOf func(*corev1.Pod) string) error {
	var patches errgroup.Group
	patches.SetLimit(maxParallelPatches)
	for _, pod := range pods {
		patches.Go(func() error { return r.annotate(ctx, pod, group, roleOf(pod)) })
	}
	return patches.Wait()
}

// annotate writes the name of the PodGroup on one pod, and its role if it has one. The UID in the patch makes it fail
// for a pod that has been replaced under its name; such a pod has no need of it any more.
func (r *Reconciler) annotate(ctx context.Context, pod *corev1.Pod, group, role string) error {
	annotations := map[string]string{scheduling.KubeGroupNameAnnotationKey: group}
	if role != "" {
		annotations[batch.TaskSpecKey] = role
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": annotations}})
	if err == nil {
		target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
		err = r.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	}
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return err
	}
	r.events.Eventf(pod, nil, corev1.EventTypeWarning, ReasonPodGroupError, "Join",
		"writing annotation %s: %.900s", scheduling.KubeGroupNameAnnotationKey, err.Error())
	return fmt.Errorf("pod %s/%s: writing annotation %s: %w",
		pod.Namespace, pod.Name, scheduling.KubeGroupNameAnnotationKey, err)
}
