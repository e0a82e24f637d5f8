package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	flowv1alpha1 "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// awaitFlow waits until a JobFlow is as the condition wants it, and returns it.
func awaitFlow(t *testing.T, name string, condition func(*flowv1alpha1.JobFlowStatus) bool) *flowv1alpha1.JobFlow {
	t.Helper()
	var last *flowv1alpha1.JobFlow
	apitest.Eventually(t, func(ctx context.Context) error {
		flow, err := batch.FlowV1alpha1().JobFlows(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err == nil && !condition(&flow.Status) {
			err = fmt.Errorf("JobFlow %s is %+v", name, flow.Status)
		}
		last = flow
		return err
	})
	return last
}

// began is when the first pod of a Job started, ended when the last one did.
func began(t *testing.T, job string) metav1.Time { return extreme(t, job, false) }
func ended(t *testing.T, job string) metav1.Time { return extreme(t, job, true) }

func extreme(t *testing.T, job string, isLast bool) metav1.Time {
	t.Helper()
	pods, err := podsOf(t.Context(), job)
	if err != nil || len(pods) == 0 {
		t.Fatalf("Job %s has %d pods (%v)", job, len(pods), err)
	}
	var found metav1.Time
	for i := range pods {
		at := pods[i].CreationTimestamp
		if isLast {
			for _, condition := range pods[i].Status.Conditions {
				if condition.Type == corev1.PodReady {
					at = condition.LastTransitionTime
				}
			}
		}
		if found.IsZero() || isLast == found.Before(&at) {
			found = at
		}
	}
	return found
}

func theFlowRunsStepByStep(t *testing.T) {
	haveNodes(t, 2)
	apply(t, "07-job-flow.yaml")
	awaitFlow(t, "nightly", func(status *flowv1alpha1.JobFlowStatus) bool {
		return status.State.Phase == flowv1alpha1.Running && strings.Contains(status.State.Message, "flow train waits for prepare, which is Running")
	})
	awaitFlow(t, "nightly", func(status *flowv1alpha1.JobFlowStatus) bool {
		// Both run: watch has not waited until train was done.
		return slices.Equal(status.RunningJobs, []string{"nightly-train", "nightly-watch"})
	})
	flow := awaitFlow(t, "nightly", func(status *flowv1alpha1.JobFlowStatus) bool { return status.State.Phase == flowv1alpha1.Succeed })
	if want := []string{"nightly-prepare", "nightly-report", "nightly-train", "nightly-watch"}; !slices.Equal(flow.Status.CompletedJobs, want) {
		t.Errorf("the Jobs %v are Completed, want %v", flow.Status.CompletedJobs, want)
	}
	train, err := jobOf(t.Context(), "nightly-train")
	if err != nil {
		t.Fatal(err)
	}
	container := train.Spec.Tasks[0].Template.Spec.Containers[0]
	if train.Status.Succeeded != 3 || train.Spec.MinAvailable != 3 || container.Resources.Requests.Cpu().Value() != 1 || container.Resources.Requests.Memory().Value() != 1<<30 {
		t.Errorf("the patched Job has %d pods that succeeded, and asks for %+v", train.Status.Succeeded, container.Resources.Requests)
	}
	for _, pair := range [][2]string{{"nightly-prepare", "nightly-train"}, {"nightly-train", "nightly-report"}, {"nightly-watch", "nightly-report"}} {
		if end, begin := ended(t, pair[0]), began(t, pair[1]); begin.Before(&end) {
			t.Errorf("%s began at %s, %s ended at %s", pair[1], begin, pair[0], end)
		}
	}
}

// volcanoTemplate is a template as in Volcano's own example of a flow, but for how long a node without containers plays
// that the pod works.
const volcanoTemplate = `
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: NAME}
spec:
  minAvailable: 1
  schedulerName: volcano
  priorityClassName: high-priority
  policies: [{event: PodEvicted, action: RestartJob}]
  plugins: {ssh: [], env: [], svc: []}
  maxRetry: 5
  queue: default
  tasks:
  - replicas: 1
    name: default-nginx
    template:
      metadata: {name: web, annotations: {hekla.sh/run-for: 1s}}
      spec:
        containers:
        - image: nginx:1.14.2
          command: [sh, -c, sleep 10s]
          imagePullPolicy: IfNotPresent
          name: nginx
          resources: {requests: {cpu: "1"}}
        restartPolicy: OnFailure
---`

const volcanoFlow = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high-priority}
value: 1000
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: test, namespace: default}
spec:
  jobRetainPolicy: delete
  flows:
  - name: a
  - name: b
    dependsOn: {targets: ['a']}
  - name: c
    dependsOn: {targets: ['a']}
  - name: d
    dependsOn: {targets: ['b', 'c']}
`

func TestTheFlowOfVolcanosExampleSucceedsAndItsJobsGo(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	var text strings.Builder
	for _, name := range []string{"a", "b", "c", "d"} {
		text.WriteString(strings.Replace(volcanoTemplate, "NAME", name, 1))
	}
	text.WriteString(volcanoFlow)
	file := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
	flow := awaitFlow(t, "test", func(status *flowv1alpha1.JobFlowStatus) bool { return status.State.Phase == flowv1alpha1.Succeed })
	if want := []string{"test-a", "test-b", "test-c", "test-d"}; !slices.Equal(flow.Status.CompletedJobs, want) {
		t.Errorf("the Jobs %v are Completed, want %v", flow.Status.CompletedJobs, want)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		for _, name := range flow.Status.CompletedJobs {
			if _, err := jobOf(ctx, name); !apierrors.IsNotFound(err) {
				return fmt.Errorf("Job %s is still there (%v)", name, err)
			}
		}
		return nil
	})
	if output := kubectl(t, "get", "jf,jt", "--no-headers"); !strings.Contains(output, "jobflow.flow.volcano.sh/test   Succeed") {
		t.Errorf("kubectl shows\n%s", output)
	}
	nothingWasForbidden(t)
}
