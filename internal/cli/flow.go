package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flow is a kind about which nothing but its name and phase need be known: what else is in it, the API server checks.
type flow struct {
	verb, short string
	kind        schema.GroupVersionKind
	columns     []column[*unstructured.Unstructured]
}

var flowColumns = []column[*unstructured.Unstructured]{
	{title: "Name", cell: func(o *unstructured.Unstructured) string { return o.GetName() }},
	{title: "Namespace", cell: func(o *unstructured.Unstructured) string { return o.GetNamespace() }},
}

var flowVersion = schema.GroupVersion{Group: "flow.volcano.sh", Version: "v1alpha1"}

var (
	jobFlow = flow{
		verb: "jobflow", short: "Create, list, get, describe and delete flows of jobs", kind: flowVersion.WithKind("JobFlow"),
		columns: append(flowColumns[:2:2],
			column[*unstructured.Unstructured]{title: "Phase", cell: stateOf("phase")},
			column[*unstructured.Unstructured]{title: "Age", cell: ageOf},
			column[*unstructured.Unstructured]{title: "Completed", isWide: true, cell: completed},
			column[*unstructured.Unstructured]{title: "Reason", isWide: true, cell: stateOf("reason")},
			column[*unstructured.Unstructured]{title: "Message", isWide: true, cell: stateOf("message")},
		),
	}
	jobTemplate = flow{
		verb: "jobtemplate", short: "Create, list, get, describe and delete templates of jobs",
		kind:    flowVersion.WithKind("JobTemplate"),
		columns: append(flowColumns[:2:2], column[*unstructured.Unstructured]{title: "Age", isWide: true, cell: ageOf}),
	}
)

// stateOf returns a field of the state.
func stateOf(field string) func(*unstructured.Unstructured) string {
	return func(o *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(o.Object, "status", "state", field)
		return value
	}
}

func ageOf(o *unstructured.Unstructured) string { return age(o.GetCreationTimestamp()) }

// completed says how many Jobs of a flow are, of all.
func completed(o *unstructured.Unstructured) string {
	jobs, _, _ := unstructured.NestedSlice(o.Object, "status", "completedJobs")
	flows, _, _ := unstructured.NestedSlice(o.Object, "spec", "flows")
	return fmt.Sprintf("%d/%d", len(jobs), len(flows))
}

func newFlowCommand(s *session, f flow) *cobra.Command {
	return newGroup(s, f.verb, []string{f.verb + "s"}, f.short,
		newFlowCreateCommand(s, f), newFlowListCommand(s, f), newFlowGetCommand(s, f), newFlowDescribeCommand(s, f), newFlowDeleteCommand(s, f))
}

func newFlowCreateCommand(s *session, f flow) *cobra.Command {
	var filename string
	command := &cobra.Command{
		Use: "create --filename=FILE", Short: "Create each " + f.verb + " of a file", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if filename == "" {
				return fmt.Errorf("give the file that describes the %s by --filename, - for the standard input", f.verb)
			}
			objects, err := s.readObjects(filename, f.kind)
			if err != nil {
				return err
			}
			return s.createAll(command.Context(), objects, func(o *unstructured.Unstructured) string {
				return fmt.Sprintf("Created %s: %s/%s", f.kind.Kind, o.GetNamespace(), o.GetName())
			})
		},
	}
	command.Flags().StringVarP(&filename, "filename", "f", "", "file to create from (also --file)")
	s.addNamespaceFlag(command, vcctlShorthands)
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	return command
}

func newFlowListCommand(s *session, f flow) *cobra.Command {
	var labels string
	var isWatch bool
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + f.verb + "s", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := labelOption(labels)
			if err != nil {
				return err
			}
			return show(command.Context(), s, f.listing(options, isWatch))
		},
	}
	command.Flags().StringVarP(&labels, "selector", "l", "", "only those with these labels")
	s.addNamespaceFlag(command, vcctlShorthands)
	s.addAllNamespacesFlag(command)
	addWatchFlag(command, &isWatch)
	s.addTableFlags(command)
	return command
}

