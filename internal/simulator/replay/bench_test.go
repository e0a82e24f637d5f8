package replay_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	k8s "k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// BenchmarkLargeSnapshot writes, reads and replays 5,000 nodes and 20,000 pods, of which a gang of ten is placed. The
// decisions are those of the scheduler.
func BenchmarkLargeSnapshot(b *testing.B) {
	const nodes, perNode, gang = 5000, 4, 10
	objects := []k8s.Object{fixture.Queue("default")}
	for n := range nodes {
		node := fmt.Sprintf("node-%04d", n)
		objects = append(objects, fixture.Node(node, "cpu=8"))
		for p := range perNode {
			if n == 0 && p == 0 { // room for the gang's first
				continue
			}
			job := fmt.Sprintf("job-%04d", (n*perNode+p)/gang)
			if (n*perNode+p)%gang == 0 || n == 0 && p == 1 {
				group := fixture.Group(job, "default", 1)
				group.Status.Phase = schedulingv1beta1.PodGroupRunning
				objects = append(objects, group)
			}
			objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", job, (n*perNode+p)%gang), fixture.In(job), fixture.On(node), fixture.Asks("cpu=1")))
		}
	}
	waiting := fixture.Group("waiting", "default", gang)
	waiting.Status.Phase = schedulingv1beta1.PodGroupInqueue
	objects = append(objects, waiting)
	for i := range gang {
		objects = append(objects, fixture.Pod(fmt.Sprint("waiting-", i), fixture.In("waiting"), fixture.Asks("cpu=2")))
	}
	l := loop.New(b, evicting)
	l.Set(objects)
	l.Cycle()
	live := said(l.Scheduler.Journal().All(100))
	var wrote, read, replayed time.Duration
	var size, compressed int
	for b.Loop() {
		began := time.Now()
		var file, packed bytes.Buffer
		header := &snapshot.Header{Taken: l.Now, SchedulerNames: []string{schedulingv1beta1.DefaultSchedulerName}, Configuration: evicting}
		if err := snapshot.Write(&file, header, slices.Values(objects)); err != nil {
			b.Fatal(err)
		}
		wrote += time.Since(began)
		size = file.Len()
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(file.Bytes()); err != nil {
			b.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			b.Fatal(err)
		}
		compressed = packed.Len()
		began = time.Now()
		s, _, err := snapshot.Read(&packed)
		if err != nil {
			b.Fatal(err)
		}
		read += time.Since(began)
		began = time.Now()
		r, err := replay.Run(s, replay.Options{})
		if err != nil {
			b.Fatal(err)
		}
		replayed += time.Since(began)
		first := slices.DeleteFunc(slices.Clone(r.Decisions), func(e journal.Entry) bool { return e.Cycle != 1 })
		if said(first) != live || live == "" {
			b.Fatalf("the replay decides %q, the scheduler %q", said(first), live)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	count := float64(b.N)
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(compressed)/1e6, "MB-compressed")
	b.ReportMetric(wrote.Seconds()/count, "s-to-write")
	b.ReportMetric(read.Seconds()/count, "s-to-read")
	b.ReportMetric(replayed.Seconds()/count, "s-to-replay")
	b.ReportMetric(float64(memory.HeapSys)/1e6, "MB-of-heap")
}
