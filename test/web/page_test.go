package web

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/answers/charts"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/browser"
)

var pictures = flag.Bool("pictures", false, "make the pictures of docs/web.md again")

// album is where the pictures are.
const album = "../../docs/web"

// arguments are those of a step.
type arguments = browser.Arguments

type table struct {
	All, Drawn int
	First      string
}

// open opens the page in a new window, and checks when the test ends that the browser has nothing to complain about.
func (w *site) open(t *testing.T, b *browser.Browser, token string, more arguments) {
	t.Helper()
	with := arguments{"address": "http://" + w.address, "token": token}
	for name, value := range more {
		with[name] = value
	}
	apitest.Eventually(t, func(context.Context) error { return b.Do("open", with, nil) })
	t.Cleanup(func() {
		for _, problem := range browser.Must[[]string](t, b, "trouble", nil) {
			t.Error(problem)
		}
	})
}

// settle waits until the scheduler has nothing left to place.
func (w *site) settle(t *testing.T, b *browser.Browser) {
	t.Helper()
	apitest.Eventually(t, func(context.Context) error {
		var text string
		if err := b.Do("go", arguments{"path": "#/jobs", "wait": "[role=grid]"}, &text); err != nil {
			return err
		}
		if !strings.Contains(text, "QueueNotFound") || !strings.Contains(text, "TooLargeForAnyNode") {
			return fmt.Errorf("the jobs are %s", text)
		}
		return nil
	})
}

func TestThePageInABrowser(t *testing.T) {
	b := browser.Start(t, source)
	w := onSite(t)
	t.Run("without a token it asks for one", func(t *testing.T) { w.login(t, b) })
	t.Run("the token leaves the address at once", func(t *testing.T) {
		w.open(t, b, w.operator, nil)
		opened := browser.Must[struct{ URL, Title string }](t, b, "open", arguments{"address": "http://" + w.address, "token": w.operator})
		if strings.Contains(opened.URL, "token") || opened.Title != "Overview · Hekla" {
			t.Errorf("the page is %+v", opened)
		}
	})
	t.Run("an operator sees everything", func(t *testing.T) { w.everything(t, b) })
	t.Run("a user sees the own namespace, and sums", func(t *testing.T) { w.ownNamespace(t, b) })
	t.Run("everything is done with the keyboard", func(t *testing.T) { w.keyboard(t, b) })
	t.Run("when a job starts", func(t *testing.T) { w.starts(t, b) })
	t.Run("Workloads and what they hold", func(t *testing.T) { w.ofKueue(t, b) })
	t.Run("files of what is shown", func(t *testing.T) { w.exports(t, b) })
	t.Run("evictions by plan", func(t *testing.T) { w.evictions(t, b) })
	t.Run("the queue tree and the nodes", func(t *testing.T) { w.details(t, b) })
	for _, look := range []struct {
		name  string
		dark  bool
		width int
	}{{"light", false, 1280}, {"dark", true, 1280}, {"on a phone", false, 390}} {
		t.Run("every reader can use it, "+look.name, func(t *testing.T) { w.accessible(t, b, look.dark, look.width) })
	}
	t.Run("pictures", func(t *testing.T) { w.pictures(t, b) })
	t.Run("it survives failures and a new leader", func(t *testing.T) { w.survives(t, b) })
	t.Run("fifty queues", func(t *testing.T) { w.fiftyQueues(t, b) })
	t.Run("ten thousand jobs", func(t *testing.T) { w.tenThousand(t, b) })
}

func (w *site) login(t *testing.T, b *browser.Browser) {
	w.open(t, b, "", nil)
	if said := browser.Must[string](t, b, "login", arguments{"token": "nonsense"}); !strings.Contains(said, "refused") {
		t.Errorf("a wrong token: %q", said)
	}
	if text := browser.Must[string](t, b, "text", nil); strings.Contains(text, "Waiting jobs") {
		t.Errorf("a wrong token shows %s", text)
	}
	if said := browser.Must[string](t, b, "login", arguments{"token": w.operator}); said != "live" {
		t.Errorf("a good token: %q", said)
	}
}

