package cohorts

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
)

// apply shows the objects of a case to a scheduler: a LocalQueue has the name of its ClusterQueue.
func apply(t *testing.T, w *world.World, c *theCase) {
	t.Helper()
	for i := range 2 {
		w.Apply(fmt.Sprintf("{kind: ResourceFlavor, metadata: {name: f%d}, spec: {nodeLabels: {flavor-f%d: 'yes'}}}", i, i))
	}
	object := func(kind, name string, spec map[string]any) { w.Apply(objectOf(t, kind, name, spec)) }
	// The cases are in the spelling of the API, apart from the names.
	var raw struct{ Cohorts, ClusterQueues, Pending []map[string]any }
	if err := json.Unmarshal([]byte(c.Note), &raw); err != nil {
		t.Fatal(err)
	}
	of := func(m map[string]any) (string, map[string]any) {
		name := m["name"].(string)
		delete(m, "name")
		return name, m
	}
	for _, m := range raw.Cohorts {
		name, spec := of(m)
		object("Cohort", name, spec)
	}
	for _, m := range raw.ClusterQueues {
		name, spec := of(m)
		spec["namespaceSelector"] = map[string]any{}
		object("ClusterQueue", name, spec)
		object("LocalQueue", name, map[string]any{"clusterQueue": name})
	}
	for _, n := range c.Nodes {
		labels := []string{}
		for _, f := range n.Flavors {
			labels = append(labels, "flavor-"+f, "yes")
		}
		w.AddNode(n.Name, requestsOf(n.Allocatable), labels...)
	}
	addPending(t, w, c)
}

// addPending adds the Workloads of a case.
func addPending(t *testing.T, w *world.World, c *theCase) {
	t.Helper()
	for i := range c.Pending {
		p := &c.Pending[i]
		var sets []any
		for _, s := range p.PodSets {
			set := map[string]any{"name": s.Name, "count": s.Count, "template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "c", "image": "i", "resources": map[string]any{"requests": s.Requests}}}}}}
			if s.MinCount != nil {
				set["minCount"] = *s.MinCount
			}
			sets = append(sets, set)
		}
		w.Apply(objectOf(t, "Workload", p.Name, map[string]any{"queueName": p.ClusterQueue, "priority": p.Priority, "podSets": sets}))
	}
}

func objectOf(t *testing.T, kind, name string, spec map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": kind, "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func argumentsOf(c *theCase) string {
	return fmt.Sprintf("{fairSharing: %t, preemptionStrategies: [%s]}", c.FairSharing, strings.Join(c.PreemptionStrategies, ", "))
}

// Rule C1 and all ledgers are checked after each cycle.
func TestSchedulersOfRandomClustersComeToRest(t *testing.T) {
	evictions, admitted := 0, 0
	for seed := range worlds(t, 150) {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		c := random(t, r, true)
		w := world.New(t, world.Configuration(argumentsOf(c)))
		w.Grace = r.IntN(3)
		apply(t, w, c)
		n := len(c.Pending) + 1
		for quiet, steps := 0, 0; quiet < 4; steps++ {
			if quiet++; w.Step() {
				quiet = 0
			}
			if w.Evictions > n*n || steps > 20*n*n || t.Failed() {
				t.Fatalf("seed %d: %d evictions, %d steps with %d workloads; last: %v\n%s", seed, w.Evictions, steps, n-1, w.Said, c.Note)
			}
		}
		evictions += w.Evictions
		for _, o := range w.Workloads() {
			if conditions.Is(o, v1beta2.Admitted) {
				admitted++
				mustRun(t, w, seed, o, c)
			} else if s := w.Says(o.Name); s == "" || strings.HasPrefix(s, "evicted") || s == "reserved" {
				t.Fatalf("seed %d: at rest %s says %q\n%s", seed, o.Name, s, c.Note)
			}
		}
	}
	if evictions == 0 || admitted == 0 {
		t.Errorf("%d evictions and %d admissions in all", evictions, admitted)
	}
}

// mustRun checks that all pods of an admitted Workload run.
func mustRun(t *testing.T, w *world.World, seed int, o *v1beta2.Workload, c *theCase) {
	t.Helper()
	want, have := 0, 0
	for i := range o.Status.Admission.PodSetAssignments {
		want += int(*o.Status.Admission.PodSetAssignments[i].Count)
	}
	for _, pods := range w.Running(o.Name) {
		have += pods
	}
	if have != want {
		t.Fatalf("seed %d: of %d pods of %s %d run\n%s", seed, want, o.Name, have, c.Note)
	}
}
