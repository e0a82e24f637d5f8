package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/simulator"
)

// expectation is what is to be decided. Of what is absent nothing is expected.
type expectation struct {
	Evict        *[]string                    `yaml:"evict"`
	EvictAnyOf   [][]string                   `yaml:"evictAnyOf"`
	EvictCount   *int                         `yaml:"evictCount"`
	Evictions    map[string]map[string]string `yaml:"evictions"`
	Bind         map[string]string            `yaml:"bind"`
	NotBound     []string                     `yaml:"notBound"`
	Nominate     map[string]string            `yaml:"nominate"`
	NotNominated []string                     `yaml:"notNominated"`
	Promises     *int                         `yaml:"nominateCount"`
	Apart        [][]string                   `yaml:"apart"`
	Jobs         map[string]map[string]any    `yaml:"jobs"`
	Says         map[string][]string          `yaml:"says"`
	Queues       map[string]queueExpectation  `yaml:"queues"`
	Stable       *bool                        `yaml:"stable"`
}

func (e *expectation) isEmpty() bool { return reflect.ValueOf(*e).IsZero() }

type queueExpectation struct {
	Allocated map[string]string `yaml:"allocated"`
	Deserved  map[string]string `yaml:"deserved"`
	Share     *float64          `yaml:"share"`
}

// comparison collects differences.
type comparison struct {
	report      *simulator.Report
	differences []string
}

func (c *comparison) differ(format string, arguments ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, arguments...))
}

// compare returns all differences between what is expected and what was decided, one sentence each.
func (e *expectation) compare(report *simulator.Report) []string {
	c := &comparison{report: report}
	c.compareEvictions(e)
	bound, nominated := map[string][]string{}, map[string][]string{}
	for _, b := range report.Binds {
		bound[b.Pod] = append(bound[b.Pod], b.Node)
	}
	for _, n := range report.Nominations {
		nominated[n.Pod] = append(nominated[n.Pod], n.Node)
	}
	c.comparePlaces("bind", e.Bind, bound)
	c.comparePlaces("nominate", e.Nominate, nominated)
	c.compareAbsences("notBound", e.NotBound, bound)
	c.compareAbsences("notNominated", e.NotNominated, nominated)
	if e.Promises != nil && *e.Promises != len(report.Nominations) {
		c.differ("nominateCount: expected %d, it is %d", *e.Promises, len(report.Nominations))
	}
	for _, group := range e.Apart {
		nodes := map[string]bool{}
		for _, pod := range group {
			for _, node := range bound[pod] {
				nodes[node] = true
			}
		}
		if len(nodes) != len(group) {
			c.differ("apart %v: they are on %v", group, slices.Sorted(maps.Keys(nodes)))
		}
	}
	c.compareJobs(e.Jobs)
	c.compareMessages(e.Says)
	c.compareQueues(e.Queues)
	if e.Stable != nil && *e.Stable != report.Stable {
		c.differ("stable: expected %t", *e.Stable)
	}
	return c.differences
}

func (c *comparison) compareEvictions(e *expectation) {
	evicted := map[string]simulator.Eviction{}
	gone := []string{}
	for _, row := range c.report.Evictions {
		evicted[row.Pod] = row
		gone = append(gone, row.Pod)
	}
	slices.Sort(gone)
	same := func(want []string) bool { return slices.Equal(slices.Sorted(slices.Values(want)), gone) }
	if e.Evict != nil && !same(*e.Evict) {
		c.differ("evict: expected %v, evicted are %v", *e.Evict, gone)
	}
	if e.EvictAnyOf != nil && !slices.ContainsFunc(e.EvictAnyOf, same) {
		c.differ("evictAnyOf: expected one of %v, evicted are %v", e.EvictAnyOf, gone)
	}
	if e.EvictCount != nil && *e.EvictCount != len(gone) {
		c.differ("evictCount: expected %d, evicted are %v", *e.EvictCount, gone)
	}
	for _, pod := range slices.Sorted(maps.Keys(e.Evictions)) {
		row, ok := evicted[pod]
		if !ok {
			c.differ("evictions: %s is not evicted", pod)
			continue
		}
		c.compareFields("evictions "+pod, e.Evictions[pod], row)
		if row.Rule == "" || row.Message == "" {
			c.differ("evictions: of %s neither rule nor message may be empty: %+v", pod, row)
		}
	}
}

