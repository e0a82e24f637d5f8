package enqueue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/actions/enqueue"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func newStage(t *testing.T, l *harness.Limits) *harness.Model {
	return harness.ForActions(t, []framework.ActionFactory{enqueue.Factory()}, harness.Gang{}, l)
}

func isIn(s *harness.Model, name string) bool {
	return !s.Job(cluster.GroupID(fixture.Key(name))).IsPendingAdmission()
}

func TestAdmission(t *testing.T) {
	t.Run("a job without min resources is admitted unasked", func(t *testing.T) {
		l := &harness.Limits{AdmissionLimits: map[string]int{"default": 0}}
		s := newStage(t, l).Set(fixture.Group("g", "default", 3, fixture.PendingAdmission))
		s.Run(enqueue.Name)
		if !isIn(s, "g") || len(l.Asked) != 0 {
			t.Errorf("admitted is %t, asked about %v", isIn(s, "g"), l.Asked)
		}
	})

	t.Run("a refused job books nothing and hides none behind it", func(t *testing.T) {
		s := newStage(t, &harness.Limits{AdmissionLimits: map[string]int{"default": 3}}).Set(
			fixture.Group("a", "default", 4, fixture.PendingAdmission, fixture.Wanting("pods=4")),
			fixture.Group("b", "default", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")))
		s.Run(enqueue.Name)
		if isIn(s, "a") || !isIn(s, "b") || s.Code("a") != verdict.OverCommitted {
			t.Errorf("a is in: %t, %s; b is in: %t", isIn(s, "a"), s.Code("a"), isIn(s, "b"))
		}
	})

	t.Run("a job that is admitted is booked at once", func(t *testing.T) {
		s := newStage(t, &harness.Limits{AdmissionLimits: map[string]int{"default": 5}}).Set(
			fixture.Group("a", "default", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")),
			fixture.Group("b", "default", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")))
		s.Run(enqueue.Name)
		if !isIn(s, "a") || isIn(s, "b") {
			t.Errorf("a is in: %t, b is in: %t", isIn(s, "a"), isIn(s, "b"))
		}
		s.Run(enqueue.Name)
		if isIn(s, "b") {
			t.Error("the booking does not last")
		}
	})

	t.Run("queues take turns and their jobs come in order", func(t *testing.T) {
		l := &harness.Limits{}
		s := newStage(t, l).Set(fixture.Queue("other"))
		for _, name := range []string{"d", "c", "a", "b"} {
			queue := map[string]string{"a": "default", "b": "default", "c": "other", "d": "other"}[name]
			s.Set(fixture.Group(name, queue, 1, fixture.PendingAdmission, fixture.Wanting("pods=1")))
		}
		s.Run(enqueue.Name)
		// Neither queue holds anything, so the first is served until it has no more jobs.
		if diff := cmp.Diff([]string{"a", "b", "c", "d"}, l.Asked); diff != "" {
			t.Errorf("the order differs (-want +got):\n%s", diff)
		}
	})

	t.Run("a job that was admitted is not asked about again", func(t *testing.T) {
		l := &harness.Limits{}
		s := newStage(t, l).Gang("g", "default", 1, 1, "cpu=1")
		s.Run(enqueue.Name)
		if len(l.Asked) != 0 {
			t.Errorf("asked about %v", l.Asked)
		}
	})

	t.Run("a job that evictions can help is admitted all the same", func(t *testing.T) {
		factory := framework.ActionFactory{Name: "roomMaker", New: func(conf.Arguments) (framework.Action, error) { return roomMaker("b"), nil }}
		s := harness.ForActions(t, []framework.ActionFactory{enqueue.Factory(), factory}, &harness.Limits{AdmissionLimits: map[string]int{"default": 0}}).Set(
			fixture.Group("a", "default", 1, fixture.PendingAdmission, fixture.Wanting("pods=1")),
			fixture.Group("b", "default", 1, fixture.PendingAdmission, fixture.Wanting("pods=1")))
		s.Run(enqueue.Name)
		if isIn(s, "a") || !isIn(s, "b") || s.Code("a") != verdict.OverCommitted || s.Code("b") != "" {
			t.Errorf("a is in: %t, %s; b is in: %t, %s", isIn(s, "a"), s.Code("a"), isIn(s, "b"), s.Code("b"))
		}
	})
}

// roomMaker is an action that may evict for one job.
type roomMaker string

func (roomMaker) Name() string               { return "roomMaker" }
func (roomMaker) Execute(*framework.Session) {}
func (roomMaker) EvictionRules() framework.EvictionRules {
	return framework.EvictionRules{Scopes: decision.ScopesOf(decision.BetweenJobs)}
}

func (roomMaker) MakeRoom(*framework.Session, *cluster.Job) {}

func (r roomMaker) AdmitsByEviction(_ *framework.Session, j *cluster.Job) (bool, *verdict.Verdict) {
	return j.ID.Name == string(r), nil
}
