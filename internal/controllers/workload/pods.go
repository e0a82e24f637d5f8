package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/queueing/builder"
	"hekla.sh/hekla/internal/queueing/integration"
	"hekla.sh/hekla/internal/queueing/lifecycle"
	"hekla.sh/hekla/internal/queueing/roles"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// podsByGroup is the index of pods that are queued by themselves, by the name of their Workload in front of a letter for its kind.
const podsByGroup = "queuedGroup"

// A group is named by its kind and by the name of its pods' label, or of the pod that is queued alone.
const (
	ofGroup = "group:"
	ofPod   = "pod:"
)

// reasonExcessPods says that a group has more pods than it says.
const reasonExcessPods = "ExcessPods"

// groupNameOf is the group of a pod, "" if it is not queued by itself. Of the pods of a Job of batch/v1 [pods.isByItsJob] says whether they are.
func groupNameOf(object client.Object) string {
	if object.GetLabels()[v1beta2.QueueNameLabel] == "" {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == "Job" && owner.APIVersion == batch.GroupVersion.String() {
		return ""
	}
	if name := object.GetLabels()[v1beta2.PodGroupNameLabel]; name != "" {
		return ofGroup + name
	}
	return ofPod + object.GetName()
}

func groupOfPod(_ context.Context, object client.Object) []reconcile.Request {
	if name := groupNameOf(object); name != "" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
	}
	return nil
}

// groupOfWorkload is the group of a Workload that pods own.
func groupOfWorkload(_ context.Context, object client.Object) []reconcile.Request {
	name := ""
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == "Pod" && owner.APIVersion == corev1.SchemeGroupVersion.String() {
			name = ofGroup + object.GetName()
			if owner.Controller != nil && *owner.Controller {
				name = ofPod + owner.Name
			}
		}
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// pods keeps pods that are queued by themselves, alone or in groups, and their Workloads in step.
type pods struct {
	writer
	live client.Reader // the cache has no whole pods
}

// group is the pods that one Workload is for.
type group struct {
	namespace, name string
	isAlone         bool
	all             []*corev1.Pod // that are not being deleted, the oldest first
	leaving         int           // those that are
	total           int32         // how many there are to be
}

// count is how many pods of the group are in a phase.
func (g *group) count(is func(*corev1.Pod) bool) int32 {
	count := int32(0)
	for _, pod := range g.all {
		if is(pod) {
			count++
		}
	}
	return count
}

func hasSucceeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }
func hasFailed(pod *corev1.Pod) bool    { return pod.Status.Phase == corev1.PodFailed }
func hasEnded(pod *corev1.Pod) bool     { return hasSucceeded(pod) || hasFailed(pod) }
func isRunning(pod *corev1.Pod) bool    { return !hasEnded(pod) && !builder.IsGated(pod) }

// isReady reports whether all containers of a pod are ready, or it has succeeded.
func isReady(pod *corev1.Pod) bool {
	if hasSucceeded(pod) {
		return true
	}
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready })
}

