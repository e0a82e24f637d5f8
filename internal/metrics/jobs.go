package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/drf"
	"hekla.sh/hekla/pkg/resources"
)

// jobs shows the numbers of each job. What belongs to the model is copied by the goroutine that owns it; what
// Prometheus makes of it is made when metrics are scraped.
type jobs struct {
	placed map[cluster.JobID]placed // touched by the owner of the model only

	mutex   sync.Mutex
	samples []job
}

// placed is when a job got nodes.
type placed struct {
	uid  types.UID
	last time.Time
}

// job is what is shown of one job.
type job struct {
	id              cluster.JobID
	queue           string
	created, placed time.Time // placed is zero if this process has placed none of its pods
	refusals        uint64
	share           float64
	hasShare        bool
}

var (
	jobLabels   = []string{"job_name", "queue", "job_namespace"}
	jobDuration = description("e2e_job_scheduling_duration",
		"Milliseconds from the creation of a PodGroup until a pod of it got a node last.", jobLabels...)
	jobStartTime = description("e2e_job_scheduling_start_time", "When a PodGroup was created, in seconds since 1970.", jobLabels...)
	jobLastTime  = description("e2e_job_scheduling_last_time",
		"When a pod of a PodGroup got a node last, in seconds since 1970.", jobLabels...)
	jobShare   = description("job_share", "Largest part of any resource of the cluster that the job holds.", "job_ns", "job_id")
	jobRetries = description("job_retry_counts", "How often the job was looked at and left waiting.", "job_id")
)

// Describe names the series that there may be.
func (s *jobs) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobDuration, jobStartTime, jobLastTime, jobShare, jobRetries} {
		descriptions <- d
	}
}

// Collect sends the numbers read last.
func (s *jobs) Collect(metrics chan<- prometheus.Metric) {
	s.mutex.Lock()
	samples := s.samples // made again by read, and not changed
	s.mutex.Unlock()
	for i := range samples {
		j := &samples[i]
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, kind, value, labels...)
		}
		send(jobStartTime, prometheus.GaugeValue, float64(j.created.Unix()), j.id.Name, j.queue, j.id.Namespace)
		if !j.placed.IsZero() {
			send(jobDuration, prometheus.GaugeValue, inMilliseconds(max(j.placed.Sub(j.created), 0)), j.id.Name, j.queue, j.id.Namespace)
			send(jobLastTime, prometheus.GaugeValue, float64(j.placed.Unix()), j.id.Name, j.queue, j.id.Namespace)
		}
		if j.hasShare {
			send(jobShare, prometheus.GaugeValue, j.share, j.id.Namespace, j.id.Name)
		}
		if j.refusals > 0 {
			send(jobRetries, prometheus.CounterValue, float64(j.refusals), j.id.String())
		}
	}
}

// Placed times the pods that got nodes in a cycle, and their jobs. It runs on the goroutine that owns the model.
func (m *Metrics) Placed(c *model.Cluster, binds []decision.Bind, now time.Time) {
	assumed := m.taskLatency.WithLabelValues("Assumed")
	for i := range binds {
		assumed.Observe(max(inMilliseconds(now.Sub(binds[i].Created)), 0))
		if i > 0 && binds[i].Job == binds[i-1].Job {
			continue
		}
		if took, ok := m.promises.kept(binds[i].Job, now); ok {
			m.evictionToStart.Observe(took.Seconds())
		}
		j := c.Job(binds[i].Job)
		if j == nil || j.Group == nil {
			continue
		}
		before, known := m.jobs.placed[j.ID]
		if !known || before.uid != j.UID() {
			before = placed{uid: j.UID()}
			// How long a job took to start is not known if it started before this process.
			if j.Count(cluster.Binding)+j.Count(cluster.Awaited) == j.Ready() {
				m.jobLatency.Observe(max(inMilliseconds(now.Sub(j.Created())), 0))
			}
		}
		before.last = now
		if m.jobs.placed == nil {
			m.jobs.placed = map[cluster.JobID]placed{}
		}
		m.jobs.placed[j.ID] = before
	}
}

// read copies from the model what is shown, and forgets the jobs that are gone.
func (s *jobs) read(c *model.Cluster, policy *framework.Policy) {
	for id, p := range s.placed {
		if j := c.Job(id); j == nil || j.UID() != p.uid {
			delete(s.placed, id)
		}
	}
	hasShares, shared := policy != nil && policy.Uses(drf.Name), c.Shared(false)
	samples := make([]job, 0, len(s.samples))
	c.EachJob(func(j *cluster.Job) {
		if j.IsForeign {
			return // the scheduler that it belongs to shows it
		}
		sample := job{id: j.ID, queue: j.QueueName, created: j.Created(), placed: s.placed[j.ID].last, refusals: j.Refusals}
		if hasShares && !j.Over() {
			share, _ := resources.DominantShare(j.Usage.Allocated, shared)
			sample.share, sample.hasShare = share.Float(), true
		}
		samples = append(samples, sample)
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.samples = samples
}
