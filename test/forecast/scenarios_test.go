package forecast

import (
	"fmt"
	"math"
	"time"

	"hekla.sh/hekla/internal/explain/forecast"
)

// queues are those of every cluster.
var queues = []string{"research", "batch"}

// scenario is a kind of random cluster.
type scenario struct {
	// name says what jobs say of how long they run, and what is special.
	name string
	// basis is the kind of ground on which the ranges that count are based, "" for all.
	basis forecast.Kind
	// widest is the largest median of the width, as a part of the true wait.
	widest float64
	isFIFO bool // the queues have the dequeueStrategy fifo
	comes  bool // jobs come all the time, otherwise all of them are there from the beginning
	fill   func(w *future)
}

var scenarios = []*scenario{
	{name: "estimates, right within 30 %", basis: forecast.Declared, widest: 2, fill: declared(0.3)},
	{name: "estimates, wrong by up to 50 %", basis: forecast.Declared, widest: 2.5, fill: declared(0.5)},
	{name: "estimates, all wrong by 40 % in one way", basis: forecast.Declared, widest: 4.5, fill: biased},
	{name: "deadlines, of which jobs use a half or more", basis: forecast.Declared, widest: 2.5, fill: deadlines},
	{name: "jobs of a few names that repeat", basis: forecast.Measured, widest: 3.5, fill: repeated(0.25, 0)},
	{name: "jobs of a few names, with heavy tails", basis: forecast.Measured, widest: 5, fill: heavy},
	{name: "jobs with nothing in common but their queue", basis: forecast.SameQueue, widest: 6, fill: unlike},
	{name: "jobs of which nothing is known", basis: forecast.Pace, widest: 5, fill: unknown},
	{name: "all of these at once", widest: 5, fill: mixed},
	{name: "all of these, in fifo queues into which others come", isFIFO: true, comes: true, widest: 4, fill: mixed},
	{name: "all of these, and others come", comes: true, widest: 4.5, fill: mixed},
	{name: "all of these, and others of higher priority come", comes: true, widest: 4.5, fill: urgent},
	{name: "all of these, and a node is cordoned", widest: 4.5, fill: leaving},
}

// fill makes a backlog and further arrivals: about as much work as the nodes can do.
func (w *future) fill(each func(j *job, i int)) {
	backlog, later := 90, 0
	if w.comes {
		backlog, later = 30, 60
	}
	cpus := 8 * len(w.nodes)
	at := time.Duration(0)
	for i := range backlog + later {
		j := &job{name: fmt.Sprintf("job-%s", word(i)), pods: 1 + w.random.IntN(4), cpu: 1 + w.random.IntN(4), queue: queues[w.random.IntN(len(queues))],
			class: "low", runs: w.around(20*time.Minute, 0.8), comesLater: w.random.IntN(3) == 0}
		if w.random.IntN(5) == 0 && i < backlog {
			j.class = "high"
		}
		each(j, i)
		if i >= backlog {
			share := float64(j.pods*j.cpu) / float64(cpus)
			at += time.Duration(share * float64(j.runs) * 2 * w.random.Float64() * 0.95)
		}
		j.arrives = at.Truncate(time.Second)
		j.runs = max(j.runs.Truncate(time.Second), 10*time.Second)
		w.jobs = append(w.jobs, j)
	}
}

// word is a name that is like no other.
func word(i int) string { return fmt.Sprintf("a%ce%co", 'a'+i%26, 'a'+i/26) }

// around is a random time, with a deviation of its logarithm.
func (w *future) around(median time.Duration, deviation float64) time.Duration {
	return time.Duration(float64(median) * math.Exp(deviation*w.random.NormFloat64()))
}

// within is a random factor near one.
func (w *future) within(part float64) float64 { return 1 + part*(2*w.random.Float64()-1) }

func declared(wrong float64) func(*future) {
	return func(w *future) {
		w.fill(func(j *job, _ int) { w.declare(j, wrong) })
	}
}

// declare makes a job declare how long it runs, which is wrong by a part of what it declares.
func (w *future) declare(j *job, wrong float64) {
	j.estimate = j.runs.Truncate(time.Second)
	j.runs = time.Duration(float64(j.estimate) * w.within(wrong))
}

func deadlines(w *future) {
	w.fill(func(j *job, _ int) {
		j.comesLater = false // the scheduler reads deadlines from the pods
		j.deadline = j.runs.Truncate(time.Second)
		j.runs = time.Duration(float64(j.deadline) * (0.5 + w.random.Float64()/2))
	})
}

// repeated has jobs of a few names, whose run times deviate around one of the name.
func repeated(deviation, tail float64) func(*future) {
	return func(w *future) {
		w.fill(func(j *job, i int) { w.repeat(j, i, deviation, tail) })
	}
}

// repeat makes a job the next of one of five names. With a tail, some run for much longer.
func (w *future) repeat(j *job, i int, deviation, tail float64) {
	of := w.random.IntN(5)
	j.name = fmt.Sprintf("%s-%d", []string{"train", "eval", "render", "index", "report"}[of], i)
	j.runs = w.around(time.Duration(4*(of+1))*time.Minute, deviation)
	if tail > 0 {
		j.runs = time.Duration(float64(j.runs) * math.Pow(1-w.random.Float64(), -1/tail))
	}
}

func heavy(w *future) { repeated(0.1, 2)(w) }

func unlike(w *future) { w.fill(func(*job, int) {}) }

func unknown(w *future) { w.fill(func(j *job, _ int) { j.fails = true }) }

func mixed(w *future) { w.fill(w.mix) }

// mix makes a job one of any kind.
func (w *future) mix(j *job, i int) {
	switch w.random.IntN(4) {
	case 0:
		w.declare(j, 0.5)
	case 1:
		w.repeat(j, i, 0.25, 0)
	case 2:
		j.fails = true
	}
}

func leaving(w *future) {
	mixed(w)
	w.removed = 90 * time.Minute
}

func biased(w *future) {
	factor := 0.6 + 0.8*float64(w.random.IntN(2))
	w.fill(func(j *job, _ int) {
		w.declare(j, 0)
		j.runs = time.Duration(float64(j.estimate) * factor)
	})
}

func urgent(w *future) {
	w.fill(func(j *job, i int) {
		w.mix(j, i)
		if i > 30 && w.random.IntN(4) == 0 {
			j.class = "high"
		}
	})
}