func (c *comparison) comparePlaces(what string, want map[string]string, have map[string][]string) {
	for _, pod := range slices.Sorted(maps.Keys(want)) {
		node, nodes := want[pod], have[pod]
		if len(nodes) == 0 || node != "*" && !slices.Contains(nodes, node) {
			c.differ("%s %s: expected %s, it is %v", what, pod, node, nodes)
		}
	}
}

func (c *comparison) compareAbsences(what string, pods []string, have map[string][]string) {
	for _, pod := range pods {
		if len(have[pod]) > 0 {
			c.differ("%s: %s is, to %v", what, pod, have[pod])
		}
	}
}

// compareFields compares those fields of a row of the report that are expected; "reasonNot" is what "reason" is not.
func (c *comparison) compareFields(what string, want any, row any) {
	var expected, fields map[string]any
	for _, pair := range []struct {
		from any
		to   *map[string]any
	}{{want, &expected}, {row, &fields}} {
		text, err := json.Marshal(pair.from)
		if err == nil {
			err = json.Unmarshal(text, pair.to)
		}
		if err != nil {
			c.differ("%s: %v", what, err)
			return
		}
	}
	for _, key := range slices.Sorted(maps.Keys(expected)) {
		name, negated := strings.CutSuffix(key, "Not")
		if _, ok := fields[name]; !ok {
			c.differ("%s: there is no field %s", what, name)
		} else if (fields[name] == expected[key]) == negated {
			c.differ("%s: expected %s %v, it is %v", what, key, expected[key], fields[name])
		}
	}
}

func (c *comparison) compareJobs(want map[string]map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		i := slices.IndexFunc(c.report.Jobs, func(j simulator.Job) bool { return j.Job == name })
		if i < 0 {
			c.differ("jobs: there is no %s", name)
			continue
		}
		c.compareFields("jobs "+name, want[name], c.report.Jobs[i])
	}
}

func (c *comparison) compareMessages(want map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		message := ""
		for _, j := range c.report.Jobs {
			if j.Job == name {
				message = j.Message
			}
		}
		for _, words := range want[name] {
			if !strings.Contains(message, words) {
				c.differ("says: of %s it is not said %q: %q", name, words, message)
			}
		}
	}
}

func (c *comparison) compareQueues(want map[string]queueExpectation) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		i := slices.IndexFunc(c.report.Queues, func(q simulator.Queue) bool { return q.Queue == name })
		if i < 0 {
			c.differ("queues: there is no %s", name)
			continue
		}
		expected, row := want[name], c.report.Queues[i]
		c.compareAmounts(name+" allocated", expected.Allocated, row.Allocated)
		c.compareAmounts(name+" deserved", expected.Deserved, row.Deserved)
		if expected.Share != nil && (row.Share == nil || math.Abs(*row.Share-*expected.Share) > 0.005) {
			c.differ("queues %s share: expected %v, the row is %+v", name, *expected.Share, row)
		}
	}
}

// compareAmounts allows for a thousandth.
func (c *comparison) compareAmounts(what string, want, have map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		expected, err := resource.ParseQuantity(want[name])
		if err != nil {
			c.differ("queues %s: %s is %v", what, name, err)
			continue
		}
		var actual resource.Quantity
		if text, ok := have[name]; ok {
			actual = resource.MustParse(text)
		}
		a, b := actual.AsApproximateFloat64(), expected.AsApproximateFloat64()
		if math.Abs(a-b) > math.Abs(b)/1000 {
			c.differ("queues %s: expected %s %s, it is %s", what, name, want[name], actual.String())
		}
	}
}
