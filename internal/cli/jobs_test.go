package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/owner"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// defineRay makes the kinds of an operator, of which Hekla knows nothing.
func defineRay(t *testing.T) {
	t.Helper()
	var definitions []*unstructured.Unstructured
	for kind, plural := range map[string]string{"RayCluster": "rayclusters", "RayJob": "rayjobs"} {
		definitions = append(definitions, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".ray.io"},
			"spec": map[string]any{"group": "ray.io", "scope": "Namespaced", "names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
		}})
	}
	if err := cluster.Apply(t.Context(), definitions); err != nil {
		t.Fatal(err)
	}
}

// ray makes an object of an operator.
func ray(t *testing.T, kind, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetOwnerReferences(owners)
	create(t, o)
	return o
}

func controlledBy(o client.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	return *metav1.NewControllerRef(o, kind)
}

func podGroup(namespace, name, queue string, least int32, owners ...metav1.OwnerReference) *scheduling.PodGroup {
	return &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners},
		Spec: scheduling.PodGroupSpec{MinMember: least, Queue: queue}}
}

// waitsFor makes a PodGroup say why it waits.
func waitsFor(t *testing.T, g *scheduling.PodGroup, phase scheduling.PodGroupPhase, reason, message string) {
	t.Helper()
	g.Status.Phase = phase
	g.Status.Conditions = []scheduling.PodGroupCondition{
		{Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now()},
		{Type: scheduling.PodGroupQueuedType, Status: corev1.ConditionTrue, Reason: "WaitsInQueue", Message: "place 3 of the jobs in queue research that wait for nodes", LastTransitionTime: metav1.Now()},
	}
	updateStatus(t, g)
}

