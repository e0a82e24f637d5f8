package queueing

import (
	"slices"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Each kind can be looked up, says that its jobs are of it, and is one that the scheduler knows to be started.
func TestEachKindIsKnownEverywhere(t *testing.T) {
	var controllers []string
	for _, kind := range AllKinds() {
		job := kind.New()
		if job.Kind() != kind || AllKinds().Of(kind.GroupVersionKind) != kind {
			t.Errorf("a job of %s is of the kind %s", kind, job.Kind())
		}
		if !IsServed(kind.GroupVersionKind) || !IsServable(kind.GroupVersionKind, nil) {
			t.Errorf("jobs that %s makes are queued by themselves", kind)
		}
		w, err := NewWorkload(job, noClasses{})
		if err != nil {
			t.Fatal(err)
		}
		if owner := settings.NotStarted(w, nil); owner != nil {
			t.Errorf("the scheduler leaves Workloads of %s waiting: its list in package settings lacks the kind", kind)
		}
		if slices.Contains(controllers, kind.Controller) || kind.Controller == "" {
			t.Errorf("the controller of %s is called %q", kind, kind.Controller)
		}
		controllers = append(controllers, kind.Controller)
	}
	if kind := AllKinds().Of(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}); kind != nil {
		t.Errorf("a kind that nothing queues is %s", kind)
	}
}

func TestAJobSaysWhichWorkloadIsItsOwn(t *testing.T) {
	job := &metav1.ObjectMeta{Name: "bert", UID: "0a1b"}
	if name, want := BatchJobs.WorkloadOf(job), WorkloadName(BatchJobs.GroupVersionKind, "bert", "0a1b"); name != want {
		t.Errorf("it is %s, want %s", name, want)
	}
	if BatchJobs.WorkloadOf(job) == VolcanoJobs.WorkloadOf(job) {
		t.Error("jobs of two kinds with one name share a Workload")
	}
	job.Labels = map[string]string{v1beta2.PrebuiltWorkloadLabel: "made-before"}
	if name := BatchJobs.WorkloadOf(job); name != "made-before" {
		t.Errorf("it is %s, and the job names another", name)
	}
}

// noClasses has no priority classes.
type noClasses struct{ Lookup }

// PriorityClass implements [Lookup].
func (noClasses) PriorityClass(string) (*schedulingv1.PriorityClass, error) { return nil, nil }
