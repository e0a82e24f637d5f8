package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/audit"
)

// TestLinesInTheOrderOfTheirAnswersAreTakenByArrival shuffles a log within the time that requests take.
func TestLinesInTheOrderOfTheirAnswersAreTakenByArrival(t *testing.T) {
	s := newStory(t)
	s.node("n1", "4")
	for i := range 200 {
		name := fmt.Sprint("p", i)
		s.pod(name, "3")
		s.bind(name, "n1")
		s.end(name)
	}
	lines := bytes.SplitAfter(s.log.Bytes(), []byte("\n"))
	random := rand.New(rand.NewPCG(1, 2))
	for begin := 0; begin+100 < len(lines); begin += 100 {
		random.Shuffle(100, func(i, j int) { lines[begin+i], lines[begin+j] = lines[begin+j], lines[begin+i] })
	}
	s.log = *bytes.NewBuffer(slices.Concat(lines...))
	s.expect()
}

func TestLinesThatCannotBeReadAreCounted(t *testing.T) {
	s := newStory(t)
	s.node("n1", "4")
	s.log.WriteString("{\"verb\":\"create\",\"stage\": 7}\n\nno JSON\n")
	s.pod("a", "5")
	s.bind("a", "n1")
	a := audit.New(audit.Options{})
	if err := a.Read(&s.log); err != nil {
		t.Fatal(err)
	}
	r := a.End()
	if len(r.Violations) != 1 || r.Unreadable != 2 || r.Problem == "" {
		t.Errorf("violations are %v, %d lines are unreadable (%s); want one violation and two lines that cannot be read", r.Violations, r.Unreadable, r.Problem)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	for _, c := range []struct {
		what   string
		uri    string
		dryRun []string
		want   int
	}{
		{"no dry run", "/api/v1/namespaces/work/pods/a", nil, 1},
		{"a dry run by its address", "/api/v1/namespaces/work/pods/a?dryRun=All", nil, 0},
		{"a dry run by its options", "/api/v1/namespaces/work/pods/a", []string{"All"}, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newStory(t)
			s.node("n1", "4")
			s.pod("a", "3", func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": "a"}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			})
			s.request("update", "policy", "poddisruptionbudgets", "status", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "a"},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}, nil, person)
			s.bind("a", "n1")
			s.pass(10 * time.Minute)
			s.uri = c.uri
			options := &struct {
				metav1.ObjectMeta `json:"-"`
				DryRun            []string `json:"dryRun,omitempty"`
			}{metav1.ObjectMeta{Namespace: "work", Name: "a"}, c.dryRun}
			s.request("delete", "", "pods", "", s.pods["a"], options, theScheduler)
			budgets := 0
			for _, violated := range s.report().Violations {
				if violated.Rule == audit.RuleBudget {
					budgets++
				}
			}
			if budgets != c.want {
				t.Errorf("the rule of budgets is broken %d times, want %d", budgets, c.want)
			}
		})
	}
}

func TestALogWithoutObjectsSaysWhatIsMissing(t *testing.T) {
	a := audit.New(audit.Options{})
	line := `{"stage":"ResponseComplete","verb":"create","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"work","name":"a"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-01T12:00:00.0Z","stageTimestamp":"2026-11-01T12:00:00.1Z"}`
	if err := a.Read(strings.NewReader(line)); err != nil {
		t.Fatal(err)
	}
	for why := range a.End().Unknown {
		if strings.Contains(why, "RequestResponse") {
			return
		}
	}
	t.Error("the report does not say that the policy needs the level RequestResponse")
}

func TestALineThatIsTooLongIsAnError(t *testing.T) {
	if err := audit.New(audit.Options{}).Read(io.LimitReader(endless{}, 9<<20)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("the error is %v", err)
	}
}

type endless struct{}

func (endless) Read(to []byte) (int, error) {
	for i := range to {
		to[i] = 'x'
	}
	return len(to), nil
}

