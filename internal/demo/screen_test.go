package demo

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// terminal understands what a screen sends, and keeps what a person would see, scrolled off or not.
type terminal struct {
	lines       []string
	row, column int
}

var control = regexp.MustCompile(`^\x1b\[(\??[0-9]*)([A-Za-z])`)

func (m *terminal) write(t *testing.T, text string) {
	for text != "" {
		for m.row >= len(m.lines) {
			m.lines = append(m.lines, "")
		}
		if match := control.FindStringSubmatch(text); match != nil {
			m.apply(t, match[1], match[2])
			text = text[len(match[0]):]
			continue
		}
		char, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch char {
		case '\n':
			m.row, m.column = m.row+1, 0
		case '\r':
			m.column = 0
		default:
			line := []rune(m.lines[m.row])
			m.lines[m.row] = string(append(line[:m.column:m.column], append([]rune{char}, line[min(m.column+1, len(line)):]...)...))
			m.column++
		}
	}
}

func (m *terminal) apply(t *testing.T, argument, command string) {
	switch command {
	case "A":
		count, err := strconv.Atoi(argument)
		if err != nil {
			t.Fatal(err)
		}
		m.row -= count
	case "J":
		m.lines = m.lines[:m.row+1]
		m.lines[m.row] = string([]rune(m.lines[m.row])[:m.column])
	case "K":
		m.lines[m.row] = string([]rune(m.lines[m.row])[:m.column])
	case "m", "h", "l":
	default:
		t.Fatalf("a control sequence that not every terminal knows: %q %q", argument, command)
	}
}

// play draws on a screen and returns all that was sent.
func play(t *testing.T, draw func(*screen) error) string {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan string)
	go func() {
		text, _ := io.ReadAll(reader)
		sent <- string(text)
	}()
	err = draw(&screen{terminal: writer})
	if closing := writer.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	return <-sent
}

func waiting(name string) job {
	return job{name: name, phase: batchv1alpha1.Pending, size: 3, minimum: 3, reason: "NotEnoughResources",
		message: "2 of the 3 pods that must start together have a place; 0/2 nodes are available: 2 Insufficient cpu (such as node-1): cpu: needs 5, has 3, short by 2"}
}

func TestTheSceneIsDrawnAgainInPlaceBelowWhatIsSaid(t *testing.T) {
	full := scene{
		nodes:  []node{{name: "node-1", used: 4000, allocatable: 8000}, {name: "node-2", allocatable: 8000}},
		queues: []queue{{name: "default", weight: 1, used: 4000}},
		jobs:   []job{waiting("gang")},
	}
	small := scene{nodes: full.nodes[:1], jobs: []job{{name: "gang", phase: batchv1alpha1.Running, running: 3, size: 3, minimum: 3}}}
	sent := play(t, func(c *screen) error {
		for _, step := range []error{c.show(full), c.say("first"), c.show(small), c.show(full), c.say("second"), c.show(small), c.end()} {
			if step != nil {
				return step
			}
		}
		return nil
	})
	var m terminal
	m.write(t, sent)
	want := `
first

second

NODES
  node-1          ████████████░░░░░░░░░░░░  4 of 8 CPUs
QUEUES
JOBS
  gang              Running    3 of 3 pods run, 0 done; needs 3 to start
`
	if got := strings.Join(m.lines, "\n"); got != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", got, want)
	}
	if !strings.HasSuffix(sent, showCursor) {
		t.Error("the cursor stays hidden at the end")
	}
}

func TestAnUnchangedSceneIsNotDrawnAgain(t *testing.T) {
	s := scene{jobs: []job{waiting("gang")}}
	once := play(t, func(c *screen) error { return c.show(s) })
	twice := play(t, func(c *screen) error {
		if err := c.show(s); err != nil {
			return err
		}
		return c.show(s)
	})
	if once != twice {
		t.Errorf("drawing the same twice sends %q, once %q", twice, once)
	}
}

func TestAScreenNeverScrollsWhatItMustDrawOver(t *testing.T) {
	var s scene
	for i := range 60 {
		s.nodes = append(s.nodes, node{name: fmt.Sprintf("node-with-a-name-that-is-long-%d", i), used: 9000, allocatable: 8000})
		s.jobs = append(s.jobs, waiting(fmt.Sprintf("job-%d", i)))
	}
	sent := play(t, func(c *screen) error { return c.show(s) })
	var m terminal
	m.write(t, sent)
	// A pipe has no size, so the usual 80 by 24 counts.
	if len(m.lines) > 24 {
		t.Errorf("%d lines on a terminal of 24", len(m.lines))
	}
	for _, line := range m.lines {
		if length := utf8.RuneCountInString(line); length >= 80 {
			t.Errorf("a line of %d characters on a terminal of 80: %q", length, line)
		}
	}
}

func TestWordsAreWrappedAndNoneIsLost(t *testing.T) {
	text := waiting("gang").message
	for _, width := range []int{1, 10, 40, 200} {
		lines := wrap(text, width)
		if got := strings.Join(lines, " "); got != text {
			t.Errorf("wrapped at %d it reads %q, want %q", width, got, text)
		}
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width && strings.Contains(line, " ") {
				t.Errorf("wrapped at %d there is the line %q", width, line)
			}
		}
	}
}
