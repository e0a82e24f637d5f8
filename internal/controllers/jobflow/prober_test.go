package jobflow

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

var someFlow = types.NamespacedName{Namespace: "lab", Name: "f"}

// startProber runs a prober until the test ends, and returns it with the names of the flows that it wakes.
func startProber(t *testing.T) (*prober, <-chan string) {
	t.Helper()
	p := newProber()
	ctx, stop := context.WithCancel(t.Context())
	ended, woken := make(chan struct{}), make(chan string, 1000)
	go func() {
		_ = p.Start(ctx)
		close(ended)
	}()
	go func() {
		for {
			select {
			case e := <-p.wake:
				woken <- e.Object.(*flowapi.JobFlow).Name
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		goleak.VerifyNone(t, goleak.IgnoreCurrent())
	})
	return p, woken
}

// serve answers on this machine and returns what to ask.
func serve(t *testing.T, handle http.HandlerFunc) question {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return question{pod: "p", address: "127.0.0.1", port: server.Listener.Addr().(*net.TCPAddr).Port, path: "/"}
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}

func TestAPodIsAskedAsByAKubelet(t *testing.T) {
	p := newProber()
	asked := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		case "/header":
			if r.Header.Get("X-A") != "b" {
				w.WriteHeader(http.StatusForbidden)
			}
		case "/host":
			if r.Host != "example.com" {
				w.WriteHeader(http.StatusForbidden)
			}
		case "/agent":
			if r.UserAgent() != "hekla-probe" {
				w.WriteHeader(http.StatusForbidden)
			}
		case "/slow":
			<-r.Context().Done()
		default:
			http.Error(w, "secrets of the pod", http.StatusNotFound)
		}
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := question{address: "127.0.0.1", port: closed.Addr().(*net.TCPAddr).Port}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	with := func(path, name, value string) question {
		q := asked
		q.path, q.headerName, q.headerValue = path, name, value
		return q
	}
	for _, test := range []struct {
		question question
		want     string // part of the failure, "" if there is none
	}{
		{with("/good", "", ""), ""},
		{with("/good?a=b", "", ""), ""},
		{with("/moved", "", ""), ""},
		{with("/away", "", ""), ""}, // an answer all the same; it is not followed to another host
		{with("/header", "X-A", "b"), ""},
		{with("/header", "X-A", "c"), "the status is 403"},
		{with("/host", "Host", "example.com"), ""},
		{with("/agent", "", ""), ""},
		{with("/agent", "User-Agent", "hekla-probe"), ""},
		{with("/none", "", ""), "the status is 404"},
		{with("/slow", "", ""), "Client.Timeout exceeded"},
		{with("", "", ""), ""}, // a connection
		{silent, "connection refused"},
		{question{address: "127.0.0.1", port: silent.port, path: "/"}, "connection refused"},
	} {
		began := time.Now()
		got := p.ask(test.question)
		if test.want == "" && got != "" || !strings.Contains(got, test.want) || strings.Contains(got, "secrets") {
			t.Errorf("%+v: %q, want %q", test.question, got, test.want)
		}
		if took := time.Since(began); took > 10*probeTimeout {
			t.Errorf("%+v took %s", test.question, took)
		}
	}
}

func TestAPodIsAskedUntilItHasAnsweredAndThenNoMore(t *testing.T) {
	var count atomic.Int32
	var isReady atomic.Bool
	asked := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		if !isReady.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	p, woken := startProber(t)
	if got := p.answer(someFlow, asked); got != (answer{}) {
		t.Errorf("of what was never asked it knows %+v", got)
	}
	p.want(someFlow, []question{asked})
	await(t, "the first answer", func() bool { return p.answer(someFlow, asked).failure == "the status is 500" })
	if name := <-woken; name != "f" {
		t.Errorf("it wakes %s", name)
	}
	p.want(someFlow, []question{asked})
	await(t, "the second try", func() bool { return count.Load() > 1 })
	if len(woken) > 0 {
		t.Error("it wakes the flow though nothing is new")
	}
	isReady.Store(true)
	await(t, "the good answer", func() bool { return p.answer(someFlow, asked).isYes })
	<-woken
	before := count.Load()
	p.want(someFlow, []question{asked})
	time.Sleep(2 * firstDelay)
	if now := count.Load(); now != before || !p.answer(someFlow, asked).isYes {
		t.Errorf("it was asked %d times after it had answered", now-before)
	}
}

func TestWhatNoOneReadsIsNotAsked(t *testing.T) {
	var count atomic.Int32
	asked := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		count.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	p, woken := startProber(t)
	p.want(someFlow, []question{asked})
	<-woken
	p.want(someFlow, nil)
	before := count.Load()
	await(t, "the queue to be empty", func() bool { return p.queue.NumRequeues(openQuestion{someFlow, asked}) == 0 })
	if now := count.Load(); now > before+1 || len(p.flows) > 0 {
		t.Errorf("it was asked %d times, and %d flows are remembered", now-before, len(p.flows))
	}
}

func TestALargeTaskIsAskedInPortions(t *testing.T) {
	const pods = 3 * maxOpen
	var atATime, most atomic.Int32
	asked := serve(t, func(http.ResponseWriter, *http.Request) {
		now := atATime.Add(1)
		for last := most.Load(); now > last && !most.CompareAndSwap(last, now); last = most.Load() {
		}
		time.Sleep(time.Millisecond)
		atATime.Add(-1)
	})
	var questions []question
	for i := range pods {
		q := asked
		q.pod = types.UID(fmt.Sprint(i))
		questions = append(questions, q)
	}
	p, woken := startProber(t)
	for yes := 0; yes < pods; {
		p.want(someFlow, questions)
		p.mutex.Lock()
		open := 0
		for _, a := range p.flows[someFlow].answers {
			if !a.isYes {
				open++
			}
		}
		p.mutex.Unlock()
		if open > maxOpen {
			t.Fatalf("%d questions are open", open)
		}
		<-woken
		yes = 0
		for _, q := range questions {
			if p.answer(someFlow, q).isYes {
				yes++
			}
		}
	}
	if got := most.Load(); got > proberWorkers {
		t.Errorf("%d pods were asked at a time", got)
	}
}