// Reconcile makes the Workload of a group when all of its pods are there, opens their gates when it is admitted, and deletes them when it
// is evicted.
func (r *pods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	g, err := r.read(ctx, request.NamespacedName)
	if err != nil || len(g.all) == 0 {
		return reconcile.Result{}, err
	}
	again, err := r.step(ctx, g)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: rereadAfter}, nil
	case isGone(err):
		return reconcile.Result{}, nil
	case err != nil && ctx.Err() == nil:
		r.events.Eventf(g.all[0], nil, corev1.EventTypeWarning, reasonError, "Sync", "%.1000s", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// read collects the pods of a group.
func (r *pods) read(ctx context.Context, key types.NamespacedName) (*group, error) {
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{podsByGroup: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	g := &group{namespace: key.Namespace, total: 1}
	g.name, g.isAlone = strings.CutPrefix(key.Name, ofPod)
	g.name = strings.TrimPrefix(g.name, ofGroup)
	for i := range list.Items {
		pod := &list.Items[i]
		isByItsJob, err := r.isByItsJob(ctx, pod)
		switch {
		case err != nil:
			return nil, err
		case isByItsJob:
		case pod.DeletionTimestamp != nil:
			g.leaving++
		default:
			g.all = append(g.all, pod)
		}
	}
	slices.SortFunc(g.all, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range g.all {
		if why := integration.GrowsUnserved(pod); why != "" && builder.IsGated(pod) {
			r.events.Eventf(pod, nil, corev1.EventTypeWarning, reasonNotSupported, "Sync", "it stays gated: %s", why)
			return &group{}, nil
		}
	}
	if !g.isAlone && len(g.all) > 0 {
		text := g.all[0].Annotations[v1beta2.PodGroupTotalCountAnnotation]
		total, err := strconv.ParseInt(text, 10, 32)
		if err != nil || total < 1 {
			r.events.Eventf(g.all[0], nil, corev1.EventTypeWarning, reasonError, "Read", "annotation %s is %q; it must be how many pods the group has",
				v1beta2.PodGroupTotalCountAnnotation, text)
			return &group{}, nil
		}
		g.total = int32(total)
	}
	return g, nil
}

// isByItsJob reports whether a pod is of a Job that is queued itself, and so is not queued by itself.
func (r *pods) isByItsJob(ctx context.Context, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return false, nil
	}
	job := &batchv1.Job{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, job, client.UnsafeDisableDeepCopy)
	if err != nil || job.UID != owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	top, err := r.owners.Top(ctx, job, r.state.policy().External)
	return top == nil && job.Labels[v1beta2.QueueNameLabel] != "", err
}

func (r *pods) step(ctx context.Context, g *group) (again time.Duration, err error) {
	name := g.name
	if g.isAlone {
		name = builder.Name(corev1.SchemeGroupVersion.WithKind("Pod"), g.name, g.all[0].UID)
	}
	w := &v1beta2.Workload{}
	err = r.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: name}, w)
	if apierrors.IsNotFound(err) {
		return 0, r.create(ctx, g, name)
	}
	if err != nil {
		return 0, fmt.Errorf("reading Workload %s: %w", name, err)
	}
	switch {
	case w.DeletionTimestamp != nil && g.count(isRunning) > 0:
		return 0, r.stop(ctx, g, "its workload was deleted")
	case w.DeletionTimestamp != nil && g.leaving > 0:
		return 0, nil
	case w.DeletionTimestamp != nil:
		return 0, removeFinalizer(ctx, r.client, w)
	case conditions.Is(w, v1beta2.Finished):
		return 0, removeFinalizer(ctx, r.client, w)
	}
	if message, succeeded, is := g.finished(w); is {
		reason := v1beta2.ReasonFailed
		if succeeded {
			reason = v1beta2.ReasonSucceeded
		}
		return 0, r.end(ctx, w, reason, message)
	}
	if changed, err := r.adapt(ctx, g, w); changed || err != nil {
		return 0, err
	}
	if err := r.patchStatus(ctx, w, func() { g.await(w, r.state.now()) }); err != nil {
		return 0, err
	}
	isRight := conditions.Is(w, v1beta2.Admitted) && !conditions.Is(w, v1beta2.Evicted) && w.Status.Admission != nil
	if isRight {
		if err := r.start(ctx, g, w); err != nil {
			return 0, err
		}
		return 0, r.observe(ctx, g, w)
	}
	if g.count(isRunning) > 0 {
		return 0, r.stop(ctx, g, stopMessage(w))
	}
	if conditions.Is(w, v1beta2.Evicted) && conditions.Is(w, v1beta2.QuotaReserved) {
		if g.leaving > 0 {
			return 0, nil
		}
		return 0, r.release(ctx, w, func() {})
	}
	return r.greet(ctx, w)
}

// finished reports whether the pods have ended and none is to come. Pods of a group that have failed are replaced, unless one of them
// says that it is not.
func (g *group) finished(w *v1beta2.Workload) (message string, succeeded, is bool) {
	done, failed := g.succeeded(w), g.count(hasFailed)
	message = fmt.Sprintf("Pods succeeded: %d/%d.", done, g.total)
	if g.isAlone {
		return message, done > 0, done+failed > 0
	}
	isRetried := g.count(func(p *corev1.Pod) bool { return p.Annotations[v1beta2.RetriableInGroupAnnotation] == "false" }) == 0
	return message, done >= g.total, done >= g.total || !isRetried && failed > 0 && done+failed >= g.total
}

// succeeded is how many pods of the group have succeeded, with those that were deleted since.
func (g *group) succeeded(w *v1beta2.Workload) int32 {
	known := int32(0)
	for _, p := range w.Status.ReclaimablePods {
		known += p.Count
	}
	return max(known, g.count(hasSucceeded))
}

