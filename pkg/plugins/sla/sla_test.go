package sla_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/sla"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// Sessions of the test world are an hour after everything was made.
const hour = time.Hour

type option = func(*schedulingv1beta1.PodGroup)

func noted(key, value string) option {
	return func(g *schedulingv1beta1.PodGroup) { g.Annotations[key] = value }
}

func waits(value string) option { return noted(schedulingv1beta1.SLAWaitingTimeKey, value) }

func created(after time.Duration) option {
	return func(g *schedulingv1beta1.PodGroup) { g.CreationTimestamp = metav1.NewTime(fixture.Birth.Add(after)) }
}

func pendingAdmission(name string, options ...option) runtime.Object {
	return fixture.Group(name, "q", 1, append(options, fixture.PendingAdmission, fixture.Wanting("cpu=1"))...)
}

// admitsNothing refuses every job, in a tier behind the plugin's or in its own.
type admitsNothing struct{}

func (admitsNothing) Name() string { return "closed" }

func (admitsNothing) MayEnqueue(*cluster.Job) (framework.Vote, *verdict.Verdict) {
	return framework.Reject, &verdict.Verdict{Code: verdict.OverCommitted, Help: verdict.HelpNode}
}

// behind is a session of the plugin with a plugin that admits nothing in a tier behind it, or in the same.
func behind(t *testing.T, arguments string, sameTier bool, objects ...runtime.Object) (*framework.Policy, *cache.Cache) {
	t.Helper()
	parsed, err := conf.ParseArguments([]byte(arguments), sla.Factory().Spec)
	if err != nil {
		t.Fatal(err)
	}
	closed := framework.PluginFactory{Name: "closed", New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return admitsNothing{}, nil }}
	tiers := []conf.Tier{{Plugins: []conf.Plugin{{Name: sla.Name, Arguments: parsed}}}}
	if sameTier {
		tiers[0].Plugins = append(tiers[0].Plugins, conf.Plugin{Name: "closed"})
	} else {
		tiers = append(tiers, conf.Tier{Plugins: []conf.Plugin{{Name: "closed"}}})
	}
	policy, err := framework.NewRegistry(nil, []framework.PluginFactory{sla.Factory(), closed}).Build(&conf.Configuration{Tiers: tiers})
	if err != nil {
		t.Fatal(err)
	}
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	for _, o := range append(objects, fixture.Queue("q")) {
		c.Apply(cache.Set{Object: o})
	}
	return policy, c
}

func TestAJobIsAdmittedOnceItHasWaitedForLongEnough(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		options   []option
		want      bool
	}{
		"nothing said":                 {"", nil, false},
		"for ever":                     {"sla-waiting-time: 0s", nil, false},
		"not long enough":              {"", []option{waits("61m")}, false},
		"just now":                     {"", []option{waits("60m")}, true},
		"for long":                     {"", []option{waits("1s")}, true},
		"by the short name":            {"", []option{noted("sla-waiting-time", "1s")}, true},
		"the long name counts":         {"", []option{waits("2h"), noted("sla-waiting-time", "1s")}, false},
		"for all":                      {"sla-waiting-time: 59m", nil, true},
		"for all, not long enough":     {"sla-waiting-time: 61m", nil, false},
		"its own counts":               {"sla-waiting-time: 59m", []option{waits("2h")}, false},
		"unreadable":                   {"", []option{waits("soon")}, false},
		"unreadable, and one for all":  {"sla-waiting-time: 59m", []option{waits("soon")}, true},
		"zero":                         {"", []option{waits("0s")}, false},
		"less than nothing":            {"", []option{waits("-1h")}, false},
		"zero, and one for all":        {"sla-waiting-time: 61m", []option{waits("0s")}, false},
		"counted from its creation":    {"", []option{waits("1m"), created(hour - time.Second)}, false},
		"longer than there is time":    {"", []option{waits("2562047h")}, false},
		"unreadable by the long name":  {"", []option{waits("soon"), noted("sla-waiting-time", "1s")}, true},
		"created after the clock says": {"", []option{waits("1s"), created(2 * hour)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sameTier := range []bool{false, true} {
				policy, c := behind(t, test.arguments, sameTier, pendingAdmission("j", test.options...))
				s := framework.Open(c, policy, nil, fixture.Birth.Add(hour))
				want := test.want && !sameTier
				if let := s.MayEnqueue(c.Job(cluster.GroupID(fixture.Key("j")))) == nil; let != want {
					t.Errorf("with a refusal in the same tier %t it is admitted: %t", sameTier, let)
				}
			}
		})
	}
}

