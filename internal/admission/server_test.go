package admission

import (
	"bytes"
	"context"
	"hekla.sh/hekla/internal/admission/held"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	conversion "k8s.io/kubernetes/pkg/apis/admissionregistration/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func validOptions() Options {
	return Options{Enabled: Paths(), SchedulerNames: []string{"volcano"}, MaxQueueDepth: 5, Namespace: "system", ServiceName: "hooks"}
}

func TestOptionsThatCannotBeMeantAreNamed(t *testing.T) {
	for _, test := range []struct {
		edit func(*Options)
		want string
	}{
		{func(*Options) {}, ""},
		{func(o *Options) { o.ServiceName, o.Namespace, o.URL = "", "", "https://127.0.0.1:8443" }, ""},
		{func(o *Options) { o.CertificateFile, o.KeyFile, o.BundleFile = "a", "b", "c" }, ""},
		{func(o *Options) { o.Enabled = []string{"/jobs/dance"} }, `there is no admission "/jobs/dance"; there are /jobs/mutate, /jobs/validate,`},
		{func(o *Options) { o.SchedulerNames = nil }, "a scheduler without a name has no pods"},
		{func(o *Options) { o.MaxQueueDepth = 0 }, "queues 0 levels deep are none; at least 1 is needed"},
		{func(o *Options) { o.CertificateFile = "a" }, "a certificate needs all of its files"},
		{func(o *Options) { o.URL = "http://a" }, `"http://a" is no URL that an API server would call`},
		{func(o *Options) { o.URL = "https://" }, `"https://" is no URL that an API server would call`},
		{func(o *Options) { o.ServiceName = "" }, "neither a URL nor a Service"},
	} {
		options := validOptions()
		test.edit(&options)
		err := options.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestVolcanosDefaultIsServed(t *testing.T) {
	for _, path := range DefaultEnabled() {
		if !slices.Contains(Paths(), path) {
			t.Errorf("there is no %s", path)
		}
	}
}

// allWebhooks are those that a server registers that serves everything, has resource groups, and goes by odd names.
func allWebhooks(t *testing.T, options Options) ([]admissionregistrationv1.MutatingWebhook, []admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	groups, err := parseGroups([]byte(`resourceGroups: [{resourceGroup: "it's <\"odd\">", object: {value: ["a/b: c"]}}, {object: {key: namespace, value: [lab]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	return options.webhooks(services(), options.settings(groups, held.Known{IsOn: true}), []byte("bundle"))
}

func TestTheAPIServerFindsNothingWrongWithWhatIsRegistered(t *testing.T) {
	for _, edit := range []func(*Options){
		func(*Options) {}, func(o *Options) { o.URL = "https://127.0.0.1:9" }, func(o *Options) { o.SchedulerNames = []string{`a"b`, "c\\d"} },
	} {
		options := validOptions()
		edit(&options)
		mutating, validating := allWebhooks(t, options)
		if len(mutating)+len(validating) != len(services()) {
			t.Errorf("%d of %d webhooks are registered", len(mutating)+len(validating), len(services()))
		}
		m, v := &admissionregistration.MutatingWebhookConfiguration{}, &admissionregistration.ValidatingWebhookConfiguration{}
		stored := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: mutating}
		storedToo := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: validating}
		stored.Name, storedToo.Name = ConfigurationName, ConfigurationName
		if err := conversion.Convert_v1_MutatingWebhookConfiguration_To_admissionregistration_MutatingWebhookConfiguration(stored, m, nil); err != nil {
			t.Fatal(err)
		}
		if err := conversion.Convert_v1_ValidatingWebhookConfiguration_To_admissionregistration_ValidatingWebhookConfiguration(storedToo, v, nil); err != nil {
			t.Fatal(err)
		}
		if problems := append(validation.ValidateMutatingWebhookConfiguration(m), validation.ValidateValidatingWebhookConfiguration(v)...); len(problems) > 0 {
			t.Error(problems.ToAggregate())
		}
	}
}

func TestWebhooksForObjectsOfOthersAreIgnoredWithoutAnAnswer(t *testing.T) {
	mutating, validating := allWebhooks(t, validOptions())
	for _, hook := range mutating {
		validating = append(validating, admissionregistrationv1.ValidatingWebhook{Name: hook.Name, Rules: hook.Rules, FailurePolicy: hook.FailurePolicy,
			MatchConditions: hook.MatchConditions, NamespaceSelector: hook.NamespaceSelector, TimeoutSeconds: hook.TimeoutSeconds})
	}
	for _, hook := range validating {
		rule := hook.Rules[0]
		isOurs := strings.HasSuffix(rule.APIGroups[0], ".volcano.sh")
		switch {
		case len(hook.Rules) != 1 || len(rule.Resources) != 1 || strings.Contains(rule.Resources[0], "*") || strings.Contains(rule.Resources[0], "/"):
			t.Errorf("%s is sent %v", hook.Name, hook.Rules)
		case !isOurs && *hook.FailurePolicy != admissionregistrationv1.Ignore:
			t.Errorf("%s can stop %s of others", hook.Name, rule.Resources[0])
		case !isOurs && (len(hook.MatchConditions) == 0 || len(hook.NamespaceSelector.MatchExpressions) == 0):
			t.Errorf("%s is sent %s of others", hook.Name, rule.Resources[0])
		case slices.Contains(rule.Operations, update) && len(hook.MatchConditions) == 0:
			t.Errorf("%s is sent updates that change nothing", hook.Name)
		case *hook.TimeoutSeconds > 5:
			t.Errorf("%s lets a user wait for %d s", hook.Name, *hook.TimeoutSeconds)
		}
	}
}

func TestWithoutResourceGroupsNoPodIsSentToBeChanged(t *testing.T) {
	options := validOptions()
	mutating, _ := options.webhooks(services(), options.settings(nil, held.Known{IsOn: true}), nil)
	for _, hook := range mutating {
		if hook.Name == "mutatepod.volcano.sh" {
			t.Errorf("sent are pods for which %v", hook.MatchConditions)
		}
	}
}

func TestABugIsAnErrorLikeAnyOther(t *testing.T) {
	s, _ := newServer(t, &shelf{}, nil)
	buggy := func(context.Context, *server, admission.Request) (admission.Response, error) { panic("a bug") }
	for policy, allowed := range map[admissionregistrationv1.FailurePolicyType]bool{admissionregistrationv1.Ignore: true, admissionregistrationv1.Fail: false} {
		handler := newMux(s, []*service{{path: "/buggy", operations: services()[0].operations, failurePolicy: policy, handle: buggy}})
		response := ask(t, handler, asked{path: "/buggy", operation: admissionv1.Create, object: "{}"})
		if response.Allowed != allowed {
			t.Errorf("with %s a bug allows: %t", policy, response.Allowed)
		}
	}
}

func TestBodiesAreBounded(t *testing.T) {
	_, handler := newServer(t, &shelf{}, nil)
	for name, test := range map[string]struct {
		length int64
		body   io.Reader
		code   int
	}{
		"too large, and says so":   {maxBody + 1, strings.NewReader(""), http.StatusRequestEntityTooLarge},
		"too large, and says less": {-1, io.LimitReader(endless{}, 2*maxBody), http.StatusRequestEntityTooLarge},
		"small":                    {2, strings.NewReader("{}"), http.StatusOK},
		"of too many objects":      {-1, strings.NewReader(`{"a":[{}` + strings.Repeat(",{}", maxObjects) + "]}"), http.StatusRequestEntityTooLarge},
		"of as many in texts":      {-1, strings.NewReader(`{"a":"\"` + strings.Repeat(",{}", maxObjects) + `"}`), http.StatusOK},
	} {
		request := httptest.NewRequest(http.MethodPost, "/jobs/validate", test.body)
		request.ContentLength = test.length
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if recorder.Code != test.code || strings.Contains(recorder.Body.String(), `"allowed":true`) {
			t.Errorf("%s: %d %s", name, recorder.Code, recorder.Body)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte(" "), len(p)))
	return len(p), nil
}

func TestBodiesWaitForRoomAndNotForEver(t *testing.T) {
	room := semaphore.NewWeighted(10)
	handler := bounded(room, semaphore.NewWeighted(1), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	send := func(ctx context.Context, size int64) int {
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(""))
		request.ContentLength = size
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	if code := send(t.Context(), 10); code != http.StatusTeapot {
		t.Errorf("what fits gets %d", code)
	}
	if !room.TryAcquire(5) {
		t.Fatal("room is not given back")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if code := send(ctx, 6); code != http.StatusServiceUnavailable {
		t.Errorf("what does not fit gets %d", code)
	}
	if code := send(t.Context(), 5); code != http.StatusTeapot {
		t.Errorf("what fits as well gets %d", code)
	}
}

func TestRequestsWaitForTheirTurnAndNotForEver(t *testing.T) {
	turns, isBusy, end := semaphore.NewWeighted(2), make(chan struct{}, 2), make(chan struct{})
	handler := bounded(semaphore.NewWeighted(1000), turns, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case isBusy <- struct{}{}:
		default:
		}
		<-end
		w.WriteHeader(http.StatusTeapot)
	}))
	send := func(ctx context.Context) int {
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(""))
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return recorder.Code
	}
	codes := make(chan int, 3)
	for range 2 {
		go func() { codes <- send(t.Context()) }()
		<-isBusy
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if code := send(ctx); code != http.StatusServiceUnavailable {
		t.Errorf("the third of two gets %d", code)
	}
	go func() { codes <- send(t.Context()) }()
	close(end)
	for range 3 {
		if code := <-codes; code != http.StatusTeapot {
			t.Errorf("one whose turn has come gets %d", code)
		}
	}
}