// listing has the namespace among its own columns, as that of vcctl.
func (f flow) listing(options []client.ListOption, isWatch bool) listing[*unstructured.Unstructured] {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(f.kind.GroupVersion().WithKind(f.kind.Kind + "List"))
	return listing[*unstructured.Unstructured]{
		kind: f.verb, list: list, columns: f.columns, options: options, isWatch: isWatch, isNamespaced: true, showsNamespace: true, space: flowSpace,
	}
}

func newFlowGetCommand(s *session, f flow) *cobra.Command {
	command := &cobra.Command{
		Use: "get NAME", Short: "Show a " + f.verb, Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeFlows(f),
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.names(f.verb, arguments)
			if err != nil {
				return err
			}
			object, err := f.read(command.Context(), s, names[0])
			if err != nil {
				return err
			}
			if !s.output.isTable() {
				return s.output.print(s, object)
			}
			l := f.listing(nil, false)
			rows := newRows(s, l.visible(s, object.GetNamespace()), l.space)
			if err := rows.add(s, object); err != nil {
				return err
			}
			return rows.flush()
		},
	}
	s.addNamespaceFlag(command, vcctlShorthands)
	s.addNameFlag(command, vcctlShorthands.name, "name of the "+f.verb)
	s.addTableFlags(command)
	return command
}

// read reads one object.
func (f flow) read(ctx context.Context, s *session, name string) (*unstructured.Unstructured, error) {
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	api, err := s.client()
	if err != nil {
		return nil, err
	}
	object := f.named(namespace, name)
	return object, s.explain(api.Get(ctx, client.ObjectKeyFromObject(object), object))
}

func (f flow) named(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(f.kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func newFlowDescribeCommand(s *session, f flow) *cobra.Command {
	command := &cobra.Command{
		Use: "describe [NAME]", Short: "Show all of a " + f.verb + ", or of all of them", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeFlows(f),
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.output.isTable() {
				return fmt.Errorf("describe shows objects in full, not as a table: give --output=yaml or json, or use %q", s.program+" "+f.verb+" get")
			}
			if s.name == "" && len(arguments) == 0 {
				return show(command.Context(), s, f.listing(nil, false))
			}
			names, err := s.names(f.verb, arguments)
			if err != nil {
				return err
			}
			object, err := f.read(command.Context(), s, names[0])
			if err != nil {
				return err
			}
			return s.output.print(s, object)
		},
	}
	s.addNamespaceFlag(command, vcctlShorthands)
	s.addNameFlag(command, vcctlShorthands.name, "name of the "+f.verb)
	s.addOutputFlag(command, "yaml")
	return command
}

func newFlowDeleteCommand(s *session, f flow) *cobra.Command {
	var filename string
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete " + f.verb + "s, by name or those of a file", ValidArgsFunction: s.completeFlows(f),
		RunE: func(command *cobra.Command, arguments []string) error {
			objects, err := f.meant(s, filename, arguments)
			if err != nil {
				return err
			}
			var problems []error
			for _, object := range objects {
				done := fmt.Sprintf("Deleted %s: %s/%s", f.kind.Kind, object.GetNamespace(), object.GetName())
				problems = append(problems, s.delete(command.Context(), object, done))
			}
			return errors.Join(problems...)
		},
	}
	command.Flags().StringVarP(&filename, "filename", "f", "", "file whose objects to delete (also --file)")
	s.addNamespaceFlag(command, vcctlShorthands)
	s.addNameFlag(command, vcctlShorthands.name, "name of the "+f.verb)
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	return command
}

// meant are the objects of a file, or those of the names.
func (f flow) meant(s *session, filename string, arguments []string) ([]*unstructured.Unstructured, error) {
	if filename != "" {
		if s.name != "" || len(arguments) > 0 {
			return nil, errors.New("-f takes the names from the file; leave out the name, or -f")
		}
		return s.readObjects(filename, f.kind)
	}
	names, err := s.names(f.verb, arguments)
	if err != nil {
		return nil, err
	}
	namespace, err := s.namespace()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		objects = append(objects, f.named(namespace, name))
	}
	return objects, nil
}
