package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// none stands in cells that would be empty, so that scripts which split rows at blanks find their column.
const none = "-"

// output is in which form something is shown.
type output struct {
	flags     *genericclioptions.PrintFlags
	noHeaders bool
	made      printers.ResourcePrinter // one for all objects: it puts a line between those that it prints as YAML
}

// wideFormat is the table with all its columns.
const wideFormat = "wide"

// addOutputFlag lets a verb show objects in the formats of kubectl. Without a format it shows what is its own: a table, a
// description, a sentence. A format that does not exist is refused before anything is sent.
func (s *session) addOutputFlag(command *cobra.Command, byDefault string) *output {
	o := &output{flags: genericclioptions.NewPrintFlags("")}
	o.flags.OutputFormat = nil // without its flag, which does not know of the wide table
	o.flags.AddFlags(command)
	formats := append(o.flags.AllowedFormats(), wideFormat)
	for _, rare := range []string{"allow-missing-template-keys", "show-managed-fields", "template"} {
		_ = command.Flags().MarkHidden(rare)
	}
	o.flags.OutputFormat = command.Flags().StringP("output", "o", byDefault, "format: "+strings.Join(formats, ", "))
	o.flags.OutputFlagSpecified = func() bool { return command.Flag("output").Changed }
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error {
		s.output = o
		if o.isTable() {
			return nil
		}
		_, err := o.printer()
		return err
	}
	return o
}

func (s *session) addTableFlags(command *cobra.Command) {
	o := s.addOutputFlag(command, "")
	command.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the titles of the table")
}

func (o *output) format() string { return *o.flags.OutputFormat }

// isTable reports whether no format of kubectl was asked for.
func (o *output) isTable() bool {
	return (o.format() == "" || o.format() == wideFormat) && *o.flags.TemplatePrinterFlags.TemplateArgument == ""
}

func (o *output) printer() (printers.ResourcePrinter, error) {
	if o.made != nil {
		return o.made, nil
	}
	printer, err := o.flags.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, fmt.Errorf("--output=%s: it must be one of %s", o.format(), strings.Join(append(o.flags.AllowedFormats(), wideFormat), ", "))
	case err != nil:
		return nil, fmt.Errorf("--output=%s: %w", o.format(), err)
	}
	o.made = printer
	return printer, nil
}

// print shows an object, or a list of them, in the format that was asked for.
func (o *output) print(s *session, object runtime.Object) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	if err := setKinds(s.scheme, object); err != nil {
		return err
	}
	if meta.IsListType(object) && o.format() == "name" {
		return meta.EachListItem(object, func(item runtime.Object) error { return printer.PrintObj(item, s.Out) })
	}
	return printer.PrintObj(object, s.Out)
}

// setKinds puts kind and version onto an object, and onto each of a list: answers of the API server lack them once they are
// decoded, and a reader needs them.
func setKinds(scheme *runtime.Scheme, object runtime.Object) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !meta.IsListType(object) {
		return nil
	}
	return meta.EachListItem(object, func(item runtime.Object) error { return setKinds(scheme, item) })
}

// column is one of a table about objects of one kind.
type column[T any] struct {
	title string
	cell  func(T) string
	// width is how wide vcctl makes the column; 0 as wide as what is in it.
	width int
	// isWide columns are shown with --output=wide only.
	isWide bool
}

// listing is what a verb shows as a table.
type listing[T client.Object] struct {
	kind    string // as in sentences
	list    client.ObjectList
	columns []column[T]
	keep    func(T) bool // nil keeps all
	options []client.ListOption
	isWatch bool
	space   int // as newRows takes it; 0 is that of jobs
	// isNamespaced objects have their namespace as the first column when all namespaces are listed.
	isNamespaced bool
	// showsNamespace says that the namespace is among the columns in any case.
	showsNamespace bool
}

// addWatchFlag lets a list go on with what changes.
func addWatchFlag(command *cobra.Command, isWatch *bool) {
	command.Flags().BoolVarP(isWatch, "watch", "w", false, "go on with what changes, until interrupted")
}

