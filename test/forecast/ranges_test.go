package forecast

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The table is of the default seed and number.
const defaultSeed, defaultWorlds = 20261125, 3

var (
	rewrite = flag.Bool("rewrite", false, "write the table of docs/why/eta.md again")
	seed    = flag.Uint64("seed", defaultSeed, "the first seed")
	worlds  = flag.Int("worlds", defaultWorlds, "how many clusters of each kind")
)

// leastRight is how many ranges of a hundred must hold the true start.
const leastRight = 90

// fewest is how many ranges of a kind must have been judged. Of fewer, a part of a hundred says little.
const fewest = 25

// page has the table, between two marks.
const page = "../../docs/why/eta.md"

const begin, end = "<!-- table: begin -->\n", "<!-- table: end -->\n"

// row is what came of a scenario.
type row struct {
	right, all, unknown int
	width               float64 // the median
}

func judge(t *testing.T, s *scenario) row {
	var r row
	var widths []float64
	for i := range *worlds {
		w := run(t, s, *seed+uint64(i))
		r.unknown += w.unknown
		for _, a := range w.answers {
			if s.basis != "" && a.eta.Basis != s.basis {
				continue
			}
			r.all++
			if a.isRight() {
				r.right++
			} else if testing.Verbose() {
				t.Logf("seed %d: %s was to start between %s and %s after %s, and started after %s: %s", *seed+uint64(i), a.job.name, a.eta.Earliest.Sub(a.at),
					a.eta.Latest.Sub(a.at), a.at.Sub(beginning), a.job.started.Sub(a.at), a.eta.Message)
			}
			if !a.job.started.IsZero() {
				widths = append(widths, a.width())
			}
		}
	}
	if slices.Sort(widths); len(widths) > 0 {
		r.width = widths[len(widths)/2]
	}
	return r
}

func TestRangesHoldTheTrueStart(t *testing.T) {
	table := "| Clusters | Ranges based on | Ranges | Hold the true start | Median width, as a part of the true wait |\n|---|---|---|---|---|\n"
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			r := judge(t, s)
			based := "any"
			if s.basis != "" {
				based = "`" + string(s.basis) + "`"
			}
			part := float64(100*r.right) / float64(max(r.all, 1))
			table += fmt.Sprintf("| %s | %s | %d | %.0f %% | %.1f |\n", s.name, based, r.all, part, r.width)
			t.Logf("%d of %d ranges hold the true start, %.0f %%; the median width is %.2f; %d starts were unknown", r.right, r.all, part, r.width, r.unknown)
			if r.all < fewest || part < leastRight || r.width > s.widest {
				t.Errorf("%d ranges, of which %.1f %% hold the true start, with a median width of %.2f; needed are %d, %d %% and at most %.1f",
					r.all, part, r.width, fewest, leastRight, s.widest)
			}
		})
	}
	if !t.Failed() && *worlds == defaultWorlds && *seed == defaultSeed {
		compare(t, table)
	}
}

// compare compares the table with that of the page, or replaces that.
func compare(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no marks for the table", page)
	case shown == table:
	case *rewrite:
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is not what comes out now; write it again with -rewrite:\n%s", page, table)
	}
}

// A forecast must leave the scheduler as it was: what it decides does not depend on whether it was asked.
func TestQuestionsChangeNoDecision(t *testing.T) {
	s := &scenario{fill: mixed}
	starts := func(asks bool) string {
		s := *s
		if !asks {
			s.fill = func(w *future) { mixed(w); w.silent = true }
		}
		w := run(t, &s, *seed)
		var all []string
		for _, j := range w.jobs {
			all = append(all, j.name+" "+j.started.String())
		}
		return strings.Join(all, "\n")
	}
	if starts(true) != starts(false) {
		t.Error("jobs start at other times if nothing is asked")
	}
}
