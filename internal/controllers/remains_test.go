package controllers_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// withoutGarbageCollector holds up Kubernetes' own controllers until the test ends: as it is with the kinds that the
// garbage collector has not heard of.
func withoutGarbageCollector(t *testing.T) {
	t.Helper()
	processes := cluster.Processes()
	i := slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == "kube-controller-manager" })
	if i < 0 {
		t.Fatal("no kube-controller-manager runs")
	}
	if err := syscall.Kill(processes[i].PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(processes[i].PID, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
}

// admittedJob creates a Job whose PodGroup is admitted, and returns that.
func admittedJob(t *testing.T, job *batch.Job) *scheduling.PodGroup {
	t.Helper()
	create(t, job)
	group := podGroupOf(job)
	setPhase(t, group, scheduling.PodGroupInqueue)
	return group
}

func remove(t *testing.T, job *batch.Job, policy metav1.DeletionPropagation) {
	t.Helper()
	if err := api.Delete(apitest.Context(t), job, client.PropagationPolicy(policy)); err != nil {
		t.Fatal(err)
	}
}

func TestThePodGroupOfAJobThatIsDeletedKeepsNoRoom(t *testing.T) {
	namespace := namespaceFor(t, "remains")
	background, foreground := newJob(namespace, "background", task("a", 0)), newJob(namespace, "foreground", task("a", 0))
	groups := []client.Object{admittedJob(t, background), admittedJob(t, foreground)}
	withoutGarbageCollector(t)
	remove(t, background, metav1.DeletePropagationBackground)
	remove(t, foreground, metav1.DeletePropagationForeground)
	awaitGone(t, groups...)
}

func TestThePodGroupOfAJobDeletedDuringARestartKeepsNoRoom(t *testing.T) {
	namespace := namespaceFor(t, "remains")
	gone, former, latter := newJob(namespace, "gone", task("a", 0)), newJob(namespace, "again", task("a", 0)), newJob(namespace, "again", task("a", 0))
	groups := []client.Object{admittedJob(t, gone), admittedJob(t, former)}
	withoutGarbageCollector(t)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	remove(t, gone, metav1.DeletePropagationBackground)
	remove(t, former, metav1.DeletePropagationBackground)
	create(t, latter)
	var err error
	if process, err = cluster.Run(context.Background(), program); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, groups...)
	apitest.Eventually(t, func(ctx context.Context) error {
		group := podGroupOf(latter)
		return api.Get(ctx, client.ObjectKeyFromObject(group), group)
	})
}

func TestThePodGroupOfAJobThatIsDeletedAloneStays(t *testing.T) {
	namespace := namespaceFor(t, "remains")
	job := newJob(namespace, "orphans", task("a", 0))
	group := admittedJob(t, job)
	stays := func(t *testing.T) {
		t.Helper()
		for range 25 {
			if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(group), group); err != nil || group.DeletionTimestamp != nil {
				t.Fatalf("it is deleted at %s (%v)", group.DeletionTimestamp, err)
			}
			time.Sleep(poll)
		}
	}
	withoutGarbageCollector(t)
	remove(t, job, metav1.DeletePropagationOrphan)
	stays(t)
	// What the garbage collector does then.
	change(t, group, func(group *scheduling.PodGroup) { group.OwnerReferences = nil })
	change(t, job, func(job *batch.Job) { job.Finalizers = nil })
	awaitGone(t, job)
	stays(t)
}
