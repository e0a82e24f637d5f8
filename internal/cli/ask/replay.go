package ask

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newSnapshotCommand(s *session.Session) *cobra.Command {
	var file string
	var hidesNames bool
	command := &cobra.Command{
		Use: "snapshot", Short: "Write all that the scheduler knows into a file, for a replay or a bug report", Args: cobra.NoArgs,
		Example: "  hekla snapshot -f snapshot.json.gz\n  hekla snapshot -f snapshot.json.gz --hide-names",
		RunE: func(command *cobra.Command, _ []string) error {
			a, err := newAsker(s, "")
			if err != nil {
				return err
			}
			snap, err := a.live(command.Context())
			if err != nil {
				return err
			}
			return save(s, file, func(to io.Writer) error {
				if !hidesNames {
					return snapshot.Write(to, &snap.Header, slices.Values(snap.Objects))
				}
				var named bytes.Buffer
				if err := snapshot.Write(&named, &snap.Header, slices.Values(snap.Objects)); err != nil {
					return err
				}
				return snapshot.Rename(&named, to)
			})
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "-", "file to write, compressed if its name ends in .gz; - for the standard output")
	command.Flags().BoolVar(&hidesNames, "hide-names", false, "give namespaces, jobs, pods, queues, nodes and other objects names that say nothing")
	s.AddConnectionFlags(command.Flags())
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	return command
}

// snapshot asks for a snapshot. The caller closes it.
func (a *asker) snapshot(ctx context.Context) (io.ReadCloser, error) {
	path := api.Snapshots.Path("", diagnosed)
	from, err := a.api.Get().RequestURI(path).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, a.explain(path, nil, err)
	}
	return from, nil
}

// save writes a file as a whole, or none.
func save(s *session.Session, file string, write func(io.Writer) error) (err error) {
	if file == "-" {
		return write(s.Out)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w; choose another name with --filename", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(file)
		}
	}()
	if !strings.HasSuffix(file, ".gz") {
		return write(f)
	}
	compressed := gzip.NewWriter(f)
	return errors.Join(write(compressed), compressed.Close())
}

// replayFlags are the flags of what replays.
type replayFlags struct {
	config, expect, format string
	cycles                 int
}

func (f *replayFlags) options() (replay.Options, error) {
	o := replay.Options{Cycles: f.cycles, Place: f.config}
	if f.cycles < 1 {
		return o, fmt.Errorf("--cycles=%d: it must be 1 or more", f.cycles)
	}
	if f.config == "" {
		return o, nil
	}
	var err error
	if o.Configuration, err = manifests.ReadConfiguration(f.config); err != nil {
		return o, fmt.Errorf("--config: %w; give the path of a scheduler configuration, or of the ConfigMap that holds it", err)
	}
	return o, nil
}

func newReplayCommand(s *session.Session) *cobra.Command {
	f := &replayFlags{}
	command := &cobra.Command{
		Use: "replay FILE", Short: "Run the scheduler on a snapshot, and say what it decides or would decide otherwise", Args: cobra.ExactArgs(1),
		Long: `Runs the scheduler on a snapshot, without any cluster, and prints what it decides. With --config it also runs another configuration, and
prints the decisions that differ. With --expect it compares what it decides with what a later snapshot says was decided.

Exit codes: 0 done, 1 something was not understood, 3 other decisions than expected.`,
		Example: "  hekla replay snapshot.json.gz\n  hekla replay snapshot.json.gz --config new.yaml\n  hekla replay snapshot.json.gz --expect later.json.gz",
		RunE: func(_ *cobra.Command, arguments []string) error {
			if f.config != "" && f.expect != "" {
				return errors.New("--config and --expect exclude each other: what was decided was decided under the configuration of the snapshot")
			}
			a := &asker{session: s, format: f.format}
			if err := a.checkFormat(); err != nil {
				return err
			}
			snap, err := a.read(arguments[0])
			if err != nil {
				return err
			}
			if f.expect != "" {
				return a.check(snap, f)
			}
			options, err := f.options()
			if err != nil {
				return err
			}
			if f.config != "" {
				return a.shadow(snap, options)
			}
			return a.replay(snap, options)
		},
	}
	command.Flags().StringVar(&f.config, "config", "", "file with another configuration, whose decisions are compared")
	command.Flags().StringVar(&f.expect, "expect", "", "later snapshot, with whose journal the decisions are compared")
	command.Flags().IntVar(&f.cycles, "cycles", replay.DefaultCycles, "the most cycles; it ends when two in a row decide nothing")
	command.Flags().StringVarP(&f.format, "output", "o", "", "format of the whole answer: json, yaml")
	return command
}