// want is an error for each part that a text lacks.
func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func (w *site) everything(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	w.settle(t, b)
	all := browser.Must[table](t, b, "rows", nil)
	if all.All != w.jobs {
		t.Errorf("%d jobs, want %d", all.All, w.jobs)
	}
	text := browser.Must[string](t, b, "fill", arguments{"label": "Filter", "value": "too-large"})
	want(t, text, fmt.Sprintf("1 job of %d", w.jobs), "research/too-large")
	text = browser.Must[string](t, b, "go", arguments{"path": "#/jobs/research/too-large", "wait": "[data-cause]"})
	want(t, text, "TooLargeForAnyNode", "It cannot start as things are", "32", "What would make it start now", "What happened", "too-large-worker-0")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/", "wait": ".tile"}), "Waiting jobs", "QueueNotFound", "Room", "pods bound")
	browser.Must[string](t, b, "wait", arguments{"text": "Who holds the room"})
	want(t, browser.Must[string](t, b, "wait", arguments{"text": "of 32 nodes are held"}), "nvidia.com/gpu", "Is expected to end", "research/train-llm-", "By namespace:")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/cycles", "wait": ".cycles li"}), "bound", "Cycle ")
	apitest.Eventually(t, func(context.Context) error {
		var text string
		if err := b.Do("go", arguments{"path": "#/evictions", "wait": "h1"}, &text); err != nil {
			return err
		}
		if !strings.Contains(text, "train-llm-") || !strings.Contains(text, "production/confidential") {
			return fmt.Errorf("the evictions are %s", text)
		}
		return nil
	})
}

// survives lets an answer fail, and the scheduler end and another begin. What was read stays, and nothing is live that
// is not.
func (w *site) survives(t *testing.T, b *browser.Browser) {
	type link struct {
		Head  string
		Notes []string
	}
	linked := func(state string) link {
		t.Helper()
		return browser.Must[link](t, b, "linked", arguments{"state": state})
	}
	w.open(t, b, w.operator, nil)
	w.settle(t, b)
	browser.Must[any](t, b, "expect", arguments{"pattern": "status of 503|ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE|ERR_SOCKET"})
	before := browser.Must[table](t, b, "rows", nil)

	browser.Must[any](t, b, "fail", arguments{"path": "/overviews/jobs", "status": 503})
	browser.Must[string](t, b, "go", arguments{"path": "#/", "wait": ".tile"})
	browser.Must[string](t, b, "go", arguments{"path": "#/jobs", "wait": ".stale"})
	said := linked("stale")
	if said.Head != "not up to date" || !slices.ContainsFunc(said.Notes, func(note string) bool {
		return strings.HasPrefix(note, "These values are of ") && strings.Contains(note, " ago: the scheduler is busy. Trying again.")
	}) {
		t.Errorf("of an answer that failed the page says %+v", said)
	}
	if rows := browser.Must[table](t, b, "rows", nil); rows.All != before.All {
		t.Errorf("of %d jobs %d are shown after one answer has failed", before.All, rows.All)
	}
	browser.Must[any](t, b, "heal", nil)
	linked("live") // it has tried again by itself

	w.stop()
	if said := linked("lost"); said.Head != "not connected" || !strings.Contains(said.Notes[0], "not up to date") {
		t.Errorf("without a scheduler the page says %+v", said)
	}
	if rows := browser.Must[table](t, b, "rows", nil); rows.All != before.All {
		t.Errorf("of %d jobs %d are shown without a scheduler", before.All, rows.All)
	}
	w.past(t)
	w.job(t, "research", "newcomer", "ai-training", 1, amounts("1", "1Gi", "0"), false, "")
	w.jobs, w.ofUser = w.jobs+1, w.ofUser+1
	w.lead()
	linked("live")
	apitest.Eventually(t, func(context.Context) error {
		var rows table
		if err := b.Do("rows", nil, &rows); err != nil {
			return err
		}
		if rows.All != before.All+1 {
			return fmt.Errorf("after a new leader there are %d jobs, want %d", rows.All, before.All+1)
		}
		return nil
	})
	want(t, browser.Must[string](t, b, "fill", arguments{"label": "Filter", "value": "newcomer"}), "research/newcomer")
	w.charted(t, b)
}

