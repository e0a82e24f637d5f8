package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/admission/held"
	"hekla.sh/hekla/pkg/apis"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// shelf is what readers see: queues and namespaces that are simply there, or an error.
type shelf struct {
	queues     []scheduling.Queue
	namespaces map[string]map[string]string // annotations by name
	groups     []scheduling.PodGroup
	pods       []metav1.PartialObjectMetadata // that have a node and have not finished
	err        error
}

func (s *shelf) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	switch list := list.(type) {
	case *scheduling.QueueList:
		list.Items = s.queues
	case *scheduling.PodGroupList:
		list.Items, list.Continue = onePage(s.groups, asked)
	case *metav1.PartialObjectMetadataList:
		in := slices.DeleteFunc(slices.Clone(s.pods), func(p metav1.PartialObjectMetadata) bool { return p.Namespace != asked.Namespace })
		list.Items, list.Continue = onePage(in, asked)
	default:
		return fmt.Errorf("nobody should list %T", list)
	}
	return s.err
}

// onePage is a single object, and where the next one is found: so every list has pages.
func onePage[T any](all []T, asked *client.ListOptions) ([]T, string) {
	at, _ := strconv.Atoi(asked.Continue)
	if asked.Limit == 0 || at >= len(all) {
		return all, ""
	}
	if at+1 == len(all) {
		return all[at:], ""
	}
	return all[at : at+1], strconv.Itoa(at + 1)
}

func (s *shelf) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if s.err != nil {
		return s.err
	}
	namespace, is := object.(*metav1.PartialObjectMetadata)
	annotations, isThere := s.namespaces[key.Name]
	if !is || !isThere {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), key.Name)
	}
	namespace.Annotations = annotations
	return nil
}

// newServer is a server with all paths, whose cache and API server show the same.
func newServer(t testing.TB, shown *shelf, edit func(*settings)) (*server, http.Handler) {
	t.Helper()
	s := &server{scheme: runtime.NewScheme(), cached: shown, live: shown, owners: held.NewFinder(shown)}
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), apis.AddToScheme(s.scheme)); err != nil {
		t.Fatal(err)
	}
	now := &settings{schedulerNames: []string{"volcano", "other"}, maxQueueDepth: 5, keepsUsedQueues: true, shortestCronJobInterval: 10 * time.Second}
	if edit != nil {
		edit(now)
	}
	s.settings.Store(now)
	return s, newMux(s, services())
}

// asked is a request in YAML: the object it is about and, for an update, the one before.
type asked struct {
	path      string
	operation admissionv1.Operation
	namespace string
	object    string
	before    string
}

func (a asked) review(t testing.TB) []byte {
	t.Helper()
	raw := func(text string) runtime.RawExtension {
		if text == "" {
			return runtime.RawExtension{}
		}
		content, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		return runtime.RawExtension{Raw: content}
	}
	request := &admissionv1.AdmissionRequest{UID: "7", Operation: a.operation, Namespace: a.namespace, Object: raw(a.object), OldObject: raw(a.before)}
	if a.operation == admissionv1.Delete {
		request.Object, request.OldObject = request.OldObject, request.Object
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// post sends a body as an API server does.
func post(handler http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// ask returns what is answered.
func ask(t testing.TB, handler http.Handler, a asked) *admissionv1.AdmissionResponse {
	t.Helper()
	recorder := post(handler, a.path, a.review(t))
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), review); err != nil || recorder.Code != http.StatusOK || review.Response == nil {
		t.Fatalf("%d, %v: %s", recorder.Code, err, recorder.Body)
	}
	if review.Response.UID != "7" {
		t.Errorf("the answer is to request %q", review.Response.UID)
	}
	return review.Response
}

// refusal is what a user reads, empty if nothing is wrong.
func refusal(response *admissionv1.AdmissionResponse) string {
	if response.Allowed {
		return ""
	}
	return response.Result.Message
}

// patched returns the object after the answer, as a T.
func patched[T any](t *testing.T, a asked, response *admissionv1.AdmissionResponse) *T {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(a.object))
	if err != nil {
		t.Fatal(err)
	}
	if !response.Allowed {
		t.Fatalf("refused: %s", response.Result.Message)
	}
	if len(response.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if content, err = patch.Apply(content); err != nil {
			t.Fatalf("%v: %s", err, response.Patch)
		}
	}
	result := new(T)
	if err := json.Unmarshal(content, result); err != nil {
		t.Fatal(err)
	}
	return result
}

// queues reads queues from YAML.
func queues(t testing.TB, texts ...string) []scheduling.Queue {
	t.Helper()
	var list []scheduling.Queue
	for _, text := range texts {
		var queue scheduling.Queue
		if err := yaml.UnmarshalStrict([]byte(text), queue.Plain()); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		list = append(list, queue)
	}
	return list
}
