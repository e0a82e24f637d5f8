package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// The folder volcano holds manifests in the form in which Volcano's users have them, for the frameworks and the
// features that its own examples show. Each runs to the end that its form promises; nothing in it is made for Hekla, so
// the test ends the pods.
var madeForVolcano = map[string]func(*testing.T){
	"job.yaml":              anEvictedPodRestartsTheJob,
	"mpi.yaml":              theEndOf("hello-mpi", "mpimaster", 3),
	"tensorflow.yaml":       theEndOf("dist-mnist", "worker", 3),
	"start-dependency.yaml": theEndOf("mindspore", "worker", 3),
	"deployment.yaml":       thePodsRunInTheQueueOfTheDeployment,
}

// denied are those that Volcano's webhooks refuse, and what of the answer tells the user what is wrong.
var denied = map[string][]string{
	"denied-duplicated-policy-event.yaml": {"spec.policies", "duplicate event PodFailed  across different policy"},
	"denied-duplicated-task-name.yaml":    {"spec.tasks", "duplicated task name scheduler"},
	"denied-too-large-minimum.yaml":       {"job 'minAvailable' should not be greater than total replicas in tasks"},
}

func TestManifestsMadeForVolcanoRunToTheirEnd(t *testing.T) {
	haveNodes(t, 2)
	files, err := filepath.Glob("volcano/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(madeForVolcano)+len(denied) {
		t.Errorf("there are %d files for %d tests", len(files), len(madeForVolcano)+len(denied))
	}
	for file, test := range madeForVolcano {
		t.Run(file, func(t *testing.T) {
			tidyUp(t)
			kubectl(t, "apply", "-f", filepath.Join("volcano", file))
			test(t)
			nothingWasForbidden(t)
		})
	}
	for file, words := range denied {
		t.Run(file, func(t *testing.T) {
			tidyUp(t)
			_, refusal := system.Kubectl(t.Context(), "apply", "-f", filepath.Join("volcano", file))
			// Here is no webhook. What the definition leaves to it the Job controller refuses, in an Event.
			apitest.Eventually(t, func(ctx context.Context) error {
				events, err := system.Kubectl(ctx, "get", "events", "--output=jsonpath={.items[*].message}")
				for _, word := range words {
					if !strings.Contains(fmt.Sprint(refusal)+events, word) {
						return fmt.Errorf("nobody says %q: %v, %v", word, refusal, err)
					}
				}
				return nil
			})
		})
	}
}

// theEndOf ends the pods of one task of a Job once all its pods run, which completes it.
func theEndOf(job, task string, pods int) func(*testing.T) {
	return func(t *testing.T) {
		awaitRunning(t, job, pods)
		kubectl(t, "annotate", "pods", "-l", batchv1alpha1.JobNameKey+"="+job+","+batchv1alpha1.TaskSpecKey+"="+task, "hekla.sh/run-for=100ms")
		awaitPhase(t, job, batchv1alpha1.Completed)
		// What still ran is taken away with it.
		awaitRunning(t, job, 0)
	}
}

func anEvictedPodRestartsTheJob(t *testing.T) {
	awaitRunning(t, "web", 4)
	for _, kind := range []string{"service/web", "configmap/web-svc", "secret/web-ssh"} {
		kubectl(t, "get", kind)
	}
	kubectl(t, "delete", "pod", "web-default-nginx-2", "--wait=false")
	apitest.Eventually(t, func(ctx context.Context) error {
		job, err := jobOf(ctx, "web")
		if err == nil && (job.Status.Version == 0 || job.Status.State.Phase != batchv1alpha1.Running) {
			err = fmt.Errorf("Job web is %s in version %d, want it to run in a later one", job.Status.State.Phase, job.Status.Version)
		}
		return err
	})
	awaitRunning(t, "web", 4)
}

func thePodsRunInTheQueueOfTheDeployment(t *testing.T) {
	t.Cleanup(func() {
		if _, err := system.Kubectl(context.Background(), "delete", "deployment", "deploy-with-volcano"); err != nil {
			t.Error(err)
		}
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=nginx"})
		if err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		queue, err := batch.SchedulingV1beta1().Queues().Get(ctx, "test", metav1.GetOptions{})
		if err == nil && (running != 3 || queue.Status.Running != 1) {
			err = fmt.Errorf("%d pods run, and queue test counts %d PodGroups that run; want 3 and 1", running, queue.Status.Running)
		}
		return err
	})
}
