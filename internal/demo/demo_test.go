package demo

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// exampleGang is the job of the first example.
func exampleGang(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	objects, err := localcluster.ReadManifests(hekla.Examples)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" && o.GetName() == "gang" })
	if i < 0 {
		t.Fatal("the examples have no job gang")
	}
	return objects[i]
}

func TestTheGangIsTheExampleOnTheClusterOfTheDemo(t *testing.T) {
	for _, nodes := range [][]node{
		{{name: "node-1", allocatable: 8000}, {name: "node-2", allocatable: 8000}},
		{{name: "a", allocatable: 64000}, {name: "b", allocatable: 4000}, {name: "c", allocatable: 8000}},
	} {
		var before, after batchv1alpha1.Job
		object := exampleGang(t)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &before); err != nil {
			t.Fatal(err)
		}
		if err := gangOf(nodes, len(nodes)+1)(object); err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &after); err != nil {
			t.Fatal(err)
		}
		requests := func(j *batchv1alpha1.Job) int64 {
			return j.Spec.Tasks[0].Template.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
		if len(nodes) == 2 && (after.Spec.MinAvailable != before.Spec.MinAvailable || requests(&after) != requests(&before)) {
			t.Errorf("the demo shows a gang of %d with %dm each, the example has %d with %dm", after.Spec.MinAvailable,
				requests(&after), before.Spec.MinAvailable, requests(&before))
		}
		if int(after.Spec.MinAvailable) <= len(nodes) || after.Spec.Tasks[0].Replicas != after.Spec.MinAvailable {
			t.Errorf("a gang of %d on %d nodes", after.Spec.MinAvailable, len(nodes))
		}
		for _, n := range nodes {
			if 2*requests(&after) <= n.allocatable {
				t.Errorf("two pods of %dm have a place on %s with %dm", requests(&after), n.name, n.allocatable)
			}
		}
	}
}

func TestALogHasALineForEachChange(t *testing.T) {
	var out bytes.Buffer
	log := &transcript{output: &out, began: time.Now(), saidAt: time.Now()}
	running := job{name: "gang", phase: batchv1alpha1.Running, running: 2, size: 3, minimum: 3}
	alone, full := running, running
	full.running = 3
	for _, s := range []scene{
		{nodes: []node{{name: "node-1", allocatable: 8000}}, jobs: []job{waiting("gang")}},
		{nodes: []node{{name: "node-1", allocatable: 8000}}, jobs: []job{waiting("gang")}},
		{nodes: []node{{name: "node-1", allocatable: 8000}}, jobs: []job{alone}},
		{nodes: []node{{name: "node-1", allocatable: 8000}}, jobs: []job{full}},
	} {
		if err := log.show(s); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want the node, the waiting and the running job:\n%s", len(lines), out.String())
	}
	for i, want := range []string{"node node-1: 8 CPUs", "NotEnoughResources: 2 of the 3 pods", "Running, 2 of 3 pods run"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q in it", i+1, lines[i], want)
		}
	}
}

func TestAJobWaitsForRoomOnlyWhenItsPodsAreThere(t *testing.T) {
	for reason, want := range map[string]bool{"": false, "PodGroupPending": false, "NotEnoughTasks": false,
		"NotEnoughResources": true, "OverCapability": true, "OverCommitted": true} {
		if got := lacksRoom(job{phase: batchv1alpha1.Pending, reason: reason}); got != want {
			t.Errorf("a job that waits for %q lacks room: %t, want %t", reason, got, want)
		}
	}
}
