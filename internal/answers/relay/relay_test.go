package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
)

// leading is a process that leads, and what it was asked.
func leading(t *testing.T, name string) (server *httptest.Server, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := slices.Sorted(maps.Keys(r.Header))
		*asked = append(*asked, fmt.Sprint(r.URL.RequestURI(), " ", headers))
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, name+" for "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	return server, asked
}

// at is where a server is published.
func at(server *httptest.Server) (address string, settings *tls.Config) {
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	return server.Listener.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, ServerName: "example.com"}
}

func TestQuestionsGoToWhoeverLeads(t *testing.T) {
	first, asked := leading(t, "first")
	second, _ := leading(t, "second")
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "own") })
	var published *httptest.Server
	looked, leads := 0, false
	handler := Handler(own, func() bool { return leads }, func(context.Context) (string, *tls.Config, error) {
		if looked++; published == nil {
			return "", nil, errors.New("it is not known")
		}
		address, settings := at(published)
		return address, settings, nil
	}, logr.Discard())
	said := func(method string) string {
		request := httptest.NewRequest(method, "/apis/answers.hekla.sh/v1alpha1/overviews/jobs?since=3", nil)
		for name, value := range map[string]string{"Authorization": "Bearer a", "Accept": "application/json", "Cookie": "b=c", "X-Remote-User": "admin", "Impersonate-User": "admin",
			"Origin": "http://localhost:8090"} {
			request.Header.Set(name, value)
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		return fmt.Sprint(recorder.Code, " ", recorder.Body)
	}
	step := func(what, want string) {
		t.Helper()
		if got := said(http.MethodGet); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	step("no leader is known", "200 own")
	published = first
	step("one leads", "403 first for Bearer a")
	before := looked
	step("it is asked again", "403 first for Bearer a")
	if looked != before {
		t.Error("it is looked up for each question")
	}
	if got := said(http.MethodPost); got != "200 own" {
		t.Errorf("a question with a body: %q", got)
	}
	for _, text := range *asked {
		if want := "/apis/answers.hekla.sh/v1alpha1/overviews/jobs?since=3 [Accept Authorization]"; text != want {
			t.Errorf("the leader is asked %q, want %q", text, want)
		}
	}
	first.Close()
	step("it has ended", "200 own")
	published = second
	step("another leads", "403 second for Bearer a")
	leads = true
	step("this process leads", "200 own")
}

func TestALeaderWithAnotherCertificateIsNotAsked(t *testing.T) {
	server, asked := leading(t, "impostor")
	address, settings := at(server)
	settings.RootCAs = x509.NewCertPool()
	handler := Handler(http.NotFoundHandler(), func() bool { return false }, func(context.Context) (string, *tls.Config, error) { return address, settings, nil }, logr.Discard())
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/apis/answers.hekla.sh/v1alpha1/overviews", strings.NewReader("")))
	if recorder.Code != http.StatusNotFound || len(*asked) > 0 {
		t.Errorf("it says %d, and the other was asked %q", recorder.Code, *asked)
	}
}

func TestTheLeaderIsLookedUpAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked := 0
		r := &relay{logger: logr.Discard(), lookUp: func(context.Context) (string, *tls.Config, error) {
			looked++
			return fmt.Sprintf("192.0.2.%d:8443", looked/2), &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}, nil
		}}
		var found []string
		for range 4 {
			to, err := r.leader(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, to.address)
			time.Sleep(life)
		}
		if got := fmt.Sprint(found, looked); got != "[192.0.2.0:8443 192.0.2.1:8443 192.0.2.1:8443 192.0.2.2:8443] 4" {
			t.Errorf("found %s", got)
		}
	})
}
