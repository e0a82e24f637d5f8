package answers

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/user"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/gate"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// named lets each client be whom it says, and see everything.
type named struct{}

func (named) User(r *http.Request) (user.Info, bool, error) {
	return &user.DefaultInfo{Name: r.Header.Get("X-User")}, true, nil
}

func (named) May(context.Context, user.Info, gate.Access) (bool, error) { return true, nil }

// events are what a running scheduler is shown, by [events.show]. Its decisions go nowhere.
type events struct {
	wake  chan struct{}
	mutex sync.Mutex
	next  []cache.Event
}

func (e *events) Wake() <-chan struct{}          { return e.wake }
func (e *events) Do(decision.Decisions)          {}
func (e *events) IsBusy() bool                   { return false }
func (e *events) Report(scheduler.Result, error) {}

func (e *events) Take() ([]cache.Event, *framework.Policy) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	taken := e.next
	e.next = nil
	return taken, nil
}

func (e *events) show(shown ...cache.Event) {
	e.mutex.Lock()
	e.next = append(e.next, shown...)
	e.mutex.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

type wallTime struct{}

func (wallTime) Now() time.Time                         { return time.Now() }
func (wallTime) After(d time.Duration) <-chan time.Time { return time.After(d) }

// follower is a client that follows overviews, with as little memory as it can.
type follower struct {
	connection net.Conn
	in         *bufio.Reader
}

// follow opens a stream, and returns the status line.
func follow(t *testing.T, address, who string) (*follower, string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{connection, bufio.NewReaderSize(connection, 512)}
	if _, err := fmt.Fprintf(connection, "GET %s?watch=true HTTP/1.1\r\nHost: test\r\nX-User: %s\r\n\r\n", api.Overviews.Path("", ""), who); err != nil {
		t.Fatal(err)
	}
	line, err := f.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return f, strings.TrimSpace(line)
}

// change waits for the next change. The text is what came instead.
func (f *follower) change() (instead string) {
	_ = f.connection.SetReadDeadline(time.Now().Add(patience))
	for {
		line, err := f.in.ReadString('\n')
		switch {
		case err != nil:
			return err.Error()
		case strings.HasPrefix(line, "event: change"):
			return ""
		case strings.HasPrefix(line, "event: "):
			return line
		}
	}
}

// memory is what goroutines and their buffers hold.
func memory() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

func TestAThousandClientsFollowAtOnce(t *testing.T) {
	l := loop.New(t, "")
	shown := &events{wake: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Scheduler.Run(ctx, wallTime{}, shown, shown, scheduler.Pace{Coalesce: time.Millisecond, Period: time.Hour})
	}()
	defer func() { stop(); <-ended }()
	shown.show(cache.Set{Object: fixture.Node("n", "cpu=1")})

	server := httptest.NewServer(New(l.Scheduler.Questions(), named{}, logr.Discard()).Handler())
	defer server.Close()
	address := server.Listener.Addr().String()
	before := memory()
	var followers []*follower
	for i := range MaxWatches {
		f, status := follow(t, address, []string{"a", "b"}[i%2])
		if !strings.Contains(status, "200") {
			t.Fatalf("client %d is answered %s", i, status)
		}
		defer f.connection.Close()
		followers = append(followers, f)
	}
	if f, status := follow(t, address, "c"); !strings.Contains(status, "429") {
		t.Errorf("one more client is answered %s", status)
	} else {
		f.connection.Close()
	}
	silent, reading := followers[0], followers[1:] // the first one reads nothing
	const rounds = 3
	for round := range rounds + 1 {
		if round > 0 { // the first change is told without one
			shown.show(cache.Set{Object: fixture.Group(fmt.Sprint("g", round), "default", 1)}, cache.Set{Object: fixture.Pod(fmt.Sprint("g", round, "-0"), fixture.In(fmt.Sprint("g", round)))})
		}
		var all sync.WaitGroup
		for i, f := range reading {
			all.Go(func() {
				if instead := f.change(); instead != "" {
					t.Errorf("client %d hears in round %d: %s", i, round, instead)
				}
			})
		}
		all.Wait()
	}
	const most = 128 << 10
	if each := (int64(memory()) - int64(before)) / MaxWatches; each > most {
		t.Errorf("a client takes %d bytes, with its own end of the connection, want at most %d", each, most)
	} else {
		t.Logf("a client takes %d bytes, with its own end of the connection", each)
	}
	silent.connection.Close()
	for until := time.Now().Add(patience); ; {
		f, status := follow(t, address, "c")
		f.connection.Close()
		if strings.Contains(status, "200") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("after a client has gone the next one is answered %s", status)
		}
	}
}
