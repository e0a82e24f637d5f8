package plans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// scripted is what a planner acts on in a test, on a clock that stands still while anything is busy: each request takes
// a second.
type scripted struct {
	*Executor
	begun time.Time

	mutex    sync.Mutex
	lines    []string           // what was sent, with the second in which it was answered
	answers  map[string][]error // to the next requests, by what is sent; success when there are none left
	failures []cache.PlanFailed
	results  []string

	told    func(error) bool // of the plan that is being recorded
	records bool             // at once
}

var stepNames = [...]string{nominate: "nominate", ask: "ask", mark: "mark", evict: "evict", restate: "restate", spare: "spare", withdraw: "withdraw"}

func (s *scripted) answer(_ context.Context, e *podStep) (EvictionResult, error) {
	time.Sleep(time.Second)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	what := stepNames[e.step] + " " + e.pod.Name
	if e.node != "" {
		what += " " + e.node
	}
	var err error
	if script := s.answers[what]; len(script) > 0 {
		err, s.answers[what] = script[0], script[1:]
	}
	line := fmt.Sprintf("%ds %s", int(time.Since(s.begun).Seconds()), what)
	if err != nil {
		line += ": no"
	}
	s.lines = append(s.lines, line)
	if e.step == evict && err == nil {
		return EvictionSent, nil
	}
	return "", err
}

// elapse lets time pass, and then all workers come to a stop.
func elapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// acting runs a test with a planner.
func acting(t *testing.T, test func(t *testing.T, s *scripted)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{begun: time.Now(), answers: map[string][]error{}, records: true}
		s.Executor = newExecutor(s.answer, Options{
			Fail: func(e cache.PlanFailed) { s.failures = append(s.failures, e) },
			Evicted: func(e *decision.Eviction, result EvictionResult) {
				s.results = append(s.results, e.Pod.Name+" "+string(result))
			},
			Record: func(_ decision.GroupStatus, told func(error) bool) {
				if s.told = told; s.records {
					told(nil)
				}
			},
			IsBusy: func() bool { return false }, Logger: logr.Discard(),
		})
		s.backOff.Jitter = 0
		s.Start(ctx)
		test(t, s)
		cancel()
		s.workers.Wait()
	})
}

// expect compares what was sent, in the order of the seconds.
func (s *scripted) expect(t *testing.T, want ...string) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	slices.Sort(s.lines)
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// expectResults compares how the evictions ended.
func (s *scripted) expectResults(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(s.results)
	if diff := cmp.Diff(want, s.results); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
}

// expectRest checks that nothing is kept of what is over.
func (s *scripted) expectRest(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if len(s.plans)+len(s.lanes)+len(s.promises)+s.outstanding+s.inFlight != 0 {
		t.Errorf("it remembers %d plans, %d lanes, %d promises, and counts %d podSteps, %d of them in flight",
			len(s.plans), len(s.lanes), len(s.promises), s.outstanding, s.inFlight)
	}
}

func podKey(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// planOf is a plan for job "preemptor": preemptors get node n, victims leave. A victim that begins with "!" passes over
// its budget.
func planOf(id string, preemptors, victims []string) *decision.PlanStart {
	p := &decision.PlanStart{ID: id, Job: cluster.JobID{Namespace: "default", Name: "preemptor"}, UID: "preemptor"}
	for _, name := range preemptors {
		p.Nominations = append(p.Nominations, decision.Nomination{Pod: podKey(name), UID: types.UID(name), Node: "n", Job: p.Job})
	}
	for _, name := range victims {
		isPast := name[0] == '!'
		if isPast {
			name = name[1:]
		}
		p.Evictions = append(p.Evictions, decision.Eviction{Pod: podKey(name), UID: types.UID(name), Node: "n", For: p.Job, PastBudget: isPast})
	}
	return p
}

func endOf(id string, preemptors, spared []string) *decision.PlanEnd {
	p := &decision.PlanEnd{ID: id, Job: cluster.JobID{Namespace: "default", Name: "preemptor"}, Why: "test"}
	for _, name := range preemptors {
		p.Nominations = append(p.Nominations, decision.Nomination{Pod: podKey(name), UID: types.UID(name), Job: p.Job})
	}
	for _, name := range spared {
		p.Spared = append(p.Spared, decision.Spared{Pod: podKey(name), UID: types.UID(name)})
	}
	return p
}

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("no"))
	errLost      = errors.New("the reply was lost")
)

