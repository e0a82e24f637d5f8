package charts_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"hekla.sh/hekla/internal/answers/charts"
	"hekla.sh/hekla/internal/explain/rows"
)

var begin = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

// used is a sample of what the cluster and a queue use.
func used(at time.Time, cpus float64, evictions int) charts.Sample {
	return charts.Sample{Time: at, Values: map[charts.Key]float64{
		{Measure: charts.Used, Resource: "cpu"}: cpus, {Subject: "Queue/a", Measure: charts.Used, Resource: "cpu"}: cpus / 2,
		{Measure: charts.Evictions}: float64(evictions)}}
}

// line returns the points of a line of a chart, the oldest first, with -1 where nothing is known.
func line(t *testing.T, c charts.Chart, measure charts.Measure) (points []float32) {
	t.Helper()
	for _, l := range c.Lines {
		if l.Measure == measure {
			for _, p := range l.Points {
				if p == nil {
					points = append(points, -1)
				} else {
					points = append(points, *p)
				}
			}
			return points
		}
	}
	t.Fatalf("the chart has no line of %s: %+v", measure, c.Lines)
	return nil
}

func last(points []float32, count int) string { return fmt.Sprint(points[len(points)-count:]) }

func TestPointsGetCoarserAsTheyGetOlder(t *testing.T) {
	s, now := charts.New(), begin
	for minute := range 60 {
		now = begin.Add(time.Duration(minute) * time.Minute)
		if minute >= 30 && minute < 40 {
			continue // nothing leads
		}
		s.Add(used(now, float64(minute), 1))
	}
	hours, day, weeks := s.Chart("", "hours", now), s.Chart("", "day", now), s.Chart("", "weeks", now)
	if got := last(line(t, hours, charts.Used), 4); got != "[56 57 58 59]" {
		t.Errorf("the last minutes are %s", got)
	}
	if got := last(line(t, day, charts.Used), 7); got != "[-1 4.5 14.5 24.5 -1 44.5 54.5]" {
		t.Errorf("the mean of each ten minutes is %s: none was measured in the fifth", got)
	}
	if got := last(line(t, day, charts.Evictions), 3); got != "[-1 10 10]" {
		t.Errorf("the evictions of each ten minutes are %s", got)
	}
	if got := last(line(t, weeks, charts.Evictions), 2); got != "[-1 50]" {
		t.Errorf("the evictions of each two hours are %s", got)
	}
	if got := s.Chart("Queue/a", "hours", now); last(line(t, got, charts.Used), 1) != "[29.5]" || len(got.Subjects) != 2 {
		t.Errorf("the chart of a queue is %+v", got)
	}
	if c := s.Chart("", "hours", now); c.From.Add(time.Duration(len(c.Lines[0].Points)-1)*time.Minute) != now {
		t.Errorf("the last of %d points is not of now: the first is of %s", len(c.Lines[0].Points), c.From)
	}
	later := now.Add(24 * time.Hour)
	s.Add(used(later, 7, 0))
	if got := line(t, s.Chart("", "hours", later), charts.Used); last(got, 2) != "[-1 7]" || got[0] != -1 {
		t.Errorf("after a day without samples the minutes are %v", got)
	}
}

func TestAQueueThatIsGoneIsZero(t *testing.T) {
	s := charts.New()
	s.Add(used(begin, 4, 0))
	s.Add(charts.Sample{Time: begin.Add(time.Minute)})
	if got := last(line(t, s.Chart("Queue/a", "hours", begin.Add(time.Minute)), charts.Used), 2); got != "[2 0]" {
		t.Errorf("its points are %s", got)
	}
}

// crowd is a sample of many queues, with numbers that cannot be compressed.
func crowd(at time.Time, queues int, r *rand.Rand) charts.Sample {
	sample := used(at, 1, 0)
	for i := range queues {
		sample.Values[charts.Key{Subject: fmt.Sprintf("Queue/%05d", i), Measure: charts.Used, Resource: "cpu"}] = 1 + r.Float64()*1e6
	}
	return sample
}

func TestTheStoreIsBounded(t *testing.T) {
	const most = 8 << 20
	if charts.MaxBytes > most {
		t.Errorf("it may take %d bytes, and %d are promised", charts.MaxBytes, most)
	}
	r := rand.New(rand.NewPCG(1, 2))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, s := heap(), charts.New()
	for i := range 3 {
		s.Add(crowd(begin.Add(time.Duration(i)*time.Minute), 10_000, r))
	}
	if after := heap(); after > before+most {
		t.Errorf("the lines of ten thousand queues take %d bytes", after-before)
	}
	c := s.Chart("", "hours", begin.Add(2*time.Minute))
	if lines := len(c.Subjects); lines > charts.MaxLines || c.Left == 0 {
		t.Errorf("%d subjects have charts, and %d are said to have none", lines, c.Left)
	}
	if got := last(line(t, c, charts.Used), 1); got != "[1]" {
		t.Errorf("the cluster itself has %s", got)
	}
	runtime.KeepAlive(s)
}

func TestWhatIsSavedIsBounded(t *testing.T) {
	r, s := rand.New(rand.NewPCG(1, 2)), charts.New()
	const minutes = 120
	for i := range minutes {
		s.Add(crowd(begin.Add(time.Duration(i)*time.Minute), 2000, r))
	}
	packed, left, err := s.Save()
	if err != nil || len(packed) > charts.MaxSaved || left == 0 {
		t.Fatalf("%d bytes are saved, and %d lines are left out: %v", len(packed), left, err)
	}
	next, now := charts.New(), begin.Add(minutes*time.Minute)
	if err := next.Restore(packed, now); err != nil {
		t.Fatal(err)
	}
	if got := line(t, next.Chart("", "hours", now), charts.Used); got[0] != 1 {
		t.Errorf("the cluster is left out: %v", got[:5])
	}
}

