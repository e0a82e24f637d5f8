package history

import (
	"container/list"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
)

// The limits. With 24 run times the least and the largest hold the next one with more than nine chances in ten, and
// older ones say little about it. The bounds on names and queues are some megabytes at most.
const (
	PerName   = 24
	PerQueue  = 64
	MaxNames  = 4096
	MaxQueues = 2048
)

// History is a bounded memory of run times and starts.
type History struct {
	names   *table[nameKey, *ring[time.Duration]]
	queues  *table[string, *ofQueue]
	running map[cluster.JobID]run
	since   time.Time // the first cycle
}

// sweepSlack is how many more jobs than twice those that exist are kept, so that a few jobs are not swept again and
// again.
const sweepSlack = 64

// nameKey is the namespace and the base name of jobs.
type nameKey struct{ namespace, base string }

// ofQueue is what is kept of one queue.
type ofQueue struct {
	ran    ring[time.Duration]
	starts ring[time.Time]
}

// run is a job that runs, and since when.
type run struct {
	job     *cluster.Job
	started time.Time
}

// New returns an empty history.
func New() *History {
	return &History{names: newTable[nameKey, *ring[time.Duration]](MaxNames), queues: newTable[string, *ofQueue](MaxQueues),
		running: map[cluster.JobID]run{}}
}

// Cycle notes which jobs have started or ended. The model is as the cycle has left it. touched are the jobs that have
// changed, by name.
func (h *History) Cycle(now time.Time, c *model.Cluster, d *decision.Decisions, touched []*cluster.Job) {
	if h.since.IsZero() {
		h.since = now
		h.recover(touched)
	}
	for _, j := range touched {
		h.follow(now, j)
	}
	for i := range d.Workloads {
		if w := &d.Workloads[i]; w.Reserve != nil {
			h.noteStart(QueueOfWorkloads(string(w.Reserve.ClusterQueue)), now)
		}
	}
	if len(h.running) > 2*c.JobCount()+sweepSlack { // some were deleted while they ran
		for id, r := range h.running {
			if c.Job(id) != r.job {
				delete(h.running, id)
			}
		}
	}
}

// follow notes what has become of a job.
func (h *History) follow(now time.Time, j *cluster.Job) {
	r, isKnown := h.running[j.ID]
	isKnown = isKnown && r.job == j
	runs := j.Staying() > 0 && j.Ready() >= max(j.MinMember, 1)
	switch {
	case runs && !isKnown:
		h.running[j.ID] = run{job: j, started: startOf(j, now)}
		if j.Refusals > 0 {
			h.noteStart(j.QueueName, now)
		}
	case isKnown && j.Over():
		delete(h.running, j.ID)
		if j.Count(cluster.Succeeded) > 0 && now.After(r.started) {
			h.noteRun(j, now.Sub(r.started))
		}
	case isKnown && !runs:
		delete(h.running, j.ID) // it has lost its gang
	}
}

// recover takes in the jobs that ended before this process and are still there, by what their pods say, in the order in
// which they ended.
func (h *History) recover(jobs []*cluster.Job) {
	type ended struct {
		job  *cluster.Job
		at   time.Time
		took time.Duration
	}
	var all []ended
	for _, j := range jobs {
		if at, took, ok := lastRun(j); ok {
			all = append(all, ended{j, at, took})
		}
	}
	slices.SortStableFunc(all, func(a, b ended) int { return a.at.Compare(b.at) })
	for _, e := range all {
		h.noteRun(e.job, e.took)
	}
}

// lastRun returns when a job ended that has succeeded, and how long it ran: from the first start of its pods that have
// not failed to their last end. ok is false if the job has not ended, or its pods do not say when.
func lastRun(j *cluster.Job) (end time.Time, took time.Duration, ok bool) {
	if j.Group == nil || j.IsForeign || !j.Over() {
		return time.Time{}, 0, false
	}
	var start time.Time
	for _, t := range j.Tasks() {
		if t.Status != cluster.Succeeded {
			continue
		}
		ended, isKnown := t.Pod.Status.Ended()
		if !isKnown {
			return time.Time{}, 0, false
		}
		if at := t.Started(); start.IsZero() || at.Before(start) {
			start = at
		}
		if ended.After(end) {
			end = ended
		}
	}
	return end, end.Sub(start), end.After(start)
}

