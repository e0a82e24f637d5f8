package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/board"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// reader asks the address of the page with a token.
type reader struct{ address, token string }

func (r reader) open(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+path, nil)
	if err != nil {
		return nil, err
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	return http.DefaultClient.Do(request)
}

func (r reader) read(ctx context.Context, part string, into any) error {
	response, err := r.open(ctx, api.Overviews.Path("", part))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return json.Unmarshal(body, &api.Reply[any]{Answer: into})
}

// token is one of an account without rights, or with those to view a namespace.
func (w *testCluster) token(name, namespace string) string {
	w.t.Helper()
	if namespace != "" {
		w.user(name, namespace)
	} else {
		_, err := w.core.CoreV1().ServiceAccounts(systemNamespace).Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(w.t, err)
	}
	config, err := w.cluster.ServiceAccountConfig(w.t.Context(), systemNamespace, name)
	must(w.t, err)
	return config.BearerToken
}

func TestThePageShowsWhatItsReaderMaySee(t *testing.T) {
	w := onCluster(t)
	name, other := "page-"+w.suffix, "hidden-"+w.suffix
	scheduler, address := "web-"+w.suffix, freeAddress(t)
	p := w.start("--leader-elect=false", "--scheduler-name="+scheduler, "--web-address="+address)
	w.ready(p)
	ctx := t.Context()
	for _, namespace := range []string{name, other} {
		_, err := w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := w.batch.SchedulingV1beta1().Queues().Create(ctx, &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.QueueSpec{DequeueStrategy: v1beta1.DequeueStrategyFIFO}}, metav1.CreateOptions{})
	must(t, err)
	w.waits(other, "secret", name, scheduler, "900")
	time.Sleep(1100 * time.Millisecond) // the age of objects has seconds
	w.waits(name, "mine", name, scheduler, "1")
	mine, foreign := reader{address, w.token("reader-"+w.suffix, name)}, reader{address, w.token("foreign-"+w.suffix, "")}
	var jobs board.Jobs
	apitest.Eventually(t, func(ctx context.Context) error {
		jobs = board.Jobs{}
		if err := mine.read(ctx, "jobs", &jobs); err != nil {
			return err
		}
		if len(jobs.Rows) != 1 || jobs.Rows[0].Reason != "HeldUp" || jobs.OtherNamespaces < 1 {
			return fmt.Errorf("the jobs are %+v", jobs)
		}
		return nil
	})
	if row := jobs.Rows[0]; row.Job != name+"/mine" || !strings.Contains(row.Message, "(another namespace)") || strings.Contains(fmt.Sprint(jobs), "secret") {
		t.Errorf("the reader sees %+v", jobs)
	}
	var summary board.Summary
	must(t, mine.read(ctx, "summary", &summary))
	if summary.Everything || summary.Jobs.Pending+summary.Jobs.Admitted < 2 || len(summary.Namespaces) != 1 {
		t.Errorf("the summary is %+v", summary)
	}
	var nodes board.Nodes
	must(t, mine.read(ctx, "nodes", &nodes))
	if !nodes.Hidden || len(nodes.Rows) != 0 || nodes.Totals.Nodes == 0 {
		t.Errorf("the nodes are %+v", nodes)
	}
	var cycles board.Cycles
	must(t, mine.read(ctx, "cycles", &cycles))
	if text := fmt.Sprint(cycles); len(cycles.Rows) == 0 || strings.Contains(text, "secret") {
		t.Errorf("the cycles are %s", text)
	}
	if err := foreign.read(ctx, "summary", &summary); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a reader without rights: %v, want 403", err)
	}
	if err := (reader{address, "nonsense"}).read(ctx, "jobs", &jobs); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: %v, want 401", err)
	}
	if err := mine.read(ctx, "nothing", &jobs); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a part that is not there: %v, want 404", err)
	}
	t.Run("changes are told at once", func(t *testing.T) {
		must(t, mine.read(ctx, "jobs", &jobs))
		ctx, cancel := context.WithTimeout(ctx, apitest.Patience)
		defer cancel()
		stream, err := mine.open(ctx, api.Overviews.Path("", "")+"?watch=true")
		must(t, err)
		defer stream.Body.Close()
		if kind := stream.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("the stream is %s", kind)
		}
		lines := bufio.NewScanner(stream.Body)
		change := func() error {
			for lines.Scan() {
				if lines.Text() == "event: change" {
					return nil
				}
			}
			return errors.Join(lines.Err(), io.ErrUnexpectedEOF)
		}
		must(t, change())
		w.waits(name, "next", name, scheduler, "1")
		for isThere := false; !isThere; {
			must(t, change())
			since := board.Jobs{}
			must(t, mine.read(ctx, "jobs?since="+jobs.Token, &since))
			if since.Whole {
				t.Fatal("all rows are sent again")
			}
			for _, row := range since.Rows {
				isThere = isThere || row.Job == name+"/next"
			}
		}
	})
	t.Run("the page itself is public", func(t *testing.T) {
		for path, want := range map[string]string{"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8"} {
			response, err := (reader{address: address}).open(ctx, path)
			must(t, err)
			body, err := io.ReadAll(response.Body)
			must(t, err)
			must(t, response.Body.Close())
			policy := response.Header.Get("Content-Security-Policy")
			if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != want || len(body) == 0 || !strings.Contains(policy, "default-src 'none'") ||
				strings.Contains(policy, "unsafe") {
				t.Errorf("%s: %s, %s", path, response.Status, response.Header)
			}
		}
	})
}

