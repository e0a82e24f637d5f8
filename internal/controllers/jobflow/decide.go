package jobflow

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	"hekla.sh/hekla/pkg/apis/flow/validation"
)

// maxSentences is how many flows the message of a state speaks of; of the others it gives the number.
const maxSentences = 5

// view is all that a decision is made by. Its objects are the cache's own and not to be changed.
type view struct {
	flow *flowapi.JobFlow

	// jobs are those that belong to the JobFlow, by name.
	jobs map[string]*batch.Job

	// templates are those that flows name and that there are, by name.
	templates map[string]*flowapi.JobTemplate

	// specOf is the function of that name, which may remember.
	specOf func(*flowapi.JobTemplate, *flowapi.Flow) (*batch.JobSpec, error)

	// pods returns the pods of a Job.
	pods func(*batch.Job) []*corev1.Pod

	// ask returns whether a pod has answered, or why it has not, as far as is known by now.
	ask func(question) answer
}

// trouble is why a flow, or all of them, cannot go on until a user corrects something.
type trouble struct{ reason, message string }

// decision is what follows from a view.
type decision struct {
	// create are the Jobs to make now.
	create []*batch.Job

	// troubles are what must be corrected.
	troubles []trouble

	// waiting says, a sentence for each flow, what it waits for.
	waiting []string

	// unreachable says what a flow waits for in vain.
	unreachable string

	// questions are those whose answers matter: flows wait for them.
	questions []question
}

// decide says which Jobs to make, and what the other flows wait for.
func (v *view) decide() decision {
	var d decision
	if isFinal(v.flow.Status.State.Phase) {
		return d
	}
	if problems := validation.ValidateJobFlow(v.flow); len(problems) > 0 {
		for _, problem := range problems {
			d.troubles = append(d.troubles, trouble{flowapi.InvalidSpecReason, problem.Error()})
		}
		return d
	}
	j := judge{view: v, decision: &d, specs: map[string]*batch.JobSpec{}}
	for i := range v.flow.Spec.Flows {
		flow := &v.flow.Spec.Flows[i]
		if v.jobOf(flow.Name) != nil || v.isCompleted(flow.Name) {
			continue
		}
		spec, problem := j.specFor(flow)
		if problem != nil {
			d.troubles = append(d.troubles, *problem)
		}
		if j.holds(i, flow) && spec != nil {
			d.create = append(d.create, buildJob(v.flow, flow.Name, spec))
		}
	}
	if failed := v.failed(); failed != "" || d.unreachable != "" {
		// What was begun goes on; nothing is added to it.
		d.create, d.questions = nil, nil
	}
	return d
}

func isFinal(phase flowapi.Phase) bool { return phase == flowapi.Succeed || phase == flowapi.Failed }

func (v *view) jobName(flow string) string { return v.flow.JobName(flow) }

// jobOf is the Job of a flow, or nil.
func (v *view) jobOf(flow string) *batch.Job { return v.jobs[v.jobName(flow)] }

// isCompleted reports whether the Job of a flow is Completed, or was when it went.
func (v *view) isCompleted(flow string) bool {
	if job := v.jobOf(flow); job != nil {
		return job.Status.State.Phase == batch.Completed
	}
	return isRecorded(v.flow, v.jobName(flow))
}

// recordOf is what the status of a JobFlow says of a Job, or nil.
func recordOf(jobFlow *flowapi.JobFlow, name string) *flowapi.JobStatus {
	for i := range jobFlow.Status.JobStatusList {
		if jobFlow.Status.JobStatusList[i].Name == name {
			return &jobFlow.Status.JobStatusList[i]
		}
	}
	return nil
}

// IsRecorded reports whether a JobFlow knows in which phase a Job of its is. One that has ended and goes before that
// would be made again.
func IsRecorded(jobFlow *flowapi.JobFlow, job *batch.Job) bool {
	recorded := recordOf(jobFlow, job.Name)
	return recorded != nil && recorded.State == job.Status.State.Phase
}

// isRecorded reports whether the status of a JobFlow says that a Job was Completed.
func isRecorded(jobFlow *flowapi.JobFlow, name string) bool {
	recorded := recordOf(jobFlow, name)
	return recorded != nil && recorded.State == batch.Completed
}

