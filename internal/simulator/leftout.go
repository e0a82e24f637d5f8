package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/simulator/report"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// omissions are what of the input the simulation does nothing with, by the name of the object, with the reasons.
type omissions struct {
	*simulation
	reasons map[string][]string
}

// leftOut names what of the input the simulation does nothing with, and what the input refers to and does not have.
func (s teller) leftOut() (rows []report.LeftOut) {
	o := omissions{s.simulation, map[string][]string{}}
	for _, j := range s.input.Jobs {
		o.checkJob(j)
	}
	for _, j := range s.input.BatchJobs {
		o.checkBatchJob(j)
	}
	for _, g := range s.input.Groups {
		o.checkClass("PodGroup", g, g.Spec.PriorityClassName)
	}
	for _, pod := range s.input.Pods {
		o.checkPod(pod)
	}
	for _, object := range slices.Sorted(maps.Keys(o.reasons)) {
		for _, reason := range slices.Compact(slices.Sorted(slices.Values(o.reasons[object]))) {
			rows = append(rows, report.LeftOut{Object: object, Reason: reason})
		}
	}
	return rows
}

func (o omissions) add(kind string, of metav1.Object, reason string) {
	name := kind + " " + of.GetNamespace() + "/" + of.GetName()
	o.reasons[name] = append(o.reasons[name], reason)
}

func foreign(schedulerName string) string {
	return fmt.Sprintf("its schedulerName is %s, so another scheduler places its pods", cmp.Or(schedulerName, corev1.DefaultSchedulerName))
}

// checkJob looks at a Job of Volcano.
func (o omissions) checkJob(j *batchv1alpha1.Job) {
	switch phase := j.Status.State.Phase; {
	case phase == batchv1alpha1.Completed || phase == batchv1alpha1.Failed || phase == batchv1alpha1.Terminated:
	case !makesPods(j):
		o.add("Job", j, fmt.Sprintf("its phase is %s, in which its pods are not made", phase))
	case j.Spec.SchedulerName != "" && !slices.Contains(o.options.SchedulerNames, j.Spec.SchedulerName):
		o.add("Job", j, foreign(j.Spec.SchedulerName))
	default:
		o.checkClass("Job", j, j.Spec.PriorityClassName)
		for i := range j.Spec.Tasks {
			o.checkSpec("Job", j, &j.Spec.Tasks[i].Template.Spec)
		}
	}
}

// checkBatchJob looks at a Job of Kubernetes.
func (o omissions) checkBatchJob(j *batchv1.Job) {
	if _, _, isOver := (queueing.BatchJob{Job: j}).Finished(); isOver {
		return
	}
	switch isQueued := j.Labels[v1beta2.QueueNameLabel] != ""; {
	case ptr.Deref(j.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName:
		o.add("Job", j, fmt.Sprintf("its spec.managedBy is %s, so another controller makes its pods", *j.Spec.ManagedBy))
	case ptr.Deref(j.Spec.Suspend, false) && !isQueued:
		o.add("Job", j, fmt.Sprintf("it is suspended, and has no label %s by which it would be started", v1beta2.QueueNameLabel))
	case o.hasForeignPod(j.UID):
		o.add("Job", j, foreign(j.Spec.Template.Spec.SchedulerName))
	default:
		o.checkSpec("Job", j, &j.Spec.Template.Spec)
	}
}

// hasForeignPod reports whether any pod of an owner waits for another scheduler.
func (o omissions) hasForeignPod(owner types.UID) bool {
	for _, pod := range o.pods {
		if by := metav1.GetControllerOfNoCopy(pod); by != nil && by.UID == owner && o.waitsForAnother(pod) {
			return true
		}
	}
	return false
}

func (o omissions) waitsForAnother(pod *corev1.Pod) bool {
	return isAlive(pod) && pod.Spec.NodeName == "" && !slices.Contains(o.options.SchedulerNames, pod.Spec.SchedulerName)
}

// checkPod looks at a pod of the input.
func (o omissions) checkPod(given *corev1.Pod) {
	pod := o.pods[keyOf(given)]
	if pod == nil || !isAlive(pod) || given.Spec.NodeName != "" {
		return
	}
	if o.waitsForAnother(pod) {
		if o.ownerOf(pod) == nil { // its Job is named
			o.add("Pod", pod, foreign(pod.Spec.SchedulerName))
		}
		return
	}
	if group := pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]; group != "" && o.groups[groupOf(pod)] == nil {
		o.add("Pod", pod, fmt.Sprintf("its PodGroup %s/%s is not in the input, so it has no place", pod.Namespace, group))
	}
	o.checkSpec("Pod", pod, &pod.Spec)
}

// checkSpec looks for what the spec of a pod or of a template refers to.
func (o omissions) checkSpec(kind string, of metav1.Object, spec *corev1.PodSpec) {
	o.checkClass(kind, of, spec.PriorityClassName)
	if name := ptr.Deref(spec.RuntimeClassName, ""); name != "" && o.input.Given(of.GetNamespace(), spec).RuntimeClass == nil {
		o.add(kind, of, fmt.Sprintf("its RuntimeClass %s is not in the input, so it has no overhead", name))
	}
}

func (o omissions) checkClass(kind string, of metav1.Object, name string) {
	if name != "" && o.input.Priorities[name] == nil {
		o.add(kind, of, fmt.Sprintf("its PriorityClass %s is not in the input", name))
	}
}
