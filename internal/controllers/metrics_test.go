package controllers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// numbers scrapes the controllers, and returns the series that have a label with a value.
func numbers(ctx context.Context, label, value string) (map[string]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, numbersURL, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %w: %s", response.Status, err, text)
	}
	series := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if label == "" && !strings.HasPrefix(line, "#") || strings.Contains(name, fmt.Sprintf("%s=%q", label, value)) {
			series[name] = number
		}
	}
	return series, nil
}

// awaitNumbers waits until exactly these series have the label with the value.
func awaitNumbers(t *testing.T, label, value string, want map[string]string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		got, err := numbers(ctx, label, value)
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			err = fmt.Errorf("%v, want %v", got, want)
		}
		return err
	})
}

func TestJobsAreCountedWhereTheyEndUntilTheyAreGone(t *testing.T) {
	namespace, other := namespaceFor(t, "numbers"), namespaceFor(t, "numbers")
	const latency = "volcano_controller_job_to_pod_creation_latency_milliseconds_count"
	before, err := numbers(apitest.Context(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	good, bad := newJob(namespace, "good", task("a", 2)), newJob(other, "bad", task("a", 1))
	bad.Spec.MaxRetry = 1
	pods := start(t, good, "good-a-0", "good-a-1")
	after, err := numbers(apitest.Context(t), "", "")
	if err != nil || after[latency] == before[latency] {
		t.Errorf("%s pods were timed, %v, as before", after[latency], err)
	}
	finish(t, corev1.PodSucceeded, pods["good-a-0"], pods["good-a-1"])
	awaitPhase(t, good, batch.Completed)
	fail(t, start(t, bad, "bad-a-0")["bad-a-0"], 1)
	awaitPhase(t, bad, batch.Failed)

	completed := fmt.Sprintf(`volcano_job_completed_phase_count{job_name="%s/good",queue_name="default"}`, namespace)
	failed := fmt.Sprintf(`volcano_job_failed_phase_count{job_name="%s/bad",queue_name="default"}`, other)
	awaitNumbers(t, "job_name", namespace+"/good", map[string]string{completed: "1"})
	awaitNumbers(t, "job_name", other+"/bad", map[string]string{failed: "1"})
	if err := api.Delete(apitest.Context(t), good); err != nil {
		t.Fatal(err)
	}
	awaitNumbers(t, "job_name", namespace+"/good", map[string]string{})
	awaitNumbers(t, "job_name", other+"/bad", map[string]string{failed: "1"})
}

func TestPodGroupsAreCountedUntilTheirQueueIsGone(t *testing.T) {
	namespace := namespaceFor(t, "numbers")
	queue := newQueue(t, namespace, "")
	for name, phase := range map[string]scheduling.PodGroupPhase{
		"a": "", "b": scheduling.PodGroupInqueue, "c": scheduling.PodGroupInqueue, "d": scheduling.PodGroupRunning,
	} {
		group := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: scheduling.PodGroupSpec{Queue: queue.Name}}
		create(t, group)
		if phase != "" {
			setPhase(t, group, phase)
		}
	}
	want := map[string]string{}
	for phase, count := range map[string]string{"pending": "1", "inqueue": "2", "running": "1", "unknown": "0", "completed": "0"} {
		want[fmt.Sprintf("volcano_queue_pod_group_%s_count{queue_name=%q}", phase, queue.Name)] = count
	}
	awaitNumbers(t, "queue_name", queue.Name, want)
	if err := api.Delete(apitest.Context(t), queue); err != nil {
		t.Fatal(err)
	}
	awaitNumbers(t, "queue_name", queue.Name, map[string]string{})
}

func TestJobFlowsAreCountedByNamespace(t *testing.T) {
	namespace := namespaceFor(t, "numbers")
	withTemplates(t, namespace, "main")
	good := newFlow(namespace, "good", flowOf("main"))
	create(t, good)
	complete(t, namespace, "good-main")
	awaitFlowPhase(t, good, flowapi.Succeed)
	bad := newFlow(namespace, "bad", flowOf("main"))
	create(t, bad)
	_, pods := admit(t, namespace, "bad-main", 1)
	finish(t, corev1.PodRunning, pods...)
	fail(t, pods[0], 1)
	awaitFlowPhase(t, bad, flowapi.Failed)
	awaitNumbers(t, "jobflow_namespace", namespace, map[string]string{
		fmt.Sprintf("volcano_jobflow_succeed_phase_count{jobflow_namespace=%q}", namespace): "1",
		fmt.Sprintf("volcano_jobflow_failed_phase_count{jobflow_namespace=%q}", namespace):  "1",
	})
}
