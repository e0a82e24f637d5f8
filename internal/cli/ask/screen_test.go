package ask

import (
	"io"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
)

func TestNumbersStandBelowEachOther(t *testing.T) {
	cpu := explain.Shortage{Resource: "cpu", Needed: "5", Available: "3", Missing: "2"}
	memory := explain.Shortage{Resource: "memory", Needed: "16Gi", Available: "512Mi", Missing: "15872Mi"}
	const want = "cpu:    needs 5,    has 3,     short by 2\nmemory: needs 16Gi, has 512Mi, short by 15872Mi"
	if got := strings.Join(aligned([]explain.Shortage{cpu, memory}), "\n"); got != want {
		t.Errorf("the numbers are\n%s, want\n%s", got, want)
	}
}

func TestAStoryFoldsWhatHappensAgain(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 1, 12, 0, seconds, 0, time.UTC) }
	waits := func(seconds int, reason string) journal.Entry {
		return journal.Entry{Time: at(seconds), Kind: journal.VerdictChanged, Reason: reason}
	}
	pod := func(seconds int, kind journal.Kind, name string) journal.Entry {
		return journal.Entry{Time: at(seconds), Kind: kind, Pod: "n/" + name, Node: "node", For: "n/other", Rule: "J1", Action: "preempt", Message: "higher priority"}
	}
	var b strings.Builder
	p := printer{}
	p.table(&b, func(w io.Writer) {
		p.story(w, []journal.Entry{waits(0, "A"), waits(1, "B"), waits(2, "A"), waits(3, "B"), pod(4, journal.Bound, "a"), pod(5, journal.Bound, "b"),
			pod(6, journal.Evicted, "a"), pod(7, journal.Bound, "a"), pod(8, journal.Evicted, "a"), pod(9, journal.Evicted, "b")})
	})
	const want = `  Story  12:00:02 waits: A (2 times since 12:00:00)
         12:00:03 waits: B (2 times since 12:00:01)
         12:00:05 2 pods were bound: n/a to node, n/b to node
         12:00:06 pod n/a was evicted from node for n/other by rule J1 (preempt): higher priority
         12:00:07 pod n/a was bound to node
         12:00:09 2 pods were evicted: n/a from node, n/b from node, for n/other by rule J1 (preempt): higher priority
`
	if b.String() != want {
		t.Errorf("the story is\n%s, want\n%s", b.String(), want)
	}
}

// On a terminal of 80 columns no line is longer, and what follows begins below the first line of its text.
func TestLinesAreWrappedOnATerminal(t *testing.T) {
	narrow := screen{width: 80}
	lines := narrow.wrapped(10, strings.Repeat("word ", 40))
	for _, line := range lines {
		if len(line)+10 > 80 {
			t.Errorf("a line has %d columns: %s", len(line)+10, line)
		}
	}
	if len(lines) < 3 {
		t.Errorf("a text of 200 letters has %d lines", len(lines))
	}
	if lines := (screen{}).wrapped(10, strings.Repeat("word ", 40)); len(lines) != 1 {
		t.Errorf("what is piped has %d lines", len(lines))
	}
	if got := (screen{hasColour: true}).dressed(bad, "never"); got != "\x1b[31mnever\x1b[0m" {
		t.Errorf("a text with a look is %q", got)
	}
}
