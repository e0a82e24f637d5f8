package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// BindingRequest is a Binding that the API server has carried out.
const BindingRequest = "POST pods/binding 201"

// Check compares what the API server shows now with what must hold, and returns what does not, a sentence each.
func (t *Testbed) Check(ctx context.Context, l *Load, seen Seen, writes Writes) ([]string, error) {
	// All namespaces: pods of any namespace fill a node.
	pods, err := t.Clients.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	nodes, err := t.Clients.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	problems := append(seen.Problems, writes.Refused()...)
	problems = append(problems, l.judge(pods.Items, nodes.Items, writes[BindingRequest], t.PodsRun)...)
	for i, problem := range problems {
		problems[i] = l.Name + ": " + problem
	}
	return problems, nil
}

// judge says what is wrong with a load after so many bindings, given all pods and nodes of the cluster, and whether
// bound pods should run.
func (l *Load) judge(pods []corev1.Pod, nodes []corev1.Node, bindings int, mustRun bool) []string {
	var problems []string
	there, bound, running := 0, 0, 0
	boundOfGang := make(map[string]int)
	for i := range pods {
		if pods[i].Labels[loadLabel] != l.Name {
			continue
		}
		there++
		if pods[i].Status.Phase == corev1.PodRunning {
			running++
		}
		if pods[i].Spec.NodeName != "" {
			bound++
			boundOfGang[pods[i].Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]]++
		}
	}
	if there != l.Pods() {
		problems = append(problems, fmt.Sprintf("there are %d pods, and not %d", there, l.Pods()))
	}
	if bound != l.Pods() {
		problems = append(problems, fmt.Sprintf("%d of %d pods are bound", bound, l.Pods()))
	}
	if mustRun && running != l.Pods() {
		problems = append(problems, fmt.Sprintf("%d of %d pods run", running, l.Pods()))
	}
	if bindings != bound {
		problems = append(problems, fmt.Sprintf("%d bindings were carried out for %d bound pods", bindings, bound))
	}
	for _, gang := range slices.Sorted(maps.Keys(boundOfGang)) {
		if count := boundOfGang[gang]; count != l.Members {
			problems = append(problems, fmt.Sprintf("the gang %s is not whole: %d of %d pods are bound", gang, count, l.Members))
		}
	}
	return append(problems, overcommitted(pods, nodes)...)
}

// overcommitted names the nodes whose pods request more than there is, and pods on nodes that are not there.
func overcommitted(pods []corev1.Pod, nodes []corev1.Node) []string {
	used := make(map[string]corev1.ResourceList)
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = corev1.ResourceList{}
		}
		for name, quantity := range requests {
			sum := used[pod.Spec.NodeName][name]
			sum.Add(quantity)
			used[pod.Spec.NodeName][name] = sum
		}
	}
	var problems []string
	for i := range nodes {
		node := &nodes[i]
		for name, sum := range used[node.Name] {
			if has := node.Status.Allocatable[name]; sum.Cmp(has) > 0 {
				problems = append(problems, fmt.Sprintf("node %s is over-committed: its pods request %s of %s, and it has %s", node.Name, sum.String(), name, has.String()))
			}
		}
		delete(used, node.Name)
	}
	for node := range used {
		problems = append(problems, fmt.Sprintf("pods are bound to %s, which is no node", node))
	}
	slices.Sort(problems)
	return problems
}