// allJobs makes a job of every kind.
func allJobs(t *testing.T, n string) {
	t.Helper()
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "train"}, Spec: batch.JobSpec{Queue: "research", MinAvailable: 2, SchedulerName: "volcano",
		Tasks: []batch.TaskSpec{{Name: "worker", Replicas: 3, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}}}
	create(t, job)
	ofTrain := podGroup(n, "train-group", "research", 2, controlledBy(job, batch.SchemeGroupVersion.WithKind("Job")))
	sweep := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "sweep", Labels: map[string]string{v1beta2.QueueNameLabel: "team-queue"}}, Spec: batchv1.JobSpec{
		Suspend: new(bool), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	create(t, sweep)
	workload := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "job-sweep-abcde", OwnerReferences: []metav1.OwnerReference{controlledBy(sweep, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: v1beta2.WorkloadSpec{QueueName: "team-queue", PodSets: []v1beta2.PodSet{{Name: "main", Count: 4, Template: sweep.Spec.Template}}}}
	rayJob := ray(t, "RayJob", n, "daily")
	rayCluster := ray(t, "RayCluster", n, "daily-x7k2p", controlledBy(rayJob, rayJob.GroupVersionKind()))
	big := ray(t, "RayCluster", n, "big")
	ofDaily := podGroup(n, "ray-daily-x7k2p-pg", "research", 5, controlledBy(rayCluster, rayCluster.GroupVersionKind()))
	ofBig := podGroup(n, "ray-big-pg", "research", 8, controlledBy(big, big.GroupVersionKind()))
	alone := podGroup(n, "alone", "default", 1)
	create(t, ofTrain, workload, ofDaily, ofBig, alone)
	waitsFor(t, ofTrain, scheduling.PodGroupInqueue, "NotEnoughRoom", "2 of 3 pods fit")
	waitsFor(t, ofBig, scheduling.PodGroupPending, "TooLargeForAnyNode", "cpu 900 of 8")
	ofDaily.Status.Phase, ofDaily.Status.Running = scheduling.PodGroupRunning, 5
	updateStatus(t, ofDaily)
	conditions.Pend(workload, v1beta2.ReasonWaitingForQuota, "no quota of cpu", time.Now())
	updateStatus(t, workload)
}

func TestAllJobsAreInOneListUnderTheNamesOfTheirUsers(t *testing.T) {
	defineRay(t)
	n := namespace(t)
	allJobs(t, n)
	mustSay(t, "hekla jobs -n "+n, `
Name State Reason Queue Pods Age
Job/sweep Pending WaitingForQuota team-queue 0/4 AGE
PodGroup/alone Pending - default 0/1 AGE
RayCluster/big Pending TooLargeForAnyNode research 0/8 AGE
RayJob/daily Running - research 5/5 AGE
vcjob/train Pending NotEnoughRoom research 0/3 AGE`)
	mustSay(t, "hekla jobs -n "+n+" --reason TooLargeForAnyNode -o wide --no-headers", `
RayCluster/big Pending TooLargeForAnyNode research 0/8 AGE - place 3 of the jobs in queue research that wait for nodes cpu 900 of 8`)
	mustSay(t, "hekla jobs -n "+n+" -q research --sort pods --no-headers", `
RayCluster/big Pending TooLargeForAnyNode research 0/8 AGE
RayJob/daily Running - research 5/5 AGE
vcjob/train Pending NotEnoughRoom research 0/3 AGE`)
	mustSay(t, "hekla jobs -n "+n+" --state running --no-headers", "RayJob/daily Running - research 5/5 AGE")
	mustSay(t, "hekla jobs -n "+n+" -o name --sort reason -q research", `
podgroup.scheduling.volcano.sh/ray-daily-x7k2p-pg
job.batch.volcano.sh/train
podgroup.scheduling.volcano.sh/ray-big-pg`)
	var list struct{ Items []struct{ Kind string } }
	if got := run(t, "hekla jobs -o json -n "+n); got.err != nil || json.Unmarshal([]byte(got.out), &list) != nil || len(list.Items) != 5 || list.Items[0].Kind != "Workload" {
		t.Errorf("as JSON it is %s, %v", got.out, got.err)
	}
	if got := run(t, "hekla jobs -A"); got.err != nil || !strings.Contains(normal(got.out), n+" RayCluster/big Pending") {
		t.Errorf("of all namespaces: %v\n%s", got.err, got.out)
	}
	mustSay(t, "hekla jobs -n "+n+" --queue nothing", "No jobs found in namespace "+n)
	mustFail(t, "hekla jobs --sort size", "--sort=size: it must be one of age, name, pods, queue, reason, state")
	mustFail(t, "hekla jobs -w -o json", "--watch shows a table")
}

func TestAWatchedListAddsARowForEachChange(t *testing.T) {
	n := namespace(t)
	group := podGroup(n, "alone", "default", 1)
	create(t, group)
	list := start(t, "hekla jobs -w -n "+n)
	list.await(t, "PodGroup/alone Pending - default 0/1 AGE")
	group.Status.Phase, group.Status.Running = scheduling.PodGroupRunning, 1
	updateStatus(t, group)
	list.await(t, "PodGroup/alone Running - default 1/1 AGE")
	list.end(t)
	if said := list.said(); strings.Count(said, "\n") != 2 || strings.Count(said, "Name State") != 1 {
		t.Errorf("it says\n%s", said)
	}
}

func TestWhatStandsForAnObjectIsFoundThroughItsOwners(t *testing.T) {
	defineRay(t)
	n := namespace(t)
	allJobs(t, n)
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, test := range []struct {
		kind schema.GroupVersionKind
		name string
		want owner.Job
	}{
		{batch.SchemeGroupVersion.WithKind("Job"), "train", owner.Job{Name: "train-group"}},
		{batchv1.SchemeGroupVersion.WithKind("Job"), "sweep", owner.Job{Name: "job-sweep-abcde", IsWorkload: true}},
		{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}, "big", owner.Job{Name: "ray-big-pg"}},
		{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}, "daily-x7k2p", owner.Job{Name: "ray-daily-x7k2p-pg"}},
		{schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}, "daily", owner.Job{Name: "ray-daily-x7k2p-pg"}},
		{scheduling.SchemeGroupVersion.WithKind("PodGroup"), "alone", owner.Job{Name: "alone"}},
	} {
		found, err := owner.Find(t.Context(), api, test.kind, n, test.name)
		if err != nil || len(found) != 1 || found[0] != test.want {
			t.Errorf("%s %s: found %+v, %v, want %+v", test.kind.Kind, test.name, found, err, test.want)
		}
	}
	if _, err := owner.Find(t.Context(), api, deployment, n, "nothing"); err == nil {
		t.Error("what does not exist is found")
	}
	ray(t, "RayCluster", n, "idle")
	if _, err := owner.Find(t.Context(), api, schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}, n, "idle"); err == nil || !strings.Contains(err.Error(), "no PodGroup") {
		t.Errorf("of an object without pods: %v", err)
	}
}

