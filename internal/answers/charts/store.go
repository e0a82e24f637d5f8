package charts

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
)

// Span is for how long points of one length are kept.
type Span struct {
	Name   string
	Step   time.Duration // for which a point stands
	Points int
}

// Spans are those of a store, the finest first: two hours by the minute, a day by ten minutes, two weeks by two hours.
var Spans = []Span{{"hours", time.Minute, 120}, {"day", 10 * time.Minute, 144}, {"weeks", 2 * time.Hour, 168}}

// Period is how often a sample is taken.
const Period = time.Minute

const (
	// MaxLines is how many lines there are at most. Five hundred queues of three resources have about that many.
	MaxLines = 4096
	// MaxBytes is how much memory all lines take at most: their points, and some 200 bytes for the name of each.
	MaxBytes = MaxLines * (pointsPerLine*pointBytes + 200)
	// pointsPerLine is the number of points of all [Spans], and pointBytes how long one is.
	pointsPerLine, pointBytes = 120 + 144 + 168, 4
	// maxChanges is how many changes of the leader are kept.
	maxChanges = 32
)

// Measure is what a line shows.
type Measure string

// The measures. Of the cluster Size is what its nodes offer, of a queue its share by right.
const (
	Used      Measure = "used"
	Waiting   Measure = "waiting" // for admission
	Borrowed  Measure = "borrowed"
	Size      Measure = "size"
	Evictions Measure = "evictions"
)

// Key names a line: the subject is "" of the cluster, Queue/NAME or ClusterQueue/NAME.
type Key struct {
	Subject  string
	Measure  Measure
	Resource string // "" of evictions
}

// Sample is what was measured at a time, in the units of a [rows.Board].
type Sample struct {
	Time   time.Time
	Values map[Key]float64
}

// line has the points of all spans, one span after the other, each a ring by the number of the step.
type line [pointsPerLine]float32

// ring says which step each place of a span's ring stands for, and of how many samples it is.
type ring struct {
	steps   []int64
	samples []int32
}

// Store keeps the lines. Any goroutine may use it.
type Store struct {
	mutex   sync.Mutex
	rings   []ring // by span
	lines   map[Key]*line
	left    map[string]bool // subjects for which there was no line left
	changes []time.Time     // when another leader went on, the oldest first
	problem string          // why they are not handed over
}

// New returns an empty store.
func New() *Store {
	s := &Store{lines: map[Key]*line{}, left: map[string]bool{}, rings: make([]ring, len(Spans))}
	for i, span := range Spans {
		s.rings[i] = ring{steps: make([]int64, span.Points), samples: make([]int32, span.Points)}
	}
	return s
}

// firstOf is where the points of a span begin in a line.
func firstOf(span int) (first int) {
	for _, before := range Spans[:span] {
		first += before.Points
	}
	return first
}

// Add takes a sample. One that is older than the last step of a span does not count for it.
func (s *Store) Add(sample Sample) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.open(sample.Values)
	for i, span := range Spans {
		step := stepOf(sample.Time, span)
		at, first := int(step%int64(span.Points)), firstOf(i)
		r := &s.rings[i]
		if r.steps[at] > step {
			continue
		}
		if r.steps[at] != step {
			r.steps[at], r.samples[at] = step, 0
			for _, l := range s.lines {
				l[first+at] = 0
			}
		}
		r.samples[at]++
		for key, l := range s.lines {
			value := float32(sample.Values[key])
			if point := &l[first+at]; key.Measure == Evictions {
				*point += value
			} else {
				*point += (value - *point) / float32(r.samples[at])
			}
		}
	}
}

func stepOf(t time.Time, span Span) int64 { return t.Unix() / int64(span.Step/time.Second) }

// open makes the lines that a sample has and the store has not. Those of the cluster come first. If there are too many,
// lines that are 0 all along make room.
func (s *Store) open(values map[Key]float64) {
	var missing []Key
	for key, value := range values {
		if s.lines[key] == nil && value != 0 {
			missing = append(missing, key)
		}
	}
	if len(s.lines)+len(missing) > MaxLines {
		maps.DeleteFunc(s.lines, func(_ Key, l *line) bool { return l.size() == 0 })
	}
	slices.SortFunc(missing, compareKeys)
	for _, key := range missing {
		if len(s.lines) >= MaxLines {
			s.left[key.Subject] = true
			continue
		}
		s.lines[key] = &line{}
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Measure, b.Measure), cmp.Compare(a.Resource, b.Resource))
}

// size is how many points are not 0.
func (l *line) size() (count int) {
	for _, value := range l {
		if value != 0 {
			count++
		}
	}
	return count
}

// Line is one line of a chart. A point is nil if nothing was measured then.
type Line struct {
	Measure  Measure    `json:"measure"`
	Resource string     `json:"resource,omitempty"`
	Points   []*float32 `json:"points"`
}

