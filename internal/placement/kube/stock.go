package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// stock says which nodes have which container images, by name.
type stock map[string]*stocked

// stocked is one image. Nodes may report one name in different sizes; each size has its own summary, so that the score
// of a node does not depend on which node came first. The number of nodes is that of the name, in any size.
type stocked struct {
	holders map[int32]struct{} // the slots of the nodes
	bySize  []*fwk.ImageStateSummary
}

// add adds the images of the node in a slot, and returns their summaries for its NodeInfo.
func (s stock) add(slot int, images []corev1.ContainerImage) map[string]*fwk.ImageStateSummary {
	states := make(map[string]*fwk.ImageStateSummary, len(images))
	for i := range images {
		for _, name := range images[i].Names {
			if states[name] != nil {
				continue
			}
			if s[name] == nil {
				s[name] = &stocked{holders: map[int32]struct{}{}}
			}
			states[name] = s[name].size(images[i].SizeBytes)
			s[name].holders[int32(slot)] = struct{}{}
			s[name].count()
		}
	}
	return states
}

// remove removes what add returned for a node.
func (s stock) remove(slot int, states map[string]*fwk.ImageStateSummary) {
	for name := range states {
		delete(s[name].holders, int32(slot))
		if s[name].count(); len(s[name].holders) == 0 {
			delete(s, name)
		}
	}
}

// size returns the summary for a size. Sizes that were reported once are kept as long as the name is: there are few.
func (i *stocked) size(bytes int64) *fwk.ImageStateSummary {
	for _, summary := range i.bySize {
		if summary.Size == bytes {
			return summary
		}
	}
	summary := &fwk.ImageStateSummary{Size: bytes, NumNodes: len(i.holders)}
	i.bySize = append(i.bySize, summary)
	return summary
}

func (i *stocked) count() {
	for _, summary := range i.bySize {
		summary.NumNodes = len(i.holders)
	}
}

// holdersOf returns the nodes that have an image, by its name, or with the default tag if it has none.
func (s stock) holdersOf(name string) map[int32]struct{} {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		name += ":latest"
	}
	if held := s[name]; held != nil {
		return held.holders
	}
	return nil
}

// holdsAny reports whether any image that a pod uses is on any node.
func (s stock) holdsAny(pod *corev1.Pod) bool {
	if len(s) == 0 {
		return false
	}
	isHeld := false
	eachImage(&pod.Spec, func(image *string) { isHeld = isHeld || len(s.holdersOf(*image)) > 0 })
	return isHeld
}

// eachImage calls a function with each image of a pod, as often as it is there.
func eachImage(spec *corev1.PodSpec, do func(image *string)) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			do(&containers[i].Image)
		}
	}
	for i := range spec.Volumes {
		if volume := spec.Volumes[i].Image; volume != nil {
			do(&volume.Reference)
		}
	}
}
