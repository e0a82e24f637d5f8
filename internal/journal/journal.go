package journal

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Kind is what an entry is about.
type Kind string

// The kinds.
const (
	Bound           Kind = "Bound"           // a pod was to be bound to a node
	Evicted         Kind = "Evicted"         // a pod was to be evicted
	PlanBegun       Kind = "PlanBegun"       // room is made for a job
	PlanCancelled   Kind = "PlanCancelled"   // it is not any more
	PlanFulfilled   Kind = "PlanFulfilled"   // the job has what it was promised
	Admitted        Kind = "Admitted"        // a job was admitted
	SentBack        Kind = "SentBack"        // an admitted job waits for admission again
	VerdictChanged  Kind = "VerdictChanged"  // why a job waits has changed
	NothingInTheWay Kind = "NothingInTheWay" // nothing stands in a job's way any more
)

// Entry is one decision or one change of a verdict. Names are namespace and name.
type Entry struct {
	Cycle uint64    `json:"cycle"`
	Time  time.Time `json:"time"`
	Kind  Kind      `json:"kind"`
	Job   string    `json:"job,omitempty"` // for an eviction, the job of the pod
	Queue string    `json:"queue,omitempty"`
	Pod   string    `json:"pod,omitempty"`
	Node  string    `json:"node,omitempty"`
	// For is the job that a pod is evicted for; Action and Rule are by what authority; Plan is the plan that it belongs to.
	For    string `json:"for,omitempty"`
	Action string `json:"action,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Plan   string `json:"plan,omitempty"`
	// Reason is the code of a verdict. Message says it to a person: the verdict, why a plan was cancelled, why a pod is evicted.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Limits bound a journal.
type Limits struct {
	Entries int // in all
	PerJob  int // of one job
	Bytes   int // in all, as far as entries hold memory beside that of the model
}

// DefaultLimits are some hours of a busy cluster, and at most sixteen megabytes.
var DefaultLimits = Limits{Entries: 20_000, PerJob: 200, Bytes: 16 << 20}

// record is an entry as it is kept: nothing is formatted before it is asked for.
type record struct {
	cycle     uint64
	time      time.Time
	kind      Kind
	of        cluster.JobID // the job that it counts for
	job       cluster.JobID
	pod       types.NamespacedName
	preemptor cluster.JobID
	queue     string
	node      string
	action    string
	rule      string
	plan      string
	message   string
	verdict   *verdict.Verdict
	bytes     int

	next, nextOfJob int32 // newer ones, none if there is none
	previous        int32 // an older one
}

const none = int32(-1)

// jobRecord is what is kept of a job that has entries.
type jobRecord struct {
	oldest, newest int32
	entries        int
	plan           string // in force, "" if none
	isAdmitted     bool
	isKnown        bool             // whether it is admitted
	verdict        *verdict.Verdict // told last
}

// Journal is a bounded list of entries.
type Journal struct {
	limits         Limits
	chunks         []*[chunkSize]record // so that nothing is moved when there are more
	space          int32                // how many records there is space for
	free           []int32
	oldest, newest int32
	entries, bytes int
	jobs           map[cluster.JobID]*jobRecord

	cycle uint64
	now   time.Time
}

// New returns an empty journal. Each limit is at least 1.
func New(limits Limits) *Journal {
	return &Journal{limits: limits, oldest: none, newest: none, jobs: map[cluster.JobID]*jobRecord{}}
}

// chunkSize is how many records are allocated at once.
const chunkSize = 256

func (l *Journal) record(at int32) *record { return &l.chunks[at/chunkSize][at%chunkSize] }

// add appends a record of a job, and forgets what is too much.
func (l *Journal) add(r record) {
	r.cycle, r.time, r.next, r.nextOfJob = l.cycle, l.now, none, none
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
		at = l.space
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
		l.jobs[r.of] = j // its last entry may have been forgotten for this one
	}
	*l.record(at) = r
	l.entries++
	l.bytes += r.bytes
}

// drop forgets a record, which is the oldest of its job.
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
	j := l.jobs[r.of]
	j.oldest = r.nextOfJob
	if j.entries--; j.entries == 0 {
		j.newest = none
		delete(l.jobs, r.of)
	}
	l.entries--
	l.bytes -= r.bytes
	*r = record{}
	l.free = append(l.free, at)
}

// About how much memory is held, in bytes, beside the text: by a record and its job's, a verdict, and a part of one.
const recordBytes, verdictBytes, partBytes = 640, 256, 48

// sizeOf is about how much memory a verdict holds.
func sizeOf(v *verdict.Verdict) int {
	if v == nil {
		return 0
	}
	size := verdictBytes + len(v.Subject) + len(v.Detail)
	for _, list := range [...][]verdict.NodeReason{v.Nodes, v.Vetoed} {
		for i := range list {
			size += partBytes + len(list[i].Reason)
		}
	}
	return size + (len(v.Shortages)+len(v.Spared))*partBytes
}
