package ask

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// The longest tables in the text of a diagnosis; -o json has all.
const maxCycleLines, maxQueueLines, maxRequestLines = 8, 20, 12

func newDiagCommand(s *session.Session) *cobra.Command {
	var format string
	var gangs []string
	command := &cobra.Command{
		Use: "diag", Short: "Say how the scheduler is: cycles, queues, writes that wait, configuration, room for gangs, health", Args: cobra.NoArgs,
		Example: "  hekla diag\n  # How many gangs of four pods with eight GPUs each could start now?\n  hekla diag --gang 4xnvidia.com/gpu=8,cpu=32",
		RunE: func(command *cobra.Command, _ []string) error {
			parameters := url.Values{}
			for _, text := range gangs {
				if _, err := api.ParseGang(text); err != nil {
					return fmt.Errorf("--gang: %w", err)
				}
				parameters.Add(api.GangParameter, text)
			}
			a, err := newAsker(s, format)
			if err != nil {
				return err
			}
			found, err := a.diagnose(command.Context(), parameters)
			if err != nil {
				return err
			}
			return a.print(found.raw, found.text)
		},
	}
	command.Flags().StringArrayVar(&gangs, "gang", nil, "count how many gangs could start now, such as 8xcpu=4,memory=8Gi (may be repeated)")
	command.Flags().StringVarP(&format, "output", "o", "", "format of the whole answer: json, yaml")
	s.AddConnectionFlags(command.Flags())
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	return command
}

// diagnosed is the name under which the scheduler that leads is asked about itself.
const diagnosed = "scheduler"

func (a *asker) diagnose(ctx context.Context, parameters url.Values) (answer, error) {
	path := api.Diagnoses.Path("", diagnosed)
	if len(parameters) > 0 {
		path += "?" + parameters.Encode()
	}
	p := printer{program: a.session.Program}
	found, err := asked(ctx, a, path, whole, p.diagnosis)
	if err != nil {
		return answer{}, err
	}
	found.raw, err = calledIn(found.raw, p.called)
	return found, err
}

// calledIn names the program as its user has called it, by called, in what a diagnosis says to do next. All else stays
// as the scheduler said it, also what this program does not know.
func calledIn(raw []byte, called func(command string) string) ([]byte, error) {
	said := map[string]any{}
	if err := bounds.UnmarshalKubernetesJSON(raw, &said); err != nil {
		return nil, err
	}
	complaints, _, err := unstructured.NestedFieldNoCopy(said, "answer", "health", "complaints")
	if err != nil {
		return nil, err
	}
	all, _ := complaints.([]any)
	for _, one := range all {
		if complaint, is := one.(map[string]any); is {
			next, _ := complaint["next"].(string)
			complaint["next"] = called(next)
		}
	}
	return json.Marshal(said)
}

// SchedulerVersion is the version of the scheduler that leads.
func SchedulerVersion(ctx context.Context, s *session.Session) (string, error) {
	a, err := newAsker(s, "")
	if err != nil {
		return "", err
	}
	var reply api.Reply[diagnosis.Diagnosis]
	if _, err := a.ask(ctx, api.Diagnoses.Path("", diagnosed), nil, &reply); err != nil {
		return "", err
	}
	return reply.Answer.Scheduler.Version, nil
}

func (p *printer) diagnosis(w io.Writer, d *diagnosis.Diagnosis) {
	age := func(at time.Time) string { return duration.HumanDuration(d.Time.Sub(at)) }
	fmt.Fprintf(w, "Scheduler %s on %s leads for %s and places pods of %s\n", d.Scheduler.Version, cmp.Or(d.Scheduler.Host, "an unknown host"), age(d.Scheduler.Leads),
		strings.Join(d.Scheduler.Names, ", "))
	p.complaints(w, d)
	p.cycles(w, &d.Cycles, age)
	p.queues(w, d.Queues, age)
	p.clusterQueues(w, d.ClusterQueues, age)
	p.writes(w, d)
	p.room(w, &d.Room)
	if len(d.Holders) > 0 {
		fmt.Fprintln(w, "Held")
		p.table(w, func(w io.Writer) {
			for i := range d.Holders {
				p.holders(w, d.Holders[i].Resource, &d.Holders[i])
			}
		})
	}
	if len(d.Evictions) > 0 {
		fmt.Fprintln(w, "Last evictions")
		p.table(w, func(w io.Writer) { p.story(w, d.Evictions) })
	}
	p.configuration(w, &d.Configuration)
	switch {
	case len(d.Health.Complaints) > 0:
		fmt.Fprintf(w, "Next: %s\n", p.called(d.Health.Complaints[0].Next))
	default:
		fmt.Fprintf(w, "Next: %s diag -o yaml\n", p.program)
	}
}

