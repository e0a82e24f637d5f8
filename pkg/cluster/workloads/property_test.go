package workloads_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/test/cohorts/trees"
)

// drawn makes random objects of few names, so that they refer to each other and to what is missing.
type drawn struct {
	*kueue
	random *rand.Rand
}

func (d *drawn) one(of ...string) string { return of[d.random.IntN(len(of))] }

func (d *drawn) name(prefix string, count int) string {
	return fmt.Sprint(prefix, d.random.IntN(count))
}

func (d *drawn) queue() string {
	groups := fmt.Sprintf("resourceGroups: [{coveredResources: [cpu], flavors: [{name: %s, resources: [{name: cpu, nominalQuota: %d}]}, {name: f9, resources: [{name: cpu, nominalQuota: %d}]}]}]",
		d.name("f", 2), d.random.IntN(6), d.random.IntN(3))
	return fmt.Sprintf(`
kind: ClusterQueue
metadata: {name: %s}
spec:
  namespaceSelector: %s
  cohortName: %s
  queueingStrategy: %s
  stopPolicy: %s
  preemption: {withinClusterQueue: %s, reclaimWithinCohort: %s}
  admissionChecks: %s
  %s`, d.name("q", 3), d.one("{}", "{}", "{matchLabels: {team: a}}"), d.one("c0", "c1", `""`), d.one("BestEffortFIFO", "StrictFIFO"),
		d.one("None", "None", "None", "Hold"), d.one("Never", "LowerPriority"), d.one("Never", "Any", "LowerPriority"), d.one("[]", "[]", "[k0]"), groups)
}

func (d *drawn) job() string {
	return fmt.Sprintf(`
kind: Workload
metadata: {name: %s}
spec:
  queueName: %s
  priority: %d
  active: %s
  podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]`,
		d.name("w", 8), d.name("l", 3), d.random.IntN(3), d.one("true", "true", "true", "false"), 1+d.random.IntN(4))
}

// happen does something at random to the objects.
func (d *drawn) happen() string {
	workload := d.name("w", 8)
	o, exists := d.objects["v1beta2.Workload team/"+workload].(*v1beta2.Workload)
	switch what := d.random.IntN(20); {
	case what < 3:
		text := d.queue()
		d.apply(text)
		return text
	case what < 5:
		text := fmt.Sprintf("kind: LocalQueue\nmetadata: {name: %s}\nspec: {clusterQueue: %s, stopPolicy: %s}", d.name("l", 3), d.name("q", 3), d.one("None", "None", "Hold"))
		d.apply(text)
		return text
	case what < 6:
		text := fmt.Sprintf("kind: ResourceFlavor\nmetadata: {name: %s}\nspec: {nodeLabels: {a: %s}}", d.one("f0", "f1", "f9"), d.name("v", 3))
		d.apply(text)
		return text
	case what < 7:
		text := fmt.Sprintf("kind: Cohort\nmetadata: {name: %s}\nspec: {parentName: %s}", d.name("c", 3), d.one(`""`, "c0", "c1", "c2"))
		d.apply(text)
		return text
	case what < 8:
		text := fmt.Sprintf("kind: AdmissionCheck\nmetadata: {name: k0}\nspec: {controllerName: x}\nstatus: {conditions: [{type: Active, status: %q}]}", d.one("True", "True", "False"))
		d.apply(text)
		return text
	case what < 9:
		d.apply(fmt.Sprintf("{kind: Namespace, metadata: {name: team, labels: {team: %s}}}", d.one("a", "a", "b")))
		return "the labels of the namespace"
	case what < 10:
		for name, object := range d.objects {
			if !strings.Contains(name, "Namespace") { // any: the order of a map is random enough, and the seed is not needed to repeat it
				d.delete(object)
				return "deleted " + name
			}
		}
		return ""
	case what < 14 || !exists:
		text := d.job()
		d.applyIfFree(text)
		return text
	case what < 16:
		d.edit(workload, finish)
		return "finished " + workload
	case what < 17:
		d.edit(workload, func(o *v1beta2.Workload) {
			o.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: int32(d.random.IntN(3))}}
		})
		return "reclaimed " + workload
	case what < 18 && conditions.Is(o, v1beta2.QuotaReserved):
		d.edit(workload, func(o *v1beta2.Workload) {
			conditions.Evict(o, v1beta2.ReasonPodsReadyTimeout, "", "too late", d.now)
		})
		return "evicted " + workload
	case what < 19 && conditions.Is(o, v1beta2.QuotaReserved):
		d.edit(workload, func(o *v1beta2.Workload) {
			o.Status.AdmissionChecks = []v1beta2.AdmissionCheckState{{Name: "k0", State: v1beta2.CheckReady}}
		})
		return "checked " + workload
	}
	d.now = d.now.Add(time.Duration(d.random.IntN(100)) * time.Second)
	return "time"
}

