package placement_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// With hundreds of nodes a class has a list of the best of them before it is ranked, and catches up with what has
// changed. Whatever is asked and placed in whatever order, it answers as one that works out everything for this
// question.
func TestListsOfTheBestNodesAreRight(t *testing.T) {
	for _, plugins := range [][]string{{"predicates", "nodeorder"}, {"predicates", "nodeorder", "binpack"}, {"nodeorder", "at-most"}} {
		t.Run(fmt.Sprint(plugins), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newSetup(t, plugins...)
				nodes := rapid.IntRange(100, 200).Draw(r, "nodes")
				areAlike := rapid.Bool().Draw(r, "alike") // none is preferred by its object
				inPool := func(i int) func(*corev1.Node) {
					return func(n *corev1.Node) {
						if inPool(i)(n); areAlike {
							n.Spec.Taints = nil
						}
					}
				}
				for i := range nodes {
					room := rapid.SampledFrom([]string{"cpu=8 memory=16Gi", "cpu=8 memory=16Gi", "cpu=4 memory=32Gi", "cpu=6 memory=9Gi nvidia.com/gpu=2"}).Draw(r, "room")
					w.set(fixture.Node(fmt.Sprintf("n%03d", i), room, inPool(i), holding(i, 0)))
				}
				w.set(fixture.Group("g", "default", 0))
				const kinds, each = 6, 40
				for k := range kinds {
					asks := rapid.SampledFrom([]string{"cpu=500m memory=1Gi", "cpu=1", "memory=3Gi", "cpu=2 memory=1Gi", "cpu=700m nvidia.com/gpu=1", ""}).Draw(r, "asks")
					more := rapid.SampledFrom([]func(*corev1.Pod){nothingMore, withImages("rare-1"), withImages("rare-2"), withImages("rare-1", "rare-2", "common"),
						withImages("common"), withImages("common", "nowhere"), withPort(80), withPort(81)}).Draw(r, "more")
					demands := rapid.SampledFrom([]func(*corev1.Pod){nothingMore, nothingMore, fixture.Selecting("pool", "1"), fixture.Selecting("rack", "3"),
						fixture.Selecting("rack", "nowhere"), onNodes(false, "r2", "r5"), onNodes(true, "n007"), onNodes(true, "n007", "n061"),
						onNodes(false, "")}).Draw(r, "demands")
					for i := range each {
						w.set(fixture.Pod(fmt.Sprintf("p-%d-%02d", k, i), fixture.In("g"), fixture.Asks(asks), more, demands))
					}
				}
				s := w.open()
				var open []framework.Transaction
				next := make([]int, kinds)
				for range rapid.IntRange(20, 60).Draw(r, "steps") {
					k := rapid.IntRange(0, kinds-1).Draw(r, "kind")
					switch rapid.IntRange(0, 6).Draw(r, "step") {
					case 6:
						for ; len(open) > 0; open = open[:len(open)-1] {
							open[len(open)-1].Undo()
						}
						next = make([]int, kinds)
						i := rapid.IntRange(5, 35).Draw(r, "node")
						changed := w.Node(fmt.Sprintf("n%03d", i)).Object.DeepCopy()
						holding(i, rapid.IntRange(0, 3).Draw(r, "images"))(changed)
						inPool(i + rapid.SampledFrom([]int{0, 5, 10}).Draw(r, "moves"))(changed)
						w.set(changed)
					case 0:
						if len(open) > 0 {
							open[len(open)-1].Undo()
							open, next = open[:len(open)-1], make([]int, kinds)
						}
					case 1, 2:
						x := s.Begin()
						for range rapid.IntRange(1, 35).Draw(r, "pods") {
							for next[k] < each && w.TaskNamed(fmt.Sprintf("p-%d-%02d", k, next[k])).Node != nil {
								next[k]++
							}
							if next[k] == each {
								break
							}
							task := w.TaskNamed(fmt.Sprintf("p-%d-%02d", k, next[k]))
							n := w.Engine.Best(task)
							if n == nil {
								break
							}
							x.Place(task, n)
						}
						open = append(open, x)
					default:
						task := w.TaskNamed(fmt.Sprintf("p-%d-%02d", k, each-1))
						if task.Node == nil {
							w.check(task)
						}
					}
				}
			})
		})
	}
}

// inPool gives a node the labels of a third of the nodes and of five of them. One of these five is better avoided.
func inPool(i int) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels["pool"], n.Labels["rack"] = fmt.Sprint(i%3), fmt.Sprint(i/5)
		n.Spec.Taints = nil
		if i%5 == 3 {
			n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
	}
}

// onNodes requires that the pod is on one of some nodes, or racks, in terms of their own. A term for "" has no
// requirement.
func onNodes(byName bool, values ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		required := &corev1.NodeSelector{}
		for _, value := range values {
			var term corev1.NodeSelectorTerm
			switch {
			case byName:
				term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}
			case value != "":
				term.MatchExpressions = []corev1.NodeSelectorRequirement{
					{Key: "pool", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"0"}},
					{Key: "rack", Operator: corev1.NodeSelectorOpIn, Values: []string{value[1:], "20"}}}
			}
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
}

func nothingMore(*corev1.Pod) {}

// withImages adds containers with images.
func withImages(images ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, image := range images {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: image, Image: image + ":v1"})
		}
	}
}

// withPort adds a host port.
func withPort(port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: port, ContainerPort: 80}}
	}
}

// holding gives a node images. Few nodes have those that are rare, at first.
func holding(node, changes int) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Images = nil
		give := func(name string, bytes int64) {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name + ":v1"}, SizeBytes: bytes})
		}
		if (node+changes)%2 == 0 {
			give("common", int64(100+node)<<20)
		}
		if node%60 == 1 || changes == 2 {
			give("rare-1", int64(4+node%3)<<30)
		}
		if node%61 == 1 || changes == 3 {
			give("rare-2", 5<<30)
		}
	}
}
