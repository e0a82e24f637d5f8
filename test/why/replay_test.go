package why

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/diagnosis"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// says waits until a command says something.
func says(t *testing.T, line, want string) string {
	t.Helper()
	var last string
	apitest.Eventually(t, func(ctx context.Context) error {
		var err error
		if last, err = said(ctx, line); err == nil && !strings.Contains(last, want) {
			err = fmt.Errorf("%s: no %q in\n%s", line, want, last)
		}
		return err
	})
	return last
}

// saysAll waits until a command says some parts, wherever the lines of the table end.
func saysAll(t *testing.T, line string, wants ...string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		text, err := said(ctx, line)
		if err != nil {
			return err
		}
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				return fmt.Errorf("%s: no %q in\n%s", line, want, text)
			}
		}
		return nil
	})
}

func TestASnapshotIsReplayedToTheSameDecision(t *testing.T) {
	apply(t, "10-promised.yaml")
	says(t, "hekla why job stuck -n default", "PromisedToOthers")
	before, hidden, after := filepath.Join(t.TempDir(), "before.json.gz"), filepath.Join(t.TempDir(), "hidden.json"), filepath.Join(t.TempDir(), "after.json.gz")
	for _, line := range []string{"hekla snapshot -f " + before, "hekla snapshot --hide-names -f " + hidden} {
		if text, err := said(t.Context(), line); err != nil {
			t.Fatal(text, err)
		}
	}
	// The victim leaves, and the job gets its node.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first-worker-0"}}
	if err := kube.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	says(t, "hekla why job urgent -n default", "pod default/urgent-worker-0 was bound to why-1")
	says(t, "hekla why job first -n default", "Comes back  yes: Job first makes pods again that were evicted")
	if text, err := said(t.Context(), "hekla snapshot -f "+after); err != nil {
		t.Fatal(text, err)
	}
	text, err := run(t.Context(), "hekla", "replay", before, "--expect", after)
	if err != nil || !strings.HasPrefix(text, "2 decisions of the cluster are those of the replay, 0 are not; the replay has 0 further ones") {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err = run(t.Context(), "hekla", "replay", before); err != nil || !strings.Contains(text, ": bind pod default/urgent-worker-0 to why-1") {
		t.Errorf("%v\n%s", err, text)
	}
	// Without names it is the same decision.
	content, err := os.ReadFile(hidden)
	for _, name := range []string{"urgent", "why-1"} {
		if at := strings.Index(string(content), name); err != nil || at >= 0 {
			t.Errorf("a name is in the file: %v, …%s…", err, string(content)[max(at-200, 0):max(at, 0)+60])
		}
	}
	if text, err = run(t.Context(), "hekla", "replay", hidden); err != nil || strings.Count(text, ": bind pod ") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAChangedConfigurationIsTriedOnTheLiveModel(t *testing.T) {
	apply(t, "12-victims-opted-out.yaml")
	says(t, "hekla why job stuck -n default", "VictimsOptedOut")
	in, err := os.ReadFile(filepath.Join(folder, "configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config corev1.ConfigMap
	if err := yaml.Unmarshal(in, &config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "new.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config.Data["volcano-scheduler.conf"])
	text, err := said(t.Context(), "hekla try --config "+file)
	if err != nil || !strings.HasPrefix(text, "Nothing differs") {
		t.Errorf("the same configuration: %v\n%s", err, text)
	}
	write(config.Data["volcano-scheduler.conf"] + "compatibility:\n  preemptableByDefault: true\n")
	text, err = said(t.Context(), "hekla try --config "+file)
	if err != nil || !strings.Contains(text, ": evict pod default/first-worker-0 from why-1 for default/stuck by rule J1") || !strings.Contains(text, "\nNext: ") {
		t.Errorf("all pods may be evicted: %v\n%s", err, text)
	}
	write("actions: nonsense")
	if text, err = said(t.Context(), "hekla try --config "+file); err == nil {
		t.Errorf("a configuration that cannot be used: %s", text)
	}
	says(t, "hekla why job stuck -n default", "VictimsOptedOut")
}

func TestAChangedQueueIsTriedOnTheLiveModel(t *testing.T) {
	apply(t, "04-over-capability.yaml")
	says(t, "hekla why job stuck -n default", "OverCapability")
	file := filepath.Join(t.TempDir(), "queue.yaml")
	queue := "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: why}\nspec: {weight: 1, capability: {cpu: 8}}\n"
	if err := os.WriteFile(file, []byte(queue), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := said(t.Context(), "hekla try -f "+file)
	if err != nil || !strings.Contains(text, "+ cycle 1: admit job default/stuck in queue why") || !strings.Contains(text, ": bind pod default/stuck-worker-0 to why-1") {
		t.Errorf("%v\n%s", err, text)
	}
	says(t, "hekla why job stuck -n default", "OverCapability")

	// It is so indeed, and who watches is told.
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	watched := make(chan string, 1)
	go func() {
		text, _ := said(watching, "hekla why job stuck -n default -w")
		watched <- text
	}()
	time.Sleep(time.Second) // it asks first
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"capability":{"cpu":"8"}}}`))
	if err := kube.Patch(t.Context(), &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "why"}}, patch); err != nil {
		t.Fatal(err)
	}
	says(t, "hekla why job stuck -n default", "pod default/stuck-worker-0 was bound to why-1")
	time.Sleep(3 * time.Second) // it asks every two
	stop()
	if text := <-watched; !strings.Contains(text, "\n\nJob default/stuck ") || !strings.Contains(text, "waits: OverCapability\n") || !strings.Contains(text, "does not wait: Running\n") {
		t.Errorf("watching said\n%s", text)
	}
}

func TestTheSchedulerIsDiagnosed(t *testing.T) {
	apply(t, "01-missing-queue.yaml")
	says(t, "hekla why job stuck -n default", "QueueNotFound")
	text := says(t, "hekla diag --gang 2xcpu=1", "jobs name queue nowhere, which does not exist")
	for _, want := range []string{"hekla queue create nowhere", "  nowhere  Missing  1 ", "default/stuck  QueueNotFound", "gangs of 2 pods could start now, at most (cpu=1;", "Cycles: ", "  patch podgroups/status ",
		`actions: "enqueue, admit, allocate, preempt, reclaim, backfill"`, "\nNext: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "enableJobOrder") {
		t.Errorf("it has switches with their defaults:\n%s", text)
	}
	var reply api.Reply[diagnosis.Diagnosis]
	raw, err := said(t.Context(), "hekla diag -o json")
	if err == nil {
		err = json.Unmarshal([]byte(raw), &reply)
	}
	if err != nil || reply.Kind != "Diagnosis" || len(reply.Answer.Cycles.Recent) == 0 || len(reply.Answer.Health.MissingRights) > 0 || reply.Answer.Health.RightsUnknown != "" {
		t.Errorf("%v\n%+v", err, reply.Answer.Health)
	}
	if text, err := said(t.Context(), "hekla diag --gang eight"); err == nil {
		t.Errorf("a gang that cannot be read: %s", text)
	}
	t.Log("\n" + text)
}

func TestPodsQueuesAndNodesAreExplained(t *testing.T) {
	apply(t, "05-gang-short-by-one.yaml")
	says(t, "hekla why job stuck -n default", "GangShort")
	for line, want := range map[string][]string{
		"hekla why pod stuck-worker-0 -n default": {"Pod default/stuck-worker-0 is Pending", "GangShort", "Next: hekla why job "},
		"hekla why queue default":                 {"Queue default is Open", "default/stuck", "Next: hekla why job stuck -n default"},
		"hekla why node why-1":                    {"Node why-1: ready true", "cpu", "Next: kubectl describe node why-1"},
	} {
		text, err := said(t.Context(), line)
		for _, part := range want {
			if err != nil || !strings.Contains(text, part) {
				t.Errorf("%s: no %q, %v in\n%s", line, part, err, text)
			}
		}
		for _, format := range []string{"json", "yaml"} {
			var reply map[string]any
			raw, err := said(t.Context(), line+" -o "+format)
			if err == nil {
				err = yaml.Unmarshal([]byte(raw), &reply) // which reads JSON, too
			}
			if answer, _ := reply["answer"].(map[string]any); err != nil || len(answer) == 0 || reply["apiVersion"] != "answers.hekla.sh/v1alpha1" {
				t.Errorf("%s -o %s: %v\n%s", line, format, err, raw)
			}
		}
	}
	for line, next := range map[string]string{
		"hekla why pod nothing -n default": "kubectl -n default get pod nothing", "hekla why queue nothing": "hekla queue list",
		"hekla why node nothing": "kubectl get nodes", "hekla why workload nothing -n default": "kubectl -n default get workloads.kueue.x-k8s.io",
		"hekla why job nothing -n default": "hekla jobs -n default",
	} {
		if text, err := said(t.Context(), line); err == nil || !strings.Contains(err.Error(), "is not known to the scheduler; \""+next) {
			t.Errorf("%s: %v, want it to say %s\n%s", line, err, next, text)
		}
	}
	for line, role := range map[string]string{"hekla why job stuck -n default": "view", "hekla why queue default -n default": "view", "hekla why node why-1": "volcano-ask-all",
		"hekla diag": "volcano-ask-all", "hekla snapshot": "volcano-ask-all"} {
		if text, err := said(t.Context(), line+" --as nobody"); err == nil || !strings.Contains(err.Error(), "; the ClusterRole "+role+" has the right") {
			t.Errorf("%s, without rights: %v\n%s", line, err, text)
		}
	}
	if text, err := said(t.Context(), "hekla why job stuck -n default -o xml"); err == nil {
		t.Errorf("-o xml: %s", text)
	}
}

// What exists is tried under another name, next to what is there, and nothing is kept of it.
func TestAJobThatExistsIsTriedOnceMore(t *testing.T) {
	// Room is kept for the one that is there.
	t.Run("a Job of Volcano", func(t *testing.T) {
		apply(t, "05-gang-short-by-one.yaml")
		ready(t, "05-gang-short-by-one.yaml")
		says(t, "hekla try job/stuck -n default", "Job default/stuck-again would wait for admission\n  Reason    OverCluster: ")
		says(t, "hekla try vcjob/stuck -n default", "\nNext: hekla why vcjob/stuck -n default\n")
	})
	t.Run("the PodGroup of a pod", func(t *testing.T) {
		apply(t, "19-inactive-clusterqueue.yaml")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}, Spec: corev1.PodSpec{SchedulerName: "volcano",
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("2")}}}}}}
		if err := kube.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kube.Delete(context.Background(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
		says(t, "hekla why pod alone -n default", "why-1")
		text := says(t, "hekla try pod/alone -n default", " would start now\n")
		if group := "podgroup-" + string(pod.UID); !strings.HasPrefix(text, "Job default/"+group+"-again would") || !strings.Contains(text, group+"-again-0 on why-1") {
			t.Errorf("of PodGroup %s it says\n%s", group, text)
		}
	})
	t.Run("a Workload", func(t *testing.T) {
		apply(t, "19-inactive-clusterqueue.yaml")
		ready(t, "19-inactive-clusterqueue.yaml")
		text := says(t, "hekla try job/stuck -n default", "-again would wait: ")
		if !strings.HasPrefix(text, "Workload default/job-stuck-") || !strings.Contains(text, "\nNext: hekla why job/stuck -n default\n") {
			t.Errorf("it says\n%s", text)
		}
	})
}

func TestAWorkloadPriorityClassThatDoesNotExistIsNamed(t *testing.T) {
	apply(t, "19-inactive-clusterqueue.yaml")
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Value: 1}
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mistyped",
		Labels: map[string]string{kueue.QueueNameLabel: "why", kueue.PriorityClassLabel: "prodution"}},
		Spec: batch.JobSpec{SchedulerName: "volcano", Tasks: []batch.TaskSpec{{Name: "a", Replicas: 1, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}}}
	for _, object := range []client.Object{class, job} {
		if err := kube.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kube.Delete(context.Background(), object); err != nil {
				t.Error(err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: other, namespace: default, labels: {kueue.x-k8s.io/queue-name: why, kueue.x-k8s.io/priority-class: prodution}}\n" +
		"spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "there is no WorkloadPriorityClass prodution; did you mean production?"
	saysAll(t, "hekla try -f "+file, "Job default/other would wait: WaitsForWorkload", "is not made: "+want, "Next: kubectl get workloadpriorityclasses.kueue.x-k8s.io")
	for _, line := range []string{"hekla why job mistyped -n default", "hekla why vcjob/mistyped -n default"} {
		text := says(t, line, "Job default/mistyped cannot start as things are: WaitsForWorkload\n")
		if !strings.Contains(strings.Join(strings.Fields(text), " "), " does not exist yet: "+want) || !strings.HasSuffix(text, "\nNext: kubectl get workloadpriorityclasses.kueue.x-k8s.io\n") {
			t.Errorf("%s says\n%s", line, text)
		}
	}
	says(t, "hekla why job mistyped -n default -o json", `"code": "WaitsForWorkload"`)
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if s := &job.Status.State; s.Reason != "WaitsForWorkload" || !strings.HasSuffix(s.Message, " does not exist yet: "+want) {
		t.Errorf("its status says %s: %s", s.Reason, s.Message)
	}
}

// What is tried is answered like what was submitted, also where its pods are refused, or its Workload is not made.
func TestWhatATriedJobNamesAndDoesNotExistIsNamed(t *testing.T) {
	apply(t, "19-inactive-clusterqueue.yaml")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "production"}, Value: 1}
	if err := kube.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.Delete(context.Background(), class); err != nil {
			t.Error(err)
		}
	})
	const volcano, batch = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: other, namespace: default, labels: {LABELS}}\n" +
		"spec: {schedulerName: volcano, minAvailable: 1JOB, tasks: [{name: a, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]POD}}}]}\n",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: other, namespace: default, labels: {LABELS}}\n" +
			"spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]POD}}}\n"
	const queue, lost = "kueue.x-k8s.io/queue-name: why", ", priorityClassName: prodution"
	const noClass = "there is no PriorityClass prodution; did you mean production?"
	for name, tt := range map[string]struct {
		kind, labels, job, pod string
		want                   []string
	}{
		"the class of a pod":                 {volcano, "", "", lost, []string{"FailedCreate: ", "no PriorityClass with name prodution was found", noClass}},
		"the class of a Job":                 {volcano, "", lost, "", []string{"FailedCreate: ", noClass}},
		"the queue":                          {volcano, "", ", queue: defaut", "", []string{"QueueNotFound: ", "there is no queue defaut; did you mean default?"}},
		"the class of a pod in a LocalQueue": {volcano, queue, "", lost, []string{"WaitsForWorkload", "is not made: " + noClass, "Next: kubectl get priorityclasses"}},
		"the class of a Job of Kubernetes":   {batch, queue, "", lost, []string{"WaitsForWorkload", "is not made: " + noClass, "Next: kubectl get priorityclasses"}},
		"the LocalQueue":                     {volcano, queue + "y", "", "", []string{"Misconfigured", "there is no LocalQueue whyy in namespace default; did you mean why?"}},
		"the LocalQueue of Kubernetes":       {batch, queue + "y", "", "", []string{"Misconfigured", "there is no LocalQueue whyy in namespace default; did you mean why?"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "job.yaml")
			if err := os.WriteFile(file, []byte(strings.NewReplacer("LABELS", tt.labels, "JOB", tt.job, "POD", tt.pod).Replace(tt.kind)), 0o600); err != nil {
				t.Fatal(err)
			}
			saysAll(t, "hekla try -f "+file, append(tt.want, "Job default/other would wait")...)
		})
	}
}
