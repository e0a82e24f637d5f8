package network

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// behind returns the URL of a network in front of a server that counts requests.
func behind(t *testing.T) (n *Network, url string, served *atomic.Int64) {
	t.Helper()
	served = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(reply http.ResponseWriter, r *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(reply, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	n, err := To(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(n)
	t.Cleanup(func() { n.Heal(); proxy.Close() })
	return n, proxy.URL, served
}

func post(ctx context.Context, url string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer token")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestWithoutAnEffectRequestsPassWithTheirCredentials(t *testing.T) {
	_, url, served := behind(t)
	if code, body, err := post(t.Context(), url); err != nil || code != http.StatusOK || body != "Bearer token" || served.Load() != 1 {
		t.Errorf("got %d %q %v, served %d", code, body, err, served.Load())
	}
}

func TestWhatIsRefusedIsNotServed(t *testing.T) {
	n, url, served := behind(t)
	n.SetEffect(func(*http.Request) Effect { return Effect{Refused: true} })
	if code, _, err := post(t.Context(), url); err != nil || code != http.StatusServiceUnavailable || served.Load() != 0 {
		t.Errorf("got %d %v, served %d", code, err, served.Load())
	}
}

func TestALostAnswerWasServed(t *testing.T) {
	n, url, served := behind(t)
	n.SetEffect(func(*http.Request) Effect { return Effect{Lost: true} })
	if code, _, err := post(t.Context(), url); err == nil || served.Load() != 1 {
		t.Errorf("got %d %v, served %d", code, err, served.Load())
	}
}

func TestADelayedRequestTakesItsTime(t *testing.T) {
	n, url, _ := behind(t)
	const delay = 100 * time.Millisecond
	n.SetEffect(func(*http.Request) Effect { return Effect{Delay: delay} })
	began := time.Now()
	if code, _, err := post(t.Context(), url); err != nil || code != http.StatusOK || time.Since(began) < delay {
		t.Errorf("got %d %v after %s", code, err, time.Since(began))
	}
}

func TestNothingPassesACutUntilItIsHealed(t *testing.T) {
	n, url, served := behind(t)
	n.Sever()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := post(ctx, url); !errors.Is(err, context.DeadlineExceeded) || served.Load() != 0 {
		t.Errorf("got %v, served %d", err, served.Load())
	}
	time.AfterFunc(100*time.Millisecond, n.Heal)
	if code, _, err := post(t.Context(), url); err != nil || code != http.StatusOK {
		t.Errorf("after it was healed: %d %v", code, err)
	}
}
