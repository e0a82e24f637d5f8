package tdm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// names are the pods that are named at an hour, sorted.
func names(s *harness.Model, at string) string {
	var names []string
	for _, c := range s.OpenAt(clock(at)).ChooseVictims() {
		names = append(names, c.Task.Pod.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// gang is a marked PodGroup g of pods g0, g1, … on nodes: the revocable node r, the node of another zone o, or the node
// n. "-" waits.
func gang(minimum int32, nodes string, options ...func(*schedulingv1beta1.PodGroup)) []runtime.Object {
	options = append([]func(*schedulingv1beta1.PodGroup){noted(preemptable, "true")}, options...)
	objects := []runtime.Object{fixture.Group("g", "q", minimum, options...)}
	for i, node := range strings.Fields(nodes) {
		p := fixture.Pod(fmt.Sprintf("g%d", i), fixture.In("g"), fixture.As("worker", i))
		if node != "-" {
			fixture.On(node)(p)
		}
		objects = append(objects, p)
	}
	return objects
}

func fromNineToFive(tb testing.TB, objects ...runtime.Object) *harness.Model {
	return zones(tb, "tdm.revocable-zone.r: 09:00-17:00\ntdm.revocable-zone.o: 00:00-00:00",
		append(objects, fixture.Node("r", "cpu=99", inZone("r")), fixture.Node("o", "cpu=99", inZone("o")), fixture.Node("n", "cpu=99"),
			fixture.Node("unknown", "cpu=99", inZone("else")))...)
}

func TestPodsLeaveAZoneThatIsClosed(t *testing.T) {
	mark := func(value string) func(*schedulingv1beta1.PodGroup) { return noted(preemptable, value) }
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"nobody is there":                     {gang(1, "n o unknown"), ""},
		"one after the other":                 {gang(1, "r r r"), "g2"},
		"one and others elsewhere":            {gang(1, "n r o"), "g1"},
		"the last one goes as its gang":       {gang(1, "r"), "g0"},
		"a gang at its minimum goes whole":    {gang(3, "r n o"), "g0 g1 g2"},
		"and pods that wait with it stay":     {gang(2, "r n -"), "g0 g1"},
		"a gang that is broken goes whole":    {gang(3, "r n"), "g0 g1"},
		"a gang gives its surplus first":      {gang(2, "r r n"), "g1"},
		"only the mark makes a victim":        {gang(1, "r r", mark("false")), ""},
		"nor does one that cannot be read":    {gang(1, "r r", mark("1")), ""},
		"as many as may be missing":           {gang(1, "r r r r", noted(maxUnavailable, "2")), "g2 g3"},
		"less what is missing already":        {gang(1, "r r r -", noted(maxUnavailable, "2")), "g2"},
		"as many as need not be there":        {gang(1, "r r r r", noted(minAvailable, "1")), "g1 g2 g3"},
		"none if all must be there":           {gang(1, "r r", noted(minAvailable, "100%")), ""},
		"none if too few are there":           {gang(1, "r - -", noted(minAvailable, "2")), ""},
		"a part, rounded up":                  {gang(1, "r r r", noted(maxUnavailable, "34%")), "g1 g2"},
		"a bound that cannot be read":         {gang(1, "r r", noted(maxUnavailable, "few")), ""},
		"less than nothing":                   {gang(1, "r r", noted(maxUnavailable, "-1")), ""},
		"the lower bound counts":              {gang(1, "r r r", noted(maxUnavailable, "3"), noted(minAvailable, "2")), "g2"},
		"a budget does not break a gang":      {gang(3, "r r r", noted(maxUnavailable, "2")), ""},
		"a budget lets a whole gang go":       {gang(3, "r r r", noted(maxUnavailable, "3")), "g0 g1 g2"},
		"a role keeps its minimum":            {gang(1, "r r", fixture.NeedingOf("worker", 1)), "g1"},
		"one unit of each job":                {append(gang(1, "r r"), fixture.Group("h", "q", 1, mark("true")), fixture.Pod("h0", fixture.In("h"), fixture.On("r"))), "g1 h0"},
		"a pod that is bound and not started": {append(gang(0, ""), fixture.Pod("b", fixture.In("g"), fixture.On("r"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })), "b"},
		"one that leaves already is no more there": {append(gang(1, "r"), fixture.Pod("l", fixture.In("g"), fixture.On("r"),
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: clock("17:00:00")} })), "g0"},
		"a pod of its own mark":         {append(gang(1, "r r r"), fixture.Pod("own", fixture.In("g"), fixture.On("r"), marked("false"))), "g2"},
		"a whole gang needs every mark": {append(gang(2, "r"), fixture.Pod("own", fixture.In("g"), fixture.On("n"), marked("false"))), ""},
		"the budget of a pod": {append(gang(0, ""), fixture.Pod("a", fixture.In("g"), fixture.As("w", 0), fixture.On("r"), fixture.Annotated(maxUnavailable, "2")),
			fixture.Pod("b", fixture.In("g"), fixture.As("w", 1), fixture.On("r"), fixture.Annotated(minAvailable, "9")), fixture.Pod("c", fixture.In("g"), fixture.On("r"))), "b c"},
		"a pod of no job":           {[]runtime.Object{fixture.Pod("alone", fixture.On("r"), marked("true"))}, ""},
		"the least important first": {append(gang(1, "r r"), fixture.Pod("low", fixture.In("g"), fixture.As("worker", 0), fixture.On("r"), fixture.WithPriority(-1))), "low"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, names(fromNineToFive(t, test.objects...), "17:00:00")); diff != "" {
				t.Error(diff)
			}
			if got := names(fromNineToFive(t, test.objects...), "16:59:59"); got != "" {
				t.Errorf("while the zone is open %s should leave", got)
			}
		})
	}
}

