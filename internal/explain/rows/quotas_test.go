package rows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
)

// cohortOf is a world with ClusterQueues of four CPUs of flavor f each in one Cohort.
func cohortOf(t *testing.T, queues ...string) *world.World {
	w := world.New(t, world.Configuration("")).AddNode("n", "cpu=100 pods=100").Apply("{kind: ResourceFlavor, metadata: {name: f}}")
	for _, name := range queues {
		w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, cohortName: all,
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %[1]s}, spec: {clusterQueue: %[1]s}}`, name))
	}
	return w
}

func submit(w *world.World, name, queue string, pods, cpus int) {
	w.Now = w.Now.Add(time.Second)
	w.Apply(fmt.Sprintf("{kind: Workload, metadata: {name: %s, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job-%[1]s, uid: u-%[1]s, controller: true}]},"+
		" spec: {queueName: %s, podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %d}}}]}}}]}}", name, queue, pods, cpus))
}

func boardOf(t *testing.T, w *world.World) rows.Board {
	t.Helper()
	m, err := w.Scheduler.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var maker rows.Maker
	return maker.Board(m, w.Now)
}

func TestABoardHasWorkloadsWithTheQuotasTheyHold(t *testing.T) {
	w := cohortOf(t, "borrows", "idle", "lends")
	submit(w, "runs", "borrows", 6, 1)
	w.Rest(50)
	submit(w, "waits", "lends", 4, 1)
	submit(w, "never", "idle", 2, 7)
	submit(w, "nowhere", "missing", 1, 1)
	w.Rest(50)
	b := boardOf(t, w)
	var said []string
	for _, j := range b.Jobs {
		said = append(said, fmt.Sprintf("%s %s of %s in %s: %s %s, %d of %d", j.Kind, j.Name, j.Owner, j.Queue, j.State, j.Reason, j.MinAvailable-j.Lacks, j.Pods))
	}
	want := []string{
		"Workload work/never of Job/job-never in idle: Pending ExceedsMaxQuota, 0 of 2",
		"Workload work/nowhere of Job/job-nowhere in : Pending Misconfigured, 0 of 1",
		"Workload work/runs of Job/job-runs in borrows: Running , 6 of 6",
		"Workload work/waits of Job/job-waits in lends: Running , 4 of 4",
	}
	if text := strings.Join(said, "\n"); text != strings.Join(want, "\n") {
		t.Errorf("the jobs are\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
	said = nil
	for _, q := range b.Quotas {
		line := fmt.Sprintf("%s %s below %q, %d wait, %d run", q.Kind, q.Name, q.Parent, q.Pending, q.Running)
		for _, f := range q.Flavors {
			line += fmt.Sprintf("; %s/%s %d of %d, borrowed %d, lent %d, available %d", f.Flavor, f.Resource, f.Used/1000, f.Quota/1000, f.Borrowed/1000, f.Lent/1000, f.Available/1000)
		}
		if asked := resources.Vector(q.Waiting).At(resources.Dim(slices.Index(b.Resources, "cpu"))); asked > 0 {
			line += fmt.Sprintf("; %d wait", asked/1000)
		}
		said = append(said, line)
	}
	want = []string{
		`ClusterQueue borrows below "all", 0 wait, 1 run; f/cpu 6 of 4, borrowed 2, lent 0, available 2`,
		`ClusterQueue idle below "all", 1 wait, 0 run; f/cpu 0 of 4, borrowed 0, lent 2, available 2; 14 wait`,
		`ClusterQueue lends below "all", 0 wait, 1 run; f/cpu 4 of 4, borrowed 0, lent 0, available 2`,
		`Cohort all below "", 0 wait, 0 run; f/cpu 10 of 12, borrowed 0, lent 0, available 2`,
	}
	if text := strings.Join(said, "\n"); text != strings.Join(want, "\n") {
		t.Errorf("the quotas are\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
	if l := b.LocalQueues; len(l) != 3 || l[0].LocalQueue != "work/borrows" || l[0].Running != 1 || l[1].Pending != 1 {
		t.Errorf("the LocalQueues are %+v", l)
	}
}

func TestAJobWithAMistypedSchedulerNameIsOnTheBoard(t *testing.T) {
	w := world.New(t, world.Configuration(""))
	w.AddNode("n", "cpu=8")
	for name, scheduler := range map[string]string{"mistyped": "vulcano", "placed": "theirs"} {
		pod := fixture.Pod(name+"-0", fixture.In(name), fixture.Asks("cpu=1"))
		pod.Spec.SchedulerName = scheduler
		if name == "placed" {
			pod.Spec.NodeName = "n"
		}
		w.Set(fixture.Group(name, "default", 1), pod)
	}
	w.Cycle()
	b := boardOf(t, w)
	if len(b.Jobs) != 1 || b.Jobs[0].Job != "work/mistyped" || b.Jobs[0].State != rows.StateForeign || !strings.Contains(b.Jobs[0].Message, "vulcano") {
		t.Errorf("the jobs are %+v", b.Jobs)
	}
	for _, q := range b.Queues {
		if q.Pending+q.Admitted != 0 {
			t.Errorf("the queue counts it: %+v", q)
		}
	}
}
