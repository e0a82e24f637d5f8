package yunikorn

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/importer/source"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Options say what is imported, and where to.
type Options struct {
	// Partition is the name of the partition, "" for default.
	Partition string
	// Parent is the Queue in the place of root, "" for root.
	Parent string
	// ParentQueue is that Queue as it is now, nil if it is not known.
	ParentQueue *scheduling.Queue
	// Namespaces get queues by the placement rules.
	Namespaces []*corev1.Namespace
	// Accepted are the losses that are accepted: names of [Losable], or paths of lines.
	Accepted []string
}

// Result is what the configuration has become.
type Result struct {
	// Objects are the Queues, each after the one above it, the Namespaces, and the ConfigMap of the scheduler.
	Objects []runtime.Object
	// Lines has the lines of all keys, in the order of the text.
	Lines []source.Line
	// Notes say what else is to be done.
	Notes []string
}

// IsLossy reports whether something is lost and not accepted.
func (r *Result) IsLossy() bool {
	return slices.ContainsFunc(r.Lines, func(l source.Line) bool { return l.Outcome == source.Lost && !l.IsAccepted })
}

// importer is one run of [Import].
type importer struct {
	checker
	options    Options
	config     *partition
	titles     map[string]*queue // by the name of the Queue
	namespaces []*corev1.Namespace
	placed     map[string]*queue // by the name of the Namespace
	used       map[*template]bool
}

// deepest is how many levels of queues the webhook allows unless it is told otherwise.
const deepest = 5

// Import reads the text of queues.yaml, or of a ConfigMap that holds it. An error is of type [source.Problems].
func Import(text string, options Options) (*Result, error) {
	options.Partition, options.Parent = cmp.Or(options.Partition, "default"), cmp.Or(options.Parent, scheduling.RootQueue)
	said := &source.Report{Accepted: append(slices.Clone(acceptedByDefault), options.Accepted...)}
	i := &importer{checker: checker{said}, options: options, titles: map[string]*queue{}, placed: map[string]*queue{}, used: map[*template]bool{}}
	i.namespaces = slices.SortedFunc(slices.Values(options.Namespaces), func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	partitions := reader{&source.Reader{Report: said}}.configuration(text)
	for _, p := range partitions {
		i.check(p)
	}
	if i.choose(partitions); i.config == nil || i.Err() != nil {
		return nil, i.Err()
	}
	i.nameQueues(i.config.root)
	placer{i}.place(i.config.rules)
	for _, q := range i.config.root.queues {
		i.checkAmounts(q, nil) // now with the queues that rules have made
	}
	if i.Err() != nil {
		return nil, i.Err()
	}
	i.sayPartition()
	result := &Result{Objects: i.objects()}
	result.Lines, result.Notes = i.Lines(), i.notes()
	return result, nil
}

// choose finds the partition that is imported. The others are lost.
func (i *importer) choose(partitions []*partition) {
	var others []string
	for _, p := range partitions {
		if strings.EqualFold(p.name.Text, i.options.Partition) {
			i.config = p
			i.Keep(p.name, "the configuration of the scheduler")
			continue
		}
		others = append(others, p.name.Text)
		i.Lose(keyPartitions, p.name, "a scheduler has one set of nodes; import it by --partition %s into a cluster or a parent of its own", p.name.Text)
	}
	if i.config == nil && i.Err() == nil {
		i.Refuse(source.Field{}, "there is no partition %q; there are %s", i.options.Partition, strings.Join(others, ", "))
	}
}

// sayPartition says what becomes of the settings of users.
func (i *importer) sayPartition() {
	for _, limit := range i.config.limits {
		i.loseLimit(limit)
	}
	if i.config.resolver.IsWritten() {
		i.Lose(keyResolver, i.config.resolver, "a scheduler does not see users and groups")
	}
}

func (i *importer) objects() (objects []runtime.Object) {
	if parent := i.parentObject(i.config.root); parent != nil {
		objects = append(objects, parent)
	}
	queues := i.queueObjects(i.config.root)
	for _, q := range queues {
		objects = append(objects, q)
	}
	i.sayTemplates(i.config.root)
	for _, namespace := range i.namespaceObjects() {
		objects = append(objects, namespace)
	}
	i.sayUnused()
	return append(objects, i.configMap())
}

// sayTemplates says what becomes of the templates of a queue and of all below it.
func (i *importer) sayTemplates(q *queue) {
	if t := q.template; t != nil {
		fields := []source.Field{t.applications}
		for _, e := range slices.Concat(t.properties, t.guaranteed, t.max) {
			fields = append(fields, e.Field)
		}
		for _, f := range fields {
			switch {
			case !f.IsWritten():
			case i.used[t]:
				i.Keep(f, "for the Queues that a placement rule makes for Namespaces; Queues made later do not have it")
			default:
				i.Lose(keyTemplate, f, "no placement rule makes Queues below it for the Namespaces given with -f; set it on each Queue")
			}
		}
	}
	for _, below := range q.queues {
		i.sayTemplates(below)
	}
}

// notes say what is to be done besides applying the objects.
func (i *importer) notes() []string {
	notes := []string{"pods find queues, applications and task groups by YuniKorn's labels if the controllers are started with --yunikorn-labels",
		"pods with schedulerName yunikorn are placed if the scheduler and the controllers are started with --scheduler-name volcano " +
			"--scheduler-name yunikorn, and the scheduler with --leader-elect-resource-name volcano, the Lease that it may use"}
	levels := 0
	for _, q := range i.titles {
		levels = max(levels, len(q.path))
	}
	if levels > deepest {
		notes = append(notes, "there are more levels of queues than the webhook allows; start the controllers with --max-queue-depth higher than that")
	}
	if i.options.Parent != scheduling.RootQueue && i.options.ParentQueue == nil {
		notes = append(notes, "Queue "+i.options.Parent+" is printed as a new one below root; if it exists, give it with -f")
	}
	return notes
}

// Unused returns the accepted losses that did not occur.
func (r *Result) Unused(accepted []string) []string {
	return slices.DeleteFunc(slices.Clone(accepted), func(name string) bool {
		return slices.ContainsFunc(r.Lines, func(l source.Line) bool { return l.Outcome == source.Lost && (l.Key == name || l.Path == name) })
	})
}
