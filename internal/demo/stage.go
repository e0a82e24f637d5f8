package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// stage is where a demo is seen.
type stage interface {
	// say tells what comes next; it stays to be read.
	say(sentence string) error
	// show shows how things are.
	show(s scene) error
	// end leaves the last scene, and the terminal as it was.
	end() error
}

// transcript is a stage without a terminal: a line for each change that matters.
type transcript struct {
	output   io.Writer
	began    time.Time
	last     scene
	holdings string    // what was said last of the queues
	saidAt   time.Time // and when
}

// sumUp is how often at most is said what the queues hold, which changes with every pod.
const sumUp = time.Second

func (t *transcript) say(sentence string) error {
	return t.print("%s", sentence)
}

func (t *transcript) show(s scene) error {
	for _, n := range s.nodes {
		if !t.last.has(n.name) {
			if err := t.print("  node %s: %s CPUs", n.name, cpus(n.allocatable)); err != nil {
				return err
			}
		}
	}
	for _, j := range s.jobs {
		before := t.last.job(j.name)
		if before.phase == j.phase && before.reason == j.reason && before.message == j.message {
			continue
		}
		if err := t.print("  %s", j); err != nil {
			return err
		}
	}
	if holdings := s.holdings(); holdings != t.holdings && time.Since(t.saidAt) >= sumUp {
		if err := t.print("  queues hold CPUs: %s", holdings); err != nil {
			return err
		}
		t.holdings, t.saidAt = holdings, time.Now()
	}
	t.last = s
	return nil
}

func (*transcript) end() error { return nil }

func (t *transcript) print(format string, values ...any) error {
	_, err := fmt.Fprintf(t.output, "[%4.1f s] "+format+"\n", append([]any{time.Since(t.began).Seconds()}, values...)...)
	return err
}

// The control sequences of a terminal, and the looks of text.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	upBy       = "\x1b[%dA"
	eraseBelow = "\r\x1b[J"
	eraseRest  = "\x1b[K"

	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// screen is a stage on a terminal: what is said scrolls by, below it is the scene, drawn again in place.
type screen struct {
	terminal  *os.File
	hasSpoken bool
	drawn     int // lines of the scene, above the cursor
	last      scene
	frame     string
}

func (c *screen) say(sentence string) error {
	width, _ := c.size()
	text := bold + strings.Join(wrap(sentence, width), "\n") + plain + "\n\n"
	if !c.hasSpoken {
		text = "\n" + text
	}
	if _, err := io.WriteString(c.terminal, c.back()+eraseBelow+text); err != nil {
		return err
	}
	c.hasSpoken, c.drawn, c.frame = true, 0, ""
	return c.show(c.last)
}

func (c *screen) show(s scene) error {
	c.last = s
	width, height := c.size()
	lines := panel(s, width)
	// What does not fit would scroll, and could not be drawn over.
	lines = lines[:min(len(lines), height-2)]
	var frame strings.Builder
	for _, l := range lines {
		frame.WriteString(l.cut(width-1) + eraseRest + "\n")
	}
	if frame.String() == c.frame {
		return nil
	}
	_, err := io.WriteString(c.terminal, hideCursor+c.back()+frame.String()+eraseBelow)
	c.drawn, c.frame = len(lines), frame.String()
	return err
}

func (c *screen) end() error {
	_, err := io.WriteString(c.terminal, plain+showCursor)
	return err
}

// back moves the cursor to where the scene begins.
func (c *screen) back() string {
	if c.drawn == 0 {
		return ""
	}
	return fmt.Sprintf(upBy, c.drawn)
}

// size is the width and height of the terminal; the usual ones if it does not say.
func (c *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(c.terminal.Fd()))
	if err != nil || width < 40 || height < 10 {
		return 80, 24
	}
	return width, height
}
