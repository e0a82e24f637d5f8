package session

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// page is what a user sees while a command runs.
type page struct {
	mutex sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func (p *page) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	select {
	case p.grown <- struct{}{}:
	default:
	}
	return p.text.Write(text)
}

func (p *page) String() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.String()
}

func TestAUserIsToldOfAnAPIServerThatTakesItsTime(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(reply http.ResponseWriter, told <-chan struct{})
		want   string
	}{
		"it is slow": {func(_ http.ResponseWriter, told <-chan struct{}) {
			select {
			case <-told:
			case <-time.After(time.Minute):
			}
		}, "still waiting for HOST to answer GET /api/v1/nodes; Ctrl-C ends it, --request-timeout=10s would limit it\n"},
		"it is busy": {func(reply http.ResponseWriter, told <-chan struct{}) {
			select {
			case <-told:
			default:
				reply.Header().Set("Retry-After", "1")
				reply.WriteHeader(http.StatusTooManyRequests)
			}
		}, "HOST is busy and answers GET /api/v1/nodes with \"429 Too Many Requests\"; asking again\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errOut := &page{grown: make(chan struct{}, 1)}
			server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, request *http.Request) {
				if request.URL.Path != "/api/v1/nodes" {
					_, _ = reply.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node"}]}`))
					return
				}
				reply.Header().Set("Content-Type", "application/json")
				if test.answer(reply, errOut.grown); reply.Header().Get("Retry-After") == "" {
					_, _ = reply.Write([]byte(`{"kind":"NodeList","apiVersion":"v1"}`))
				}
			}))
			defer server.Close()
			s := New("hekla", false, genericiooptions.IOStreams{Out: &bytes.Buffer{}, ErrOut: errOut})
			*s.connection.APIServer = server.URL
			config, err := s.RESTConfig()
			if err != nil {
				t.Fatal(err)
			}
			api, err := client.New(config, client.Options{Scheme: s.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			if err := api.List(context.Background(), &corev1.NodeList{}); err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(test.want, "HOST", strings.TrimPrefix(server.URL, "http://"))
			if got := errOut.String(); got != want {
				t.Errorf("the user is told %q, want %q", got, want)
			}
		})
	}
}
