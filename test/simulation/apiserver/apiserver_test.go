package apiserver

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"hekla.sh/hekla/test/apitest"
)

var shared = apitest.Shared{Definitions: "../../../installer/crds"}

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "40"); err != nil { // each run takes tenths of a second
			panic(err)
		}
	}
	shared.Main(m)
}

// answerer is a server that is compared.
type answerer struct {
	url    string
	do     func(*http.Request) (code int, body []byte, err error)
	watch  func(request *http.Request, want int) ([]string, error) // the next events, at least as many as there are or as are wanted
	seen   map[string][]string                                     // by path: the resource versions that it had
	listed map[string][]string                                     // by path: the resource versions of lists
	token  string                                                  // where the last list goes on
	start  string                                                  // the resource version at which a run began
}

// realServer is the API server of a cluster.
func realServer(t *testing.T) *answerer {
	t.Helper()
	config := shared.Cluster(t).Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &answerer{url: config.Host, seen: map[string][]string{}, listed: map[string][]string{}, do: func(request *http.Request) (int, []byte, error) {
		response, err := client.Do(request)
		if err != nil {
			return 0, nil, err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, body, err
	}, watch: func(request *http.Request, want int) (events []string, err error) {
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			body, err := io.ReadAll(response.Body)
			return []string{string(body)}, err
		}
		for lines := bufio.NewReader(response.Body); len(events) < want; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break // the end of its time
			}
			events = append(events, line)
		}
		return events, nil
	}}
}

// simulatedServer is the server in memory.
func simulatedServer(t *testing.T) *answerer {
	t.Helper()
	s, err := New(Options{WithoutPlugins: []string{"TaintNodesByCondition"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Create(installed(t)...); err != nil {
		t.Fatal(err)
	}
	return &answerer{url: "http://server", seen: map[string][]string{}, listed: map[string][]string{}, do: func(request *http.Request) (int, []byte, error) {
		response := s.Handle(request)
		return response.Code, response.Body, nil
	}, watch: func(request *http.Request, _ int) (events []string, err error) {
		cursor, refused := s.Watch(request)
		if cursor == nil {
			return []string{string(refused.Body)}, nil
		}
		defer cursor.Stop()
		for {
			frame, ok := cursor.Next()
			if !ok {
				return events, nil
			}
			events = append(events, string(frame))
		}
	}}
}

// call is a request to both servers.
type call struct {
	method, path, query, body, kind, accept string

	object  string // the path of the object whose resource version the body names as VERSION
	version int    // which of those it had, from the last one
	list    int    // which of the resource versions of lists the query names as LISTED, from the last one
}

func (c call) String() string {
	return strings.Join([]string{c.method, c.path + "?" + c.query, c.kind, c.accept, c.body}, " ")
}

func back(of []string, n int) string {
	if len(of) == 0 {
		return "1"
	}
	return of[max(0, len(of)-1-n)]
}

func (a *answerer) request(t failer, c call) *http.Request {
	body := strings.ReplaceAll(c.body, "VERSION", back(a.seen[c.object], c.version))
	query := strings.NewReplacer("LISTED", back(a.listed[c.path], c.list), "TOKEN", url.QueryEscape(a.token), "START", a.start).Replace(c.query)
	request, err := http.NewRequest(c.method, a.url+c.path+"?"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "test")
	request.Header.Set("Accept", "application/json")
	if c.kind != "" {
		request.Header.Set("Content-Type", c.kind)
	}
	if c.accept != "" {
		request.Header.Set("Accept", c.accept)
	}
	return request
}

// ask makes a request, and remembers resource versions.
func (a *answerer) ask(t failer, c call) (code int, body string) {
	code, answer, err := a.do(a.request(t, c))
	if err != nil {
		t.Fatalf("%s: %v", c, err)
	}
	sorted := &Response{Code: code, Body: answer}
	sorted.sortCauses()
	answer = sorted.Body
	read := &unstructured.Unstructured{}
	if json.Unmarshal(answer, &read.Object) == nil && code < 300 {
		if version := read.GetResourceVersion(); read.Object["items"] != nil {
			a.listed[c.path] = append(a.listed[c.path], version)
			a.token, _, _ = unstructured.NestedString(read.Object, "metadata", "continue")
		} else if c.object != "" && version != "" && !strings.Contains(c.query, "dryRun") {
			a.seen[c.object] = append(a.seen[c.object], version)
		}
	}
	return code, string(answer)
}

var differing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`"resourceVersion":"[0-9]+"`), `"resourceVersion":"N"`},
	{regexp.MustCompile(`(\\+)"resourceVersion(\\+)":(\\+)"[0-9]+`), `$1"resourceVersion$2":$3"N`},
	{regexp.MustCompile(`"continue":"[^"]+"`), `"continue":"TOKEN"`},
	{regexp.MustCompile(`ResourceVersion in (precondition|object meta): [0-9]+`), "ResourceVersion in $1: N"},
	{regexp.MustCompile(`resource version: [0-9]+(, current: [0-9]+| \([0-9]+\))?`), "resource version: N"},
	{regexp.MustCompile(`the ResourceVersion in (the precondition|record) \([0-9]+\)`), "the ResourceVersion in $1 (N)"},
	{regexp.MustCompile(`"[0-9]+(s|m)"`), `"AGE"`},
}

