package controllers_test

import (
	"context"
	"slices"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
)

// runAs runs the controllers with further arguments, until the test ends.
func runAs(t *testing.T, arguments ...string) {
	t.Helper()
	restart := func(program localcluster.Program) {
		t.Helper()
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		var err error
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { restart(program) })
	changed := program
	changed.Args = append(slices.Clone(program.Args), arguments...)
	restart(changed)
}

// No webhook runs here: the Job is stored as the user wrote it.
func TestPodsOfAJobThatNamesNoSchedulerAreForTheFirstOfOurNames(t *testing.T) {
	runAs(t, "--scheduler-name=mine,volcano")
	namespace := namespaceFor(t, "names")
	unnamed, named := newJob(namespace, "unnamed", task("a", 1), task("b", 1)), newJob(namespace, "named", task("a", 1))
	unnamed.Spec.Tasks[1].Template.Spec.SchedulerName = "another"
	named.Spec.SchedulerName = "volcano"
	start(t, unnamed, "unnamed-a-0", "unnamed-b-0")
	start(t, named, "unnamed-a-0", "unnamed-b-0", "named-a-0")
	pods, err := podsIn(apitest.Context(t), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"unnamed-a-0": "mine", "unnamed-b-0": "another", "named-a-0": "volcano"} {
		if got := pods[name].Spec.SchedulerName; got != want {
			t.Errorf("pod %s is for %s, want %s", name, got, want)
		}
	}
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(unnamed), unnamed); err != nil || unnamed.Spec.SchedulerName != "" {
		t.Errorf("the Job is stored with schedulerName %q (%v)", unnamed.Spec.SchedulerName, err)
	}
}