// startOf is when a job that runs has started: now, or before this process, as its pods say.
func startOf(j *cluster.Job, now time.Time) time.Time {
	started := now
	for _, t := range j.Tasks() {
		if t.Status == cluster.Running || t.Status == cluster.Bound {
			if at := t.Started(); at.Before(started) {
				started = at
			}
		}
	}
	return started
}

func (h *History) noteRun(j *cluster.Job, took time.Duration) {
	h.names.get(keyOf(j), func() *ring[time.Duration] { return &ring[time.Duration]{limit: PerName} }).add(took)
	h.queue(j.QueueName).ran.add(took)
}

func (h *History) noteStart(queue string, at time.Time) { h.queue(queue).starts.add(at) }

func (h *History) queue(name string) *ofQueue {
	return h.queues.get(name, func() *ofQueue {
		return &ofQueue{ran: ring[time.Duration]{limit: PerQueue}, starts: ring[time.Time]{limit: PerQueue}}
	})
}

// QueueOfWorkloads is under which name the starts of a ClusterQueue are kept. No Queue has such a name.
func QueueOfWorkloads(clusterQueue string) string { return "clusterqueue/" + clusterQueue }

// Since is the time of the first cycle, zero before. Nothing older is known.
func (h *History) Since() time.Time { return h.since }

// Started returns since when a job runs, zero if it does not or that is not known.
func (h *History) Started(j *cluster.Job) time.Time {
	if r := h.running[j.ID]; r.job == j {
		return r.started
	}
	return time.Time{}
}

// OfName returns how long the latest jobs of the same name ran, the shortest first.
func (h *History) OfName(j *cluster.Job) []time.Duration {
	if found, ok := h.names.find(keyOf(j)); ok {
		return found.sorted()
	}
	return nil
}

// OfQueue returns how long the latest jobs of a queue ran, the shortest first.
func (h *History) OfQueue(name string) []time.Duration {
	if found, ok := h.queues.find(name); ok {
		return found.ran.sorted()
	}
	return nil
}

// Starts returns when the latest jobs of a queue that had to wait started, the oldest first.
func (h *History) Starts(queue string) []time.Time {
	if found, ok := h.queues.find(queue); ok {
		return slices.Clone(found.starts.inOrder())
	}
	return nil
}

func keyOf(j *cluster.Job) nameKey {
	_, name := splitName(j.Name())
	return nameKey{namespace: j.ID.Namespace, base: BaseName(name)}
}

// ring keeps the latest values.
type ring[T time.Duration | time.Time] struct {
	values []T
	limit  int
}

func (r *ring[T]) add(value T) {
	if len(r.values) >= r.limit {
		r.values = slices.Delete(r.values, 0, 1)
	}
	r.values = append(r.values, value)
}

func (r *ring[T]) inOrder() []T { return r.values }

// sorted returns the values of a ring of durations, the least first.
func (r *ring[T]) sorted() []time.Duration {
	all, _ := any(slices.Clone(r.values)).([]time.Duration)
	slices.Sort(all)
	return all
}

// table holds values by key. Beyond its limit it drops the one that was written longest ago.
type table[K comparable, V any] struct {
	limit int
	byKey map[K]*list.Element
	order *list.List // the one written last is in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newTable[K comparable, V any](limit int) *table[K, V] {
	return &table[K, V]{limit: limit, byKey: map[K]*list.Element{}, order: list.New()}
}

// get returns the value of a key to be written, a new one if there is none.
func (t *table[K, V]) get(key K, makeIt func() V) V {
	if at, ok := t.byKey[key]; ok {
		t.order.MoveToFront(at)
		return at.Value.(*entry[K, V]).value
	}
	if t.order.Len() >= t.limit {
		last := t.order.Back()
		delete(t.byKey, t.order.Remove(last).(*entry[K, V]).key)
	}
	made := &entry[K, V]{key: key, value: makeIt()}
	t.byKey[key] = t.order.PushFront(made)
	return made.value
}

func (t *table[K, V]) find(key K) (value V, ok bool) {
	at, ok := t.byKey[key]
	if ok {
		value = at.Value.(*entry[K, V]).value
	}
	return value, ok
}