// past checks that the leader that has just ended has saved its charts, and puts two weeks in their place.
func (w *site) past(t *testing.T) {
	t.Helper()
	config := &corev1.ConfigMap{}
	must(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: apitest.SystemNamespace, Name: "hekla-charts"}, config))
	before := charts.New()
	must(t, before.Restore(config.BinaryData["charts.json.gz"], time.Now()))
	if c := before.Chart("", "day", time.Now()); len(c.Lines) == 0 {
		t.Error("a leader that ended in order has saved no chart of the cluster")
	}
	const gpus, pause, fine = 120, 10 * time.Minute, 3 * time.Hour // ago: the other leader ended
	store, now := charts.New(), time.Now()
	for at, step := now.Add(-14*24*time.Hour), 10*time.Minute; at.Before(now.Add(-pause)); at = at.Add(step) {
		if at.After(now.Add(-fine)) {
			step = time.Minute
		}
		hours := float64(at.Unix()) / 3600
		held := math.Round(gpus + 60*math.Sin(hours*math.Pi/12) + 8*math.Sin(hours*7))
		values := map[charts.Key]float64{}
		for measure, value := range map[charts.Measure]float64{charts.Used: held, charts.Size: gpus, charts.Borrowed: max(held-gpus, 0), charts.Waiting: max(1.5*held-gpus-60, 0)} {
			values[charts.Key{Subject: "Queue/ai-training", Measure: measure, Resource: "nvidia.com/gpu"}] = value
		}
		values[charts.Key{Subject: "Queue/ai-training", Measure: charts.Evictions}] = math.Floor(max(3*math.Sin(hours*2), 0))
		store.Add(charts.Sample{Time: at, Values: values})
	}
	packed, _, err := store.Save()
	must(t, err)
	config.BinaryData = map[string][]byte{"charts.json.gz": packed}
	must(t, w.api.Update(t.Context(), config))
}

// charted reads the charts after a change of the leader: what was saved is there, and when it changed. The lists of
// evictions and cycles say since when they are known.
func (w *site) charted(t *testing.T, b *browser.Browser) {
	for _, path := range []string{"#/evictions", "#/cycles"} {
		want(t, browser.Must[string](t, b, "go", arguments{"path": path, "wait": ".count time"}), "also by another process that led, is not listed")
	}
	const page = "#/charts?of=Queue%2Fai-training&resource=nvidia.com%2Fgpu"
	apitest.Eventually(t, func(context.Context) error {
		var text string
		if err := b.Do("go", arguments{"path": page, "wait": ".u-wrap"}, &text); err != nil {
			return err
		}
		// The numbers are the last ones, which the new leader has measured.
		for _, part := range []string{"Another process began to lead at", "gpu", `used 1[89]\d\n`, `borrowed [67]\d\n`, `share 120\n`, "Evictions"} {
			if !regexp.MustCompile(part).MatchString(text) {
				return fmt.Errorf("the charts of a queue have no %q: %s", part, text)
			}
		}
		return nil
	})
	type file struct{ Name, Text string }
	table := func() (lines [][]string) {
		t.Helper()
		lines, err := csv.NewReader(strings.NewReader(browser.Must[file](t, b, "download", arguments{"group": "Export charts", "name": "CSV"}).Text)).ReadAll()
		must(t, err)
		return lines
	}
	const hours, gap = 120, 10 // minutes
	if lines := table(); len(lines) < hours-gap-5 || len(lines) > hours-gap+5 || lines[0][0] != "time" || !slices.Contains(lines[0], "evictions") {
		t.Errorf("of two hours, ten minutes of which had no leader, there are %d lines: %v", len(lines), lines[:min(len(lines), 3)])
	}
	for _, v := range browser.Must[[]string](t, b, "violations", nil) {
		t.Errorf("the charts of a queue: %s", v)
	}
	folder := t.TempDir()
	if *pictures {
		folder = album
	}
	browser.Must[string](t, b, "go", arguments{"path": page + "&span=day", "wait": ".u-wrap"})
	w.picture(t, b, folder, "charts")
	text := browser.Must[string](t, b, "go", arguments{"path": "#/charts?resource=cpu&span=weeks", "wait": ".u-wrap"})
	want(t, text, "what nodes offer", "demand that waits for admission", "% used on average", "the cluster", "ClusterQueue/batch")
}

