package v1alpha1

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Names of the job plugins that SetDefaults knows.
const (
	servicePlugin    = "svc"
	sshPlugin        = "ssh"
	tensorflowPlugin = "tensorflow"
	pytorchPlugin    = "pytorch"
	mpiPlugin        = "mpi"
	rayPlugin        = "ray"
)

// SetDefaults fills in what the user left open, in place; what the user wrote stays. It covers the defaults of the
// schema too, for Jobs that never passed an API server, and it is idempotent. A caller that knows by which names our
// scheduler goes fills in the first of them before.
//
// The sizes are not written back to the API server: a Job that leaves minAvailable open and is scaled later has its
// gang scaled with it.
func SetDefaults(job *Job) {
	spec := &job.Spec
	setDefault(&spec.SchedulerName, schedulingv1beta1.DefaultSchedulerName)
	setDefault(&spec.Queue, schedulingv1beta1.DefaultQueue)
	setDefault(&spec.MaxRetry, DefaultMaxRetry)

	var total int32
	for i := range spec.Tasks {
		setTaskDefaults(&spec.Tasks[i], i)
		total = sum(total, *spec.Tasks[i].MinAvailable)
	}
	setDefault(&spec.MinAvailable, total)
	addRequiredPlugins(spec)
}

func setTaskDefaults(task *TaskSpec, position int) {
	setDefault(&task.Name, DefaultTaskSpec+strconv.Itoa(position))
	setDefault(&task.MaxRetry, DefaultMaxRetry)
	if task.MinAvailable == nil {
		minAvailable := task.Replicas
		if partitions := task.PartitionPolicy; partitions != nil && partitions.MinPartitions > 0 {
			minAvailable = product(partitions.MinPartitions, partitions.PartitionSize)
		}
		task.MinAvailable = &minAvailable
	}
	// A pod on its node's network would otherwise resolve names by the node's resolver and not find its peers.
	if pod := &task.Template.Spec; pod.HostNetwork {
		setDefault(&pod.DNSPolicy, corev1.DNSClusterFirstWithHostNet)
	}
}

// addRequiredPlugins adds the plugins that others need: the frameworks reach their peers by host name (svc), MPI logs
// in to them (ssh).
func addRequiredPlugins(spec *JobSpec) {
	for _, framework := range []string{tensorflowPlugin, pytorchPlugin, mpiPlugin, rayPlugin} {
		if _, ok := spec.Plugins[framework]; ok {
			addPlugin(spec, servicePlugin)
		}
	}
	if _, ok := spec.Plugins[mpiPlugin]; ok {
		addPlugin(spec, sshPlugin)
	}
}

func addPlugin(spec *JobSpec, name string) {
	if _, ok := spec.Plugins[name]; !ok {
		spec.Plugins[name] = []string{}
	}
}

// setDefault replaces a zero value.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
