package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"hekla.sh/hekla/internal/audit"
)

// auditFlags are the flags of `hekla audit`.
type auditFlags struct {
	options audit.Options
	objects []string
	output  string
	policy  bool
}

func newAuditCommand() *cobra.Command {
	f := &auditFlags{}
	command := &cobra.Command{
		Use:   "audit FILE…",
		Short: "Prove from the audit log of an API server what a scheduler did wrong",
		Long: `Reads the audit log of an API server, oldest file first, and reports what schedulers did that they must not do: bind a
pod twice, fill a node beyond what it offers, start a part of a gang, evict pods against the rules or in vain, give
promised room away, delete what a budget protects, exceed the limits of queues and quotas, or let a job be overtaken for
long. It asks no scheduler, and so serves any: Hekla, Volcano, Kueue, kube-scheduler. FILE may be - for the standard
input.

The log has to show the objects of requests: --policy prints an audit policy for the API server. What is older than the
log is unknown: --objects tells of it, as kubectl get nodes,pods,podgroups,queues -A -o json printed it when the log
began.

Exit codes: 0 no violation, 1 violations, 2 the log could not be read.`,
		Example: `  hekla audit --policy > audit-policy.yaml
  hekla audit /var/log/kubernetes/audit.log
  zcat audit-*.log.gz | hekla audit - -o json`,
		RunE: func(command *cobra.Command, files []string) error { return runAudit(command, f, files) },
	}
	flags := command.Flags()
	flags.BoolVar(&f.policy, "policy", false, "print the audit policy that the API server needs, and do nothing else")
	flags.StringArrayVar(&f.objects, "objects", nil, "file with the objects that were there when the log began, in JSON (may be repeated)")
	flags.StringArrayVar(&f.options.Schedulers, "scheduler", nil, "user whose evictions are judged (may be repeated; default: all users who bind pods)")
	flags.DurationVar(&f.options.GangTimeout, "gang-timeout", audit.DefaultGangTimeout, "how long a part of a gang may hold nodes alone")
	flags.DurationVar(&f.options.PlanTimeout, "plan-timeout", audit.DefaultPlanTimeout, "how long the room of an evicted pod may stay unused")
	flags.IntVar(&f.options.Overtakes, "overtakes", audit.DefaultOvertakes, "how many later jobs of the same shape may start before one that waits")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	return command
}

func runAudit(command *cobra.Command, f *auditFlags, files []string) error {
	out := command.OutOrStdout()
	switch {
	case f.policy:
		_, err := io.WriteString(out, audit.Policy)
		return err
	case len(files) == 0:
		return unreadable{errors.New("name a file with the audit log, or - for the standard input")}
	}
	if err := checkOutput(f.output); err != nil {
		return unreadable{err}
	}
	for flag, isWrong := range map[string]bool{
		"--gang-timeout": f.options.GangTimeout <= 0, "--plan-timeout": f.options.PlanTimeout <= 0, "--overtakes": f.options.Overtakes <= 0,
	} {
		if isWrong {
			return unreadable{fmt.Errorf("%s must be above 0", flag)}
		}
	}
	a := audit.New(f.options)
	for _, name := range f.objects {
		if err := withFile(command, name, a.Know); err != nil {
			return unreadable{err}
		}
	}
	for _, name := range files {
		if err := withFile(command, name, a.Read); err != nil {
			return unreadable{err}
		}
	}
	report := a.End()
	if err := writeAs(out, f.output, report, func(out io.Writer) error { return printReport(out, report) }); err != nil {
		return err
	}
	return violatedBy(report.Violations)
}

// withFile opens a file, or the standard input for the name -.
func withFile(command *cobra.Command, name string, read func(io.Reader) error) (err error) {
	if name == "-" {
		return read(command.InOrStdin())
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := read(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func printReport(out io.Writer, r *audit.Report) error {
	for i := range r.Violations {
		if _, err := fmt.Fprintln(out, &r.Violations[i]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d lines from %s to %s: %d changes, %d bindings and %d evictions by %d schedulers, %d violations\n",
		r.Lines, r.From.UTC().Format("2006-01-02T15:04:05Z"), r.To.UTC().Format("2006-01-02T15:04:05Z"), r.Requests, r.Bindings, r.Evictions, len(r.Schedulers), len(r.Violations))
	if err == nil && r.Unreadable > 0 {
		_, err = fmt.Fprintf(out, "%d lines could not be read, the first: %s\n", r.Unreadable, r.Problem)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Unknown)) {
		if err == nil {
			_, err = fmt.Fprintf(out, "not judged, %d times: %s\n", r.Unknown[why], why)
		}
	}
	return err
}
