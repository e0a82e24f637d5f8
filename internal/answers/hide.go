package answers

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
)

// hidden stands for a name of a namespace that the client may not see.
const hidden = "(another namespace)"

// redactor hides names of namespaces that the client may not see.
type redactor struct {
	sees  func(namespace string) bool
	known map[string]bool // the namespaces by which names are found in sentences
	found map[string]bool // those of names that were hidden, which count as known
}

// name hides the name of a job or pod, NAMESPACE/NAME. It reports whether it did.
func (v *redactor) name(name *string) (isHidden bool) {
	namespace, _, ok := strings.Cut(*name, "/")
	if !ok || v.sees(namespace) {
		return false
	}
	if v.found == nil {
		v.found = map[string]bool{}
	}
	v.found[namespace] = true
	*name = hidden
	return true
}

// names leaves out of a list what is hidden. The total is in the answer, too.
func (v *redactor) names(list []string) []string {
	var seen []string
	for _, name := range list {
		if !v.name(&name) {
			seen = append(seen, name)
		}
	}
	return seen
}

// mention is what may be NAMESPACE/NAME in a sentence, after what is before it. A name with a dot before the slash is
// none, such as that of a resource.
var mention = regexp.MustCompile(`(^|[^A-Za-z0-9._/-])([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)/[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?`)

// text takes hidden names out of a sentence. It has them in the form that users know, which may not be that of a field:
// a job has another name than its PodGroup.
func (v *redactor) text(sentence *string) {
	if !strings.Contains(*sentence, "/") {
		return
	}
	*sentence = mention.ReplaceAllStringFunc(*sentence, func(all string) string {
		parts := mention.FindStringSubmatch(all)
		if before, namespace := parts[1], parts[2]; (v.known[namespace] || v.found[namespace]) && !v.sees(namespace) {
			return before + hidden
		}
		return all
	})
}

// texts takes hidden names out of all strings of an answer.
func (v *redactor) texts(answer any) { v.walk(reflect.ValueOf(answer)) }

func (v *redactor) walk(at reflect.Value) {
	switch at.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !at.IsNil() {
			v.walk(at.Elem())
		}
	case reflect.Struct:
		for i := range at.NumField() {
			if at.Type().Field(i).IsExported() {
				v.walk(at.Field(i))
			}
		}
	case reflect.Slice:
		for i := range at.Len() {
			v.walk(at.Index(i))
		}
	case reflect.String:
		sentence := at.String()
		if v.text(&sentence); sentence != at.String() {
			at.SetString(sentence)
		}
	}
}

func (v *redactor) placements(list []explain.Placement) []explain.Placement {
	var seen []explain.Placement
	for _, p := range list {
		if !v.name(&p.Pod) {
			seen = append(seen, p)
		}
	}
	return seen
}

// promised hides the jobs to which room is promised.
func (v *redactor) promised(list []explain.NodeReason) []explain.NodeReason {
	list = slices.Clone(list)
	for i := range list {
		r := &list[i]
		v.name(&r.Job)
		r.Reason = explain.PromisedTo(r.Job)
	}
	return list
}

func (v *redactor) story(entries []journal.Entry) {
	for i := range entries {
		e := &entries[i]
		v.name(&e.Job)
		v.name(&e.Pod)
		v.name(&e.For)
		v.name(&e.Subject)
	}
}

func hideVerdict(answer *explain.Verdict, v *redactor) {
	if answer != nil {
		v.name(&answer.Subject)
	}
}

func hideCause(answer *explain.Cause, v *redactor) {
	if answer != nil {
		v.name(&answer.Where)
		answer.Promised = v.promised(answer.Promised)
	}
}

func hideJob(answer *api.Job, v *redactor) {
	defer v.texts(answer)
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
	if answer.Holders != nil {
		hideHolders(answer.Holders, v)
	}
	hideVerdict(j.Verdict, v)
	hideCause(&answer.Cause, v)
	if e := answer.ETA; e != nil {
		v.text(&e.Message)
		v.text(&e.UnknownBecause)
	}
	v.story(answer.Story)
}

func hidePod(answer *api.Pod, v *redactor) {
	defer v.texts(answer)
	v.name(&answer.LeavesFor)
	hideVerdict(answer.Verdict, v)
	hideCause(answer.Cause, v)
	v.story(answer.Story)
}

func hideQueue(answer *api.Queue, v *redactor) {
	defer v.texts(answer)
	answer.Jobs.Waiting = v.names(answer.Jobs.Waiting)
	v.story(answer.Story)
}

func hideNode(answer *explain.Node, v *redactor) {
	defer v.texts(answer)
	var seen []explain.NodePod
	for _, p := range answer.Pods {
		if !v.name(&p.Pod) {
			seen = append(seen, p)
		}
	}
	answer.Pods = seen
}

func hideSubmission(answer *explain.Submission, v *redactor) {
	defer v.texts(answer)
	for i := range answer.Victims {
		victim := &answer.Victims[i]
		v.name(&victim.Pod)
		v.name(&victim.Job)
	}
	if answer.Order != nil {
		v.name(&answer.Order.Next)
	}
	hideVerdict(answer.Verdict, v)
}

// hideHolders leaves out jobs and namespaces. What queues hold is the sum of all.
func hideHolders(answer *holders.Holders, v *redactor) {
	answer.Jobs = slices.DeleteFunc(answer.Jobs, func(j holders.Job) bool { return v.name(&j.Job) })
	answer.Namespaces = slices.DeleteFunc(answer.Namespaces, func(g holders.Group) bool { return !v.sees(g.Name) })
}

func hideDiagnosis(answer *diagnosis.Diagnosis, v *redactor) {
	defer v.texts(answer)
	for i := range answer.Queues {
		for _, w := range []*survey.Waiting{answer.Queues[i].Oldest, answer.Queues[i].Head} {
			if w != nil {
				v.name(&w.Job)
			}
		}
	}
	for i := range answer.ClusterQueues {
		if o := answer.ClusterQueues[i].Oldest; o != nil {
			v.name(&o.Workload)
		}
	}
	for i := range answer.Holders {
		hideHolders(&answer.Holders[i], v)
	}
	for i := range answer.Room.Waiting {
		v.name(&answer.Room.Waiting[i].Like)
	}
	v.story(answer.Evictions)
}
