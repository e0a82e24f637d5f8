package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

// sizes are numbers of nodes. Each node has thirty pods that no term asks for, of which five have terms of their own.
var sizes = []int{1000, 5000}

func bigWorld(b *testing.B, nodes int, more ...any) *testModel {
	var objects []any
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		objects = append(objects, fixture.Node(name, "", labelled(zone, fmt.Sprint("zone-", i%3))))
		for j := range 30 {
			p := fixture.Pod(fmt.Sprintf("running-%d-%d", i, j), fixture.Labelled("app", fmt.Sprint("app-", j)), fixture.On(name))
			if j < 5 {
				apart(p.Labels["app"], corev1.LabelHostname)(p)
			}
			objects = append(objects, p)
		}
	}
	w := newModel(b)
	for _, object := range append(objects, more...) {
		switch o := object.(type) {
		case *corev1.Node:
			w.cluster.Apply(cache.Set{Object: o})
		case *corev1.Pod:
			w.cluster.Apply(cache.Set{Object: o})
		}
	}
	w.cluster.Settle()
	return w
}

func forSizes(b *testing.B, run func(*testing.B, int)) {
	for _, nodes := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) { run(b, nodes) })
	}
}

// One operation asks every node.
func BenchmarkRefusal(b *testing.B) {
	kinds := map[string]*corev1.Pod{"plain": fixture.Pod("a"), "affinity": fixture.Pod("a", fixture.Selecting(zone, "zone-1"))}
	for kind, p := range kinds {
		b.Run(kind, func(b *testing.B) {
			forSizes(b, func(b *testing.B, nodes int) {
				w := bigWorld(b, nodes, p)
				q := w.ask("a")
				b.ReportAllocs()
				for b.Loop() {
					for _, n := range w.cluster.Nodes() {
						q.Refusal(n)
					}
				}
			})
		})
	}
}

func BenchmarkPreferencesThatCannotDiffer(b *testing.B) {
	forSizes(b, func(b *testing.B, nodes int) {
		w := bigWorld(b, nodes, fixture.Pod("a"))
		q := w.ask("a")
		b.ReportAllocs()
		for b.Loop() {
			if q.Preferences(w.cluster.Nodes()) != nil {
				b.Fatal("there are preferences")
			}
		}
	})
}

func BenchmarkPreferences(b *testing.B) {
	forSizes(b, func(b *testing.B, nodes int) {
		w := bigWorld(b, nodes, fixture.Pod("a", preferringNodes(zone, "zone-1", 10)))
		q := w.ask("a")
		b.ReportAllocs()
		for b.Loop() {
			q.Preferences(w.cluster.Nodes())
		}
	})
}

// One operation surveys all nodes after another pod of the class was placed.
func BenchmarkSurvey(b *testing.B) {
	kinds := map[string][]func(*corev1.Pod){
		"anti-affinity":      {apart("gang", corev1.LabelHostname)},
		"affinity":           {near("gang", zone)},
		"preferred-affinity": {preferringNear("gang", zone, 10)},
		"spread":             {spread("gang", zone, 5, corev1.DoNotSchedule)},
		"soft-spread":        {spread("gang", zone, 5, corev1.ScheduleAnyway)},
	}
	for kind, options := range kinds {
		b.Run(kind, func(b *testing.B) {
			forSizes(b, func(b *testing.B, nodes int) {
				var gang []any
				for i := range 100 {
					gang = append(gang, fixture.Pod(fmt.Sprint("gang-", i), append(options, fixture.Labelled("app", "gang"))...))
				}
				w := bigWorld(b, nodes, gang...)
				q := w.ask("gang-0")
				w.survey(q)
				placed := 0
				b.ReportAllocs()
				for b.Loop() {
					if placed == len(gang) {
						w.cluster.Undo(0)
						placed = 0
					}
					w.cluster.Place(w.task(fmt.Sprint("gang-", placed)), w.cluster.Nodes()[placed*7])
					placed++
					q.Survey(w.cluster.Nodes())
				}
			})
		})
	}
}

// One operation is the first survey of a class, that of the model's first class included.
func BenchmarkFirstSurvey(b *testing.B) {
	forSizes(b, func(b *testing.B, nodes int) {
		w := bigWorld(b, nodes, fixture.Pod("a", fixture.Labelled("app", "x"), apart("x", corev1.LabelHostname)))
		b.ReportAllocs()
		for b.Loop() {
			plugins, err := New(w.cluster.Cluster, allFilters, allScores, Arguments{})
			if err != nil {
				b.Fatal(err)
			}
			plugins.Ask(w.task("a").Class).Survey(w.cluster.Nodes())
		}
	})
}

func BenchmarkSurveyAgain(b *testing.B) {
	forSizes(b, func(b *testing.B, nodes int) {
		w := bigWorld(b, nodes, fixture.Pod("a", fixture.Labelled("app", "x"), apart("x", corev1.LabelHostname)), fixture.Pod("y", fixture.Labelled("app", "y")))
		q := w.ask("a")
		b.ReportAllocs()
		for b.Loop() {
			w.cluster.Place(w.task("y"), w.cluster.Nodes()[0])
			q.Survey(w.cluster.Nodes())
			w.cluster.Undo(0)
		}
	})
}
