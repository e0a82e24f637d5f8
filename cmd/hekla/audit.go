package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/audit/live"
	"hekla.sh/hekla/internal/cli/session"
)

// auditFlags are the flags of `hekla audit`.
type auditFlags struct {
	options audit.Options
	objects []string
	output  string
	policy  bool
	live    bool
	lasts   time.Duration // of --live; 0 is until it is interrupted
	session *session.Session
}

func newAuditCommand() *cobra.Command {
	f := &auditFlags{}
	command := &cobra.Command{
		Use:   "audit {FILE… | --live}",
		Short: "Prove from the audit log of an API server, or by watching, what a scheduler did wrong",
		Long: `Reads the audit log of an API server, oldest file first, and reports what schedulers did that they must not do: bind a
pod twice, fill a node beyond what it offers, start a part of a gang, evict pods against the rules or in vain, give
promised room away, delete what a budget protects, exceed the limits of queues and quotas, or let a job be overtaken for
long. It asks no scheduler, and so serves any: Hekla, Volcano, Kueue, kube-scheduler. FILE may be - for the standard
input.

With --live it needs no log: it watches a cluster and says what is wrong as it happens, until it is interrupted or --for
is over. Watches do not show who did something, and so prove less; see the documentation.

The log has to show the objects of requests: --policy prints an audit policy for the API server. What is older than the
log is unknown: --objects tells of it, as kubectl get nodes,pods,podgroups,queues -A -o json printed it when the log
began.

Exit codes: 0 no violation, 1 violations, 2 the log could not be read.`,
		Example: `  hekla audit --policy > audit-policy.yaml
  hekla audit /var/log/kubernetes/audit.log
  hekla audit --live --for 1h
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
	flags.BoolVar(&f.live, "live", false, "watch a cluster rather than read a log")
	flags.DurationVar(&f.lasts, "for", 0, "how long --live watches (default: until it is interrupted)")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
	f.session = session.New("hekla", false, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	f.session.AddConnectionFlags(flags)
	return command
}

func runAudit(command *cobra.Command, f *auditFlags, files []string) error {
	out := command.OutOrStdout()
	switch {
	case f.policy:
		_, err := io.WriteString(out, audit.Policy)
		return err
	case f.live && len(files)+len(f.objects) > 0:
		return unreadable{errors.New("--live reads no files")}
	case !f.live && command.Flags().Changed("for"):
		return unreadable{errors.New("--for takes --live")}
	case f.lasts < 0:
		return unreadable{errors.New("--for must be above 0")}
	case !f.live && len(files) == 0:
		return unreadable{errors.New("name a file with the audit log, or - for the standard input, or give --live")}
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
	source := func() error { return f.read(command, a, files) }
	if f.live {
		source = func() error { return f.watch(command, a) }
	}
	if err := source(); err != nil {
		return unreadable{err}
	}
	report := a.End()
	if err := writeAs(out, f.output, report, func(out io.Writer) error { return printReport(out, report, f.live) }); err != nil {
		return err
	}
	return violatedBy(report.Violations)
}

// read has an auditor read the files.
func (f *auditFlags) read(command *cobra.Command, a *audit.Auditor, files []string) error {
	for _, name := range f.objects {
		err := withFile(command, name, func(from io.Reader) error {
			nodes, err := a.Know(from)
			if err == nil && nodes == 0 {
				err = errors.New("there is no node among the objects")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := withFile(command, name, a.Read); err != nil {
			return err
		}
	}
	return nil
}

// watch has an auditor watch a cluster, and prints as text what it finds at once.
func (f *auditFlags) watch(command *cobra.Command, a *audit.Auditor) error {
	config, err := f.session.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0 // it lists each kind once
	ctx, errs := command.Context(), command.ErrOrStderr()
	if f.lasts > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.lasts)
		defer stop()
	}
	err = live.Watch(ctx, config, a, live.Told{
		Began: func(absent []schema.GroupVersionResource) {
			for _, r := range absent {
				fmt.Fprintf(errs, "not watched, since the API server does not have it: %s\n", r.GroupResource())
			}
			fmt.Fprintf(errs, "watching %s\n", config.Host)
		},
		Proven: func(violations []audit.Violation) {
			if f.output == "json" {
				return
			}
			for i := range violations {
				fmt.Fprintln(command.OutOrStdout(), &violations[i])
			}
		},
	})
	return f.session.Explain(err)
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

// printReport prints the violations, which were printed already if they were found live, and what was looked at.
func printReport(out io.Writer, r *audit.Report, isLive bool) error {
	violations, what := r.Violations, "lines"
	if isLive {
		violations, what = nil, "watch events"
	}
	for i := range violations {
		if _, err := fmt.Fprintln(out, &violations[i]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%d %s from %s to %s: %d changes, %d bindings and %d evictions by %d schedulers, %d violations\n",
		r.Lines, what, r.From.UTC().Format("2006-01-02T15:04:05Z"), r.To.UTC().Format("2006-01-02T15:04:05Z"), r.Requests, r.Bindings, r.Evictions, len(r.Schedulers), len(r.Violations))
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
