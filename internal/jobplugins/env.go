package jobplugins

import (
	"flag"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// env tells every container the number of its pod within its task.
type env struct{}

func newEnv(job jobView, arguments []string) (Plugin, error) {
	return env{}, job.parse(arguments, func(*flag.FlagSet) {})
}

// EditPod sets VC_TASK_INDEX, and VK_TASK_INDEX for images that know only the old name.
func (env) EditPod(pod *corev1.Pod, _ *batch.TaskSpec, index int) {
	everyContainer(pod, func(container *corev1.Container) {
		for _, name := range [...]string{"VK_TASK_INDEX", "VC_TASK_INDEX"} {
			setEnv(container, corev1.EnvVar{Name: name, Value: strconv.Itoa(index)})
		}
	})
}
