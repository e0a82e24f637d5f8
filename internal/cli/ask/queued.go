package ask

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// submittedKinds are what is tried as if it were submitted, changedKinds what is tried as if it were changed.
var (
	submittedKinds = append([]schema.GroupVersionKind{session.JobKind, batchv1.SchemeGroupVersion.WithKind("Job")}, ofKueue("Workload")...)
	changedKinds   = append([]schema.GroupVersionKind{session.QueueKind}, ofKueue("ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor")...)
)

func ofKueue(kinds ...string) (all []schema.GroupVersionKind) {
	for _, kind := range kinds {
		all = append(all, v1beta2.SchemeGroupVersion.WithKind(kind), v1beta1.GroupVersion.WithKind(kind))
	}
	return all
}

func isChange(o *unstructured.Unstructured) bool {
	return slices.Contains(changedKinds, o.GroupVersionKind())
}

// hasWorkload reports whether an object is a Workload, or waits for one.
func hasWorkload(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind() != session.JobKind || o.GetLabels()[v1beta2.QueueNameLabel] != ""
}

// typed reads an object of a file. Fields that do not exist are errors: they would have no effect.
func typed(o *unstructured.Unstructured) (client.Object, error) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	read, err := snapshot.NewScheme().New(o.GroupVersionKind())
	if err == nil {
		err = bounds.CheckFields(text, read)
	}
	if err == nil { // what decodes itself was only looked into
		err = bounds.UnmarshalJSON(text, read)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return read.(client.Object), nil
}

// tryQueued runs a snapshot as if a job with a Workload had been submitted. The API server checks it first, with all
// defaults and webhooks, and does not keep it.
// from is where it comes from, and next what to type then, in its namespace.
func (a *asker) tryQueued(ctx context.Context, f *replayFlags, from string, next func(namespace string) string, snap *snapshot.Snapshot, o *unstructured.Unstructured) error {
	c, err := a.session.Client()
	if err != nil {
		return err
	}
	if _, err := typed(o); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	checked := o.DeepCopy()
	if err := client.NewDryRunClient(c).Create(ctx, checked); err != nil {
		return a.session.Explain(err)
	}
	checked.SetManagedFields(nil)
	submitted, err := typed(checked)
	if err != nil {
		return err
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Program = a.session.Program
	p := printer{program: a.session.Program, namespace: submitted.GetNamespace(), name: submitted.GetName()}
	show := func(trial *replay.Trial, next string) error {
		return a.printAnswer(trial, func(w io.Writer) { p.trial(w, o.GetKind(), next, trial) })
	}
	if lost := lostClass(ctx, c, submitted, podSetsOf(submitted)); lost != nil {
		return show(notMade(submitted, lost), classes[lost.kind])
	}
	// The scheduler does not read the classes of Workloads: it reads the priorities that Workloads have.
	if name := submitted.GetLabels()[v1beta2.PriorityClassLabel]; name != "" {
		class := &v1beta2.WorkloadPriorityClass{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
			return a.session.Explain(err)
		}
		options.Changes = append(options.Changes, class)
	}
	trial, err := replay.Try(snap, options, submitted)
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return show(trial, next(p.namespace))
}

// podSetsOf are what a job would run, none if it is no job that gets a Workload.
func podSetsOf(o client.Object) []v1beta2.PodSet {
	switch o := o.(type) {
	case *batchv1.Job:
		return queueing.BatchJob{Job: o}.PodSets()
	case *batch.Job:
		return queueing.VolcanoJob{Job: o}.PodSets()
	}
	return nil
}

// notMade is the trial of a job that would wait for its Workload, which is not made without the class of its priority.
func notMade(submitted client.Object, lost *lost) *replay.Trial {
	workload := replay.WorkloadOf(submitted).String()
	standing := simulator.Workload{Workload: workload, Reason: lifecycle.ReasonWaitsForWorkload, Message: fmt.Sprintf("Workload %s is not made: %s", workload, lost.Message)}
	return &replay.Trial{Workload: workload, Outcome: replay.Waits, Rested: true, Standing: standing, Mistakes: []mistakes.Mistake{lost.Mistake}}
}

func (p *printer) trial(w io.Writer, kind, next string, t *replay.Trial) {
	name := kind + " " + p.namespace + "/" + p.name
	stands := &t.Standing
	switch {
	case t.Outcome == replay.Admitted:
		fmt.Fprintf(w, "%s would be admitted now\n", name)
	case t.Outcome == replay.Preempts && stands.Admitted:
		fmt.Fprintf(w, "%s would be admitted after %d evictions\n", name, len(t.Evictions))
	case t.Outcome == replay.Preempts:
		fmt.Fprintf(w, "%s would evict %d others, and wait\n", name, len(t.Evictions))
	default:
		fmt.Fprintf(w, "%s would wait: %s\n", name, stands.Reason)
	}
	p.table(w, func(w io.Writer) {
		if !stands.Admitted && stands.Message != "" {
			block(w, "Reason", stands.Message)
		}
		if stands.Reason != lifecycle.ReasonWaitsForWorkload { // the reason says it
			p.mistakes(w, t.Mistakes)
		}
		if stands.ClusterQueue != "" {
			block(w, "ClusterQueue", stands.ClusterQueue)
		}
		if q := t.Queued; q != nil && q.State == queued.Waiting {
			block(w, "Place", fmt.Sprintf("%d of %d", q.Place, q.Of))
			var lines []string
			for i := range q.Short[:min(len(q.Short), maxNodeLines)] {
				lines = append(lines, q.Short[i].Sentence())
			}
			block(w, "Quota", lines...)
		}
		for _, set := range slices.Sorted(maps.Keys(stands.Flavors)) {
			var lines []string
			for _, resource := range slices.Sorted(maps.Keys(stands.Flavors[set])) {
				lines = append(lines, resource+" of flavor "+stands.Flavors[set][resource])
			}
			nodes := stands.Nodes[set]
			for _, node := range slices.Sorted(maps.Keys(nodes))[:min(len(nodes), maxNodeLines)] {
				lines = append(lines, fmt.Sprintf("%d pod(s) on %s", nodes[node], node))
			}
			block(w, "Pod set "+set, lines...)
		}
		var lines []string
		for _, e := range t.Evictions[:min(len(t.Evictions), maxStoryLines)] {
			lines = append(lines, strings.TrimPrefix(e.Pod+" "+e.Workload, " ")+": "+printers.EscapeTerminal(e.Message))
		}
		block(w, "Evicts", lines...)
	})
	if !t.Rested {
		fmt.Fprintf(w, "More would be decided after these %d seconds; --cycles runs more\n", t.Cycles)
	}
	fmt.Fprintf(w, "Next: %s\n", next)
}
