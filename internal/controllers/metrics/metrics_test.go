package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// shown returns the metrics and what a scrape shows of those with labels, by name and labels.
func shown(t interface {
	Helper()
	Fatal(...any)
}) (*Metrics, func() map[string]float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return m, func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				name := family.GetName()
				for _, label := range metric.GetLabel() {
					name += " " + label.GetName() + "=" + label.GetValue()
				}
				if family.GetMetric()[0].GetHistogram() == nil {
					values[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
				}
			}
		}
		return values
	}
}

func jobOf(uid types.UID, queue string) *batch.Job {
	job := &batch.Job{Spec: batch.JobSpec{Queue: queue}}
	job.Namespace, job.Name, job.UID = "lab", "sim", uid
	return job
}

func TestTheEndOfAJobIsCountedOnce(t *testing.T) {
	first, second := jobOf("1", "q"), jobOf("2", "r")
	type step struct {
		job   *batch.Job
		phase batch.JobPhase // "gone" if it is
	}
	const completed = "volcano_job_completed_phase_count job_name=lab/sim queue_name=q"
	const failed = "volcano_job_failed_phase_count job_name=lab/sim queue_name=q"
	for name, test := range map[string]struct {
		steps []step
		want  map[string]float64
	}{
		"when it is written": {[]step{{first, ""}, {first, batch.Pending}, {first, batch.Completed}}, map[string]float64{completed: 1}},
		"and read afterwards": {[]step{{first, batch.Running}, {first, batch.Failed}, {first, batch.Failed}},
			map[string]float64{failed: 1}},
		"even by a cache that is behind": {[]step{{first, batch.Running}, {first, batch.Failed}, {first, batch.Running},
			{first, batch.Failed}}, map[string]float64{failed: 1}},
		"not by a process that did not see it begin": {[]step{{first, batch.Completed}, {first, batch.Completed}}, map[string]float64{}},
		"not if it was terminated":                   {[]step{{first, batch.Running}, {first, batch.Terminated}}, map[string]float64{}},
		"and it goes with the Job":                   {[]step{{first, batch.Running}, {first, batch.Completed}, {first, "gone"}}, map[string]float64{}},
		"or with the next of its name": {[]step{{first, batch.Running}, {first, batch.Completed}, {second, batch.Running},
			{second, batch.Completed}}, map[string]float64{"volcano_job_completed_phase_count job_name=lab/sim queue_name=r": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m, values := shown(t)
			for _, step := range test.steps {
				if step.phase == "gone" {
					m.JobGone(types.NamespacedName{Namespace: "lab", Name: "sim"})
				} else {
					m.Job(step.job, step.phase)
				}
			}
			if diff := cmp.Diff(test.want, values()); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndsOfJobFlowsAreCountedByNamespaceAndGoWithIt(t *testing.T) {
	m, values := shown(t)
	flowOf := func(name string) *flow.JobFlow {
		f := &flow.JobFlow{}
		f.Namespace, f.Name, f.UID = "lab", name, types.UID(name)
		return f
	}
	for _, name := range []string{"a", "b", "c"} {
		m.JobFlow(flowOf(name), flow.Running)
	}
	m.JobFlow(flowOf("a"), flow.Succeed)
	m.JobFlow(flowOf("b"), flow.Succeed)
	m.JobFlow(flowOf("b"), flow.Terminating)
	m.JobFlowGone(types.NamespacedName{Namespace: "lab", Name: "b"})
	m.JobFlow(flowOf("c"), flow.Failed)
	want := map[string]float64{"volcano_jobflow_succeed_phase_count jobflow_namespace=lab": 2,
		"volcano_jobflow_failed_phase_count jobflow_namespace=lab": 1}
	if diff := cmp.Diff(want, values()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	m.NamespaceGone("lab")
	if got := values(); len(got) > 0 {
		t.Errorf("the namespace is gone, and there is still %v", got)
	}
}

func TestPodGroupsAreShownByQueueUntilItIsGone(t *testing.T) {
	m, values := shown(t)
	m.Queue("q", &scheduling.QueueStatus{Pending: 1, Inqueue: 2, Running: 3, Unknown: 4, Completed: 5})
	want := map[string]float64{}
	for phase, count := range map[string]float64{"pending": 1, "inqueue": 2, "running": 3, "unknown": 4, "completed": 5} {
		want["volcano_queue_pod_group_"+phase+"_count queue_name=q"] = count
	}
	if diff := cmp.Diff(want, values()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	m.QueueGone("q")
	if got := values(); len(got) > 0 {
		t.Errorf("the queue is gone, and there is still %v", got)
	}
}

func TestAJobWithoutAPodGroupIsCountedByItsReason(t *testing.T) {
	m, values := shown(t)
	const invalid, waits = "hekla_queue_jobs_without_podgroup queue=q reason=InvalidSpec", "hekla_queue_jobs_without_podgroup queue=q reason=WaitsForWorkload"
	other := jobOf("2", "q")
	other.Name = "other"
	for i, step := range []struct {
		does func()
		want map[string]float64
	}{
		{func() { m.Ungrouped(jobOf("1", "q"), "") }, map[string]float64{}},
		{func() { m.Ungrouped(jobOf("1", "q"), "InvalidSpec") }, map[string]float64{invalid: 1}},
		{func() { m.Ungrouped(other, "InvalidSpec") }, map[string]float64{invalid: 2}},
		{func() { m.Ungrouped(other, "InvalidSpec") }, map[string]float64{invalid: 2}},
		{func() { m.Ungrouped(other, "WaitsForWorkload") }, map[string]float64{invalid: 1, waits: 1}},
		{func() { m.Ungrouped(jobOf("1", "q"), "") }, map[string]float64{waits: 1}},
		{func() { m.JobGone(types.NamespacedName{Namespace: "lab", Name: "other"}) }, map[string]float64{}},
	} {
		step.does()
		if diff := cmp.Diff(step.want, values()); diff != "" {
			t.Errorf("shown after step %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestNothingIsKeptOfWhatIsGone(t *testing.T) {
	phases := []batch.JobPhase{"", batch.Pending, batch.Running, batch.Completed, batch.Failed, batch.Terminated, batch.Aborted}
	rapid.Check(t, func(t *rapid.T) {
		m, values := shown(t)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			job := jobOf(rapid.SampledFrom([]types.UID{"1", "2"}).Draw(t, "uid"), rapid.SampledFrom([]string{"q", "r"}).Draw(t, "queue"))
			m.Job(job, rapid.SampledFrom(phases).Draw(t, "phase"))
			m.PodCreated(time.Duration(rapid.Int64().Draw(t, "latency")))
		}
		if got := values(); len(got) > 1 {
			t.Fatalf("one Job has ended more than once: %v", got)
		}
		m.JobGone(types.NamespacedName{Namespace: "lab", Name: "sim"})
		if got := values(); len(got) > 0 || len(m.jobs.known) > 0 {
			t.Fatalf("the Job is gone, and there is still %v", got)
		}
	})
}