// show lists the objects, and then, if that was asked for, each that changes.
func show[T client.Object](ctx context.Context, s *session, l listing[T]) error {
	scope := ""
	if l.isNamespaced {
		var err error
		if scope, err = s.scope(); err != nil {
			return err
		}
		l.options = append(l.options, client.InNamespace(scope))
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	if err := api.List(ctx, l.list, l.options...); err != nil {
		return s.explain(err)
	}
	items, err := l.items()
	if err != nil {
		return err
	}
	// What was filtered out must not be in what other formats show either.
	if err := meta.SetList(l.list, items); err != nil {
		return err
	}
	rows := newRows(s, l.visible(s, scope), cmp.Or(l.space, jobSpace))
	switch {
	case !s.output.isTable() && !l.isWatch:
		return s.output.print(s, l.list)
	case len(items) == 0 && !l.isWatch:
		return s.sayNothingFound(l.kind, scope)
	}
	for _, item := range items {
		if err := rows.add(s, item); err != nil {
			return err
		}
	}
	if err := rows.flush(); err != nil || !l.isWatch {
		return err
	}
	return follow(ctx, s, l.list.GetResourceVersion(), func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		empty := l.list.DeepCopyObject().(client.ObjectList)
		return api.Watch(ctx, empty, append(l.options, &client.ListOptions{Raw: &options})...)
	}, func(object runtime.Object) error {
		item, ok := object.(T)
		if !ok || l.keep != nil && !l.keep(item) {
			return nil
		}
		if err := rows.add(s, item); err != nil {
			return err
		}
		return rows.flush()
	})
}

// items are those objects of the list that are to be shown.
func (l *listing[T]) items() ([]runtime.Object, error) {
	all, err := meta.ExtractList(l.list)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(object runtime.Object) bool {
		item, ok := object.(T)
		return !ok || l.keep != nil && !l.keep(item)
	}), nil
}

// visible are the columns to be shown.
func (l *listing[T]) visible(s *session, scope string) []column[runtime.Object] {
	var visible []column[runtime.Object]
	if l.isNamespaced && scope == "" && !l.showsNamespace {
		visible = append(visible, column[runtime.Object]{title: "Namespace", cell: func(object runtime.Object) string {
			return object.(client.Object).GetNamespace()
		}})
	}
	for _, c := range l.columns {
		if !c.isWide || s.output.format() == wideFormat {
			visible = append(visible, column[runtime.Object]{title: c.title, width: c.width, cell: func(object runtime.Object) string { return c.cell(object.(T)) }})
		}
	}
	return visible
}

func (s *session) sayNothingFound(kind, scope string) error {
	if s.isVolcano {
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

// What vcctl leaves beside the names of jobs, of flows and their templates, and beside each column of pods.
const jobSpace, flowSpace, podSpace = 3, 4, 8

// rows writes a table row by row, or, in another format, object by object.
type rows struct {
	columns   []column[runtime.Object]
	writer    io.Writer
	flush     func() error
	hasTitles bool
}

// newRows begins a table; space is how many blanks vcctl leaves at least beside a column that has no width of its own.
func newRows(s *session, columns []column[runtime.Object], space int) *rows {
	if s.isVolcano {
		writer := &paddedWriter{out: s.Out, space: space, widths: make([]int, len(columns))}
		for i, c := range columns {
			writer.widths[i] = c.width
		}
		return &rows{columns: columns, writer: writer, flush: writer.Flush, hasTitles: s.output.noHeaders}
	}
	// This writer remembers the widths, so that rows which come later stand under the first ones.
	writer := printers.GetNewTabWriter(s.Out)
	return &rows{columns: columns, writer: writer, flush: writer.Flush, hasTitles: s.output.noHeaders}
}

func (r *rows) add(s *session, object runtime.Object) error {
	if !s.output.isTable() {
		return s.output.print(s, object)
	}
	var titles, cells []string
	for _, c := range r.columns {
		titles, cells = append(titles, c.title), append(cells, orNone(printers.EscapeTerminal(c.cell(object))))
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

// paddedWriter lays out a table as vcctl does: each cell is padded with blanks, the last one too, to a width that is fixed, or
// that leaves some space beside the widest cell seen so far. Unlike vcctl it lets no two cells touch.
type paddedWriter struct {
	out    io.Writer
	space  int   // beside the widest cell
	widths []int // fixed ones; 0 for those that are as wide as what is in them
	widest []int
	lines  [][]string
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
	if w.widest == nil {
		w.widest = make([]int, len(w.widths))
	}
	for _, line := range w.lines {
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

// follow calls changed with each object that a watch brings, until the context ends.
func follow(ctx context.Context, s *session, version string,
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
				return s.explain(fmt.Errorf("watch: %w", statusError(event.Object)))
			case event.Type == watch.Bookmark:
			default:
				if err := changed(event.Object); err != nil {
					return err
				}
			}
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

func humanDuration(since time.Duration) string { return duration.HumanDuration(since) }
