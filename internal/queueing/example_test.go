package queueing_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// trainings is a kind of jobs with a leader and workers.
var trainings = &queueing.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "training.example.com", Version: "v1", Kind: "Training"}, Controller: "trainings",
	New: func() queueing.Job { return &training{} }, NewList: func() client.ObjectList { return &corev1.PodTemplateList{} },
}

// training is such a job. A real one wraps the object of its API.
type training struct {
	corev1.PodTemplate // stands for the object
	suspended, over    bool
	workers            int32
	parts              [2]corev1.PodTemplateSpec // leader, worker
	running            int32
}

var _ interface {
	queueing.Job
	queueing.Marked
} = &training{}

func (t *training) Object() client.Object { return &t.PodTemplate }

func (t *training) Kind() *queueing.Kind { return trainings }

func (t *training) IsSuspended() bool { return t.suspended }

func (t *training) IsActive() bool { return t.running > 0 }

func (t *training) Suspend() { t.suspended = true }

func (t *training) PodSets() []v1beta2.PodSet {
	return queueing.RequestTopology([]v1beta2.PodSet{{Name: "leader", Count: 1, Template: *t.parts[0].DeepCopy()}, {Name: "worker", Count: t.workers, Template: *t.parts[1].DeepCopy()}})
}

func (t *training) Run(infos []queueing.PodSetInfo) error {
	for i := range infos {
		if err := infos[i].Apply(&t.parts[i]); err != nil {
			return err
		}
	}
	t.suspended = false
	return nil
}

func (t *training) Restore(sets []v1beta2.PodSet) {
	for i := range t.parts {
		queueing.RemoveMarks(&t.parts[i])
		if len(sets) == len(t.parts) {
			queueing.RestoreTemplate(&t.parts[i], &sets[i].Template)
		}
	}
}

func (t *training) Finished() (message string, succeeded, is bool) { return "", t.over, t.over }

func (t *training) PodsReady(count int32) bool { return t.running >= count }

func (t *training) Demand() []queueing.Demand {
	return []queueing.Demand{{Name: "leader", Count: 1, Has: min(t.running, 1)}, {Name: "worker", Count: t.workers, Has: max(t.running-1, 0)}}
}

func (t *training) KeepsCounts() bool { return true }

func (t *training) IsMarked() bool { return queueing.HasMarks(&t.parts[0]) }

func (t *training) QueuedAs(sets []v1beta2.PodSet) []v1beta2.PodSet {
	before := *t
	for i := range before.parts {
		before.parts[i] = *t.parts[i].DeepCopy()
	}
	before.Restore(sets)
	return before.PodSets()
}

// A kind of jobs with two podsets is queued, started on the nodes of its flavors, and stopped again.
func ExampleJob() {
	t := &training{PodTemplate: corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "bert"}}, suspended: true, workers: 3}
	var job queueing.Job = t
	queued := job.PodSets()
	fmt.Println("Workload", job.Kind().WorkloadOf(job.Object()))
	for _, set := range queued {
		fmt.Println("podset", set.Name, "with", set.Count)
	}
	marks := map[string]string{v1beta2.WorkloadAnnotation: "training-bert"}
	err := job.Run([]queueing.PodSetInfo{
		{Name: "leader", Count: 1, Annotations: marks},
		{Name: "worker", Count: 3, Annotations: marks, NodeSelector: map[string]string{"gpu": "a100"}},
	})
	fmt.Println("runs", err == nil, "started", queueing.IsStarted(job), "workers on", t.parts[1].Spec.NodeSelector)
	fmt.Println("as it was queued", queueing.ArePodSetsEqual(t.QueuedAs(queued), queued))
	job.Suspend()
	job.Restore(queued)
	fmt.Println("suspended", job.IsSuspended(), "started", queueing.IsStarted(job), "not served", queueing.NotServed(job) != "")
	// Output:
	// Workload training-bert-2cf0c
	// podset leader with 1
	// podset worker with 3
	// runs true started true workers on map[gpu:a100]
	// as it was queued true
	// suspended true started false not served false
}
