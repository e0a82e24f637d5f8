package world

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// carrier carries out what was decided, and does what controllers and kubelets do.
type carrier struct{ *World }

// write writes what was decided about Workloads.
func (w carrier) write(d *decision.Decisions) {
	for _, p := range d.WorkloadPlans {
		o := w.Workload(p.Workload.Name)
		if o == nil || !w.mayWrite() {
			continue
		}
		o = o.DeepCopy()
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		if o.Annotations[v1beta2.PlanAnnotation] = p.Record; p.Record == "" {
			delete(o.Annotations, v1beta2.PlanAnnotation)
		}
		w.show(o)
	}
	w.Decided = d.Workloads
	for i := range d.Workloads {
		w.writeStatus(&d.Workloads[i])
	}
}

func (w carrier) writeStatus(s *decision.WorkloadStatus) {
	o := w.Workload(s.Workload.Name)
	if o == nil || !w.mayWrite() {
		return
	}
	o = o.DeepCopy()
	if w.Judge != nil {
		w.Judge(s, o)
	}
	if !s.Apply(o) {
		w.Loop.Apply(cache.WorkloadFailed{Workload: s.Workload, UID: s.UID, Number: s.Number, At: w.Now})
		return
	}
	switch {
	case s.Evict != nil:
		w.Evictions++
		w.say("evict %s %s", o.Name, s.Evict.Preempted)
	case s.Reserve != nil:
		w.say("admit %s", o.Name)
	}
	if w.IsLate != nil && w.IsLate() {
		w.say("the scheduler sees %s late", o.Name)
		w.late[keyOf(o)] = true
	}
	w.show(o)
	w.Loop.Apply(cache.WorkloadWritten{Workload: s.Workload, UID: s.UID, Number: s.Number, Version: o.ResourceVersion})
}

// bind makes pods run that were bound.
func (w carrier) bind(d *decision.Decisions) {
	for _, b := range d.Binds {
		p := w.pods[b.Pod]
		if p == nil || p.UID != b.UID || !w.mayWrite() {
			continue
		}
		p.Pod = p.Pod.DeepCopy()
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		w.Set(p.Pod)
	}
}

// control does what the controllers of Workloads and Jobs do.
func (w carrier) control() (changed bool) {
	for _, o := range w.Workloads() {
		changed = w.advance(o) || changed
		o = w.Workload(o.Name)
		pods := w.podsOf(o.Name)
		isStopped := o.DeletionTimestamp != nil || conditions.Is(o, v1beta2.Evicted) || conditions.Is(o, v1beta2.Finished) || !conditions.Is(o, v1beta2.Admitted)
		switch {
		case isStopped && len(pods) > 0:
			w.stop(pods)
			changed = true
		case o.DeletionTimestamp != nil:
			w.Delete(o)
			changed = true
		case conditions.Is(o, v1beta2.Evicted) && conditions.Is(o, v1beta2.QuotaReserved) && !conditions.Is(o, v1beta2.Finished):
			w.Edit(o.Name, func(o *v1beta2.Workload) { queueing.Release(o, w.Now) })
			changed = true
		case !isStopped:
			changed = w.start(o, pods) || changed
		}
	}
	return changed
}

// pendingAfter is how long a new Workload has no condition.
const pendingAfter = time.Second

// advance moves a Workload on, as the controller of its life does.
func (w carrier) advance(o *v1beta2.Workload) (changed bool) {
	if o.DeletionTimestamp != nil {
		return false
	}
	next := o.DeepCopy()
	outcome := w.around(o).Advance(next)
	if conditions.Of(next, v1beta2.QuotaReserved) == nil && w.Now.Sub(o.CreationTimestamp.Time) > pendingAfter {
		conditions.Pend(next, v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation, w.Now)
	}
	if changed = !apiequality.Semantic.DeepEqual(o.Status, next.Status) || outcome.Deactivates; !changed {
		return false
	}
	if outcome.Deactivates {
		inactive := false
		next.Spec.Active = &inactive
		next.Generation++
	}
	w.show(next)
	return true
}

func (w carrier) around(o *v1beta2.Workload) *queueing.Lifecycle {
	in, name := &queueing.Lifecycle{Policy: w.Policy, Now: w.Now}, ""
	if l, is := w.objects["v1beta2.LocalQueue/"+o.Spec.QueueName].(*v1beta2.LocalQueue); is {
		q := settings.OfLocalQueue(l)
		in.LocalQueue, name = &q, q.ClusterQueue
	}
	if o.Status.Admission != nil {
		name = o.Status.Admission.ClusterQueue
	}
	if c, is := w.objects["v1beta2.ClusterQueue/"+name].(*v1beta2.ClusterQueue); is {
		q := settings.OfClusterQueue(c)
		in.ClusterQueue = &q
	}
	return in
}

