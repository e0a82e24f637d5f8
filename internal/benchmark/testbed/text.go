package testbed

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Text writes a report for a person, in columns.
type Text struct{ out *tabwriter.Writer }

// NewText begins a report with the machine and the versions.
func NewText(out io.Writer, about *About) *Text {
	t := &Text{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	for _, line := range about.Lines() {
		t.Line("%s", line)
	}
	return t
}

// Line writes a line, whose cells are parted by tabs.
func (t *Text) Line(format string, values ...any) { _, _ = fmt.Fprintf(t.out, format+"\n", values...) }

// InTurn writes the rows of a run, each with its number: the contender that began first, and the ratio last.
func (t *Text) InTurn(number any, firstBegan bool, first, second, ratio string) {
	rows := []string{first, second}
	if !firstBegan {
		slices.Reverse(rows)
	}
	for _, row := range append(rows, ratio) {
		t.Line("%v\t%s", number, row)
	}
}

// Column is the requests of one measurement, with its name.
type Column struct {
	Name   string
	Writes Writes
}

// Requests writes a table of the requests of some measurements.
func (t *Text) Requests(title string, columns ...Column) {
	header, requests := "\n"+title, Writes{}
	for _, column := range columns {
		header += "\t" + column.Name
		maps.Copy(requests, column.Writes)
	}
	_ = t.out.Flush() // the columns of this table are its own
	t.Line("%s", header)
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		row := request
		for _, column := range columns {
			row += fmt.Sprintf("\t%d", column.Writes[request])
		}
		t.Line("%s", row)
	}
}

// End writes the violations, or what is right if there are none.
func (t *Text) End(found *Findings, right string) error {
	t.Line("")
	for _, violation := range found.Violations {
		t.Line("WRONG: %s", violation)
	}
	if len(found.Violations) == 0 {
		t.Line("%s", right)
	}
	return t.out.Flush()
}

// PodsAreRight is what is right if nothing is wrong with the pods of a load.
const PodsAreRight = "Every pod was bound once, every gang is whole, no node is over-committed."
