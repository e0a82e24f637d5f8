package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

var (
	guaranteedTo = guaranteeSeriesOf("queue_guaranteed", "What the queue is guaranteed, by itself or a queue above it.", "queue", "resource")
	remainingOf  = guaranteeSeriesOf("queue_remaining_guaranteed", "What the queue does not hold of what it is guaranteed.", "queue", "resource")
	preemptable  = guaranteeSeriesOf("queue_preemptable", "What the queue holds and other queues may take.", "queue", "resource")
	asksOf       = guaranteeSeriesOf("asks", "Jobs that wait for room, by what they wait for.", "queue", "state")
	standInsOf   = guaranteeSeriesOf("standins", "Places held for pods that do not exist yet.", "queue", "cluster_queue")

	guaranteeSeries = []*prometheus.Desc{guaranteedTo, remainingOf, preemptable, asksOf, standInsOf}
)

func guaranteeSeriesOf(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(hekla+"_"+name, help, labels, nil)
}

// asks counts the jobs of a queue that wait for room.
type asks struct{ delayed, refused, planned, standIns int }

// guarantees reads what the rules of guaranteed shares count.
func (r *reader) guarantees(c *model.Cluster, subtrees *guarantee.Subtrees) {
	if subtrees == nil {
		return
	}
	waiting := map[*cluster.Queue]*asks{}
	for _, q := range c.Queues() {
		if q.Object == nil || subtrees.IsTop(&q.Node) {
			continue
		}
		balance, isInside := subtrees.Balance(&q.Node)
		if !isInside {
			continue
		}
		waiting[q] = &asks{}
		for d, name := range r.index.Resources() {
			if guaranteed, is := balance.Guaranteed.At(d); is {
				r.add(guaranteedTo, r.inBaseUnits(d, guaranteed), q.Name, string(name))
				r.add(remainingOf, r.inBaseUnits(d, balance.Remaining.Amount(d)), q.Name, string(name))
			}
			r.add(preemptable, r.inBaseUnits(d, balance.Preemptable.At(d)), q.Name, string(name))
		}
	}
	c.EachJob(func(j *cluster.Job) {
		if of := waiting[j.Queue]; of != nil && !j.IsForeign {
			of.count(j)
		}
	})
	for _, q := range c.Queues() {
		if of := waiting[q]; of != nil && q.IsLeaf() {
			r.add(asksOf, float64(of.delayed), q.Name, "delayed")
			r.add(asksOf, float64(of.refused), q.Name, "refused")
			r.add(asksOf, float64(of.planned), q.Name, "planned")
			r.add(standInsOf, float64(of.standIns), q.Name, "")
		}
	}
}

func (a *asks) count(j *cluster.Job) {
	a.standIns += j.Count(cluster.Awaited)
	switch {
	case j.Plan != nil:
		a.planned++
	case j.Verdict == nil || j.Count(cluster.Pending) == 0:
	case j.Verdict.Code == verdict.Delayed:
		a.delayed++
	default:
		a.refused++
	}
}

func (r *reader) inBaseUnits(d resources.Dim, value int64) float64 {
	quantity := resources.Quantity(r.index.Name(d), value)
	return quantity.AsApproximateFloat64()
}
