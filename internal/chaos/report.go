package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hekla.sh/hekla/internal/audit"
)

// Report is what was done, and what was found.
type Report struct {
	Seed uint64 `json:"seed"`
	// From and To are when the first fault could happen, and when all were undone.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Faults counts what was done, by the name of the fault.
	Faults map[string]int `json:"faults"`
	// Usage is what each component held, minute by minute, by its name. It is empty if faults happened.
	Usage map[string][]Usage `json:"usage,omitempty"`
	// UsedPart is which part of the CPUs pods held in the mean.
	UsedPart float64 `json:"usedPart"`
	// Restarts counts how often a process was launched again, by its name.
	Restarts map[string]int `json:"restarts"`
	// Created counts jobs by kind, and Ended by how they ended.
	Created map[string]int `json:"created"`
	Ended   map[string]int `json:"ended"`
	// FailedMoves is how often a user could not do something, as the API server was away or refused it.
	FailedMoves int `json:"failedMoves"`
	// Bindings and Evictions are those of the scheduler that the audit log shows, in so many lines.
	Bindings   int `json:"bindings"`
	Evictions  int `json:"evictions"`
	AuditLines int `json:"auditLines"`
	// Violations are what must not be.
	Violations []audit.Violation `json:"violations"`
	// Late is what breaks a rule that takes a scheduler to see within seconds what happens, which faults prevent.
	Late []audit.Violation `json:"late,omitempty"`
	// Unknown is how often the audit could not apply a rule, by the reason.
	Unknown map[string]int `json:"unknown,omitempty"`

	mutex       *sync.Mutex // guards Violations during the run
	failedMoves *atomic.Int64
}

func newReport(options *Options, selected []*fault) Report {
	r := Report{Seed: options.Seed, Usage: map[string][]Usage{}, Faults: map[string]int{}, Restarts: map[string]int{}, Violations: []audit.Violation{}, mutex: &sync.Mutex{}, failedMoves: &atomic.Int64{}}
	for _, f := range selected {
		r.Faults[f.Name] = 0
	}
	return r
}

// take takes in what the audit log has shown.
func (r *Report) take(from *audit.Report) {
	r.FailedMoves = int(r.failedMoves.Load())
	r.Bindings, r.Evictions, r.AuditLines, r.Unknown = from.Bindings, from.Evictions, from.Lines, from.Unknown
	if from.Unreadable > 0 {
		r.Unknown["a line of the log cannot be read: "+from.Problem] = from.Unreadable
	}
	for _, v := range from.Violations {
		if audit.NeedsPromptness(v.Rule) {
			r.Late = append(r.Late, v)
		} else {
			r.Violations = append(r.Violations, v)
		}
	}
	slices.SortStableFunc(r.Violations, func(a, b audit.Violation) int { return a.Time.Compare(b.Time) })
}

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	var text strings.Builder
	for i := range r.Violations {
		fmt.Fprintln(&text, &r.Violations[i])
	}
	for i := range r.Late {
		fmt.Fprintln(&text, "late, and no violation:", &r.Late[i])
	}
	fmt.Fprintf(&text, "seed %d, %s of faults: %s\n", r.Seed, r.To.Sub(r.From).Round(time.Second), counts(r.Faults))
	fmt.Fprintf(&text, "restarts: %s\n", counts(r.Restarts))
	fmt.Fprintf(&text, "jobs: %s; ended: %s; %.0f %% of the CPUs were used\n", counts(r.Created), counts(r.Ended), 100*r.UsedPart)
	for _, name := range slices.Sorted(maps.Keys(r.Usage)) {
		text.WriteString(describeUsage(name, r.Usage[name], r.From))
	}
	fmt.Fprintf(&text, "%d bindings and %d evictions in %d lines of the audit log, %d moves of users failed\n", r.Bindings, r.Evictions, r.AuditLines, r.FailedMoves)
	for _, why := range slices.Sorted(maps.Keys(r.Unknown)) {
		fmt.Fprintf(&text, "not judged, %d times: %s\n", r.Unknown[why], why)
	}
	fmt.Fprintf(&text, "%d violations\n", len(r.Violations))
	_, err := io.WriteString(out, text.String())
	return err
}

// counts lists numbers with their names, the largest first.
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}