func (w *site) ownNamespace(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.user, nil)
	w.settle(t, b)
	rows := browser.Must[table](t, b, "rows", nil)
	text := browser.Must[string](t, b, "text", nil)
	want(t, text, "namespace that you may not see", "research/too-large")
	if rows.All != w.ofUser {
		t.Errorf("the user sees %d jobs", rows.All)
	}
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/", "wait": ".tile"}), "You see the jobs of 1 namespace: research")
	held := browser.Must[string](t, b, "wait", arguments{"text": "of 32 nodes are held"})
	if want(t, held, "research/train-llm-"); strings.Contains(held, "production") {
		t.Errorf("the overview shows who holds room in another namespace:\n%s", held)
	}
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/nodes", "wait": ".note"}), "You may not see single nodes")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/jobs/production/serve-01", "wait": ".problem"}), "may not get it in namespace")
	for _, path := range []string{"#/", "#/jobs", "#/queues", "#/queues/ai-inference", "#/evictions", "#/cycles", "#/jobs/research/train-llm-00"} {
		text := browser.Must[string](t, b, "go", arguments{"path": path, "wait": "h1"})
		if strings.Contains(text, "confidential") || strings.Contains(text, "serve-0") {
			t.Errorf("%s shows a job of another namespace:\n%s", path, text)
		}
	}
}

type pressed struct{ Hash, Focused, Active string }

func (w *site) keyboard(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	w.settle(t, b)
	press := func(keys ...string) pressed { return browser.Must[pressed](t, b, "press", arguments{"keys": keys}) }
	if got := press("g", "n"); got.Hash != "#/nodes" {
		t.Errorf("g n leads to %+v", got)
	}
	press("g", "j")
	browser.Must[string](t, b, "go", arguments{"path": "#/jobs", "wait": "[role=grid]"})
	if got := press("/"); got.Focused != "INPUT" {
		t.Errorf("/ leads to %+v", got)
	}
	browser.Must[string](t, b, "fill", arguments{"label": "Filter", "value": "etl"})
	// Tab through the filters and the head of the table, then move and open.
	for range 25 {
		if got := press("Tab"); got.Focused == "Jobs" {
			break
		}
	}
	if got := press("ArrowDown", "ArrowDown"); got.Focused != "Jobs" || !strings.Contains(got.Active, "etl-") {
		t.Fatalf("in the table the arrows lead to %+v", got)
	}
	if got := press("Enter"); !strings.HasPrefix(got.Hash, "#/jobs/research/etl-") {
		t.Errorf("Enter opens %+v", got)
	}
	if got := press("?"); got.Focused == "" {
		t.Errorf("the help is %+v", got)
	}
	press("Escape")
}

// starts shows a job that waits for others of its queue, which have a deadline, and one that can never start.
func (w *site) starts(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	w.settle(t, b)
	apitest.Eventually(t, func(context.Context) error {
		said := ""
		for i := range etls {
			var text string
			if err := b.Do("go", arguments{"path": fmt.Sprintf("#/jobs/research/etl-%02d", i), "wait": "[data-cause]"}, &text); err != nil {
				return err
			}
			if _, said, _ = strings.Cut(text, "When it starts"); said == "" {
				continue // it runs
			}
			if strings.Contains(said, "Between") && strings.Contains(said, "how long") && strings.Contains(said, "no later job is served before it") {
				want(t, text, "Who holds it", "128", "it declares how long it runs", "research/etl-")
				return nil
			}
		}
		return fmt.Errorf("the last job of analytics that waits starts %s", said)
	})
	text := browser.Must[string](t, b, "go", arguments{"path": "#/jobs/research/too-large", "wait": "[data-cause]"})
	_, said, _ := strings.Cut(text, "When it starts")
	want(t, said, "Never, as things are.")
}

