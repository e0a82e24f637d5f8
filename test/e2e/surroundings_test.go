package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/network"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"
)

// replicaLease is soon over when its holder is cut off, and long enough for a busy machine.
var replicaLease = []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=300ms"}

// runReplica starts one more scheduler until the test ends.
func runReplica(t *testing.T, name string, arguments ...string) *localcluster.Process {
	t.Helper()
	program, err := system.Program(t.Context(), installed.Scheduler, slices.Concat(replicaLease, arguments)...)
	if err != nil {
		t.Fatal(err)
	}
	program.Name = name
	process, err := cluster.Run(t.Context(), program.Program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return process
}

// awaitHolder waits until another process holds the Lease of the schedulers, and returns its name.
func awaitHolder(t *testing.T, other string) (holder string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		lease, err := core.CoordinationV1().Leases(installed.Namespace).Get(ctx, "volcano", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == other {
			return errors.New("no other process holds the Lease")
		}
		holder = *lease.Spec.HolderIdentity
		return nil
	})
	return holder
}

// Two replicas are behind networks over which bindings and events take a second. That of the leader is cut, and neither
// side is told.
func TestAReplicaThatIsCutOffIsReplacedAndComesBack(t *testing.T) {
	const gangs, size = 8, 4
	haveNodes(t, gangs*size/8+1) // of eight CPUs
	tidyUp(t)
	letGoOfTheLease(t)
	slow := func(r *http.Request) time.Duration {
		if isBinding(r) || network.IsWatch(r) {
			return time.Second
		}
		return 0
	}
	first, second := slowly(t, slow), slowly(t, slow)
	cutOff := runReplica(t, "first", "--kubeconfig="+first.kubeconfig)
	leader := awaitHolder(t, "")
	other := runReplica(t, "second", "--kubeconfig="+second.kubeconfig)
	seen := watchBindings(t)
	for i := range gangs {
		create(t, batchJob(fmt.Sprint("gang-", i), size, "1"))
	}
	apitest.Eventually(t, func(context.Context) error {
		if seen.count() == 0 {
			return errors.New("nothing is bound")
		}
		return nil
	})
	first.Sever()
	takenOver := awaitHolder(t, leader)
	for i := range gangs {
		awaitStaying(t, fmt.Sprint("gang-", i), size)
	}
	apitest.Eventually(t, func(context.Context) error {
		if cutOff.IsAlive() {
			return errors.New("the replica that is cut off still runs")
		}
		return nil
	})
	if sent := first.bound.Load() + second.bound.Load(); sent != gangs*size || len(seen.double) > 0 {
		t.Errorf("%d bindings were sent for %d pods, and bound twice were %v", sent, gangs*size, seen.double)
	}
	noNodeIsOverCommitted(t)
	first.Heal()
	runReplica(t, "first", "--kubeconfig="+first.kubeconfig)
	if holder := awaitHolder(t, leader); holder != takenOver {
		t.Errorf("the replica that comes back takes the Lease from %s", takenOver)
	}
	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	create(t, batchJob("later", size, "1"))
	awaitStaying(t, "later", size)
	noNodeIsOverCommitted(t)
}

// letGoOfTheLease stops the scheduler of the tests in order, and starts it again when the test ends.
func letGoOfTheLease(t *testing.T) {
	t.Helper()
	if err := schedulerProcess(t).Stop(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runScheduler(t) })
}

