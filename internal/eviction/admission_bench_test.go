package eviction_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// backlogged is the same with plugins that vote on admission.
var backlogged = with(benchmarked, "  - name: drf\n", "  - name: overcommit\n    arguments: {overcommit-factor: 1.0}\n  - name: resourcequota\n  - name: drf\n")

// BenchmarkABacklogAtAdmission measures one cycle with ten thousand jobs pending admission, which have no pods yet, in
// a cluster that is full with thirty thousand pods.
func BenchmarkABacklogAtAdmission(b *testing.B) {
	const jobs, nodes, perNode = 10_000, 1000, 30
	for _, test := range []struct {
		name      string
		protected bool
		waits     func(i int) (queue, namespace, class, wants string)
	}{
		{"equal jobs, protected pods", true, func(int) (string, string, string, string) { return "q0", "work", "mid", "cpu=1" }},
		{"unlike jobs, protected pods", true, func(i int) (string, string, string, string) {
			return fmt.Sprintf("q%d", i%10), fmt.Sprintf("ns%d", i%97), []string{"mid", "high"}[i%2], fmt.Sprintf("cpu=%d memory=%dGi", 1+i*7919%1009, 1+i*104729%997)
		}},
		{"one namespace's quota each, pods that may leave", false, func(i int) (string, string, string, string) {
			return "q0", fmt.Sprintf("tight%d", i%100), "mid", "cpu=2"
		}},
		{"unlike jobs, pods that may leave", false, func(i int) (string, string, string, string) {
			return fmt.Sprintf("q%d", i%10), fmt.Sprintf("ns%d", i%97), []string{"mid", "high"}[i%2], fmt.Sprintf("cpu=%d memory=%dGi", 1+i*7919%13, 1+i*104729%11)
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			admitted := 0
			for b.Loop() {
				b.StopTimer()
				w := start(b, backlogged)
				for i := range 10 {
					w.Set(queue(fmt.Sprintf("q%d", i), 0, "cpu=1000", "", ""))
				}
				for i := range 100 {
					quota := &corev1.ResourceQuota{}
					quota.Name, quota.Namespace, quota.UID = "tight", fmt.Sprintf("tight%d", i), types.UID(fmt.Sprintf("tight%d", i))
					quota.Spec.Hard = fixture.List("pods=10 requests.cpu=1")
					w.Set(quota)
				}
				for n := range nodes {
					w.Set(fixture.Node(fmt.Sprintf("n%04d", n), "cpu=30 memory=256Gi"))
				}
				for i := range nodes * perNode {
					name := fmt.Sprintf("g%04d", i/30)
					if i%30 == 0 {
						group := fixture.Group(name, fmt.Sprintf("q%d", i/30%10), 1)
						group.Spec.PriorityClassName, group.Status.Phase = "low", schedulingv1beta1.PodGroupRunning
						if !test.protected {
							group.Annotations[schedulingv1beta1.PreemptableKey] = "true"
						}
						w.Set(group)
					}
					w.Set(fixture.Pod(fmt.Sprintf("%s-%d", name, i%30), fixture.In(name), fixture.On(fmt.Sprintf("n%04d", i%nodes))))
				}
				for i := range jobs {
					queue, namespace, class, wants := test.waits(i)
					group := fixture.Group(fmt.Sprintf("w%05d", i), queue, 1, fixture.PendingAdmission, fixture.Wanting(wants))
					group.Namespace, group.Spec.PriorityClassName = namespace, class
					w.Set(group)
				}
				b.StartTimer()
				w.Now = w.Now.Add(time.Second)
				result := w.Scheduler.Cycle(w.Now, nil)
				b.StopTimer()
				if result.Panic != "" {
					b.Fatal(result.Panic)
				}
				admitted = 0
				for _, j := range w.Jobs() {
					if j.Phase == schedulingv1beta1.PodGroupInqueue && len(j.Tasks()) == 0 {
						admitted++
					}
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(admitted), "admitted")
		})
	}
}
