package answers

import (
	"slices"
	"strings"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
)

// hidden stands for a name of a namespace that the client may not see.
const hidden = "(another namespace)"

// veil hides names of namespaces that the client may not see.
type veil struct {
	sees   func(namespace string) bool
	hidden []string // the names that were hidden, to be taken out of sentences as well
}

// name hides the name of a job or pod, NAMESPACE/NAME.
func (v *veil) name(name *string) {
	namespace, _, ok := strings.Cut(*name, "/")
	if !ok || v.sees(namespace) {
		return
	}
	v.hidden = append(v.hidden, *name)
	*name = hidden
}

// names leaves out of a list what is hidden. The total stands beside it.
func (v *veil) names(list []string) []string {
	var seen []string
	for _, name := range list {
		if v.name(&name); name != hidden {
			seen = append(seen, name)
		}
	}
	return seen
}

// text takes hidden names out of a sentence, the longest first: one may begin another.
func (v *veil) text(sentence *string) {
	slices.SortFunc(v.hidden, func(a, b string) int { return len(b) - len(a) })
	for _, name := range v.hidden {
		*sentence = strings.ReplaceAll(*sentence, name, hidden)
	}
}

func (v *veil) placements(list []explain.Placement) []explain.Placement {
	var seen []explain.Placement
	for _, p := range list {
		if v.name(&p.Pod); p.Pod != hidden {
			seen = append(seen, p)
		}
	}
	return seen
}

func (v *veil) verdict(w *explain.Verdict) {
	if w != nil {
		v.name(&w.Subject)
		v.text(&w.Message)
	}
}

func (v *veil) reasons(list []explain.NodeReason) []explain.NodeReason {
	var seen []explain.NodeReason
	for _, r := range list {
		if name, ok := strings.CutPrefix(r.Reason, "promised to "); ok {
			v.name(&name)
			r.Reason = "promised to " + name
		}
		seen = append(seen, r)
	}
	return seen
}

func (v *veil) cause(c *explain.Cause) {
	if c == nil {
		return
	}
	v.name(&c.Where)
	c.Promised = v.reasons(c.Promised)
	v.text(&c.Message)
}

func (v *veil) story(entries []journal.Entry) {
	for i := range entries {
		e := &entries[i]
		v.name(&e.Job)
		v.name(&e.Pod)
		v.name(&e.For)
		v.name(&e.Subject)
		v.text(&e.Message)
	}
}

func hideJob(answer *api.Job, sees func(string) bool) {
	v := veil{sees: sees}
	j := &answer.Job
	for i := range answer.Ahead {
		v.name(&answer.Ahead[i].Job)
	}
	if j.Order != nil {
		v.name(&j.Order.Next)
	}
	for i := range j.Candidates {
		j.Candidates[i].Pods = v.names(j.Candidates[i].Pods)
	}
	if p := j.Plan; p != nil {
		p.Leaving, p.Promised = v.names(p.Leaving), v.placements(p.Promised)
	}
	if q := answer.Queued; q != nil {
		for _, list := range [][]queued.Neighbor{q.Ahead, q.Candidates, q.Spared, q.WaitsFor} {
			for i := range list {
				v.name(&list[i].Workload)
			}
		}
	}
	v.verdict(j.Verdict)
	v.cause(&answer.Cause)
	v.story(answer.Story)
}

func hidePod(answer *api.Pod, sees func(string) bool) {
	v := veil{sees: sees}
	v.name(&answer.LeavesFor)
	v.verdict(answer.Verdict)
	v.cause(answer.Cause)
	v.story(answer.Story)
}

func hideQueue(answer *api.Queue, sees func(string) bool) {
	v := veil{sees: sees}
	answer.Jobs.Waiting = v.names(answer.Jobs.Waiting)
	v.story(answer.Story)
}

func hideNode(answer *explain.Node, sees func(string) bool) {
	v := veil{sees: sees}
	var seen []explain.NodePod
	for _, p := range answer.Pods {
		if v.name(&p.Pod); p.Pod != hidden {
			seen = append(seen, p)
		}
	}
	answer.Pods = seen
}

func hideSubmission(answer *explain.Submission, sees func(string) bool) {
	v := veil{sees: sees}
	for i := range answer.Victims {
		victim := &answer.Victims[i]
		v.name(&victim.Pod)
		v.name(&victim.Job)
		v.text(&victim.Message)
	}
	v.verdict(answer.Verdict)
}

func hideDiagnosis(answer *diagnosis.Diagnosis, sees func(string) bool) {
	v := veil{sees: sees}
	for i := range answer.Queues {
		for _, w := range []*survey.Waiting{answer.Queues[i].Oldest, answer.Queues[i].Head} {
			if w != nil {
				v.name(&w.Job)
				v.text(&w.Message)
			}
		}
	}
	for i := range answer.Room.Waiting {
		v.name(&answer.Room.Waiting[i].Like)
	}
	v.story(answer.Evictions)
}
