package conf

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// Line counts from 1. It is 0 if something is missing that could be on any line.
	Line int
	// Subject is what the problem concerns: "actions", "plugin gang", "action preempt"; empty for the file as a whole.
	Subject string
	// Message names the key, the value, what was expected, and what may have been meant.
	Message string
}

// Error formats the problem as one line.
func (p Problem) Error() string {
	text := p.Message
	if p.Subject != "" {
		text = p.Subject + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// Problems is everything that is wrong with a file, by line. [Parse] returns it as its error.
type Problems []Problem

// Error formats the problems, one on each line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes the problems visible to errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, problem := range p {
		errs[i] = problem
	}
	return errs
}

// hint ends a message about an unknown name with the name that was probably meant, otherwise with all known names.
func hint(name string, known []string) string {
	if meant := nearest(name, known); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// nearest returns the known name that is close to name, or "". Of several equally close names it returns the first in
// the alphabet, so that the order of known does not matter.
func nearest(name string, known []string) string {
	best, bestDistance := "", 0
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		// One error in three letters is allowed. Comparing the lengths first limits the work for a name as long as a
		// file.
		slips := max(1, len(candidate)/3)
		if len(name) > len(candidate)+slips || len(candidate) > len(name)+slips {
			continue
		}
		distance := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		if distance <= slips && (best == "" || distance < bestDistance) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts the letters to insert, drop, replace, or swap with a neighbour to turn a into b.
func editDistance(a, b string) int {
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		beforeLast, last, row = last, row, beforeLast
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
