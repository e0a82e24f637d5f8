package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestAWaitingReplicaTakesOverFromOneThatDies(t *testing.T) {
	runAs(t, "--leader-elect=true")
	first := newJob(namespaceFor(t, "election"), "first", task("a", 1))
	create(t, first)
	awaitJob(t, first, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Pending })
	health, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	second := program
	second.Name = "hekla-controllers-2"
	second.Args = append(slices.Clone(program.Args), "--leader-elect=true")
	for i, argument := range second.Args {
		if strings.HasPrefix(argument, "--healthz-address=") {
			second.Args[i] = fmt.Sprintf("--healthz-address=127.0.0.1:%d", health)
		}
		if strings.HasPrefix(argument, "--listen-address=") {
			second.Args[i] = "--listen-address=127.0.0.1:0"
		}
	}
	// A replica is ready while it waits, or a roll-out of two could never finish.
	second.ReadyURL = fmt.Sprintf("http://127.0.0.1:%d/readyz", health)
	replica, err := cluster.Run(apitest.Context(t), second)
	if err != nil {
		t.Fatal(err)
	}
	leader := awaitLeader(t, func(holder string) bool { return holder != "" })
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	})
	job := newJob(first.Namespace, "second", task("a", 1))
	create(t, job)
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Pending })
	awaitLeader(t, func(holder string) bool { return holder != "" && holder != leader })
}

// awaitLeader waits until the holder of the Lease is as wanted, and returns it.
func awaitLeader(t *testing.T, isWanted func(holder string) bool) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKey{Namespace: system, Name: "vc-controller-manager"}, lease); err != nil {
			return err
		}
		if holder := lease.Spec.HolderIdentity; holder == nil || !isWanted(*holder) {
			return fmt.Errorf("the Lease is %+v", lease.Spec)
		}
		return nil
	})
	return *lease.Spec.HolderIdentity
}
