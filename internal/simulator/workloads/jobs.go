package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	batchbuilder "hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
)

// job is what has the pods of a Workload: a Job of Kubernetes or of Volcano, a group of pods, or none that is given.
type job struct {
	of      queueing.Job // nil for the others
	batch   *batchv1.Job
	volcano *batch.Job
	group   *group
}

// HoldJob makes a Job of Kubernetes wait for its quota, as webhook and controller do, if it is to. What is above its
// owner is not known here.
func (c *Controllers) HoldJob(j *batchv1.Job) (isHeld bool) {
	defer func() {
		if c.unqueued == nil {
			c.unqueued = map[types.UID]bool{}
		}
		c.unqueued[j.UID] = !isHeld && (c.isMade(j) || j.Labels[v1beta2.QueueNameLabel] == "")
	}()
	if !c.Policy.IsOn || c.isMade(j) || metav1.GetControllerOfNoCopy(j) != nil && j.Labels[v1beta2.QueueNameLabel] == "" {
		return false
	}
	if j.Labels[v1beta2.QueueNameLabel] == "" {
		if !c.Policy.Manages(c.NamespaceLabels(j.Namespace)) {
			return false
		}
		if find[*v1beta2.LocalQueue](c, j.Namespace, v1beta2.DefaultLocalQueueName) == nil {
			if c.Policy.HoldsUnnamed {
				j.Spec.Suspend = ptr.To(true)
			}
			return false
		}
		metav1.SetMetaDataLabel(&j.ObjectMeta, v1beta2.QueueNameLabel, v1beta2.DefaultLocalQueueName)
	}
	if _, _, isOver := (queueing.BatchJob{Job: j}).Finished(); isOver {
		return false
	}
	c.takeOver(&j.Spec.Template.Spec)
	held := &job{of: queueing.BatchJob{Job: j}, batch: j}
	if c.workloads[c.nameOf(held)] == nil {
		j.Spec.Suspend = ptr.To(true)
	}
	c.hold(held)
	return true
}

// isMade reports whether an object has made a Job that a queue serves, or could serve.
func (c *Controllers) isMade(j *batchv1.Job) bool {
	owner := metav1.GetControllerOfNoCopy(j)
	return owner != nil && queueing.IsServable(queueing.KindOf(owner), c.Policy.External)
}

// HoldVolcanoJob does so with a Job of Volcano, which has its defaults.
func (c *Controllers) HoldVolcanoJob(j *batch.Job) (isHeld bool) {
	of := queueing.VolcanoJob{Job: j}
	if is, _ := of.IsQueued(); !c.Policy.IsOn || !is {
		return false
	}
	c.hold(&job{of: of, volcano: j})
	return true
}

func (c *Controllers) hold(j *job) {
	if c.jobs == nil {
		c.jobs = map[types.NamespacedName]*job{}
	}
	c.jobs[c.nameOf(j)] = j
}

// takeOver gives pods that do not choose a scheduler to ours.
func (c *Controllers) takeOver(spec *corev1.PodSpec) {
	if (spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName) && len(c.Schedulers) > 0 {
		spec.SchedulerName = c.Schedulers[0]
	}
}

// nameOf is the name of the Workload of a job.
func (c *Controllers) nameOf(j *job) types.NamespacedName {
	o := j.of.Object()
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: j.of.Kind().WorkloadOf(o)}
}

// makeWorkloads makes the Workloads of jobs and groups that have none.
func (c *Controllers) makeWorkloads(groups map[types.NamespacedName]*group) (made bool) {
	for _, key := range slices.SortedFunc(maps.Keys(c.jobs), cluster.CompareNames) {
		j := c.jobs[key]
		o := j.of.Object()
		if c.workloads[key] != nil || o.GetLabels()[v1beta2.PrebuiltWorkloadLabel] != "" {
			continue
		}
		w, err := queueing.NewWorkload(j.of, lookup{c})
		if err != nil {
			c.problems = append(c.problems, fmt.Errorf("%s %s/%s: %w", j.of.Kind().Kind, o.GetNamespace(), o.GetName(), err))
			continue
		}
		c.create(w, o.GetCreationTimestamp().Time)
		made = true
	}
	return c.makeOfGroups(groups) || made
}

// jobOf is what has the pods of a Workload.
func (c *Controllers) jobOf(w *v1beta2.Workload, g *group) *job {
	if j := c.jobs[client.ObjectKeyFromObject(w)]; j != nil {
		return j
	}
	return &job{group: g}
}

// pods are those of the Workload's job, the oldest first.
func (j *job) pods(c *Controllers, w *v1beta2.Workload) (all []*corev1.Pod) {
	for _, pod := range c.Cluster.Pods() {
		if pod.Namespace == w.Namespace && (pod.Annotations[v1beta2.WorkloadAnnotation] == w.Name || j.has(pod)) {
			all = append(all, pod)
		}
	}
	slices.SortFunc(all, comparePods)
	return all
}

