package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/simulator/manifests"
	"hekla.sh/hekla/internal/simulator/replay"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

const admitting = "actions: admit, enqueue, allocate, backfill\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: cohorts}, {name: predicates}, {name: nodeorder}]}]\n"

// teams are two ClusterQueues of a Cohort, of which the first may take back what the second has borrowed.
const teams = `
{apiVersion: v1, kind: Node, metadata: {name: n1, creationTimestamp: "2026-03-02T07:00:00Z"}, status: {allocatable: {cpu: "4", pods: "20"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: "4", pods: "20"}}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: all}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: all
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 2}]}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: a}, spec: {clusterQueue: a}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: work, name: b}, spec: {clusterQueue: b}}
---
`

func queuedJob(name, queue string, pods int, cpu string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {namespace: work, name: %s, uid: %s, labels: {kueue.x-k8s.io/queue-name: %s}}
spec: {parallelism: %d, completions: %d, template: {spec: {restartPolicy: Never, containers: [{name: main, image: i, args: [PASSWORD], resources: {requests: {cpu: %s}}}]}}}
---
`, name, name, queue, pods, pods, cpu)
}

// led begins a simulation of manifests, in place of a cluster.
func led(t *testing.T, text string) *simulator.Led {
	t.Helper()
	input, err := manifests.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	registry := scheduler.NewRegistry()
	c, err := conf.Parse([]byte(admitting), registry.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	policy, err := registry.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := simulator.Lead(input, policy, simulator.Options{SchedulerNames: []string{"volcano"}, Grace: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func run(t *testing.T, l *simulator.Led, cycles int) {
	t.Helper()
	for range cycles {
		if err := l.Cycle(); err != nil {
			t.Fatal(err)
		}
	}
}

// shot is a snapshot of what is in a cluster, through its file. Jobs are not in it: a scheduler reads Workloads.
func shot(t *testing.T, l *simulator.Led, hidesNames bool) *snapshot.Snapshot {
	t.Helper()
	var file, hidden bytes.Buffer
	header := &snapshot.Header{Taken: l.Now(), Cycle: lastCycle(l), SchedulerNames: []string{"volcano"}, Configuration: admitting, Journal: l.Scheduler().Journal().All(1000)}
	if err := snapshot.Write(&file, header, slices.Values(l.Objects())); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(file.String(), "PASSWORD") {
		t.Fatal("the snapshot has arguments of containers")
	}
	from := &file
	if hidesNames {
		if err := snapshot.Rename(&file, &hidden); err != nil {
			t.Fatal(err)
		}
		from = &hidden
	}
	s, _, err := snapshot.Read(from)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lastCycle(l *simulator.Led) (last uint64) {
	for _, e := range l.Scheduler().Journal().All(1000) {
		last = max(last, e.Cycle)
	}
	return last
}

// A snapshot is taken after each second in which Workloads are admitted, borrow, take back and wait. Each replay
// decides what follows.
func TestASnapshotWithWorkloadsIsReplayedToTheSameDecisions(t *testing.T) {
	const settled, seconds = 3, 45
	all := teams + queuedJob("lender", "b", 3, "2")
	l := led(t, all)
	var shots []*snapshot.Snapshot
	kinds := map[journal.Kind]int{}
	for second := range seconds {
		if second == settled {
			submit(t, l, queuedJob("owner", "a", 2, "2"))
			submit(t, l, queuedJob("late", "b", 1, "1"))
		}
		if second >= settled {
			shots = append(shots, shot(t, l, false))
		}
		run(t, l, 1)
	}
	final := shot(t, l, false)
	for i, s := range shots {
		r, err := replay.Run(s, replay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := replay.Check(s, r, final)
		if len(a.Missing)+len(a.Others) > 0 {
			t.Errorf("the snapshot of second %d, cycle %d: missing %v, others %v", i+settled, s.Cycle, a.Missing, a.Others)
		}
		for _, e := range r.Decisions { // all of them were decided, as there are no others
			kinds[e.Kind]++
		}
	}
	if kinds[journal.Admitted] == 0 || kinds[journal.Bound] == 0 || kinds[journal.SentBack] == 0 {
		t.Errorf("replayed are %v", kinds)
	}
}

// submit gives a cluster a Workload as the controllers make it for a job.
func submit(t *testing.T, l *simulator.Led, job string) {
	t.Helper()
	other := led(t, teams+job)
	for _, o := range other.Objects() {
		if w, is := o.(*v1beta2.Workload); is {
			w = w.DeepCopy()
			w.CreationTimestamp = metav1.NewTime(l.Now())
			if err := l.Set(w); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAJobInALocalQueueIsTried(t *testing.T) {
	l := led(t, teams+queuedJob("lender", "b", 3, "2"))
	run(t, l, 3)
	s := shot(t, l, false)
	for _, test := range []struct {
		job, queue string
		pods       int
		cpu        string
		outcome    string
		says       string
	}{
		{"small", "a", 1, "1", replay.Preempts, "work/job-lender"},
		{"large", "b", 3, "1", replay.Waits, "insufficient unused quota for cpu in flavor any"},
		{"huge", "b", 1, "9", replay.Waits, "cpu"},
		{"lost", "bb", 1, "1", replay.Waits, "there is no LocalQueue bb in namespace work; did you mean b?"},
	} {
		input, err := manifests.Read([]string{"-"}, strings.NewReader(queuedJob(test.job, test.queue, test.pods, test.cpu)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := replay.Try(s, replay.Options{}, input.BatchJobs[0])
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Standing.Message, got.Evictions, got.Mistakes); got.Outcome != test.outcome || !strings.Contains(text, test.says) || !got.Rested {
			t.Errorf("job %s: %+v, want %s and %q", test.job, got, test.outcome, test.says)
		}
		if got.Outcome == replay.Waits && got.Mistakes == nil && (got.Queued == nil || got.Queued.Place == 0) {
			t.Errorf("job %s has no place: %+v", test.job, got.Queued)
		}
	}
	// Room for it is made in another replay by a smaller quota of b; the snapshot is as it was.
	before, err := replay.Run(s, replay.Options{})
	if err != nil || len(before.Decisions) > 0 {
		t.Errorf("the snapshot decides %v, %v", before.Decisions, err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "plain"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: fixture.Pod("p").Spec}}}
	if got, err := replay.Try(s, replay.Options{Program: "kubectl hekla"}, job); err == nil || !strings.Contains(err.Error(), "which kubectl hekla list localqueue -n work lists") {
		t.Errorf("a job in no LocalQueue: %+v, %v", got, err)
	}
}

func TestAChangedClusterQueueIsTried(t *testing.T) {
	l := led(t, teams+queuedJob("lender", "b", 3, "2")+queuedJob("more", "b", 1, "2"))
	run(t, l, 5)
	s := shot(t, l, false)
	var b *v1beta2.ClusterQueue
	for _, o := range s.Objects {
		if q, is := o.(*v1beta2.ClusterQueue); is && q.Name == "b" {
			b = q.DeepCopy()
		}
	}
	b.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("4")
	before, err := replay.Run(s, replay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := replay.Run(s, replay.Options{Changes: []client.Object{b}})
	if err != nil {
		t.Fatal(err)
	}
	d := replay.Compare(before, after)
	if len(d.Workloads) != 1 || !strings.HasPrefix(d.Workloads[0].Before, "waits ") || d.Workloads[0].After != "admitted by ClusterQueue b with any" {
		t.Errorf("the difference is %+v", d)
	}
}

// With hidden names the same is decided: names of nodes in admissions are hidden too.
func TestASnapshotOfWorkloadsWithoutNamesIsReplayed(t *testing.T) {
	l := led(t, teams+queuedJob("lender", "b", 3, "2"))
	run(t, l, 3)
	submit(t, l, queuedJob("owner", "a", 2, "2"))
	s, hidden := shot(t, l, false), shot(t, l, true)
	counted := func(s *snapshot.Snapshot) string {
		r, err := replay.Run(s, replay.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, e := range r.Decisions {
			text += fmt.Sprintf("%d %s\n", e.Cycle, e.Kind)
		}
		return text
	}
	if a, b := counted(s), counted(hidden); a != b || !strings.Contains(a, string(journal.SentBack)) {
		t.Errorf("with names:\n%s\nwithout:\n%s", a, b)
	}
}
