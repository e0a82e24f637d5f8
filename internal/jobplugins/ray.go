package jobplugins

import (
	"errors"
	"flag"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// ray starts a Ray cluster: the head with its ports, the workers that join it, and a Service by which clients reach the
// head.
type ray struct {
	job                             jobView
	head, headContainer             string
	worker, workerContainer         string
	port, dashboardPort, clientPort int
}

func newRay(job jobView, arguments []string) (Plugin, error) {
	r := &ray{job: job}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.StringVar(&r.head, "head", "head", "")
		flags.StringVar(&r.headContainer, "headContainer", "head", "")
		flags.StringVar(&r.worker, "worker", "worker", "")
		flags.StringVar(&r.workerContainer, "workerContainer", "worker", "")
		flags.IntVar(&r.port, "port", 6379, "")
		flags.IntVar(&r.dashboardPort, "dashboardPort", 8265, "")
		flags.IntVar(&r.clientPort, "clientPort", 10001, "")
	})
	if err != nil {
		return nil, err
	}
	if job.task(r.head) == nil {
		err = fmt.Errorf("the Job has no task %q; --head names the task of the head", r.head)
	}
	for _, port := range r.ports() {
		err = errors.Join(err, portInRange(port.argument, port.number))
	}
	return r, err
}

// rayPort is one of the ports of the head: its name in pod and Service, and the argument that sets it.
type rayPort struct {
	name, argument string
	number         int
}

func (r *ray) ports() []rayPort {
	return []rayPort{
		{"gcs", "port", r.port},
		{"dashboard", "dashboardPort", r.dashboardPort},
		{"client-server", "clientPort", r.clientPort},
	}
}

// EditPod gives the containers of head and worker, known by their names, the command that starts Ray.
func (r *ray) EditPod(pod *corev1.Pod, task *batch.TaskSpec, _ int) {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if task.Name == r.head && container.Name == r.headContainer {
			for _, port := range r.ports() {
				openPort(container, port.name, port.number)
			}
			container.Command = []string{"sh", "-c", fmt.Sprintf(
				"ray start --head --block --dashboard-host=0.0.0.0 --port=%d --dashboard-port=%d --ray-client-server-port=%d",
				r.port, r.dashboardPort, r.clientPort)}
		}
		if task.Name == r.worker && container.Name == r.workerContainer {
			address := r.job.host(r.job.task(r.head), 0).address
			container.Command = []string{"sh", "-c", fmt.Sprintf("ray start --block --address=%s:%d", address, r.port)}
		}
	}
}

// Resources is the Service of the head.
func (r *ray) Resources() []Resource {
	return []Resource{resource(&corev1.Service{ObjectMeta: r.job.meta(r.job.Name + "-head-svc")}, r.updateService)}
}

func (r *ray) updateService(service *corev1.Service) error {
	selector := maps.Clone(r.job.podLabels())
	selector[batch.TaskSpecKey] = r.head
	service.Spec.Selector = selector
	service.Spec.Ports = nil
	for _, port := range r.ports() {
		// By number, not by name: the template may have named the port otherwise.
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: port.name, Protocol: corev1.ProtocolTCP, Port: int32(port.number), TargetPort: intstr.FromInt(port.number),
		})
	}
	return nil
}
