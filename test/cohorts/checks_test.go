package cohorts

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
)

const (
	aCheck       = `{kind: AdmissionCheck, metadata: {name: check}, spec: {controllerName: example.com/c}, status: {conditions: [{type: Active, status: "True", reason: Active, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	checkedQueue = `{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: check}]}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 20}]}]}]}}`
)

// pass makes the check of a Workload ready, with an update of its pods.
func pass(w *world.World, name string, update v1beta2.PodSetUpdate) {
	w.Edit(name, func(o *v1beta2.Workload) {
		o.Status.AdmissionChecks[0].State = v1beta2.CheckReady
		if update.Name != "" {
			o.Status.AdmissionChecks[0].PodSetUpdates = []v1beta2.PodSetUpdate{update}
		}
	})
}

// named are the nodes that the admission of a Workload names, by pod set.
func named(t *testing.T, w *world.World, name string) map[string]int32 {
	t.Helper()
	counts := map[string]int32{}
	for _, p := range w.Workload(name).Status.Admission.PodSetAssignments {
		nodes, err := settings.Nodes(p.TopologyAssignment)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			counts[p.Name+" on "+n.Node] += n.Count
		}
	}
	return counts
}

// Rule C21: an update that changes where pods may go is placed again within the room of the Workload.
func TestUpdatesOfAdmissionChecksArePlacedAgain(t *testing.T) {
	begin := func(t *testing.T, text string) *world.World {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=4", "zone", "b")
		w.AddNode("n3", "cpu=4", "zone", "c")
		n := w.Object("v1.Node/n3").(*corev1.Node).DeepCopy()
		n.Spec.Taints = []corev1.Taint{{Key: "kept", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		w.Replace(n)
		w.Apply(one(20, "Never")).Apply(aCheck).Apply(checkedQueue).Apply(text).Rest(20)
		return w.Expect("a", "reserved")
	}
	toZoneB := v1beta2.PodSetUpdate{Name: "main", NodeSelector: map[string]string{"zone": "b"}}
	tests := map[string]struct {
		workload string
		update   v1beta2.PodSetUpdate
		want     map[string]int32
	}{
		"a selector sends all pods to the node that has its label": {
			workloadOf("a", "q", 0, 4, "1"), toZoneB, map[string]int32{"main on n2": 4}},
		"the pods may stand where they stood": {
			workloadOf("a", "q", 0, 4, "2"), v1beta2.PodSetUpdate{Name: "main", Labels: map[string]string{"checked": "yes"}},
			map[string]int32{"main on n1": 2, "main on n2": 2}},
		"a toleration opens a node": {
			workloadOf("a", "q", 0, 2, "2"), v1beta2.PodSetUpdate{Name: "main", NodeSelector: map[string]string{"zone": "c"},
				Tolerations: []corev1.Toleration{{Key: "kept", Operator: corev1.TolerationOpExists}}},
			map[string]int32{"main on n3": 2}},
		"an update of another pod set changes nothing": {
			workloadOf("a", "q", 0, 4, "2"), v1beta2.PodSetUpdate{Name: "other", NodeSelector: map[string]string{"zone": "b"}},
			map[string]int32{"main on n1": 2, "main on n2": 2}},
		"the pods of one pod set go where those of another stood": {
			`{kind: Workload, metadata: {name: a}, spec: {queueName: q, priority: 0, podSets: [
				{name: other, count: 2, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}},
				{name: main, count: 2, template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}]}}`,
			toZoneB, map[string]int32{"other on n1": 2, "main on n2": 2}},
	}
	for name, tt := range tests {
		for _, isOther := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by another scheduler: %t", name, isOther), func(t *testing.T) {
				w := begin(t, tt.workload)
				pass(w, "a", tt.update)
				if isOther {
					w.Restart(nil)
				}
				w.Rest(20).Expect("a", "admitted")
				if diff := cmp.Diff(tt.want, named(t, w, "a")); diff != "" {
					t.Errorf("the nodes that it names (-want +got):\n%s", diff)
				}
				want, have := 0, 0
				for _, count := range tt.want {
					want += int(count)
				}
				for node, pods := range w.Running("a") {
					have += pods
					if named := named(t, w, "a"); int32(pods) != named["main on "+node]+named["other on "+node] {
						t.Errorf("%d pods run on %s, and it names %v", pods, node, named)
					}
				}
				if w.Evictions != 0 || have != want {
					t.Errorf("%d evictions, and %d pods run, want %d", w.Evictions, have, want)
				}
				w.Restart(nil).Rest(20).Expect("a", "admitted")
			})
		}
	}

	t.Run("one that then fits nowhere is evicted, and tried again", func(t *testing.T) {
		w := begin(t, workloadOf("a", "q", 0, 3, "2"))
		pass(w, "a", toZoneB)
		for w.Evictions == 0 {
			w.Step()
		}
		evicted := conditions.Of(w.Workload("a"), v1beta2.Evicted)
		const message = `With the updates of admission check(s) "check" there is no room on the nodes for 1 of 3 pod(s) of pod set main: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s)`
		if evicted.Reason != v1beta2.ReasonAdmissionCheck || evicted.Message != message {
			t.Errorf("it is evicted: %s: %s", evicted.Reason, evicted.Message)
		}
		for range 5 {
			w.Step()
		}
		w.Expect("a", "PendingEvaluation: "+conditions.PendingEvaluation)
		w.Apply(workloadOf("b", "q", 0, 2, "2"))
		w.Step()
		w.Step()
		w.Expect("b", "reserved") // nothing is held for the first
		w.Now = w.Now.Add(10 * time.Second)
		w.AddNode("n4", "cpu=8", "zone", "b").Rest(20).Expect("a", "reserved")
		pass(w, "a", toZoneB)
		w.Rest(20).Expect("a", "admitted")
		if running := w.Running("a"); running["n1"] != 0 || running["n2"]+running["n4"] != 3 {
			t.Errorf("it runs on %v", running)
		}
	})
	t.Run("two checks count together", func(t *testing.T) {
		w := begin(t, workloadOf("a", "q", 0, 2, "2"))
		w.Edit("a", func(o *v1beta2.Workload) {
			o.Status.AdmissionChecks[0].State = v1beta2.CheckReady
			o.Status.AdmissionChecks[0].PodSetUpdates = []v1beta2.PodSetUpdate{toZoneB, {Name: "main", Labels: map[string]string{"x": "y"}}}
		})
		w.Rest(20).Expect("a", "admitted")
		if diff := cmp.Diff(map[string]int32{"main on n2": 2}, named(t, w, "a")); diff != "" {
			t.Errorf("the nodes that it names (-want +got):\n%s", diff)
		}
	})
	t.Run("a job that contradicts its check fails without an eviction", func(t *testing.T) {
		w := begin(t, `{kind: Workload, metadata: {name: a}, spec: {queueName: q, priority: 0, podSets: [{name: main, count: 1, template:
			{spec: {nodeSelector: {zone: b}, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}]}}`)
		pass(w, "a", v1beta2.PodSetUpdate{Name: "main", NodeSelector: map[string]string{"zone": "nowhere"}})
		w.Rest(20)
		if finished := conditions.Of(w.Workload("a"), v1beta2.Finished); finished == nil || finished.Reason != "FailedToStart" || w.Evictions != 0 {
			t.Errorf("%d evictions, and its condition Finished is %+v", w.Evictions, finished)
		}
	})
}

// What is held for pods to come does not stay on a node that is gone.
func TestNodesThatAreGoneWhileAWorkloadWaitsToStart(t *testing.T) {
	begin := func(t *testing.T) *world.World {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=2").AddNode("n2", "cpu=2")
		w.Apply(one(20, "Never")).Apply(aCheck).Apply(checkedQueue).Apply(workloadOf("a", "q", 0, 2, "2")).Rest(20)
		return w.Expect("a", "reserved")
	}
	t.Run("others are held instead", func(t *testing.T) {
		w := begin(t).AddNode("n3", "cpu=2")
		w.RemoveNode("n1")
		w.Rest(20).Expect("a", "reserved")
		if diff := cmp.Diff(map[string]int32{"main on n2": 1, "main on n3": 1}, named(t, w, "a")); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	})
	t.Run("without others it is evicted and waits", func(t *testing.T) {
		w := begin(t)
		w.RemoveNode("n1")
		w.Rest(20).Expect("a", "TopologyPlacementFailed: couldn't assign flavors to pod set main: no room on the nodes of flavor default for 1 of 2 pod(s): 1 Insufficient cpu")
		c := conditions.Of(w.Workload("a"), v1beta2.Evicted)
		if c == nil || c.Reason != v1beta2.ReasonNodeFailures || c.Message != "Workload was evicted as there was no replacement for unhealthy node(s): n1" {
			t.Errorf("it says %+v", c)
		}
		w.AddNode("n3", "cpu=2").Rest(20).Expect("a", "reserved")
	})
}
