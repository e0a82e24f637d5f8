package ask

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/process"
)

// screen is where an answer is written. On a terminal lines are wrapped, and what matters has a colour. What is piped
// has neither, so that programs find whole lines.
type screen struct {
	width     int // columns, 0 if lines are not wrapped
	hasColour bool
}

// leastWidth is the width below which lines are not wrapped: nothing would be readable.
const leastWidth = 40

// screenOf is the screen of a writer. NO_COLOR (source: no-color.org) switches colours off.
func screenOf(w io.Writer) screen {
	terminal := process.TerminalOf(w)
	if terminal == nil {
		return screen{}
	}
	width, _, err := term.GetSize(int(terminal.Fd()))
	if err != nil || width < leastWidth {
		width = 0
	}
	return screen{width: width, hasColour: os.Getenv("NO_COLOR") == ""}
}

// looks of text, as control sequences of terminals.
type look string

const (
	good   look = "\x1b[32m"
	waits  look = "\x1b[33m"
	bad    look = "\x1b[31m"
	faint  look = "\x1b[2m"
	normal look = "\x1b[0m"
)

// dressed is a text with a look.
func (s screen) dressed(l look, text string) string {
	if !s.hasColour {
		return text
	}
	return string(l) + text + string(normal)
}

// headline writes the first line of an answer.
func (s screen) headline(w io.Writer, l look, text string) {
	_, _ = fmt.Fprintln(w, s.dressed(l, printers.EscapeTerminal(text)))
}

// sentence writes a sentence below the headline, unless it is empty.
func (s screen) sentence(w io.Writer, text string) {
	for _, line := range s.wrapped(2, printers.EscapeTerminal(text)) {
		if line != "" {
			_, _ = fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

// wrapped are the lines of a text that begins in a column.
func (s screen) wrapped(column int, text string) []string {
	if s.width == 0 || s.width-column < leastWidth/2 {
		return []string{text}
	}
	return strings.Split(wordwrap.WrapString(text, uint(s.width-column-1)), "\n")
}

// block writes lines with a label before the first.
func block(w io.Writer, label string, lines ...string) {
	for i, line := range lines {
		if i > 0 {
			label = ""
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\n", label, printers.EscapeTerminal(line))
	}
}

// table writes the blocks that a function fills, with all lines in one column.
func (p *printer) table(w io.Writer, fill func(w io.Writer)) {
	var blocks bytes.Buffer
	fill(&blocks)
	width := 0
	for line := range strings.Lines(blocks.String()) {
		label, _, _ := strings.Cut(line, "\t")
		width = max(width, utf8.RuneCountInString(label))
	}
	out := screenOf(w)
	for line := range strings.Lines(blocks.String()) {
		label, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		for _, part := range out.wrapped(2+width+2, text) {
			padded := label + strings.Repeat(" ", width-utf8.RuneCountInString(label))
			_, _ = fmt.Fprintf(w, "  %s  %s\n", out.dressed(faint, padded), part)
			label = ""
		}
	}
}

// aligned are shortages, one in a line. Those of several resources have their numbers below each other.
func aligned(short []explain.Shortage) (lines []string) {
	var widths [4]int
	for i := range short {
		for column, text := range columnsOf(&short[i]) {
			widths[column] = max(widths[column], utf8.RuneCountInString(text))
		}
	}
	for i := range short {
		line := ""
		for column, text := range columnsOf(&short[i]) {
			line += text
			if column < len(widths)-1 {
				line += strings.Repeat(" ", widths[column]-utf8.RuneCountInString(text)+1)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func columnsOf(s *explain.Shortage) [4]string {
	return [4]string{s.Resource + ":", "needs " + s.Needed + ",", "has " + s.Available + ",", "short by " + s.Missing}
}

// tale is the story of a job in lines. What happens again is told once, where it happened last, and what happens to
// several pods one after the other in one line.
type tale struct{ told []event }

type event struct {
	first, last time.Time
	text        string
	times       int
	pods        []string // to which it happened, with the node of each; none if it is not about pods
	why         string
}

func (t *tale) add(at time.Time, text string) {
	e := event{first: at, last: at, text: text, times: 1}
	for i := range t.told {
		if before := &t.told[i]; before.text == text && len(before.pods) == 0 {
			e.first, e.times = before.first, before.times+1
			t.told = append(t.told[:i], t.told[i+1:]...)
			break
		}
	}
	t.told = append(t.told, e)
}

// addPod tells what happened to a pod, for one and for many: "was bound|were bound". pod has its node, too.
func (t *tale) addPod(at time.Time, what, why, pod string) {
	if last := len(t.told) - 1; last >= 0 {
		if e := &t.told[last]; e.text == what && e.why == why && len(e.pods) > 0 {
			e.last, e.pods = at, append(e.pods, pod)
			return
		}
	}
	t.told = append(t.told, event{first: at, last: at, text: what, why: why, pods: []string{pod}})
}

func (t *tale) lines() (lines []string) {
	for i := range t.told {
		e := &t.told[i]
		line := e.last.Format("15:04:05") + " "
		one, many, _ := strings.Cut(e.text, "|")
		switch {
		case len(e.pods) == 0:
			line += e.text
		case len(e.pods) == 1:
			pod, node, _ := strings.Cut(e.pods[0], " ")
			line += fmt.Sprintf("pod %s %s %s", pod, one, node)
		default:
			line += fmt.Sprintf("%d pods %s: %s", len(e.pods), many, strings.Join(e.pods[:min(len(e.pods), maxPodsTold)], ", "))
			if more := len(e.pods) - maxPodsTold; more > 0 {
				line += fmt.Sprintf(" and %d more", more)
			}
		}
		switch {
		case e.why == "":
		case len(e.pods) == 1:
			line += " " + e.why
		default:
			line += ", " + e.why
		}
		if e.times > 1 {
			line += fmt.Sprintf(" (%d times since %s)", e.times, e.first.Format("15:04:05"))
		}
		lines = append(lines, line)
	}
	return lines
}

// maxPodsTold is how many pods a line of a story names.
const maxPodsTold = 3
