package journal

import (
	"hash/maphash"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Kind is the kind of an entry.
type Kind string

// The kinds.
const (
	Bound           Kind = "Bound"           // the scheduler decided to bind a pod
	Evicted         Kind = "Evicted"         // the scheduler decided to evict a pod
	PlanBegun       Kind = "PlanBegun"       // a plan for a job came into force
	PlanCancelled   Kind = "PlanCancelled"   // a plan was cancelled
	PlanFulfilled   Kind = "PlanFulfilled"   // the tasks of a plan were placed
	Admitted        Kind = "Admitted"        // a job or a Workload was admitted
	SentBack        Kind = "SentBack"        // an admitted job is pending admission again, or a Workload must stop
	VerdictChanged  Kind = "VerdictChanged"  // why a job waits has changed
	NothingInTheWay Kind = "NothingInTheWay" // a job has no reason to wait any more
)

// Entry is one decision or one change of a verdict. Names include the namespace.
type Entry struct {
	Cycle uint64    `json:"cycle"`
	Time  time.Time `json:"time"`
	Kind  Kind      `json:"kind"`
	Job   string    `json:"job,omitempty"` // for an eviction, the job of the pod
	Queue string    `json:"queue,omitempty"`
	Pod   string    `json:"pod,omitempty"`
	Node  string    `json:"node,omitempty"`
	// For is the job for which a pod is evicted, by Action, Rule and Plan, or the Workload for which another must stop.
	For    string `json:"for,omitempty"`
	Action string `json:"action,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Plan   string `json:"plan,omitempty"`
	// Reason is the code of a verdict, or the reason for which a Workload must stop. Message is a sentence: the
	// verdict, why a plan was cancelled, or why a pod is evicted.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Subject is the queue, task, pod or other job that is the cause of a verdict; empty if it is the job itself.
	Subject string `json:"subject,omitempty"`
}

// Limits limit a journal.
type Limits struct {
	Entries int // in all
	PerJob  int // of one job
	Bytes   int // in all, as far as entries hold memory that the model does not
}

// DefaultLimits are enough for some hours of a busy cluster, and take at most sixteen megabytes.
var DefaultLimits = Limits{Entries: 20_000, PerJob: 200, Bytes: 16 << 20}

// record is an entry in memory. Text is formatted only when it is read.
type record struct {
	cycle     uint64
	time      time.Time
	kind      Kind
	of        cluster.JobID // the job at whose limit it counts
	job       cluster.JobID
	pod       types.NamespacedName
	preemptor cluster.JobID
	queue     string
	node      string
	action    string
	rule      string
	plan      string
	message   string
	reason    string
	verdict   *verdict.Verdict
	bytes     int
	number    uint64 // how many were added before it

	next, nextOfJob, nextOfQueue int32 // newer records
	previous, previousOfQueue    int32 // older records
}

const none = int32(-1)

// jobRecord is what is stored about a job with entries.
type jobRecord struct {
	oldest, newest int32
	entries        int
	plan           string // the ID of the plan in force, "" if there is none
	isAdmitted     bool
	isKnown        bool             // isAdmitted is known
	verdict        *verdict.Verdict // the last one that was entered
}

// Journal is a bounded list of entries.
type Journal struct {
	limits         Limits
	chunks         []*[chunkSize]record // in chunks, so that growing does not move records
	space          int32                // the number of records in chunks
	free           []int32
	oldest, newest int32
	entries, bytes int
	jobs           map[cluster.JobID]*jobRecord
	queues         map[string]int32 // the newest record about a job of each queue
	added          uint64
	// pods are the hashes of the pods that records are about, by place: to find those of a pod records need not be
	// read.
	pods []uint64
	seed maphash.Seed
	// elsewhere are the records about a job that count at the limit of another, the oldest first: evictions of its
	// pods.
	elsewhere map[cluster.JobID][]int32

	cycle uint64
	now   time.Time
	tally Tally
}

// Tally counts the entries of one cycle.
type Tally struct {
	Bound          int `json:"bound"`
	Evicted        int `json:"evicted"`
	PlansBegun     int `json:"plansBegun"`
	PlansCancelled int `json:"plansCancelled"`
	Admitted       int `json:"admitted"`
	SentBack       int `json:"sentBack"`
	Verdicts       int `json:"verdicts"` // jobs that wait for another reason than before
}

// Decided reports whether anything was decided. That a job waits for another reason is no decision.
func (t Tally) Decided() bool {
	t.Verdicts = 0
	return t != Tally{}
}

func (t *Tally) count(kind Kind) {
	switch kind {
	case Bound:
		t.Bound++
	case Evicted:
		t.Evicted++
	case PlanBegun:
		t.PlansBegun++
	case PlanCancelled:
		t.PlansCancelled++
	case Admitted:
		t.Admitted++
	case SentBack:
		t.SentBack++
	case VerdictChanged:
		t.Verdicts++
	}
}

// New returns an empty journal. Each limit must be at least 1.
func New(limits Limits) *Journal {
	return &Journal{limits: limits, oldest: none, newest: none, jobs: map[cluster.JobID]*jobRecord{}, queues: map[string]int32{}, elsewhere: map[cluster.JobID][]int32{},
		seed: maphash.MakeSeed()}
}

// chunkSize is the number of records that are allocated at once.
const chunkSize = 256

func (l *Journal) record(at int32) *record { return &l.chunks[at/chunkSize][at%chunkSize] }

// add appends a record, and drops old ones beyond the limits.
func (l *Journal) add(r record) {
	r.cycle, r.time, r.next, r.nextOfJob, r.nextOfQueue, r.previousOfQueue = l.cycle, l.now, none, none, none, none
	l.tally.count(r.kind)
	r.bytes = recordBytes + len(r.message) + len(r.plan) + sizeOf(r.verdict)
	j := l.jobs[r.of]
	if j == nil {
		j = &jobRecord{oldest: none, newest: none}
		l.jobs[r.of] = j
	}
	if j.entries >= l.limits.PerJob {
		l.drop(j.oldest)
	}
	for l.entries > 0 && (l.entries >= l.limits.Entries || l.bytes+r.bytes > l.limits.Bytes) {
		l.drop(l.oldest)
	}
	var at int32
	if last := len(l.free) - 1; last >= 0 {
		at, l.free = l.free[last], l.free[:last]
	} else {
		at, l.pods = l.space, append(l.pods, 0)
		if l.space++; int(at)%chunkSize == 0 {
			l.chunks = append(l.chunks, new([chunkSize]record))
		}
	}
	r.previous = l.newest
	if l.newest == none {
		l.oldest = at
	} else {
		l.record(l.newest).next = at
	}
	l.newest = at
	if j.newest == none {
		j.oldest = at
	} else {
		l.record(j.newest).nextOfJob = at
	}
	j.newest = at
	if j.entries++; j.entries == 1 {
		l.jobs[r.of] = j // its last entry may have been dropped for this one
	}
	if newest, isKnown := l.queues[r.queue]; isKnown {
		l.record(newest).nextOfQueue, r.previousOfQueue = at, newest
	}
	l.queues[r.queue] = at
	r.number = l.added
	l.added++
	*l.record(at) = r
	l.pods[at] = maphash.Comparable(l.seed, r.pod)
	for _, id := range r.others() {
		l.elsewhere[id] = append(l.elsewhere[id], at)
	}
	l.entries++
	l.bytes += r.bytes
}

// drop drops a record, which must be the oldest of its job.
func (l *Journal) drop(at int32) {
	r := l.record(at)
	if r.previous == none {
		l.oldest = r.next
	} else {
		l.record(r.previous).next = r.next
	}
	if r.next == none {
		l.newest = r.previous
	} else {
		l.record(r.next).previous = r.previous
	}
	if r.previousOfQueue != none {
		l.record(r.previousOfQueue).nextOfQueue = r.nextOfQueue
	}
	switch {
	case r.nextOfQueue != none:
		l.record(r.nextOfQueue).previousOfQueue = r.previousOfQueue
	case r.previousOfQueue != none:
		l.queues[r.queue] = r.previousOfQueue
	default:
		delete(l.queues, r.queue)
	}
	j := l.jobs[r.of]
	j.oldest = r.nextOfJob
	if j.entries--; j.entries == 0 {
		j.newest = none
		delete(l.jobs, r.of)
	}
	for _, id := range r.others() {
		left := slices.DeleteFunc(l.elsewhere[id], func(other int32) bool { return other == at })
		if l.elsewhere[id] = left; len(left) == 0 {
			delete(l.elsewhere, id)
		}
	}
	l.entries--
	l.bytes -= r.bytes
	*r = record{}
	l.free = append(l.free, at)
}

// others are the jobs that a record is about, but for that at whose limit it counts.
func (r *record) others() (ids []cluster.JobID) {
	if r.job != r.of && r.job != (cluster.JobID{}) {
		ids = append(ids, r.job)
	}
	if r.preemptor != r.of && r.preemptor != r.job && r.preemptor != (cluster.JobID{}) {
		ids = append(ids, r.preemptor)
	}
	return ids
}

// Estimates of memory in bytes, without text: of a record with its part of a job's, a verdict, and a part of a verdict.
const recordBytes, verdictBytes, partBytes = 640, 256, 48

// sizeOf estimates the memory of a verdict, in bytes.
func sizeOf(v *verdict.Verdict) int {
	if v == nil {
		return 0
	}
	size := verdictBytes + len(v.Subject) + len(v.Detail)
	lists := [...][]verdict.NodeReason{v.Nodes, v.Vetoed, nil}
	if v.Impossible != nil {
		size += partBytes + len(v.Impossible.Pod) + len(v.Impossible.Short)*partBytes
		lists[2] = v.Impossible.Nodes
	}
	for _, list := range lists {
		for i := range list {
			size += partBytes + len(list[i].Reason)
		}
	}
	return size + (len(v.Shortages)+len(v.Spared))*partBytes
}
