package placement_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// crowded is a cluster of so many nodes of 8 GPUs, each full of pods that could leave, and a waiting pod.
func crowded(b *testing.B, nodes int, options ...func(*corev1.Pod)) (*setup, *cluster.Task) {
	w := newSetup(b).set(fixture.Group("v", "default", 0), fixture.Group("g", "default", 1))
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		w.set(fixture.Node(name, "cpu=64 memory=512Gi nvidia.com/gpu=8"))
		for k := range 8 {
			w.set(fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In("v"), fixture.On(name), fixture.Asks("cpu=1 nvidia.com/gpu=1"),
				fixture.Labelled("app", "v")))
		}
	}
	w.set(fixture.Pod("preemptor", append(options, fixture.In("g"), fixture.Asks("cpu=8 nvidia.com/gpu=8"), fixture.Labelled("app", "g"))...))
	w.open()
	return w, w.TaskNamed("preemptor")
}

// One operation empties one node of many, asks whether the pod fits, and takes that back, as the search for victims
// does.
func BenchmarkFitsWhileVictimsAreTried(b *testing.B) {
	kinds := map[string][]func(*corev1.Pod){"plain": nil, "ports": {fixture.OnPort(80)}, "apart": {fixture.ApartFrom("app", "g")}}
	for kind, options := range kinds {
		for _, nodes := range []int{500, 5000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", kind, nodes), func(b *testing.B) {
				w, preemptor := crowded(b, nodes, options...)
				w.Outlook.Best(preemptor)
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					n := w.Cluster.Nodes()[i%nodes]
					i++
					for _, t := range n.Tasks() {
						w.Cluster.Evict(t)
					}
					if !w.Outlook.Fits(preemptor, n) {
						b.Fatal("it does not fit")
					}
					w.Cluster.Undo(0)
				}
			})
		}
	}
}

// One operation asks about one node.
func BenchmarkFits(b *testing.B) {
	w, preemptor := crowded(b, 5000)
	n := w.Cluster.Node("n02500")
	b.Run("fits", func(b *testing.B) {
		for b.Loop() {
			w.Outlook.Fits(preemptor, n)
		}
	})
	b.Run("can open", func(b *testing.B) {
		for b.Loop() {
			w.Outlook.CanOpen(preemptor, n)
		}
	})
}

// One operation asks for the best node after one node was emptied and filled again.
func BenchmarkBestAfterOneNodeWasTried(b *testing.B) {
	w, preemptor := crowded(b, 5000)
	i := 0
	for b.Loop() {
		n := w.Cluster.Nodes()[i%5000]
		i++
		for _, t := range n.Tasks() {
			w.Cluster.Evict(t)
		}
		w.Cluster.Undo(0)
		w.Outlook.Best(preemptor)
	}
}
