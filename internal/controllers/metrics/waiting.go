package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// waiting are Jobs that have no PodGroup, which the scheduler does not know of.
type waiting struct {
	jobs *prometheus.GaugeVec // by queue and reason

	mutex sync.Mutex
	known map[types.NamespacedName]place
	count map[place]int
}

// place is the series that a Job counts for.
type place struct{ queue, reason string }

func newWaiting() waiting {
	return waiting{known: map[types.NamespacedName]place{}, count: map[place]int{}, jobs: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "hekla",
		Name: "queue_jobs_without_podgroup", Help: "Volcano Jobs of the queue that wait and have no PodGroup, by the reason."}, []string{"queue", "reason"})}
}

// Ungrouped notes the reason for which a Job waits that has no PodGroup, as its status says it, "" if it has one or
// does not wait.
func (m *Metrics) Ungrouped(job *batch.Job, reason string) {
	m.waiting.set(types.NamespacedName{Namespace: job.Namespace, Name: job.Name}, place{job.Spec.Queue, reason})
}

// set moves a Job to another series, to none if there is no reason. A series ends with the last Job that counts for it.
func (w *waiting) set(name types.NamespacedName, to place) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	from, isKnown := w.known[name]
	if isKnown && from == to {
		return
	}
	if isKnown {
		delete(w.known, name)
		w.add(from, -1)
	}
	if to.reason != "" {
		w.known[name] = to
		w.add(to, 1)
	}
}

// add counts for a series.
func (w *waiting) add(to place, jobs int) {
	w.count[to] += jobs
	if count := w.count[to]; count > 0 {
		w.jobs.WithLabelValues(to.queue, to.reason).Set(float64(count))
		return
	}
	delete(w.count, to)
	w.jobs.DeleteLabelValues(to.queue, to.reason)
}