// mayHoldLease lets the schedulers hold one more Lease, as docs/install.md says.
func mayHoldLease(t *testing.T, lease string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: installed.Namespace, Name: "volcano-scheduler-" + lease}
	rbac := core.RbacV1()
	_, err := rbac.Roles(installed.Namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{lease}, Verbs: []string{"get", "update"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = rbac.RoleBindings(installed.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: installed.Namespace, Name: "volcano-scheduler"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// by gives a Job a scheduler.
func by(scheduler string, job *batchv1alpha1.Job) *batchv1alpha1.Job {
	job.Spec.SchedulerName = scheduler
	return job
}

// queueWrites counts the changes of queues from now on.
func queueWrites(t *testing.T) func() int {
	t.Helper()
	stream, err := batch.SchedulingV1beta1().Queues().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	count := 0
	var reader sync.WaitGroup
	reader.Go(func() {
		for range stream.ResultChan() {
			mutex.Lock()
			count++
			mutex.Unlock()
		}
	})
	t.Cleanup(func() { stream.Stop(); reader.Wait() })
	return func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return count
	}
}

// A second Hekla serves the same queues. Each evicts pods of its own only, and what both hold counts in the queues.
func TestASecondHeklaSharesTheQueues(t *testing.T) {
	makeRoom(t)
	mayHoldLease(t, "second")
	runReplica(t, "second", "--scheduler-name=second")
	createQueue(t, "low", 1)
	createQueue(t, "high", 10)
	// One after the other: two schedulers that bind at once can fill a node twice, and no kubelet refuses here.
	create(t, by("second", in("low", elastic(marked(batchJob("theirs", 8, "1"))))))
	awaitStaying(t, "theirs", 8)
	create(t, in("low", elastic(marked(batchJob("ours", 8, "1")))))
	awaitStaying(t, "ours", 8)
	noNodeIsOverCommitted(t)
	gone, writes := departures(t), queueWrites(t)
	create(t, in("high", batchJob("boss", 6, "1")))
	awaitStaying(t, "boss", 6)
	awaitStaying(t, "ours", 2)
	awaitStaying(t, "theirs", 8)
	create(t, by("second", in("high", batchJob("their-boss", 6, "1"))))
	awaitStaying(t, "their-boss", 6)
	awaitStaying(t, "ours", 2)
	awaitStaying(t, "theirs", 2)
	apitest.Eventually(t, func(ctx context.Context) error {
		queue, err := batch.SchedulingV1beta1().Queues().Get(ctx, "high", metav1.GetOptions{})
		if err == nil && queue.Status.Allocated.Cpu().Value() != 12 {
			err = fmt.Errorf("queue high holds %v, want the 12 CPUs of both", queue.Status.Allocated)
		}
		return err
	})
	time.Sleep(time.Second) // the last statuses
	before := writes()
	isCalm(t, gone)
	if after := writes(); after != before || gone() != 12 {
		t.Errorf("at rest queues were written %d times; %d pods were evicted, want 12", after-before, gone())
	}
	noNodeIsOverCommitted(t)
}

// daemons is a DaemonSet of the kube-scheduler.
func daemons(name, class, cpu string) *appsv1.DaemonSet {
	pod := theirs(name, class, cpu)
	labels := map[string]string{"app": name}
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec}}}
}

// The pods of a DaemonSet come while all nodes are full, and when nodes are added for which a gang waits, too.
func TestAForeignDaemonSetGetsRoomOnEveryNode(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	haveKubeScheduler(t)
	refused := kubelets(t)
	createClass(t, "daemon", 1000)
	create(t, elastic(marked(batchJob("low", 16, "1"))))
	awaitStaying(t, "low", 16)
	gone := departures(t)
	daemonSets := core.AppsV1().DaemonSets(metav1.NamespaceDefault)
	if _, err := daemonSets.Create(t.Context(), daemons("daemon", "daemon", "2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemonSets.Delete(context.Background(), "daemon", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	awaitTheirs(t, 2)
	awaitStaying(t, "low", 12)
	create(t, batchJob("gang", 6, "1"))
	haveNodes(t, 4)
	awaitTheirs(t, 4)
	awaitStaying(t, "low", 16)
	awaitStaying(t, "gang", 6)
	isCalm(t, gone)
	noNodeIsOverCommitted(t)
	// On a new node that others have filled, the kube-scheduler makes room for a daemon again.
	if count := gone() - refused(); count < 4 || count > 8 {
		t.Errorf("%d pods were evicted for daemons, of which two were to run on full nodes and need two CPUs each", count)
	}
}
