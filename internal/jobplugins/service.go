package jobplugins

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// hostsPath is where containers find the host files.
const hostsPath = "/etc/volcano"

// service lets the pods of a Job find each other: a headless Service gives each an address, and a ConfigMap lists the
// addresses of each task, mounted as files and offered as variables. A NetworkPolicy keeps others out.
type service struct {
	job                      jobView
	publishNotReadyAddresses bool
	disableNetworkPolicy     bool
	injectHostsEnv           bool
}

func newService(job jobView, arguments []string) (Plugin, error) {
	s := &service{job: job}
	err := job.parse(arguments, func(flags *flag.FlagSet) {
		flags.BoolVar(&s.publishNotReadyAddresses, "publish-not-ready-addresses", false, "")
		flags.BoolVar(&s.disableNetworkPolicy, "disable-network-policy", false, "")
		flags.BoolVar(&s.injectHostsEnv, "inject-hosts-env", true, "")
	})
	// The addresses stand in it twice, as a file and as a variable.
	return s, errors.Join(err, canBeVolume(s.configMapName()), s.checkHostNames(), job.checkList("the ConfigMap", maxObject/2, 1, job.all()...))
}

// checkHostNames returns an error if a pod could not be given its name as its host name.
func (s *service) checkHostNames() error {
	for i := range s.job.Spec.Tasks {
		task := &s.job.Spec.Tasks[i]
		last := s.job.host(task, int(max(task.Replicas-1, 0)))
		if messages := validation.IsDNS1123Label(last.name); len(messages) > 0 {
			return fmt.Errorf("the pod name %s cannot be a host name: %s", last.name, messages[0])
		}
	}
	return nil
}

// canBeVolume returns an error if the name of an object cannot be that of a volume too.
func canBeVolume(name string) error {
	if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
		return fmt.Errorf("the name %s cannot be used: %s", name, messages[0])
	}
	return nil
}

func (s *service) configMapName() string { return s.job.Name + "-svc" }

// hostsKey, numberKey and fileKey are the keys of the ConfigMap that tell of a task, and the first two are also the
// names of the variables.
func hostsKey(task *batch.TaskSpec) string {
	return "VC_" + strings.ToUpper(underscored(task)) + "_HOSTS"
}
func numberKey(task *batch.TaskSpec) string {
	return "VC_" + strings.ToUpper(underscored(task)) + "_NUM"
}
func fileKey(task *batch.TaskSpec) string { return underscored(task) + ".host" }

// underscored is the name of a task as part of a variable's.
func underscored(task *batch.TaskSpec) string { return strings.ReplaceAll(task.Name, "-", "_") }

// EditPod gives the pod its address, the host files, and the hosts as variables.
func (s *service) EditPod(pod *corev1.Pod, _ *batch.TaskSpec, _ int) {
	if pod.Spec.Hostname == "" {
		pod.Spec.Hostname = pod.Name
	}
	if pod.Spec.Subdomain == "" {
		pod.Spec.Subdomain = s.job.Name
	}
	reference := corev1.LocalObjectReference{Name: s.configMapName()}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: reference.Name,
		VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference},
		},
	})
	everyContainer(pod, func(container *corev1.Container) {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: reference.Name, MountPath: hostsPath})
		if !s.injectHostsEnv {
			return
		}
		for i := range s.job.Spec.Tasks {
			task := &s.job.Spec.Tasks[i]
			for _, key := range [...]string{hostsKey(task), numberKey(task)} {
				selector := &corev1.ConfigMapKeySelector{LocalObjectReference: reference, Key: key}
				setEnv(container, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: selector}})
			}
		}
	})
}

// Resources are the ConfigMap, the Service, and the NetworkPolicy unless it was declined.
func (s *service) Resources() []Resource {
	resources := []Resource{
		resource(&corev1.ConfigMap{ObjectMeta: s.job.meta(s.configMapName())}, s.updateHosts),
		resource(&corev1.Service{ObjectMeta: s.job.meta(s.job.Name)}, s.updateService),
	}
	if !s.disableNetworkPolicy {
		resources = append(resources,
			resource(&networkingv1.NetworkPolicy{ObjectMeta: s.job.meta(s.job.Name)}, s.updateNetworkPolicy))
	}
	for i := range resources[1:] {
		resources[1+i].UsersOwnWillDo = true
	}
	return resources
}

func (s *service) updateHosts(hosts *corev1.ConfigMap) error {
	hosts.Data = map[string]string{}
	for i := range s.job.Spec.Tasks {
		task := &s.job.Spec.Tasks[i]
		addresses := s.job.addresses(task)
		hosts.Data[fileKey(task)] = strings.Join(addresses, "\n")
		hosts.Data[hostsKey(task)] = strings.Join(addresses, ",")
		hosts.Data[numberKey(task)] = strconv.Itoa(len(addresses))
	}
	return nil
}

func (s *service) updateService(service *corev1.Service) error {
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.Selector = s.job.podLabels()
	service.Spec.PublishNotReadyAddresses = s.publishNotReadyAddresses
	// Some DNS servers give no addresses for a Service without a port.
	service.Spec.Ports = []corev1.ServicePort{{
		Name: "placeholder-volcano", Protocol: corev1.ProtocolTCP, Port: 1, TargetPort: intstr.FromInt32(1),
	}}
	return nil
}

func (s *service) updateNetworkPolicy(policy *networkingv1.NetworkPolicy) error {
	pods := metav1.LabelSelector{MatchLabels: s.job.podLabels()}
	policy.Spec = networkingv1.NetworkPolicySpec{
		PodSelector: pods,
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &pods}}}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
	}
	return nil
}