// called names the program as its user has called it.
func (p *printer) called(command string) string {
	if rest, ok := strings.CutPrefix(command, "hekla "); ok {
		return p.program + " " + rest
	}
	return command
}

func (p *printer) complaints(w io.Writer, d *diagnosis.Diagnosis) {
	nodes := &d.Health.Nodes
	fmt.Fprintf(w, "Health: %d of %d nodes can be used, with %d pods; the clock of the API server differs by %.0f s\n", nodes.Usable, nodes.Total, nodes.Pods,
		d.Health.ClockAheadSeconds)
	for _, c := range d.Health.Complaints {
		fmt.Fprintf(w, "  ! %s\n      %s\n", printers.EscapeTerminal(c.Fault), printers.EscapeTerminal(p.called(c.Next)))
	}
}

func (p *printer) cycles(w io.Writer, c *diagnosis.Cycles, age func(time.Time) string) {
	fmt.Fprintf(w, "Cycles: %d, of which %d decided something", c.Count, c.Deciding)
	if c.LastDecision != nil {
		fmt.Fprintf(w, ", the last %s ago", age(*c.LastDecision))
	}
	fmt.Fprintf(w, "; the latest %d took %.2f ms in the median, %.2f ms at most; those that decided, %.2f ms\n", len(c.Recent), c.Median, c.Longest, c.DecidingMedian)
	if len(c.Decided) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  Cycle\tAgo\tTook\tBound\tEvicted\tPlans\tAdmitted\tLongest part")
	for _, one := range c.Decided[max(len(c.Decided)-maxCycleLines, 0):] {
		longest := diagnosis.Part{Name: "-"}
		for _, part := range one.Parts {
			if part.Millis > longest.Millis {
				longest = part
			}
		}
		_, _ = fmt.Fprintf(t, "  %d\t%s\t%.2f ms\t%d\t%d\t%d\t%d\t%s\n", one.Cycle, age(one.End), one.Millis, one.Tally.Bound, one.Tally.Evicted, one.Tally.PlansBegun,
			one.Tally.Admitted, longest.Name)
	}
	_ = t.Flush()
}

func (p *printer) queues(w io.Writer, lines []survey.Line, age func(time.Time) string) {
	busy := slices.DeleteFunc(slices.Clone(lines), func(l survey.Line) bool { return l.Jobs == 0 })
	fmt.Fprintf(w, "Queues: %d, of which %d have jobs that wait\n", len(lines), len(busy))
	if len(busy) == 0 {
		return
	}
	slices.SortStableFunc(busy, func(a, b survey.Line) int { return a.Oldest.Since.Compare(b.Oldest.Since) })
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  Queue\tState\tJobs\tPods\tOldest\tWaits for\tTried first\tIts reason")
	for _, l := range busy[:min(len(busy), maxQueueLines)] {
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", l.Queue, l.State, l.Jobs, l.Pods, l.Oldest.Job, age(l.Oldest.Since), l.Head.Job, l.Head.Reason)
	}
	_ = t.Flush()
	if left := len(busy) - maxQueueLines; left > 0 {
		fmt.Fprintf(w, "  and %d others\n", left)
	}
}

