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

// holders writes who holds a resource and for whom it is kept, the jobs that have most of it first.
func (p *printer) holders(w io.Writer, label string, h *holders.Holders) {
	if h == nil {
		return
	}
	first := fmt.Sprintf("%s of %s %s of %s are held", h.Held, h.Total, h.Resource, h.Where)
	if h.Total == "" {
		first = fmt.Sprintf("%s %s of %s are held", h.Held, h.Resource, h.Where)
	}
	if h.Kept != "" {
		first += fmt.Sprintf(", and %s more are kept for jobs", h.Kept)
	}
	lines := []string{first}
	for i := range h.Jobs {
		j := &h.Jobs[i]
		name := j.Job
		if j.Queue != "" {
			name += fmt.Sprintf(" (queue %s, priority %d)", j.Queue, j.Priority)
		}
		if j.Held != "0" {
			lines = append(lines, fmt.Sprintf("%s by %s: %s", j.Held, name, ends(&j.Ends, time.Now())))
		}
		if j.Kept != "" {
			lines = append(lines, fmt.Sprintf("%s kept for %s: %s", j.Kept, name, keptFor[j.KeptFor]))
		}
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
			part := fmt.Sprintf("%s %s", g.Name, g.Held)
			if g.Kept != "" {
				part += fmt.Sprintf(" and %s kept", g.Kept)
			}
			parts = append(parts, part)
		}
		lines = append(lines, groups.of+": "+strings.Join(parts, ", "))
	}
	block(w, label, lines...)
}

// keptFor says in words why something is kept for a job.
var keptFor = map[string]string{
	holders.ForAdmission: "it is admitted, and may still start that much",
	holders.ForPlan:      "a plan has promised it nodes",
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
