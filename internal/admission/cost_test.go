package admission

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAJobWithManyMistakesIsRefusedInTime asks by each of the largest lists that pass a server's bounds. To find all
// mistakes, and to put them into one sentence, took minutes.
func TestAJobWithManyMistakesIsRefusedInTime(t *testing.T) {
	_, handler := newServer(t, &shelf{}, nil)
	repeated := func(text string, number int) string { return strings.TrimSuffix(strings.Repeat(text+",", number), ",") }
	for what, tasks := range map[string]string{
		"tasks":      repeated(`{"name":"a"}`, 25_000),
		"containers": `{"name":"a","replicas":1,"template":{"spec":{"containers":[` + repeated(`{"name":"a","image":"b"}`, 25_000) + `]}}}`,
	} {
		job := `{"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"queue":"default","minAvailable":%d,"tasks":[` + tasks + `]}}`
		for _, test := range []struct{ path, operation string }{{"/jobs/validate", "CREATE"}, {"/jobs/validate", "UPDATE"}, {"/jobs/mutate", "CREATE"}} {
			path, operation := test.path, test.operation
			body := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"`+operation+`","namespace":"default",
"kind":{"group":"batch.volcano.sh","version":"v1alpha1","kind":"Job"},"resource":{"group":"batch.volcano.sh","version":"v1alpha1","resource":"jobs"},
"object":`+job+`,"oldObject":`+job+`}}`, 1, 2)
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder, began := httptest.NewRecorder(), time.Now()
			handler.ServeHTTP(recorder, request)
			if took := time.Since(began); recorder.Code != http.StatusOK || took > time.Minute {
				t.Errorf("%s of 25,000 %s: %d after %s", path, what, recorder.Code, took)
			}
			if !strings.Contains(recorder.Body.String(), "Too many: 25000: must have at most 256 items") {
				t.Errorf("%s of 25,000 %s: %.500s", path, what, recorder.Body)
			}
			t.Logf("%s of 25,000 %s took %s", path, what, time.Since(began))
		}
	}
}
