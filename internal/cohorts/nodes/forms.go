package nodes

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/recent"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
)

// maxForms bounds how many forms were asked for lately, some two kilobytes each. Twice as many are kept.
const maxForms = 1 << 11

// Forms keeps the forms of stand-ins that are asked for. The zero value is ready to use.
type Forms struct {
	known recent.Map[formKey, *cluster.Pod]
}

// Age drops the forms that were not asked for lately. Each cycle calls it. Forms are found by the addresses of
// templates: when the last Workload of a template is gone, the next equal one has another.
func (f *Forms) Age(now time.Time) { f.known.Age(now, podclass.TemplateLife) }

// formKey tells forms apart. Templates, flavors and additions are never changed, so their addresses do.
type formKey struct {
	template  *corev1.PodTemplateSpec
	podSet    *workload.PodSet // if there is no template
	namespace string
	flavors   [4]*workload.Flavor
	added     *workload.Addition
}

// Of returns the form of a pod of a part of a Workload.
func (f *Forms) Of(index *resources.Index, w *workload.Workload, part *workload.Part) *cluster.Pod {
	set := &w.PodSets[part.PodSet]
	key := formKey{template: set.Template, namespace: w.Namespace, added: part.Added}
	if set.Template == nil {
		key.podSet = set
	}
	if copy(key.flavors[:], part.Flavors) < len(part.Flavors) {
		return form(index, w, part)
	}
	return f.known.Of(key, maxForms, func() *cluster.Pod { return form(index, w, part) })
}

// form makes the form of a pod: its template with the node labels and tolerations of its flavors, and with what
// admission checks add.
func form(index *resources.Index, w *workload.Workload, part *workload.Part) *cluster.Pod {
	set := &w.PodSets[part.PodSet]
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if set.Template == nil {
		pod.Spec.Containers = []corev1.Container{{Name: set.Name, Resources: corev1.ResourceRequirements{Requests: requests(index, set)}}}
	} else {
		pod.Labels, pod.Annotations = set.Template.Labels, set.Template.Annotations
		pod.Spec = *set.Template.Spec.DeepCopy()
	}
	pod.Namespace = w.Namespace
	for _, flavor := range part.Flavors {
		if len(flavor.NodeLabels) > 0 {
			selector := maps.Clone(pod.Spec.NodeSelector)
			if selector == nil {
				selector = map[string]string{}
			}
			maps.Copy(selector, flavor.NodeLabels)
			pod.Spec.NodeSelector = selector
		}
		pod.Spec.Tolerations = slices.Concat(pod.Spec.Tolerations, flavor.Tolerations)
	}
	if a := part.Added; a != nil {
		pod.Labels, pod.Annotations = with(pod.Labels, a.Labels), with(pod.Annotations, a.Annotations)
		pod.Spec.NodeSelector = with(pod.Spec.NodeSelector, a.NodeSelector)
		pod.Spec.Tolerations = slices.Concat(pod.Spec.Tolerations, a.Tolerations)
	}
	pod.Spec.SchedulingGates = slices.DeleteFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
		return strings.HasPrefix(g.Name, v1beta2.GroupVersion.Group+"/")
	})
	return pods.New(pod)
}

// with is a map with what another one has and it has not. Where both differ the job does not start, and its controller
// says so.
func with(has, added map[string]string) map[string]string {
	if len(added) == 0 {
		return has
	}
	all := maps.Clone(added)
	maps.Copy(all, has)
	return all
}

// requests are those of a pod set without a template.
func requests(index *resources.Index, set *workload.PodSet) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, r := range set.Requests {
		name := index.Name(r.Dim)
		if name == corev1.ResourceCPU {
			list[name] = *resource.NewMilliQuantity(r.Value, resource.DecimalSI)
		} else {
			list[name] = *resource.NewQuantity(r.Value, resource.DecimalSI)
		}
	}
	return list
}
