package kube

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"hekla.sh/hekla/pkg/cluster"
)

// A class has an image of its own as often as not, and few nodes have it. Nearly all nodes have the images that many
// pods use. So the scores by common images are those of all classes with the same ones, and the other images of a class
// matter to few nodes.

// commonAbove is a part of the nodes: an image that more of them have is common.
const commonAbove = 32

// ImagePoints are what ImageLocality scores a node higher, times its weight, because of the images of a class that are
// not common.
type ImagePoints struct {
	Slot   int32
	Points int64 // more than 0
}

// imagePoints are those of all classes with the same images.
type imagePoints struct {
	epoch  uint64 // of the node objects
	points []ImagePoints
}

// maxImagePoints bounds the stored points of all images, 16 bytes each.
const maxImagePoints = 1 << 22

// scoresImages reports whether images matter, and follows the objects of the nodes.
func (p *Plugins) scoresImages() bool {
	if len(p.scorers[looksAtImages]) == 0 {
		return false
	}
	p.mirror.followObjects()
	return len(p.mirror.stock) > 0
}

// ObjectsGeneration grows when the object of any node changes. What is said of images is valid as long as it does not.
func (p *Plugins) ObjectsGeneration() uint64 {
	p.mirror.followObjects()
	return p.mirror.epoch
}

// isCommon reports whether many nodes have an image.
func (m *mirror) isCommon(image string) bool {
	return len(m.stock.holdersOf(image))*commonAbove > len(m.own.all)
}

// CommonImages returns the common images of a class, as a key, "" if it has none. For classes with the same constraints
// and the same key, [Plugins.AskCommonImages] is the same question.
func (p *Plugins) CommonImages(k *cluster.Class) string {
	if !p.scoresImages() {
		return ""
	}
	var common []string
	spec := &k.Pod.Spec
	eachImage(spec, func(image *string) {
		if p.mirror.isCommon(*image) {
			common = append(common, *image)
		}
	})
	if len(common) == 0 {
		return ""
	}
	slices.Sort(common)
	// How many containers there are counts, too.
	return strconv.Itoa(len(spec.InitContainers)+len(spec.Containers)) + " " + strings.Join(common, " ")
}

// AskCommonImages is [Plugins.AskObjects] with the scores by the common images of the class.
func (p *Plugins) AskCommonImages(k *cluster.Class) *Question {
	return p.Ask(&cluster.Class{Pod: p.withCommonImages(k.Pod)})
}

// withCommonImages returns a pod with those images only.
func (p *Plugins) withCommonImages(pod *corev1.Pod) *corev1.Pod {
	shown := *pod
	spec := &shown.Spec
	spec.InitContainers, spec.Containers, spec.Volumes = slices.Clone(spec.InitContainers), slices.Clone(spec.Containers), slices.Clone(spec.Volumes)
	for i := range spec.Volumes {
		if image := spec.Volumes[i].Image; image != nil {
			copied := *image
			spec.Volumes[i].Image = &copied
		}
	}
	eachImage(spec, func(image *string) {
		if !p.mirror.isCommon(*image) {
			*image = ""
		}
	})
	return &shown
}

// ImagePoints returns the nodes that have images of a class that are not common, by slot, as far as their score is
// higher for that. The caller must not change them.
func (p *Plugins) ImagePoints(k *cluster.Class) []ImagePoints {
	if !p.scoresImages() {
		return nil
	}
	spec := &k.Pod.Spec
	var images []string
	isRare := false
	eachImage(spec, func(image *string) {
		images = append(images, *image)
		isRare = isRare || len(p.mirror.stock.holdersOf(*image)) > 0 && !p.mirror.isCommon(*image)
	})
	if !isRare {
		return nil
	}
	key := strconv.Itoa(len(spec.InitContainers)+len(spec.Containers)) + " " + strings.Join(images, " ")
	known := p.imagePoints[key]
	if known == nil || known.epoch != p.mirror.epoch {
		if p.imagePointsStored > maxImagePoints {
			clear(p.imagePoints)
			p.imagePointsStored = 0
		}
		if known != nil {
			p.imagePointsStored -= len(known.points) + 1
		}
		known = &imagePoints{epoch: p.mirror.epoch, points: p.rateImages(k.Pod)}
		p.imagePoints[key] = known
		p.imagePointsStored += len(known.points) + 1
	}
	return known.points
}

// rateImages works out ImagePoints.
func (p *Plugins) rateImages(pod *corev1.Pod) []ImagePoints {
	m := p.mirror
	var slots []int32
	eachImage(&pod.Spec, func(image *string) {
		if !m.isCommon(*image) {
			for slot := range m.stock.holdersOf(*image) {
				slots = append(slots, slot)
			}
		}
	})
	slices.SortFunc(slots, cmp.Compare[int32])
	slots = slices.Compact(slots)
	p.infos = p.infos[:0]
	for _, slot := range slots {
		p.infos = append(p.infos, m.bySlot[slot].info)
	}
	all, common := make([]int64, len(slots)), make([]int64, len(slots))
	for _, s := range p.scorers[looksAtImages] {
		p.score(s, framework.NewCycleState(), pod, p.infos, all, 1)
		p.score(s, framework.NewCycleState(), p.withCommonImages(pod), p.infos, common, 1)
	}
	var points []ImagePoints
	for i, slot := range slots {
		if all[i] > common[i] {
			points = append(points, ImagePoints{Slot: slot, Points: all[i] - common[i]})
		}
	}
	return points
}
