package operators

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/test/apitest"
)

// size is how many pods the jobs of this test have, with one CPU each.
const size = 4

// gang is a job of an operator whose pods must start together.
type gang struct {
	// operators must run for it; the first is its own, which is restarted.
	operators []string
	// left is how many of its pods run on while it is preempted.
	left int
	// manifest is a job called NAME in the queue team.
	manifest string
}

// mayLeave marks pods that may be evicted.
const mayLeave = `annotations: {volcano.sh/preemptable: "true"}`

// inEach are the containers of a pod of one CPU, called like that.
func inEach(container string) string {
	return "terminationGracePeriodSeconds: 1, containers: [{name: " + container + ", image: busybox, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]"
}

// annotated is a JobSet that says how many pods must start together, which have so many CPUs each.
func annotated(name string, cpus int) string {
	container := fmt.Sprintf("terminationGracePeriodSeconds: 1, containers: [{name: main, image: busybox, resources: {requests: {cpu: %d}}}]", cpus)
	return `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: ` + name + `, annotations: {scheduling.volcano.sh/group-min-member: "4", scheduling.volcano.sh/queue-name: team}}
spec:
  failurePolicy: {maxRestarts: 100}
  replicatedJobs:
  - {name: driver, replicas: 1, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 100, template: &pod {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, restartPolicy: Never, ` + container + `}}}}}
  - {name: worker, replicas: 1, template: {spec: {parallelism: 3, completions: 3, backoffLimit: 100, template: *pod}}}
`
}

var gangs = map[string]gang{
	// JobSet knows no gangs of Volcano, so its user makes the PodGroup, or says on the JobSet how many pods must start
	// together.
	"JobSet": {operators: []string{"jobset"}, manifest: `
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: NAME, namespace: default}
spec: {minMember: 4, queue: team}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: NAME}
spec:
  failurePolicy: {maxRestarts: 100}
  replicatedJobs:
  - {name: driver, replicas: 1, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 100, template: &pod {metadata: {annotations: {volcano.sh/preemptable: "true", scheduling.k8s.io/group-name: NAME}}, spec: {schedulerName: volcano, restartPolicy: Never, ` + inEach("main") + `}}}}}
  - {name: worker, replicas: 1, template: {spec: {parallelism: 3, completions: 3, backoffLimit: 100, template: *pod}}}
`},
	"JobSet by its annotation": {operators: []string{"jobset"}, manifest: annotated("NAME", 1)},
	"LeaderWorkerSet": {operators: []string{"leaderworkerset"}, manifest: `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: NAME, annotations: {scheduling.volcano.sh/queue-name: team}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, ` + inEach("main") + `}}
`},
	"MPIJob": {operators: []string{"mpi"}, manifest: `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: NAME}
spec:
  slotsPerWorker: 1
  runPolicy: {backoffLimit: 100, schedulingPolicy: {queue: team}}
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, ` + inEach("launcher") + `}}}
    Worker: {replicas: 3, template: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, ` + inEach("worker") + `}}}
`},
	"PyTorchJob": {operators: []string{"training"}, manifest: `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: NAME}
spec:
  runPolicy: {backoffLimit: 100, schedulingPolicy: {queue: team}}
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: OnFailure, template: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, ` + inEach("pytorch") + `}}}
    Worker: {replicas: 3, restartPolicy: OnFailure, template: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, ` + inEach("pytorch") + `}}}
`},
	"RayCluster": {operators: []string{"ray"}, manifest: `
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: NAME, labels: {volcano.sh/queue-name: team}}
spec:
  rayVersion: 2.46.0
  headGroupSpec: {rayStartParams: {}, template: {metadata: {` + mayLeave + `}, spec: {` + inEach("head") + `}}}
  workerGroupSpecs:
  - {groupName: small, replicas: 3, minReplicas: 3, maxReplicas: 3, rayStartParams: {}, template: {metadata: {` + mayLeave + `}, spec: {` + inEach("worker") + `}}}
`},
	// Its PodGroup has the driver as minimum, as that of the Spark operator has: executors are surplus.
	"SparkApplication": {operators: []string{"spark"}, left: 2, manifest: `
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: NAME, namespace: default}
spec: {executor: {instances: 3}, batchSchedulerOptions: {queue: team}}
`},
	"TrainJob": {operators: []string{"trainer", "jobset"}, manifest: `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: NAME, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 4, torch: {numProcPerNode: auto}}
  podGroupPolicy: {volcano: {}}
  template:
    metadata: {annotations: {scheduling.volcano.sh/queue-name: team}}
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {backoffLimit: 100, template: {metadata: {` + mayLeave + `}, spec: {schedulerName: volcano, restartPolicy: Never, ` + inEach("node") + `}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: NAME}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: TrainingRuntime, name: NAME}
`},
}

