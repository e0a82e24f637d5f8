package diagnosis

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/localcluster/supervisor"
	"hekla.sh/hekla/pkg/scheduler"
)

func TestTheLatestCyclesAreKept(t *testing.T) {
	r := NewRecorder()
	begin := time.Unix(1_000_000, 0)
	for i := range 2*Kept + 5 {
		end := r.Observe("cycle", "")
		r.Observe("open", "")()
		r.Observe("action", "allocate")()
		r.Observe("plugin", "gang")()
		end()
		result := scheduler.Result{Cycle: uint64(i + 1), Tally: journal.Tally{Verdicts: 1}}
		switch i {
		case 3:
			result.Tally.Bound = 7
		case 4:
			result.Panic = "index out of range\ngoroutine 1"
		}
		r.Cycle(&result, begin.Add(time.Duration(i)*time.Second))
	}
	c := r.Cycles()
	if c.Count != 2*Kept+5 || c.Deciding != 1 || c.Broken != 1 || len(c.Recent) != Kept || c.Recent[0].Cycle != Kept+6 || c.Recent[Kept-1].Cycle != 2*Kept+5 {
		t.Errorf("recorded are %d cycles, %d, %d, from %d on", c.Count, c.Deciding, c.Broken, c.Recent[0].Cycle)
	}
	if len(c.Decided) != 1 || c.Decided[0].Cycle != 4 || c.Decided[0].Tally.Bound != 7 || !c.LastDecision.Equal(begin.Add(3*time.Second)) {
		t.Errorf("those that decided are %+v", c.Decided)
	}
	if parts := c.Recent[0].Parts; len(parts) != 2 || parts[0].Name != "open" || parts[1].Name != "allocate" {
		t.Errorf("the parts are %+v", parts)
	}
}

func TestComplaintsNameTheFaultAndACommand(t *testing.T) {
	var healthy Diagnosis
	if healthy.Complain(); len(healthy.Health.Complaints) != 0 {
		t.Errorf("a healthy scheduler is said to have %+v", healthy.Health.Complaints)
	}
	d := Diagnosis{Queues: []survey.Line{{Queue: "nowhere", State: survey.Missing, Jobs: 2}}, Requests: []apiserver.Latency{{Request: "create pods/binding", Median: 2500}},
		Supervised:    []supervisor.Status{{Name: "hekla-scheduler"}, {Name: "hekla-controllers", Ends: 2, Ended: new(time.Time), Reason: "exit status 1: no lease"}},
		Configuration: Configuration{Problem: "ConfigMap a/b cannot be used"},
		Health: Health{ClockAheadSeconds: -7, MissingRights: []string{"create pods/binding"},
			Nodes: survey.Nodes{NotReady: survey.NodeList{Count: 3, Nodes: []string{"n1", "n2"}}}}}
	d.Charts = `configmaps "hekla-charts" not found`
	d.Cycles.Broken, d.Cycles.Count, d.Outbox.StatusesWaiting = 1, 9, 5000
	off := Diagnosis{ClusterQueues: []queued.ClusterQueue{{ClusterQueue: "q", Pending: 3}}}
	if off.Complain(); len(off.Health.Complaints) != 0 {
		t.Errorf("of Workloads that are tried it says %+v", off.Health.Complaints)
	}
	d.ClusterQueues, d.Configuration.AdmitsNoWorkloads = off.ClusterQueues, true
	d.Complain()
	if said := d.Health.Complaints; slices.ContainsFunc(said, func(c Complaint) bool { return strings.HasPrefix(c.Fault, "hekla-scheduler has ended") }) {
		t.Errorf("of one that has not ended it says %+v", said)
	}
	for _, want := range []string{"1 of 9 cycles broke", `not handed over to the next leader: configmaps "hekla-charts" not found`, "hekla-controllers has ended 2 times", "exit status 1: no lease", "ConfigMap a/b cannot be used", "lacks rights: create pods/binding", "differs from that of the scheduler by -7 s",
		"3 nodes are not ready, such as n1", "2 jobs name queue nowhere", `"create pods/binding" take more than 2.5 s`, "5000 writes wait",
		"WorkloadsOff: 3 Workloads wait, and no Workload is admitted: the scheduler's configuration lacks the action admit"} {
		if !slices.ContainsFunc(d.Health.Complaints, func(c Complaint) bool { return strings.Contains(c.Fault, want) && c.Next != "" }) {
			t.Errorf("no complaint says %q: %+v", want, d.Health.Complaints)
		}
	}
}

// optional are rights of the ClusterRole that only some configurations need, or that hold for objects with names.
var optional = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "coordination.k8s.io"}

func TestTheNeededRightsAreThoseOfTheInstaller(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "installer", "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil || role.Kind != "ClusterRole" || role.Name != "volcano-scheduler" {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if !slices.Contains(optional, group) {
							given[verb+" "+resource+" "+group] = true
						}
					}
				}
			}
		}
	}
	if len(given) == 0 {
		t.Fatal("the installer has no such role")
	}
	for _, r := range needed {
		for _, resource := range r.resources {
			for _, verb := range r.verbs {
				name := verb + " " + resource + " " + r.group
				if !given[name] {
					t.Errorf("%s is needed, and the installer does not give it", name)
				}
				delete(given, name)
			}
		}
	}
	for name := range given {
		t.Errorf("%s is given by the installer, and not looked for", name)
	}
}
