package jobflow

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

var (
	flowsOf   = fixture.Flows
	jobFlowOf = fixture.JobFlow
	probed    = fixture.Probed
)

func templateOf(name string, tasks ...batch.TaskSpec) *flowapi.JobTemplate {
	return &flowapi.JobTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Spec: batch.JobSpec{Tasks: tasks}}
}

// surroundings are what there is besides a JobFlow, for views of it.
type surroundings struct {
	view
	answers map[question]answer
	ownPods map[string][]*corev1.Pod
}

// newSurroundings have a template of tasks main (1 pod) and side (2 pods) for each flow, and no Jobs.
func newSurroundings(jobFlow *flowapi.JobFlow) *surroundings {
	w := &surroundings{answers: map[question]answer{}, ownPods: map[string][]*corev1.Pod{}}
	w.view = view{
		flow: jobFlow, jobs: map[string]*batch.Job{}, templates: map[string]*flowapi.JobTemplate{},
		specOf: specOf,
		pods:   func(job *batch.Job) []*corev1.Pod { return w.ownPods[job.Name] },
		ask:    func(asked question) answer { return w.answers[asked] },
	}
	for i := range jobFlow.Spec.Flows {
		name := jobFlow.Spec.Flows[i].Name
		w.templates[name] = templateOf(name, batch.TaskSpec{Name: "main", Replicas: 1}, batch.TaskSpec{Name: "side", Replicas: 2})
	}
	return w
}

// add adds the Job of a flow in a phase.
func (w *surroundings) add(flow string, phase batch.JobPhase) *batch.Job {
	job := buildJob(w.flow, flow, &w.templates[flow].Spec)
	job.UID = types.UID(job.Name)
	job.Status.State.Phase = phase
	w.jobs[job.Name] = job
	return job
}

// addPod adds a pod that runs to a Job, and returns what it is asked on a port.
func (w *surroundings) addPod(job *batch.Job, task string, index int) *corev1.Pod {
	name := fmt.Sprintf("%s-%s-%d", job.Name, task, index)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, UID: types.UID(name), Annotations: map[string]string{batch.TaskSpecKey: task},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job"))},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", index)},
	}
	w.ownPods[job.Name] = append(w.ownPods[job.Name], pod)
	return pod
}

// count lets a Job tell of the pods of a task.
func count(job *batch.Job, task string, phase corev1.PodPhase, pods int32) {
	if job.Status.TaskStatusCount == nil {
		job.Status.TaskStatusCount = map[string]batch.TaskState{}
	}
	job.Status.TaskStatusCount[task] = batch.TaskState{Phase: map[corev1.PodPhase]int32{phase: pods}}
}

// names are those of the Jobs to make.
func (d *decision) names() string {
	var names []string
	for _, job := range d.create {
		names = append(names, job.Name)
	}
	return strings.Join(names, " ")
}
