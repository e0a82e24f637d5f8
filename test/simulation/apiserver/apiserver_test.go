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
	sortCauses(sorted)
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

// both makes a request to both servers and compares the answers.
func (r *run) both(c call) {
	r.Helper()
	r.done = append(r.done, c)
	code, body := r.real.ask(r, c)
	gotCode, gotBody := r.simulated.ask(r, c)
	if code != gotCode || normal(body) != normal(gotBody) {
		r.Fatalf("%s\nis answered with %d, want %d:\n%s\nafter\n%v", c, gotCode, code, cmp.Diff(pretty(normal(body)), pretty(normal(gotBody))), r.done)
	}
	compared.codes[fmt.Sprint(c.method, " ", code)]++
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
	for _, much := range []string{"POST 201", "POST 409", "POST 422", "PUT 200", "PUT 409", "PATCH 200", "PATCH 422", "DELETE 200", "GET 200", "event"} {
		if compared.codes[much] == 0 && !t.Failed() {
			t.Errorf("no request is answered with %s: nothing is compared", much)
		}
	}
}

// names are the names of the objects of a run.
func (k tried) names(space string) []string {
	if strings.Contains(k.path, "SPACE") {
		return []string{"a", "b"}
	}
	return []string{space + "-a", space + "-b"}
}

// first creates a good object.
func (k tried) first(space string) call {
	c := call{method: "POST", path: strings.ReplaceAll(k.path, "SPACE", space), kind: "application/json"}
	name := k.names(space)[0]
	c.object, c.body = c.path+"/"+name, strings.NewReplacer("NAME", name, "SPACE", space).Replace(k.bodies[0])
	return c
}

func (k tried) selectors() (queries []string) {
	for _, of := range k.fields {
		queries = append(queries, "fieldSelector="+url.QueryEscape(of))
	}
	return queries
}

func pretty(body string) string { return strings.ReplaceAll(body, ",", ",\n") }

