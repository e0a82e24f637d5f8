package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/trend"
)

// RuleFlat is that a process holds no more from hour to hour, while no fault happens.
const RuleFlat = "flat"

const (
	// usageEvery is how often is asked what processes hold.
	usageEvery = time.Minute
	// warmUp is how long a process may take until it has seen all that it meets, and leastAsked how often is asked
	// after that before anything is judged.
	warmUp     = 10 * time.Minute
	leastAsked = 10
	// mostMetrics bounds the size of the metrics of a process, in bytes.
	mostMetrics = 16 << 20
)

// Usage is what a process holds at one time.
type Usage struct {
	Time time.Time `json:"time"`
	// Started is when the process began, in seconds since 1970.
	Started float64 `json:"started"`
	// HeapBytes are those of the objects that the last garbage collection has left. Go collects at least every two
	// minutes.
	HeapBytes   float64 `json:"heapBytes"`
	Goroutines  float64 `json:"goroutines"`
	Descriptors float64 `json:"descriptors"` // of files and connections that are open
	Series      float64 `json:"series"`      // of its metrics
}

// measure is one of what a process holds.
type measure struct {
	name string
	of   func(*Usage) float64
	// slack is how much it may rise besides the part that is allowed.
	slack float64
}

// mostRise is by which part of its mean anything may rise after the warm-up, by the fitted line.
const mostRise = 0.05

// measures are all of them. The slack of the heap is what the journal of the scheduler may hold: it fills for hours.
// That of the others is what is open for a moment, such as a request.
var measures = [...]measure{
	{"bytes of the heap", func(u *Usage) float64 { return u.HeapBytes }, 16 << 20},
	{"goroutines", func(u *Usage) float64 { return u.Goroutines }, 10},
	{"open descriptors", func(u *Usage) float64 { return u.Descriptors }, 5},
	{"series of metrics", func(u *Usage) float64 { return u.Series }, 20},
}

// readUsage reads what a process holds from its metrics.
func readUsage(metrics []byte, at time.Time) (Usage, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Time: at}
	for name, into := range map[string]*float64{"go_gc_heap_live_bytes": &u.HeapBytes, "go_goroutines": &u.Goroutines, "process_open_fds": &u.Descriptors,
		"process_start_time_seconds": &u.Started} {
		family := families[name].GetMetric()
		if len(family) != 1 {
			return Usage{}, fmt.Errorf("the metrics have no %s", name)
		}
		*into = family[0].GetGauge().GetValue()
	}
	for line := range bytes.Lines(metrics) {
		if len(bytes.TrimSpace(line)) > 0 && line[0] != '#' {
			u.Series++
		}
	}
	return u, nil
}

// usageOf asks a process what it holds.
func usageOf(ctx context.Context, url string) (Usage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Usage{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Usage{}, err
	}
	defer func() { _ = response.Body.Close() }()
	metrics, err := io.ReadAll(io.LimitReader(response.Body, mostMetrics))
	if err != nil {
		return Usage{}, err
	}
	if response.StatusCode != http.StatusOK {
		return Usage{}, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return readUsage(metrics, time.Now())
}

// askUsage asks all components what they hold.
func (r *run) askUsage(ctx context.Context) error {
	for i := range r.options.Components {
		name := r.options.Components[i].Name
		u, err := usageOf(ctx, r.metrics[name])
		if err != nil {
			return fmt.Errorf("what %s holds: %w", name, err)
		}
		r.report.Usage[name] = append(r.report.Usage[name], u)
	}
	return nil
}

// askUsageUntil asks at once, and then each minute until a channel is closed.
func (r *run) askUsageUntil(ctx context.Context, ended <-chan struct{}) {
	for {
		if err := r.bounded(ctx, r.askUsage); err != nil {
			r.say("%v", err)
		}
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(usageEvery):
		}
	}
}

// afterWarmUp is what a process held after the warm-up. If it was launched again, as one is that has lost its Lease,
// only the last process counts: it began with nothing.
func afterWarmUp(all []Usage, from time.Time) []Usage {
	if len(all) == 0 {
		return nil
	}
	if began := time.UnixMilli(int64(1000 * all[len(all)-1].Started)); began.After(from) {
		from = began
	}
	return slices.DeleteFunc(slices.Clone(all), func(u Usage) bool { return u.Time.Sub(from) < warmUp })
}

// values are those of one measure.
func (m *measure) values(all []Usage) []float64 {
	var values []float64
	for i := range all {
		values = append(values, m.of(&all[i]))
	}
	return values
}

// rising says what a process holds more and more of after the warm-up. Too few answers say nothing.
func rising(name string, all []Usage, from time.Time) []audit.Violation {
	settled := afterWarmUp(all, from)
	if len(settled) < leastAsked {
		return nil
	}
	var found []audit.Violation
	first, last := settled[0].Time, settled[len(settled)-1].Time
	for i := range measures {
		m := &measures[i]
		values := m.values(settled)
		rise, mean := trend.Rise(values), trend.Mean(values)
		if rise <= mostRise*mean+m.slack {
			continue
		}
		found = append(found, audit.Violation{Time: last, Rule: RuleFlat, Objects: []string{"Process " + name}, Message: fmt.Sprintf(
			"has more and more %s: %.0f in the mean, and in %s %.0f more", m.name, mean, last.Sub(first).Round(time.Second), rise)})
	}
	return found
}

// describeUsage says what a process held after the warm-up, one line for each measure.
func describeUsage(name string, all []Usage, from time.Time) string {
	settled := afterWarmUp(all, from)
	if len(settled) < leastAsked {
		return fmt.Sprintf("%s: it was asked %d times after the warm-up of %s what it holds, which is too few to judge\n", name, len(settled), warmUp)
	}
	var text strings.Builder
	for i := range measures {
		m := &measures[i]
		values := m.values(settled)
		fmt.Fprintf(&text, "%s: %s: %.0f to %.0f, %.0f in the mean, and by the fitted line %+.0f in %s\n", name, m.name, slices.Min(values), slices.Max(values),
			trend.Mean(values), trend.Rise(values), settled[len(settled)-1].Time.Sub(settled[0].Time).Round(time.Second))
	}
	return text.String()
}
