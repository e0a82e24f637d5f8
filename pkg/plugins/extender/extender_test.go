package extender_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/extender"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// service is an extender that gives prepared answers, and notes what it was asked.
type service struct {
	*httptest.Server
	mutex   sync.Mutex
	answers map[string]string // by verb
	asked   []string          // verbs
	bodies  []map[string]any
}

func newService(t *testing.T, answers map[string]string) *service {
	s := &service{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verb := strings.TrimPrefix(r.URL.Path, "/")
		body := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.asked, s.bodies = append(s.asked, verb), append(s.bodies, body)
		switch answer := s.answers[verb]; answer {
		case "silence":
			panic(http.ErrAbortHandler)
		case "error":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// verbs are what it was asked so far.
func (s *service) verbs() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.asked)
}

// body is what came with a question.
func (s *service) body(i int) map[string]any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bodies[i]
}

// set prepares an answer.
func (s *service) set(verb, answer string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[verb] = answer
}

// forget forgets what was asked.
func (s *service) forget() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.asked, s.bodies = nil, nil
}

// with are arguments by which these verbs are asked, by their own names.
func (s *service) with(more string, verbs ...string) string {
	text := "extender.urlPrefix: " + s.URL + "\n" + more + "\n"
	for _, verb := range verbs {
		text += fmt.Sprintf("extender.%sVerb: %s\n", verb, verb)
	}
	return text
}

// asking is a model with the plugin, a job that runs and one that waits.
func asking(t *testing.T, arguments string, objects ...runtime.Object) *harness.Model {
	t.Helper()
	return harness.ForPlugin(t, extender.Factory(), arguments).Set(fixture.Queue("q"), fixture.Node("n", "cpu=4 nvidia.com/gpu=8"),
		fixture.Group("g", "q", 1), fixture.Pod("v", fixture.In("g"), fixture.On("n")), fixture.Pod("w", fixture.In("g"), fixture.On("n")),
		fixture.Group("preemptor", "q", 1, fixture.Wanting("cpu=2")),
		fixture.Pod("t", fixture.In("preemptor"), fixture.Asks("cpu=2 nvidia.com/gpu=1"))).Set(objects)
}

func veto(m *harness.Model, task string) string {
	return m.Policy.Vetoers[0].VetoNode(m.TaskNamed(task), m.Node("n"))
}

func TestANodeIsVetoedByAText(t *testing.T) {
	long := strings.Repeat("é", 150)
	for answer, want := range map[string]string{
		`{}`:                         "",
		`{"status": "", "code": 0}`:  "",
		`{"status": "too warm"}`:     "node(s) were refused by the extender: too warm",
		`{"errorMessage": "broken"}`: "node(s) were refused by the extender: broken",
		`{"status": "` + long + `"}`: "node(s) were refused by the extender: " + strings.Repeat("é", 100),
		"error":                      "node(s) were not agreed to by the extender: it answers with status 500",
		"silence":                    "node(s) were not agreed to by the extender: it does not answer",
		"yes":                        "node(s) were not agreed to by the extender: its answer is not the JSON that is expected",
	} {
		for _, ignorable := range []bool{false, true} {
			s := newService(t, map[string]string{"predicate": answer})
			w := asking(t, s.with(fmt.Sprintf("extender.ignorable: %t", ignorable), "predicate"))
			w.Open()
			expected := want
			if ignorable && strings.Contains(want, "not agreed") {
				expected = ""
			}
			if diff := cmp.Diff(expected, veto(w, "t")); diff != "" {
				t.Errorf("%s, ignorable %t: %s", answer, ignorable, diff)
			}
		}
	}
}

