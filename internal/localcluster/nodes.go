package localcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

const (
	// nodeAnnotation marks the nodes that kwok plays the kubelet of.
	nodeAnnotation = "kwok.x-k8s.io/node"
	// clusterLabel marks the nodes this package has made, so that a foreign cluster can be left as it was.
	clusterLabel = "hekla.sh/local-cluster"
	// nodeParallelism is how many nodes are created at once: enough to keep a small API server busy.
	nodeParallelism = 16
)

// NodeTemplate says what nodes are like. The zero value is a node called node-N with 8 CPUs, 32Gi of memory and room
// for 110 pods.
type NodeTemplate struct {
	// Prefix is what names begin with; a number follows.
	Prefix string
	// Capacity is also what is allocatable. When nil it is what the cluster was started with.
	Capacity corev1.ResourceList
	// Labels are set besides those that every node has.
	Labels map[string]string
	// Taints are none unless given.
	Taints []corev1.Taint
}

func (t NodeTemplate) capacity() corev1.ResourceList {
	if t.Capacity != nil {
		return t.Capacity
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("8"),
		corev1.ResourceMemory:           resource.MustParse("32Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
}

// node returns a node that is Ready from the start. An API server accepts the status of a node when it is created, so a
// thousand nodes take a thousand requests and not three thousand.
func (t NodeTemplate) node(cluster, name string) *corev1.Node {
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{nodeAnnotation: "fake"},
			Labels: map[string]string{
				clusterLabel:              cluster,
				"type":                    "kwok",
				corev1.LabelHostname:      name,
				corev1.LabelOSStable:      "linux",
				corev1.LabelArchStable:    runtime.GOARCH,
				"beta.kubernetes.io/os":   "linux",        // The node-lifecycle controller would add these two,
				"beta.kubernetes.io/arch": runtime.GOARCH, // with another write per node.
			},
		},
		Spec: corev1.NodeSpec{Taints: t.Taints},
		Status: corev1.NodeStatus{
			Capacity:    t.Capacity,
			Allocatable: t.Capacity,
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			NodeInfo:    corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: runtime.GOARCH, KubeletVersion: "kwok"},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
			},
		},
	}
	maps.Copy(node.Labels, t.Labels)
	return node
}

// AddNodes makes that many nodes, takes the lowest numbers that are free, and returns their names. When it fails some
// of them may have been made.
func (c *Cluster) AddNodes(ctx context.Context, count int, template NodeTemplate) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	if template.Prefix == "" {
		template.Prefix = "node-"
	}
	if template.Capacity == nil {
		template.Capacity = c.state.NodeCapacity
	}
	existing, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	isTaken := make(map[string]bool, len(existing.Items))
	for _, node := range existing.Items {
		isTaken[node.Name] = true
	}
	names := make([]string, 0, count)
	for number := 1; len(names) < count; number++ {
		if name := template.Prefix + strconv.Itoa(number); !isTaken[name] {
			names = append(names, name)
		}
	}
	isMade, wasTried := make([]bool, count), make([]bool, count)
	err = c.Await(ctx, "the nodes", func(ctx context.Context) error {
		failures := make([]error, count)
		workqueue.ParallelizeUntil(ctx, nodeParallelism, count, func(i int) {
			if isMade[i] {
				return
			}
			_, err := client.CoreV1().Nodes().Create(ctx, template.node(c.state.Name, names[i]), metav1.CreateOptions{})
			if wasTried[i] && apierrors.IsAlreadyExists(err) { // the answer to an earlier request did not arrive
				err = nil
			}
			isMade[i], wasTried[i] = err == nil, true
			if err != nil {
				failures[i] = fmt.Errorf("create the node %s: %w", names[i], err)
			}
		})
		if i := slices.IndexFunc(failures, func(err error) bool { return err != nil }); i >= 0 {
			return passing(failures[i])
		}
		return ctx.Err() // then not all were tried
	}, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	return names, nil
}

// Nodes returns the names of the nodes this cluster has made, ordered by number.
func (c *Cluster) Nodes(ctx context.Context) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{clusterLabel: c.state.Name}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	slices.SortFunc(names, func(a, b string) int {
		// A shorter name has a smaller number: node-9 comes before node-10.
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return names, nil
}

// RemoveNode removes a node as if its machine were gone: pods on it stay until the pod garbage collector finds them. A
// node that is not there is no error.
func (c *Cluster) RemoveNode(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	err = client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the node %s: %w", name, err)
	}
	return nil
}

// RemoveIdleNodes removes up to count nodes that no unfinished pod is bound to, the highest numbers first, and returns
// what it has removed and which nodes it has kept because they are in use.
func (c *Cluster) RemoveIdleNodes(ctx context.Context, count int) (removed, busy []string, err error) {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, nil, err
	}
	names, err := c.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Backward(names) {
		if len(removed) == count {
			break
		}
		isIdle, err := removeIfIdle(ctx, client, name)
		switch {
		case err != nil:
			return removed, busy, fmt.Errorf("remove the node %s: %w", name, err)
		case isIdle:
			removed = append(removed, name)
		default:
			busy = append(busy, name)
		}
	}
	return removed, busy, nil
}

// removeIfIdle cordons the node before it looks, so that no scheduler places a pod there between look and removal.
func removeIfIdle(ctx context.Context, client kubernetes.Interface, name string) (bool, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if err := setUnschedulable(ctx, client, name, true); err != nil {
		return false, err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return false, err
	}
	isIdle := !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	})
	if isIdle {
		return true, client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	}
	return false, setUnschedulable(ctx, client, name, node.Spec.Unschedulable)
}

func setUnschedulable(ctx context.Context, client kubernetes.Interface, name string, isUnschedulable bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, isUnschedulable)
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// removeAllNodes removes every node this cluster has made.
func (c *Cluster) removeAllNodes(ctx context.Context) error {
	names, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.RemoveNode(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// CreateNamespace makes a namespace and returns when pods can be created in it, which is when its default
// ServiceAccount is there.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the namespace %s: %w", name, err)
	}
	return c.awaitServiceAccount(ctx, name)
}

// awaitServiceAccount waits for the default ServiceAccount of a namespace. Without kube-controller-manager there is
// none, and pods need none either.
func (c *Cluster) awaitServiceAccount(ctx context.Context, namespace string) error {
	isRun := slices.ContainsFunc(c.Processes(), func(process *Process) bool { return process.Name == "kube-controller-manager" })
	if !isRun && !c.state.IsAttached {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return c.Await(ctx, "the default ServiceAccount of namespace "+namespace, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("kube-controller-manager has not made it: %w", err)
		}
		return passing(err)
	}, "kube-apiserver", "kube-controller-manager")
}
