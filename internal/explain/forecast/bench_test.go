package forecast_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// BenchmarkAForecast is what it costs the loop to say when a job will start, on 5,000 nodes that are full, while 10,000
// jobs wait. They are in ten queues. It asks about the first in its queue, one in the middle, and the last, which is
// too far behind to be replayed.
func BenchmarkAForecast(b *testing.B) {
	const nodes, jobs, queues = 5000, 10_000, 10
	for _, hasPods := range []bool{true} {
		l := loop.New(b, "")
		lasts := func(g *scheduling.PodGroup, minutes int) *scheduling.PodGroup {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, scheduling.RunningEstimateKey, (time.Duration(minutes) * time.Minute).String())
			return g
		}
		for i := range queues {
			l.Set(fixture.Queue(fmt.Sprintf("queue-%d", i)))
		}
		for i := range nodes {
			node, name := fmt.Sprintf("node-%04d", i), fmt.Sprintf("full-%04d", i)
			l.Set(fixture.Node(node, "cpu=4"), lasts(fixture.Group(name, fmt.Sprintf("queue-%d", i%queues), 1), 10+i%300),
				fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=4"), fixture.On(node)))
		}
		for i := range jobs {
			name, queue := fmt.Sprintf("job-%05d", i), fmt.Sprintf("queue-%d", i%queues)
			cpu := fmt.Sprintf("cpu=%d", 1+i%3)
			if hasPods {
				l.Set(lasts(fixture.Group(name, queue, 1), 5+i%100), fixture.Pod(name+"-0", fixture.In(name), fixture.Asks(cpu)))
			} else {
				l.Set(lasts(fixture.Group(name, queue, 1, fixture.PendingAdmission, fixture.Wanting(cpu)), 5+i%100))
			}
		}
		l.Cycle()
		for _, i := range []int{0, 1000, jobs - 1} {
			b.Run(fmt.Sprintf("pods=%t/place=%d", hasPods, i/queues+1), func(b *testing.B) {
				message := ""
				for b.Loop() {
					eta, err := l.Scheduler.ETA(l.Now, cluster.GroupID(fixture.Key(fmt.Sprintf("job-%05d", i))))
					if err != nil || eta == nil {
						b.Fatal(eta, err)
					}
					message = eta.Message
				}
				b.Log(message)
			})
		}
	}
}
