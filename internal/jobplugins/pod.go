package jobplugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// everyContainer calls do for the init containers and the containers of a pod.
func everyContainer(pod *corev1.Pod, do func(*corev1.Container)) {
	for i := range pod.Spec.InitContainers {
		do(&pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		do(&pod.Spec.Containers[i])
	}
}

// setEnv gives the container a variable. One that the template already has is overwritten in its place: of two with one
// name the later counts, so appending would have the same effect and a warning of the API server.
func setEnv(container *corev1.Container, variables ...corev1.EnvVar) {
	for _, variable := range variables {
		at := slices.IndexFunc(container.Env, func(existing corev1.EnvVar) bool { return existing.Name == variable.Name })
		if at >= 0 {
			container.Env[at] = variable
			continue
		}
		container.Env = append(container.Env, variable)
	}
}

// openPort declares a port of the container unless it declares that number already.
func openPort(container *corev1.Container, name string, number int) {
	declared := slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool {
		return port.ContainerPort == int32(number)
	})
	if !declared {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: name, ContainerPort: int32(number)})
	}
}
