package jobplugins

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// waitForMaster is the name of the init container that waits for the master.
const waitForMaster = "wait-for-master"

// pytorch tells each pod what torch.distributed reads from the environment: where the master is, how many processes
// there are, and which of them this is.
type pytorch struct {
	job            jobView
	master, worker string
	port           int
	wait           bool
	waitSeconds    int
	waitImage      string
}

func newPytorch(job jobView, arguments []string) (Plugin, error) {
	p := &pytorch{job: job}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&p.master, "master", "master", "")
		flags.StringVar(&p.worker, "worker", "worker", "")
		flags.IntVar(&p.port, "port", 23456, "")
		flags.BoolVar(&p.wait, "wait-master-enabled", false, "")
		flags.IntVar(&p.waitSeconds, "wait-master-timeout", 300, "")
		flags.StringVar(&p.waitImage, "wait-master-image", "busybox:1.36.1", "")
	})
	if err != nil {
		return nil, err
	}
	if p.waitSeconds <= 0 {
		err = errors.Join(err, fmt.Errorf("--wait-master-timeout is %d: must be a positive number of seconds", p.waitSeconds))
	}
	if p.waitImage == "" {
		err = errors.Join(err, errors.New("--wait-master-image is empty"))
	}
	return p, errors.Join(err, portInRange("port", p.port))
}

// EditPod sets MASTER_ADDR, MASTER_PORT, WORLD_SIZE and, for pods of master and worker, RANK. A Job without the
// master's task gets nothing: it finds its ranks in some other way.
func (p *pytorch) EditPod(pod *corev1.Pod, task *batch.TaskSpec, index int) {
	master := p.job.task(p.master)
	if master == nil {
		return
	}
	address := p.job.host(master, 0).address
	variables := []corev1.EnvVar{
		{Name: "MASTER_ADDR", Value: address},
		{Name: "MASTER_PORT", Value: strconv.Itoa(p.port)},
		{Name: "WORLD_SIZE", Value: strconv.Itoa(p.worldSize())},
	}
	switch task.Name {
	case p.worker:
		variables = append(variables, corev1.EnvVar{Name: rankVariable, Value: strconv.Itoa(index + 1)})
	case p.master:
		variables = append(variables, corev1.EnvVar{Name: rankVariable, Value: "0"})
	}
	for i := range pod.Spec.Containers {
		openPort(&pod.Spec.Containers[i], "pytorchjob-port", p.port)
		setEnv(&pod.Spec.Containers[i], variables...)
	}
	if p.wait && task.Name == p.worker {
		p.addWait(pod, address)
	}
}

// worldSize is how many pods take part.
func (p *pytorch) worldSize() int {
	var size int32
	for i := range p.job.Spec.Tasks {
		if name := p.job.Spec.Tasks[i].Name; name == p.master || name == p.worker {
			size += p.job.Spec.Tasks[i].Replicas
		}
	}
	return int(size)
}

// addWait adds an init container that ends when the master's port is open. The template may bring its own.
func (p *pytorch) addWait(pod *corev1.Pod, address string) {
	isThere := slices.ContainsFunc(pod.Spec.InitContainers, func(container corev1.Container) bool {
		return container.Name == waitForMaster
	})
	if isThere {
		return
	}
	script := fmt.Sprintf(`deadline=$(($(date +%%s) + %d))
until nc -z -w 2 %s %d; do
  if [ "$(date +%%s)" -ge "$deadline" ]; then
    echo "the master does not answer at %s:%d after %d seconds" >&2
    exit 1
  fi
  sleep 1
done
`, p.waitSeconds, address, p.port, address, p.port, p.waitSeconds)
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name: waitForMaster, Image: p.waitImage, Command: []string{"sh", "-c", script},
	})
}