// has reports whether a pod is the job's by what the job is.
func (j *job) has(pod *corev1.Pod) bool {
	if j.group != nil {
		return slices.Contains(j.group.pods, pod)
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return j.of != nil && owner != nil && owner.UID == j.of.Object().GetUID()
}

// isRunning reports whether a pod has to end when its Workload is not admitted.
func isRunning(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && !queueing.IsGated(pod)
}

// start makes the pods that a job lacks. It reports whether it made any, or opened gates.
func (j *job) start(c *Controllers, w *v1beta2.Workload, infos []queueing.PodSetInfo, have []*corev1.Pod) (starts bool, err error) {
	for i := range infos {
		infos[i].Gate = "" // no pod of another scheduler gets a node here
	}
	switch {
	case j.group != nil:
		return j.group.start(c, w, infos)
	case j.batch != nil:
		return j.startBatch(c, infos, have)
	case j.volcano != nil:
		return j.startVolcano(c, infos)
	}
	return c.startAlone(w, infos, have)
}

// startAlone makes the pods of a Workload that is given without its job, in addition to those that are given.
func (c *Controllers) startAlone(w *v1beta2.Workload, infos []queueing.PodSetInfo, have []*corev1.Pod) (starts bool, err error) {
	for i := range infos {
		lacks := infos[i].Count
		for _, pod := range have {
			if pod.Labels[v1beta2.PodSetLabel] == infos[i].Name {
				lacks--
			}
		}
		for index := int32(0); lacks > 0; index++ {
			pod := &corev1.Pod{}
			template := w.Spec.PodSets[i].Template.DeepCopy()
			if err := infos[i].Apply(template); err != nil {
				return starts, queueing.Contradict(err)
			}
			pod.ObjectMeta, pod.Spec = template.ObjectMeta, template.Spec
			pod.Namespace, pod.Name = w.Namespace, fmt.Sprintf("%s-%s-%d", w.Name, infos[i].Name, index)
			c.takeOver(&pod.Spec)
			if c.Cluster.MakePod(pod) {
				starts = true
				lacks--
			}
		}
	}
	return starts, nil
}

func (j *job) startBatch(c *Controllers, infos []queueing.PodSetInfo, have []*corev1.Pod) (starts bool, err error) {
	if j.of.IsSuspended() {
		if err := j.of.Run(infos); err != nil {
			return false, queueing.Contradict(err)
		}
	}
	lacks := PodsWanted(j.batch)
	for _, pod := range have {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			lacks--
		}
	}
	for index := 0; lacks > 0; index++ {
		pod := PodOf(j.batch, index)
		if c.Cluster.Pods()[client.ObjectKeyFromObject(pod)] == nil && c.Cluster.MakePod(pod) {
			starts = true
			lacks--
		}
	}
	return starts, nil
}

// PodsWanted is how many pods of a Job run at a time: none of one that is over, suspended, or managed by another
// controller.
func PodsWanted(j *batchv1.Job) int {
	if _, _, isOver := (queueing.BatchJob{Job: j}).Finished(); isOver {
		return 0
	}
	if ptr.Deref(j.Spec.Suspend, false) || ptr.Deref(j.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
		return 0
	}
	wanted := ptr.Deref(j.Spec.Parallelism, 1)
	if j.Spec.Completions != nil {
		wanted = min(wanted, *j.Spec.Completions-j.Status.Succeeded)
	}
	return int(wanted)
}

// PodOf is a pod of a Job. Its name ends in a number, where the controller puts random letters.
func PodOf(j *batchv1.Job, index int) *corev1.Pod {
	template := j.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = j.Namespace, fmt.Sprintf("%s-%d", j.Name, index)
	pod.UID, pod.CreationTimestamp = types.UID("Pod "+client.ObjectKeyFromObject(pod).String()), j.CreationTimestamp
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Labels = maps.Clone(pod.Labels)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobNameLabel, j.Name)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.ControllerUidLabel, string(j.UID))
	if ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
	}
	return pod
}

func (j *job) startVolcano(c *Controllers, infos []queueing.PodSetInfo) (starts bool, err error) {
	given := j.volcano.DeepCopy()
	if err := (queueing.VolcanoJob{Job: given}).Give(infos); err != nil {
		return false, queueing.Contradict(err)
	}
	for i := range given.Spec.Tasks {
		task := &given.Spec.Tasks[i]
		count := task.Replicas
		if at := slices.IndexFunc(infos, func(n queueing.PodSetInfo) bool { return n.Name == task.Name }); at >= 0 {
			count = min(count, infos[at].Count)
		}
		for index := range int(count) {
			pod := batchbuilder.Pod(given, task, index)
			c.takeOver(&pod.Spec)
			starts = c.Cluster.MakePod(pod) || starts
		}
	}
	return starts, nil
}

// restore makes a job what it was before it was started.
func (j *job) restore(w *v1beta2.Workload) {
	if j.batch == nil || j.of.IsSuspended() {
		return
	}
	j.of.Suspend()
	j.of.Restore(w.Spec.PodSets)
}
