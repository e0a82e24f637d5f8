package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

func TestOurPoliciesHoldAtOnce(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		start := time.Now()
		objects, err := localcluster.ReadManifests(hekla.Installer)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Create(localcluster.WithoutPods(objects)...); err != nil {
			t.Fatal(err)
		}
		const queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
		for _, name := range []string{"default", "other"} {
			ask(t, s, 201, "POST", queues, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"`+name+`"}}`)
		}
		refused := ask(t, s, 422, "DELETE", queues+"/default", "")
		if message, _ := refused.Object["message"].(string); !strings.Contains(message, "queue can not be deleted") {
			t.Errorf("refused by another policy: %s", message)
		}
		ask(t, s, 200, "DELETE", queues+"/other", "")
		ask(t, s, 200, "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/volcano-built-in-queues", "")
		ask(t, s, 200, "DELETE", queues+"/default", "")
		if passed := time.Since(start); passed != 0 {
			t.Errorf("%s have passed", passed)
		}
	})
}

func TestAPolicyReadsItsParameters(t *testing.T) {
	serve(t, Options{}, func(t *testing.T, s *Server) {
		if err := s.Create(installed(t)...); err != nil {
			t.Fatal(err)
		}
		const policies, bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
		ask(t, s, 201, "POST", policies, `{"metadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue"},
			"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]},
			"validations":[{"expression":"object.metadata.name != params.metadata.name"}]}}`)
		ask(t, s, 201, "POST", bindings, `{"metadata":{"name":"p"},"spec":{"policyName":"p","paramRef":{"selector":{},"parameterNotFoundAction":"Allow"},"validationActions":["Deny"]}}`)
		ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"q"}}`)
		ask(t, s, 200, "DELETE", configMaps+"/q", "")
		const queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
		ask(t, s, 201, "POST", queues, `{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"q"}}`)
		ask(t, s, 422, "POST", configMaps, `{"metadata":{"name":"q"}}`)
		ask(t, s, 200, "DELETE", queues+"/q", "")
		ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"q"}}`)
	})
}

// hook answers reviews.
type hook func(*http.Request, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)

func (h hook) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	if review.Response, err = h(request, review.Request); err != nil {
		return nil, err
	}
	review.Response.UID = review.Request.UID
	answer, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	return (&Response{Code: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: answer}).HTTP(request), nil
}

func TestWebhooksAreAskedInProcess(t *testing.T) {
	var s *Server
	var isDown bool
	patch := []byte(`[{"op":"add","path":"/data","value":{"by":"webhook"}}]`)
	kind := admissionv1.PatchTypeJSONPatch
	answer := hook(func(request *http.Request, asked *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		if isDown {
			return nil, fmt.Errorf("nothing listens at %s", request.URL.Host)
		}
		switch request.URL.Path {
		case "/mutate":
			return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &kind}, nil
		default:
			// It reads while the server waits for it.
			client := http.Client{Transport: s.Loopback().Transport}
			read, err := client.Get("http://server/api/v1/namespaces/default/configmaps/first")
			if err != nil {
				return nil, err
			}
			defer func() { _ = read.Body.Close() }()
			isSecond := bytes.Contains(asked.Object.Raw, []byte("second"))
			return &admissionv1.AdmissionResponse{Allowed: !isSecond || read.StatusCode != 200}, nil
		}
	})
	serve(t, Options{Webhooks: answer}, func(t *testing.T, served *Server) {
		s = served
		for path, policy := range map[string]string{"mutating": "Ignore", "validating": "Fail"} {
			ask(t, s, 201, "POST", "/apis/admissionregistration.k8s.io/v1/"+path+"webhookconfigurations", `{"metadata":{"name":"w"},"webhooks":[{"name":"w.example.com",
				"clientConfig":{"service":{"name":"w","namespace":"default","path":"/`+strings.TrimSuffix(path, "ing")+`e"}},"admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"`+policy+`",
				"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]}`)
		}
		first := ask(t, s, 201, "POST", configMaps, `{"metadata":{"name":"first"}}`)
		if data, _ := first.Object["data"].(map[string]any); data["by"] != "webhook" {
			t.Errorf("the webhook has not changed it: %v", first)
		}
		ask(t, s, 400, "POST", configMaps, `{"metadata":{"name":"second"}}`)
		isDown = true
		down := ask(t, s, 500, "POST", configMaps, `{"metadata":{"name":"third"}}`)
		if message, _ := down.Object["message"].(string); !strings.Contains(message, "failed calling webhook") || !strings.Contains(message, "nothing listens") {
			t.Errorf("the answer is %q", message)
		}
	})
}
