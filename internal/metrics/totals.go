package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// TotalsPeriod is how often [Metrics.Totals] should be called. It is shorter than usual scrape intervals, and long
// enough that ten thousand queues cost nothing.
const TotalsPeriod = 5 * time.Second

// handed are numbers of the model as they were when they were read last. The model belongs to one goroutine and scrapes
// come from another, so the numbers are made there and only handed over here.
type handed struct {
	mutex   sync.Mutex
	samples []prometheus.Metric
}

// Collect sends the numbers read last.
func (h *handed) Collect(metrics chan<- prometheus.Metric) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, sample := range h.samples {
		metrics <- sample
	}
}

func (h *handed) hand(samples []prometheus.Metric) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.samples = samples
}

// totals shows the numbers of queues and jobs.
type totals struct{ handed }

// Describe names the series that there may be.
func (t *totals) Describe(descriptions chan<- *prometheus.Desc) {
	for _, a := range []amounts{allocated, request, inqueue, deserved, capability, ceilingOf} {
		descriptions <- a.cpu
		descriptions <- a.memory
		descriptions <- a.scalar
	}
	for _, d := range slices.Concat(guaranteeSeries, waitingSeries, []*prometheus.Desc{shareOf, weightOf, overusedOf, taskCount, jobCount}) {
		descriptions <- d
	}
}

// Totals reads the numbers of queues and jobs from the model, on the goroutine that owns it. A nil policy has no
// shares.
func (m *Metrics) Totals(c *model.Cluster, policy *framework.Policy) {
	m.forgetQueues(c)
	r := reader{index: c.Resources}
	for _, q := range c.Queues() {
		if q.Object != nil {
			r.queue(q, policy)
		}
	}
	waiting := 0
	for _, j := range c.Waiting() {
		if pending := j.Count(cluster.Pending); j.Group != nil && j.Verdict != nil {
			waiting++
			r.add(taskCount, float64(pending), j.ID.String())
		}
	}
	r.add(jobCount, float64(waiting))
	r.waiting(c, time.Now())
	if policy != nil {
		r.guarantees(c, policy.Subtrees())
	}
	r.workloadStandIns(c)
	m.jobs.read(c, policy)
	m.totals.hand(r.samples)
}

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(volcano+"_"+name, help, labels, nil)
}

// amounts describe one vector of a queue: Volcano has a name for CPU, one for memory, and one for all the rest.
type amounts struct{ cpu, memory, scalar *prometheus.Desc }

func amountsOf(what, help string) amounts {
	return amounts{
		cpu:    description("queue_"+what+"_milli_cpu", help+" of CPU in thousandths.", "queue_name"),
		memory: description("queue_"+what+"_memory_bytes", help+" of memory.", "queue_name"),
		scalar: description("queue_"+what+"_scalar_resources", help+" of any other resource, in its base unit.", "queue_name", "resource"),
	}
}

var (
	allocated  = amountsOf("allocated", "What the queue and those below it hold")
	request    = amountsOf("request", "What the queue and those below it hold and wait for")
	inqueue    = amountsOf("inqueue", "What admitted jobs still lack of their minimum")
	deserved   = amountsOf("deserved", "What the queue may hold by right")
	capability = amountsOf("capacity", "What the queue may hold at most")
	ceilingOf  = amountsOf("real_capacity",
		"What the queue may hold at most apart from what is kept for others, in a cluster of this size")
	overusedOf = description("queue_overused", "Whether the queue has all that it deserves, of every resource.", "queue_name")
	shareOf    = description("queue_share", "Largest ratio of what the queue holds to what it deserves.", "queue_name")
	weightOf   = description("queue_weight", "Weight of the queue.", "queue_name")
	taskCount  = description("unschedule_task_count", "Pods of a waiting job that have no node.", "job_id")
	jobCount   = description("unschedule_job_count", "Jobs that wait because something stands in their way.")
)

// reader collects samples.
type reader struct {
	index   *resources.Index
	samples []prometheus.Metric
}

func (r *reader) add(d *prometheus.Desc, value float64, labels ...string) {
	r.samples = append(r.samples, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...))
}

func (r *reader) queue(q *cluster.Queue, policy *framework.Policy) {
	r.vector(allocated, q.Name, q.Subtree.Allocated)
	r.vector(request, q.Name, q.Subtree.Request)
	r.vector(inqueue, q.Name, q.Subtree.Inqueue)
	r.add(weightOf, float64(q.Weight), q.Name)
	for d := range r.index.Resources() {
		if value, ok := q.Capability.At(d); ok {
			r.amount(capability, q.Name, d, value)
		}
	}
	if policy == nil || q.Problem != "" {
		return
	}
	if share, ok := policy.Share(q); ok {
		r.vector(deserved, q.Name, share.Deserved.Vector())
		r.add(shareOf, share.Share.Float(), q.Name)
		r.add(overusedOf, isOverused(q, share.Deserved), q.Name)
		r.fairness(q, &share)
		for d := range r.index.Resources() {
			if value := share.Ceiling.Value(d); value != resources.Unlimited {
				r.amount(ceilingOf, q.Name, d, value)
			}
		}
	}
}

// isOverused is 1 if a queue holds all that it deserves, 0 if it does not, or deserves nothing in particular.
func isOverused(q *cluster.Queue, deserved resources.Limits) float64 {
	result := 0.0
	for d := range deserved.Len() {
		limit, ok := deserved.At(resources.Dim(d))
		switch {
		case !ok:
		case q.Subtree.Allocated.At(resources.Dim(d)) < limit:
			return 0
		default:
			result = 1
		}
	}
	return result
}

func (r *reader) vector(a amounts, queue string, v resources.Vector) {
	// Zeros too: a series that ends where the amount does looks like one that was not scraped. But not of resources
	// that only requests name: any user can invent some, and each would make series of every queue.
	for d := range r.index.Resources() {
		if amount := v.At(d); amount != 0 || !r.index.IsInvented(d) {
			r.amount(a, queue, d, amount)
		}
	}
}

func (r *reader) amount(a amounts, queue string, d resources.Dim, value int64) {
	switch name := r.index.Name(d); name {
	case corev1.ResourceCPU:
		r.add(a.cpu, float64(value), queue)
	case corev1.ResourceMemory:
		r.add(a.memory, float64(value), queue)
	default:
		r.add(a.scalar, float64(value), queue, string(name))
	}
}
