package app

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestAnOldConfigurationDoesNotReplaceTheOneThatWasRead has an API server whose cache is behind, and which sends no
// lists by watches, as those before Kubernetes 1.32.
func TestAnOldConfigurationDoesNotReplaceTheOneThatWasRead(t *testing.T) {
	of := func(version, text string) corev1.ConfigMap {
		return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", ResourceVersion: version}, Data: map[string]string{configurationKey: text}}
	}
	listed := make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := func(code int, object any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			if err := json.NewEncoder(w).Encode(object); err != nil {
				t.Error(err)
			}
		}
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			answer(http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		case query.Get("watch") != "":
			once.Do(func() { close(listed) })
			<-r.Context().Done()
		case r.URL.Path == "/api/v1/namespaces/n/configmaps/c":
			answer(http.StatusOK, of("2", "new"))
		default:
			now := of("2", "new")
			if query.Get("resourceVersion") == "0" {
				now = of("1", "old")
			}
			answer(http.StatusOK, corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
				ListMeta: metav1.ListMeta{ResourceVersion: now.ResourceVersion}, Items: []corev1.ConfigMap{now}})
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	c := configMap{client: client, namespace: "n", name: "c"}
	first := c.read(ctx)
	if string(first.text) != "new" {
		t.Fatalf("read was %q: %v", first.text, first.problem)
	}
	changed := make(chan document, 10)
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx, first, func(d document) { changed <- d }) })
	select {
	case <-listed:
	case <-ctx.Done():
		t.Error("nothing was listed")
	}
	time.Sleep(100 * time.Millisecond) // for an event to arrive
	cancel()
	watching.Wait()
	select {
	case d := <-changed:
		t.Errorf("it was replaced by %q: %v", d.text, d.problem)
	default:
	}
}
