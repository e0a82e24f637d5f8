package apiserver

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// serve runs a test with a server, in a bubble.
func serve(t *testing.T, options Options, test func(*testing.T, *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s)
	})
}

func request(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	made, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	made.Header.Set("Content-Type", "application/json")
	return made
}

// ask makes a request and checks its code.
func ask(t testing.TB, s *Server, code int, method, path, body string) *unstructured.Unstructured {
	t.Helper()
	response := s.Handle(request(t, method, path, body))
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(response.Body, &object.Object); err != nil || response.Code != code {
		t.Fatalf("%s %s is answered with %d, want %d: %s (%v)", method, path, response.Code, code, response.Body, err)
	}
	return object
}

const aPod = `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`

func TestAPodIsMadeChangedAndDeleted(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		made := ask(t, s, 201, "POST", "/api/v1/namespaces/default/pods", aPod)
		if policy, _, _ := unstructured.NestedString(made.Object, "spec", "restartPolicy"); policy != "Always" || made.GetUID() == "" {
			t.Errorf("defaults or the UID are missing: %v", made)
		}
		ask(t, s, 409, "POST", "/api/v1/namespaces/default/pods", aPod)
		ask(t, s, 201, "POST", "/api/v1/namespaces/default/pods/a/binding", `{"metadata":{"name":"a"},"target":{"kind":"Node","name":"n"}}`)
		ask(t, s, 409, "POST", "/api/v1/namespaces/default/pods/a/binding", `{"metadata":{"name":"a"},"target":{"kind":"Node","name":"m"}}`)
		bound := ask(t, s, 200, "GET", "/api/v1/namespaces/default/pods/a", "")
		if node, _, _ := unstructured.NestedString(bound.Object, "spec", "nodeName"); node != "n" {
			t.Errorf("it is bound to %q", node)
		}
		leaving := ask(t, s, 200, "DELETE", "/api/v1/namespaces/default/pods/a", "")
		if leaving.GetDeletionTimestamp() == nil {
			t.Errorf("it does not end gracefully: %v", leaving)
		}
		ask(t, s, 200, "DELETE", "/api/v1/namespaces/default/pods/a", `{"gracePeriodSeconds":0}`)
		ask(t, s, 404, "GET", "/api/v1/namespaces/default/pods/a", "")
		ask(t, s, 404, "POST", "/api/v1/namespaces/none/pods", aPod)
	})
}

func TestAWatchDeliversWhatItsHolderAsksFor(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		cursor, refused := s.Watch(request(t, "GET", "/api/v1/pods?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=5", ""))
		if cursor == nil {
			t.Fatalf("%d %s", refused.Code, refused.Body)
		}
		next := func(want string) {
			t.Helper()
			frame, ok := cursor.Next()
			if !ok && want != "" || !strings.Contains(string(frame), want) {
				t.Errorf("the next event is %s, want one with %s", frame, want)
			}
		}
		next(`"k8s.io/initial-events-end":"true"`)
		if cursor.Pending() != 0 {
			t.Error("there is an event")
		}
		ask(t, s, 201, "POST", "/api/v1/namespaces/default/pods", aPod)
		ask(t, s, 200, "DELETE", "/api/v1/namespaces/default/pods/a", `{"gracePeriodSeconds":0}`)
		if n := cursor.Pending(); n != 3 {
			t.Errorf("%d events wait, want 3", n)
		}
		next(`"type":"ADDED"`)
		next(`"type":"MODIFIED"`)
		next(`"type":"DELETED"`)
		if frame, ok := cursor.Bookmark(); !ok || !strings.Contains(string(frame), `"type":"BOOKMARK"`) {
			t.Errorf("the bookmark is %s", frame)
		}
		if frame := cursor.Expire(); !strings.Contains(string(frame), `"code":410`) || !cursor.IsClosed() {
			t.Errorf("the end is %s", frame)
		}
	})
}
