package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newJobViewCommand(s *session.Session, letters session.Shorthands) *cobra.Command {
	command := &cobra.Command{
		Use: "view NAME", Aliases: []string{"describe"}, Short: "Show a job: what it runs, why it waits, who was evicted for it",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.CompleteJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names("job", arguments)
			if err != nil {
				return err
			}
			return viewJob(command.Context(), s, names[0])
		},
	}
	s.AddNamespaceFlag(command, letters)
	s.AddNameFlag(command, letters.Name, "name of the job")
	s.AddOutputFlag(command, "")
	return command
}

// view is a job with all that is told of it.
type view struct {
	job   *batch.Job
	group *scheduling.PodGroup // nil if it has none
	// events are those of the job and its PodGroup, evictedFor those of pods that left for it, evicted those of its own
	// pods that left for others; all oldest first.
	events, evictedFor, evicted []corev1.Event
	unread                      []string // what could not be read, and why
}

func viewJob(ctx context.Context, s *session.Session, name string) error {
	namespace, err := s.Namespace()
	if err != nil {
		return err
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	job := &batch.Job{}
	if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, job); err != nil {
		return s.Explain(err)
	}
	if !s.Output.IsTable() {
		return s.Output.Print(s, job)
	}
	if err := session.SetKinds(s.Scheme, job); err != nil {
		return err
	}
	v := &view{job: job}
	v.read(ctx, api)
	writer := printers.GetNewTabWriter(s.Out)
	v.write(writer)
	return writer.Flush()
}

// read reads what is told of the job. What may not be read is missing, and that is said.
func (v *view) read(ctx context.Context, api client.Client) {
	group := &scheduling.PodGroup{}
	key := client.ObjectKey{Namespace: v.job.Namespace, Name: v.job.Name + "-" + string(v.job.UID)}
	switch err := api.Get(ctx, key, group); {
	case err == nil:
		v.group = group
	case !apierrors.IsNotFound(err):
		v.unread = append(v.unread, "its PodGroup: "+session.Message(err))
	}
	v.events = v.readEvents(ctx, api, v.job)
	if v.group != nil {
		v.events = append(v.events, v.readEvents(ctx, api, v.group)...)
	}
	v.readEvictions(ctx, api, key)
	for _, list := range [][]corev1.Event{v.events, v.evicted, v.evictedFor} {
		slices.SortStableFunc(list, func(a, b corev1.Event) int {
			return cmp.Or(lastSeen(&a).Compare(lastSeen(&b).Time), strings.Compare(a.Name, b.Name))
		})
	}
}

// readEvents returns the Events of an object.
func (v *view) readEvents(ctx context.Context, api client.Client, of client.Object) []corev1.Event {
	var events corev1.EventList
	err := api.List(ctx, &events, client.InNamespace(of.GetNamespace()), client.MatchingFields{"involvedObject.uid": string(of.GetUID())})
	if err != nil {
		v.unread = append(v.unread, "the Events of "+of.GetName()+": "+session.Message(err))
	}
	return events.Items
}

// preemptedReason is the reason of the Event of a pod that was evicted for another; it names the PodGroup of the other.
const preemptedReason = "Preempted"

// owns reports whether an Event is of a pod of the job, which may be gone.
func (v *view) owns(e *corev1.Event) bool {
	if e.InvolvedObject.Kind != "Pod" || e.InvolvedObject.Namespace != v.job.Namespace {
		return false
	}
	for i := range v.job.Spec.Tasks {
		task := cmp.Or(v.job.Spec.Tasks[i].Name, fmt.Sprintf("%s%d", batch.DefaultTaskSpec, i))
		index, ok := strings.CutPrefix(e.InvolvedObject.Name, v.job.Name+"-"+task+"-")
		if ok && index != "" && strings.Trim(index, "0123456789") == "" && !lastSeen(e).Before(&v.job.CreationTimestamp) {
			return true
		}
	}
	return false
}

