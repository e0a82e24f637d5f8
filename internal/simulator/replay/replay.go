package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
)

// DefaultCycles is the most cycles of a replay if nothing else is said. Each is a second of the cluster.
const DefaultCycles = 100

// Options are how a snapshot is replayed.
type Options struct {
	// Configuration replaces that of the snapshot, unless it is nil. Place names it in messages.
	Configuration []byte
	Place         string
	// Changes replace the objects of the same kind and name, as far as users write them, or are added.
	Changes []client.Object
	// Cycles is the most cycles, [DefaultCycles] if it is 0. A replay ends when two cycles in a row decide nothing.
	Cycles int
	// Program is how the user calls the program, for sentences that say what to type next.
	Program string

	asked []types.NamespacedName // Workloads that are explained
}

// Result is what a replay has decided.
type Result struct {
	Cycles int `json:"cycles"`
	// Rested says that the last cycles decided nothing.
	Rested bool `json:"rested"`
	// Decisions are in their order. Cycles count from 1.
	Decisions []journal.Entry `json:"decisions"`
	// Jobs and Workloads are where they stand at the end.
	Jobs      []simulator.Job      `json:"jobs"`
	Workloads []simulator.Workload `json:"workloads,omitempty"`
	report    *simulator.Report

	// LeftOut is what the replay does not take into account, Notices what in the configuration has no effect.
	LeftOut []string `json:"leftOut,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// decisions are the kinds of entries that are decisions. A plan is told by its evictions: one that was in force already
// begins again in a replay.
var decisions = []journal.Kind{journal.Bound, journal.Evicted, journal.PlanCancelled, journal.Admitted, journal.SentBack}

func isDecision(e journal.Entry) bool { return slices.Contains(decisions, e.Kind) }

// Run replays a snapshot.
func Run(s *snapshot.Snapshot, o Options) (*Result, error) {
	registry := scheduler.NewRegistry()
	text, place := []byte(s.Configuration), "the configuration of the snapshot"
	if o.Configuration != nil {
		text, place = o.Configuration, o.Place
	}
	configuration, err := conf.Parse(text, registry.Catalogue())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	policy, err := registry.Build(configuration)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	answer := &Result{Decisions: []journal.Entry{}}
	for _, notice := range configuration.Notices {
		answer.Notices = append(answer.Notices, place+", "+notice.String())
	}
	objects, err := answer.take(s, o.Changes)
	if err != nil {
		return nil, err
	}
	input, err := manifests.New(objects...)
	if err != nil {
		return nil, err
	}
	most := o.Cycles
	if most == 0 {
		most = DefaultCycles
	}
	report, err := simulator.Run(input, policy, simulator.Options{SchedulerNames: s.SchedulerNames, DefaultQueue: s.DefaultQueue, Now: s.Taken, UntilStable: true, MaxCycles: most,
		Grace: true, Journal: true, Asked: o.asked})
	if err != nil && !errors.Is(err, simulator.ErrNotStable) {
		return nil, err
	}
	answer.report = report
	answer.Cycles, answer.Rested, answer.Jobs, answer.Workloads = report.Cycles, report.Stable, report.Jobs, report.Workloads
	for _, e := range report.Journal {
		if isDecision(e) {
			answer.Decisions = append(answer.Decisions, e)
		}
	}
	return answer, nil
}

// take returns the objects of a snapshot with the changes, and notes what is left out.
func (r *Result) take(s *snapshot.Snapshot, changes []client.Object) ([]runtime.Object, error) {
	var objects []runtime.Object
	changed := map[string]client.Object{}
	for _, c := range changes {
		if changed[nameOf(c)] != nil {
			return nil, fmt.Errorf("%s is given twice", nameOf(c))
		}
		changed[nameOf(c)] = c
	}
	for _, one := range s.Objects {
		if o, ok := one.(client.Object); ok && changed[nameOf(o)] != nil {
			one = over(o, changed[nameOf(o)])
			delete(changed, nameOf(o))
		}
		objects = append(objects, one)
	}
	for _, c := range changes {
		if changed[nameOf(c)] == nil {
			continue
		}
		added := c.DeepCopyObject().(client.Object)
		added.SetCreationTimestamp(metav1.NewTime(s.Taken.Truncate(time.Second)))
		objects = append(objects, added)
	}
	if s.OpensQueueGates {
		r.LeftOut = append(r.LeftOut, "scheduling gates of queue admission: a replay opens none")
	}
	return objects, nil
}

// nameOf names an object with its Go type, which the versions of its API share.
func nameOf(o client.Object) string {
	return fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", o), "*"), client.ObjectKeyFromObject(o))
}

// over is what an object becomes when a user writes another of its name: the rest of it, such as its status and its
// age, stays.
func over(was, written client.Object) client.Object {
	next := written.DeepCopyObject().(client.Object)
	next.SetUID(was.GetUID())
	next.SetCreationTimestamp(was.GetCreationTimestamp())
	next.SetResourceVersion(was.GetResourceVersion())
	next.SetGeneration(was.GetGeneration() + 1)
	switch next := next.(type) {
	case *schedulingv1beta1.Queue:
		next.Status = was.(*schedulingv1beta1.Queue).Status
	case *v1beta2.ClusterQueue:
		next.Status = was.(*v1beta2.ClusterQueue).Status
	case *v1beta2.LocalQueue:
		next.Status = was.(*v1beta2.LocalQueue).Status
	case *v1beta2.Cohort:
		next.Status = was.(*v1beta2.Cohort).Status
	case *v1beta2.Workload:
		next.Status = was.(*v1beta2.Workload).Status
	}
	return next
}
