package cluster

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// Imagine shows what a task would be if its pod still waited for a node: of the same job, and of the class that it would have
// then. What is shown is no part of the model: it may be asked about, nothing may be done to it, and it is forgotten when look
// returns.
func (c *Cluster) Imagine(t *Task, look func(*Task)) {
	pod := *t.Pod
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	imagined := &Task{Pod: &pod, Job: t.Job, Role: t.Role, Index: t.Index, Priority: t.Priority, inJob: -1}
	c.setClass(imagined, c.classOf(imagined))
	defer c.setClass(imagined, nil)
	look(imagined)
}

// PriorityClass returns the class of a name, nil if there is none.
func (c *Cluster) PriorityClass(name string) *schedulingv1.PriorityClass { return c.priorities[name] }
