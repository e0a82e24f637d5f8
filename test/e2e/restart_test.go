package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/installed"
)

// schedulerProcess is the process of the scheduler.
func schedulerProcess(t *testing.T) *localcluster.Process {
	t.Helper()
	processes := cluster.Processes()
	i := slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == "volcano-scheduler" })
	if i < 0 {
		t.Fatal("no scheduler runs")
	}
	return processes[i]
}

// restartScheduler kills the scheduler as a crash would, if it runs, and starts it again.
func restartScheduler(t *testing.T) {
	t.Helper()
	if err := schedulerProcess(t).Kill(); err != nil {
		t.Fatal(err)
	}
	runScheduler(t)
}

// runScheduler starts the scheduler of the tests, which must not run. The Lease of one that was killed is freed: a
// short one, that need not be waited for, is lost on a busy machine.
func runScheduler(t *testing.T) {
	t.Helper()
	freeLease(t)
	program, err := system.Run(context.WithoutCancel(t.Context()), installed.Scheduler)
	if err != nil {
		t.Fatal(err)
	}
	metricsURL = program.MetricsURL
}

// freeLease takes the Lease of the schedulers from a process that was killed, as it would have done itself at its end.
func freeLease(t *testing.T) {
	t.Helper()
	ctx, leases := context.WithoutCancel(t.Context()), core.CoordinationV1().Leases(installed.Namespace) // a test that ends does it, too
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, "volcano", metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity = nil
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// batchJob is a Job of one task whose pods must start together.
func batchJob(name string, size int32, cpu string) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: batchv1alpha1.JobSpec{MinAvailable: size, SchedulerName: "volcano", Tasks: []batchv1alpha1.TaskSpec{{
			Name: "worker", Replicas: size, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}},
			}},
		}}},
	}
}

func submit(t *testing.T, job *batchv1alpha1.Job) {
	t.Helper()
	jobs := batch.BatchV1alpha1().Jobs(job.Namespace)
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		if err := jobs.Delete(context.Background(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Error(err)
		}
	})
}

// bindings watches which node each pod gets, and notes every pod that gets another one later.
type bindings struct {
	mutex  sync.Mutex
	nodes  map[types.UID]string
	double []string
}

func watchBindings(t *testing.T) *bindings {
	t.Helper()
	stream, err := core.CoreV1().Pods("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bindings{nodes: map[types.UID]string{}}
	var reader sync.WaitGroup
	reader.Go(func() {
		for event := range stream.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted && pod.Spec.NodeName != "" {
				b.note(pod)
			}
		}
	})
	t.Cleanup(func() {
		stream.Stop()
		reader.Wait()
	})
	return b
}

func (b *bindings) note(pod *corev1.Pod) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if before := b.nodes[pod.UID]; before != "" && before != pod.Spec.NodeName {
		b.double = append(b.double, fmt.Sprintf("%s: %s, then %s", pod.Name, before, pod.Spec.NodeName))
	}
	b.nodes[pod.UID] = pod.Spec.NodeName
}

func (b *bindings) count() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.nodes)
}

func TestAKilledSchedulerLosesNothingAndBindsNothingTwice(t *testing.T) {
	const jobs, size, nodes = 12, 20, 60
	haveNodes(t, nodes)
	seen := watchBindings(t)
	for i := range jobs {
		submit(t, batchJob(fmt.Sprintf("crash-%d", i), size, "1"))
	}
	// Crashes at moments that differ from run to run: while the jobs are admitted, while their gangs are bound, while
	// statuses are written.
	crashes := 0
	for deadline := time.Now().Add(patience); seen.count() < jobs*size && time.Now().Before(deadline) && crashes < 6; crashes++ {
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		restartScheduler(t)
	}
	for i := range jobs {
		awaitPhase(t, fmt.Sprintf("crash-%d", i), batchv1alpha1.Running)
		awaitRunning(t, fmt.Sprintf("crash-%d", i), size)
	}
	t.Logf("%d crashes, %d pods bound", crashes, seen.count())
	if len(seen.double) > 0 {
		t.Errorf("pods that were bound twice: %s", strings.Join(seen.double, "; "))
	}
	noNodeIsOverCommitted(t)
}

func noNodeIsOverCommitted(t *testing.T) {
	t.Helper()
	pods, err := core.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]*resource.Quantity{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = &resource.Quantity{}
		}
		for j := range pod.Spec.Containers {
			used[pod.Spec.NodeName].Add(pod.Spec.Containers[j].Resources.Requests[corev1.ResourceCPU])
		}
	}
	nodes, err := core.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if have, taken := node.Status.Allocatable.Cpu(), used[node.Name]; taken != nil && taken.Cmp(*have) > 0 {
			t.Errorf("node %s has %s CPU, and %s are taken", node.Name, have, taken)
		}
	}
}

func TestAnEditOfTheActionsTakesEffectWithoutARestart(t *testing.T) {
	haveNodes(t, 2)
	maps := core.CoreV1().ConfigMaps(installed.Namespace)
	edit := func(from, to string) {
		t.Helper()
		m, err := maps.Get(context.Background(), "volcano-scheduler-configmap", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := m.Data["volcano-scheduler.conf"]
		if !strings.Contains(text, from) {
			t.Fatalf("the configuration has no %s:\n%s", from, text)
		}
		m.Data["volcano-scheduler.conf"] = strings.Replace(text, from, to, 1)
		if _, err := maps.Update(context.Background(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pid := schedulerProcess(t).PID
	const whole, without = `"enqueue, admit, allocate, backfill"`, `"enqueue, admit, backfill"`
	edit(whole, without)
	isWhole := false
	t.Cleanup(func() {
		if !isWhole {
			edit(without, whole)
		}
	})
	time.Sleep(time.Second) // for the watch to deliver it
	submit(t, batchJob("patient", 1, "100m"))
	time.Sleep(2 * time.Second)
	if job, err := jobOf(t.Context(), "patient"); err != nil || job.Status.State.Phase != batchv1alpha1.Pending || job.Status.Running > 0 {
		t.Fatalf("without allocate the job is %+v, %v", job.Status.State, err)
	}
	edit(without, whole)
	isWhole = true
	awaitPhase(t, "patient", batchv1alpha1.Running)
	if now := schedulerProcess(t).PID; now != pid {
		t.Errorf("the scheduler is another process: %d, was %d", now, pid)
	}
}