func TestWhichPodsLeaveAClosedZone(t *testing.T) {
	t.Run("without a mark pods leave if compatibility says so", func(t *testing.T) {
		s := fromNineToFive(t, fixture.Group("g", "q", 1), fixture.Pod("g0", fixture.In("g"), fixture.On("r")))
		for byDefault, want := range map[bool]string{false: "", true: "g0"} {
			s.Use(conf.Compatibility{PreemptableByDefault: byDefault})
			if got := names(s, "18:00:00"); got != want {
				t.Errorf("preemptableByDefault %t: %q should leave", byDefault, got)
			}
		}
	})

	t.Run("a disruption budget holds a whole gang", func(t *testing.T) {
		for allowed, want := range map[int32]string{1: "", 2: "g0 g1"} {
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "b"}}
			budget.Spec.Selector, budget.Status.DisruptionsAllowed = &metav1.LabelSelector{}, allowed
			s := fromNineToFive(t, append(gang(2, "r n"), budget)...)
			if got := names(s, "18:00:00"); got != want {
				t.Errorf("with %d allowed %q should leave", allowed, got)
			}
		}
	})
}

func TestPeriodsOfEviction(t *testing.T) {
	t.Run("pods are named once in a period and say why", func(t *testing.T) {
		s := fromNineToFive(t, gang(1, "r r r")...)
		chosen := s.OpenAt(clock("17:00:00")).ChooseVictims()
		if len(chosen) != 1 || chosen[0].Why != "revocable zone r is closed, its hours are 09:00-17:00" {
			t.Fatalf("named are %v", chosen)
		}
		for _, step := range []struct{ at, want string }{{"17:00:00", ""}, {"17:00:59", ""}, {"17:01:00", "g2"}, {"17:01:30", ""}, {"17:09:00", "g2"}} {
			if got := names(s, step.at); got != step.want {
				t.Errorf("at %s named is %q, want %q", step.at, got, step.want)
			}
		}
		whole := fromNineToFive(t, gang(2, "r n")...).OpenAt(clock("17:00:00")).ChooseVictims()
		if len(whole) != 2 || whole[1].Why != "its gang leaves as a whole: revocable zone r is closed, its hours are 09:00-17:00" {
			t.Errorf("of a gang named are %v", whole)
		}
	})

	t.Run("a period without victims does not delay the next", func(t *testing.T) {
		s := fromNineToFive(t, gang(1, "n n")...)
		if got := names(s, "17:00:00"); got != "" {
			t.Fatal(got)
		}
		s = fromNineToFive(t, gang(1, "r r")...)
		for _, step := range []struct{ at, want string }{{"16:59:59", ""}, {"17:00:00", "g1"}} {
			if got := names(s, step.at); got != step.want {
				t.Errorf("at %s named is %q, want %q", step.at, got, step.want)
			}
		}
	})
}

