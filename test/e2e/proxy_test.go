package e2e

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hekla.sh/hekla/internal/localcluster/network"
)

// slowServer is the API server behind a network that delays, or that is cut.
type slowServer struct {
	*network.Network
	kubeconfig string
	bound      atomic.Int64
}

// slowly puts a network before the API server, which delays a request, or each event of a watch, by so much.
func slowly(t *testing.T, delay func(*http.Request) time.Duration) *slowServer {
	t.Helper()
	s := &slowServer{}
	var err error
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &s.bound} })
	if s.Network, err = network.To(config); err != nil {
		t.Fatal(err)
	}
	s.SetEffect(func(r *http.Request) network.Effect { return network.Effect{Delay: delay(r)} })
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Heal()
		server.CloseClientConnections()
		server.Close()
	})
	file := clientcmdapi.NewConfig()
	file.Clusters["slow"] = &clientcmdapi.Cluster{Server: server.URL}
	file.Contexts["slow"] = &clientcmdapi.Context{Cluster: "slow"}
	file.CurrentContext = "slow"
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return s
}

func isBinding(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/binding") }

// counting counts the bindings that reach the API server.
type counting struct {
	http.RoundTripper
	bound *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	if isBinding(request) {
		c.bound.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}
