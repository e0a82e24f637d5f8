package session

import (
	"bytes"
	"strings"
	"testing"
)

// The widths are those of vcctl: eight blanks after the widest cell of pods, whatever the title, and of other tables
// after the title, too.
func TestTitlesOfPodsDoNotWidenTheirColumns(t *testing.T) {
	const rows = "Name\tReady\tRestart\tAge\nmy-pod\t0/1\t0\t5s\n"
	for skips, want := range map[bool][2]string{
		true:  {"Name          Ready      Restart  Age       ", "my-pod        0/1        0        5s        "},
		false: {"Name          Ready        Restart        Age        ", "my-pod        0/1          0              5s         "},
	} {
		var out bytes.Buffer
		w := &paddedWriter{out: &out, space: PodSpace, widths: make([]int, 4), skipsTitles: skips}
		if _, err := w.Write([]byte(rows)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(want[:], "\n") + "\n"; out.String() != got {
			t.Errorf("got\n%swant\n%s", out.String(), got)
		}
	}
}
