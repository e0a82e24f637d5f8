package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
)

// flow is a kind about which nothing but its name and phase need be known: what else is in it, the API server checks.
type flow struct {
	verb, short string
	kind        schema.GroupVersionKind
	columns     []session.Column[*unstructured.Unstructured]
}

var flowColumns = []session.Column[*unstructured.Unstructured]{
	{Title: "Name", Cell: func(o *unstructured.Unstructured) string { return o.GetName() }},
	{Title: "Namespace", Cell: func(o *unstructured.Unstructured) string { return o.GetNamespace() }},
}

var flowVersion = schema.GroupVersion{Group: "flow.volcano.sh", Version: "v1alpha1"}

var (
	jobFlow = flow{
		verb: "jobflow", short: "Create, list, get, describe and delete flows of jobs", kind: flowVersion.WithKind("JobFlow"),
		columns: append(flowColumns[:2:2],
			session.Column[*unstructured.Unstructured]{Title: "Phase", Cell: stateOf("phase")},
			session.Column[*unstructured.Unstructured]{Title: "Age", Cell: ageOf},
			session.Column[*unstructured.Unstructured]{Title: "Completed", IsWide: true, Cell: completed},
			session.Column[*unstructured.Unstructured]{Title: "Reason", IsWide: true, Cell: stateOf("reason")},
			session.Column[*unstructured.Unstructured]{Title: "Message", IsWide: true, Cell: stateOf("message")},
		),
	}
	jobTemplate = flow{
		verb: "jobtemplate", short: "Create, list, get, describe and delete templates of jobs",
		kind:    flowVersion.WithKind("JobTemplate"),
		columns: append(flowColumns[:2:2], session.Column[*unstructured.Unstructured]{Title: "Age", IsWide: true, Cell: ageOf}),
	}
)

// stateOf returns a field of the state.
func stateOf(field string) func(*unstructured.Unstructured) string {
	return func(o *unstructured.Unstructured) string {
		value, _, _ := unstructured.NestedString(o.Object, "status", "state", field)
		return value
	}
}

func ageOf(o *unstructured.Unstructured) string { return session.Age(o.GetCreationTimestamp()) }

// completed says how many Jobs of a flow are, of all.
func completed(o *unstructured.Unstructured) string {
	jobs, _, _ := unstructured.NestedSlice(o.Object, "status", "completedJobs")
	flows, _, _ := unstructured.NestedSlice(o.Object, "spec", "flows")
	return fmt.Sprintf("%d/%d", len(jobs), len(flows))
}

func newFlowCommand(s *session.Session, f flow) *cobra.Command {
	return session.NewGroup(s, f.verb, []string{f.verb + "s"}, f.short,
		newFlowCreateCommand(s, f), newFlowListCommand(s, f), newFlowGetCommand(s, f), newFlowDescribeCommand(s, f), newFlowDeleteCommand(s, f))
}

func newFlowCreateCommand(s *session.Session, f flow) *cobra.Command {
	var filename string
	command := &cobra.Command{
		Use: "create --filename=FILE", Short: "Create each " + f.verb + " of a file", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if filename == "" {
				return fmt.Errorf("give the file that describes the %s by --filename, - for the standard input", f.verb)
			}
			objects, err := s.ReadObjects(filename, f.kind)
			if err != nil {
				return err
			}
			return s.CreateAll(command.Context(), objects, func(o *unstructured.Unstructured) string {
				return fmt.Sprintf("Created %s: %s/%s", f.kind.Kind, o.GetNamespace(), o.GetName())
			})
		},
	}
	command.Flags().StringVarP(&filename, "filename", "f", "", "file to create from (also --file)")
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

func newFlowListCommand(s *session.Session, f flow) *cobra.Command {
	var labels string
	var isWatch bool
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + f.verb + "s", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := session.LabelOption(labels)
			if err != nil {
				return err
			}
			return session.Show(command.Context(), s, f.listing(options, isWatch))
		},
	}
	command.Flags().StringVarP(&labels, "selector", "l", "", "only those with these labels")
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddAllNamespacesFlag(command)
	session.AddWatchFlag(command, &isWatch)
	s.AddTableFlags(command)
	return command
}