// draw draws a request about a kind.
func (k tried) draw(t *rapid.T, space string) call {
	name := rapid.SampledFrom(k.names(space)).Draw(t, "name")
	fill := func(text string) string {
		return strings.NewReplacer("NAME", name, "SPACE", space).Replace(text)
	}
	c := call{path: fill(k.path), kind: "application/json"}
	c.object = c.path + "/" + name
	var query []string
	pick := func(label string, from []string) string { return rapid.SampledFrom(from).Draw(t, label) }
	chance := func(label string, oneIn int) bool { return rapid.IntRange(0, oneIn-1).Draw(t, label) == oneIn-1 }
	switch verb := rapid.SampledFrom([]string{"create", "create", "create", "get", "list", "update", "patch", "patch", "apply", "status", "status", "delete", "delete", "collection", "special", "special"}).Draw(t, "verb"); verb {
	case "create":
		c.method, c.body = "POST", fill(pick("body", k.bodies))
	case "get":
		c.method, c.path, c.accept = "GET", c.object, pick("accept", []string{"", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/xml"})
	case "list":
		c.method = "GET"
		query = k.drawList(t, pick, chance)
		c.accept = pick("accept", []string{"", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
	case "update":
		c.method, c.path = "PUT", c.object
		c.body = strings.Replace(fill(pick("body", k.bodies)), `"metadata":{`, `"metadata":{"resourceVersion":"VERSION",`, 1)
		if chance("unversioned", 4) {
			c.body = strings.Replace(c.body, `"resourceVersion":"VERSION",`, "", 1)
		}
		c.version = rapid.IntRange(0, 2).Draw(t, "stale") / 2
		if len(k.status) > 0 && chance("of status", 4) {
			c.path += "/status"
		}
	case "patch":
		c.method, c.path = "PATCH", c.object
		switch pick("type", []string{"merge", "strategic", "json", "json-patch"}) {
		case "merge":
			c.kind = "application/merge-patch+json"
			c.body = fill(pick("patch", append(append([]string{}, general...), k.merges...)))
		case "strategic":
			c.kind = "application/strategic-merge-patch+json"
			c.body = fill(pick("patch", append(append([]string{}, general...), k.merges...)))
		case "json-patch":
			c.kind = "application/json-patch+json"
			c.body = pick("patch", jsonPatches)
		default:
			c.body = "{}"
		}
	case "apply":
		c.method, c.path, c.kind = "PATCH", c.object, "application/apply-patch+yaml"
		c.body = fill(pick("applied", append([]string{`{"metadata":{"labels":{"app":"x"}}}`}, k.applied...)))
		if !chance("nameless", 10) {
			query = append(query, "fieldManager="+pick("manager", []string{"m1", "m2"}))
		}
		if chance("forced", 2) {
			query = append(query, "force=true")
		}
	case "status":
		if len(k.status) == 0 {
			c.method, c.path = "GET", c.object+"/status"
			break
		}
		c.method, c.path, c.kind = "PATCH", c.object+"/status", "application/merge-patch+json"
		c.body = fill(pick("status", k.status))
	case "delete":
		c.method, c.path = "DELETE", c.object
		c.body = pick("options", []string{"", "", `{"gracePeriodSeconds":0}`, `{"gracePeriodSeconds":9}`, `{"preconditions":{"uid":"1"}}`, `{"preconditions":{"resourceVersion":"VERSION"}}`, `{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"Orphan"}`, `{"propagationPolicy":"Never"}`, `{"gracePeriodSeconds":-3}`})
		c.version = rapid.IntRange(0, 1).Draw(t, "stale")
	case "collection":
		c.method = "DELETE"
		query = append(query, "labelSelector="+url.QueryEscape(pick("selector", []string{"app=x", "app=y", "app in (", "role"})))
		if !strings.Contains(k.path, "SPACE") {
			c.method, query = "GET", query[:0] // other worlds have their objects there, too
			c.path = c.object
		}
	case "special":
		k.special(&c, pick, fill)
	}
	if c.method != "GET" && chance("dry run", 8) {
		query = append(query, "dryRun=All")
	}
	if c.method != "GET" && chance("strict", 8) {
		query = append(query, "fieldValidation="+pick("validation", []string{"Strict", "Ignore", "Sometimes"}))
	}
	c.query = strings.Join(query, "&")
	return c
}

func (k tried) drawList(t *rapid.T, pick func(string, []string) string, chance func(string, int) bool) (query []string) {
	if !strings.Contains(k.path, "SPACE") {
		query = append(query, "labelSelector=app%3Dnone")
	}
	if chance("labels", 3) {
		query = append(query, "labelSelector="+url.QueryEscape(pick("selector", []string{"app=x", "app!=x", "app in (x,y)", "!app", "app in ("})))
	}
	if chance("fields", 3) && len(k.fields) > 0 {
		query = append(query, "fieldSelector="+url.QueryEscape(pick("fields", k.fields)))
	}
	if chance("limited", 3) {
		query = append(query, "limit=1")
	}
	switch pick("version", []string{"", "", "not older", "exact", "legacy", "future", "nonsense", "no match"}) {
	case "not older":
		query = append(query, "resourceVersion=LISTED", "resourceVersionMatch=NotOlderThan")
	case "exact":
		query = append(query, "resourceVersion=LISTED", "resourceVersionMatch=Exact")
	case "legacy":
		query = append(query, "resourceVersion=LISTED")
	case "nonsense":
		query = append(query, "resourceVersion=x")
	case "no match":
		query = append(query, "resourceVersionMatch=Exact")
	}
	return query
}

// special draws a request that only this kind has.
func (k tried) special(c *call, pick func(string, []string) string, fill func(string) string) {
	switch {
	case strings.HasSuffix(k.path, "/pods"):
		c.method = "POST"
		switch pick("special", []string{"binding", "binding", "eviction"}) {
		case "binding":
			c.path = c.object + "/binding"
			c.body = fill(pick("binding", []string{
				`{"metadata":{"name":"NAME"},"target":{"kind":"Node","name":"n1"}}`, `{"metadata":{"name":"NAME","uid":"1"},"target":{"kind":"Node","name":"n1"}}`,
				`{"metadata":{"name":"other"},"target":{"name":"n1"}}`, `{"metadata":{"name":"NAME","annotations":{"a":"b"}},"target":{"kind":"Node","name":"n2"}}`, `{"metadata":{"name":"NAME"},"target":{"kind":"Pod","name":""}}`,
			}))
		default:
			c.path = c.object + "/eviction"
			c.body = fill(pick("eviction", []string{
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"}}`, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"},"deleteOptions":{"gracePeriodSeconds":0}}`,
				`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"NAME"},"deleteOptions":{"preconditions":{"uid":"1"}}}`, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"other"}}`,
			}))
		}
	case k.scale:
		c.method, c.path, c.kind = "PATCH", c.object+"/scale", "application/merge-patch+json"
		c.body = pick("scale", []string{`{"spec":{"replicas":3}}`, `{"spec":{"replicas":-3}}`})
		c.object = ""
	default:
		c.method, c.path = pick("method", []string{"GET", "POST", "PUT"}), c.object+"/"+pick("part", []string{"scale", "nonsense", "status"})
		c.body = fill(pick("body", k.bodies))
	}
}
