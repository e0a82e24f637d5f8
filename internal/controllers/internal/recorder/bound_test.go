package recorder

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestARecorderKeepsNoMoreThanItsCachesHold records Events of ever new objects. The correlator of client-go remembers
// 4,096 of them in each of three caches. They must not keep more, however many there are.
func TestARecorderKeepsNoMoreThanItsCachesHold(t *testing.T) {
	o := newOutlet(nil, logr.Discard())
	recorder, stop := o.recorder(scheme.Scheme, "job-controller")
	defer stop()
	recorded := 0
	record := func(n int) (heap int64) {
		for range n {
			recorded++
			name := fmt.Sprintf("training-%d", recorded)
			recorder.Eventf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, UID: types.UID(name + "-b0cfe1c6-6a5b-4a1e")}},
				nil, corev1.EventTypeNormal, "JobCompleted", "", "Job %s has completed: 1 pod has succeeded", name)
			for begin := time.Now(); !o.drop(); runtime.Gosched() {
				if time.Since(begin) > time.Minute {
					t.Fatal("an Event is not recorded")
				}
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	empty := record(1)
	full := record(10_000)
	after := record(20_000)
	t.Logf("full caches hold %d kB", (full-empty)>>10)
	if grown := after - full; grown > (full-empty)/4 {
		t.Errorf("the heap grows from %d kB by %d kB after the caches are full", full>>10, grown>>10)
	}
}

// drop forgets the Events that wait, and reports whether there were any.
func (o *outlet) drop() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	n := len(o.others)
	o.others = nil
	clear(o.created)
	return n > 0
}
