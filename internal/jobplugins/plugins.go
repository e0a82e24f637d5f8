package jobplugins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Plugin equips the pods of one Job.
type Plugin interface {
	// EditPod changes a pod that is about to be created: the index-th of a task. The pod has its labels, annotations
	// and name already.
	EditPod(pod *corev1.Pod, task *batch.TaskSpec, index int)
}

// Provider is a Plugin whose pods need further objects. They must exist before the first pod is made, belong to the
// Job, and go when it has ended.
type Provider interface {
	Plugin

	// Resources returns these objects, for the Job as it now is.
	Resources() []Resource
}

// Resource is an object that the pods of a Job need.
type Resource struct {
	// Object has the kind, namespace and name, and nothing else.
	Object client.Object

	// Update brings such an object, empty or as it is stored, to what the Job needs. What it says nothing of stays.
	Update func(client.Object) error

	// UsersOwnWillDo says that an object of this name that has no controller is taken as it is: users bring their own.
	UsersOwnWillDo bool
}

// resource is a Resource whose Update knows the type of its object.
func resource[T client.Object](object T, update func(T) error) Resource {
	return Resource{Object: object, Update: func(object client.Object) error { return update(object.(T)) }}
}

// constructor makes a plugin for a Job from its arguments. The error says what is wrong with the arguments, or with
// the Job for this plugin.
type constructor func(job jobView, arguments []string) (Plugin, error)

// catalogue holds the plugins there are, in the order in which they act.
func catalogue() []named[constructor] {
	return []named[constructor]{
		{"env", newEnv},
		{"svc", newService},
		{"ssh", newSSH},
		{"tensorflow", newTensorflow},
		{"pytorch", newPytorch},
		{"mpi", newMPI},
		{"ray", newRay},
		{"hcclrank", newHCCLRank},
	}
}

// oneLine is the message of an error that may be several joined.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

type named[T any] struct {
	name  string
	value T
}

// Set is the plugins of one Job. The zero value is none.
type Set struct {
	plugins []named[Plugin]
	ignored []string
}

// New makes the plugins that a defaulted Job names. podName tells how the pods of a task are called. The Set holds what
// could be made; a Job with an error must not be run with it.
func New(job *batch.Job, podName func(job, task string, index int) string) (Set, field.ErrorList) {
	path := field.NewPath("spec", "plugins")
	var set Set
	var problems field.ErrorList
	var known []string
	for _, entry := range catalogue() {
		known = append(known, entry.name)
		arguments, wanted := job.Spec.Plugins[entry.name]
		if !wanted {
			continue
		}
		var ignored []string
		plugin, err := entry.value(jobView{Job: job, podName: podName, ignored: &ignored}, arguments)
		for _, argument := range ignored {
			set.ignored = append(set.ignored, fmt.Sprintf("%s: --%s", path.Key(entry.name), argument))
		}
		if err != nil {
			// The message has the value that is wrong. All of them would put private keys into events.
			problems = append(problems, field.Invalid(path.Key(entry.name), field.OmitValueType{}, oneLine(err)))
			continue
		}
		set.plugins = append(set.plugins, named[Plugin]{entry.name, plugin})
	}
	for _, name := range slices.Sorted(maps.Keys(job.Spec.Plugins)) {
		if !slices.Contains(known, name) {
			problems = append(problems, field.Invalid(path, name, fmt.Sprintf("unable to find job plugin: %s: there are %s", name, strings.Join(known, ", "))))
		}
	}
	return set, problems
}

// Names returns the names of the plugins in the order in which they act.
func (s Set) Names() []string {
	names := make([]string, len(s.plugins))
	for i, plugin := range s.plugins {
		names[i] = plugin.name
	}
	return names
}

// Ignored returns the arguments that the plugins do not know, with their paths. Manifests that were written for other
// versions have them.
func (s Set) Ignored() []string { return s.ignored }

// EditPod lets every plugin edit the pod.
func (s Set) EditPod(pod *corev1.Pod, task *batch.TaskSpec, index int) {
	for _, plugin := range s.plugins {
		plugin.value.EditPod(pod, task, index)
	}
}

// Resources returns the objects that the plugins need.
func (s Set) Resources() []Resource {
	var resources []Resource
	for _, plugin := range s.plugins {
		if provider, is := plugin.value.(Provider); is {
			resources = append(resources, provider.Resources()...)
		}
	}
	return resources
}
