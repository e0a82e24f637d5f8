package scenarios

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/simulator"
)

// What is checked of every scenario, whatever it expects.

var separator = regexp.MustCompile(`(?m)^---[ \t]*\n`)

// checkOrder runs it again, as it is and with the documents in other orders: backwards, and every third first.
func (s *scenario) checkOrder(report *simulator.Report) (differences []string) {
	documents := slices.DeleteFunc(separator.Split(s.manifests, -1), func(d string) bool { return strings.TrimSpace(d) == "" })
	for i := range documents {
		documents[i] = strings.TrimRight(documents[i], "\n") + "\n"
	}
	backwards := slices.Clone(documents)
	slices.Reverse(backwards)
	var thirds []string
	for first := range 3 {
		for i := first; i < len(documents); i += 3 {
			thirds = append(thirds, documents[i])
		}
	}
	for _, order := range []struct {
		name      string
		documents []string
	}{{"run again", documents}, {"with the documents backwards", backwards}, {"with every third document first", thirds}} {
		again, err := s.run(strings.Join(order.documents, "---\n"), asWritten)
		if again == nil {
			return append(differences, fmt.Sprintf("S3: %s: %v", order.name, err))
		}
		if diff := gocmp.Diff(printed(report), printed(again)); diff != "" {
			differences = append(differences, fmt.Sprintf("S3: %s it decides otherwise (-first +now):\n%s", order.name, diff))
		}
	}
	return differences
}

const (
	// maxCycles is within how many cycles, of a second each, every scenario comes to rest: with grace periods of ten
	// minutes that is room for several plans one after the other.
	maxCycles = 2000
	// furtherCycles is for how many cycles the rest must hold (rule S2).
	furtherCycles = 20
)

// checkRest runs it to its rest and on.
func (s *scenario) checkRest() []string {
	if s.isRestless() {
		return nil
	}
	rest, err := s.run(s.manifests, func(o *simulator.Options) {
		o.UntilStable, o.MinCycles, o.MaxCycles = true, s.lastChange(), maxCycles
	})
	if rest == nil || err != nil {
		return []string{fmt.Sprintf("S2: no rest within %d cycles: %v", maxCycles, err)}
	}
	on, err := s.run(s.manifests, func(o *simulator.Options) { o.UntilStable, o.Cycles = false, rest.Cycles+furtherCycles })
	if err != nil {
		return []string{"S2: after the rest: " + err.Error()}
	}
	if diff := gocmp.Diff(rows(rest), rows(on)); diff != "" {
		return []string{fmt.Sprintf("S2: at rest after %d cycles, and not still (-at rest +%d cycles later):\n%s", rest.Cycles, furtherCycles, diff)}
	}
	return nil
}

// rows are the decisions of a report alone, in the order of cycles, one line each.
func rows(report *simulator.Report) []string { return decisions(report, 0, report.Cycles) }

func printed(report *simulator.Report) string {
	var b bytes.Buffer
	if err := report.WriteJSON(&b); err != nil {
		return fmt.Sprint(err)
	}
	return b.String()
}

// told is a report as a person reads it.
func told(report *simulator.Report) string {
	var b bytes.Buffer
	if err := report.WriteText(&b); err != nil {
		return fmt.Sprint(err)
	}
	return b.String()
}
