package jobplugins

import (
	"flag"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

const (
	// rankVariable is the variable that holds the rank of a process, which pytorch or the template sets.
	rankVariable = "RANK"

	// rankAnnotation is where the device plugin of Ascend looks for the rank of a pod.
	rankAnnotation = "hccl/rankIndex"
)

// hcclRank notes the rank of each pod on the pod.
type hcclRank struct {
	master, worker string
	masters        int
}

func newHCCLRank(job jobView, arguments []string) (Plugin, error) {
	h := &hcclRank{}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&h.master, "master", "master", "")
		flags.StringVar(&h.worker, "worker", "worker", "")
	})
	if master := job.task(h.master); master != nil {
		h.masters = int(master.Replicas)
	}
	return h, err
}

// EditPod sets the annotation unless the template has it: to RANK if a container has that, or else to the number of the
// pod among the masters and, after them, the workers. Pods of other tasks have no rank.
func (h *hcclRank) EditPod(pod *corev1.Pod, task *batch.TaskSpec, index int) {
	if pod.Annotations[rankAnnotation] != "" {
		return
	}
	rank := rankOf(pod)
	switch {
	case rank != "":
	case task.Name == h.master:
		rank = strconv.Itoa(index)
	case task.Name == h.worker:
		rank = strconv.Itoa(h.masters + index)
	default:
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[rankAnnotation] = rank
}

// rankOf returns the first RANK that a container of the pod has.
func rankOf(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		for _, variable := range pod.Spec.Containers[i].Env {
			if variable.Name == rankVariable && variable.Value != "" {
				return variable.Value
			}
		}
	}
	return ""
}
