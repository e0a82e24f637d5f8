package jobflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
)

// question is what a pod is asked. An empty path asks for no more than a connection.
type question struct {
	pod                     types.UID
	address                 string
	port                    int
	path                    string
	headerName, headerValue string
}

// answer is what is known of a question.
type answer struct {
	isYes bool

	// failure is how the last try ended, "" before the first.
	failure string
}

// entry is one entry of a probe, about one task of one target.
type entry struct {
	task     string
	replicas int32

	// phase is that which a taskStatus asks for, "" for an entry that asks the pods.
	phase string

	// question is to be asked of each pod.
	question question
}

// taskOf is the name of the task of a spec that stands at a position.
func taskOf(spec *batch.JobSpec, position int) string {
	if name := spec.Tasks[position].Name; name != "" {
		return name
	}
	return batch.DefaultTaskSpec + strconv.Itoa(position)
}

// entriesOf returns, for each target, the entries of the probe that are about it. A task that no target has is a
// mistake, as far as it can be known.
func (j *judge) entriesOf(position int, depends *flowapi.DependsOn) ([][]entry, []trouble) {
	entries := make([][]entry, len(depends.Targets))
	if depends.Probe == nil {
		return entries, nil
	}
	var problems []trouble
	add := func(path *field.Path, task string, e entry) {
		isKnown, isThere := true, false
		var names []string
		for n, target := range depends.Targets {
			spec := j.targetSpec(target)
			if spec == nil {
				isKnown = false
				continue
			}
			for i := range spec.Tasks {
				name := taskOf(spec, i)
				names = append(names, target+"/"+name)
				if task != "" && task != name {
					continue
				}
				isThere = true
				e.task, e.replicas = name, spec.Tasks[i].Replicas
				entries[n] = append(entries[n], e)
			}
		}
		if isKnown && !isThere {
			problem := field.NotFound(path.Child("taskName"), task)
			problem.Detail = "the targets have " + strings.Join(names, ", ")
			problems = append(problems, trouble{flowapi.InvalidSpecReason, problem.Error()})
		}
	}
	probe, path := depends.Probe, field.NewPath("spec", "flows").Index(position).Child("dependsOn", "probe")
	for i := range probe.HttpGetList {
		get := &probe.HttpGetList[i]
		asked := question{
			port: get.Port, path: "/" + strings.TrimPrefix(get.Path, "/"),
			headerName: get.HTTPHeader.Name, headerValue: get.HTTPHeader.Value,
		}
		add(path.Child("httpGetList").Index(i), get.TaskName, entry{question: asked})
	}
	for i := range probe.TcpSocketList {
		socket := &probe.TcpSocketList[i]
		add(path.Child("tcpSocketList").Index(i), socket.TaskName, entry{question: question{port: socket.Port}})
	}
	for i := range probe.TaskStatusList {
		status := &probe.TaskStatusList[i]
		add(path.Child("taskStatusList").Index(i), status.TaskName, entry{phase: status.Phase})
	}
	return entries, problems
}

// missing says what an entry lacks, "" if nothing.
func (j *judge) missing(job *batch.Job, e *entry) string {
	if e.phase != "" {
		return missingPhase(job.Status.TaskStatusCount, e)
	}
	var yes, no int
	var first string
	for _, pod := range j.podsOf(job, e.task) {
		asked := e.question
		asked.pod, asked.address = pod.UID, pod.Status.PodIP
		j.questions = append(j.questions, asked)
		reply := j.ask(asked)
		switch {
		case reply.isYes:
			yes++
		case first == "" && reply.failure != "":
			no, first = no+1, pod.Name+": "+reply.failure
		}
	}
	if yes >= int(e.replicas) {
		return ""
	}
	asked := fmt.Sprintf("accept connections to port %d", e.question.port)
	if e.question.path != "" {
		asked = fmt.Sprintf("answer GET :%d%s", e.question.port, e.question.path)
	}
	sentence := fmt.Sprintf("%d of %d pods of task %s %s", yes, e.replicas, e.task, asked)
	if no > 0 {
		sentence += " (" + first + ")"
	}
	return sentence
}

// podsOf returns those pods of a task that can be asked, in the order of their names.
func (j *judge) podsOf(job *batch.Job, task string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range j.pods(job) {
		if pod.Annotations[batch.TaskSpecKey] == task && pod.DeletionTimestamp == nil &&
			pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && metav1.IsControlledBy(pod, job) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(x, y *corev1.Pod) int { return strings.Compare(x.Name, y.Name) })
	return pods
}

// missingPhase says how many pods of a task are in the phase, "" if all are. One that has succeeded has been running.
func missingPhase(counts map[string]batch.TaskState, e *entry) string {
	if e.phase == string(corev1.PodPending) {
		return ""
	}
	pods := counts[e.task].Phase
	count := pods[corev1.PodPhase(e.phase)]
	if e.phase == string(corev1.PodRunning) {
		count += pods[corev1.PodSucceeded]
	}
	if count >= e.replicas {
		return ""
	}
	return fmt.Sprintf("%d of %d pods of task %s are %s", count, e.replicas, e.task, e.phase)
}