func errBudget(retryAfter int) error {
	err := apierrors.NewTooManyRequests("no", retryAfter)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "needs 1"}}
	return err
}

func TestThePartsOfAPlanAreWrittenInOrder(t *testing.T) {
	t.Run("no step begins before the one before is confirmed", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.records = false
			s.Begin(planOf("p", []string{"a", "b"}, []string{"v", "!w"}))
			elapse(2 * time.Second)
			s.expect(t)
			s.told(nil)
			elapse(time.Minute)
			s.expect(t, "3s nominate a n", "3s nominate b n", "4s ask v", "4s ask w", "5s mark v", "5s mark w", "6s evict v", "6s evict w", "7s restate v")
			s.expectResults(t, "v evicted", "w evicted")
			s.expectRest(t)
		})
	})
	t.Run("one slow request holds up the next step for all", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.answers["mark v"] = []error{errLost, errLost}
			s.Begin(planOf("p", nil, []string{"!v", "!w"}))
			elapse(time.Minute)
			s.expect(t, "1s ask v", "1s ask w", "2s mark v: no", "2s mark w", "3s mark v: no", "4s mark v", "5s evict v", "5s evict w")
			s.expectRest(t)
		})
	})
	t.Run("evictions without a preemptor need no record", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.records = false
			p := planOf("p", nil, []string{"!v"})
			p.Job = cluster.JobID{}
			s.Begin(p)
			elapse(time.Minute)
			s.expect(t, "1s mark v", "2s evict v")
			if s.told != nil {
				t.Error("a status is to be written")
			}
			s.expectRest(t)
		})
	})
}

func TestAPlanEndsOrRepeatsWhatFails(t *testing.T) {
	t.Run("what is refused for good ends the plan", func(t *testing.T) {
		for name, test := range map[string]struct {
			what    string
			answers []error
			want    []string
			results []string
			refused string // whom the model is told of
			sent    int
		}{
			"a nomination that is forbidden": {"nominate a n", []error{errForbidden}, []string{"1s nominate a n: no"},
				[]string{"v unsent", "w unsent"}, "", 0},
			"a mark that is forbidden": {"mark v", []error{errForbidden}, []string{"1s nominate a n", "2s ask v", "2s ask w", "3s mark v: no", "3s mark w"},
				[]string{"v refused", "w unsent"}, "v", 0},
			"an eviction that a budget would forbid": {"ask v", []error{errBudget(0)}, []string{"1s nominate a n", "2s ask v: no", "2s ask w"},
				[]string{"v refused", "w unsent"}, "v by budget", 0},
			"a question that is not answered": {"ask v", slices.Repeat([]error{errLost}, apiserver.MaxRequests),
				[]string{"10s ask v: no", "14s ask v: no", "1s nominate a n", "21s ask v: no", "2s ask v: no", "2s ask w", "3s ask v: no",
					"4s ask v: no", "5s ask v: no", "7s ask v: no"}, []string{"v unsent", "w unsent"}, "", 0},
			"an eviction that a budget forbids": {"evict v", []error{errBudget(0)},
				[]string{"1s nominate a n", "2s ask v", "2s ask w", "3s mark v", "3s mark w", "4s evict v: no", "4s evict w"},
				[]string{"v refused", "w evicted"}, "v by budget", 1},
		} {
			t.Run(name, func(t *testing.T) {
				acting(t, func(t *testing.T, s *scripted) {
					s.answers[test.what] = test.answers
					s.Begin(planOf("p", []string{"a"}, []string{"v", "w"}))
					elapse(time.Minute)
					s.expect(t, test.want...)
					s.expectResults(t, test.results...)
					if len(s.failures) != 1 || s.failures[0].Plan != "p" || s.failures[0].Job.Name != "preemptor" || s.failures[0].Reason == "" {
						t.Fatalf("reported %+v", s.failures)
					}
					var refused []string
					for _, r := range s.failures[0].Refused {
						refused = append(refused, r.Pod.Name)
						if r.ByBudget {
							refused = append(refused, "by budget")
						}
					}
					if got := strings.Join(refused, " "); got != test.refused || s.failures[0].Sent != test.sent {
						t.Errorf("reported as refused %q, and %d as sent", got, s.failures[0].Sent)
					}
					s.expectRest(t)
					s.lines = nil
					s.End(endOf("p", []string{"a"}, []string{"v"}))
					elapse(time.Minute)
					if len(s.lines) != 2 {
						t.Errorf("of a plan that failed is taken back %q", s.lines)
					}
					s.expectRest(t)
				})
			})
		}
	})
	t.Run("what may succeed later is repeated, within a bound", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.answers["evict v"] = []error{errBudget(1), errLost}
			s.Begin(planOf("p", nil, []string{"!v"}))
			elapse(time.Minute)
			s.expectResults(t, "v evicted")
			if got := s.repeated.Load(); got != 2 {
				t.Errorf("repeated %d times", got)
			}
			s.lines, s.results = nil, nil
			for range 2 * apiserver.MaxRequests {
				s.answers["evict v"] = append(s.answers["evict v"], errLost)
			}
			s.Begin(planOf("q", nil, []string{"!v"}))
			elapse(10 * time.Minute)
			s.expectResults(t, "v refused")
			if len(s.lines) != 1+apiserver.MaxRequests || len(s.failures) != 1 {
				t.Errorf("sent %q, reported %v", s.lines, s.failures)
			}
			s.expectRest(t)
		})
	})
	t.Run("a record that is not written ends the plan", func(t *testing.T) {
		for name, test := range map[string]struct {
			answer error
			times  int
		}{"forbidden": {errForbidden, 1}, "the PodGroup is gone": {apiserver.ErrObjectGone, 1}, "no answer": {errLost, apiserver.MaxRequests}} {
			t.Run(name, func(t *testing.T) {
				acting(t, func(t *testing.T, s *scripted) {
					s.records = false
					s.Begin(planOf("p", []string{"a"}, []string{"v"}))
					attempts := 1
					for s.told(test.answer) {
						attempts++
					}
					if attempts != test.times || len(s.failures) != 1 {
						t.Errorf("%d attempts, reported %v", attempts, s.failures)
					}
					elapse(time.Minute)
					s.expect(t)
					s.expectResults(t, "v unsent")
					s.expectRest(t)
				})
			})
		}
	})
}

