package cohorts

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/metrics"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/harness"
)

// TestThePageSaysWhatWhySays walks as [TestWhateverHappensNoRuleIsBroken] does, for HEKLA_SHOWN_STEPS steps. After each
// step a row of the page has the reason that the answer about its Workload has, and that the condition of the Workload
// has if it is the same kind of reason; sums of queues, and numbers of metrics, are those of their rows; and a scrape
// shows all metrics.
func TestThePageSaysWhatWhySays(t *testing.T) {
	total, each, waiting, agreeing := harness.Number(t, "HEKLA_SHOWN_STEPS", 900), 90, 0, 0
	for seed := range uint64(total / each) {
		w := begin(t, seed)
		var maker rows.Maker
		numbers := metrics.New()
		for w.step = 1; w.step <= each; w.step++ {
			w.happen()
			w.next()
			m, err := w.Scheduler.Reader()
			if err != nil {
				t.Fatal(err)
			}
			board := maker.Board(m, w.Now)
			w.mustBeFresh(m, &board)
			agree, wait := w.mustSayTheSame(m, &board)
			agreeing, waiting = agreeing+agree, waiting+wait
			numbers.Totals(w.Cluster, w.Scheduler.Policy())
			numbers.PendingWorkloads(m)
			if err := numbers.Check(); err != nil {
				w.fail("a scrape lacks series: %v", err)
			}
			w.mustCountTheSame(numbers, &board)
		}
	}
	t.Logf("%d reasons, of which %d are those of conditions", waiting, agreeing)
	if waiting < total || agreeing < total/4 {
		t.Errorf("only %d reasons were looked at, %d with those of conditions", waiting, agreeing)
	}
}

// mustBeFresh checks that a board which follows is like one that is made anew.
func (w *walk) mustBeFresh(m *explain.Model, board *rows.Board) {
	var maker rows.Maker
	if fresh := maker.Board(m, w.Now); !reflect.DeepEqual(&fresh, board) {
		for i := range fresh.Jobs {
			if i >= len(board.Jobs) || !reflect.DeepEqual(fresh.Jobs[i], board.Jobs[i]) {
				w.fail("row %d is to be %+v", i, *fresh.Jobs[i])
			}
		}
		w.fail("the board is %+v, want %+v", *board, fresh)
	}
}

// mustSayTheSame checks all rows, and returns how many wait, and how many of them for the reason of a condition.
func (w *walk) mustSayTheSame(m *explain.Model, board *rows.Board) (agree, wait int) {
	byQueue := map[string]*rows.Counts{}
	listed := 0
	for _, row := range board.Jobs {
		if row.Kind != rows.KindWorkload {
			continue
		}
		listed++
		e := w.Cache.Workloads.Find(keyOfRow(row))
		why, err := m.WhyWorkload(keyOfRow(row))
		if err != nil || e == nil {
			w.fail("%s is on the page, and the answer is %v", row.Job, err)
			continue
		}
		if row.Reason != "" != why.Cause.Waits || why.Cause.Waits && (row.Reason != why.Cause.Code || row.Subject != why.Cause.Where) {
			w.fail("%s has the reason %q on the page, and %q in the answer", row.Job, row.Reason, why.Cause.Code)
		}
		if why.Cause.Waits {
			wait++
			if reason, _ := e.Why(); why.Queued.State == queued.Waiting && reason == row.Reason {
				agree++
			} else if c := conditions.Of(e.Object, v1beta2.Evicted); why.Queued.State == queued.Leaving && c != nil && c.Reason == row.Reason {
				agree++
			}
		}
		if byQueue[row.Queue] == nil {
			byQueue[row.Queue] = &rows.Counts{}
		}
		of := byQueue[row.Queue]
		switch row.State {
		case rows.StatePending:
			of.Pending++
		case rows.StateAdmitted:
			of.Admitted++
		case rows.StateRunning:
			of.Running++
		}
	}
	if all := len(w.Cache.Workloads.All()); listed != all {
		w.fail("%d of %d Workloads are on the page", listed, all)
	}
	for _, q := range board.Quotas {
		if of := byQueue[q.Name]; q.Kind == rows.KindClusterQueue && of != nil && (of.Pending != q.Pending || of.Admitted != q.Admitted || of.Running != q.Running) {
			w.fail("%s has %+v, and its rows are %+v", q.Name, q.Counts, *of)
		}
		seen := map[[2]string]bool{}
		for _, f := range q.Flavors {
			if key := [2]string{f.Flavor, f.Resource}; seen[key] {
				w.fail("%s lists %s of %s twice", q.Name, f.Resource, f.Flavor)
			} else {
				seen[key] = true
			}
			if f.Borrowed < 0 || f.Lent < 0 || f.Borrowed > f.Used || f.Lent > f.Quota {
				w.fail("%s has %+v", q.Name, f)
			}
		}
	}
	names := map[string]bool{}
	for _, name := range board.Resources {
		if names[name] || name == "" {
			w.fail("the page lists %q twice among %q", name, board.Resources)
		}
		names[name] = true
	}
	return agree, wait
}

// mustCountTheSame checks that the metrics count the Workloads that wait as the page lists them.
func (w *walk) mustCountTheSame(numbers *metrics.Metrics, board *rows.Board) {
	want := map[string]int{}
	for _, row := range board.Jobs {
		if row.Kind == rows.KindWorkload && row.Reason != "" {
			want[fmt.Sprintf("hekla_cluster_queue_pending_workloads{cluster_queue=%q,reason=%q}", row.Queue, row.Reason)]++
		}
	}
	recorder, got := httptest.NewRecorder(), map[string]int{}
	numbers.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(recorder.Body.String()) {
		if strings.HasPrefix(line, "hekla_cluster_queue_pending_workloads{") {
			at := strings.LastIndex(line, " ")
			got[line[:at]], _ = strconv.Atoi(strings.TrimSpace(line[at:]))
		}
	}
	if !maps.Equal(got, want) {
		w.fail("the metrics are %v, and the page has %v", got, want)
	}
}

func keyOfRow(row *rows.Job) types.NamespacedName {
	namespace, name, _ := strings.Cut(row.Name, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
