package app

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// discovery serves as much of an API server as a manager asks before it starts: that there are pods.
func discovery(t *testing.T) (address string) {
	answers := map[string]any{
		"/api":  metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}},
		"/api/v1": metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
		answer, is := answers[request.URL.Path]
		if !is {
			t.Errorf("asked for %s before the start", request.URL.Path)
			http.NotFound(reply, request)
			return
		}
		reply.Header().Set("Content-Type", "application/json")
		text, _ := json.Marshal(answer)
		_, _ = reply.Write(text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestControllersOfOthersAreSetUpInOrder(t *testing.T) {
	known := []schema.GroupVersionKind{}
	refused := errors.New("the second does not fit")
	command := NewCommand(
		func(mgr manager.Manager) (err error) {
			known, _, err = mgr.GetScheme().ObjectKinds(&batch.Job{})
			return err
		},
		func(manager.Manager) error { return refused },
		func(manager.Manager) error {
			t.Error("a third is set up after the second has failed")
			return nil
		},
	)
	command.SetArgs([]string{"--master=" + discovery(t), "--leader-elect=false"})
	if err := command.ExecuteContext(t.Context()); !errors.Is(err, refused) {
		t.Errorf("the command ends with %v, want %v", err, refused)
	}
	if len(known) != 1 || known[0] != batch.GroupVersion.WithKind("Job") {
		t.Errorf("the scheme of the manager knows a Job as %v", known)
	}
}
