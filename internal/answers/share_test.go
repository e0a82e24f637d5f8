package answers

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// dial connects to a server, until the test ends.
func dial(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	client, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// get sends a request, and reads no answer.
func get(t *testing.T, client net.Conn, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	const short, answer = 50 * time.Millisecond, 64 << 20 // more than sockets hold
	ended := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := within(w, short)
		defer done()
		_, err := w.Write(make([]byte, answer))
		ended <- err
	}))
	t.Cleanup(server.Close)
	client := dial(t, server)
	get(t, client, "/")
	if err := <-ended; err == nil {
		t.Error("all was written to a client that does not read")
	}
}

func TestAFollowerThatDoesNotReadIsLeft(t *testing.T) {
	const short = 50 * time.Millisecond
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		for event := strings.Repeat("x", 64<<10); sendEvent(w, event, short); {
		}
	}))
	t.Cleanup(server.Close)
	client := dial(t, server)
	get(t, client, "/")
	<-ended
}

func TestAConnectionServesAnswersAfterTheTimeForOne(t *testing.T) {
	const short = 10 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			defer within(w, short)()
		}
		_, _ = fmt.Fprint(w, "answer")
	}))
	t.Cleanup(server.Close)
	client := dial(t, server)
	in := bufio.NewReader(client)
	for i, path := range []string{"/first", "/second"} {
		time.Sleep(time.Duration(i) * 2 * short)
		get(t, client, path)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := response.Write(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAStreamThatEndsAfterAPauseDoesNotBreakOff(t *testing.T) {
	const short = 10 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sendEvent(w, "one", short)
		time.Sleep(2 * short)
	}))
	t.Cleanup(server.Close)
	response, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); string(got) != "one" || err != nil {
		t.Errorf("read %q and %v, want one event and the end", got, err)
	}
}

func TestOneUserLeavesRoomForOthers(t *testing.T) {
	var s shares
	hostile, other := &user.DefaultInfo{Name: "hostile"}, &user.DefaultInfo{Name: "other"}
	watches, questions, trials := 0, 0, 0
	for range 1000 {
		if s.enter(hostile) {
			watches++
		}
		if s.of(hostile).all.Allow() {
			questions++
		}
		if s.of(hostile).trials.Allow() {
			trials++
		}
	}
	if watches != MaxWatches*userParts/ofParts || questions >= Burst || trials >= TrialBurst {
		t.Errorf("one user has %d watches, %d questions and %d trials at once", watches, questions, trials)
	}
	if !s.enter(other) || !s.of(other).all.Allow() || !s.of(other).trials.Allow() {
		t.Error("another user is not answered")
	}
	s.leave(hostile)
	if !s.enter(hostile) || s.enter(hostile) {
		t.Error("a client that has gone still counts, or none does")
	}
	for i := range 2 * maxUsers {
		s.of(&user.DefaultInfo{Name: fmt.Sprint(i)})
	}
	if len(s.users) > maxUsers {
		t.Errorf("the shares of %d users are stored", len(s.users))
	}
	if s.enter(hostile) {
		t.Error("the clients of a user are forgotten while they follow")
	}
}

func TestAccountsOfANamespaceShareTheirPart(t *testing.T) {
	var s shares
	trials := 0
	for i := range 1000 {
		if s.of(&user.DefaultInfo{Name: fmt.Sprintf("system:serviceaccount:hostile:account-%d", i)}).trials.Allow() {
			trials++
		}
	}
	if trials >= TrialBurst {
		t.Errorf("the accounts of one namespace may try %d times at once", trials)
	}
	if !s.of(&user.DefaultInfo{Name: "system:serviceaccount:other:account"}).trials.Allow() {
		t.Error("another namespace is not answered")
	}
}