func (a *asker) read(file string) (*snapshot.Snapshot, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w; %s snapshot -f %s writes one", err, a.session.Program, file)
	}
	defer func() { _ = opened.Close() }()
	snap, leftOut, err := snapshot.Read(opened)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s snapshot -f FILE writes one", file, err, a.session.Program)
	}
	for _, kind := range leftOut {
		_, _ = fmt.Fprintf(a.session.ErrOut, "%s: %s: objects of kind %s are left out\n", a.session.Program, file, kind)
	}
	return snap, nil
}

func (a *asker) replay(snap *snapshot.Snapshot, o replay.Options) error {
	found, err := replay.Run(snap, o)
	if err != nil {
		return err
	}
	a.notice(found)
	p := printer{program: a.session.Program}
	return a.printAnswer(found, func(w io.Writer) { p.replayed(w, found) })
}

// shadow replays a snapshot as it is and with what the options change, and prints what differs.
func (a *asker) shadow(snap *snapshot.Snapshot, o replay.Options) error {
	before, err := replay.Run(snap, replay.Options{Cycles: o.Cycles})
	if err != nil {
		return err
	}
	after, err := replay.Run(snap, o)
	if err != nil {
		return err
	}
	a.notice(after)
	d := replay.Compare(before, after)
	p := printer{program: a.session.Program}
	return a.printAnswer(&d, func(w io.Writer) { p.difference(w, &d, before, after) })
}

func (a *asker) check(snap *snapshot.Snapshot, f *replayFlags) error {
	later, err := a.read(f.expect)
	if err != nil {
		return err
	}
	found, err := replay.Run(snap, replay.Options{Cycles: f.cycles})
	if err != nil {
		return err
	}
	a.notice(found)
	agreement := replay.Check(snap, found, later)
	p := printer{program: a.session.Program}
	if err := a.printAnswer(&agreement, func(w io.Writer) { p.agreement(w, &agreement) }); err != nil {
		return err
	}
	if len(agreement.Missing) > 0 {
		return disagreement{fmt.Errorf("%d decisions of the cluster are not those of the replay", len(agreement.Missing))}
	}
	return nil
}

// disagreement makes the exit code 3.
type disagreement struct{ error }

func (disagreement) ExitCode() int { return 3 }

func (a *asker) notice(r *replay.Result) {
	for _, text := range r.Notices {
		_, _ = fmt.Fprintf(a.session.ErrOut, "%s: %s\n", a.session.Program, text)
	}
	for _, text := range r.LeftOut {
		_, _ = fmt.Fprintf(a.session.ErrOut, "%s: left out: %s\n", a.session.Program, text)
	}
}

// printAnswer prints an answer that was found here.
func (a *asker) printAnswer(of any, text func(w io.Writer)) error {
	raw, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return a.print(raw, text)
}

// live asks for a snapshot and reads it. The Jobs that wait for admission, which the scheduler does not read, are
// added: their pods are made when they are admitted.
func (a *asker) live(ctx context.Context) (*snapshot.Snapshot, error) {
	from, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	whole, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("the scheduler did not send its snapshot to the end: %w", err)
	}
	snap, _, err := snapshot.Read(bytes.NewReader(whole))
	if err != nil {
		return nil, err
	}
	return snap, a.addJobs(ctx, snap)
}

// addJobs adds the Jobs whose PodGroups wait for admission.
func (a *asker) addJobs(ctx context.Context, snap *snapshot.Snapshot) error {
	pending := map[types.UID]bool{}
	for _, o := range snap.Objects {
		group, ok := o.(*scheduling.PodGroup)
		if !ok || group.Status.Phase != "" && group.Status.Phase != scheduling.PodGroupPending {
			continue
		}
		if owner := metav1.GetControllerOfNoCopy(group); owner != nil {
			pending[owner.UID] = true
		}
	}
	if len(pending) == 0 {
		return nil
	}
	c, err := a.session.Client()
	if err != nil {
		return err
	}
	jobs := &batch.JobList{}
	if err := c.List(ctx, jobs); err != nil {
		_, _ = fmt.Fprintf(a.session.ErrOut, "%s: left out: Jobs, so that the pods of those that wait for admission are not made: %s\n", a.session.Program, session.Message(err))
		return nil
	}
	for i := range jobs.Items {
		if j := &jobs.Items[i]; pending[j.UID] {
			snap.Objects = append(snap.Objects, j)
		}
	}
	return nil
}

// maxDecisionLines is the longest list of decisions in a text; -o json has all.
const maxDecisionLines = 40