func TestAPredicateIsAskedAsVolcanoAsksIt(t *testing.T) {
	s := newService(t, map[string]string{"predicate": "{}"})
	w := asking(t, s.with("", "predicate"))
	w.Open()
	veto(w, "t")
	if diff := cmp.Diff([]string{"predicate"}, s.verbs()); diff != "" {
		t.Fatal(diff)
	}
	task, node := s.body(0)["task"].(map[string]any), s.body(0)["node"].(map[string]any)
	request := map[string]any{"MilliCPU": 2000.0, "Memory": 0.0, "MaxTaskNum": 1.0, "ScalarResources": map[string]any{"nvidia.com/gpu": 1000.0, "pods": 1.0}}
	for name, want := range map[string]any{"UID": "t-uid", "Name": "t", "Namespace": "work", "Job": "work/preemptor", "Status": 1.0, "TaskRole": "default",
		"Resreq": request, "InitResreq": request, "BestEffort": false} {
		if diff := cmp.Diff(want, task[name]); diff != "" {
			t.Errorf("the task's %s: %s", name, diff)
		}
	}
	if pod := task["Pod"].(map[string]any); pod["metadata"].(map[string]any)["name"] != "t" {
		t.Errorf("the pod is %v", pod)
	}
	for name, want := range map[string]float64{"Used": 2000, "Idle": 2000, "Allocatable": 4000} {
		if got := node[name].(map[string]any)["MilliCPU"]; got != want {
			t.Errorf("the node's %s is %v, want %v", name, got, want)
		}
	}
	tasks := node["Tasks"].(map[string]any)
	if len(tasks) != 2 || tasks["v-uid"].(map[string]any)["Status"] != 32.0 || tasks["v-uid"].(map[string]any)["NodeName"] != "n" {
		t.Errorf("on the node are %v", tasks)
	}
	if meta := node["Node"].(map[string]any)["metadata"].(map[string]any); node["Name"] != "n" || meta["name"] != "n" {
		t.Errorf("the node is %v", node)
	}
}

func TestPodsLeaveIfAllAreAmongTheVictims(t *testing.T) {
	const keeps, silent = "extender (it does not let them go)", "extender (it gives no answer)"
	for answer, want := range map[string]string{
		`{"status": 1, "victims": [{"UID": "v-uid"}, {"UID": "w-uid", "Name": "w"}]}`: "yes",
		`{"status": 1, "victims": [{"UID": "v-uid"}]}`:                                keeps,
		`{"status": 1, "victims": []}`:                                                keeps,
		`{"status": 1}`:                                                               keeps,
		`{"status": -1, "victims": [{"UID": "v-uid"}, {"UID": "w-uid"}]}`:             keeps,
		`{"status": 0, "victims": [{"UID": "v-uid"}]}`:                                "",
		`{}`:      "",
		"error":   silent,
		"silence": silent,
	} {
		for _, reclaim := range []bool{false, true} {
			for _, task := range []string{"t", ""} {
				for _, ignorable := range []bool{false, true} {
					verb := map[bool]string{false: "preemptable", true: "reclaimable"}[reclaim]
					s := newService(t, map[string]string{verb: answer})
					w := asking(t, s.with(fmt.Sprintf("extender.ignorable: %t", ignorable), verb))
					q := harness.Question{Session: w.Open(), Reclaim: reclaim, Preemptor: "preemptor", For: task, Victims: "v w"}
					expected := want
					if ignorable && want == silent {
						expected = ""
					}
					if got := w.Vote(q); got != expected {
						t.Errorf("%s for %q, ignorable %t: %q, want %q", answer, task, ignorable, got, expected)
					}
					q.Reclaim = !reclaim
					if got := w.Vote(q); got != "" || len(s.verbs()) != 1 {
						t.Errorf("of what it has no verb for it says %q; asked is %v", got, s.verbs())
					}
					evictor, evictees := s.body(0)["evictor"].(map[string]any), s.body(0)["evictees"].([]any)
					if evictor["Name"] != task || evictor["Job"] != "work/preemptor" || evictor["Resreq"].(map[string]any)["MilliCPU"] != 2000.0 ||
						len(evictees) != 2 || evictees[1].(map[string]any)["UID"] != "w-uid" {
						t.Errorf("asked is %v", s.body(0))
					}
				}
			}
		}
	}
}

