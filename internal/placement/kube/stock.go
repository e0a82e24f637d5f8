package kube

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// stock counts the nodes with each container image, by name.
type stock map[string]*stocked

// stocked is one image. Nodes may report one name in different sizes; each size has its own summary, so that the score of a
// node does not depend on which node came first. The number of nodes is that of the name, in any size.
type stocked struct {
	nodes  int
	bySize []*fwk.ImageStateSummary
}

// add adds the images of a node, and returns their summaries for its NodeInfo.
func (s stock) add(images []corev1.ContainerImage) map[string]*fwk.ImageStateSummary {
	states := make(map[string]*fwk.ImageStateSummary, len(images))
	for i := range images {
		for _, name := range images[i].Names {
			if states[name] != nil {
				continue
			}
			if s[name] == nil {
				s[name] = &stocked{}
			}
			states[name] = s[name].size(images[i].SizeBytes)
			s[name].count(+1)
		}
	}
	return states
}

// remove removes what add returned for a node.
func (s stock) remove(states map[string]*fwk.ImageStateSummary) {
	for name := range states {
		if s[name].count(-1); s[name].nodes == 0 {
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
	summary := &fwk.ImageStateSummary{Size: bytes, NumNodes: i.nodes}
	i.bySize = append(i.bySize, summary)
	return summary
}

func (i *stocked) count(change int) {
	i.nodes += change
	for _, summary := range i.bySize {
		summary.NumNodes = i.nodes
	}
}

// holdsAny reports whether any image that a pod uses may be on any node.
func (s stock) holdsAny(pod *corev1.Pod) bool {
	if len(s) == 0 {
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if s.holds(containers[i].Image) {
				return true
			}
		}
	}
	for i := range pod.Spec.Volumes {
		if volume := pod.Spec.Volumes[i].Image; volume != nil && s.holds(volume.Reference) {
			return true
		}
	}
	return false
}

// holds reports whether an image is on a node, by its name, or with the default tag if it has none.
func (s stock) holds(name string) bool { return s[name] != nil || s[name+":latest"] != nil }
