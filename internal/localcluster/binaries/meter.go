package binaries

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// terminalInterval is how often a line on a terminal is rewritten.
	terminalInterval = 200 * time.Millisecond
	// plainInterval is how often a line is added to anything else, such as a CI log.
	plainInterval = 15 * time.Second
	// tailLines is how much of the go command's messages an error repeats.
	tailLines = 30
)

// meter turns what the go command writes to its standard error into progress: on a terminal one line that changes,
// elsewhere a line now and then.
type meter struct {
	out        io.Writer
	isTerminal bool
	started    time.Time
	stop       chan struct{}
	stopped    chan struct{}

	mutex    sync.Mutex
	partial  string
	last     []string
	total    int // -1 until it is known
	compiled int
}

// startMeter announces what begins. The caller calls finish.
func startMeter(out io.Writer, announcement string) *meter {
	m := &meter{out: out, total: -1, started: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	_, _ = fmt.Fprintln(out, announcement)
	interval := plainInterval
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		m.isTerminal, interval = true, terminalInterval
	}
	go m.run(interval)
	return m
}

// run shows the progress on a clock rather than with each message: linking takes half a minute and says nothing.
func (m *meter) run(interval time.Duration) {
	defer close(m.stopped)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
			m.show()
		}
	}
}

// expect says how many packages will be compiled.
func (m *meter) expect(total int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.total = total
}

// Write takes the go command's messages; it never fails.
func (m *meter) Write(text []byte) (int, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	lines := strings.Split(m.partial+string(text), "\n")
	m.partial = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		m.last = append(m.last, line)
		if len(m.last) > tailLines {
			m.last = m.last[1:]
		}
		if !strings.HasPrefix(line, "go: ") && !strings.ContainsAny(line, " :") {
			m.compiled++
		}
	}
	return len(text), nil
}

func (m *meter) show() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	text := "  " + m.elapsed().String() + "  "
	switch {
	case m.total < 0:
		text += "fetching modules"
	case m.compiled < m.total:
		text += fmt.Sprintf("%d of %d packages compiled (%d %%)", m.compiled, m.total, 100*m.compiled/m.total)
	default: // that takes a while, and the go command says nothing
		text += fmt.Sprintf("all %d packages compiled, linking", m.compiled)
	}
	if len(m.last) > 0 && m.compiled < m.total {
		text += ": " + m.last[len(m.last)-1]
	}
	if m.isTerminal {
		// A line longer than the terminal would wrap and no longer be erased; 100 columns is what most have.
		_, _ = fmt.Fprintf(m.out, "\r\x1b[K%.100s", text)
		return
	}
	_, _ = fmt.Fprintln(m.out, text)
}

// finish ends the progress with a line that says how it went.
func (m *meter) finish(outcome string) {
	close(m.stop)
	<-m.stopped
	if m.isTerminal {
		_, _ = fmt.Fprint(m.out, "\r\x1b[K")
	}
	_, _ = fmt.Fprintf(m.out, "%s after %s.\n", outcome, m.elapsed())
}

func (m *meter) elapsed() time.Duration { return time.Since(m.started).Round(time.Second) }

// tail returns the last messages, for an error.
func (m *meter) tail() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return strings.Join(append(m.last[:len(m.last):len(m.last)], m.partial), "\n")
}
