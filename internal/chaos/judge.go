package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/internal/audit"
)

// The names of what is checked besides the rules of package audit.
const (
	// RuleEnds is that jobs end once nothing is in their way.
	RuleEnds = "ends"
	// RuleLeavesNothing is that objects go with the job that they were made for, and that queues count nothing then.
	RuleLeavesNothing = "leaves-nothing"
	// RuleRests is that nothing is written when nothing happens.
	RuleRests = "rests"
	// RuleQuotaOfPods is that pods under quota never request more than the quotas are together.
	RuleQuotaOfPods = "quota-of-pods"
)

// inventory is all objects of the API server, by kind, namespace and name.
type inventory map[string]*unstructured.Unstructured

// passing are the kinds that come and go by themselves, or are written at any time.
var passing = []string{"Event", "Lease", "EndpointSlice", "Endpoints", "ComponentStatus", "APIService", "IPAddress"}

// takeInventory reads all objects that are not passing.
func (r *run) takeInventory(ctx context.Context) (inventory, error) {
	lists, err := r.core.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // that of Hekla's answers may not be served
		return nil, err
	}
	all := inventory{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			kind := &list.APIResources[i]
			if !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "watch") || slices.Contains(passing, kind.Kind) {
				continue
			}
			objects, err := r.any.Resource(version.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Name, err)
			}
			for j := range objects.Items {
				o := &objects.Items[j]
				all[nameOf(o)] = o
			}
		}
	}
	return all, nil
}

func nameOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// left says what is there that was not there before, what is being deleted, and what queues still count.
func left(before, now inventory, at time.Time) []audit.Violation {
	var found []audit.Violation
	add := func(name, format string, arguments ...any) {
		found = append(found, audit.Violation{Time: at, Rule: RuleLeavesNothing, Objects: []string{name}, Message: fmt.Sprintf(format, arguments...)})
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		o := now[name]
		switch {
		case o.GetDeletionTimestamp() != nil:
			add(name, "was deleted at %s and is there, with the finalizers %s", o.GetDeletionTimestamp().UTC().Format(time.TimeOnly), strings.Join(o.GetFinalizers(), ", "))
		case before[name] == nil:
			status, _, _ := unstructured.NestedMap(o.Object, "status")
			add(name, "is left over, since %s; its status is %v", o.GetCreationTimestamp().UTC().Format(time.TimeOnly), status)
		}
		for _, count := range counted[o.GetKind()] {
			if value, isThere, _ := unstructured.NestedInt64(o.Object, "status", count); isThere && value != 0 {
				add(name, "says %s: %d, and no job is there", count, value)
			}
		}
	}
	return found
}

// counted are the fields of the status of queues that count what is in them.
var counted = map[string][]string{
	"Queue":        {"running", "inqueue", "pending", "unknown"},
	"ClusterQueue": {"admittedWorkloads", "reservingWorkloads", "pendingWorkloads"},
	"LocalQueue":   {"admittedWorkloads", "reservingWorkloads", "pendingWorkloads"},
}

// written says what has been written between two inventories. Nodes say from time to time that they live.
func written(before, now inventory, at time.Time) []audit.Violation {
	var found []audit.Violation
	for _, name := range slices.Sorted(maps.Keys(now)) {
		o, was := now[name], before[name]
		if o.GetKind() == "Node" || was != nil && was.GetResourceVersion() == o.GetResourceVersion() {
			continue
		}
		by := "it does not say by whom"
		if fields := o.GetManagedFields(); len(fields) > 0 {
			last := slices.MaxFunc(fields, func(a, b metav1.ManagedFieldsEntry) int {
				if a.Time == nil || b.Time == nil {
					return 0
				}
				return a.Time.Compare(b.Time.Time)
			})
			by = "last by " + last.Manager
		}
		found = append(found, audit.Violation{Time: at, Rule: RuleRests, Objects: []string{name}, Message: "is written, and nothing happens; " + by})
	}
	return found
}

// unfinished says which jobs have not ended.
func unfinished(jobs []job, at time.Time) []audit.Violation {
	var found []audit.Violation
	for _, j := range jobs {
		if j.end == "" {
			found = append(found, audit.Violation{Time: at, Rule: RuleEnds, Objects: []string{"Job " + namespace + "/" + j.name},
				Message: fmt.Sprintf("does not end, and nothing is in its way: %+v", j.status)})
		}
	}
	return found
}

// heldCPUs are what pods that hold nodes request, and which these are.
func heldCPUs(pods []corev1.Pod) (sum resource.Quantity, names []string) {
	for i := range pods {
		pod := &pods[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		sum.Add(*requests.Cpu())
		names = append(names, "Pod "+pod.Namespace+"/"+pod.Name)
	}
	return sum, names
}

// beyondQuota says by how much pods that hold nodes exceed the quotas, nil if they do not.
func beyondQuota(pods []corev1.Pod, quota resource.Quantity, at time.Time) *audit.Violation {
	sum, names := heldCPUs(pods)
	if sum.Cmp(quota) <= 0 {
		return nil
	}
	return &audit.Violation{Time: at, Rule: RuleQuotaOfPods, Objects: names,
		Message: fmt.Sprintf("request %s CPUs, and the quotas are %s together", sum.String(), quota.String())}
}