// The page of a process that does not lead shows what the leader says, and goes on when another process leads.
func TestThePageFindsTheLeaderAtAnotherAddress(t *testing.T) {
	w := onCluster(t)
	w.register()
	name := "relay-" + w.suffix
	begin := func() (p *instance, address string) {
		address = freeAddress(t)
		return w.start("--leader-elect=true", "--leader-elect-resource-name="+name, "--scheduler-name="+name, "--answers-address="+freeAddress(t),
			"--answers-service="+systemNamespace+"/"+publish.Service, "--web-address="+address), address
	}
	first, ofFirst := begin()
	w.shows(first, "hekla_leading 1")
	_, ofSecond := begin()
	_, err := w.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	w.waits(name, "mine", "missing-"+w.suffix, name, "1")
	mine, foreign := reader{ofSecond, w.token("relay-reader-"+w.suffix, name)}, reader{ofSecond, w.token("relay-foreign-"+w.suffix, "")}
	shows := func(r reader, parts ...string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			var jobs board.Jobs
			if err := r.read(ctx, "jobs", &jobs); err != nil {
				return err
			}
			for _, part := range parts {
				if !strings.Contains(fmt.Sprint(jobs.Rows), part) {
					return fmt.Errorf("no %s in %+v", part, jobs.Rows)
				}
			}
			return nil
		})
	}
	shows(reader{ofFirst, mine.token}, name+"/mine")
	shows(mine, name+"/mine")
	var jobs board.Jobs
	if err := foreign.read(t.Context(), "jobs", &jobs); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a reader without rights: %v, want 403", err)
	}
	if err := (reader{ofSecond, "nonsense"}).read(t.Context(), "jobs", &jobs); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: %v, want 401", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	stream, err := mine.open(ctx, api.Overviews.Path("", "")+"?watch=true")
	must(t, err)
	defer stream.Body.Close()
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || stream.StatusCode != http.StatusOK {
		t.Errorf("the stream of the leader says %s %q, %v", stream.Status, line, err)
	}
	first.stop()
	must(t, w.ends(first))
	w.waits(name, "later", "missing-"+w.suffix, name, "1")
	shows(mine, name+"/mine", name+"/later") // the second leads now
}
