package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// span is text of one look.
type span struct{ look, text string }

// line is what stands side by side.
type line []span

// cut renders at most width characters.
func (l line) cut(width int) string {
	var out strings.Builder
	for _, s := range l {
		text := s.text
		if length := utf8.RuneCountInString(text); length > width {
			text = string([]rune(text)[:width])
		}
		width -= utf8.RuneCountInString(text)
		if s.look == "" {
			out.WriteString(text)
		} else {
			out.WriteString(s.look + text + plain)
		}
	}
	return out.String()
}

// bar is how many characters stand for a whole node.
const bar = 24

// maxReasonLines bounds how much of a reason is shown; all of it is in the status of the job.
const maxReasonLines = 3

// panel renders a scene.
func panel(s scene, width int) []line {
	lines := []line{{{dim, "NODES"}}}
	for _, n := range s.nodes {
		filled := 0
		if n.allocatable > 0 {
			filled = int(min(n.used*bar/n.allocatable, bar))
		}
		lines = append(lines, line{
			{"", fmt.Sprintf("  %-16s", n.name)},
			{green, strings.Repeat("█", filled)}, {dim, strings.Repeat("░", bar-filled)},
			{"", fmt.Sprintf("  %s of %s CPUs", cpus(n.used), cpus(n.allocatable))},
		})
	}
	lines = append(lines, line{{dim, "QUEUES"}})
	for _, q := range s.queues {
		lines = append(lines, line{{"", fmt.Sprintf("  %-16s  weight %d, holds %s CPUs", q.name, q.weight, cpus(q.used))}})
	}
	lines = append(lines, line{{dim, "JOBS"}})
	for _, j := range s.jobs {
		lines = append(lines, line{{"", fmt.Sprintf("  %-16s  ", j.name)}, {j.look(), fmt.Sprintf("%-9s  %s", j.phase, j.progress())}})
		if j.message == "" {
			continue
		}
		wrapped := wrap(j.reason+": "+j.message, width-6)
		for _, part := range wrapped[:min(len(wrapped), maxReasonLines)] {
			lines = append(lines, line{{yellow, "    " + part}})
		}
	}
	return lines
}

// progress says how far a job has come.
func (j job) progress() string {
	return fmt.Sprintf("%d of %d pods run, %d done; needs %d to start", j.running, j.size, j.done, j.minimum)
}

// String says how far a job has come, and why it waits.
func (j job) String() string {
	text := fmt.Sprintf("job %s: %s, %s", j.name, j.phase, j.progress())
	if j.message != "" {
		text += "; " + j.reason + ": " + j.message
	}
	return text
}

func (j job) look() string {
	switch j.phase {
	case batchv1alpha1.Running:
		return green
	case batchv1alpha1.Completed:
		return dim
	}
	return yellow
}

// cpus writes thousandths of a CPU as Kubernetes does.
func cpus(thousandths int64) string {
	return resource.NewMilliQuantity(thousandths, resource.DecimalSI).String()
}

// wrap breaks a text between words so that no line is longer than width, unless a single word is.
func wrap(text string, width int) []string {
	var lines []string
	current := ""
	for _, word := range strings.Fields(text) {
		switch {
		case current == "":
			current = word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
			current += " " + word
		default:
			lines = append(lines, current)
			current = word
		}
	}
	return append(lines, current)
}

// has reports whether there is a node of this name.
func (s scene) has(name string) bool {
	for _, n := range s.nodes {
		if n.name == name {
			return true
		}
	}
	return false
}

// String is the state of the jobs, for errors.
func (s scene) String() string {
	if len(s.jobs) == 0 {
		return "no job"
	}
	parts := make([]string, len(s.jobs))
	for i, j := range s.jobs {
		parts[i] = j.String()
	}
	return strings.Join(parts, ", ")
}

// holdings says what the queues hold.
func (s scene) holdings() string {
	parts := make([]string, len(s.queues))
	for i, q := range s.queues {
		parts[i] = q.name + " " + cpus(q.used)
	}
	return strings.Join(parts, ", ")
}
