package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/workload/protection"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// podsByGroup is the index of pods that are queued by themselves, by the name of their Workload in front of a letter
// for its kind.
const podsByGroup = "queuedGroup"

// A group is named by its kind and by the name of its pods' label, or of the pod that is queued alone.
const (
	ofGroup = "group:"
	ofPod   = "pod:"
	ofNone  = "none:" // a pod that is not queued, and has the gate or the finalizer of those that are
)

const (
	// reasonExcessPods says that a pod is of a shape that its group was not admitted with.
	reasonExcessPods = "ExcessPods"
	// reasonExcessDeleted is Kueue's reason for the deletion of a pod beyond those that its group has.
	reasonExcessDeleted = "ExcessPodDeleted"
	// reasonNotQueued says that a pod waits for admission and names no LocalQueue.
	reasonNotQueued = "NotQueued"
)

// groupNameOf is the group of a pod, "" if it is not queued by itself. Of the pods of a job
// [pods.isByItsJob] says whether they are.
func groupNameOf(object client.Object) string {
	kind := queueing.KindOfOwner(metav1.GetControllerOfNoCopy(object))
	if object.GetLabels()[v1beta2.QueueNameLabel] == "" || kind != nil && kind.KeepsPods {
		if pod, is := object.(*corev1.Pod); is && (queueing.IsGated(pod) || queueing.IsKept(pod)) {
			return ofNone + pod.Name
		}
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

// groupOfWorkload is the group of a Workload that is one of pods.
func groupOfWorkload(_ context.Context, object client.Object) []reconcile.Request {
	name := ""
	if object.GetAnnotations()[v1beta2.GroupWorkloadAnnotation] == "true" {
		name = ofGroup + object.GetName()
	}
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

// Reconcile makes the Workload of a group when all of its pods are there, opens their gates when it is admitted, and
// deletes them when it is evicted. Pods that need not be counted any more lose the finalizer. All do while no Workloads
// are served.
func (r *pods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	serving := r.state.serving()
	if serving == protection.Unknown {
		return reconcile.Result{}, nil
	}
	if name, is := strings.CutPrefix(request.Name, ofNone); is {
		return reconcile.Result{}, r.standAlone(ctx, types.NamespacedName{Namespace: request.Namespace, Name: name}, serving)
	}
	g, err := r.read(ctx, request.NamespacedName)
	if err != nil || g.isAlone && g.first() == nil {
		return reconcile.Result{}, errors.Join(err, r.removeFinalizer(ctx, g.strays))
	}
	if serving != protection.Served {
		return reconcile.Result{}, r.removeFinalizer(ctx, slices.Concat(g.strays, g.members()))
	}
	w, err := r.workloadOf(ctx, g)
	if err == nil {
		g.isEnding, err = r.isEnding(ctx, g.namespace)
	}
	if g.first() == nil && (w == nil || len(w.OwnerReferences) == 0 || w.Annotations[v1beta2.GroupWorkloadAnnotation] != "true") {
		return reconcile.Result{}, errors.Join(err, r.removeFinalizer(ctx, g.strays))
	}
	var again time.Duration
	if err == nil {
		g.countOf(w)
		again, err = r.step(ctx, g, w)
		over, soon := g.uncounted(w, r.state.now())
		if err != nil && w != nil && g.areLast(over, w.OwnerReferences) {
			over = nil // those that replace them may not own the Workload yet
		}
		if isGone(err) {
			err = nil
		}
		err = errors.Join(err, r.removeFinalizer(ctx, slices.Concat(g.strays, over)))
		again = soonest(again, soon)
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
	case err != nil && ctx.Err() == nil && g.first() != nil:
		r.events.Eventf(g.first(), nil, corev1.EventTypeWarning, reasonError, "Sync", "%.1000s", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// read collects the pods of a group.
func (r *pods) read(ctx context.Context, key types.NamespacedName) (*group, error) {
	g := &group{namespace: key.Namespace, total: 1}
	g.name, g.isAlone = strings.CutPrefix(key.Name, ofPod)
	g.name = strings.TrimPrefix(g.name, ofGroup)
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{podsByGroup: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return g, fmt.Errorf("listing pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		pod := &list.Items[i]
		isByItsJob, err := r.isByItsJob(ctx, pod)
		if err != nil {
			return g, err
		}
		if isByItsJob {
			g.strays = append(g.strays, pod)
			continue
		}
		g.add(pod)
	}
	for _, pod := range g.all {
		if why := queueing.GrowsUnserved(pod); why != "" && queueing.IsGated(pod) {
			r.events.Eventf(pod, nil, corev1.EventTypeWarning, reasonNotSupported, "Sync", "it stays gated: %s", why)
			g.isUnreadable = true
			return g, nil
		}
	}
	if first := g.first(); !g.isAlone && first != nil {
		text := first.Annotations[v1beta2.PodGroupTotalCountAnnotation]
		total, err := strconv.ParseInt(text, 10, 32)
		if err != nil || total < 1 {
			r.events.Eventf(first, nil, corev1.EventTypeWarning, reasonError, "Read", "annotation %s is %q; it must be how many pods the group has",
				v1beta2.PodGroupTotalCountAnnotation, text)
			g.isUnreadable = true
			return g, nil
		}
		g.total = int32(total)
	}
	return g, nil
}

// isByItsJob reports whether a pod is of a job that is queued itself, and so is not queued by itself.
func (r *pods) isByItsJob(ctx context.Context, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	kind := queueing.KindOfOwner(owner)
	if kind == nil || kind.KeepsPods {
		return false, nil // see groupNameOf
	}
	job := kind.New().Object()
	err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, job, client.UnsafeDisableDeepCopy)
	if err != nil || job.GetUID() != owner.UID {
		return false, client.IgnoreNotFound(err)
	}
	top, err := r.owners.Top(ctx, job, r.state.policy().External)
	return top == nil && job.GetLabels()[v1beta2.QueueNameLabel] != "", err
}

// workloadOf is the Workload of a group, nil if it has none.
func (r *pods) workloadOf(ctx context.Context, g *group) (*v1beta2.Workload, error) {
	w := &v1beta2.Workload{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: g.workloadName()}, w)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Workload %s: %w", g.workloadName(), err)
	}
	return w, nil
}

// step brings a group and its Workload one step nearer to each other. A group that cannot be read stays as it is.
func (r *pods) step(ctx context.Context, g *group, w *v1beta2.Workload) (again time.Duration, err error) {
	switch {
	case g.isUnreadable:
		return 0, nil
	case w == nil:
		return 0, r.create(ctx, g, g.workloadName())
	case w.DeletionTimestamp != nil && g.count(isRunning) > 0:
		return 0, r.stop(ctx, g, "its workload was deleted")
	case w.DeletionTimestamp != nil && len(g.leaving) > 0:
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
		if again, err = r.start(ctx, g, w); err != nil {
			return 0, err
		}
		return again, r.observe(ctx, g, w)
	}
	if g.count(isRunning) > 0 {
		return 0, r.stop(ctx, g, stopMessage(w))
	}
	if conditions.Is(w, v1beta2.Evicted) && conditions.Is(w, v1beta2.QuotaReserved) {
		if len(g.leaving) > 0 {
			return 0, nil
		}
		return 0, r.release(ctx, w, func() {})
	}
	if err := r.removeExcess(ctx, g.beyond()); err != nil {
		return 0, err
	}
	if g.count(hasSucceeded) > 0 {
		if err := r.patchStatus(ctx, w, func() { g.reclaim(w) }); err != nil {
			return 0, err
		}
	}
	return r.markPending(ctx, w)
}

// create makes the Workload of a group whose pods are there, and wait or have succeeded.
func (r *pods) create(ctx context.Context, g *group, name string) error {
	members := g.counted()
	if len(members) == 0 {
		return nil
	}
	whole, err := r.wholly(ctx, members)
	if err != nil {
		return err
	}
	made := queueing.Group{Namespace: g.namespace, Name: name, IsAlone: g.isAlone, Total: g.total, Pods: whole}
	w, err := made.Workload(r.lookup(ctx))
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

// adapt makes pods that have come since, and their controllers, owners of the Workload as well. While none of its pods
// run, and it holds no quota, the Workload follows them. It has the podsets, the queue and the priority of the pods
// that are there.
func (r *pods) adapt(ctx context.Context, g *group, w *v1beta2.Workload) (changed bool, err error) {
	var come []metav1.OwnerReference
	for _, reference := range queueing.OwnersOf(g.isAlone, g.all) {
		if !slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == reference.UID }) {
			come = append(come, reference)
		}
	}
	waiting, members, count := g.gated(), g.counted(), int32(0)
	for i := range w.Spec.PodSets {
		count += w.Spec.PodSets[i].Count
	}
	isHeld := conditions.Is(w, v1beta2.QuotaReserved)
	if len(g.all) == 0 {
		return false, nil // what is to come is not known
	}
	followed := g.all[0]
	if len(waiting) > 0 {
		followed = waiting[0]
	}
	var sets []v1beta2.PodSet
	if !isHeld && (len(come) > 0 || count != g.total) && int32(len(members)) == g.total && followed.Labels[v1beta2.PrebuiltWorkloadLabel] == "" {
		whole, err := r.wholly(ctx, members)
		if err != nil {
			return false, err
		}
		now := queueing.Group{Namespace: g.namespace, Name: w.Name, IsAlone: g.isAlone, Total: g.total, Pods: whole}
		made, err := now.Workload(r.lookup(ctx))
		if err != nil {
			return false, err
		}
		if sets = made.Spec.PodSets; queueing.ArePodSetsEqual(sets, w.Spec.PodSets) {
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
		return queueing.Reprioritize(w, followed, r.lookup(ctx))
	})
}

// start opens the gates of as many pods as were admitted. A pod that is being deleted has its place while it runs,
// unless it has had all the time that it was given. Pods beyond what the group has are deleted.
func (r *pods) start(ctx context.Context, g *group, w *v1beta2.Workload) (again time.Duration, err error) {
	infos, err := queueing.PodSetInfos(w, w.Spec.PodSets, r.schedulers, r.lookup(ctx))
	if err != nil {
		return 0, err
	}
	leaving := map[string]int32{}
	var gated, started []*corev1.Pod
	for _, pod := range g.all {
		switch {
		case hasFailed(pod): // its replacement takes its place
		case queueing.IsGated(pod):
			gated = append(gated, pod)
		default:
			started = append(started, pod)
		}
	}
	free := queueing.FreePlaces(w.Spec.PodSets, infos, started)
	for _, pod := range g.leaving {
		if left := pod.DeletionTimestamp.Sub(r.state.now()); left > 0 {
			leaving[pod.Labels[v1beta2.PodSetLabel]]++
			again = soonest(again, left)
		}
	}
	var excess []*corev1.Pod
	isFull := g.count(hasFailed)+g.total < int32(len(g.all))
	for _, slim := range gated {
		pod := &corev1.Pod{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(slim), pod); err != nil {
			return 0, client.IgnoreNotFound(err)
		}
		role := queueing.Role(pod)
		if g.isAlone {
			role = v1beta2.DefaultPodSetName
		}
		at := slices.IndexFunc(infos, func(i queueing.PodSetInfo) bool { return i.Name == role })
		switch {
		case at < 0 && isFull, at >= 0 && free[role] <= 0:
			excess = append(excess, pod)
			continue
		case at < 0:
			r.events.Eventf(pod, nil, corev1.EventTypeWarning, reasonExcessPods, "Start", "Workload %s was admitted without this pod: it is of podset %s, "+
				"which the Workload has not", w.Name, role)
			continue
		case free[role] <= leaving[role]:
			free[role]-- // it waits for one that leaves
			leaving[role]--
			continue
		}
		free[role]--
		if err := r.open(ctx, pod, &infos[at]); err != nil {
			return 0, err
		}
		r.events.Eventf(pod, nil, corev1.EventTypeNormal, reasonStarted, "Start", "Admitted by clusterQueue %s", w.Status.Admission.ClusterQueue)
	}
	return again, r.removeExcess(ctx, excess)
}

// open gives a pod what its podset gets, and takes away its gate.
func (r *pods) open(ctx context.Context, pod *corev1.Pod, info *queueing.PodSetInfo) error {
	before := pod.DeepCopy()
	template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	// A pod that exists can lose gates and get none. One of another scheduler has that for its node from the webhook.
	isSteered, added := info.Gate != "", *info
	added.Gate = ""
	queueing.KeepPod(&template.ObjectMeta) // the webhook may not have seen it
	if err := added.Apply(&template); err != nil {
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
		g.reclaim(w)
		if r.state.policy().PodsReady != nil {
			queueing.ObservePods(w, g.count(isReady) >= g.total, r.state.now())
		}
	})
}