func TestJobsAndQueuesAreAskedAbout(t *testing.T) {
	type asked struct{ verb, answer, ignored, strict string }
	for _, test := range []asked{
		{"jobEnqueueable", `{"status": 1}`, "", ""},
		{"jobEnqueueable", `{"status": 0}`, "", ""},
		{"jobEnqueueable", `{"status": -1}`, "Refused the extender", "Refused the extender"},
		{"jobEnqueueable", "silence", "", "Refused the extender; it does not answer"},
		{"queueOverused", `{"overused": false}`, "", ""},
		{"queueOverused", `{"overused": true}`, "Refused the extender; it says that queue q has enough", "Refused the extender; it says that queue q has enough"},
		{"queueOverused", "error", "", "Refused the extender; it answers with status 500"},
		{"jobReady", `{"status": true}`, "", ""},
		{"jobReady", `{"status": false}`, "not ready", "not ready"},
		{"jobReady", "silence", "", "not ready"},
	} {
		for ignorable, want := range map[bool]string{true: test.ignored, false: test.strict} {
			s := newService(t, map[string]string{test.verb: test.answer})
			w := asking(t, s.with(fmt.Sprintf("extender.ignorable: %t", ignorable), test.verb))
			session, j := w.Open(), w.JobNamed("preemptor")
			got := harness.Describe(session.MayEnqueue(j)) + harness.Describe(session.Overused(w.Queue("q")))
			if !session.IsReady(j) {
				got += "not ready"
			}
			if got != want || len(s.verbs()) != 1 {
				t.Errorf("%s answers %s, ignorable %t: %q, want %q; asked is %v", test.verb, test.answer, ignorable, got, want, s.verbs())
			}
			if about, ok := s.body(0)["job"].(map[string]any); ok {
				if about["UID"] != "work/preemptor" || about["Queue"] != "q" || about["MinAvailable"] != 1.0 || len(about["Tasks"].(map[string]any)) != 1 {
					t.Errorf("the job is %v", about)
				}
			} else if about := s.body(0)["queue"].(map[string]any); about["Name"] != "q" || about["Queue"] == nil {
				t.Errorf("the queue is %v", about)
			}
		}
	}
}

func TestARefusalIsAskedForAgain(t *testing.T) {
	s := newService(t, map[string]string{"jobEnqueueable": `{"status": -1}`})
	w := asking(t, s.with("", "jobEnqueueable"))
	v := w.Open().MayEnqueue(w.JobNamed("preemptor"))
	if want := verdict.HelpTime; v.Help&want == 0 {
		t.Errorf("what may help is %b", v.Help)
	}
	if want := "refused by the extender"; v.Sentence() != want {
		t.Errorf("%q, want %q", v.Sentence(), want)
	}
}