func TestACancelledPlan(t *testing.T) {
	t.Run("sends nothing more", func(t *testing.T) {
		for name, test := range map[string]struct {
			after time.Duration
			want  []string
		}{
			"before it is recorded": {0, []string{"1s spare v", "2s withdraw a"}},
			"while it nominates":    {500 * time.Millisecond, []string{"1s nominate a n", "1s spare v", "2s withdraw a"}},
			"while it marks":        {1500 * time.Millisecond, []string{"1s nominate a n", "2s mark v", "3s spare v", "4s withdraw a"}},
			"while it evicts": {2500 * time.Millisecond, []string{"1s nominate a n", "2s mark v", "3s evict v", "4s spare v",
				"5s withdraw a"}},
		} {
			t.Run(name, func(t *testing.T) {
				acting(t, func(t *testing.T, s *scripted) {
					s.records = test.after > 0
					s.Begin(planOf("p", []string{"a"}, []string{"v"}))
					elapse(test.after)
					s.End(endOf("p", []string{"a"}, []string{"v"}))
					if !s.records {
						s.told(nil)
					}
					elapse(time.Minute)
					s.expect(t, test.want...)
					s.expectRest(t)
				})
			})
		}
	})
	t.Run("does not repeat what it does not know", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.answers["evict v"] = []error{errLost, errLost, errLost}
			s.Begin(planOf("p", nil, []string{"v", "w"}))
			elapse(2500 * time.Millisecond)
			s.End(endOf("p", nil, []string{"v"}))
			elapse(time.Minute)
			s.expect(t, "1s ask v", "1s ask w", "2s mark v", "2s mark w", "3s evict v: no", "3s evict w", "4s spare v")
			s.expectResults(t, "v unknown", "w evicted")
			s.expectRest(t)
		})
	})
	t.Run("takes back until it is done or refused", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			for range 3 * apiserver.MaxRequests {
				s.answers["spare v"] = append(s.answers["spare v"], errLost)
			}
			s.answers["withdraw a"] = []error{errForbidden}
			s.End(endOf("p", []string{"a"}, []string{"v"}))
			elapse(time.Hour)
			if got, want := len(s.lines), 3*apiserver.MaxRequests+2; got != want {
				t.Errorf("%d requests, want %d", got, want)
			}
			if len(s.failures) != 0 {
				t.Errorf("reported %v", s.failures)
			}
			s.expectRest(t)
		})
	})
}