// ofKueue finds a Workload that waits by two clicks from the overview, the quotas that it lacks, and a job whose
// scheduler's name is mistyped.
func (w *site) ofKueue(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	apitest.Eventually(t, func(context.Context) error {
		var text string
		if err := b.Do("go", arguments{"path": "#/jobs?kind=Workload", "wait": "[role=grid] .body [role=row]"}, &text); err != nil {
			return err
		}
		for _, part := range []string{"WaitingForQuota", "ExceedsMaxQuota", "research/waits", "research/too-much", fmt.Sprintf("%d jobs of %d", workloads, w.jobs)} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("no %s in %s", part, text)
			}
		}
		return nil
	})
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/", "wait": ".tile"}), "WaitingForQuota", "and 2 ClusterQueues", "1 job of queues of this scheduler")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/jobs?state=Foreign", "wait": "[role=grid] .body [role=row]"}), "research/mistyped", "vulcano")
	text := browser.Must[string](t, b, "go", arguments{"path": "#/jobs/research/workload%2Fwaits", "wait": "[data-cause]"})
	want(t, text, "WaitingForQuota", "Quotas that are short", "standard", "hekla why workload waits -n research", "1 of 1 that wait in its ClusterQueue",
		"Who holds it", "research/borrows", "What would make it start now", "If its pods have room on the nodes.")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/jobs/research/workload%2Ftoo-much", "wait": "[data-cause]"}), "It cannot start as things are")
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/jobs/research/workload%2Fborrows", "wait": "[data-cause]"}), "What it holds", "admitted")
	browser.Must[string](t, b, "go", arguments{"path": "#/queues/ClusterQueue/batch", "wait": "[aria-label='Tree of quotas'] tr.selected"})
	text = browser.Must[string](t, b, "wait", arguments{"text": "production/batch"}) // LocalQueues are asked for alone
	want(t, text, "ClusterQueues and Cohorts", "shared", "4 / 2", "+2 borrowed", "2 lent", "Weighted share", "cpu 3", "research/batch", "production/batch")
	w.open(t, b, w.user, nil)
	browser.Must[string](t, b, "go", arguments{"path": "#/queues", "wait": "[aria-label='Tree of quotas'] tbody tr"})
	text = browser.Must[string](t, b, "wait", arguments{"text": "2 in namespaces that you may not see"})
	if want(t, text, "research/batch", "2 in namespaces that you may not see"); strings.Contains(text, "production/") {
		t.Errorf("the LocalQueues of another namespace are in\n%s", text)
	}
}

func (w *site) details(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	text := browser.Must[string](t, b, "go", arguments{"path": "#/queues", "wait": "[data-row]"})
	want(t, text, "ai-training", "analytics", "borrowed", "guarantee", "ceiling", "Demand that waits",
		"Of ai the ceiling is not enforced: its capability does not hold for the queues below it")
	w.sorts(t, b)
	text = browser.Must[string](t, b, "click", arguments{"role": "button", "name": "Queues below ai"})
	if strings.Contains(text, "ai-training") {
		t.Error("a queue that is folded shows those below it")
	}
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/queues/analytics", "wait": ".card details"}), "It may take from", "Priority")
	text = browser.Must[string](t, b, "go", arguments{"path": "#/nodes", "wait": ".cell"})
	want(t, text, "The fullest resource is gpu on ", " used, its fullest resource; ")
	text = browser.Must[string](t, b, "fill", arguments{"label": "gpu of a pod", "value": "8"})
	want(t, text, "32 nodes", "would have room now", "Stranded")
	nodes, err := w.cluster.Nodes(t.Context())
	must(t, err)
	want(t, browser.Must[string](t, b, "go", arguments{"path": "#/nodes/" + nodes[3], "wait": ".card table"}), "Allocatable", nodes[3])
}

// sheet is a table whose head sorts it.
type sheet struct {
	Rows   []string
	Height int
}

