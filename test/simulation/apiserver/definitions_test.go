package apiserver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster"
)

// installed are our definitions.
func installed(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	objects, err := localcluster.ReadManifests(os.DirFS("../../../installer/crds"))
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d definitions: %v", len(objects), err)
	}
	return objects
}

func TestOurObjectsAreServedByTheirDefinitions(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		start := time.Now()
		if err := s.Create(installed(t)...); err != nil {
			t.Fatal(err)
		}
		const queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
		made := ask(t, s, 201, "POST", queues, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"},"spec":{"nonsense":1},"status":{"state":"Open"}}`)
		if _, isThere, _ := unstructured.NestedFieldNoCopy(made.Object, "spec", "nonsense"); isThere || made.Object["status"] != nil {
			t.Errorf("unknown fields and the status are not dropped: %v", made)
		}
		if made.GetGeneration() != 1 {
			t.Errorf("the generation is %d", made.GetGeneration())
		}
		ask(t, s, 422, "PUT", queues+"/q", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q","resourceVersion":"`+made.GetResourceVersion()+`"},"spec":{"weight":-1}}`)
		changed := ask(t, s, 200, "PUT", queues+"/q/status", `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q","resourceVersion":"`+made.GetResourceVersion()+`"},"spec":{"weight":7},"status":{"state":"Open"}}`)
		if weight, _, _ := unstructured.NestedInt64(changed.Object, "spec", "weight"); weight == 7 || changed.GetGeneration() != 1 {
			t.Errorf("the status changes the spec: %v", changed)
		}
		if none := s.Handle(request(t, "GET", "/apis/scheduling.volcano.sh/v1beta1/none", "")); none.Code != 404 {
			t.Errorf("what is not there is answered with %d", none.Code)
		}
		ask(t, s, 200, "GET", "/apis/scheduling.volcano.sh", "")
		if listed, _ := json.Marshal(ask(t, s, 200, "GET", "/apis", "")); !strings.Contains(string(listed), "kueue.x-k8s.io") {
			t.Error("discovery does not know our groups")
		}
		if passed := time.Since(start); passed != 0 {
			t.Errorf("%s have passed", passed)
		}
	})
}

func TestObjectsGoWithTheirDefinition(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		if err := s.Create(installed(t)...); err != nil {
			t.Fatal(err)
		}
		const (
			groups     = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
			definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"
		)
		ask(t, s, 201, "POST", groups, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"free"}}`)
		ask(t, s, 201, "POST", groups, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"held","finalizers":["example.com/held"]}}`)
		ask(t, s, 200, "DELETE", definition, "")
		ask(t, s, 404, "GET", groups+"/free", "")
		held := ask(t, s, 200, "GET", groups+"/held", "")
		ask(t, s, 403, "POST", groups, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"late"}}`)
		held.SetFinalizers(nil)
		ask(t, s, 200, "PUT", groups+"/held", mustJSON(t, held))
		ask(t, s, 404, "GET", definition, "")
		if err := s.Create(installed(t)[12]); err != nil {
			t.Fatal(err)
		}
		ask(t, s, 201, "POST", groups, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"free"}}`)
	})
}

func TestAServerStartsFromASnapshot(t *testing.T) {
	serve(t, Options{Seed: 1}, func(t *testing.T, first *Server) {
		if err := first.Create(installed(t)...); err != nil {
			t.Fatal(err)
		}
		const queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
		ask(t, first, 201, "POST", queues, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"}}`)
		from := first.Snapshot()
		ask(t, first, 200, "DELETE", queues+"/q", "")
		var names [2]string
		for i := range names {
			s, err := New(Options{Seed: 7, From: from})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			read := ask(t, s, 200, "GET", queues+"/q", "")
			ask(t, s, 200, "PUT", queues+"/q", mustJSON(t, read))
			if s.Revision() != from.revision {
				t.Errorf("a change of nothing makes revision %d after %d", s.Revision(), from.revision)
			}
			ask(t, s, 410, "GET", queues+"?resourceVersion=2&resourceVersionMatch=Exact", "")
			made := ask(t, s, 201, "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"generateName":"a-"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			names[i] = made.GetName() + string(made.GetUID())
		}
		if names[0] != names[1] {
			t.Errorf("the same seed makes %v", names)
		}
	})
}

func mustJSON(t testing.TB, object *unstructured.Unstructured) string {
	t.Helper()
	body, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
