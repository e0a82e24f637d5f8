package jobflow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

func TestTheJobsToMakeFollowFromThoseThatAreCompleted(t *testing.T) {
	const completed, running = batch.Completed, batch.Running
	for name, test := range map[string]struct {
		flows   string
		jobs    map[string]batch.JobPhase
		want    string // the Jobs to make
		waiting string // part of the message
	}{
		"at first those that wait for nothing": {"a, b: a, c", nil, "f-a f-c", "flow b waits for a, whose Job is not there yet"},
		"a Job that is there is not made":      {"a, b", map[string]batch.JobPhase{"a": ""}, "f-b", ""},
		"one that runs is waited for":          {"a, b: a", map[string]batch.JobPhase{"a": running}, "", "flow b waits for a, which is Running"},
		"a fresh one too":                      {"a, b: a", map[string]batch.JobPhase{"a": ""}, "", "flow b waits for a, which is Pending"},
		"one that is Completed is enough":      {"a, b: a", map[string]batch.JobPhase{"a": completed}, "f-b", ""},
		"Completing is not Completed":          {"a, b: a", map[string]batch.JobPhase{"a": batch.Completing}, "", "which is Completing"},
		"an aborted one may be resumed":        {"a, b: a", map[string]batch.JobPhase{"a": batch.Aborted}, "", "which is Aborted"},
		"all targets count":                    {"a, b, c: a b", map[string]batch.JobPhase{"a": completed, "b": running}, "", "flow c waits for b, which is Running"},
		"both are named":                       {"a, b, c: a b", map[string]batch.JobPhase{"a": running, "b": running}, "", "a, which is Running and b, which is Running"},
		"several go on at once":                {"a, b: a, c: a", map[string]batch.JobPhase{"a": completed}, "f-b f-c", ""},
		"a failed Job ends it":                 {"a, b: a, c", map[string]batch.JobPhase{"a": batch.Failed}, "", ""},
		"a terminated Job ends it":             {"a, b: a, c", map[string]batch.JobPhase{"a": batch.Terminated}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSurroundings(jobFlowOf(flowsOf(test.flows)...))
			for flow, phase := range test.jobs {
				w.add(flow, phase)
			}
			d := w.view.decide()
			if d.names() != test.want || len(d.troubles) > 0 || !strings.Contains(sentences(d.waiting), test.waiting) ||
				test.waiting == "" && test.want != "" && len(d.waiting) > 0 {
				t.Errorf("make %q, wait %q, troubles %v", d.names(), d.waiting, d.troubles)
			}
		})
	}
}

func TestAMistakeInOneFlowStopsThatFlowOnly(t *testing.T) {
	flows := flowsOf("a, b, c, d: b")
	flows[2].Patch = &flowapi.Patch{}
	flows[2].Patch.JobSpec.Raw = []byte(`{"nonsense": 1}`)
	w := newSurroundings(jobFlowOf(flows...))
	delete(w.templates, "b")
	d := w.view.decide()
	want := []trouble{
		{flowapi.JobTemplateNotFoundReason, "flow b: there is no JobTemplate b in namespace lab"},
		{flowapi.PatchErrorReason, `flow c: patch.jobSpec: unknown field "nonsense"`},
	}
	if d.names() != "f-a" || !slices.Equal(d.troubles, want) {
		t.Errorf("make %q, troubles %v", d.names(), d.troubles)
	}
	// An error in the spec itself stops the whole JobFlow.
	w.flow.Spec.Flows[3].DependsOn.Targets[0] = "x"
	if d := w.view.decide(); d.names() != "" || len(d.troubles) != 1 {
		t.Errorf("make %q, troubles %v", d.names(), d.troubles)
	}
}

