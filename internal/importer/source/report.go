package source

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome says what became of a key.
type Outcome string

// The outcomes.
const (
	// Kept means the same in Hekla.
	Kept Outcome = "kept"
	// Changed means that something of it is different, and the line says what.
	Changed Outcome = "changed"
	// Lost has no counterpart, and the line says what to do.
	Lost Outcome = "lost"
)

// Field is a value of a text, and where it stands.
type Field struct {
	Path   string
	Number int // of the line, 0 if it stands nowhere
	Text   string
}

// IsWritten reports whether the field stands in the text.
func (f Field) IsWritten() bool { return f.Number > 0 }

// IsTrue reports whether a field that [Reader.Flag] has read is true.
func (f Field) IsTrue() bool { return f.Text == "true" }

// Line says what became of one field.
type Line struct {
	Field
	Outcome Outcome
	// Key names the loss of it, for those who accept it; "" if it is not lost.
	Key string
	// Note says what it has become, or what to do.
	Note string
	// IsAccepted says that the loss is accepted.
	IsAccepted bool
}

// String is the line as a person reads it.
func (l Line) String() string {
	text := fmt.Sprintf("%-8s", l.Outcome)
	if l.Number > 0 {
		text += fmt.Sprintf("line %d, ", l.Number)
	}
	text += l.Path
	if l.Text != "" {
		text += " = " + Shorten(l.Text)
	}
	text += ": " + l.Note
	if l.Outcome == Lost && l.IsAccepted {
		text += " (accepted)"
	}
	return text
}

// Problem is one reason why a text is refused.
type Problem struct {
	Number  int // of the line, 0 if it stands nowhere
	Path    string
	Message string
}

// Problems are all that is wrong with a text.
type Problems []Problem

// Error has a line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		if problem.Number > 0 {
			lines[i] = fmt.Sprintf("line %d: ", problem.Number)
		}
		if problem.Path != "" {
			lines[i] += problem.Path + ": "
		}
		lines[i] += problem.Message
	}
	return strings.Join(lines, "\n")
}

// Report collects lines and problems.
type Report struct {
	// Accepted are the losses that are accepted: their keys, or the paths of fields.
	Accepted []string

	lines    []Line
	problems Problems
}

// Refuse adds a problem.
func (r *Report) Refuse(f Field, format string, arguments ...any) {
	r.problems = append(r.problems, Problem{Number: f.Number, Path: f.Path, Message: fmt.Sprintf(format, arguments...)})
}

// Keep says that a field means the same as before.
func (r *Report) Keep(f Field, format string, arguments ...any) {
	r.lines = append(r.lines, Line{Field: f, Outcome: Kept, Note: fmt.Sprintf(format, arguments...)})
}

// Change says what of a field is different.
func (r *Report) Change(f Field, format string, arguments ...any) {
	r.lines = append(r.lines, Line{Field: f, Outcome: Changed, Note: fmt.Sprintf(format, arguments...)})
}

// Lose says that a field is lost. The key names the loss.
func (r *Report) Lose(key string, f Field, format string, arguments ...any) {
	r.lines = append(r.lines, Line{Field: f, Outcome: Lost, Key: key, Note: fmt.Sprintf(format, arguments...),
		IsAccepted: slices.Contains(r.Accepted, key) || slices.Contains(r.Accepted, f.Path)})
}

// Has reports whether a line says what became of a path.
func (r *Report) Has(path string) bool {
	return slices.ContainsFunc(r.lines, func(l Line) bool { return l.Path == path })
}

// Lines returns the lines in the order of the text. Those of fields that stand elsewhere are at the end.
func (r *Report) Lines() []Line {
	slices.SortStableFunc(r.lines, func(a, b Line) int { return byNumber(a.Number, b.Number) })
	return r.lines
}

// Err returns the problems in the order of the text, nil if there are none.
func (r *Report) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return byNumber(a.Number, b.Number) })
	return r.problems
}

func byNumber(a, b int) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return 1
	case b == 0:
		return -1
	}
	return a - b
}

// longestShown is how many characters of a value a message shows.
const longestShown = 60

// Shorten makes a value fit into a message.
func Shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if characters := []rune(text); len(characters) > longestShown {
		return strings.TrimSpace(string(characters[:longestShown])) + "…"
	}
	return text
}
