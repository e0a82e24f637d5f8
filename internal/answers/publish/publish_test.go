package publish

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// apiServer holds the APIService of a process on its own host. It stands for what cmd/scheduler/app tests with a real
// one.
type apiServer struct {
	stored apiService
	isMade bool // by the installer
	writes []string
	reads  atomic.Int64
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		s.reads.Add(1)
	} else {
		s.writes = append(s.writes, r.Method)
	}
	if !s.isMade || r.URL.Path != "/apis/apiregistration.k8s.io/v1/apiservices/"+APIService {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
		return
	}
	if r.Method == http.MethodPatch {
		_ = json.NewDecoder(r.Body).Decode(&s.stored)
	}
	_ = json.NewEncoder(w).Encode(s.stored)
}

// publication returns that of a process which listens at a port, and whether it leads.
func (s *apiServer) publication(t *testing.T, port int, leads bool, logger logr.Logger) *Publication {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	p, err := New(kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}),
		Options{Namespace: "volcano-system", Service: Service, APIService: APIService, Port: port, Leads: func() bool { return leads }, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *apiServer) isOf(p *Publication) bool {
	return string(s.stored.Spec.CABundle) == string(p.bundle) && s.stored.Spec.Service != nil && s.stored.Spec.Service.Port != nil && *s.stored.Spec.Service.Port == p.port
}

func step(t *testing.T, p *Publication) {
	t.Helper()
	if err := p.step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheLeaderWritesAgainWhatAnotherHasOverwritten(t *testing.T) {
	s := &apiServer{isMade: true}
	p := s.publication(t, 1234, true, logr.Discard())
	step(t, p)
	if !s.isOf(p) {
		t.Fatalf("published is %+v", s.stored)
	}
	step(t, p)
	if len(s.writes) != 1 {
		t.Errorf("what is published already is written again: %q", s.writes)
	}
	s.stored.Spec.CABundle = []byte("another")
	if step(t, p); !s.isOf(p) {
		t.Errorf("published is %+v", s.stored)
	}
}

func TestAFollowerWritesOnlyWhileNoProcessAnswers(t *testing.T) {
	s := &apiServer{isMade: true}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	leader := s.publication(t, listener.Addr().(*net.TCPAddr).Port, true, logr.Discard())
	follower := s.publication(t, 1234, false, logr.Discard())
	answers := &http.Server{TLSConfig: leader.TLS(), Handler: http.NotFoundHandler(), ErrorLog: nil}
	hasEnded := make(chan struct{})
	go func() {
		defer close(hasEnded)
		_ = answers.Serve(tls.NewListener(listener, leader.TLS()))
	}()
	step(t, leader)
	if step(t, follower); !s.isOf(leader) {
		t.Error("a follower has written while the leader answers")
	}
	// What answers with a certificate of its own is not what the API server trusts.
	s.stored.Spec.CABundle = follower.bundle
	if step(t, follower); !s.isOf(follower) {
		t.Error("a follower leaves it to a process that the API server does not trust")
	}
	step(t, leader)
	_ = answers.Close()
	<-hasEnded
	if step(t, follower); !s.isOf(follower) {
		t.Error("a follower does not write while no process answers")
	}
}

func TestWhatIsNotInstalledIsNotMadeAndAMessageSaysSoOnce(t *testing.T) {
	s := &apiServer{}
	var said []string
	p := s.publication(t, 1234, true, funcr.New(func(_, text string) { said = append(said, text) }, funcr.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	hasEnded := make(chan struct{})
	go func() {
		defer close(hasEnded)
		p.Run(ctx)
	}()
	for s.reads.Load() < 3 {
		p.Poke()
	}
	cancel()
	<-hasEnded
	if len(said) != 1 || !strings.Contains(said[0], "APIService "+APIService) {
		t.Errorf("it says %q", said)
	}
	if len(s.writes) > 0 {
		t.Errorf("it writes %q", s.writes)
	}
}

// A process on the host of the API server makes the objects, and keeps them pointing to itself.
func ExampleLocal() {
	for _, object := range Local("volcano-system", Visibility()...) {
		fmt.Println(object.GetKind(), object.GetNamespace(), object.GetName())
	}
	// Output:
	// Service volcano-system volcano-scheduler-answers
	// APIService  v1alpha1.answers.hekla.sh
	// APIService  v1beta2.visibility.kueue.x-k8s.io
	// APIService  v1beta1.visibility.kueue.x-k8s.io
}

func TestTheCertificateIsForTheNameOfTheService(t *testing.T) {
	p := (&apiServer{}).publication(t, 1234, true, logr.Discard())
	certificate, err := p.TLS().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if names := certificate.Leaf.DNSNames; !slices.Contains(names, Service+".volcano-system.svc") {
		t.Errorf("it is for %q", names)
	}
}

// The objects that an administrator applies are those that the process writes to, and no others are within its rights.
func TestTheInstallerHasWhatIsServedBesides(t *testing.T) {
	text, err := os.ReadFile("../../../installer/visibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var made, permitted []string
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Service struct{ Name, Namespace string }
			}
			Rules []struct{ Resources, ResourceNames []string }
		}
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == "APIService" {
			made = append(made, object.Metadata.Name)
			if s := object.Spec.Service; s.Name != Service || s.Namespace != "volcano-system" {
				t.Errorf("%s is of %+v", object.Metadata.Name, s)
			}
		}
		for _, rule := range object.Rules {
			if slices.Contains(rule.Resources, "apiservices") {
				permitted = append(permitted, rule.ResourceNames...)
			}
		}
	}
	slices.Sort(permitted)
	if want := Visibility(); !slices.Equal(made, want) || !slices.Equal(permitted, slices.Sorted(slices.Values(want))) {
		t.Errorf("there are %q, and %q may be written, want %q", made, permitted, want)
	}
}
