package explain

import (
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain/queued"
)

// Workloads explains all Workloads of kueue.x-k8s.io, by name.
func Workloads(m *Model) []queued.Workload {
	all := []queued.Workload{}
	for _, e := range m.cache.Workloads.All() {
		all = append(all, queued.Of(m.cluster.Resources, m.cache.Workloads.Reader, e))
	}
	return all
}

// WhyWorkload says why a Workload waits, in the form of the answer about a job.
func WhyWorkload(m *Model, key types.NamespacedName) (Why, error) {
	e := m.cache.Workloads.Find(key)
	if e == nil {
		return Why{}, NotFound{"Workload", key.String()}
	}
	w := queued.Of(m.cluster.Resources, m.cache.Workloads.Reader, e)
	isAdmitted := w.State == queued.Admitted
	answer := Why{Queued: &w, Job: Job{Job: w.Workload, Workload: w.Workload, Queue: w.ClusterQueue, Phase: w.State, Admitted: isAdmitted, Priority: w.Priority},
		Cause: Cause{Code: w.Reason, Message: w.Message, Waits: !isAdmitted && w.State != queued.Finished, Where: where(&w)}}
	switch {
	case w.State != queued.Finished && !m.policy.AdmitsWorkloads():
		answer.Cause.Code, answer.Cause.Message = WorkloadsOff, "no Workload is admitted: the scheduler's configuration lacks the action admit or the plugin cohorts"
	case w.State == queued.Finished || isAdmitted || w.State == queued.Reserved:
		answer.Cause.Code = w.State
	case w.Reason == "":
		answer.Cause.Code = NotTriedYet
	}
	return answer, nil
}

func where(w *queued.Workload) string {
	if w.ClusterQueue == "" {
		return ""
	}
	return "ClusterQueue " + w.ClusterQueue
}
