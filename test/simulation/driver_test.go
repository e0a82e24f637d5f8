package simulation

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// chatter is a program that sends requests from several goroutines at once, each in its order.
func chatter(ctx context.Context, connection *rest.Config, _ logr.Logger) error {
	client := &http.Client{Transport: connection.Transport}
	done := make(chan error)
	for _, name := range []string{"x", "y", "z"} {
		go func() {
			for {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, connection.Host+"/api/v1/namespaces/a/configmaps",
					strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"`+name+`-"}}`))
				if err != nil {
					done <- err
					return
				}
				r.Header.Set("Content-Type", "application/json")
				response, err := client.Do(r)
				if err != nil {
					done <- err
					return
				}
				_ = response.Body.Close()
			}
		}()
	}
	err := <-done
	for range 2 {
		<-done
	}
	return err
}

func TestTheSeedAloneDecidesWhatHappensNext(t *testing.T) {
	programs := []Program{{Name: "one", Start: chatter}, {Name: "two", HasCopies: true, Start: chatter}}
	plan := &Plan{Seed: 3, Steps: 2000, Copies: 2, isCut: true}
	plan.Events = NewPlan(3, 2000, Rates{Fault: 10}).Events
	one, other := Run(t, plan, programs), Run(t, plan, programs)
	if one.StepsHash != other.StepsHash || one.EndHash != other.EndHash {
		for i := range min(len(one.Trace), len(other.Trace)) {
			if one.Trace[i] != other.Trace[i] {
				t.Fatalf("the runs part at step %d:\n%s\n%s", i, one.Trace[i], other.Trace[i])
			}
		}
		t.Fatal("the ends differ")
	}
	plan.Seed = 4
	if third := Run(t, plan, programs); third.StepsHash == one.StepsHash {
		t.Error("another seed makes the same steps")
	}
	if one.Happened["crash"] == 0 || one.Happened["answer lost"] == 0 {
		t.Errorf("faults did not happen: %v", one.Happened)
	}
}

func TestAPlanShrinksToWhatItFailsBy(t *testing.T) {
	plan := NewPlan(1, 20_000, DefaultRates)
	needed := []Event{plan.Events[7], plan.Events[len(plan.Events)/2], plan.Events[len(plan.Events)-1]}
	runs := 0
	shrunk := Shrink(plan, 1000, func(p *Plan) bool {
		runs++
		for _, e := range needed {
			if !slices.Contains(p.Events, e) {
				return false
			}
		}
		return true
	})
	if !slices.Equal(shrunk.Events, needed) {
		t.Errorf("%d events are left after %d runs, want the %d that are needed", len(shrunk.Events), runs, len(needed))
	}
}
