package workload

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/workload/integration"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

const (
	hashLength = 5
	// maxPrefix is how much of kind and name there is room for in the name of a Workload.
	maxPrefix = 252 - hashLength
)

// NameOf is the name of the Workload of a job. It is the one that Kueue gives, so Workloads that Kueue has made are found.
func NameOf(kind schema.GroupVersionKind, name string, uid types.UID) string {
	prefix := strings.ToLower(kind.Kind) + "-" + name
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	hash := sha1.Sum([]byte(strings.Join([]string{kind.Kind, kind.Group, name, string(uid)}, "\n")))
	return prefix + "-" + hex.EncodeToString(hash[:])[:hashLength]
}

// make is the Workload of a job, as it is created. The error is of reading priority classes.
func (r *jobs) make(ctx context.Context, job integration.Job) (*v1beta2.Workload, error) {
	object, kind := job.Object(), job.Kind()
	w := &v1beta2.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: NameOf(kind, object.GetName(), object.GetUID()),
			Labels:          map[string]string{v1beta2.JobUIDLabel: string(object.GetUID())},
			Finalizers:      []string{v1beta2.ResourceInUseFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, kind)},
		},
		Spec: v1beta2.WorkloadSpec{PodSets: job.PodSets(), QueueName: object.GetLabels()[v1beta2.QueueNameLabel]},
	}
	if gates := object.GetAnnotations()[v1beta2.AdmissionGatedByAnnotation]; gates != "" {
		w.Annotations = map[string]string{v1beta2.AdmissionGatedByAnnotation: gates}
	}
	if seconds, err := strconv.ParseInt(object.GetLabels()[v1beta2.MaxExecTimeSecondsLabel], 10, 32); err == nil && seconds > 0 {
		w.Spec.MaximumExecutionTimeSeconds = ptr.To(int32(seconds))
	}
	return w, r.prioritize(ctx, w, object.GetLabels()[v1beta2.PriorityClassLabel])
}

// prioritize gives a Workload the priority of its class: the WorkloadPriorityClass that the job names, else the PriorityClass of its
// pods, else the default one, else 0.
func (r *writer) prioritize(ctx context.Context, w *v1beta2.Workload, class string) error {
	if class != "" {
		found := &v1beta2.WorkloadPriorityClass{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: class}, found); err != nil {
			return reading("WorkloadPriorityClass", class, err)
		}
		w.Spec.Priority = &found.Value
		w.Spec.PriorityClassRef = &v1beta2.PriorityClassRef{Group: v1beta2.WorkloadPriorityClassGroup, Kind: v1beta2.WorkloadPriorityClassKind, Name: class}
		return nil
	}
	for i := range w.Spec.PodSets {
		if class = w.Spec.PodSets[i].Template.Spec.PriorityClassName; class != "" {
			break
		}
	}
	found, err := r.podPriority(ctx, class)
	if err != nil || found == nil {
		w.Spec.Priority = ptr.To(int32(0))
		return err
	}
	w.Spec.Priority = &found.Value
	w.Spec.PriorityClassRef = &v1beta2.PriorityClassRef{Group: v1beta2.PodPriorityClassGroup, Kind: v1beta2.PodPriorityClassKind, Name: found.Name}
	return nil
}

// podPriority is the PriorityClass of this name, or the default one if the name is empty; nil if there is none.
func (r *writer) podPriority(ctx context.Context, name string) (*schedulingv1.PriorityClass, error) {
	if name != "" {
		found := &schedulingv1.PriorityClass{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return nil, reading("PriorityClass", name, err)
		}
		return found, nil
	}
	all := &schedulingv1.PriorityClassList{}
	if err := r.client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing PriorityClasses: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].GlobalDefault {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// infos are what the pods of each podset get: of the flavors they are admitted with, and of the checks.
func (r *writer) infos(ctx context.Context, w *v1beta2.Workload) ([]integration.Info, error) {
	infos := make([]integration.Info, len(w.Status.Admission.PodSetAssignments))
	for i := range w.Status.Admission.PodSetAssignments {
		p, info := &w.Status.Admission.PodSetAssignments[i], &infos[i]
		info.Name = p.Name
		info.Labels = map[string]string{v1beta2.PodSetLabel: p.Name}
		info.Annotations = map[string]string{v1beta2.WorkloadAnnotation: w.Name}
		if p.Count != nil {
			info.Count = *p.Count
		} else if i < len(w.Spec.PodSets) {
			info.Count = w.Spec.PodSets[i].Count
		}
		if i < len(w.Spec.PodSets) && p.TopologyAssignment != nil && !slices.Contains(r.schedulers, w.Spec.PodSets[i].Template.Spec.SchedulerName) {
			info.Gate = v1beta2.TopologyGate // its scheduler does not know which nodes the workload holds
		}
		for _, name := range sortedFlavors(p.Flavors) {
			flavor := &v1beta2.ResourceFlavor{}
			if err := r.client.Get(ctx, client.ObjectKey{Name: name}, flavor); err != nil {
				return nil, reading("ResourceFlavor", name, err)
			}
			update := &v1beta2.PodSetUpdate{NodeSelector: flavor.Spec.NodeLabels, Tolerations: flavor.Spec.Tolerations}
			if err := info.Add(update); err != nil {
				return nil, contradiction{fmt.Errorf("podset %s, flavor %s: %w", p.Name, name, err)}
			}
		}
		for j := range w.Status.AdmissionChecks {
			check := &w.Status.AdmissionChecks[j]
			for k := range check.PodSetUpdates {
				if check.PodSetUpdates[k].Name != p.Name {
					continue
				}
				if err := info.Add(&check.PodSetUpdates[k]); err != nil {
					return nil, contradiction{fmt.Errorf("podset %s, check %s: %w", p.Name, check.Name, err)}
				}
			}
		}
	}
	return infos, nil
}

// reading is the error of an object that a job or Workload names. That it does not exist is no sign that the job is gone, so the error
// of the API server is not in it.
func reading(kind, name string, err error) error {
	return fmt.Errorf("reading %s %q: %s", kind, name, err.Error())
}

// contradiction is what makes it impossible to start a job as it was admitted. Trying again does not help.
type contradiction struct{ error }

func sortedFlavors(flavors map[corev1.ResourceName]string) []string {
	var names []string
	for _, name := range flavors {
		names = append(names, name)
	}
	return sortedOnce(names)
}