// Chart is what is known of a subject in a span.
type Chart struct {
	Subject string `json:"subject"`
	Span    string `json:"span"`
	// From is when the first point begins; each stands for StepSeconds.
	From        time.Time `json:"from"`
	StepSeconds int       `json:"stepSeconds"`
	Lines       []Line    `json:"lines"`
	// Changes are when another process began to lead, within the time of the chart.
	Changes []time.Time `json:"changes,omitempty"`
	// Subjects are all that have charts, and Left is how many have none because there were too many.
	Subjects []string `json:"subjects"`
	Left     int      `json:"left,omitempty"`
	// Problem is why charts are not handed over between leaders, "" if they are.
	Problem string `json:"problem,omitempty"`
}

// Chart returns the lines of a subject up to now. A span that does not exist is the first.
func (s *Store) Chart(subject, span string, now time.Time) Chart {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	i := max(slices.IndexFunc(Spans, func(of Span) bool { return of.Name == span }), 0)
	of := Spans[i]
	last := stepOf(now, of)
	begin := last - int64(of.Points) + 1
	c := Chart{Subject: subject, Span: of.Name, From: time.Unix(begin*int64(of.Step/time.Second), 0).UTC(), StepSeconds: int(of.Step / time.Second),
		Lines: []Line{}, Left: len(s.left), Problem: s.problem}
	subjects := map[string]bool{}
	for key := range s.lines {
		subjects[key.Subject] = true
	}
	c.Subjects = slices.Sorted(maps.Keys(subjects))
	for _, at := range s.changes {
		if !at.Before(c.From) {
			c.Changes = append(c.Changes, at)
		}
	}
	first := firstOf(i)
	for _, key := range slices.SortedFunc(maps.Keys(s.lines), compareKeys) {
		if key.Subject != subject {
			continue
		}
		points := make([]*float32, of.Points)
		for n := range points {
			at := int((begin + int64(n)) % int64(of.Points))
			if s.rings[i].steps[at] == begin+int64(n) && s.rings[i].samples[at] > 0 {
				value := s.lines[key][first+at]
				points[n] = &value
			}
		}
		c.Lines = append(c.Lines, Line{Measure: key.Measure, Resource: key.Resource, Points: points})
	}
	return c
}

// SetProblem notes why what is in the store is not handed over to the next leader, or was not taken over from the one
// before; "" if nothing is wrong. It reports whether that is new.
func (s *Store) SetProblem(why string) (isNew bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	isNew = why != s.problem
	s.problem = why
	return isNew
}

// Problem is what [Store.SetProblem] has noted last.
func (s *Store) Problem() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.problem
}

// Of returns the sample of a board. evictions are those since the last sample, by queue, "" those in no queue.
func Of(b *rows.Board, evictions map[string]int, now time.Time) Sample {
	sample := Sample{Time: now, Values: map[Key]float64{}}
	add := func(subject string, measure Measure, amounts []int64) {
		for d, amount := range amounts {
			if amount > 0 && b.Resources[d] != "pods" {
				sample.Values[Key{subject, measure, b.Resources[d]}] += float64(amount)
			}
		}
	}
	for _, n := range b.Nodes {
		add("", Used, n.Used)
		if n.Ready && !n.Unschedulable {
			add("", Size, n.Allocatable)
		}
	}
	for _, q := range b.Queues {
		subject := "Queue/" + q.Queue
		add(subject, Used, q.Holds)
		add(subject, Size, q.Deserved)
		add(subject, Borrowed, q.Borrowed)
		add(subject, Waiting, q.Waiting)
		if q.Parent == "" {
			add("", Waiting, q.Waiting)
		}
	}
	for _, q := range b.Quotas {
		if q.Kind != rows.KindClusterQueue {
			continue
		}
		subject := q.Key()
		add(subject, Waiting, q.Waiting)
		add("", Waiting, q.Waiting)
		for _, f := range q.Flavors {
			sample.Values[Key{subject, Used, f.Resource}] += float64(f.Used)
			sample.Values[Key{subject, Size, f.Resource}] += float64(f.Quota)
			sample.Values[Key{subject, Borrowed, f.Resource}] += float64(f.Borrowed)
			sample.Values[Key{"", Borrowed, f.Resource}] += float64(f.Borrowed)
		}
	}
	for _, q := range b.Queues {
		if isLeaf := !slices.ContainsFunc(b.Queues, func(other *rows.Queue) bool { return other.Parent == q.Queue }); isLeaf {
			add("", Borrowed, q.Borrowed)
		}
	}
	for queue, count := range evictions {
		sample.Values[Key{"", Evictions, ""}] += float64(count)
		if queue != "" {
			sample.Values[Key{queue, Evictions, ""}] += float64(count)
		}
	}
	return sample
}
