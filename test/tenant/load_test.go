package tenant

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

// memoryLimit is what the installer allows the webhook server, in bytes.
func memoryLimit(t *testing.T) int64 {
	t.Helper()
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" || object.GetName() != "volcano-admission" {
			continue
		}
		deployment := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
			t.Fatal(err)
		}
		if limit := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(); limit > 0 {
			return limit
		}
	}
	t.Fatal("the installer does not limit the memory of the webhook server")
	return 0
}

// mostMemory is the most that the webhook server has had in memory so far, in bytes.
func mostMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", hooks.PID))
	if err != nil {
		t.Fatalf("the webhook server is gone: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// review asks whether a Job may be made.
func review(job string) []byte {
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","namespace":"default",
"kind":{"group":"batch.volcano.sh","version":"v1alpha1","kind":"Job"},"resource":{"group":"batch.volcano.sh","version":"v1alpha1","resource":"jobs"},
"object":{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"queue":"default","tasks":[%s]}}}}`, job)
}

const oneTask = `{"name":"a","replicas":1,"template":{"spec":{"containers":[{"name":"a","image":"b"%s}]}}}`

func ask(ctx context.Context, client *http.Client, path string, body []byte) (code int, answer string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hooks.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), errors.Join(err, response.Body.Close())
}

// TestNoLoadTakesTheWebhookServerMoreMemoryThanItMayHave sends the running server large requests of many kinds, in
// parallel and repeatedly. With the memory limit of the installer, the kernel would end it if it used more.
func TestNoLoadTakesTheWebhookServerMoreMemoryThanItMayHave(t *testing.T) {
	limit := memoryLimit(t)
	// The API server sends this one for any user who may create a Job, before it checks the schema.
	tenant := tenantOf(t, "load")
	err := tenant.Create(apitest.Context(t), apitest.Object(t, "load", "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {tasks: [{}"+strings.Repeat(",{}", 200_000)+"]}"))
	expect(t, "a Job of 200,001 tasks", err, "failed calling webhook")
	variables := strings.TrimSuffix(strings.Repeat(`{"name":"A","value":"`+strings.Repeat("x", 1000)+`"},`, 6000), ",")
	empty := func(number int) string { return strings.TrimSuffix(strings.Repeat("{},", number), ",") }
	bodies := map[string][]byte{
		"of six megabytes of text":           review(fmt.Sprintf(oneTask, `,"env":[`+variables+`]`)),
		"of as many empty tasks as are read": review(empty(59_000)),
		"of as many containers":              review(fmt.Sprintf(oneTask, `},`+empty(59_000)+`,{"name":"z"`)),
		"of more":                            review(empty(2_000_000)),
		"of nothing much":                    review(fmt.Sprintf(oneTask, "")),
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: 0, MaxIdleConnsPerHost: 200}} //nolint:gosec // it is on this machine
	var group sync.WaitGroup
	var mutex sync.Mutex
	codes, slowest := map[string]int{}, time.Duration(0)
	until := time.Now().Add(10 * time.Second)
	for what, body := range bodies {
		for worker := range 12 {
			path := []string{"/jobs/mutate", "/jobs/validate"}[worker%2]
			group.Go(func() {
				for time.Now().Before(until) {
					began := time.Now()
					code, _, err := ask(t.Context(), client, path, body)
					mutex.Lock()
					slowest = max(slowest, time.Since(began))
					codes[fmt.Sprintf("%s: %d", what, code)]++
					if err != nil && len(body) < 1<<16 { // who is refused before all is sent may see the connection end
						t.Errorf("%s: %v", what, err)
					}
					mutex.Unlock()
				}
			})
		}
	}
	group.Wait()
	t.Logf("answers: %v; the slowest took %s; the server had %d MiB of %d", codes, slowest, mostMemory(t)>>20, limit>>20)
	if most := mostMemory(t); most > limit {
		t.Errorf("the server took %d MiB, and may have %d", most>>20, limit>>20)
	}
	for said := range maps.Keys(codes) {
		switch code := said[strings.LastIndex(said, " ")+1:]; code {
		case "200", "413", "503", "400", "0": // 400 if it comes too slowly, 0 if the connection has ended meanwhile
		default:
			t.Error(said)
		}
	}
	if codes["of more: 200"] != 0 {
		t.Errorf("too many objects are not refused: %v", codes)
	}
	// Under load, the server may have been too busy to read any of them. Without load, it says what is wrong.
	apitest.Eventually(t, func(ctx context.Context) error {
		code, answer, err := ask(ctx, client, "/jobs/validate", bodies["of more"])
		if err == nil && code != http.StatusRequestEntityTooLarge {
			err = fmt.Errorf("too many objects: %d %s", code, answer)
		}
		return err
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		code, answer, err := ask(ctx, client, "/jobs/validate", bodies["of nothing much"])
		if err == nil && (code != http.StatusOK || !strings.Contains(answer, `"allowed":true`)) {
			err = fmt.Errorf("%d %s", code, answer)
		}
		return err
	})
}