func TestAJobThatWasCompletedCountsThoughItIsGone(t *testing.T) {
	w := newSurroundings(jobFlowOf(flowsOf("a, b: a")...))
	job := w.add("a", batch.Completed)
	count(job, "main", corev1.PodSucceeded, 1)
	if IsRecorded(w.flow, job) {
		t.Error("it is on record before anything was written")
	}
	w.flow.Status = *w.view.observe(&decision{})
	if !IsRecorded(w.flow, job) {
		t.Error("it is not on record")
	}
	delete(w.jobs, "f-a")
	if d := w.view.decide(); d.names() != "f-b" {
		t.Errorf("make %q", d.names())
	}
	status := w.view.observe(&decision{})
	if !slices.Equal(status.CompletedJobs, []string{"f-a"}) || len(status.JobStatusList) != 1 ||
		status.Conditions["f-a"].TaskStatusCount["main"].Phase[corev1.PodSucceeded] != 1 {
		t.Errorf("the status is %+v", status)
	}
	w = newSurroundings(jobFlowOf(flowsOf("a, b: a")...))
	w.add("a", batch.Running)
	w.flow.Status = *w.view.observe(&decision{})
	delete(w.jobs, "f-a")
	if d := w.view.decide(); d.names() != "f-a" {
		t.Errorf("of a Job that somebody deleted while it ran: make %q", d.names())
	}
}

// aboutMain is a probe of each kind for the task main.
var aboutMain = map[string]flowapi.Probe{
	"http":  {HttpGetList: []flowapi.HttpGet{{TaskName: "main", Port: 80, Path: "/ready"}}},
	"tcp":   {TcpSocketList: []flowapi.TcpSocket{{TaskName: "main", Port: 80}}},
	"phase": {TaskStatusList: []flowapi.TaskStatus{{TaskName: "main", Phase: "Running"}}},
}

// satisfy lets the task main of a Job pass any of those probes.
func satisfy(w *surroundings, job *batch.Job) {
	pod := w.addPod(job, "main", 0)
	for _, path := range []string{"", "/ready"} {
		w.answers[question{pod: pod.UID, address: pod.Status.PodIP, port: 80, path: path}] = answer{isYes: true}
	}
	count(job, "main", corev1.PodRunning, 1)
}

func TestAProbeTakesThePlaceOfCompletion(t *testing.T) {
	for kind, probe := range aboutMain {
		t.Run(kind, func(t *testing.T) {
			flows := flowsOf("a, b: a")
			flows[1] = probed(flows[1], probe)
			w := newSurroundings(jobFlowOf(flows...))
			if d := w.view.decide(); d.names() != "f-a" || len(d.questions) > 0 {
				t.Errorf("with no Job to ask: make %q, ask %v", d.names(), d.questions)
			}
			job := w.add("a", batch.Running)
			if d := w.view.decide(); d.names() != "" || !strings.Contains(sentences(d.waiting), "flow b waits for a: 0 of 1 pods of task main") {
				t.Errorf("with nothing true yet: make %q, wait %q", d.names(), d.waiting)
			}
			satisfy(w, job)
			if d := w.view.decide(); d.names() != "f-b" {
				t.Errorf("make %q, wait %q", d.names(), d.waiting)
			}
			w.ownPods, job.Status.TaskStatusCount = nil, nil
			job.Status.State.Phase = batch.Completed
			if d := w.view.decide(); d.names() != "f-b" || len(d.questions) > 0 {
				t.Errorf("once it is Completed: make %q, ask %v", d.names(), d.questions)
			}
		})
	}
}