// sorts sorts the queues by how much of their share they use.
func (w *site) sorts(t *testing.T, b *browser.Browser) {
	queues := func() sheet {
		t.Helper()
		return browser.Must[sheet](t, b, "sheet", arguments{"label": "Queue tree"})
	}
	tree := queues().Rows
	if at := slices.Index(tree, "ai"); at < 0 || !slices.Equal(tree[at:at+3], []string{"ai", "ai-inference", "ai-training"}) {
		t.Errorf("the tree is %v", tree)
	}
	browser.Must[string](t, b, "click", arguments{"role": "button", "name": "gpu"})
	browser.Must[string](t, b, "click", arguments{"role": "button", "name": "gpu"})
	if got := queues().Rows; got[0] != "ai-training" {
		t.Errorf("by the GPUs that they use of their share the queues are %v", got)
	}
	browser.Must[string](t, b, "click", arguments{"role": "button", "name": "gpu"})
	if got := queues().Rows; !slices.Equal(got, tree) {
		t.Errorf("no longer sorted the queues are %v, and were %v", got, tree)
	}
}

// fiftyQueues fit on two screens of a laptop.
func (w *site) fiftyQueues(t *testing.T, b *browser.Browser) {
	const most = 2 * 800 // pixels
	for i := range 50 {
		w.make(t, queue(fmt.Sprintf("team-%02d", i), "", nil, amounts(strconv.Itoa(i+1), "8Gi", "1"), nil))
	}
	w.open(t, b, w.operator, nil)
	apitest.Eventually(t, func(context.Context) error {
		browser.Must[string](t, b, "go", arguments{"path": "#/queues", "wait": "[data-row]"})
		if got := browser.Must[sheet](t, b, "sheet", arguments{"label": "Queue tree"}); len(got.Rows) < 50 || got.Height*50/len(got.Rows) > most {
			return fmt.Errorf("%d queues take %d pixels, and %d for fifty are too many", len(got.Rows), got.Height, most)
		}
		return nil
	})
}

// exports filters by namespace, and takes what is shown as files.
func (w *site) exports(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	w.settle(t, b)
	text := browser.Must[string](t, b, "choose", arguments{"label": "Namespace", "value": "production"})
	if want(t, text, "production/serve-01", fmt.Sprintf(" of %d", w.jobs)); strings.Contains(text, "research/") {
		t.Errorf("jobs of research are among those of production:\n%s", text)
	}
	shown := browser.Must[table](t, b, "rows", nil)
	for _, c := range []struct {
		path, wait, group string
		names             []string // of columns
		rows              int
	}{
		{"#/jobs?namespace=production", "[role=grid]", "jobs", []string{"namespace", "name", "state", "requests.cpu"}, shown.All},
		{"#/queues", "[data-row]", "queues", []string{"queue", "holds.nvidia.com/gpu", "demand.cpu"}, 5},
		{"#/queues", "[aria-label='Tree of quotas'] tbody tr", "clusterqueues", []string{"kind", "name", "flavor", "used"}, 3},
		{"#/evictions?text=confidential", ".evictions li", "evictions", []string{"time", "pod", "job", "for", "rule", "message"}, 0},
	} {
		browser.Must[string](t, b, "go", arguments{"path": c.path, "wait": c.wait})
		take := func(name string) (text string) {
			file := browser.Must[struct{ Name, Text string }](t, b, "download", arguments{"group": "Export " + c.group, "name": name})
			if file.Name != c.group+"."+strings.ToLower(name) {
				t.Errorf("the file of %s is called %s", c.group, file.Name)
			}
			return file.Text
		}
		lines, err := csv.NewReader(strings.NewReader(take("CSV"))).ReadAll()
		must(t, err)
		var objects []map[string]any
		must(t, json.Unmarshal([]byte(take("JSON")), &objects))
		if len(lines) < 2 || len(objects) != len(lines)-1 || c.rows > 0 && len(objects) != c.rows {
			t.Fatalf("of %s there are %d lines as CSV and %d objects as JSON, want %d rows", c.group, len(lines), len(objects), c.rows)
		}
		for _, name := range c.names {
			if at := slices.Index(lines[0], name); at < 0 {
				t.Errorf("the columns of %s are %v, and %s is missing", c.group, lines[0], name)
			} else if got, isThere := objects[0][name]; isThere && fmt.Sprint(got) != lines[1][at] {
				t.Errorf("%s of the first of %s is %q as CSV and %v as JSON", name, c.group, lines[1][at], got)
			}
		}
		if c.group == "jobs" && objects[0]["namespace"] != "production" {
			t.Errorf("the first job is %v", objects[0])
		}
	}
}

