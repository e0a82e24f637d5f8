package metrics

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// scrapeEvery is the time between two scrapes. What Grafana puts for $__rate_interval holds at least four.
const scrapeEvery, scrapes, rateInterval = 15 * time.Second, 8, "1m"

// monitor is the engine of Prometheus, with some scrapes of a scheduler.
type monitor struct {
	engine *promql.Engine
	series map[string]*series
	now    time.Time
}

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// sample is a value at a time in milliseconds.
type sample struct {
	chunks.Sample // nil: there are no native histograms
	at            int64
	value         float64
}

func (s sample) T() int64                 { return s.at }
func (s sample) F() float64               { return s.value }
func (s sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample      { return s }

// found are series that a query selects.
type found struct {
	storage.SeriesSet // an empty one
	all               []*series
}

func (f *found) Next() bool {
	f.all = f.all[1:]
	return len(f.all) > 0
}

func (f *found) At() storage.Series { return storage.NewListSeries(f.all[0].labels, f.all[0].samples) }

// Querier finds all that was scraped.
func (p *monitor) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		f := &found{SeriesSet: storage.EmptySeriesSet(), all: []*series{nil}}
		for _, key := range slices.Sorted(maps.Keys(p.series)) {
			s := p.series[key]
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				f.all = append(f.all, s)
			}
		}
		return f
	}}, nil
}

func newMonitor(t *testing.T) *monitor {
	t.Helper()
	p := &monitor{series: map[string]*series{}, now: time.Unix(1_800_000_000, 0),
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
	server, next := serving(t)
	for range scrapes {
		text, kind := read(t, server)
		p.now = p.now.Add(scrapeEvery)
		p.take(t, text, kind)
		next()
	}
	return p
}

// take stores what a scrape shows.
func (p *monitor) take(t *testing.T, text []byte, kind string) {
	t.Helper()
	shown, err := textparse.New(text, kind, labels.NewSymbolTable(), textparse.ParserOptions{FallbackContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := shown.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var of labels.Labels
		shown.Labels(&of)
		s := p.series[of.String()]
		if s == nil {
			s = &series{labels: of}
			p.series[of.String()] = s
		}
		_, _, value := shown.Series()
		s.samples = append(s.samples, sample{at: p.now.UnixMilli(), value: value})
	}
}

// problemsOf runs a query, with the variables of a dashboard. A query of a panel must have a result, for one of the
// queues if it is about one. Of an alert, whose condition should not hold, each side of a comparison must have one.
func (p *monitor) problemsOf(t *testing.T, query string) (problems []string) {
	t.Helper()
	query = strings.ReplaceAll(query, "$__rate_interval", rateInterval)
	for _, queue := range []string{"a", "b", "c"} {
		if problems = p.problemsFor(t, strings.ReplaceAll(query, "$queue", queue)); len(problems) == 0 {
			return nil
		}
	}
	return problems
}

func (p *monitor) problemsFor(t *testing.T, query string) (problems []string) {
	t.Helper()
	whole, err := parser.ParseExpr(query)
	if err != nil {
		return []string{err.Error()}
	}
	if _, err := p.count(t, query); err != nil {
		return []string{err.Error()}
	}
	for _, part := range operands(whole) {
		switch count, err := p.count(t, part.String()); {
		case err != nil:
			problems = append(problems, err.Error())
		case count == 0:
			problems = append(problems, part.String()+" has no result")
		}
	}
	return problems
}

// count is how many series a query results in.
func (p *monitor) count(t *testing.T, query string) (int, error) {
	t.Helper()
	q, err := p.engine.NewInstantQuery(t.Context(), p, nil, query, p.now)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	result := q.Exec(t.Context())
	if result.Err != nil {
		return 0, result.Err
	}
	switch value := result.Value.(type) {
	case promql.Vector:
		return len(value), nil
	case promql.Scalar:
		return 1, nil
	}
	return 0, fmt.Errorf("the result is a %s", result.Value.Type())
}

// operands are the parts of a query between comparisons and logical operators, and what may be absent.
func operands(e parser.Expr) []parser.Expr {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return operands(e.Expr)
	case *parser.BinaryExpr:
		if e.Op.IsComparisonOperator() || e.Op.IsSetOperator() {
			return append(operands(e.LHS), operands(e.RHS)...)
		}
	case *parser.Call:
		if e.Func.Name == "absent" { // it has a result only if there is no series
			return operands(e.Args[0])
		}
	}
	return []parser.Expr{e}
}

func TestAQueryThatCannotBeRunIsFound(t *testing.T) {
	p := newMonitor(t)
	for query, want := range map[string]string{
		"sum(hekla_cycles_total":                               "unclosed left parenthesis",
		"rate(hekla_cycles_total)":                             "expected type range vector",
		`sum(hekla_queue_pending_pods{queue="none"})`:          "has no result",
		"sum(rate(hekla_cycles_total[1s]))":                    "has no result",
		`sum(hekla_cycles_total) > 0 unless hekla_no_such > 1`: "hekla_no_such has no result",
	} {
		if got := p.problemsOf(t, query); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: found is %v, want %q", query, got, want)
		}
	}
	if got := p.problemsOf(t, "sum(rate(hekla_cycles_total[$__rate_interval])) > 1e9"); len(got) > 0 {
		t.Errorf("a condition that does not hold is a problem: %v", got)
	}
}