func TestHoursAndPeriodsWakeTheScheduler(t *testing.T) {
	const hours = "tdm.revocable-zone.a: 09:00-17:00\ntdm.revocable-zone.b: 22:00-06:00\ntdm.revocable-zone.c: 12:00-12:00\n"
	for at, want := range map[string]string{"05:00:00": "06:00:00", "06:00:00": "09:00:00", "09:00:00": "17:00:00", "12:34:56": "17:00:00",
		"17:00:00": "22:00:00", "21:59:59": "22:00:00"} {
		s := zones(t, hours)
		s.OpenAt(clock(at))
		if got := s.Policy.WakeAt(); !got.Equal(clock(want)) {
			t.Errorf("after %s it wakes at %v, want %s", at, got, want)
		}
	}
	s := zones(t, hours)
	s.OpenAt(clock("23:00:00"))
	if got, want := s.Policy.WakeAt(), clock("06:00:00").AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("it wakes at %v, want %v", got, want)
	}
	s = zones(t, "tdm.revocable-zone.c: 12:00-12:00")
	if got := s.Policy.WakeAt(); !got.IsZero() {
		t.Errorf("before any session it wakes at %v", got)
	}
	s.OpenAt(clock("05:00:00"))
	if got := s.Policy.WakeAt(); !got.IsZero() {
		t.Errorf("for a zone that never closes it wakes at %v", got)
	}
	s = zones(t, "tdm.revocable-zone.r: 09:00-17:00\ntdm.evict.period: 5m", append(gang(1, "r r"), fixture.Node("r", "cpu=99", inZone("r")))...)
	if got := names(s, "18:00:00"); got != "g1" {
		t.Fatal(got)
	}
	if got, want := s.Policy.WakeAt(), clock("18:05:00"); !got.Equal(want) {
		t.Errorf("with pods under way it wakes at %v, want %v", got, want)
	}
	s.OpenAt(clock("18:05:00"))
	if got, want := s.Policy.WakeAt(), clock("09:00:00").AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("after the period it wakes at %v, want %v", got, want)
	}
}

func TestADayOnWhichTheClocksChangeIsADay(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("this machine knows no time zones")
	}
	s := zones(t, "tdm.revocable-zone.z: 02:30-03:00", fixture.Node("n", "cpu=9", inZone("z")), fixture.Group("g", "q", 1), fixture.Pod("p", fixture.In("g"), zoned("*")))
	now := time.Date(2026, 3, 29, 0, 0, 0, 0, berlin) // at two it is three
	opens := 0
	for range 48 {
		s.OpenAt(now)
		isOpen := s.Policy.Filters[0].RefuseNode(s.TaskNamed("p").Class, s.Node("n")) == ""
		if isOpen {
			opens++
		}
		when := s.Policy.WakeAt()
		if !when.After(now) {
			t.Fatalf("at %v it wakes at %v", now, when)
		}
		now = when
		if now.Day() == 31 {
			break
		}
	}
	if opens != 1 {
		t.Errorf("in two days, on one of which the hour is left out, the zone opened %d times", opens)
	}
}