// failed says which Job of the flows cannot be Completed any more, or "".
func (v *view) failed() string {
	for i := range v.flow.Spec.Flows {
		job := v.jobOf(v.flow.Spec.Flows[i].Name)
		if job == nil {
			continue
		}
		if phase := job.Status.State.Phase; phase == batch.Failed || phase == batch.Terminated {
			sentence := fmt.Sprintf("Job %s of flow %s is %s", job.Name, v.flow.Spec.Flows[i].Name, phase)
			if job.Status.State.Message != "" {
				sentence += ": " + job.Status.State.Message
			}
			return sentence
		}
	}
	return ""
}

// judge finds out, flow by flow, whether what it depends on holds.
type judge struct {
	*view
	*decision

	// specs are those of Jobs to be made, as they would be now, by the name of the flow; nil is one that cannot be
	// made.
	specs map[string]*batch.JobSpec
}

// specFor returns the spec that the Job of a flow would have, or why it cannot be made.
func (j *judge) specFor(flow *flowapi.Flow) (*batch.JobSpec, *trouble) {
	template := j.templates[flow.Name]
	if template == nil {
		j.specs[flow.Name] = nil
		return nil, &trouble{flowapi.JobTemplateNotFoundReason,
			fmt.Sprintf("flow %s: there is no JobTemplate %s in namespace %s", flow.Name, flow.Name, j.flow.Namespace)}
	}
	spec, err := j.specOf(template, flow)
	if err != nil {
		j.specs[flow.Name] = nil
		return nil, &trouble{flowapi.PatchErrorReason, fmt.Sprintf("flow %s: %v", flow.Name, err)}
	}
	j.specs[flow.Name] = spec
	return spec, nil
}

// targetSpec returns the spec of the Job of a target, as it is or as it will be, or nil if that cannot be known.
func (j *judge) targetSpec(target string) *batch.JobSpec {
	if job := j.jobOf(target); job != nil {
		return &job.Spec
	}
	if spec, isKnown := j.specs[target]; isKnown {
		return spec
	}
	for i := range j.flow.Spec.Flows {
		if flow := &j.flow.Spec.Flows[i]; flow.Name == target {
			spec, _ := j.specFor(flow)
			return spec
		}
	}
	return nil
}

// holds reports whether what a flow depends on holds. If not, it leaves in the decision what it waits for.
func (j *judge) holds(position int, flow *flowapi.Flow) bool {
	depends := flow.DependsOn
	if depends == nil {
		return true
	}
	entries, problems := j.entriesOf(position, depends)
	if len(problems) > 0 {
		j.troubles = append(j.troubles, problems...)
		return false
	}
	var waits []string
	for n, target := range depends.Targets {
		if reason := j.waitsFor(target, entries[n]); reason != "" {
			waits = append(waits, reason)
		}
	}
	if len(waits) == 0 {
		return true
	}
	j.waiting = append(j.waiting, fmt.Sprintf("flow %s waits for %s", flow.Name, strings.Join(waits, " and ")))
	return false
}

// waitsFor says what is missing of a target, "" if nothing is.
func (j *judge) waitsFor(target string, entries []entry) string {
	if j.isCompleted(target) {
		return j.neverFailed(target, entries)
	}
	job := j.jobOf(target)
	if job == nil {
		return target + ", whose Job is not there yet"
	}
	if len(entries) == 0 {
		phase := job.Status.State.Phase
		if phase == "" {
			phase = batch.Pending
		}
		return fmt.Sprintf("%s, which is %s", target, phase)
	}
	for i := range entries {
		if missing := j.missing(job, &entries[i]); missing != "" {
			return fmt.Sprintf("%s: %s", target, missing)
		}
	}
	return ""
}

// neverFailed says which task of a Completed target should have failed and has not: it never will.
func (j *judge) neverFailed(target string, entries []entry) string {
	counts := j.flow.Status.Conditions[j.jobName(target)].TaskStatusCount
	if job := j.jobOf(target); job != nil {
		counts = job.Status.TaskStatusCount
	}
	for i := range entries {
		if entries[i].phase != string(corev1.PodFailed) {
			continue
		}
		if missing := missingPhase(counts, &entries[i]); missing != "" {
			j.unreachable = fmt.Sprintf("Job %s is Completed, and %s", j.jobName(target), missing)
			return target + " in vain: " + j.unreachable
		}
	}
	return ""
}

// sentences puts a few sentences into one, and the number of the others.
func sentences(all []string) string {
	if more := len(all) - maxSentences; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(all[:maxSentences], "; "), more)
	}
	return strings.Join(all, "; ")
}