func TestEveryPodOfATaskMustAnswer(t *testing.T) {
	flows := flowsOf("a, b: a")
	flows[1] = probed(flows[1], flowapi.Probe{TcpSocketList: []flowapi.TcpSocket{{TaskName: "side", Port: 80}}})
	w := newSurroundings(jobFlowOf(flows...))
	job := w.add("a", batch.Running)
	first, second := w.addPod(job, "side", 0), w.addPod(job, "side", 1)
	w.addPod(job, "main", 0)
	ask := func(pod *corev1.Pod) question { return question{pod: pod.UID, address: pod.Status.PodIP, port: 80} }
	w.answers[ask(first)], w.answers[ask(second)] = answer{isYes: true}, answer{failure: "refused"}
	d := w.view.decide()
	if want := "flow b waits for a: 1 of 2 pods of task side accept connections to port 80 (f-a-side-1: refused)"; sentences(d.waiting) != want {
		t.Errorf("it says %q", d.waiting)
	}
	if !slices.Equal(d.questions, []question{ask(first), ask(second)}) {
		t.Errorf("it asks %v", d.questions)
	}
	w.answers[ask(second)] = answer{isYes: true}
	for name, change := range map[string]func(*corev1.Pod){
		"waits":           func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodPending },
		"leaves":          func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} },
		"has no address":  func(pod *corev1.Pod) { pod.Status.PodIP = "" },
		"is another's":    func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "other" },
		"is of elsewhere": func(pod *corev1.Pod) { pod.Annotations = nil },
	} {
		w.ownPods["f-a"][1] = second.DeepCopy()
		change(w.ownPods["f-a"][1])
		if d := w.view.decide(); d.names() != "" || len(d.questions) != 1 {
			t.Errorf("of a pod that %s it asks %v", name, d.questions)
		}
	}
	w.ownPods["f-a"][1] = second
	if d := w.view.decide(); d.names() != "f-b" {
		t.Errorf("make %q, wait %q", d.names(), d.waiting)
	}
}

func TestAProbeWithoutATaskIsAboutAllOfThem(t *testing.T) {
	flows := flowsOf("a, b, c: a b")
	flows[2] = probed(flows[2], flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{Phase: "Succeeded"}}})
	w := newSurroundings(jobFlowOf(flows...))
	for _, flow := range []string{"a", "b"} {
		count(w.add(flow, batch.Running), "main", corev1.PodSucceeded, 1)
	}
	count(w.jobs["f-a"], "side", corev1.PodSucceeded, 2)
	count(w.jobs["f-b"], "side", corev1.PodSucceeded, 1)
	if d := w.view.decide(); sentences(d.waiting) != "flow c waits for b: 1 of 2 pods of task side are Succeeded" {
		t.Errorf("it says %q", d.waiting)
	}
	count(w.jobs["f-b"], "side", corev1.PodSucceeded, 2)
	if d := w.view.decide(); d.names() != "f-c" {
		t.Errorf("make %q, wait %q", d.names(), d.waiting)
	}
}

func TestATargetOfWhichAProbeSaysNothingMustBeCompleted(t *testing.T) {
	flows := flowsOf("a, b, c: a b")
	flows[2] = probed(flows[2], flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{TaskName: "only", Phase: "Running"}}})
	w := newSurroundings(jobFlowOf(flows...))
	w.templates["a"] = templateOf("a", batch.TaskSpec{Name: "only", Replicas: 1})
	count(w.add("a", batch.Running), "only", corev1.PodRunning, 1)
	w.add("b", batch.Running)
	if d := w.view.decide(); sentences(d.waiting) != "flow c waits for b, which is Running" {
		t.Errorf("it says %q", d.waiting)
	}
	w.jobs["f-b"].Status.State.Phase = batch.Completed
	if d := w.view.decide(); d.names() != "f-c" {
		t.Errorf("make %q, wait %q", d.names(), d.waiting)
	}
}