func TestTheEarlierDeadlineComesFirst(t *testing.T) {
	w := harness.ForPlugin(t, sla.Factory(), "").Set(fixture.Queue("q"),
		pendingAdmission("d-passed", waits("10m")), pendingAdmission("c-near", waits("2h")), pendingAdmission("b-far", waits("3h")),
		pendingAdmission("a-young", waits("10m"), created(4*hour)), pendingAdmission("0-never"), pendingAdmission("1-never", waits("?")))
	s := w.Open()
	order := strings.Fields("d-passed c-near b-far a-young 0-never")
	for i, earlier := range order {
		for _, later := range order[i+1:] {
			if a, b := w.JobNamed(earlier), w.JobNamed(later); s.CompareJobs(a, b) >= 0 || s.CompareJobs(b, a) <= 0 {
				t.Errorf("%s is not before %s", earlier, later)
			}
		}
	}
	made, err := sla.Factory().New(conf.Switches{}, sla.Factory().Spec.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	orders := made.(framework.JobOrderer)
	if orders.CompareJobs(w.JobNamed("0-never"), w.JobNamed("1-never")) != 0 || orders.CompareJobs(w.JobNamed("b-far"), w.JobNamed("b-far")) != 0 {
		t.Error("it tells jobs apart that are alike to it")
	}
}

func TestADeadlineWakesTheScheduler(t *testing.T) {
	at := func(d time.Duration) time.Time { return fixture.Birth.Add(d) }
	for name, test := range map[string]struct {
		jobs []runtime.Object
		want time.Time
	}{
		"nobody waits":           {nil, time.Time{}},
		"no deadline":            {[]runtime.Object{pendingAdmission("j")}, time.Time{}},
		"the next one":           {[]runtime.Object{pendingAdmission("j", waits("3h")), pendingAdmission("k", waits("2h")), pendingAdmission("l", waits("4h"))}, at(2 * hour)},
		"one that has passed":    {[]runtime.Object{pendingAdmission("j", waits("3h")), pendingAdmission("k", waits("1h"))}, at(3 * hour)},
		"one that was admitted":  {[]runtime.Object{fixture.Group("j", "q", 1, waits("2h"))}, time.Time{}},
		"of a job made just now": {[]runtime.Object{pendingAdmission("j", waits("1ms"), created(hour))}, at(hour + time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			policy, c := behind(t, "", false, test.jobs...)
			s := framework.Open(c, policy, nil, at(hour))
			if got := policy.WakeAt(); !got.Equal(test.want) {
				t.Errorf("it wakes at %v, want %v", got, test.want)
			}
			if test.want.IsZero() {
				return
			}
			admitted := func(now time.Time) (n int) {
				s = framework.Open(c, policy, nil, now)
				for _, j := range c.Jobs() {
					if s.MayEnqueue(j) == nil {
						n++
					}
				}
				return n
			}
			if before, after := admitted(test.want.Add(-1)), admitted(test.want); after != before+1 {
				t.Errorf("%d are admitted just before, %d then", before, after)
			}
		})
	}
}

func TestWithoutAVoteOnAdmissionNothingIsWaitedFor(t *testing.T) {
	made, err := sla.Factory().New(conf.Switches{}.With(conf.EnableJobEnqueued, false), sla.Factory().Spec.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	policy, c := behind(t, "", false, pendingAdmission("j", waits("2h")))
	s := framework.Open(c, policy, nil, fixture.Birth.Add(hour))
	made.(framework.SessionOpener).OpenSession(s)
	if when := made.(framework.Waker).WakeAt(); !when.IsZero() {
		t.Errorf("it wakes at %v", when)
	}
}

func TestAWaitingTimeIsADurationOfZeroOrMore(t *testing.T) {
	for _, arguments := range []string{"sla-waiting-time: -1h", "sla-waiting-time: soon"} {
		if _, err := conf.ParseArguments([]byte(arguments), sla.Factory().Spec); err == nil {
			t.Errorf("%s is accepted", arguments)
		}
	}
}
