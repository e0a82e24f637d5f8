package apiserver_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/apiserver"
)

// barrier holds up those that come until there are so many.
type barrier struct {
	size int

	mutex   sync.Mutex
	waiting int
	opened  chan struct{}
}

func (b *barrier) await() {
	b.mutex.Lock()
	opened := b.opened
	if b.waiting++; b.waiting == b.size {
		close(b.opened)
		b.waiting, b.opened = 0, make(chan struct{})
	}
	b.mutex.Unlock()
	<-opened
}

// A connection that is made again costs both sides more than a binding. Between two bursts all connections are idle.
func TestConnectionsForBindingsAreKept(t *testing.T) {
	var made, isOther atomic.Int64
	together := &barrier{size: apiserver.BindingConnections, opened: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			isOther.Add(1)
		}
		together.await()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	clients, err := apiserver.Connect(config, 1e6, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	const bursts = 10
	for range bursts {
		var senders sync.WaitGroup
		for range apiserver.BindingConnections {
			senders.Go(func() {
				if err := clients.Bindings.CoreV1().Pods("n").Delete(context.Background(), "p", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		senders.Wait()
	}
	if n := made.Load(); n > 2*apiserver.BindingConnections {
		t.Errorf("%d bursts of %d requests took %d connections", bursts, apiserver.BindingConnections, n)
	}
	if n := isOther.Load(); n > 0 {
		t.Errorf("%d requests were not sent over HTTP/1.1", n)
	}
}