// applyIfFree changes a Workload as the API server allows it: not while it holds quota.
func (d *drawn) applyIfFree(text string) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.Split(text, "\n")[2], "metadata: {name: "), "}")
	if o, is := d.objects["v1beta2.Workload team/"+name].(*v1beta2.Workload); is && (conditions.Is(o, v1beta2.QuotaReserved) || conditions.Is(o, v1beta2.Finished)) {
		return
	}
	d.apply(text)
}

// departures makes evicted Workloads leave, some of them late.
func (d *drawn) departures() {
	for _, key := range d.keys() {
		if o := d.workload(key.Name); conditions.Is(o, v1beta2.Evicted) && conditions.Is(o, v1beta2.QuotaReserved) && d.random.IntN(2) == 0 {
			d.leave(key.Name)
		}
	}
}

// charged checks that each ClusterQueue is charged what the objects say, and no Workload holds more than its admission.
func (d *drawn) charged() (wrong string) {
	used := map[string]int64{}
	for _, key := range d.keys() {
		o := d.workload(key.Name)
		e := d.reader.Find(key)
		if !conditions.Is(o, v1beta2.QuotaReserved) || conditions.Is(o, v1beta2.Finished) || o.Status.Admission == nil {
			if e.Held != nil && e.Phase != workload.PhasePlanned {
				wrong += key.Name + " holds, and its object does not say so\n"
			}
			if e.Held != nil && e.Queue != nil {
				used[e.Held.ClusterQueue] += int64(e.Held.PodSets[0].Count) * 1000
			}
			continue
		}
		left := int64(*o.Status.Admission.PodSetAssignments[0].Count)
		for _, r := range o.Status.ReclaimablePods {
			left = min(left, max(int64(o.Spec.PodSets[0].Count-r.Count), 0))
		}
		used[o.Status.Admission.ClusterQueue] += left * 1000
	}
	for _, q := range d.reader.Queues().All() {
		have := int64(0)
		for _, a := range q.Used() {
			have += a.Value
		}
		if have != used[q.Name] {
			wrong += fmt.Sprintf("%s uses %d, and the objects say %d\n", q.Name, have, used[q.Name])
		}
	}
	return wrong
}

func TestWhateverHappensTheReaderIsAsIfItReadEverythingAgain(t *testing.T) {
	for seed := range uint64(150) {
		d := &drawn{newKueue(t), rand.New(rand.NewPCG(seed, 1))}
		var log []string
		for range 60 {
			log = append(log, d.happen())
			switch d.random.IntN(4) {
			case 0:
				d.decide() // and the process ends before it has written anything
				d.reader = d.again()
			case 1:
				d.write(d.decide())
			}
			if d.random.IntN(3) == 0 {
				d.departures()
				d.run()
				if wrong := d.charged(); wrong != "" {
					t.Error(wrong)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d after\n%s", seed, strings.Join(log, "\n"))
			}
		}
	}
}

// broken runs a cycle that panics after so many nominations are booked, before the last of them is decided.
func (w *kueue) broken(after int) {
	w.now = w.now.Add(time.Second)
	w.reader.Settle(w.now)
	queues := w.reader.Queues()
	rules := &victims.Rules{Queues: queues}
	cycle := &cohorts.Cycle{Queues: queues, Rules: rules, Nodes: trees.Room{}, ByPriority: true, Now: w.now}
	cycle.Assigner = &flavors.Assigner{Index: queues.Index, Oracle: rules, Nodes: trees.Room{}}
	cycle.Decided = func(n *workload.Nomination) {
		if after--; after < 0 {
			panic("broken")
		}
	}
	defer func() {
		if recover() != nil {
			w.reader.Repair()
			w.reader.Settle(w.now)
		}
	}()
	cycle.Run()
	w.reader.Repair()
	w.reader.Settle(w.now)
}

func TestAfterAPanicQueuesAreAsIfTheRoundsHadNotBegun(t *testing.T) {
	for seed := range uint64(100) {
		d := &drawn{newKueue(t), rand.New(rand.NewPCG(seed, 2))}
		for range 40 {
			d.happen()
			if d.random.IntN(3) == 0 {
				d.departures()
				d.run()
			}
			if d.random.IntN(4) == 0 {
				d.broken(d.random.IntN(3))
				if wrong := d.reader.Queues().Audit(); len(wrong) > 0 {
					t.Fatalf("seed %d: %v", seed, wrong)
				}
				if have, want := dump(d.reader, d.keys()), dump(d.again(), d.keys()); have != want {
					t.Fatalf("seed %d: it has\n%s\nand one that reads everything again\n%s", seed, have, want)
				}
			}
		}
	}
}