const team = `
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec: {capability: {cpu: 8}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
`

// filler is a Job of Volcano that leaves two CPUs of the queue free.
func filler(name, class string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s, namespace: default}
spec:
  queue: team
  minAvailable: 6
  %s
  tasks:
  - replicas: 6
    name: main
    template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]}}
`, name, class)
}

// podsIn are the pods of a namespace that have not ended, by whether the name of a Job of Volcano is theirs.
func podsIn(ctx context.Context, namespace string) (ours, fillers []corev1.Pod, err error) {
	all, err := core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if p.Labels["volcano.sh/job-name"] != "" && strings.HasPrefix(p.Labels["volcano.sh/job-name"], "filler") {
			fillers = append(fillers, *p)
		} else {
			ours = append(ours, *p)
		}
	}
	return ours, fillers, nil
}

// bound are those of some pods that have a node.
func bound(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Spec.NodeName == "" })
}

// running are those that run and are not being deleted.
func running(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
	})
}

func uids(pods []corev1.Pod) []types.UID {
	var all []types.UID
	for i := range pods {
		all = append(all, pods[i].UID)
	}
	slices.Sort(all)
	return all
}

// await waits until so many pods of the gang and of the fillers run, and the queue holds what its bound pods request.
func await(t *testing.T, when string, wantOurs, wantFillers int) []corev1.Pod {
	t.Helper()
	var ours []corev1.Pod
	apitest.Eventually(t, func(ctx context.Context) error {
		all, fillers, err := podsIn(ctx, metav1.NamespaceDefault)
		if err != nil {
			return err
		}
		if n, f := len(running(all)), len(running(fillers)); n != wantOurs || f != wantFillers || len(bound(all)) != n || len(bound(fillers)) != f {
			return fmt.Errorf("%s: %d of %d pods of the job run and %d are bound; %d of %d others run and %d are bound", when,
				n, wantOurs, len(bound(all)), f, wantFillers, len(bound(fillers)))
		}
		ours = all
		queue, err := volcano.SchedulingV1beta1().Queues().Get(ctx, "team", metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := resource.MustParse(fmt.Sprint(wantOurs + wantFillers))
		if holds := queue.Status.Allocated[corev1.ResourceCPU]; holds.Cmp(want) != 0 {
			return fmt.Errorf("%s: the queue holds %s CPUs, and its pods request %s", when, &holds, &want)
		}
		return nil
	})
	return ours
}

// stays looks for a while whether no more pods of the gang have a node.
func stays(t *testing.T, when string, most int) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ours, _, err := podsIn(t.Context(), metav1.NamespaceDefault)
		if err != nil {
			t.Fatal(err)
		}
		if early := bound(ours); len(early) > most {
			t.Fatalf("%s: pod %s of a gang that does not fit is on node %s", when, early[len(early)-1].Name, early[len(early)-1].Spec.NodeName)
		}
	}
}

func TestGangsOfOperatorsLiveTheirWholeLives(t *testing.T) {
	kubectl(t, team, "apply", "-f", "-")
	t.Cleanup(func() { kubectl(t, team, "delete", "-f", "-") })
	for name, g := range gangs {
		t.Run(name, func(t *testing.T) {
			haveOperators(t, g.operators...)
			live(t, g)
		})
	}
}

// Each of two JobSets needs all of the queue. Their pods come one by one, and neither takes a part of what the other
// needs.
func TestTwoAnnotatedJobSetsDoNotBlockEachOther(t *testing.T) {
	haveOperators(t, "jobset")
	kubectl(t, team, "apply", "-f", "-")
	both := annotated("one", 2) + "---" + annotated("two", 2)
	t.Cleanup(func() {
		kubectl(t, both, "delete", "--ignore-not-found", "-f", "-")
		kubectl(t, "", "wait", "pods", "--all", "--for=delete", "--timeout=60s")
		kubectl(t, team, "delete", "-f", "-")
	})
	kubectl(t, both, "apply", "-f", "-")
	of := func(pods []corev1.Pod) map[string]int {
		count := map[string]int{}
		for i := range pods {
			count[pods[i].Labels["jobset.sigs.k8s.io/jobset-name"]]++
		}
		return count
	}
	runsAlone := func(when, deleted string) (name string) {
		apitest.Eventually(t, func(ctx context.Context) error {
			all, _, err := podsIn(ctx, metav1.NamespaceDefault)
			if err != nil {
				return err
			}
			count := of(running(all))
			for name = range count {
				if count[name] == size && len(count) == 1 && name != deleted {
					return nil
				}
			}
			return fmt.Errorf("%s: running are %v", when, count)
		})
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			all, _, err := podsIn(t.Context(), metav1.NamespaceDefault)
			if err != nil {
				t.Fatal(err)
			}
			if count := of(bound(all)); len(count) != 1 || count[name] != size {
				t.Fatalf("%s: bound are %v", when, count)
			}
		}
		return name
	}
	first := runsAlone("both are there", "")
	kubectl(t, "", "delete", "jobset", first)
	runsAlone("the first is deleted", first)
}

// live is the whole life of a gang.
func live(t *testing.T, g gang) {
	manifest := strings.ReplaceAll(g.manifest, "NAME", "gang")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", kubectl(t, "", "get", "pods,podgroups.scheduling.volcano.sh", "-o", "wide"))
			t.Logf("%s", kubectl(t, "", "get", "podgroups.scheduling.volcano.sh", "-o", "yaml"))
		}
		kubectl(t, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
		kubectl(t, "", "delete", "vcjob", "--all")
		kubectl(t, "", "delete", "pods", "--all", "--wait=false")
		kubectl(t, "", "wait", "pods", "--all", "--for=delete", "--timeout=60s")
	})
	kubectl(t, filler("filler", ""), "apply", "-f", "-")
	await(t, "before", 0, 6)

	kubectl(t, manifest, "apply", "-f", "-")
	awaitWaiting(t, "it waits")
	stays(t, "it waits", 0)
	restart(t, g.operators[0])
	stays(t, "its operator has restarted while it waits", 0)

	kubectl(t, "", "delete", "vcjob", "filler")
	before := await(t, "the queue is free", size, 0)
	restart(t, g.operators[0])
	stayRunning(t, uids(before))

	kubectl(t, filler("filler-urgent", "priorityClassName: urgent"), "apply", "-f", "-")
	await(t, "it is preempted", g.left, 6)
	if g.left == 0 {
		awaitWaiting(t, "it is preempted")
	}
	stays(t, "it is preempted", g.left)

	kubectl(t, "", "delete", "vcjob", "filler-urgent")
	awaitReplacements(t)
	await(t, "the queue is free again", size, 0)

	kubectl(t, manifest, "delete", "-f", "-")
	await(t, "it is deleted", 0, 0)
	apitest.Eventually(t, func(ctx context.Context) error {
		groups, err := volcano.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(groups.Items) > 0 {
			err = fmt.Errorf("PodGroup %s is left", groups.Items[0].Name)
		}
		return err
	})
	for _, process := range []string{"volcano-scheduler", "volcano-controllers"} {
		if err := apitest.NothingForbidden(processOf(t, process).LogPath); err != nil {
			t.Error(err)
		}
	}
}

// awaitWaiting waits until a PodGroup of the gang says that it does not fit.
func awaitWaiting(t *testing.T, when string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		groups, err := volcano.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		for i := range groups.Items {
			g := &groups.Items[i]
			for _, condition := range g.Status.Conditions {
				if condition.Type == "Unschedulable" && condition.Status == corev1.ConditionTrue && !strings.HasPrefix(g.Name, "filler") {
					return nil
				}
			}
		}
		return fmt.Errorf("%s: of %d PodGroups none of the gang says that it is unschedulable", when, len(groups.Items))
	})
}

// awaitReplacements waits until the operator has made all pods again. The controller of batch/v1 Jobs doubles its
// delay, of ten seconds, with each pod that is lost, so that it takes longer than a test is patient.
func awaitReplacements(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Second) {
		ours, _, err := podsIn(t.Context(), metav1.NamespaceDefault)
		if err != nil {
			t.Fatal(err)
		}
		if len(ours) == size {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after it was preempted, the operator has made %d of %d pods again", len(ours), size)
		}
	}
}

// stayRunning looks for a while whether the same pods run.
func stayRunning(t *testing.T, want []types.UID) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ours, _, err := podsIn(t.Context(), metav1.NamespaceDefault)
		if err != nil {
			t.Fatal(err)
		}
		if are := uids(running(ours)); !slices.Equal(are, want) {
			t.Fatalf("after a restart of the operator the pods %v run instead of %v", are, want)
		}
	}
}
