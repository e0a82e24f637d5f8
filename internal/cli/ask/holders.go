package ask

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/holders"
)

// holders writes who holds a resource, the jobs that hold most of it first.
func (p *printer) holders(w io.Writer, label string, h *holders.Holders) {
	if h == nil {
		return
	}
	first := fmt.Sprintf("%s of %s %s of %s are held", h.Held, h.Total, h.Resource, h.Where)
	if h.Total == "" {
		first = fmt.Sprintf("%s %s of %s are held", h.Held, h.Resource, h.Where)
	}
	lines := []string{first}
	for i := range h.Jobs {
		j := &h.Jobs[i]
		line := fmt.Sprintf("%s by %s", j.Held, j.Job)
		if j.Queue != "" {
			line += fmt.Sprintf(" (queue %s, priority %d)", j.Queue, j.Priority)
		}
		lines = append(lines, line+": "+ends(&j.Ends, time.Now()))
	}
	for _, groups := range []struct {
		of   string
		list []holders.Group
	}{{"by queue", h.Queues}, {"by namespace", h.Namespaces}} {
		if len(groups.list) < 2 {
			continue // the jobs say it
		}
		var parts []string
		for _, g := range groups.list {
			parts = append(parts, fmt.Sprintf("%s %s", g.Name, g.Held))
		}
		lines = append(lines, groups.of+": "+strings.Join(parts, ", "))
	}
	block(w, label, lines...)
}

// ends says in words when a job is expected to end.
func ends(e *forecast.Ends, now time.Time) string {
	switch {
	case e.Never:
		return "a service, which does not end by itself"
	case e.Earliest == nil || e.Latest == nil:
		return "nothing says when it ends"
	case e.Basis == forecast.Room:
		return "it is leaving"
	}
	from, to := max(e.Earliest.Sub(now), 0), max(e.Latest.Sub(now), time.Second)
	because := map[forecast.Kind]string{
		forecast.Declared:  "it declares how long it runs",
		forecast.Measured:  "so long it ran before",
		forecast.SameQueue: "so long others of its queue ran",
	}[e.Basis]
	if from < time.Second {
		return fmt.Sprintf("ends within %s (%s)", duration.HumanDuration(to), because)
	}
	return fmt.Sprintf("ends in %s to %s (%s)", duration.HumanDuration(from), duration.HumanDuration(to), because)
}
