package ask

import (
	"io"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/holders"
)

func TestWhoHoldsTheRoomInWords(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { moment := now.Add(d); return &moment }
	for name, test := range map[string]struct {
		ends forecast.Ends
		want string
	}{
		"a service":            {forecast.Ends{Never: true}, "a service, which does not end by itself"},
		"not known":            {forecast.Ends{}, "nothing says when it ends"},
		"leaving":              {forecast.Ends{Earliest: at(0), Latest: at(time.Minute), Basis: forecast.Room}, "it is leaving"},
		"it declares its time": {forecast.Ends{Earliest: at(time.Hour), Latest: at(3 * time.Hour), Basis: forecast.Declared}, "ends in 60m to 3h (it declares how long it runs)"},
		"it ran before":        {forecast.Ends{Earliest: at(-time.Hour), Latest: at(5 * time.Minute), Basis: forecast.Measured}, "ends within 5m (so long it ran before)"},
		"others ran":           {forecast.Ends{Earliest: at(time.Minute), Latest: at(2 * time.Minute), Basis: forecast.SameQueue}, "ends in 60s to 2m (so long others of its queue ran)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ends(&test.ends, now); got != test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
		})
	}
	var b strings.Builder
	h := &holders.Holders{Resource: "cpu", Where: "3 nodes", Held: "11", Kept: "3", Total: "14", Jobs: []holders.Job{{Job: "a/large", Queue: "q", Priority: 7, Held: "8", Ends: forecast.Ends{Never: true}},
		{Job: "b/admitted", Queue: "r", Held: "0", Kept: "2", KeptFor: holders.ForAdmission}, {Job: "b/evicts", Queue: "r", Held: "1", Kept: "1", KeptFor: holders.ForPlan}},
		Queues: []holders.Group{{Name: "q", Held: "9"}, {Name: "r", Held: "2", Kept: "3"}}, Namespaces: []holders.Group{{Name: "a", Held: "11"}}}
	(&printer{}).table(&b, func(w io.Writer) { (&printer{}).holders(w, "Held", h) })
	const want = "  Held  11 of 14 cpu of 3 nodes are held, and 3 more are kept for jobs\n" +
		"        8 by a/large (queue q, priority 7): a service, which does not end by itself\n" +
		"        2 kept for b/admitted (queue r, priority 0): it is admitted, and may still start that much\n" +
		"        1 by b/evicts (queue r, priority 0): nothing says when it ends\n" +
		"        1 kept for b/evicts (queue r, priority 0): a plan has promised it nodes\n" +
		"        by queue: q 9, r 2 and 3 kept\n"
	if b.String() != want {
		t.Errorf("it is said\n%s, want\n%s", b.String(), want)
	}
}
