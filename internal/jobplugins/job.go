package jobplugins

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// jobView is a Job as its plugins see it.
type jobView struct {
	*batch.Job
	podName func(job, task string, index int) string

	// ignored collects the arguments that a plugin does not know.
	ignored *[]string
}

// host is one pod of a Job by name.
type host struct {
	// name is the host's own, short name.
	name string

	// address is how the other pods of the namespace reach it: name and subdomain.
	address string
}

// host returns the index-th host of a task. The template's own host name and subdomain count.
func (j jobView) host(task *batch.TaskSpec, index int) host {
	name, subdomain := task.Template.Spec.Hostname, task.Template.Spec.Subdomain
	if name == "" {
		name = j.podName(j.Name, task.Name, index)
	}
	if subdomain == "" {
		subdomain = j.Name
	}
	return host{name: name, address: name + "." + subdomain}
}

// hosts returns all hosts of a task. Where the template gives its pods one name, that is one host.
func (j jobView) hosts(task *batch.TaskSpec) []host {
	count := int(task.Replicas)
	if task.Template.Spec.Hostname != "" {
		count = min(count, 1)
	}
	hosts := make([]host, count)
	for index := range hosts {
		hosts[index] = j.host(task, index)
	}
	return hosts
}

// Limits of lists of hosts, in bytes: what cannot be stored, or given to any process, is refused before it is put
// together. A Job may have a million pods.
const (
	// maxObject is what a ConfigMap or Secret may hold.
	maxObject = 1 << 20

	// maxVariable is the longest variable that Linux gives a process.
	maxVariable = 128 << 10
)

// checkList returns an error if a list of the hosts of tasks, with so many bytes next to each address, has more than
// limit bytes. It need not be put together for that.
func (j jobView) checkList(what string, limit, extra int, tasks ...*batch.TaskSpec) error {
	var hosts, size int64
	for _, task := range tasks {
		if task == nil || task.Replicas <= 0 {
			continue
		}
		count := int64(task.Replicas)
		if task.Template.Spec.Hostname != "" {
			count = 1
		}
		hosts += count
		size += count * int64(len(j.host(task, int(task.Replicas)-1).address)+extra)
	}
	if size > int64(limit) {
		return fmt.Errorf("%s of %d hosts would have %d bytes, and %d are the most", what, hosts, size, limit)
	}
	return nil
}

// all returns all tasks.
func (j jobView) all() []*batch.TaskSpec {
	tasks := make([]*batch.TaskSpec, len(j.Spec.Tasks))
	for i := range tasks {
		tasks[i] = &j.Spec.Tasks[i]
	}
	return tasks
}

// addresses returns the addresses of all hosts of a task.
func (j jobView) addresses(task *batch.TaskSpec) []string {
	hosts := j.hosts(task)
	addresses := make([]string, len(hosts))
	for i := range hosts {
		addresses[i] = hosts[i].address
	}
	return addresses
}

// task returns the task of that name, or nil.
func (j jobView) task(name string) *batch.TaskSpec {
	for i := range j.Spec.Tasks {
		if j.Spec.Tasks[i].Name == name {
			return &j.Spec.Tasks[i]
		}
	}
	return nil
}

// meta names an object of the Job's.
func (j jobView) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: j.Namespace, Name: name}
}

// podLabels select the pods of the Job.
func (j jobView) podLabels() map[string]string {
	return map[string]string{batch.JobNameKey: j.Name, batch.JobNamespaceKey: j.Namespace}
}