// readEvictions reads which pods were evicted for the job, whose PodGroup is given, in whatever namespace, and which of
// its own were.
func (v *view) readEvictions(ctx context.Context, api client.Client, group client.ObjectKey) {
	var preempted corev1.EventList
	err := api.List(ctx, &preempted, client.MatchingFields{"reason": preemptedReason})
	if apierrors.IsForbidden(err) {
		v.unread = append(v.unread, "who was evicted in other namespaces: you may not list Events there")
		err = api.List(ctx, &preempted, client.InNamespace(group.Namespace), client.MatchingFields{"reason": preemptedReason})
	}
	if err != nil {
		v.unread = append(v.unread, "who was evicted: "+session.Message(err))
	}
	for _, e := range preempted.Items {
		if by := e.Related; by != nil && by.Kind == "PodGroup" && by.Namespace == group.Namespace && by.Name == group.Name {
			v.evictedFor = append(v.evictedFor, e)
		} else if v.owns(&e) {
			v.evicted = append(v.evicted, e)
		}
	}
}

// lastSeen is when an Event last happened; new Events and old ones say it in different fields.
func lastSeen(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil:
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	case !e.EventTime.IsZero():
		return &metav1.Time{Time: e.EventTime.Time}
	}
	return &e.CreationTimestamp
}

// Write writes the view. The words before the colons are those of vcctl where it has them.
func (v *view) write(out io.Writer) {
	w := &lines{out: out}
	job := v.job
	w.line("Name:\t%s", job.Name)
	w.line("Namespace:\t%s", job.Namespace)
	w.line("Labels:\t%s", session.Pairs(job.Labels))
	w.line("Annotations:\t%s", session.Pairs(job.Annotations))
	w.line("API Version:\t%s", job.APIVersion)
	w.line("Kind:\t%s", job.Kind)
	w.line("Created:\t%s (%s ago)", job.CreationTimestamp.UTC().Format("2006-01-02 15:04:05 MST"), session.Age(job.CreationTimestamp))
	v.writeSpec(w)
	v.writeStatus(w)
	v.writeWhy(w)
	w.evictions("Evicted for it", v.evictedFor)
	w.evictions("Evicted from it", v.evicted)
	w.events(v.events)
	if len(v.unread) > 0 {
		w.line("Not shown:")
		for _, what := range v.unread {
			w.line("  %s", what)
		}
	}
}

func (v *view) writeSpec(w *lines) {
	spec := &v.job.Spec
	w.line("Spec:")
	w.line("  Queue:\t%s", session.OrNone(spec.Queue))
	w.line("  Priority Class:\t%s", session.OrNone(spec.PriorityClassName))
	w.line("  Min Available:\t%d", cmp.Or(spec.MinAvailable, v.job.Status.MinAvailable))
	w.line("  Scheduler Name:\t%s", session.OrNone(spec.SchedulerName))
	for _, name := range slices.Sorted(maps.Keys(spec.Plugins)) {
		w.line("  Plugin %s:\t%s", name, session.OrNone(strings.Join(spec.Plugins[name], " ")))
	}
	w.line("Tasks:")
	w.line("  Name\tReplicas\tMin\tImages\tRequests")
	for i := range spec.Tasks {
		task := &spec.Tasks[i]
		least, images, requests := task.Replicas, []string(nil), corev1.ResourceList{}
		if task.MinAvailable != nil {
			least = *task.MinAvailable
		}
		for _, container := range task.Template.Spec.Containers {
			images = append(images, container.Image)
			for name, amount := range container.Resources.Requests {
				sum := requests[name]
				sum.Add(amount)
				requests[name] = sum
			}
		}
		w.line("  %s\t%d\t%d\t%s\t%s", cmp.Or(task.Name, fmt.Sprintf("%s%d", batch.DefaultTaskSpec, i)), task.Replicas, least,
			session.OrNone(strings.Join(images, ",")), session.Amounts(requests))
	}
}