func TestAProbeOfATaskThatNoTargetHasIsAMistake(t *testing.T) {
	flows := flowsOf("a, b: a")
	flows[1] = probed(flows[1], flowapi.Probe{HttpGetList: []flowapi.HttpGet{{Port: 1, TaskName: "sidee"}}})
	w := newSurroundings(jobFlowOf(flows...))
	d := w.view.decide()
	want := trouble{flowapi.InvalidSpecReason,
		`spec.flows[1].dependsOn.probe.httpGetList[0].taskName: Not found: "sidee": the targets have a/main, a/side`}
	if len(d.troubles) != 1 || d.troubles[0] != want || d.names() != "f-a" {
		t.Errorf("make %q, troubles %v", d.names(), d.troubles)
	}
	// As long as the template does not exist, it is unknown.
	delete(w.templates, "a")
	if d := w.view.decide(); len(d.troubles) != 1 || d.troubles[0].reason != flowapi.JobTemplateNotFoundReason {
		t.Errorf("troubles %v", d.troubles)
	}
	// A task without a name goes by its default one, and a patch may add one.
	w.templates["a"] = templateOf("a", batch.TaskSpec{Replicas: 1})
	w.flow.Spec.Flows[1].DependsOn.Probe.HttpGetList[0].TaskName = "default0"
	if d := w.view.decide(); len(d.troubles) > 0 {
		t.Errorf("troubles %v", d.troubles)
	}
}

func TestWhatCanNeverBecomeTrueFailsTheFlow(t *testing.T) {
	flows := flowsOf("a, cleanup: a, c")
	flows[1] = probed(flows[1], flowapi.Probe{TaskStatusList: []flowapi.TaskStatus{{TaskName: "main", Phase: "Failed"}}})
	w := newSurroundings(jobFlowOf(flows...))
	job := w.add("a", batch.Running)
	count(job, "main", corev1.PodFailed, 1)
	if d := w.view.decide(); d.names() != "f-cleanup f-c" {
		t.Errorf("make %q, wait %q", d.names(), d.waiting)
	}
	count(job, "main", corev1.PodSucceeded, 1)
	job.Status.State.Phase = batch.Completed
	for _, where := range []string{"there", "gone"} {
		d := w.view.decide()
		state := w.view.nextState(&d)
		if d.names() != "" || state.Phase != flowapi.Failed || state.Reason != flowapi.DependencyUnreachableReason ||
			state.Message != "Job f-a is Completed, and 0 of 1 pods of task main are Failed" {
			t.Errorf("%s: make %q, state %+v", where, d.names(), state)
		}
		w.flow.Status = *w.view.observe(&decision{})
		delete(w.jobs, "f-a")
	}
}

func TestALongMessageSaysHowMuchItLeavesOut(t *testing.T) {
	flows := flowsOf("a")
	for i := range 9 {
		flows = append(flows, flowsOf(fmt.Sprintf("b%d: a", i))...)
	}
	w := newSurroundings(jobFlowOf(flows...))
	w.add("a", batch.Running)
	d := w.view.decide()
	message := w.view.nextState(&d).Message
	if !strings.HasPrefix(message, "flow b0 waits for a, which is Running; ") || !strings.HasSuffix(message, "; and 4 more") {
		t.Errorf("it says %q", message)
	}
	if long := clip(strings.Repeat("→", 500)); len(long) > 1024 || !strings.HasSuffix(long, "→…") {
		t.Errorf("%d bytes: %s", len(long), long)
	}
}

func TestEachJobStandsInTheListOfItsPhase(t *testing.T) {
	lists := func(s *flowapi.JobFlowStatus) map[string][]string {
		return map[string][]string{"pending": s.PendingJobs, "running": s.RunningJobs, "failed": s.FailedJobs,
			"completed": s.CompletedJobs, "terminated": s.TerminatedJobs, "unknown": s.UnKnowJobs}
	}
	for phase, want := range map[batch.JobPhase]string{
		"": "pending", batch.Pending: "pending", batch.Running: "running", batch.Failed: "failed", batch.Completed: "completed",
		batch.Completing: "completed", batch.Terminated: "terminated", batch.Terminating: "terminated", batch.Restarting: "unknown",
		batch.Aborting: "unknown", batch.Aborted: "unknown",
	} {
		w := newSurroundings(jobFlowOf(flowsOf("a")...))
		w.add("a", phase)
		for name, list := range lists(w.view.observe(&decision{})) {
			if slices.Equal(list, []string{"f-a"}) != (name == want) || len(list) > 1 {
				t.Errorf("a Job that is %q stands among the %s: %v", phase, name, list)
			}
		}
	}
}
