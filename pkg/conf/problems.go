package conf

import (
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/similar"
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
	if meant := similar.Nearest(name, known); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