func (v *view) writeStatus(w *lines) {
	status := &v.job.Status
	w.line("Status:")
	w.line("  Phase:\t%s", session.OrNone(string(status.State.Phase)))
	if !status.State.LastTransitionTime.IsZero() {
		w.line("  Since:\t%s", session.Age(status.State.LastTransitionTime))
	}
	if status.State.Reason != "" {
		w.line("  Reason:\t%s", status.State.Reason)
	}
	if status.State.Message != "" {
		w.line("  Message:\t%s", status.State.Message)
	}
	for _, count := range []struct {
		title string
		value int32
	}{
		{"Pending", status.Pending}, {"Running", status.Running}, {"Succeeded", status.Succeeded}, {"Failed", status.Failed},
		{"Terminating", status.Terminating}, {"Unknown", status.Unknown}, {"RetryCount", status.RetryCount}, {"Version", status.Version},
	} {
		if count.value > 0 {
			w.line("  %s:\t%d", count.title, count.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(status.ControlledResources)) {
		w.line("  Controls %s:\t%s", name, status.ControlledResources[name])
	}
	if len(status.Conditions) == 0 {
		return
	}
	w.line("Conditions:")
	w.line("  Status\tAge")
	for _, c := range status.Conditions {
		since := session.None
		if c.LastTransitionTime != nil {
			since = session.Age(*c.LastTransitionTime)
		}
		w.line("  %s\t%s", c.Status, since)
	}
}

// writeWhy writes what the scheduler says of the job's gang.
func (v *view) writeWhy(w *lines) {
	if v.group == nil {
		return
	}
	w.line("Scheduling:")
	w.line("  PodGroup:\t%s", v.group.Name)
	w.line("  Phase:\t%s", session.OrNone(string(v.group.Status.Phase)))
	for _, c := range v.group.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		text := c.Reason
		if c.Message != "" {
			text += ": " + c.Message
		}
		w.line("  %s:\t%s (for %s)", c.Type, session.OrNone(text), session.Age(c.LastTransitionTime))
	}
}

// lines writes line by line, without control sequences: others have written the texts. What goes wrong shows
// when the writer is flushed.
type lines struct{ out io.Writer }

func (l *lines) line(format string, arguments ...any) {
	_, _ = fmt.Fprintln(l.out, printers.EscapeTerminal(fmt.Sprintf(format, arguments...)))
}

// mostVictims bounds how many pods are named that left for the same reason: what a large gang takes is not read pod by
// pod.
const mostVictims = 20

// evictions writes which pods were evicted, each reason once with all the pods that left for it, and nothing if none
// was.
func (l *lines) evictions(title string, events []corev1.Event) {
	if len(events) == 0 {
		return
	}
	l.line("%s:", title)
	byReason, reasons := map[string][]string{}, []string(nil)
	for i := range events {
		e := &events[i]
		reason := strings.TrimSpace(e.Message)
		if byReason[reason] == nil {
			reasons = append(reasons, reason)
		}
		byReason[reason] = append(byReason[reason], fmt.Sprintf("%s/%s\t%s ago", e.InvolvedObject.Namespace, e.InvolvedObject.Name, session.Age(*lastSeen(e))))
	}
	for _, reason := range reasons {
		pods := byReason[reason]
		slices.Sort(pods)
		l.line("  %s", reason)
		for _, pod := range pods[:min(len(pods), mostVictims)] {
			l.line("    %s", pod)
		}
		if more := len(pods) - mostVictims; more > 0 {
			l.line("    and %d more", more)
		}
	}
}

// events writes the Events of the job itself.
func (l *lines) events(events []corev1.Event) {
	if len(events) == 0 {
		l.line("Events:\t<none>")
		return
	}
	l.line("Events:")
	l.line("  Type\tReason\tAge\tFrom\tMessage")
	for i := range events {
		e := &events[i]
		since, times := session.Age(*lastSeen(e)), e.Count
		if e.Series != nil {
			times = e.Series.Count
		}
		if times > 1 {
			since = fmt.Sprintf("%s (x%d)", since, times)
		}
		l.line("  %s\t%s\t%s\t%s\t%s", e.Type, e.Reason, since, session.OrNone(cmp.Or(e.ReportingController, e.Source.Component)), strings.TrimSpace(e.Message))
	}
}