// Listing has the namespace among its own columns, as that of vcctl.
func (f flow) listing(options []client.ListOption, isWatch bool) session.Listing[*unstructured.Unstructured] {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(f.kind.GroupVersion().WithKind(f.kind.Kind + "List"))
	return session.Listing[*unstructured.Unstructured]{
		Kind: f.verb, List: list, Columns: f.columns, Options: options, IsWatch: isWatch, IsNamespaced: true, ShowsNamespace: true, Space: session.FlowSpace,
	}
}

func newFlowGetCommand(s *session.Session, f flow) *cobra.Command {
	command := &cobra.Command{
		Use: "get NAME", Short: "Show a " + f.verb, Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.Completion(f.kind, true),
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names(f.verb, arguments)
			if err != nil {
				return err
			}
			object, err := f.read(command.Context(), s, names[0])
			if err != nil {
				return err
			}
			if !s.Output.IsTable() {
				return s.Output.Print(s, object)
			}
			l := f.listing(nil, false)
			rows := session.NewRows(s, l.Visible(s, object.GetNamespace()), l.Space)
			if err := rows.Add(s, object); err != nil {
				return err
			}
			return rows.Flush()
		},
	}
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddNameFlag(command, session.VcctlShorthands.Name, "name of the "+f.verb)
	s.AddTableFlags(command)
	return command
}

// read reads one object.
func (f flow) read(ctx context.Context, s *session.Session, name string) (*unstructured.Unstructured, error) {
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	api, err := s.Client()
	if err != nil {
		return nil, err
	}
	object := f.named(namespace, name)
	return object, s.Explain(api.Get(ctx, client.ObjectKeyFromObject(object), object))
}

func (f flow) named(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(f.kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func newFlowDescribeCommand(s *session.Session, f flow) *cobra.Command {
	command := &cobra.Command{
		Use: "describe [NAME]", Short: "Show all of a " + f.verb + ", or of all of them", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: s.Completion(f.kind, true),
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.Output.IsTable() {
				return fmt.Errorf("describe shows objects in full, not as a table: give --output=yaml or json, or use %q", s.Program+" "+f.verb+" get")
			}
			if s.Name == "" && len(arguments) == 0 {
				return session.Show(command.Context(), s, f.listing(nil, false))
			}
			names, err := s.Names(f.verb, arguments)
			if err != nil {
				return err
			}
			object, err := f.read(command.Context(), s, names[0])
			if err != nil {
				return err
			}
			return s.Output.Print(s, object)
		},
	}
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddNameFlag(command, session.VcctlShorthands.Name, "name of the "+f.verb)
	s.AddOutputFlag(command, "yaml")
	return command
}

func newFlowDeleteCommand(s *session.Session, f flow) *cobra.Command {
	var filename string
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete " + f.verb + "s, by name or those of a file", ValidArgsFunction: s.Completion(f.kind, true),
		RunE: func(command *cobra.Command, arguments []string) error {
			objects, err := f.meant(s, filename, arguments)
			if err != nil {
				return err
			}
			var problems []error
			for _, object := range objects {
				done := fmt.Sprintf("Deleted %s: %s/%s", f.kind.Kind, object.GetNamespace(), object.GetName())
				problems = append(problems, s.Delete(command.Context(), object, done))
			}
			return errors.Join(problems...)
		},
	}
	command.Flags().StringVarP(&filename, "filename", "f", "", "file whose objects to delete (also --file)")
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddNameFlag(command, session.VcctlShorthands.Name, "name of the "+f.verb)
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

// meant are the objects of a file, or those of the names.
func (f flow) meant(s *session.Session, filename string, arguments []string) ([]*unstructured.Unstructured, error) {
	if filename != "" {
		if s.Name != "" || len(arguments) > 0 {
			return nil, errors.New("-f takes the names from the file; leave out the name, or -f")
		}
		return s.ReadObjects(filename, f.kind)
	}
	names, err := s.Names(f.verb, arguments)
	if err != nil {
		return nil, err
	}
	namespace, err := s.Namespace()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		objects = append(objects, f.named(namespace, name))
	}
	return objects, nil
}
