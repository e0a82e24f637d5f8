package controllers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/test/apitest"
)

// readiness is what the process answers.
func readiness(ctx context.Context, url string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// isReady waits until the process is ready, or says why it is not.
func isReady(t *testing.T, code int, text string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		of, _, err := readiness(ctx, program.ReadyURL)
		if err != nil {
			return err
		}
		got, said, err := readiness(ctx, program.ReadyURL+"/kinds")
		if err != nil || of != code || got != code || !strings.Contains(said, text) {
			return fmt.Errorf("%d, and of the kinds %d: %s, %v", of, got, said, err)
		}
		return nil
	})
}

func TestJobsGetTheirWorkloadsWhenTheDefinitionIsBack(t *testing.T) {
	namespace := namespaceFor(t, "definition")
	quotaFor(t, namespace)
	isReady(t, http.StatusOK, "ok")
	before := queuedJob(namespace, "before", 1)
	create(t, before)
	first := awaitWorkload(t, before, exists)

	text, err := os.ReadFile(filepath.Join("..", "..", "installer", "crds", "kueue.x-k8s.io_workloads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := apitest.Object(t, "", string(text))
	if err := api.Delete(apitest.Context(t), definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	apply := func() {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, definition.DeepCopy()))
		})
	}
	defer apply()
	gone(t, definition.DeepCopy())
	isReady(t, http.StatusInternalServerError, "workloads.kueue.x-k8s.io")
	during := queuedJob(namespace, "during", 1)
	create(t, during)
	awaitBatchJob(t, during, func() bool { return *during.Spec.Suspend })
	awaitEvent(t, during, "ErrorWorkloadCompose", "creating Workload")

	apply()
	isReady(t, http.StatusOK, "ok")
	if w := awaitWorkload(t, before, exists); w.UID == first.UID {
		t.Error("the Workload is the one that went with its definition")
	}
	admitWorkload(t, awaitWorkload(t, during, exists), 1)
	awaitBatchJob(t, during, func() bool { return !*during.Spec.Suspend })
}