func TestNominationsOfAPod(t *testing.T) {
	t.Run("the newest is the last that is written", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.Begin(planOf("p", []string{"a", "b"}, []string{"v"}))
			elapse(500 * time.Millisecond)
			s.End(endOf("p", []string{"a", "b"}, []string{"v"}))
			s.Begin(planOf("q", []string{"a"}, []string{"v"}))
			elapse(time.Minute)
			s.expect(t, "1s nominate a n", "1s nominate b n", "1s spare v", "2s nominate a n", "2s withdraw b", "3s mark v", "4s evict v",
				"5s restate v")
			s.expectRest(t)
		})
	})
	t.Run("a bound pod gets none", func(t *testing.T) {
		acting(t, func(t *testing.T, s *scripted) {
			s.records = false
			s.Begin(planOf("p", []string{"a", "b"}, []string{"!v"}))
			s.Bound(bindOf("a", false))
			s.told(nil)
			elapse(500 * time.Millisecond)
			sending := s.Sending("b")
			s.Bound(bindOf("b", false))
			if s.Sending("a") != nil || sending == nil {
				t.Fatal("it is not known what is under way")
			}
			<-sending
			if since := time.Since(s.begun); since != time.Second {
				t.Errorf("the request is over after %s", since)
			}
			elapse(time.Minute)
			s.expect(t, "1s nominate b n", "2s mark v", "3s evict v")
			s.expectRest(t)
		})
	})
}

func TestWhoseBindingWaitsKeepsNoOtherNode(t *testing.T) {
	acting(t, func(t *testing.T, s *scripted) {
		s.Begin(planOf("p", []string{"a", "b", "c"}, nil))
		elapse(time.Minute)
		s.Begin(planOf("q", []string{"d"}, nil))
		elapse(500 * time.Millisecond)
		withoutPlan := bindOf("c", true)
		withoutPlan.IsNominated = false
		for _, b := range []decision.Bind{bindOf("a", true), bindOf("b", false), withoutPlan, bindOf("d", true)} {
			s.Bound(b)
		}
		elapse(time.Minute)
		s.expect(t, "1s nominate a n", "1s nominate b n", "1s nominate c n", "61s nominate d n", "61s withdraw a m", "62s withdraw d m")
		s.expectRest(t)
	})
}

// bindOf is the binding of a pod to node m, which waits for volumes or not.
func bindOf(name string, waits bool) decision.Bind {
	b := decision.Bind{Pod: podKey(name), UID: types.UID(name), Node: "m", IsNominated: true}
	if waits {
		b.Reservation = &supplies.Reservation{}
	}
	return b
}

func TestAClosedPlannerFinishesWhatIsUnderWayAndBeginsNothing(t *testing.T) {
	acting(t, func(t *testing.T, s *scripted) {
		s.Begin(planOf("p", nil, []string{"v", "w"}))
		elapse(500 * time.Millisecond)
		s.Close()
		select {
		case <-s.idle:
			t.Error("it is idle while a request is under way")
		default:
		}
		<-s.idle
		s.Begin(planOf("q", nil, []string{"x"}))
		s.End(endOf("p", nil, []string{"v"}))
		elapse(time.Minute)
		s.expect(t, "1s ask v", "1s ask w")
	})
}

func TestPlansTrickleWhileBindsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{begun: time.Now()}
		s.Executor = newExecutor(s.answer, Options{
			Evicted: func(*decision.Eviction, EvictionResult) {}, IsBusy: func() bool { return true }, Logger: logr.Discard(),
		})
		s.trickle = flowcontrol.NewTokenBucketRateLimiter(0.25, 1)
		s.Start(ctx)
		p := planOf("p", nil, []string{"!v"})
		p.Job = cluster.JobID{}
		s.Begin(p)
		elapse(time.Minute)
		s.expect(t, "1s mark v", "5s evict v")
		cancel()
		s.workers.Wait()
	})
}