func (p *printer) replayed(w io.Writer, r *replay.Result) {
	fmt.Fprintf(w, "%d decisions in %d cycles%s\n", len(r.Decisions), r.Cycles, goesOn(r))
	p.decisions(w, "", r.Decisions)
	waiting := 0
	for _, j := range r.Jobs {
		if j.Reason != "" {
			waiting++
		}
	}
	fmt.Fprintf(w, "%d of %d jobs wait at the end\n", waiting, len(r.Jobs))
	waiting = 0
	for i := range r.Workloads {
		if !r.Workloads[i].Admitted && r.Workloads[i].Reason != "" {
			waiting++
		}
	}
	if len(r.Workloads) > 0 {
		fmt.Fprintf(w, "%d of %d Workloads wait at the end\n", waiting, len(r.Workloads))
	}
	fmt.Fprintf(w, "Next: %s replay FILE --config new.yaml\n", p.program)
}

func goesOn(r *replay.Result) string {
	if r.Rested {
		return ", and then none"
	}
	return ", and it goes on; --cycles runs more"
}

func (p *printer) decisions(w io.Writer, mark string, list []journal.Entry) {
	for _, e := range list[:min(len(list), maxDecisionLines)] {
		fmt.Fprintf(w, "  %scycle %d: %s\n", mark, e.Cycle, printers.EscapeTerminal(sentence(e)))
	}
	if left := len(list) - maxDecisionLines; left > 0 {
		fmt.Fprintf(w, "  %sand %d others\n", mark, left)
	}
}

// sentence says what was decided.
func sentence(e journal.Entry) string {
	e.Job, e.For = jobOf(e.Job), jobOf(e.For)
	switch e.Kind {
	case journal.Bound:
		return "bind pod " + e.Pod + " to " + e.Node
	case journal.Evicted:
		return fmt.Sprintf("evict pod %s from %s for %s by rule %s (%s)", e.Pod, e.Node, cmp.Or(e.For, "no job"), e.Rule, e.Action)
	case journal.Admitted:
		if e.Queue == "" { // a Workload, which says its ClusterQueue itself
			return "admit " + e.Job
		}
		return "admit job " + e.Job + " in queue " + e.Queue
	case journal.SentBack:
		if _, name, isWorkload := strings.Cut(e.Job, "/workload/"); isWorkload {
			return saying("evict Workload "+strings.TrimSuffix(e.Job, "workload/"+name)+name, e.Message)
		}
		return saying("send job "+e.Job+" back to wait for admission", e.Message)
	case journal.PlanCancelled:
		return "cancel the plan of job " + e.Job + ": " + e.Message
	}
	return string(e.Kind) + " " + e.Job
}

func (p *printer) difference(w io.Writer, d *replay.Difference, before, after *replay.Result) {
	if d.IsNone() {
		fmt.Fprintf(w, "Nothing differs: the same %d decisions in %d cycles%s\n", d.Same, after.Cycles, goesOn(after))
		fmt.Fprintf(w, "Next: %s diag\n", p.program)
		return
	}
	fmt.Fprintf(w, "%d decisions are the same, %d would not be made, %d would be made instead or in addition\n", d.Same, len(d.Before), len(d.After))
	fmt.Fprintf(w, "  as it is: %d cycles%s; changed: %d cycles%s\n", before.Cycles, goesOn(before), after.Cycles, goesOn(after))
	p.decisions(w, "- ", d.Before)
	p.decisions(w, "+ ", d.After)
	for _, j := range d.Jobs[:min(len(d.Jobs), maxDecisionLines)] {
		fmt.Fprintf(w, "  job %s at the end: %s instead of %s\n", j.Job, j.After, j.Before)
	}
	for _, x := range d.Workloads[:min(len(d.Workloads), maxDecisionLines)] {
		fmt.Fprintf(w, "  Workload %s at the end: %s instead of %s\n", x.Job, x.After, x.Before)
	}
	if len(d.Jobs) == 0 && len(d.Workloads) > 0 {
		namespace, name, _ := strings.Cut(d.Workloads[0].Job, "/")
		fmt.Fprintf(w, "Next: %s why workload %s -n %s\n", p.program, name, namespace)
		return
	}
	if len(d.Jobs) > 0 {
		namespace, job, _ := strings.Cut(d.Jobs[0].Job, "/")
		fmt.Fprintf(w, "Next: %s why job %s -n %s\n", p.program, job, namespace)
		return
	}
	fmt.Fprintf(w, "Next: %s diag\n", p.program)
}

func (p *printer) agreement(w io.Writer, a *replay.Agreement) {
	fmt.Fprintf(w, "%d decisions of the cluster are those of the replay, %d are not; the replay has %d further ones\n", a.Same, len(a.Missing), len(a.Others))
	p.decisions(w, "- ", a.Missing)
	p.decisions(w, "+ ", a.Others)
	fmt.Fprintf(w, "Next: %s replay FILE -o yaml\n", p.program)
}