// isFast reports whether a group is admitted before all of its pods exist.
func (g *group) isFast() bool {
	return len(g.all) > 0 && g.all[0].Annotations[v1beta2.PodGroupFastAdmissionAnnotation] == "true"
}

// waiting are the pods that wait to be admitted, as many as the group has.
func (g *group) waiting() []*corev1.Pod {
	waiting := slices.DeleteFunc(slices.Clone(g.all), func(p *corev1.Pod) bool { return !builder.IsGated(p) || hasEnded(p) })
	return waiting[:min(len(waiting), int(g.total))]
}

// await says whether pods of the group have to be replaced: fewer are there than the group has that may run, or have succeeded. The words
// are Kueue's.
func (g *group) await(w *v1beta2.Workload, now time.Time) {
	here := g.count(func(p *corev1.Pod) bool { return !hasFailed(p) }) + g.succeeded(w) - g.count(hasSucceeded)
	isEvicted := conditions.Is(w, v1beta2.Evicted)
	switch {
	case g.isAlone || g.isFast() && g.count(hasFailed) == 0 && !isEvicted:
	case here >= g.total:
		if conditions.Is(w, v1beta2.WaitingForReplacementPods) {
			conditions.Set(w, v1beta2.WaitingForReplacementPods, false, v1beta2.PodsReady, "No pods need replacement", now)
		}
	case isEvicted:
		evicted := conditions.Of(w, v1beta2.Evicted)
		conditions.Set(w, v1beta2.WaitingForReplacementPods, true, evicted.Reason, evicted.Message, now)
	case !conditions.Is(w, v1beta2.WaitingForReplacementPods):
		conditions.Set(w, v1beta2.WaitingForReplacementPods, true, v1beta2.ReasonPodsFailed, "Some Failed pods need replacement", now)
	}
}

// create makes the Workload of a group whose pods are there and all wait.
func (r *pods) create(ctx context.Context, g *group, name string) error {
	if waiting := g.waiting(); len(waiting) == 0 || !g.isFast() && int32(len(waiting)) < g.total {
		return nil
	}
	whole, err := r.wholly(ctx, g.waiting())
	if err != nil {
		return err
	}
	w, err := builder.OfPods(&builder.Group{Namespace: g.namespace, Name: name, IsAlone: g.isAlone, Total: g.total, Pods: whole}, r.lookup(ctx))
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, w); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Workload %s: %w", w.Name, err)
	}
	r.events.Eventf(whole[0], nil, corev1.EventTypeNormal, reasonCreatedWorkload, "Create", "Created Workload: %s/%s", w.Namespace, w.Name)
	return nil
}

// wholly reads pods as the API server has them.
func (r *pods) wholly(ctx context.Context, slim []*corev1.Pod) ([]*corev1.Pod, error) {
	whole := make([]*corev1.Pod, len(slim))
	for i, pod := range slim {
		whole[i] = &corev1.Pod{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(pod), whole[i]); err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
		}
	}
	return whole, nil
}

// adapt makes pods that have come since owners of the Workload as well. While none of its pods run, and it holds no quota, the Workload
// follows them. It has the podsets, the queue and the priority of the pods that are there.
func (r *pods) adapt(ctx context.Context, g *group, w *v1beta2.Workload) (changed bool, err error) {
	var come []metav1.OwnerReference
	for _, reference := range builder.Owners(g.isAlone, g.all) {
		if !slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == reference.UID }) {
			come = append(come, reference)
		}
	}
	waiting, count := g.waiting(), int32(0)
	for i := range w.Spec.PodSets {
		count += w.Spec.PodSets[i].Count
	}
	isHeld := conditions.Is(w, v1beta2.QuotaReserved)
	followed := g.all[0]
	if len(waiting) > 0 {
		followed = waiting[0]
	}
	var sets []v1beta2.PodSet
	if !isHeld && (len(come) > 0 || count != g.total) && int32(len(waiting)) == g.total && followed.Labels[v1beta2.PrebuiltWorkloadLabel] == "" {
		whole, err := r.wholly(ctx, waiting)
		if err != nil {
			return false, err
		}
		made, err := builder.OfPods(&builder.Group{Namespace: g.namespace, Name: w.Name, IsAlone: g.isAlone, Total: g.total, Pods: whole}, r.lookup(ctx))
		if err != nil {
			return false, err
		}
		if sets = made.Spec.PodSets; integration.AreEqual(sets, w.Spec.PodSets) {
			sets = nil
		}
	}
	return r.follow(ctx, followed, w, func() error {
		w.OwnerReferences = append(w.OwnerReferences, come...)
		if !isHeld && followed.Labels[v1beta2.PrebuiltWorkloadLabel] == "" {
			w.Spec.QueueName = followed.Labels[v1beta2.QueueNameLabel]
		}
		if sets == nil {
			return nil
		}
		w.Spec.PodSets = sets
		return builder.Reprioritize(w, followed, r.lookup(ctx))
	})
}

