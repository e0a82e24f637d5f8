package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// change is what a request did to an object.
type change struct {
	at   time.Time
	user string
	what what
	kind kind
	key  key
	uid  types.UID // "" if the request does not say

	number int // of all changes, in the order of the log

	object any    // what is observed: a *pod, *node, …
	node   string // to which a pod is bound
	grace  *int64 // with which one is evicted, in seconds; nil for its own
	direct bool   // one that is evicted is deleted, so that no budget is asked
}

// what a request did.
type what uint8

const (
	observed what = iota // an object is as its answer shows it
	bound                // a pod is bound to a node
	evicted              // a pod is asked to leave
	deleted              // an object is gone
)

// meta is what is read of any object before its kind is known.
type meta struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace         string     `json:"namespace"`
		Name              string     `json:"name"`
		UID               types.UID  `json:"uid"`
		ResourceVersion   string     `json:"resourceVersion"`
		DeletionTimestamp *time.Time `json:"deletionTimestamp"`
		GracePeriod       *int64     `json:"deletionGracePeriodSeconds"`
		Finalizers        []string   `json:"finalizers"`
	} `json:"metadata"`
	Details struct {
		UID types.UID `json:"uid"`
	} `json:"details"` // of a Status
	Items []json.RawMessage `json:"items"`
}

// isGone reports whether the object of an answer is not stored any more.
func (m *meta) isGone() bool {
	return m.Metadata.DeletionTimestamp != nil && len(m.Metadata.Finalizers) == 0 && (m.Metadata.GracePeriod == nil || *m.Metadata.GracePeriod == 0)
}

// lineOf reads a line of a log. It returns no changes for one that changes nothing that rules look at, and no time for
// one that only reads.
func lineOf(line []byte) (changes []change, at time.Time, err error) {
	if isRead(line) {
		return nil, at, nil
	}
	r := &request{}
	if err := bounds.UnmarshalKubernetesJSON(line, r); err != nil {
		return nil, at, err
	}
	if !r.concerns() {
		return nil, r.Arrived, nil
	}
	changes, err = r.changes()
	return changes, r.Arrived, err
}

// changes are what a request did.
func (r *request) changes() ([]change, error) {
	c := change{at: r.Arrived, user: r.User.Name, kind: kindOf(r.Object.Group, r.Object.Resource), key: key{r.Object.Namespace, r.Object.Name}}
	switch {
	case c.kind == aPod && r.Object.Subresource == "binding":
		return c.binding(r.RequestObject)
	case c.kind == aPod && r.Object.Subresource == "eviction":
		return c.eviction(r.RequestObject)
	case r.Object.Subresource != "" && r.Object.Subresource != "status" && r.Object.Subresource != "resize":
		return nil, nil
	case len(r.ResponseObject) == 0:
		return nil, errNoObjects
	}
	return c.observe(r)
}

// errNoObjects is what is said of a request that was logged without its objects.
var errNoObjects = errors.New("the log does not show the objects of requests: its policy needs the level RequestResponse for them")

// binding is a Binding, whose answer shows no pod.
func (c change) binding(document []byte) ([]change, error) {
	o := &struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Target struct {
			Name string `json:"name"`
		} `json:"target"`
	}{}
	if len(document) == 0 {
		return nil, errNoObjects
	}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	c.what, c.uid, c.node = bound, o.Metadata.UID, o.Target.Name
	return []change{c}, nil
}

// eviction is an Eviction. Its answer does not say whether the pod is gone at once.
func (c change) eviction(document []byte) ([]change, error) {
	o := &struct {
		DeleteOptions struct {
			GracePeriod *int64 `json:"gracePeriodSeconds"`
		} `json:"deleteOptions"`
	}{}
	if len(document) == 0 {
		return nil, errNoObjects
	}
	if err := bounds.UnmarshalKubernetesJSON(document, o); err != nil {
		return nil, err
	}
	c.what, c.grace = evicted, o.DeleteOptions.GracePeriod
	return []change{c}, nil
}