// TestObjectsThatAreOlderThanTheLogCount has a node and a pod known by their objects.
func TestObjectsThatAreOlderThanTheLogCount(t *testing.T) {
	old := newStory(t)
	old.node("n1", "4")
	old.pod("a", "3")
	old.bind("a", "n1")
	s := newStory(t)
	s.now = s.now.Add(time.Hour)
	s.version = 100
	s.pod("b", "2")
	s.bind("b", "n1")
	log := s.log.Bytes()
	for _, isKnown := range []bool{false, true} {
		a := audit.New(audit.Options{})
		if isKnown {
			if _, err := a.Know(strings.NewReader(listOf(t, old.nodes["n1"], old.pods["a"]))); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Read(bytes.NewReader(log)); err != nil {
			t.Fatal(err)
		}
		if got := len(a.End().Violations); (got == 1) != isKnown {
			t.Errorf("with the objects known %t there are %d violations", isKnown, got)
		}
	}
}

// traffic is a log as long as it is read: pods come, are bound, run and go, among requests that change nothing.
type traffic struct {
	lines  int // that are left
	number int
	now    time.Time
	rest   []byte
}

func (g *traffic) Read(to []byte) (int, error) {
	for len(g.rest) < len(to) && g.lines > 0 {
		g.rest = append(g.rest, g.pod()...)
	}
	if len(g.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, g.rest)
	g.rest = append(g.rest[:0], g.rest[n:]...)
	return n, nil
}

// pod is the life of a pod in ten lines.
func (g *traffic) pod() (text []byte) {
	const line = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"3f0b1c9e-0000-4000-8000-000000000000","stage":"ResponseComplete","requestURI":"/api/v1/%[3]s","verb":"%[1]s","user":{"username":"%[2]s","groups":["system:authenticated"]},"sourceIPs":["127.0.0.1"],"objectRef":{"resource":"%[3]s","namespace":"work","name":"%[4]s","subresource":"%[5]s"},"responseStatus":{"metadata":{},"code":200},"requestObject":%[6]s,"responseObject":%[7]s,"requestReceivedTimestamp":"%[8]s","stageTimestamp":"%[9]s"}` + "\n"
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%[1]s","namespace":"work","uid":"u-%[1]s","resourceVersion":"%[2]d","creationTimestamp":"2026-11-01T12:00:00Z"%[3]s},"spec":{"containers":[{"name":"c","image":"registry/image","env":[%[4]s],"resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]%[5]s},"status":{"phase":"%[6]s"}}`
	env := strings.Repeat(`{"name":"A_VARIABLE","value":"of some length"},`, 40)
	env = env[:len(env)-1]
	name := fmt.Sprintf("p%d", g.number)
	add := func(verb, by, resource, subresource, asked, answer string) {
		if g.lines == 0 {
			return
		}
		g.lines--
		g.now = g.now.Add(5 * time.Millisecond)
		text = fmt.Appendf(text, line, verb, by, resource, name, subresource, asked, answer, g.now.Format(time.RFC3339Nano), g.now.Add(time.Millisecond).Format(time.RFC3339Nano))
	}
	object := func(meta, spec, phase string) string {
		g.number++
		return fmt.Sprintf(pod, name, 10+g.number, meta, env, spec, phase)
	}
	const on = `,"nodeName":"n1"`
	if g.number == 0 {
		add("create", "u", "nodes", "", "{}", `{"kind":"Node","metadata":{"name":"n1","resourceVersion":"1","creationTimestamp":"2026-11-01T12:00:00Z"},"status":{"allocatable":{"cpu":"4","memory":"64Gi","pods":"110"}}}`)
	}
	add("create", "u", "pods", "", "{}", object("", "", "Pending"))
	add("create", "scheduler", "pods", "binding", `{"metadata":{"name":"`+name+`","uid":"u-`+name+`"},"target":{"name":"n1"}}`, `{"kind":"Status"}`)
	add("update", "u", "leases", "", "{}", "{}")
	add("patch", "kubelet", "pods", "status", "{}", object("", on, "Running"))
	for range 4 {
		add("get", "u", "pods", "", "{}", object("", on, "Running"))
	}
	add("patch", "kubelet", "pods", "status", "{}", object("", on, "Succeeded"))
	add("delete", "u", "pods", "", "{}", object(`,"deletionTimestamp":"2026-11-01T12:00:00Z","deletionGracePeriodSeconds":0`, on, "Succeeded"))
	return text
}

func TestTrafficIsClean(t *testing.T) {
	a := audit.New(audit.Options{})
	if err := a.Read(&traffic{lines: 5000, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	if r := a.End(); len(r.Violations) > 0 || r.Bindings < 400 || r.Lines != 5000 {
		t.Errorf("%d lines, %d bindings, violations %v, unknown %v", r.Lines, r.Bindings, r.Violations, r.Unknown)
	}
}

// BenchmarkRead reads a log of as many lines as b.N says, and reports the memory of the process at the end.
func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	a := audit.New(audit.Options{})
	if err := a.Read(&traffic{lines: b.N, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}); err != nil {
		b.Fatal(err)
	}
	if r := a.End(); len(r.Violations) > 0 {
		b.Fatal(r.Violations[0].String())
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
}

// listOf is a list as kubectl prints it.
func listOf(t *testing.T, objects ...any) string {
	t.Helper()
	items := make([]map[string]any, len(objects))
	for i, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &items[i]); err != nil {
			t.Fatal(err)
		}
		items[i]["kind"] = reflect.TypeOf(o).Elem().Name()
	}
	text, err := json.Marshal(map[string]any{"kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
