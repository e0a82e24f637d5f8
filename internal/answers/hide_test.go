package answers

import (
	"encoding/json"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/propose"
	"hekla.sh/hekla/internal/journal"
)

// seesMine sees one namespace of three.
func seesMine() *redactor {
	return &redactor{sees: func(namespace string) bool { return namespace == "mine" }, known: map[string]bool{"mine": true, "theirs": true, "affinity": false}}
}

func TestSentencesNameNoJobOfAnotherNamespace(t *testing.T) {
	for sentence, want := range map[string]string{
		"Preempted by job theirs/train (priority 10) in queue q":            "Preempted by job (another namespace) (priority 10) in queue q",
		"job theirs/a.b-c, which holds 2":                                   "job (another namespace), which holds 2",
		"theirs/a comes first.":                                             "(another namespace) comes first.",
		"mine/a waits for theirs/b, theirs/c":                               "mine/a waits for (another namespace), (another namespace)",
		"0/5 nodes are available: 5 node(s) didn't match affinity/selector": "0/5 nodes are available: 5 node(s) didn't match affinity/selector",
		"nvidia.com/gpu: needs 4; taint theirs.example.com/theirs":          "nvidia.com/gpu: needs 4; taint theirs.example.com/theirs",
		"pods \"x\" is forbidden: exceeded quota: mine/q":                   "pods \"x\" is forbidden: exceeded quota: mine/q",
	} {
		got := sentence
		if seesMine().text(&got); got != want {
			t.Errorf("%q becomes %q, want %q", sentence, got, want)
		}
	}
}

func TestAnAnswerNamesNoJobOfAnotherNamespace(t *testing.T) {
	// The PodGroup of a Volcano Job has another name than the Job. Namespace new has come since the scheduler was asked
	// for namespaces.
	answer := api.Job{Story: []journal.Entry{
		{Job: "mine/a", Pod: "mine/a-0", For: "theirs/secret-9d1e", Message: "Preempted by job theirs/secret (priority 10) in queue q"},
		{Job: "mine/a", For: "new/secret-9d1e", Message: "Preempted by job new/secret in queue q"},
		{Job: "mine/a", Message: "job theirs/secret of higher priority takes the room that was promised"},
	}}
	answer.Job = explain.Job{Job: "mine/a", Verdict: &explain.Verdict{Subject: "theirs/secret", Message: "job theirs/secret comes first",
		Protected: []explain.Protected{{Protection: explain.Protection{Rule: "of theirs/secret"}, Pods: 2}}},
		Plan:       &explain.Plan{Leaving: []string{"theirs/secret-0", "mine/b-0"}},
		Candidates: []explain.Candidates{{MayLeave: 2, Pods: []string{"theirs/secret-0", "mine/b-0"}}}}
	answer.Ahead = []explain.Ahead{{Job: "theirs/secret", Priority: 10}}
	answer.Cause = explain.Cause{Where: "theirs/secret", Message: "promised to theirs/secret", Promised: []explain.NodeReason{{Reason: "promised to theirs/secret", Job: "theirs/secret"}}}
	answer.Proposals = []propose.Proposal{{Message: "when theirs/secret is gone"}}
	answer.Holders = &holders.Holders{Held: "5", Jobs: []holders.Job{{Job: "theirs/secret", Held: "3"}, {Job: "mine/c", Held: "2"}},
		Namespaces: []holders.Group{{Name: "theirs", Held: "3"}, {Name: "mine", Held: "2"}}, Queues: []holders.Group{{Name: "q", Held: "5", Jobs: 2}}}
	hideJob(&answer, seesMine())
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") || strings.Count(string(text), "mine/b-0") != 2 {
		t.Errorf("the answer is %s", text)
	}
	if answer.Job.Candidates[0].MayLeave != 2 || len(answer.Ahead) != 1 || answer.Ahead[0].Priority != 10 {
		t.Errorf("numbers are gone: %+v", answer)
	}
	if h := answer.Holders; len(h.Jobs) != 1 || len(h.Namespaces) != 1 || h.Held != "5" || len(h.Queues) != 1 {
		t.Errorf("of who holds the room there is left %+v", h)
	}
	tried := explain.Submission{Order: &explain.Order{Place: 2, Of: 2, Next: "theirs/secret"}, Victims: []explain.Victim{{Pod: "theirs/secret-0", Job: "theirs/secret"}}}
	hideSubmission(&tried, seesMine())
	if text, err := json.Marshal(tried); err != nil || strings.Contains(string(text), "secret") || tried.Order.Place != 2 {
		t.Errorf("what is tried becomes %s, %v", text, err)
	}
}
