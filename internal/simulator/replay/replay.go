package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
	// Queues replace those of the same name, or are added.
	Queues []*schedulingv1beta1.Queue
	// Cycles is the most cycles, [DefaultCycles] if it is 0. A replay ends when two cycles in a row decide nothing.
	Cycles int
}

// Result is what a replay has decided.
type Result struct {
	Cycles int `json:"cycles"`
	// Rested says that the last cycles decided nothing.
	Rested bool `json:"rested"`
	// Decisions are in their order. Cycles count from 1.
	Decisions []journal.Entry `json:"decisions"`
	// Jobs are where jobs stand at the end.
	Jobs []simulator.Job `json:"jobs"`
	// LeftOut is what the replay does not take into account, Notices what in the configuration has no effect.
	LeftOut []string `json:"leftOut,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// decisions are the kinds of entries that are decisions. A plan is told by its evictions: one that was in force already begins anew in a replay.
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
	objects := answer.take(s, o.Queues)
	input, err := manifests.New(objects...)
	if err != nil {
		return nil, err
	}
	most := o.Cycles
	if most == 0 {
		most = DefaultCycles
	}
	report, err := simulator.Run(input, policy, simulator.Options{SchedulerNames: s.SchedulerNames, DefaultQueue: s.DefaultQueue, Now: s.Taken, UntilStable: true, MaxCycles: most,
		Grace: true, Journal: true})
	if err != nil && !errors.Is(err, simulator.ErrNotStable) {
		return nil, err
	}
	answer.Cycles, answer.Rested, answer.Jobs = report.Cycles, report.Stable, report.Jobs
	for _, e := range report.Journal {
		if isDecision(e) {
			answer.Decisions = append(answer.Decisions, e)
		}
	}
	return answer, nil
}

// take returns the objects that a simulation knows, with the queues replaced, and notes what is left out.
func (r *Result) take(s *snapshot.Snapshot, queues []*schedulingv1beta1.Queue) []runtime.Object {
	var objects []runtime.Object
	leftOut := map[string]int{}
	for _, o := range s.Objects {
		if kind := o.GetObjectKind().GroupVersionKind(); kind.Group == v1beta2.SchemeGroupVersion.Group {
			leftOut[kind.Kind]++
			continue
		}
		if q, ok := o.(*schedulingv1beta1.Queue); ok {
			if i := slices.IndexFunc(queues, func(other *schedulingv1beta1.Queue) bool { return other.Name == q.Name }); i >= 0 {
				changed := q.DeepCopy()
				changed.Labels, changed.Annotations, changed.Spec = queues[i].Labels, queues[i].Annotations, queues[i].Spec
				changed.Generation++
				o, queues = changed, slices.Delete(slices.Clone(queues), i, i+1)
			}
		}
		objects = append(objects, o)
	}
	for _, q := range queues {
		added := q.DeepCopy()
		added.CreationTimestamp = metav1.NewTime(s.Taken.Truncate(time.Second))
		objects = append(objects, added)
	}
	for _, kind := range []string{"ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "AdmissionCheck", "Workload"} {
		if count := leftOut[kind]; count > 0 {
			r.LeftOut = append(r.LeftOut, fmt.Sprintf("%d objects of kind %s: a replay decides no quotas of kueue.x-k8s.io", count, kind))
		}
	}
	if s.OpensQueueGates {
		r.LeftOut = append(r.LeftOut, "scheduling gates of queue admission: a replay opens none")
	}
	return objects
}
