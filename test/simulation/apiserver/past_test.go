package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

func names(t testing.TB, list *unstructured.Unstructured) string {
	t.Helper()
	items, err := list.ToList()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, item := range items.Items {
		found = append(found, item.GetName())
	}
	return strings.Join(found, " ")
}

func TestACacheAnswersFromThePast(t *testing.T) {
	var at int64
	options := Options{CacheRevision: func(resource schema.GroupResource, oldest, current int64) int64 {
		if resource.Resource != "configmaps" || oldest > current {
			t.Errorf("asked for %s at %d to %d", resource, oldest, current)
		}
		return at
	}}
	serve(t, options, func(t *testing.T, s *Server) {
		ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
		at = s.Revision()
		ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"b"}}`)
		ask(t, s, 200, "DELETE", configMaps+"/a", "")
		for query, want := range map[string]string{
			"": "b", "?resourceVersion=0": "a", "?resourceVersion=0&limit=1": "a",
			fmt.Sprintf("?resourceVersion=%d", at+1): "a b", fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", at): "a",
		} {
			if got := names(t, ask(t, s, 200, "GET", configMaps+query, "")); got != want {
				t.Errorf("%s lists %q, want %q", query, got, want)
			}
		}
		ask(t, s, 200, "GET", configMaps+"/a?resourceVersion=0", "")
		ask(t, s, 404, "GET", configMaps+"/b?resourceVersion=0", "")
		ask(t, s, 504, "GET", configMaps+fmt.Sprintf("?resourceVersion=%d", at+9), "")
		// A watch from there first shows the past, and then what has happened since.
		cursor, _ := s.Watch(request(t, "GET", configMaps+"?watch=1&resourceVersion=0", ""))
		var events []string
		for frame, ok := cursor.Next(); ok; frame, ok = cursor.Next() {
			events = append(events, string(frame[:14]))
		}
		if got := strings.Join(events, " "); got != `{"type":"ADDED {"type":"ADDED {"type":"DELET` {
			t.Errorf("the events are %s", got)
		}
	})
}

func TestWhatIsCompactedIsGone(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		var versions []string
		for i := range 4 {
			versions = append(versions, ask(t, s, 201, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"m%d"}}`, i)).GetResourceVersion())
		}
		first := ask(t, s, 200, "GET", configMaps+"?limit=1", "")
		slow, _ := s.Watch(request(t, "GET", configMaps+"?watch=1&resourceVersion="+versions[0], ""))
		ask(t, s, 200, "DELETE", configMaps+"/m0", "")
		if err := s.Compact(s.Revision()); err != nil {
			t.Fatal(err)
		}
		if err := s.Compact(s.Revision() + 1); err == nil {
			t.Error("the future is compacted")
		}
		ask(t, s, 410, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion="+versions[1], "")
		expired := ask(t, s, 410, "GET", configMaps+"?limit=1&continue="+first.UnstructuredContent()["metadata"].(map[string]any)["continue"].(string), "")
		if token, _, _ := unstructured.NestedString(expired.Object, "metadata", "continue"); token == "" {
			t.Errorf("there is no token for an inconsistent rest: %v", expired)
		}
		ask(t, s, 200, "GET", configMaps+"?resourceVersion="+versions[1], "") // not older than
		if got := names(t, ask(t, s, 200, "GET", configMaps, "")); got != "m1 m2 m3" {
			t.Errorf("there is %q", got)
		}
		late, _ := s.Watch(request(t, "GET", configMaps+"?watch=1&resourceVersion="+versions[1], ""))
		for _, cursor := range []*Cursor{slow, late} {
			if frame, ok := cursor.Next(); !ok || !strings.Contains(string(frame), `"code":410`) || !cursor.IsClosed() {
				t.Errorf("a watch goes on with %s", frame)
			}
		}
	})
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	run := func(seed int64, reads int) (all string) {
		serve(t, Options{Seed: seed}, func(t *testing.T, s *Server) {
			cursor, _ := s.Watch(request(t, "GET", "/api/v1/namespaces/default/pods?watch=1", ""))
			for range reads {
				ask(t, s, 200, "GET", "/api/v1/namespaces", "")
			}
			for range 3 {
				made := ask(t, s, 201, "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"generateName":"a-"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
				ask(t, s, 201, "POST", "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"`+made.GetName()+`"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
			}
			time.Sleep(time.Minute)
			ask(t, s, 200, "DELETE", "/api/v1/namespaces/default/pods", "")
			for frame, ok := cursor.Next(); ok; frame, ok = cursor.Next() {
				all += string(frame)
			}
			all += string(s.Handle(request(t, "GET", "/apis/batch/v1/jobs", "")).Body)
		})
		return all
	}
	first, second, other := run(3, 0), run(3, 2), run(4, 0)
	if first != second {
		t.Errorf("it gives\n%s\nand\n%s", first, second)
	}
	if first == other {
		t.Error("another seed gives the same")
	}
}

func TestEventsGoAfterAnHour(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		const events = "/api/v1/namespaces/default/events"
		ask(t, s, 201, "POST", events, `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"reason":"R"}`)
		time.Sleep(time.Hour - time.Minute)
		ask(t, s, 200, "GET", events+"/e", "")
		time.Sleep(10 * time.Minute)
		ask(t, s, 404, "GET", events+"/e", "")
	})
}

func TestClientsSpeakProtobuf(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
		}})
		if err != nil {
			t.Fatal(err)
		}
		pods := client.CoreV1().Pods("default")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil || made.Spec.RestartPolicy != corev1.RestartPolicyAlways {
			t.Fatalf("%v %v", made, err)
		}
		stale := made.DeepCopy()
		made.Labels = map[string]string{"a": "b"}
		if _, err := pods.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		stale.Labels = map[string]string{"a": "c"}
		if _, err := pods.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("a stale update is answered with %v", err)
		}
		if listed, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"}); err != nil || len(listed.Items) != 1 {
			t.Errorf("%v %v", listed, err)
		}
	})
}

func TestRequestsAreWrittenIntoTheAuditLog(t *testing.T) {
	var lines []string
	options := Options{Audit: func(event *auditinternal.Event) {
		lines = append(lines, fmt.Sprint(event.Verb, " ", event.ObjectRef.Resource, " ", event.User.Username, " ", event.ResponseStatus.Code, " ", event.ResponseObject != nil))
	}}
	serve(t, options, func(t *testing.T, s *Server) {
		lines = nil
		ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"a"}}`)
		ask(t, s, 404, "GET", configMaps+"/b", "")
		if got, want := fmt.Sprint(lines), "[create configmaps system:admin 201 true get configmaps system:admin 404 true]"; got != want {
			t.Errorf("the log has %s, want %s", got, want)
		}
	})
}

func TestWatchesAreForWatchAlone(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		ask(t, s, 400, "GET", configMaps+"?watch=1", "")
		refusals := map[string]int{configMaps + "?watch=1&fieldSelector=data.a%3Db": http.StatusBadRequest, "/api/v1/nothing?watch=1": http.StatusNotFound, configMaps + "?watch=1&resourceVersion=x": http.StatusInternalServerError}
		for path, code := range refusals {
			if cursor, response := s.Watch(request(t, "GET", path, "")); cursor != nil || response.Code != code {
				t.Errorf("%s is answered with %d %s, want %d", path, response.Code, response.Body, code)
			}
		}
	})
}