func TestAFullStoreIsTakenOver(t *testing.T) {
	s, now := charts.New(), begin
	for i := range 14 * 12 { // each point of each span has a value
		sample := crowd(begin.Add(time.Duration(i)*2*time.Hour), 0, nil)
		for q := range charts.MaxLines {
			sample.Values[charts.Key{Subject: fmt.Sprintf("Queue/%05d", q), Measure: charts.Used, Resource: "cpu"}] = 123_400
		}
		now = sample.Time
		s.Add(sample)
	}
	packed, left, err := s.Save()
	if err != nil || left != 0 {
		t.Fatalf("%d lines are left out: %v", left, err)
	}
	next := charts.New()
	if err := next.Restore(packed, now); err != nil {
		t.Fatal(err)
	}
	if got, want := len(next.Chart("", "weeks", now).Subjects), len(s.Chart("", "weeks", now).Subjects); got != want {
		t.Errorf("%d subjects of %d are taken over", got, want)
	}
}

func TestTheNextLeaderGoesOnWithTheCharts(t *testing.T) {
	s := charts.New()
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	for minute := range 15 {
		s.Add(used(at(minute), 1234.567*float64(minute), 1))
	}
	packed, left, err := s.Save()
	if err != nil || left != 0 {
		t.Fatalf("%d lines are left out: %v", left, err)
	}
	next := charts.New()
	if err := next.Restore(packed, at(17)); err != nil {
		t.Fatal(err)
	}
	for minute := 17; minute < 20; minute++ {
		next.Add(used(at(minute), 1000, 2))
	}
	c := next.Chart("", "hours", at(19))
	minutes := line(t, c, charts.Used)
	for i, want := range []float64{11 * 1234.567, 12 * 1234.567, 13 * 1234.567, 14 * 1234.567, -1, -1, 1000, 1000, 1000} {
		const precision = 1e-3
		if got := float64(minutes[len(minutes)-9+i]); math.Abs(got-want) > math.Abs(want)*precision {
			t.Errorf("minute %d has %g, want %g: what was saved, a gap without a leader, and what is new", 11+i, got, want)
		}
	}
	if len(c.Changes) != 1 || !c.Changes[0].Equal(at(17)) {
		t.Errorf("the leader is said to have changed at %v, want %s", c.Changes, at(17))
	}
	// Ten minutes in which the leader has changed are of both.
	if got := last(line(t, next.Chart("", "day", at(19)), charts.Evictions), 2); got != "[10 11]" {
		t.Errorf("the evictions of each ten minutes are %s", got)
	}
}

func TestWhatAnotherVersionHasSavedIsRefused(t *testing.T) {
	s := charts.New()
	s.Add(used(begin, 1, 0))
	for _, packed := range [][]byte{nil, []byte("nonsense"), {0x1f, 0x8b, 8, 0, 0, 0, 0, 0}} {
		if err := s.Restore(packed, begin); err == nil {
			t.Errorf("%q is taken over", packed)
		}
	}
	if got := last(line(t, s.Chart("", "hours", begin), charts.Used), 1); got != "[1]" {
		t.Errorf("what was there has become %s", got)
	}
}

func TestASampleOfABoard(t *testing.T) {
	b := &rows.Board{
		Resources: []string{"cpu", "pods", "gpu"},
		Nodes: []*rows.Node{{Ready: true, Allocatable: []int64{8000, 110, 4}, Used: []int64{3000, 5, 4}},
			{Ready: false, Allocatable: []int64{8000, 110, 4}, Used: []int64{1000, 1, 0}}},
		Queues: []*rows.Queue{{Queue: "root", Waiting: []int64{6000}, Borrowed: []int64{9}},
			{Queue: "a", Parent: "root", Holds: []int64{3000, 5, 4}, Deserved: []int64{2000, -1, 4}, Borrowed: []int64{1000}, Waiting: []int64{6000}}},
		Quotas: []*rows.Quota{{Kind: rows.KindCohort, Name: "c", Waiting: []int64{1}}, {Kind: rows.KindClusterQueue, Name: "q", Waiting: []int64{500},
			Flavors: []rows.FlavorQuota{{Flavor: "x", Resource: "cpu", Quota: 10, Used: 12, Borrowed: 2}, {Flavor: "y", Resource: "cpu", Quota: 5, Used: 1}}}},
	}
	got := charts.Of(b, map[string]int{"Queue/a": 2, "": 1}, begin).Values
	for key, want := range map[charts.Key]float64{
		{Subject: "", Measure: charts.Used, Resource: "cpu"}: 4000, {Subject: "", Measure: charts.Size, Resource: "cpu"}: 8000,
		{Subject: "", Measure: charts.Size, Resource: "pods"}: 0, {Subject: "", Measure: charts.Waiting, Resource: "cpu"}: 6500,
		{Subject: "", Measure: charts.Borrowed, Resource: "cpu"}: 1002, {Subject: "", Measure: charts.Evictions}: 3,
		{Subject: "Queue/a", Measure: charts.Used, Resource: "gpu"}: 4, {Subject: "Queue/a", Measure: charts.Size, Resource: "cpu"}: 2000,
		{Subject: "Queue/a", Measure: charts.Evictions}: 2, {Subject: "ClusterQueue/q", Measure: charts.Used, Resource: "cpu"}: 13,
		{Subject: "ClusterQueue/q", Measure: charts.Size, Resource: "cpu"}: 15, {Subject: "ClusterQueue/q", Measure: charts.Waiting, Resource: "cpu"}: 500,
	} {
		if got[key] != want {
			t.Errorf("%+v is %g, want %g", key, got[key], want)
		}
	}
}
