package placement_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// With hundreds of nodes a class has a list of the best of them before it is ranked, and catches up with what has changed. Whatever is
// asked and placed in whatever order, it answers as one that works out everything for this question.
func TestListsOfTheBestNodesAreRight(t *testing.T) {
	for _, plugins := range [][]string{{"predicates", "nodeorder"}, {"predicates", "nodeorder", "binpack"}, {"nodeorder", "at-most"}} {
		t.Run(fmt.Sprint(plugins), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newSetup(t, plugins...)
				nodes := rapid.IntRange(100, 200).Draw(r, "nodes")
				for i := range nodes {
					room := rapid.SampledFrom([]string{"cpu=8 memory=16Gi", "cpu=8 memory=16Gi", "cpu=4 memory=32Gi", "cpu=6 memory=9Gi nvidia.com/gpu=2"}).Draw(r, "room")
					w.set(fixture.Node(fmt.Sprintf("n%03d", i), room, func(n *corev1.Node) { n.Labels["pool"] = fmt.Sprint(i % 3) }))
				}
				w.set(fixture.Group("g", "default", 0))
				const kinds, each = 6, 40
				for k := range kinds {
					asks := rapid.SampledFrom([]string{"cpu=500m memory=1Gi", "cpu=1", "memory=3Gi", "cpu=2 memory=1Gi", "cpu=700m nvidia.com/gpu=1", ""}).Draw(r, "asks")
					for i := range each {
						options := []func(*corev1.Pod){fixture.In("g"), fixture.Asks(asks)}
						if k%2 == 0 {
							options = append(options, fixture.Selecting("pool", fmt.Sprint(k%3)))
						}
						w.set(fixture.Pod(fmt.Sprintf("p-%d-%02d", k, i), options...))
					}
				}
				s := w.open()
				var open []framework.Transaction
				next := make([]int, kinds)
				for range rapid.IntRange(20, 60).Draw(r, "steps") {
					k := rapid.IntRange(0, kinds-1).Draw(r, "kind")
					switch rapid.IntRange(0, 5).Draw(r, "step") {
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