// evictions are grouped by their plan.
func (w *site) evictions(t *testing.T, b *browser.Browser) {
	w.open(t, b, w.operator, nil)
	apitest.Eventually(t, func(context.Context) error {
		var text string
		if err := b.Do("go", arguments{"path": "#/evictions?namespace=production", "wait": "h1"}, &text); err != nil {
			return err
		}
		if !regexp.MustCompile(`(?s)\d+ pods for\s+production/confidential\s+by \w+ under rule`).MatchString(text) || !strings.Contains(text, "research/train-llm-") {
			return fmt.Errorf("the evictions are %s", text)
		}
		return nil
	})
	browser.Must[string](t, b, "go", arguments{"path": "#/evictions?namespace=nowhere", "wait": "h1"})
	apitest.Eventually(t, func(context.Context) error {
		if text := browser.Must[string](t, b, "text", nil); !strings.Contains(text, "0 evictions in 0 decisions") {
			return fmt.Errorf("of no namespace the evictions are %s", text)
		}
		return nil
	})
}

// views are the parts of the page, and what shows that they are there.
var views = []struct{ path, wait string }{
	{"#/", ".tile"}, {"#/jobs", "[role=grid] .body [role=row]"}, {"#/jobs/research/too-large", "[data-cause]"}, {"#/queues", "[aria-label='Tree of quotas'] tbody tr"},
	{"#/jobs/research/workload%2Fwaits", "[data-cause]"}, {"#/jobs?state=Foreign", "[role=grid] .body [role=row]"},
	{"#/queues/ai-training", ".card"}, {"#/nodes", ".cell"}, {"#/evictions", ".evictions li"}, {"#/jobs?namespace=production", "[role=grid] .body [role=row]"}, {"#/cycles", ".cycles li"},
	{"#/charts", ".u-wrap"}, {"#/charts?of=Queue%2Fai-training&span=weeks", ".u-wrap"},
}

func (w *site) accessible(t *testing.T, b *browser.Browser, isDark bool, width int) {
	look := arguments{"dark": isDark, "width": width}
	w.open(t, b, "", look)
	check := func(path string) {
		t.Helper()
		for _, v := range browser.Must[[]string](t, b, "violations", nil) {
			t.Errorf("%s: %s", path, v)
		}
		if beyond := browser.Must[int](t, b, "overflow", nil); beyond > 0 {
			t.Errorf("%s is wider than the window by %d pixels", path, beyond)
		}
	}
	check("the login")
	w.open(t, b, w.operator, look)
	for _, view := range views {
		browser.Must[string](t, b, "go", arguments{"path": view.path, "wait": view.wait})
		check(view.path)
		for _, clock := range browser.Must[[]string](t, b, "clocks", nil) {
			if _, err := time.Parse(time.DateTime, clock); err != nil {
				t.Errorf("%s: the time %q is written in another way than others: %v", view.path, clock, err)
			}
		}
		ends := browser.Must[struct {
			Cut   []string
			Whole int
		}](t, b, "ends", nil)
		if len(ends.Cut) > 0 || view.path == "#/jobs" && ends.Whole == 0 {
			t.Errorf("%s: %d sentences are shown to their end, and these not: %q", view.path, ends.Whole, ends.Cut)
		}
	}
	const readable = 250 // pixels
	browser.Must[string](t, b, "go", arguments{"path": "#/evictions", "wait": ".evictions .said"})
	if got := browser.Must[int](t, b, "narrowest", arguments{"selector": ".evictions .said"}); got < readable {
		t.Errorf("the reason of an eviction has %d pixels, and %d are needed to read it", got, readable)
	}
}