func TestTryTakesAnyOwner(t *testing.T) {
	defineRay(t)
	n := namespace(t)
	allJobs(t, n)
	for _, words := range []string{"raycluster/big", "RayCluster/big", "rayclusters.ray.io/big", "job/train", "vcjob/train", "podgroup/alone", "job/sweep", "wl/job-sweep-abcde"} {
		mustFail(t, "hekla try "+words+" -n "+n, "the scheduler does not answer")
	}
	ray(t, "RayCluster", n, "idle")
	mustFail(t, "hekla try raycluster/idle -n "+n, "RayCluster/idle: ", "no PodGroup")
	mustFail(t, "hekla try raycluster/nothing -n "+n, "nothing", "not found")
	mustFail(t, "hekla try job/nothing -n "+n, "there is no job", "nothing", "hekla jobs -n "+n)
	mustFail(t, "hekla try queue/research -n "+n, "a Queue is no job")
	mustFail(t, "hekla try big -n "+n, `"big" is not TYPE/NAME`, "hekla try --help")
	mustFail(t, "hekla try job/train -f job.yaml", "tried by itself")
	mustFail(t, "hekla try", "try what?", "TYPE/NAME")
	if got := run(t, "hekla __complete try -n "+n+" raycluster/b"); !strings.HasPrefix(got.out, "raycluster/big\n") {
		t.Errorf("raycluster/b is completed to %q", got.out)
	}
}

// No scheduler answers here: what is asked about shows in how that is said.
func TestWhyTakesAnyOwner(t *testing.T) {
	defineRay(t)
	n := namespace(t)
	allJobs(t, n)
	const unanswered = "the scheduler does not answer"
	for _, words := range []string{"raycluster/big", "RayCluster/big", "rayclusters.ray.io/big", "raycluster big", "job/train", "vcjob/train", "podgroup/alone", "queue/research", "wl/job-sweep-abcde"} {
		mustFail(t, "hekla why "+words+" -n "+n, unanswered)
	}
	mustFail(t, "hekla why raycluster/nothing -n "+n, "nothing", "not found")
	mustFail(t, "hekla why teapot/big -n "+n, "teapot")
	mustFail(t, "hekla why namespace/"+n, "is no job")
	mustFail(t, "hekla why big", `"big" is not TYPE/NAME`)
	for begun, want := range map[string]string{
		"why raycluster/b": "raycluster/big\n", "why workload job-": "job-sweep-abcde\n", "why job tr": "train\n", "jobs --sort a": "age\n",
	} {
		words := strings.Fields(begun)
		line := "hekla __complete " + strings.Join(append(words[:len(words)-1:len(words)-1], "-n", n, words[len(words)-1]), " ")
		if strings.HasPrefix(begun, "jobs") {
			line = "hekla __complete " + begun
		}
		if got := run(t, line); !strings.HasPrefix(got.out, want) {
			t.Errorf("%s: %q, %v", line, got.out, got.err)
		}
	}
}

func TestBothSidesHaveAVersion(t *testing.T) {
	for _, line := range []string{"hekla version", "hekla --version"} {
		got := run(t, line)
		if got.err != nil || !strings.HasPrefix(got.out, "Version: ") || !strings.Contains(got.out, "\nKubernetes Version: v1.") || !strings.Contains(got.errOut, "scheduler of the cluster is not known") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if got := run(t, "hekla version --client"); got.err != nil || strings.Contains(got.out, "Kubernetes") || got.errOut != "" {
		t.Errorf("with --client: %+v", got)
	}
}

// What says which cluster is meant is a flag of every verb, and so is how much is logged.
func TestFlagsOfAllVerbsAreFlagsOfAllVerbs(t *testing.T) {
	for _, verb := range verbsOf(program("hekla", genericiooptions.NewTestIOStreamsDiscard())) {
		verb.InheritedFlags()
		for _, name := range []string{"kubeconfig", "context", "cluster", "user", "as", "as-group", "request-timeout", "master", "v"} {
			if verb.Flag(name) == nil && verb.Name() != "replay" { // it asks no cluster
				t.Errorf("%s has no --%s", verb.CommandPath(), name)
			}
		}
	}
}