func TestLaterTiersAreAskedUnlessTheAnswerIsAPermit(t *testing.T) {
	for answer, want := range map[string]string{`{"status": 1}`: "", `{"status": 0}`: "OverCommitted q", `{"status": -7}`: "Refused the extender"} {
		s := newService(t, map[string]string{"jobEnqueueable": answer})
		later := &harness.Limits{AdmissionLimits: map[string]int{"q": -1}}
		arguments, err := conf.ParseArguments([]byte(s.with("", "jobEnqueueable")), extender.Factory().Spec)
		if err != nil {
			t.Fatal(err)
		}
		tiers := []conf.Tier{{Plugins: []conf.Plugin{{Name: extender.Name, Arguments: arguments}}}, {Plugins: []conf.Plugin{{Name: later.Name()}}}}
		policy := harness.Build(t, &conf.Configuration{Tiers: tiers}, nil, extender.Factory(), harness.Made(later))
		m := harness.ForPolicy(t, policy).Set(fixture.Queue("q"), fixture.Group("g", "q", 1, fixture.PendingAdmission))
		if got := harness.Describe(m.Open().MayEnqueue(m.JobNamed("g"))); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

func TestWhoIsSilentIsNotAskedAgainInTheSession(t *testing.T) {
	s := newService(t, map[string]string{"predicate": "silence", "jobReady": "error"})
	w := asking(t, s.with("", "predicate", "jobReady", "jobEnqueueable"))
	session := w.Open()
	for range 3 {
		if session.IsReady(w.JobNamed("preemptor")) {
			t.Error("it is ready though the answer is an error")
		}
	}
	if len(s.verbs()) != 3 {
		t.Errorf("an error is an answer: asked is %v", s.verbs())
	}
	for range 3 {
		if veto(w, "t") == "" {
			t.Error("the node is agreed to without an answer")
		}
	}
	if session.IsReady(w.JobNamed("preemptor")) || session.MayEnqueue(w.JobNamed("preemptor")) == nil || len(s.verbs()) != 4 {
		t.Errorf("asked is %v", s.verbs())
	}
	s.set("predicate", "{}")
	w.Open()
	if got := veto(w, "t"); got != "" {
		t.Errorf("in the next session it says %q", got)
	}
}

func TestANodeThatNoAnswerWasGivenAboutIsAskedAboutAgain(t *testing.T) {
	s := newService(t, map[string]string{"predicate": "error"})
	w := asking(t, s.with("", "predicate"))
	engine := w.Placing().Engine
	for _, step := range []struct {
		answer string
		takes  bool
		asked  int
	}{{"error", false, 1}, {"silence", false, 2}, {"{}", true, 3}, {"error", true, 3}} {
		s.set("predicate", step.answer)
		w.Open()
		if got := engine.Best(w.TaskNamed("t")) != nil; got != step.takes || len(s.verbs()) != step.asked {
			t.Errorf("after %s the node takes the pod: %t; asked is %v", step.answer, got, s.verbs())
		}
	}
}

func TestOnlyPodsWithManagedResourcesAreAskedAbout(t *testing.T) {
	for _, managed := range []string{"extender.managedResources: [example.com/x, nvidia.com/gpu]", "extender.managedResources: example.com/x, nvidia.com/gpu", "", "extender.managedResources: []"} {
		s := newService(t, map[string]string{"predicate": `{"status": "no"}`, "preemptable": `{"status": -1}`})
		w := asking(t, s.with(managed, "predicate", "preemptable"), fixture.Pod("plain", fixture.In("preemptor")))
		session := w.Open()
		isForAll := !strings.Contains(managed, "gpu")
		for task, want := range map[string]bool{"t": true, "plain": isForAll} {
			if got := veto(w, task) != ""; got != want {
				t.Errorf("%s: a node for %s is vetoed: %t", managed, task, got)
			}
			q := harness.Question{Session: session, Preemptor: "preemptor", For: task, Victims: "v"}
			if got := w.Vote(q) != ""; got != want {
				t.Errorf("%s: it votes for %s: %t", managed, task, got)
			}
		}
	}
	for _, wrong := range []string{"7", "[7]", "{a: b}"} {
		parsed, err := conf.ParseArguments([]byte("extender.managedResources: "+wrong), extender.Factory().Spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := extender.Factory().New(conf.Switches{}, parsed); err == nil || !strings.Contains(err.Error(), "extender.managedResources") {
			t.Errorf("%s: the error is %v", wrong, err)
		}
	}
}

func TestWhatHasComeOfAllAttemptsIsTold(t *testing.T) {
	s := newService(t, map[string]string{"allocateFunc": "{}", "deallocateFunc": "{}", "jobReady": `{"status": true}`})
	w := asking(t, s.with("", "allocateFunc", "deallocateFunc", "jobReady"))
	session := w.Open()
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for i, verb := range s.verbs() {
			if about, ok := s.body(i)["task"].(map[string]any); ok {
				verb += " " + about["Name"].(string)
			}
			got = append(got, verb)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		s.forget()
	}
	x := session.Begin()
	x.Place(w.TaskNamed("t"), w.Node("n"))
	x.Evict(w.TaskNamed("v"))
	x.Undo()
	session.IsReady(w.JobNamed("preemptor"))
	expect("jobReady")
	x = session.Begin()
	x.Evict(w.TaskNamed("v"))
	x.Pipeline(w.TaskNamed("t"), w.Node("n"))
	session.IsReady(w.JobNamed("preemptor"))
	expect("deallocateFunc v", "allocateFunc t", "jobReady")
	session.IsReady(w.JobNamed("preemptor"))
	expect("jobReady")
	x.Undo()
	session.IsReady(w.JobNamed("preemptor"))
	expect("deallocateFunc t", "allocateFunc v", "jobReady")
	x = session.Begin()
	x.Place(w.TaskNamed("t"), w.Node("n"))
	x.Commit()
	expect()
	w.Open()
	expect("allocateFunc t")
	w.Open()
	expect()
}

func TestTheClusterIsToldWhenACycleBegins(t *testing.T) {
	s := newService(t, map[string]string{"onSessionOpen": "whatever"})
	w := asking(t, s.with("", "onSessionOpen"))
	w.Open()
	if diff := cmp.Diff([]string{"onSessionOpen"}, s.verbs()); diff != "" {
		t.Fatal(diff)
	}
	body := s.body(0)
	if jobs := body["Jobs"].(map[string]any); len(jobs) != 1 || jobs["work/preemptor"].(map[string]any)["Name"] != "preemptor" {
		t.Errorf("the jobs are %v", jobs)
	}
	if nodes := body["Nodes"].(map[string]any); len(nodes) != 1 || nodes["n"].(map[string]any)["Tasks"] != nil {
		t.Errorf("the nodes are %v", nodes)
	}
	if queues := body["Queues"].(map[string]any); queues["q"].(map[string]any)["Name"] != "q" {
		t.Errorf("the queues are %v", queues)
	}
	if diff := cmp.Diff([]any{"n"}, body["NodeList"]); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutVerbsNothingIsAsked(t *testing.T) {
	w := asking(t, "")
	session := w.Open()
	j := w.JobNamed("preemptor")
	if veto(w, "t") != "" || session.MayEnqueue(j) != nil || session.Overused(w.Queue("q")) != nil || !session.IsReady(j) ||
		w.Vote(harness.Question{Session: session, Preemptor: "preemptor", For: "t", Victims: "v"}) != "" {
		t.Error("it has a say without any verb")
	}
	x := session.Begin()
	x.Place(w.TaskNamed("t"), w.Node("n"))
	x.Commit()
	w.Open()
}

func TestArgumentsThatCannotBeUsedAreRefused(t *testing.T) {
	for arguments, want := range map[string]string{
		"extender.predicateVerb: p":                                         "extender.urlPrefix",
		"extender.urlPrefix: nowhere":                                       "extender.urlPrefix",
		"extender.httpTimeout: 0s":                                          "extender.httpTimeout",
		"extender.httpTimeout: quick":                                       "extender.httpTimeout",
		"extender.predicateVerbs: p":                                        "extender.predicateVerbs",
		"extender.urlPrefix: http://127.0.0.1:1\nextender.httpTimeout: -1s": "extender.httpTimeout",
	} {
		parsed, err := conf.ParseArguments([]byte(arguments), extender.Factory().Spec)
		if err == nil {
			_, err = extender.Factory().New(conf.Switches{}, parsed)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", arguments, err)
		}
	}
}

func TestANodeIsShownAsItWillBe(t *testing.T) {
	s := newService(t, map[string]string{"predicate": "{}"})
	w := asking(t, s.with("extender.httpTimeout: 5s", "predicate"))
	session := framework.NewSession(w.Cluster, w.Open().Policy, nil, fixture.Birth.Add(time.Hour))
	x := session.Begin()
	x.Evict(w.TaskNamed("v"))
	defer x.Undo()
	now := *w.Node("n")
	later := now
	later.Releasing = nil
	for i, n := range []*cluster.Node{&now, &later} {
		w.Policy.Vetoers[0].VetoNode(w.TaskNamed("t"), n)
		if got := len(s.body(i)["node"].(map[string]any)["Tasks"].(map[string]any)); got != 2-i {
			t.Errorf("of the two tasks, one of which leaves, %d are shown", got)
		}
	}
}
