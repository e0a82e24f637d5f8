package gang_test

import (
	"fmt"
	"testing"

	"hekla.sh/hekla/internal/gang"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// One operation places a gang of 64 pods and undoes that, in a cluster of switches with 16 nodes of eight CPUs each.
// All switches but the last lack room for one of the pods, so all are tried. Case plain is the same gang without a
// topology.
func BenchmarkAGangThatIsToBeClose(b *testing.B) {
	for _, nodes := range []int{512, 4096} {
		w := placing(b, "gang", "predicates", "nodeorder", "network-topology-aware")
		for i := range nodes {
			name := fmt.Sprintf("s%03d-%02d", i/16, i%16)
			w.Set(fixture.Node(name, "cpu=8 memory=64Gi"))
			// The nodes of each switch have enough free in total, but only those of the last for every single pod.
			held := "cpu=3500m"
			if i < nodes-16 {
				held = "cpu=3900m"
			}
			w.Set(fixture.Pod("held-"+name, fixture.On(name), fixture.Asks(held)))
			if i%16 == 0 {
				w.Set(fixture.HyperNode(name[:4], 1, "~^"+name[:4]))
			}
		}
		for kind, options := range map[string]func(*schedulingv1beta1.PodGroup){"plain": func(*schedulingv1beta1.PodGroup) {}, "close": fixture.Within(1)} {
			w.Set(fixture.Group("g-"+kind, "default", 64, options))
			for i := range 64 {
				asks := "cpu=1 memory=1Gi"
				if i == 0 {
					asks = "cpu=1500m memory=1Gi"
				}
				w.Set(fixture.Pod(fmt.Sprintf("g-%s-%d", kind, i), fixture.In("g-"+kind), fixture.As("worker", i), fixture.Asks(asks)))
			}
		}
		s := w.Open()
		for _, kind := range []string{"plain", "close"} {
			b.Run(fmt.Sprintf("%s/nodes=%d", kind, nodes), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if v := gang.Place(s, w.JobNamed("g-"+kind), s.Pending(w.JobNamed("g-"+kind))); v != nil {
						b.Fatal(v.Sentence())
					}
					w.Cluster.Undo(0)
				}
			})
		}
	}
}

// One operation places a gang of which each pod has a claim of its own, and takes that back.
func BenchmarkGangWithClaims(b *testing.B) {
	w := placing(b).Set(fixture.LateClass("late", fixture.Provisioner))
	for i := range 5000 {
		w.Set(fixture.Node(fmt.Sprintf("n%05d", i), "cpu=64 memory=512Gi"))
	}
	w.Set(fixture.GangWithClaims("g", 1000, "late"))
	s := w.Open()
	j := w.JobNamed("g")
	tasks := s.Pending(j)
	b.ReportAllocs()
	for b.Loop() {
		x := s.Begin()
		if v := gang.Place(s, j, tasks); v != nil {
			b.Fatal(v.Sentence())
		}
		x.Undo()
	}
}
