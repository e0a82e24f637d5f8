package cohorts

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/metrics"
	"hekla.sh/hekla/test/cohorts/world"
)

func TestPlacesForPodsToComeAreCountedByClusterQueue(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(4, "Never")).Apply(workloadOf("a", "q", 0, 3, "1"))
	m := metrics.New()
	shown := func() string {
		m.Totals(w.Cluster, nil)
		recorder := httptest.NewRecorder()
		m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(recorder.Body.String()) {
			if strings.HasPrefix(line, "hekla_standins{") {
				return strings.TrimSpace(line)
			}
		}
		return ""
	}
	w.Cycle()
	if got, want := shown(), `hekla_standins{cluster_queue="q",queue=""} 3`; got != want {
		t.Errorf("while no pod is there it is %q, want %q", got, want)
	}
	w.Rest(20).Expect("a", "admitted")
	if got, want := shown(), `hekla_standins{cluster_queue="q",queue=""} 0`; got != want {
		t.Errorf("when all are there it is %q, want %q", got, want)
	}
}
