package replay

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/explain/mistakes"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/snapshot"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Outcomes of a trial.
const (
	Admitted = "Admitted" // without evictions
	Preempts = "Preempts" // it is admitted, or promised nodes, after evictions
	Waits    = "Waits"
)

// Trial is what would happen to a job with a Workload if it were submitted.
type Trial struct {
	// Workload is the one that it is, or that is made for it.
	Workload string `json:"workload"`
	Outcome  string `json:"outcome"`
	// Standing is where it stands when no more is decided, Cycles how many seconds that takes. Rested is false if more
	// would be decided.
	Standing simulator.Workload `json:"standing"`
	Cycles   int                `json:"cycles"`
	Rested   bool               `json:"rested"`
	// Queued is its place, what it lacks, and what could leave, if it waits then.
	Queued *queued.Workload `json:"queued,omitempty"`
	// Mistakes are names in it that nothing in the cluster has, if it waits.
	Mistakes []mistakes.Mistake `json:"mistakes,omitempty"`
	// Evictions are those for it.
	Evictions []simulator.Eviction `json:"evictions,omitempty"`
	LeftOut   []string             `json:"leftOut,omitempty"`
}

// Try replays a snapshot as if a job with a Workload, or a Workload, had been submitted.
func Try(s *snapshot.Snapshot, o Options, submitted client.Object) (*Trial, error) {
	if submitted.GetUID() == "" {
		submitted.SetUID(types.UID(nameOf(submitted)))
	}
	name := WorkloadOf(submitted)
	o.Changes, o.asked = append(slices.Clone(o.Changes), submitted), []types.NamespacedName{name}
	r, err := Run(s, o)
	if err != nil {
		return nil, err
	}
	t := &Trial{Workload: name.String(), Cycles: r.Cycles, Rested: r.Rested, LeftOut: r.LeftOut}
	at := slices.IndexFunc(r.Workloads, func(w simulator.Workload) bool { return w.Workload == t.Workload })
	if at < 0 {
		return nil, fmt.Errorf("no Workload is made for it: it needs the label %s with a LocalQueue, which %s list localqueue -n %s lists, and the configuration needs the action admit and the plugin cohorts",
			v1beta2.QueueNameLabel, o.Program, submitted.GetNamespace())
	}
	t.Standing = r.Workloads[at]
	for _, e := range r.report.Evictions {
		if e.For == t.Workload {
			t.Evictions = append(t.Evictions, e)
		}
	}
	if asked := r.report.Asked; len(asked) > 0 {
		t.Queued, t.Mistakes = asked[0].Queued, asked[0].Mistakes
	}
	switch {
	case len(t.Evictions) > 0:
		t.Outcome = Preempts
	case t.Standing.Admitted:
		t.Outcome = Admitted
	default:
		t.Outcome = Waits
	}
	return t, nil
}

// WorkloadOf is the name of the Workload that an object is, or that is made for it.
func WorkloadOf(o client.Object) types.NamespacedName {
	name := client.ObjectKeyFromObject(o)
	switch o.(type) {
	case *batchv1.Job:
		name.Name = queueing.BatchJobs.WorkloadOf(o)
	case *batch.Job:
		name.Name = queueing.VolcanoJobs.WorkloadOf(o)
	}
	return name
}
