package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// None stands in cells that would be empty, so that scripts which split rows at blanks find their column.
const None = "-"

// Output is in which form something is shown.
type Output struct {
	flags     *genericclioptions.PrintFlags
	noHeaders bool
	made      printers.ResourcePrinter // one for all objects: it puts a line between those that it prints as YAML
}

// WideFormat is the table with all its columns.
const WideFormat = "wide"

// AddOutputFlag lets a verb show objects in the formats of kubectl. Without a format it shows what is its own: a table,
// a description, a sentence. A format that does not exist is refused before anything is sent.
func (s *Session) AddOutputFlag(command *cobra.Command, byDefault string) *Output {
	o := &Output{flags: genericclioptions.NewPrintFlags("")}
	o.flags.OutputFormat = nil // without its flag, which does not know of the wide table
	o.flags.AddFlags(command)
	formats := append(o.flags.AllowedFormats(), WideFormat)
	for _, rare := range []string{"allow-missing-template-keys", "show-managed-fields", "template"} {
		_ = command.Flags().MarkHidden(rare)
	}
	o.flags.OutputFormat = command.Flags().StringP("output", "o", byDefault, "format: "+strings.Join(formats, ", "))
	o.flags.OutputFlagSpecified = func() bool { return command.Flag("output").Changed }
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error {
		s.Output = o
		if o.IsTable() {
			return nil
		}
		_, err := o.printer()
		return err
	}
	return o
}

// AddTableFlags adds the flags that say how a list is printed.
func (s *Session) AddTableFlags(command *cobra.Command) {
	o := s.AddOutputFlag(command, "")
	command.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the titles of the table")
}

// Format is the format that was asked for, "" if none was.
func (o *Output) Format() string { return *o.flags.OutputFormat }

// IsTable reports whether no format of kubectl was asked for.
func (o *Output) IsTable() bool {
	return (o.Format() == "" || o.Format() == WideFormat) && *o.flags.TemplatePrinterFlags.TemplateArgument == ""
}

func (o *Output) printer() (printers.ResourcePrinter, error) {
	if o.made != nil {
		return o.made, nil
	}
	printer, err := o.flags.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, fmt.Errorf("--output=%s: it must be one of %s", o.Format(), strings.Join(append(o.flags.AllowedFormats(), WideFormat), ", "))
	case err != nil:
		return nil, fmt.Errorf("--output=%s: %w", o.Format(), err)
	}
	o.made = printer
	return printer, nil
}

// Print shows an object, or a list of them, in the format that was asked for.
func (o *Output) Print(s *Session, object runtime.Object) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	if err := SetKinds(s.Scheme, object); err != nil {
		return err
	}
	if meta.IsListType(object) && o.Format() == "name" {
		return meta.EachListItem(object, func(item runtime.Object) error { return printer.PrintObj(item, s.Out) })
	}
	return printer.PrintObj(object, s.Out)
}

// SetKinds puts kind and version onto an object, and onto each of a list: answers of the API server lack them once they
// are decoded, and a reader needs them.
func SetKinds(scheme *runtime.Scheme, object runtime.Object) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !meta.IsListType(object) {
		return nil
	}
	return meta.EachListItem(object, func(item runtime.Object) error { return SetKinds(scheme, item) })
}

// Column is one of a table about objects of one kind.
type Column[T any] struct {
	Title string
	Cell  func(T) string
	// Width is how wide vcctl makes the column; 0 as wide as what is in it.
	Width int
	// IsWide columns are shown with --output=wide only.
	IsWide bool
}

// Listing is what a verb shows as a table.
type Listing[T client.Object] struct {
	Kind    string // as in sentences
	List    client.ObjectList
	Columns []Column[T]
	Keep    func(T) bool // nil keeps all
	Options []client.ListOption
	IsWatch bool
	Space   int // as NewRows takes it; 0 is that of jobs
	// IsNamespaced objects have their namespace as the first column when all namespaces are listed.
	IsNamespaced bool
	// ShowsNamespace says that the namespace is among the columns in any case.
	ShowsNamespace bool
}

// AddWatchFlag lets a list go on with what changes.
func AddWatchFlag(command *cobra.Command, isWatch *bool) {
	command.Flags().BoolVarP(isWatch, "watch", "w", false, "go on with what changes, until interrupted")
}

// Show lists the objects, and then, if that was asked for, each that changes.
func Show[T client.Object](ctx context.Context, s *Session, l Listing[T]) error {
	scope := ""
	if l.IsNamespaced {
		var err error
		if scope, err = s.Scope(); err != nil {
			return err
		}
		l.Options = append(l.Options, client.InNamespace(scope))
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	if err := api.List(ctx, l.List, l.Options...); err != nil {
		return s.Explain(err)
	}
	items, err := l.items()
	if err != nil {
		return err
	}
	// What was filtered out must not be in what other formats show either.
	if err := meta.SetList(l.List, items); err != nil {
		return err
	}
	rows := NewRows(s, l.Visible(s, scope), cmp.Or(l.Space, jobSpace))
	switch {
	case !s.Output.IsTable() && !l.IsWatch:
		return s.Output.Print(s, l.List)
	case len(items) == 0 && !l.IsWatch:
		return s.SayNothingFound(l.Kind, scope)
	}
	for _, item := range items {
		if err := rows.Add(s, item); err != nil {
			return err
		}
	}
	if err := rows.Flush(); err != nil || !l.IsWatch {
		return err
	}
	return s.Follow(ctx, l.List.GetResourceVersion(), func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		empty := l.List.DeepCopyObject().(client.ObjectList)
		return api.Watch(ctx, empty, append(l.Options, &client.ListOptions{Raw: &options})...)
	}, func(object runtime.Object) error {
		item, ok := object.(T)
		if !ok || l.Keep != nil && !l.Keep(item) {
			return nil
		}
		if err := rows.Add(s, item); err != nil {
			return err
		}
		return rows.Flush()
	})
}

