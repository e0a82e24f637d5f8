package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/metrics"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/scheduler"
)

// idleRunner is a runner whose parts are made and do not run.
func idleRunner(t *testing.T) (*runner, *record) {
	t.Helper()
	clients, err := apiserver.Connect(&rest.Config{Host: "https://127.0.0.1:1"}, 1, 1)
	must(t, err)
	p, r := newPolicies(false)
	made, err := newRunner(parse(t), clients, noSource{}, p, metrics.New(), logr.Discard())
	must(t, err)
	return made, r
}

// scrape returns the values of metrics, by the part of each line before the value.
func scrape(t *testing.T, handler http.Handler) map[string]string {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	values := map[string]string{}
	for line := range strings.Lines(recorder.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	return values
}

func TestTheModelIsAuditedNowAndThen(t *testing.T) {
	r, _ := idleRunner(t)
	expect := func(want string) {
		t.Helper()
		if got := scrape(t, r.metrics.Handler())["hekla_audits_total"]; got != want {
			t.Errorf("%s audits, want %s", got, want)
		}
	}
	reporter{r}.Report(scheduler.Result{}, nil)
	expect("0")
	r.lastAudit = r.lastAudit.Add(-auditPeriod)
	reporter{r}.Report(scheduler.Result{}, nil)
	expect("1")
	reporter{r}.Report(scheduler.Result{}, nil)
	expect("1")
}

func TestABrokenCycleIsCountedAndTheModelLeftAlone(t *testing.T) {
	r, _ := idleRunner(t)
	reporter{r}.Report(scheduler.Result{Panic: "invariant: broken"}, nil)
	values := scrape(t, r.metrics.Handler())
	if values["hekla_cycle_panics_total"] != "1" || values["hekla_cycles_total"] != "1" {
		t.Errorf("%s cycles, %s broken", values["hekla_cycles_total"], values["hekla_cycle_panics_total"])
	}
	if !r.lastTotals.IsZero() {
		t.Error("totals were read of a model that may be broken")
	}
}

func TestALoopThatIsStuckIsNotAlive(t *testing.T) {
	r, _ := idleRunner(t)
	if err := r.isAlive(); err != nil {
		t.Errorf("before it runs: %v", err)
	}
	r.lastCycle.Store(time.Now().UnixNano())
	if err := r.isAlive(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	r.lastCycle.Store(time.Now().Add(-time.Hour).UnixNano())
	if err := r.isAlive(); err == nil || !strings.Contains(err.Error(), "1h0m0s ago") {
		t.Errorf("after an hour without a cycle: got %v", err)
	}
}

func TestWhoLeadsIsReadyWhenTheCachesAreComplete(t *testing.T) {
	r, _ := idleRunner(t)
	if err := r.isReady(); err != nil {
		t.Errorf("as a standby: %v", err)
	}
	r.isLeading.Store(true)
	if err := r.isReady(); err == nil || !strings.Contains(err.Error(), "\npods: ") {
		t.Errorf("without caches: %v", err)
	}
	r.isSynced.Store(true)
	if err := r.isReady(); err != nil {
		t.Error(err)
	}
	r.isOpening.Store(true)
	if r.isReady() == nil {
		t.Error("ready while nobody can ask it")
	}
}

func TestAPolicyWakesTheLoopAndIsTakenOnce(t *testing.T) {
	r, _ := idleRunner(t)
	must(t, r.policies.begin(document{}))
	<-eventSource{r}.Wake()
	if _, policy := (eventSource{r}).Take(); policy == nil {
		t.Fatal("there is no policy")
	}
	if _, policy := (eventSource{r}).Take(); policy != nil {
		t.Error("the policy comes twice")
	}
}

func TestAPolicyThatIsRefusedByTheLoopIsReported(t *testing.T) {
	r, counts := idleRunner(t)
	must(t, r.policies.begin(inAPI(goodConfiguration)))
	var shown []decision.Notice
	r.policies.show = func(n decision.Notice) { shown = append(shown, n) }
	reporter{r}.Report(scheduler.Result{}, errors.New("no such node plugin"))
	if counts.refused != 1 || len(shown) != 1 || shown[0].Type != corev1.EventTypeWarning {
		t.Errorf("refused %d times, shown %v", counts.refused, shown)
	}
}

func TestServersSpeakHTTPSWithACertificate(t *testing.T) {
	// Any server of the test library has a certificate for 127.0.0.1.
	template := httptest.NewTLSServer(nil)
	defer template.Close()
	certificate := template.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	must(t, err)
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	o := parse(t, "--tls-cert-file="+certFile, "--tls-private-key-file="+keyFile, "--ca-cert-file="+certFile)
	s, err := o.serve("127.0.0.1:0", healthHandler(func() error { return nil }, func() error { return errors.New("not yet") }, func() string { return "" }), logr.Discard())
	must(t, err)
	defer s.close()
	client := func(certificates ...tls.Certificate) *http.Client {
		pool := x509.NewCertPool()
		pool.AddCert(template.Certificate())
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates, MinVersion: tls.VersionTLS12}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/other": 404} {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+s.address()+path, nil)
		must(t, err)
		response, err := client().Do(request)
		must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, response.StatusCode, want)
		}
	}
	must(t, os.WriteFile(certFile+"2", []byte("nothing"), 0o600))
	o.caFile = certFile + "2"
	if _, err := o.serve("127.0.0.1:0", nil, logr.Discard()); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("with a broken authority: %v", err)
	}
}

func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	codes := func(arguments ...string) map[string]int {
		handler := parse(t, arguments...).metricsHandler(metrics.New().Handler())
		found := map[string]int{}
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline"} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
			found[path] = recorder.Code
		}
		return found
	}
	if diff := cmp.Diff(map[string]int{"/metrics": 200, "/debug/pprof/cmdline": 404}, codes("--enable-metrics")); diff != "" {
		t.Errorf("with metrics (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"/metrics": 404, "/debug/pprof/cmdline": 200}, codes("--enable-pprof")); diff != "" {
		t.Errorf("with profiles (-want +got):\n%s", diff)
	}
}
