package pods

import corev1 "k8s.io/api/core/v1"

// Texts keeps one of equal texts, for objects that were decoded: each has its own. Its size is bounded. The zero value
// is empty.
type Texts struct{ young, old map[string]string }

// textsOfGeneration is how many texts are young.
const textsOfGeneration = 1 << 14

// One returns the known text that is equal to another.
func (x *Texts) One(text string) string {
	if text == "" {
		return ""
	}
	if known, ok := x.young[text]; ok {
		return known
	}
	known, ok := x.old[text]
	if !ok {
		known = text
	}
	if x.young == nil || len(x.young) >= textsOfGeneration {
		x.young, x.old = map[string]string{}, x.young
	}
	x.young[known] = known
	return known
}

// share replaces texts in a spec that other specs have too.
func (x *Texts) share(spec *Spec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Name, containers[i].Image = x.One(containers[i].Name), x.One(containers[i].Image)
		}
	}
	spec.SchedulerName, spec.PriorityClassName = x.One(spec.SchedulerName), x.One(spec.PriorityClassName)
}