// shots are the pictures, by name.
var shots = map[string]struct {
	path, wait string
	dark       bool
	width      int
}{
	"overview": {"#/", ".tile", false, 1280}, "jobs": {"#/jobs", "[role=grid] .body [role=row]", false, 1280}, "job": {"#/jobs/research/too-large", "[data-cause]", false, 1280},
	"queues": {"#/queues", "[data-row]", false, 1280}, "evictions": {"#/evictions", ".evictions li", false, 1280}, "nodes": {"#/nodes", ".cell", true, 1280}, "phone": {"#/jobs", "[role=grid] .body [role=row]", true, 390},
}

func (w *site) pictures(t *testing.T, b *browser.Browser) {
	folder := t.TempDir()
	if *pictures {
		folder = album
	}
	for name, shot := range shots {
		w.open(t, b, w.operator, arguments{"dark": shot.dark, "width": shot.width, "height": 760})
		browser.Must[string](t, b, "go", arguments{"path": shot.path, "wait": shot.wait})
		if name == "nodes" {
			browser.Must[string](t, b, "fill", arguments{"label": "gpu of a pod", "value": "4"})
		}
		w.picture(t, b, folder, name)
	}
}

// picture takes a picture, of which one must be in the album.
func (w *site) picture(t *testing.T, b *browser.Browser, folder, name string) {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(folder, name+".png"))
	must(t, err)
	must(t, b.Do("screenshot", arguments{"file": file}, nil))
	if info, err := os.Stat(filepath.Join(album, name+".png")); err != nil || info.Size() == 0 {
		t.Errorf("docs/web.md has no picture %s: make it with go test ./test/web -pictures: %v", name, err)
	}
}

func (w *site) tenThousand(t *testing.T, b *browser.Browser) {
	const jobs = 10_000
	w.many(t, jobs-w.jobs)
	w.open(t, b, w.operator, nil)
	var rows table
	apitest.Eventually(t, func(context.Context) error {
		if err := b.Do("go", arguments{"path": "#/jobs", "wait": "[role=grid]"}, nil); err != nil {
			return err
		}
		if err := b.Do("rows", nil, &rows); err != nil {
			return err
		}
		if rows.All != jobs {
			return fmt.Errorf("%d jobs", rows.All)
		}
		return nil
	})
	// However many there are, only those in sight are drawn.
	const mostDrawn = 60
	if rows.Drawn == 0 || rows.Drawn > mostDrawn {
		t.Errorf("%d rows are drawn", rows.Drawn)
	}
	for _, path := range []string{"#/jobs", "#/jobs?kind=Workload"} {
		list := browser.Must[struct {
			table
			Took int
		}](t, b, "listed", arguments{"path": path})
		t.Logf("%s: %d rows after %d ms, of which %d are drawn", path, list.All, list.Took, list.Drawn)
		if list.All < jobs/3 || list.Drawn == 0 || list.Drawn > mostDrawn {
			t.Errorf("%s has %d rows, and draws %d", path, list.All, list.Drawn)
		}
	}
	browser.Must[string](t, b, "go", arguments{"path": "#/jobs", "wait": "[role=grid] .body [role=row]"})
	scrolled := browser.Must[struct {
		Median, Slowest float64
		Late, Empty     int
		End             bool
	}](t, b, "scroll", nil)
	t.Logf("scrolling through %d jobs in 240 frames: half of the frames within %.0f ms, the slowest %.0f ms, %d above 50 ms, %d blank", jobs, scrolled.Median, scrolled.Slowest, scrolled.Late, scrolled.Empty)
	if !scrolled.End {
		t.Error("the end of the table is not reached")
	}
	filtered := browser.Must[struct {
		table
		Times []float64
	}](t, b, "filter", arguments{"text": "trial-0123"})
	slices.Sort(filtered.Times)
	t.Logf("filtering them, for each letter: %.0f ms", filtered.Times)
	if filtered.All != 10 || !strings.Contains(filtered.First, "sweep/trial-0123") {
		t.Errorf("the filter finds %+v", filtered.table)
	}
	if last := browser.Must[pressed](t, b, "press", arguments{"keys": []string{"Escape"}}); last.Hash == "" {
		t.Errorf("the filter is not in the address: %+v", last)
	}
}