// normal replaces what may differ, line by line.
func normal(body string) string {
	var lines []string
	for line := range strings.Lines(body) {
		for _, d := range differing {
			line = d.pattern.ReplaceAllString(line, d.by)
		}
		var read any
		if json.Unmarshal([]byte(line), &read) == nil {
			sortManagers(read)
			if sorted, err := json.Marshal(read); err == nil {
				line = string(sorted) + "\n"
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

// sortManagers puts the managers of fields into an order without times: their own order changes with the second.
func sortManagers(of any) {
	switch of := of.(type) {
	case map[string]any:
		for _, part := range of {
			sortManagers(part)
		}
		if managers, is := of["managedFields"].([]any); is {
			slices.SortFunc(managers, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	case []any:
		for _, part := range of {
			sortManagers(part)
		}
	}
}

// compared counts runs, and answers by method and code.
var compared = struct {
	runs  int
	codes map[string]int
}{codes: map[string]int{}}

// failer is what a run needs of a test.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// run is one sequence of requests to both servers.
type run struct {
	failer
	space           string
	real, simulated *answerer
	done            []call
}

func begin(t failer, servers [2]*answerer) *run {
	compared.runs++
	r := &run{failer: t, space: fmt.Sprintf("compared-%d", compared.runs), real: servers[0], simulated: servers[1]}
	for _, a := range servers {
		a.seen, a.listed = map[string][]string{}, map[string][]string{}
	}
	r.both(call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"` + r.space + `"}}`, kind: "application/json"})
	r.both(call{method: "GET", path: "/api/v1/namespaces/" + r.space + "/configmaps"})
	for _, a := range servers {
		a.start = back(a.listed["/api/v1/namespaces/"+r.space+"/configmaps"], 0)
	}
	return r
}

// both makes a request to both servers, compares the answers and returns the code.
func (r *run) both(c call) int {
	r.Helper()
	r.done = append(r.done, c)
	code, body := r.real.ask(r, c)
	gotCode, gotBody := r.simulated.ask(r, c)
	if code != gotCode || normal(body) != normal(gotBody) {
		r.Fatalf("%s\nis answered with %d, want %d:\n%s\nafter\n%v", c, gotCode, code, cmp.Diff(pretty(normal(body)), pretty(normal(gotBody))), r.done)
	}
	compared.codes[fmt.Sprint(c.method, " ", code)]++
	return code
}

// watch compares the events of watches, to their end or as many as there are to be.
func (r *run) watch(toEnd bool, calls ...call) {
	r.Helper()
	got, want := make([][]string, len(calls)), make([][]string, len(calls))
	var waiting errgroup.Group
	for i, c := range calls {
		var err error
		if got[i], err = r.simulated.watch(r.simulated.request(r, c), 0); err != nil {
			r.Fatal(err)
		}
		most := len(got[i])
		if toEnd {
			most++
		}
		made := r.real.request(r, c)
		waiting.Go(func() (err error) {
			want[i], err = r.real.watch(made, most)
			return err
		})
	}
	if err := waiting.Wait(); err != nil {
		r.Fatal(err)
	}
	for i, c := range calls {
		if difference := cmp.Diff(pretty(normal(strings.Join(want[i], ""))), pretty(normal(strings.Join(got[i], "")))); difference != "" {
			r.Fatalf("%s\ndelivers other events:\n%s\nafter\n%v", c, difference, r.done)
		}
		compared.codes["event"] += len(got[i])
	}
}

// warm lets the API server fill its watch caches, which begin with the first request: a watch from before gets 410.
func warm(t *testing.T, server *answerer) {
	t.Helper()
	for _, kind := range kinds {
		apitest.Eventually(t, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, "GET", server.url+strings.ReplaceAll(kind.path, "SPACE", "default")+"?resourceVersion=0", nil)
			if err != nil {
				return err
			}
			if code, body, err := server.do(request); err != nil || code != http.StatusOK {
				return fmt.Errorf("%s: %d %s %w", kind.path, code, body, err)
			}
			return nil
		})
	}
}

func TestTheSameRequestsGetTheSameAnswers(t *testing.T) {
	servers := [2]*answerer{realServer(t), simulatedServer(t)}
	warm(t, servers[0])
	rapid.Check(t, func(t *rapid.T) {
		r := begin(t, servers)
		among := rapid.SliceOfNDistinct(rapid.IntRange(0, len(kinds)-1), 1, 3, rapid.ID[int]).Draw(t, "kinds")
		for _, i := range among {
			r.both(kinds[i].first(r.space))
		}
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			kind := kinds[rapid.SampledFrom(among).Draw(t, "kind")]
			c := kind.draw(t, r.space)
			r.both(c)
			for pages := 0; strings.Contains(c.query, "limit=1") && r.real.token != "" && pages < 3; pages++ {
				r.both(call{method: "GET", path: c.path, query: "limit=1&continue=TOKEN", accept: c.accept})
			}
		}
		for _, i := range among {
			if kind := kinds[i]; strings.Contains(kind.path, "SPACE") {
				selector := rapid.SampledFrom(append([]string{"", "labelSelector=app%3Dx"}, kind.selectors()...)).Draw(t, "selector")
				r.watch(compared.runs%20 == 0, call{method: "GET", path: strings.ReplaceAll(kind.path, "SPACE", r.space), query: "watch=true&timeoutSeconds=1&resourceVersion=START&" + selector})
			}
		}
	})
	t.Logf("%d runs: %v", compared.runs, compared.codes)
	// Of few runs these are never missing. The fixed stories have the others, such as the conflict of two updates.
	for _, much := range []string{"POST 201", "POST 409", "POST 422", "PATCH 200", "PATCH 422", "DELETE 200", "GET 200", "event"} {
		if compared.codes[much] == 0 && !t.Failed() {
			t.Errorf("no request is answered with %s: nothing is compared", much)
		}
	}
}

func pretty(body string) string { return strings.ReplaceAll(body, ",", ",\n") }