// clusterQueues lists them, those in which a Workload waits longest first.
func (p *printer) clusterQueues(w io.Writer, all []queued.ClusterQueue, age func(time.Time) string) {
	if len(all) == 0 {
		return
	}
	pending, holding := 0, 0
	for i := range all {
		pending, holding = pending+all[i].Pending, holding+all[i].Holding
	}
	fmt.Fprintf(w, "ClusterQueues: %d, in which %d Workloads wait and %d hold quota\n", len(all), pending, holding)
	lines := slices.Clone(all)
	slices.SortStableFunc(lines, func(a, b queued.ClusterQueue) int {
		switch {
		case a.Oldest != nil && b.Oldest != nil:
			return a.Oldest.Since.Compare(b.Oldest.Since)
		case a.Oldest != nil:
			return -1
		case b.Oldest != nil:
			return 1
		}
		return 0
	})
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  ClusterQueue\tState\tWait\tAdmitted\tOldest\tWaits for\tIts reason\tUsed of its quota")
	for i := range lines[:min(len(lines), maxQueueLines)] {
		q := &lines[i]
		state, oldest, waits, reason := "Active", "-", "-", "-"
		if q.Inactive != "" {
			state = "Inactive"
		}
		if o := q.Oldest; o != nil {
			oldest, waits, reason = o.Workload, age(o.Since), cmp.Or(o.Reason, "-")
		}
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", q.ClusterQueue, state, q.Pending, q.Admitted, oldest, waits, reason, usedOf(q.Quotas))
	}
	_ = t.Flush()
	if left := len(lines) - maxQueueLines; left > 0 {
		fmt.Fprintf(w, "  and %d others\n", left)
	}
}

// maxQuotas is how many quotas of a ClusterQueue one line has.
const maxQuotas = 3

// usedOf says what is used of quotas, of those that are used first.
func usedOf(quotas []queued.Quota) string {
	var parts []string
	for _, q := range quotas {
		if q.Used == "0" {
			continue
		}
		part := fmt.Sprintf("%s/%s %s of %s", q.Used, q.Nominal, q.Resource, q.Flavor)
		if q.Borrowed != "" {
			part += ", " + q.Borrowed + " borrowed"
		}
		parts = append(parts, part)
	}
	if more := len(parts) - maxQuotas; more > 0 {
		parts = append(parts[:maxQuotas], fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing")
}

func (p *printer) writes(w io.Writer, d *diagnosis.Diagnosis) {
	o := &d.Outbox
	fmt.Fprintf(w, "Writes: %d bindings wait and %d are under way; %d plans with %d steps that wait; %d statuses wait; %d Events were dropped; %d events to take in\n",
		o.Waiting, o.InFlight, o.Plans, o.StepsWaiting, o.StatusesWaiting, o.EventsDropped, d.Inbox.Waiting)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  Request\tCount\tFailed\tMedian\tP99\tLongest")
	requests := slices.Clone(d.Requests)
	slices.SortStableFunc(requests, func(a, b apiserver.Latency) int { return cmp.Compare(b.Count, a.Count) })
	for _, r := range requests[:min(len(requests), maxRequestLines)] {
		_, _ = fmt.Fprintf(t, "  %s\t%d\t%d\t%.1f ms\t%.1f ms\t%.1f ms\n", r.Request, r.Count, r.Failed, r.Median, r.P99, r.Longest)
	}
	_ = t.Flush()
}

func (p *printer) room(w io.Writer, r *survey.Room) {
	fmt.Fprintln(w, "Room")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "  Resource\tAllocatable\tFree\tLargest on a node\tPods with")
	for _, f := range r.Free {
		var pieces []string
		for _, piece := range f.Pieces {
			pieces = append(pieces, fmt.Sprintf("%d: %d", piece.Amount, piece.Pods))
		}
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", f.Resource, f.Allocatable, f.Free, f.Largest, cmp.Or(strings.Join(pieces, ", "), "-"))
	}
	_ = t.Flush()
	for _, g := range slices.Concat(r.Asked, r.Waiting) {
		like := ""
		if g.Like != "" {
			like = " like " + g.Like
		}
		fmt.Fprintf(w, "  %d gangs of %d pods%s could start now, at most (%s; nodes have room for %d pods)\n", g.Gangs, g.Pods, like, amounts(g.Request), g.Room)
	}
}

func amounts(request map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(request)) {
		parts = append(parts, name+"="+request[name])
	}
	return cmp.Or(strings.Join(parts, ","), "no requests")
}

func (p *printer) configuration(w io.Writer, c *diagnosis.Configuration) {
	fmt.Fprintf(w, "Configuration: %s; %d settings have no effect\n", c.Place, len(c.Ineffective))
	for _, sentence := range c.Ineffective {
		fmt.Fprintf(w, "  ! %s\n", printers.EscapeTerminal(sentence))
	}
	for line := range strings.Lines(c.Text) {
		fmt.Fprint(w, "  "+line)
	}
}
