package session

import (
	"context"
	"strings"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// JobKind is the kind of the Jobs of Volcano.
var JobKind = batch.SchemeGroupVersion.WithKind("Job")

// QueueKind is the kind of the Queues of Volcano.
var QueueKind = scheduling.SchemeGroupVersion.WithKind("Queue")

// CompleteJobs completes names of Jobs.
func (s *Session) CompleteJobs(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return s.complete(command.Context(), JobKind, true, begun)
}

// CompleteQueues completes names of Queues.
func (s *Session) CompleteQueues(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return s.complete(command.Context(), scheduling.SchemeGroupVersion.WithKind("Queue"), false, begun)
}

// Completion completes the names of a kind.
func (s *Session) Completion(kind schema.GroupVersionKind, isNamespaced bool) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return s.complete(command.Context(), kind, isNamespaced, begun)
	}
}

// complete returns the names of a kind that begin so. Whatever goes wrong completes nothing: a shell cannot show an
// error.
func (s *Session) complete(ctx context.Context, kind schema.GroupVersionKind, isNamespaced bool, begun string) ([]string, cobra.ShellCompDirective) {
	const nothingElse = cobra.ShellCompDirectiveNoFileComp
	var options []client.ListOption
	if isNamespaced {
		namespace, err := s.Namespace()
		if err != nil {
			return nil, nothingElse
		}
		options = append(options, client.InNamespace(namespace))
	}
	api, err := s.Client()
	if err != nil {
		return nil, nothingElse
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := api.List(ctx, list, options...); err != nil {
		return nil, nothingElse
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].GetName(); strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	return names, nothingElse
}