// observe is what the answer of a request shows.
func (c change) observe(r *request) (all []change, err error) {
	m := &meta{}
	if err := bounds.UnmarshalKubernetesJSON(r.ResponseObject, m); err != nil {
		return nil, err
	}
	isDeletion := r.Verb == "delete" || r.Verb == "deletecollection"
	if r.Verb == "deletecollection" {
		for _, item := range m.Items {
			one, err := c.ofObject(item, true)
			if err != nil {
				return all, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	if m.Kind == "Status" {
		if !isDeletion {
			return nil, nil
		}
		c.what, c.uid = deleted, m.Details.UID
		return []change{c}, nil
	}
	return c.ofObject(r.ResponseObject, isDeletion)
}

// ofObject is an object as an answer shows it. Of a pod that is asked to leave that is said as well.
func (c change) ofObject(document []byte, isDeletion bool) ([]change, error) {
	m := &meta{}
	if err := bounds.UnmarshalKubernetesJSON(document, m); err != nil {
		return nil, err
	}
	c.key, c.uid = key{m.Metadata.Namespace, m.Metadata.Name}, m.Metadata.UID
	var all []change
	if isDeletion && c.kind == aPod {
		asked := c
		asked.what, asked.direct = evicted, true
		all = append(all, asked)
	}
	if m.isGone() || isDeletion && m.Metadata.DeletionTimestamp == nil {
		c.what = deleted
		return append(all, c), nil
	}
	if m.Metadata.ResourceVersion == "" || m.Kind != "" && kindNames[m.Kind] != c.kind {
		return all, nil // a dry run, or an answer that shows less than the object: PartialObjectMetadata
	}
	object, err := decode(c.kind, document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.key, err)
	}
	c.object = object
	return append(all, c), nil
}

func decode(k kind, document []byte) (any, error) {
	switch k {
	case aPod:
		return podOf(document)
	case aNode:
		return nodeOf(document)
	case aPodGroup:
		return gangOf(document)
	case aQueue:
		return queueOf(document)
	case aBudget:
		return budgetOf(document)
	case aClusterQueue:
		return clusterQueueOf(document)
	case aCohort:
		return cohortOf(document)
	case aWorkload:
		return workloadOf(document)
	case aSetting:
		return settingOf(document)
	}
	return nil, fmt.Errorf("no object of kind %d is read", k)
}

const (
	batchLines  = 256
	longestLine = 8 << 20
	// longestRequest is how much later than others that arrived after it a request may be answered, and so logged.
	longestRequest = time.Minute
)

// batch is some lines in a row, and what they changed once it is done.
type batch struct {
	lines   [][]byte
	count   int
	changes []change
	latest  time.Time
	unknown map[string]int
	// unreadable is how many lines could not be read, and problem why the first of them.
	unreadable int
	problem    string
	done       chan struct{}
}

func (b *batch) decode() {
	defer close(b.done)
	for _, line := range b.lines {
		changes, at, err := lineOf(line)
		switch {
		case errors.Is(err, errNoObjects):
			b.unknown[errNoObjects.Error()]++
		case err != nil:
			b.unreadable++
			if b.problem == "" {
				b.problem = err.Error()
			}
		}
		if at.After(b.latest) {
			b.latest = at
		}
		b.changes = append(b.changes, changes...)
	}
	b.count, b.lines = len(b.lines), nil
}

// Read takes in a log, and returns what it proves. Several logs in a row are one: those of several API servers must be
// merged by time first.
func (a *Auditor) Read(from io.Reader) error {
	batches := make(chan *batch, 2*runtime.NumCPU())
	todo := make(chan *batch, 2*runtime.NumCPU())
	failed := make(chan error, 1)
	for range runtime.NumCPU() {
		go func() {
			for b := range todo {
				b.decode()
			}
		}()
	}
	go func() {
		defer close(batches)
		defer close(todo)
		failed <- split(from, func(b *batch) { todo <- b; batches <- b })
	}()
	for b := range batches {
		<-b.done
		a.report.Lines += b.count
		a.report.Unreadable += b.unreadable
		a.report.Problem = cmp.Or(a.report.Problem, b.problem)
		for why, times := range b.unknown {
			a.report.Unknown[why] += times
		}
		for i := range b.changes {
			a.push(b.changes[i])
		}
		if b.latest.After(a.latest) {
			a.latest = b.latest
		}
		a.takeUntil(a.latest.Add(-longestRequest))
	}
	return <-failed
}

// split cuts a log into batches of lines.
func split(from io.Reader, pass func(*batch)) error {
	r := bufio.NewReaderSize(from, 1<<20)
	b := &batch{unknown: map[string]int{}, done: make(chan struct{})}
	for {
		line, err := longLine(r)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			b.lines = append(b.lines, line)
		}
		if err != nil || len(b.lines) == batchLines {
			pass(b)
			b = &batch{unknown: map[string]int{}, done: make(chan struct{})}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
	}
}

// longLine reads a line into memory of its own.
func longLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > longestLine {
			return nil, fmt.Errorf("a line is longer than %d bytes: this is no audit log", longestLine)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// byArrival are changes that may have to wait for earlier ones, as a heap.
type byArrival []change

func (b byArrival) Len() int { return len(b) }
func (b byArrival) Less(i, j int) bool {
	return cmp.Or(b[i].at.Compare(b[j].at), cmp.Compare(b[i].number, b[j].number)) < 0
}
func (b byArrival) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b *byArrival) Push(x any)   { *b = append(*b, x.(change)) }
func (b *byArrival) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = change{}
	*b = (*b)[:len(*b)-1]
	return last
}
