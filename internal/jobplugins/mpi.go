package jobplugins

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// mpi tells the master, in MPI_HOST, where the workers are, and opens the port of sshd on every pod.
type mpi struct {
	master      string
	workerHosts string
	port        int
}

func newMPI(job jobView, arguments []string) (Plugin, error) {
	m := &mpi{}
	var worker string
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&m.master, "master", "master", "")
		flags.StringVar(&worker, "worker", "worker", "")
		flags.IntVar(&m.port, "port", 22, "")
	})
	if err != nil {
		return nil, err
	}
	for _, role := range [...]struct{ argument, task string }{{"master", m.master}, {"worker", worker}} {
		if job.task(role.task) == nil {
			//lint:ignore ST1005 Volcano's phrase begins so
			err = errors.Join(err, fmt.Errorf("The specified mpi %s task was not found: the Job has no task %q; --%s names the task of the %s",
				role.argument, role.task, role.argument, role.argument))
		}
	}
	if err = errors.Join(err, portInRange("port", m.port), job.checkList("MPI_HOST", maxVariable, 1, job.task(worker))); err != nil {
		return nil, err
	}
	m.workerHosts = strings.Join(job.addresses(job.task(worker)), ",")
	return m, nil
}

// EditPod opens the port, and sets MPI_HOST on the master.
func (m *mpi) EditPod(pod *corev1.Pod, task *batch.TaskSpec, _ int) {
	everyContainer(pod, func(container *corev1.Container) {
		openPort(container, "mpijob-port", m.port)
		if task.Name == m.master {
			setEnv(container, corev1.EnvVar{Name: "MPI_HOST", Value: m.workerHosts})
		}
	})
}
