package jobplugins

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// tensorflow tells each pod of a distributed TensorFlow Job, in TF_CONFIG, who its peers are and which of them it is.
type tensorflow struct {
	job                          jobView
	members                      clusterMembers
	ps, worker, chief, evaluator string
	port                         int
}

func newTensorflow(job jobView, arguments []string) (Plugin, error) {
	t := &tensorflow{job: job}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&t.ps, "ps", "ps", "")
		flags.StringVar(&t.worker, "worker", "worker", "")
		flags.StringVar(&t.chief, "chief", "chief", "")
		flags.StringVar(&t.evaluator, "evaluator", "evaluator", "")
		flags.IntVar(&t.port, "port", 2222, "")
	})
	list := []*batch.TaskSpec{job.task(t.ps), job.task(t.worker), job.task(t.chief), job.task(t.evaluator)}
	if err = errors.Join(err, job.checkList("TF_CONFIG", maxVariable, len(`"",`)+len(":65535"), list...), portInRange("port", t.port)); err != nil {
		return nil, err
	}
	t.members = clusterMembers{
		PS: t.endpoints(t.ps), Worker: t.endpoints(t.worker), Chief: t.endpoints(t.chief), Evaluator: t.endpoints(t.evaluator),
	}
	return t, nil
}

// clusterConfig is the content of TF_CONFIG.
type clusterConfig struct {
	Cluster clusterMembers `json:"cluster"`
	Task    clusterTask    `json:"task"`
}

type clusterMembers struct {
	PS        []string `json:"ps,omitempty"`
	Worker    []string `json:"worker,omitempty"`
	Chief     []string `json:"chief,omitempty"`
	Evaluator []string `json:"evaluator,omitempty"`
}

type clusterTask struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

// EditPod sets TF_CONFIG in the containers. A Job of a single pod is not distributed and gets none.
func (t *tensorflow) EditPod(pod *corev1.Pod, task *batch.TaskSpec, index int) {
	if len(t.job.Spec.Tasks) == 1 && t.job.Spec.Tasks[0].Replicas == 1 {
		return
	}
	text, err := json.Marshal(clusterConfig{Cluster: t.members, Task: clusterTask{Type: t.role(task.Name), Index: index}})
	if err != nil {
		panic(fmt.Sprintf("strings and numbers cannot be written as JSON: %v", err))
	}
	for i := range pod.Spec.Containers {
		setEnv(&pod.Spec.Containers[i], corev1.EnvVar{Name: "TF_CONFIG", Value: string(text)})
	}
}

// endpoints returns address and port of each host of a task; none if there is no such task.
func (t *tensorflow) endpoints(name string) []string {
	task := t.job.task(name)
	if task == nil {
		return nil
	}
	endpoints := t.job.addresses(task)
	for i := range endpoints {
		endpoints[i] = fmt.Sprintf("%s:%d", endpoints[i], t.port)
	}
	return endpoints
}

// role is what TensorFlow calls a task.
func (t *tensorflow) role(task string) string {
	switch task {
	case t.chief:
		return "chief"
	case t.worker:
		return "worker"
	case t.ps:
		return "ps"
	case t.evaluator:
		return "evaluator"
	}
	return task
}