// items are those objects of the list that are to be shown.
func (l *Listing[T]) items() ([]runtime.Object, error) {
	all, err := meta.ExtractList(l.List)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(object runtime.Object) bool {
		item, ok := object.(T)
		return !ok || l.Keep != nil && !l.Keep(item)
	}), nil
}

// Visible are the columns to be shown.
func (l *Listing[T]) Visible(s *Session, scope string) []Column[runtime.Object] {
	var visible []Column[runtime.Object]
	if l.IsNamespaced && scope == "" && !l.ShowsNamespace {
		visible = append(visible, Column[runtime.Object]{Title: "Namespace", Cell: func(object runtime.Object) string {
			return object.(client.Object).GetNamespace()
		}})
	}
	for _, c := range l.Columns {
		if !c.IsWide || s.Output.Format() == WideFormat {
			visible = append(visible, Column[runtime.Object]{Title: c.Title, Width: c.Width, Cell: func(object runtime.Object) string { return c.Cell(object.(T)) }})
		}
	}
	return visible
}

// SayNothingFound says that a list has no objects.
func (s *Session) SayNothingFound(kind, scope string) error {
	if s.IsVolcano {
		_, err := fmt.Fprintln(s.Out, "No resources found")
		return err
	}
	where := ""
	if scope != "" {
		where = " in namespace " + scope
	}
	_, err := fmt.Fprintf(s.ErrOut, "No %ss found%s\n", kind, where)
	return err
}

// What vcctl leaves after the names of jobs, of flows and their templates, and after each column of pods.
const jobSpace, FlowSpace, PodSpace = 3, 4, 8

// Rows writes a table row by row, or, in another format, object by object.
type Rows struct {
	columns   []Column[runtime.Object]
	writer    io.Writer
	Flush     func() error
	hasTitles bool
}

// NewRows begins a table; space is how many blanks vcctl leaves at least after a column that has no width of its own.
func NewRows(s *Session, columns []Column[runtime.Object], space int) *Rows {
	if s.IsVolcano {
		writer := &paddedWriter{out: s.Out, space: space, widths: make([]int, len(columns)), skipsTitles: space == PodSpace && !s.Output.noHeaders}
		for i, c := range columns {
			writer.widths[i] = c.Width
		}
		return &Rows{columns: columns, writer: writer, Flush: writer.Flush, hasTitles: s.Output.noHeaders}
	}
	// This writer remembers the widths, so that rows which come later stand under the first ones.
	writer := printers.GetNewTabWriter(s.Out)
	return &Rows{columns: columns, writer: writer, Flush: writer.Flush, hasTitles: s.Output.noHeaders}
}

// Add writes a row, or an object.
func (r *Rows) Add(s *Session, object runtime.Object) error {
	if !s.Output.IsTable() {
		return s.Output.Print(s, object)
	}
	var titles, cells []string
	for _, c := range r.columns {
		titles, cells = append(titles, c.Title), append(cells, OrNone(printers.EscapeTerminal(c.Cell(object))))
	}
	if !r.hasTitles {
		r.hasTitles = true
		if _, err := fmt.Fprintln(r.writer, strings.Join(titles, "\t")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(r.writer, strings.Join(cells, "\t"))
	return err
}

// paddedWriter lays out a table as vcctl does: each cell, also the last, is padded with blanks. Its width is fixed, or
// leaves some space after the widest cell so far. Unlike vcctl it lets no two cells touch.
type paddedWriter struct {
	out    io.Writer
	space  int   // after the widest cell
	widths []int // fixed ones; 0 for those that are as wide as what is in them
	// skipsTitles leaves the first line out of the widths, as vcctl does with pods.
	skipsTitles bool
	widest      []int
	lines       [][]string
}

// Write takes lines whose cells are separated by tabs.
func (w *paddedWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w.lines = append(w.lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return len(text), nil
}

// Flush writes the lines that were taken.
func (w *paddedWriter) Flush() error {
	counted := w.lines
	if w.widest == nil {
		w.widest = make([]int, len(w.widths))
		if w.skipsTitles && len(counted) > 0 {
			counted = counted[1:]
		}
	}
	for _, line := range counted {
		for i, cell := range line {
			w.widest[i] = max(w.widest[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range w.lines {
		for i, cell := range line {
			width := cmp.Or(w.widths[i], w.widest[i]+w.space)
			if i < len(line)-1 {
				width = max(width, utf8.RuneCountInString(cell)+1)
			}
			if _, err := fmt.Fprintf(w.out, "%-*s", width, cell); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(w.out); err != nil {
			return err
		}
	}
	w.lines = nil
	return nil
}

// Follow calls changed with each object that a watch brings, until the context ends.
func (s *Session) Follow(ctx context.Context, version string,
	start func(context.Context, metav1.ListOptions) (watch.Interface, error), changed func(runtime.Object) error) error {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // a person has seen enough
		case event, isOpen := <-watcher.ResultChan():
			switch {
			case !isOpen && ctx.Err() != nil:
				return nil
			case !isOpen:
				return errors.New("the API server has ended the watch; start the command again")
			case event.Type == watch.Error:
				return s.Explain(fmt.Errorf("watch: %w", statusError(event.Object)))
			case event.Type == watch.Bookmark:
			default:
				if err := changed(event.Object); err != nil {
					return err
				}
			}
		}
	}
}