// start opens the gates of as many pods as were admitted.
func (r *pods) start(ctx context.Context, g *group, w *v1beta2.Workload) error {
	infos, err := builder.Infos(w, w.Spec.PodSets, r.schedulers, r.lookup(ctx))
	if err != nil {
		return err
	}
	free := map[string]int32{}
	for i := range infos {
		free[infos[i].Name] = infos[i].Count
	}
	var gated []*corev1.Pod
	for _, pod := range g.all {
		switch {
		case hasFailed(pod): // its replacement takes its place
		case builder.IsGated(pod):
			gated = append(gated, pod)
		default:
			free[pod.Labels[v1beta2.PodSetLabel]]--
		}
	}
	for _, slim := range gated {
		pod := &corev1.Pod{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(slim), pod); err != nil {
			return client.IgnoreNotFound(err)
		}
		role := roles.Of(pod)
		if g.isAlone {
			role = v1beta2.DefaultPodSetName
		}
		at := slices.IndexFunc(infos, func(i integration.Info) bool { return i.Name == role })
		if at < 0 || free[role] <= 0 {
			r.events.Eventf(pod, nil, corev1.EventTypeWarning, reasonExcessPods, "Start", "Workload %s was admitted without this pod: it is of podset %s, of which %d more can start",
				w.Name, role, max(free[role], 0))
			continue
		}
		free[role]--
		if err := r.open(ctx, pod, &infos[at]); err != nil {
			return err
		}
		r.events.Eventf(pod, nil, corev1.EventTypeNormal, reasonStarted, "Start", "Admitted by clusterQueue %s", w.Status.Admission.ClusterQueue)
	}
	return nil
}

// open gives a pod what its podset gets, and takes away its gate.
func (r *pods) open(ctx context.Context, pod *corev1.Pod, info *integration.Info) error {
	before := pod.DeepCopy()
	template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	// A pod that exists can lose gates and get none. One of another scheduler has that for its node from the webhook.
	isSteered, added := info.Gate != "", *info
	added.Gate = ""
	if err := integration.Apply(&template, &added); err != nil {
		r.events.Eventf(pod, nil, corev1.EventTypeWarning, reasonFailedToStart, "Start", "%.1000s", err.Error())
		return nil
	}
	pod.ObjectMeta, pod.Spec = template.ObjectMeta, template.Spec
	pod.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool {
		return g.Name == v1beta2.AdmissionGate || g.Name == v1beta2.TopologyGate && !isSteered
	})
	if err := r.client.Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("starting pod %s: %w", pod.Name, err)
	}
	return nil
}

// stop deletes the pods that run. Those that wait go on waiting.
func (r *pods) stop(ctx context.Context, g *group, why string) error {
	for _, pod := range g.all {
		if !isRunning(pod) {
			continue
		}
		err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("stopping pod %s: %w", pod.Name, err)
		}
		if err == nil {
			r.events.Eventf(pod, nil, corev1.EventTypeNormal, reasonStopped, "Stop", "%.1000s", why)
		}
	}
	return nil
}

// observe says in the Workload how its pods fare.
func (r *pods) observe(ctx context.Context, g *group, w *v1beta2.Workload) error {
	return r.patchStatus(ctx, w, func() {
		demands := make([]integration.Demand, len(w.Spec.PodSets))
		for i := range w.Spec.PodSets {
			name := w.Spec.PodSets[i].Name
			isOf := func(is func(*corev1.Pod) bool) int32 {
				return g.count(func(p *corev1.Pod) bool { return p.Labels[v1beta2.PodSetLabel] == name && is(p) })
			}
			demands[i] = integration.Demand{Name: name, Count: w.Spec.PodSets[i].Count, Ended: isOf(hasSucceeded),
				Has: isOf(func(p *corev1.Pod) bool { return !hasSucceeded(p) && !hasFailed(p) })}
		}
		lifecycle.Reclaim(w, demands, false)
		if r.state.policy().PodsReady != nil {
			lifecycle.Observe(w, g.count(isReady) >= g.total, r.state.now())
		}
	})
}