func (w *World) podsOf(name string) (all []*pod) {
	for _, p := range w.pods {
		if p.workload == name {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// stop tells pods to end, and takes away those whose time is up.
func (w carrier) stop(pods []*pod) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil && w.Grace > 0 && p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning {
			end := metav1.NewTime(w.Now.Add(30 * time.Second))
			p.Pod = p.Pod.DeepCopy()
			p.DeletionTimestamp = &end
			p.until = w.Grace
			w.Set(p.Pod)
			continue
		}
		if p.until--; p.until > 0 {
			continue
		}
		w.RemovePod(p.Name)
	}
}

// RemovePod removes a pod, as if it had ended.
func (w *World) RemovePod(name string) {
	key := types.NamespacedName{Namespace: Namespace, Name: name}
	if p := w.pods[key]; p != nil {
		delete(w.pods, key)
		w.Remove(p.Pod)
	}
}

// Succeed ends a pod that runs, well.
func (w *World) Succeed(name string) {
	if p := w.pods[types.NamespacedName{Namespace: Namespace, Name: name}]; p != nil && p.Status.Phase == corev1.PodRunning {
		p.Pod = p.Pod.DeepCopy()
		p.Status.Phase = corev1.PodSucceeded
		w.Set(p.Pod)
	}
}

// Pods are the names of the pods of a Workload, in order.
func (w *World) Pods(workload string) (names []string) {
	for _, p := range w.podsOf(workload) {
		names = append(names, p.Name)
	}
	return names
}

// RemoveNode deletes a node, and the pods on it that have not ended.
func (w *World) RemoveNode(name string) {
	o := w.objects["v1.Node/"+name]
	if o == nil {
		return
	}
	for _, p := range w.sortedPods() {
		if p.Spec.NodeName == name && p.Status.Phase != corev1.PodSucceeded {
			w.RemovePod(p.Name)
		}
	}
	w.Delete(o)
}

func (w *World) sortedPods() (all []*pod) {
	for _, p := range w.pods {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pod) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// start makes the pods of an admitted Workload.
func (w carrier) start(o *v1beta2.Workload, pods []*pod) (changed bool) {
	infos, err := queueing.PodSetInfos(o, o.Spec.PodSets, []string{schedulerName}, lookup(w))
	if _, is := err.(queueing.Contradiction); is {
		w.Edit(o.Name, func(o *v1beta2.Workload) { conditions.Finish(o, queueing.FailedToStart, err.Error(), w.Now) })
		return true
	}
	if err != nil {
		return false // a flavor is missing
	}
	for i := range infos {
		for index := range infos[i].Count {
			name := fmt.Sprintf("%s-%s-%d", o.Name, infos[i].Name, index)
			if !slices.ContainsFunc(pods, func(p *pod) bool { return p.Name == name }) {
				w.makePod(o, &o.Spec.PodSets[i], &infos[i], name)
				changed = true
			}
		}
	}
	return changed
}

const schedulerName = "volcano"

func (w carrier) makePod(o *v1beta2.Workload, set *v1beta2.PodSet, info *queueing.PodSetInfo, name string) {
	template := set.Template.DeepCopy()
	template.Spec.SchedulerName = schedulerName
	info.Gate = ""
	if err := info.Apply(template); err != nil {
		w.Edit(o.Name, func(o *v1beta2.Workload) { conditions.Finish(o, queueing.FailedToStart, err.Error(), w.Now) })
		return
	}
	w.made++
	made := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	made.Namespace, made.Name, made.UID = Namespace, name, types.UID(fmt.Sprintf("pod-%s-%d", name, w.made))
	made.CreationTimestamp = metav1.NewTime(w.Now)
	w.pods[types.NamespacedName{Namespace: Namespace, Name: name}] = &pod{Pod: made, workload: o.Name}
	w.Set(made)
}

// lookup finds objects of a world.
type lookup struct{ *World }

func (l lookup) WorkloadPriorityClass(name string) (*v1beta2.WorkloadPriorityClass, error) {
	return nil, fmt.Errorf("no WorkloadPriorityClass %s", name)
}

func (l lookup) PriorityClass(string) (*schedulingv1.PriorityClass, error) { return nil, nil }

func (l lookup) Flavor(name string) (*v1beta2.ResourceFlavor, error) {
	f, is := l.objects["v1beta2.ResourceFlavor/"+name].(*v1beta2.ResourceFlavor)
	if !is {
		return nil, fmt.Errorf("no ResourceFlavor %s", name)
	}
	return f, nil
}

// Succeeded are how many pods of a Workload have ended well, by pod set.
func (w *World) Succeeded(workload string) map[string]int32 {
	ended := map[string]int32{}
	for _, p := range w.podsOf(workload) {
		if p.Status.Phase == corev1.PodSucceeded {
			ended[p.Labels[v1beta2.PodSetLabel]]++
		}
	}
	return ended
}
