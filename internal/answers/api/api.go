// Package api has the forms in which questions and answers go over the wire: the group answers.hekla.sh of the API.
//
// Main types: a [Reply] wraps every answer, so that it reads as an object of the API. [Job], [Pod] and [Queue] are
// answers with their story from the journal. Answers of the packages explain and diagnosis are used as they are.
//
// Invariant: fields are only added within a version.
//
// It must not know servers or clients.
package api

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/internal/explain/survey"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// GroupVersion is the group of all questions.
var GroupVersion = schema.GroupVersion{Group: "answers.hekla.sh", Version: "v1alpha1"}

// Resource is a kind of question.
type Resource struct {
	Name, Singular, Kind, Verb string
	Namespaced                 bool
	Group                      string // "" is that of [GroupVersion]
}

// The resources.
var (
	Jobs        = Resource{Name: "jobs", Singular: "job", Kind: "JobAnswer", Verb: "get", Namespaced: true}
	Pods        = Resource{Name: "pods", Singular: "pod", Kind: "PodAnswer", Verb: "get", Namespaced: true}
	Queues      = Resource{Name: "queues", Singular: "queue", Kind: "QueueAnswer", Verb: "get", Namespaced: true}
	Workloads   = Resource{Name: "workloads", Singular: "workload", Kind: "JobAnswer", Verb: "get", Namespaced: true}
	Submissions = Resource{Name: "submissions", Singular: "submission", Kind: "SubmissionAnswer", Verb: "create", Namespaced: true}
	Nodes       = Resource{Name: "nodes", Singular: "node", Kind: "NodeAnswer", Verb: "get"}
	Diagnoses   = Resource{Name: "diagnoses", Singular: "diagnosis", Kind: "Diagnosis", Verb: "get"}
	Overviews   = Resource{Name: "overviews", Singular: "overview", Kind: "Overview", Verb: "get"}
	Snapshots   = Resource{Name: "snapshots", Singular: "snapshot", Kind: "Snapshot", Verb: "get"}
)

// Resources are all of them.
var Resources = []Resource{Jobs, Pods, Queues, Workloads, Submissions, Nodes, Diagnoses, Snapshots, Overviews}

// Path is where an object of the resource is asked about. The namespace is ignored if the resource has none.
func (r Resource) Path(namespace, name string) string {
	path := "/apis/" + GroupVersion.String() + "/"
	if r.Namespaced {
		path += "namespaces/" + namespace + "/"
	}
	path += r.Name
	if name != "" {
		path += "/" + name
	}
	return path
}

// Reply is an answer as an object of the API.
type Reply[T any] struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        Metadata `json:"metadata"`
	Answer          T        `json:"answer"`
}

// Metadata names what was asked about.
type Metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// Job is the answer to why a job waits, or what became of it.
type Job struct {
	explain.Why `json:",inline"`
	// ETA is when it will start, absent if it does not wait.
	ETA *forecast.ETA `json:"eta,omitempty"`
	// Story are the latest decisions about it, the oldest first.
	Story []journal.Entry `json:"story,omitempty"`
}

// CauseScheduler is the type of the causes of the Status about a pod or job that the scheduler does not know. Their
// messages are the names by which pods ask for this scheduler.
const CauseScheduler metav1.CauseType = "SchedulerName"

// Pod is the answer about a pod.
type Pod struct {
	explain.Pod `json:",inline"`
	// Cause is why its job waits, absent if the pod has a node.
	Cause *explain.Cause  `json:"cause,omitempty"`
	Story []journal.Entry `json:"story,omitempty"`
}

// Queue is the answer about a queue.
type Queue struct {
	explain.Queue `json:",inline"`
	Story         []journal.Entry `json:"story,omitempty"`
}

// Submission is a job that is not submitted: its PodGroup and pods as the API server would return them.
type Submission struct {
	PodGroup *schedulingv1beta1.PodGroup `json:"podGroup"`
	Pods     []*corev1.Pod               `json:"pods"`
}

// GangParameter is the query parameter of a diagnosis that asks how many gangs could start now. It may be repeated; see
// [ParseGang].
const GangParameter = "gang"

// ParseGang reads a gang such as "8xnvidia.com/gpu=8,cpu=4": how many pods, and what each requests.
func ParseGang(text string) (survey.Gang, error) {
	wrong := func(why string) (survey.Gang, error) {
		return survey.Gang{}, fmt.Errorf("gang %q: %s; it must be like 8xcpu=4,memory=8Gi", text, why)
	}
	number, requests, ok := strings.Cut(text, "x")
	pods, err := strconv.Atoi(number)
	if !ok || err != nil || pods < 1 {
		return wrong("the number of pods before the x is missing")
	}
	g := survey.Gang{Pods: pods, Request: corev1.ResourceList{}}
	for _, pair := range strings.Split(requests, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return wrong(strconv.Quote(pair) + " is no request")
		}
		quantity, err := bounds.ParseQuantity(value)
		if err != nil || quantity.Sign() < 0 {
			return wrong(strconv.Quote(value) + " is no quantity")
		}
		if _, isTwice := g.Request[corev1.ResourceName(name)]; isTwice {
			return wrong(name + " is requested twice")
		}
		g.Request[corev1.ResourceName(name)] = quantity
	}
	return g, nil
}
