package callout_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/pkg/plugins/extender/callout"
)

type answer struct{ Text string }

func serve(t *testing.T, handler http.HandlerFunc) *callout.Extender {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	e, err := callout.New(server.URL+"/base/", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAQuestionIsPostedAsJSON(t *testing.T) {
	var got string
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		_, _ = io.WriteString(w, `{"text": "yes", "more": 1}`)
	})
	var a answer
	if err := e.Call("verb", map[string]int{"x": 1}, &a); err != nil {
		t.Fatal(err)
	}
	if want := `POST /base/verb application/json {"x":1}`; got != want || a.Text != "yes" {
		t.Errorf("asked is %q, want %q; the answer is %q", got, want, a.Text)
	}
}

func TestWhatGoesWrongIsSaidInFewWords(t *testing.T) {
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an error":          {reply(500, "{}"), "it answers with status 500"},
		"a redirection":     {reply(302, "{}"), "it answers with status 302"},
		"no JSON":           {reply(200, "yes"), "its answer is not the JSON that is expected"},
		"nothing":           {reply(200, ""), "its answer is not the JSON that is expected"},
		"of the wrong type": {reply(200, `{"text": 7}`), "its answer is not the JSON that is expected"},
		"as long as may be": {reply(200, `{"text": ""}`+strings.Repeat(" ", callout.MaxAnswer-12)), ""},
		"longer":            {reply(200, `{"text": ""}`+strings.Repeat(" ", callout.MaxAnswer-11)), "its answer is longer than 1048576 bytes"},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, "{}")
		}, "it does not answer"},
		"an end without word": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "it does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			err := serve(t, test.handler).Call("verb", nil, &answer{})
			if got := errors.Join(err); (got == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if (test.want == callout.ErrSilent.Error()) != errors.Is(err, callout.ErrSilent) {
				t.Errorf("%v is taken for silence", err)
			}
		})
	}
}

func TestNoAnswerIsWaitedForBeyondTheTimeout(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "trickle") {
			w.(http.Flusher).Flush() // the answer begins in time and does not end
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	e, err := callout.New(server.URL, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"late", "trickle"} {
		if err := e.Call(verb, nil, nil); !errors.Is(err, callout.ErrSilent) {
			t.Errorf("%s: the error is %v", verb, err)
		}
	}
}

func TestAnExtenderThatIsNotThereDoesNotAnswer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	e, err := callout.New(server.URL, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Call("verb", nil, nil); !errors.Is(err, callout.ErrSilent) {
		t.Errorf("the error is %v", err)
	}
}

func TestWhereToAskMustBeAURL(t *testing.T) {
	for _, prefix := range []string{"", "127.0.0.1:80", "localhost", "ftp://host", "http://", "http://a b", "/path"} {
		if _, err := callout.New(prefix, time.Second); err == nil {
			t.Errorf("%q is accepted", prefix)
		}
	}
}
