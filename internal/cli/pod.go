package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/cli/session"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// podFilter is which pods of a namespace are listed.
type podFilter struct {
	job, queue, labels string
	owner              string // a selector of those of one owner, in place of those of Jobs
	isWatch            bool
}

func newPodCommand(s *session.Session) *cobra.Command {
	var filter podFilter
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the pods of all jobs, of one job, or of a queue", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return listPods(command.Context(), s, filter) },
	}
	flags := list.Flags()
	flags.StringVarP(&filter.job, "job", "j", "", "only pods of this job")
	flags.StringVarP(&filter.queue, "queue", "q", "", "only pods of this queue, those without a job too")
	flags.StringVarP(&filter.labels, "selector", "l", "", "only pods with these labels")
	s.AddNamespaceFlag(list, session.VcctlShorthands)
	s.AddAllNamespacesFlag(list)
	session.AddWatchFlag(list, &filter.isWatch)
	s.AddTableFlags(list)
	_ = list.RegisterFlagCompletionFunc("queue", s.CompleteQueues)
	_ = list.RegisterFlagCompletionFunc("job", s.CompleteJobs)
	return session.NewGroup(s, "pod", []string{"pods"}, "List the pods of jobs and queues", list)
}

// ownerLabels are the labels by which the pods of an owner are told: by its kind, as kubectl names it.
var ownerLabels = map[string]string{
	"job": batchv1.JobNameLabel, "job.batch": batchv1.JobNameLabel, "vcjob": batch.JobNameKey, "job.batch.volcano.sh": batch.JobNameKey,
	"podgroup": kueue.PodGroupNameLabel, "jobset": "jobset.sigs.k8s.io/jobset-name", "raycluster": "ray.io/cluster",
	"mpijob": trainingLabel, "pytorchjob": trainingLabel, "tfjob": trainingLabel, "xgboostjob": trainingLabel, "paddlejob": trainingLabel,
}

const trainingLabel = "training.kubeflow.org/job-name"

// newListPodsCommand returns list pods, which has the flag of kueuectl.
func newListPodsCommand(s *session.Session) *cobra.Command {
	var filter podFilter
	var owner string
	command := &cobra.Command{
		Use: "pods", Aliases: []string{"pod", "po"}, Short: "List the pods of a job, by its kind and name", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			kind, name, _ := strings.Cut(owner, "/")
			short, _, _ := strings.Cut(kind, ".")
			label := cmp.Or(ownerLabels[kind], ownerLabels[short])
			if label == "" || name == "" || kind != short && short == "job" && ownerLabels[kind] == "" {
				return fmt.Errorf("--for=%s: it must be TYPE/NAME, such as job/train, and TYPE one of %s", owner,
					strings.Join(slices.Sorted(maps.Keys(ownerLabels)), ", "))
			}
			filter.owner = label + "=" + name
			return listPods(command.Context(), s, filter)
		},
	}
	flags := command.Flags()
	flags.StringVar(&owner, "for", "", "TYPE/NAME of what has made the pods, such as job/train")
	_ = command.MarkFlagRequired("for")
	flags.StringVarP(&filter.labels, "selector", "l", "", "only pods with these labels")
	s.AddNamespaceFlag(command, session.VcctlShorthands)
	s.AddAllNamespacesFlag(command)
	session.AddWatchFlag(command, &filter.isWatch)
	s.AddTableFlags(command)
	return command
}

// selector is what the API server can select by.
func (f *podFilter) selector() string {
	var terms []string
	switch {
	case f.owner != "":
		terms = append(terms, f.owner)
	case f.job != "":
		terms = append(terms, batch.JobNameKey+"="+f.job)
	case f.queue == "":
		terms = append(terms, batch.JobNameKey)
	}
	if f.labels != "" {
		terms = append(terms, f.labels)
	}
	return strings.Join(terms, ",")
}

// Keep reports whether a pod is in the queue that is meant: a Job's pod says so in a label, any other in an annotation.
func (f *podFilter) keep(pod metav1.Object) bool {
	return f.queue == "" || pod.GetLabels()[batch.QueueNameKey] == f.queue || pod.GetAnnotations()[scheduling.QueueNameAnnotationKey] == f.queue
}

func listPods(ctx context.Context, s *session.Session, f podFilter) error {
	options, err := session.LabelOption(f.selector())
	if err != nil {
		return err
	}
	if !s.Output.IsTable() {
		return session.Show(ctx, s, session.Listing[*corev1.Pod]{
			Kind: "pod", List: &corev1.PodList{}, Options: options, IsWatch: f.isWatch, IsNamespaced: true,
			Keep: func(pod *corev1.Pod) bool { return f.keep(pod) },
		})
	}
	scope, err := s.Scope()
	if err != nil {
		return err
	}
	api, err := tables(s)
	if err != nil {
		return err
	}
	// The API server makes the rows: how a pod fares is told as kubectl tells it.
	request := func(options metav1.ListOptions) *rest.Request {
		options.LabelSelector = f.selector()
		request := api.Get().NamespaceIfScoped(scope, scope != "").Resource("pods")
		request = request.Param("labelSelector", options.LabelSelector).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		if options.Watch {
			request = request.Param("watch", "true").Param("resourceVersion", options.ResourceVersion)
		}
		return request
	}
	table := &metav1.Table{}
	if err := request(metav1.ListOptions{}).Do(ctx).Into(table); err != nil {
		return s.Explain(err)
	}
	written, err := newPodRows(s, scope, table.ColumnDefinitions)
	if err != nil {
		return err
	}
	if err := written.addTable(s, table, f); err != nil {
		return err
	}
	if err := written.Flush(); err != nil {
		return err
	}
	if !f.isWatch {
		if !written.isAny {
			return s.SayNothingFound("pod", scope)
		}
		return nil
	}
	return s.Follow(ctx, table.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.Watch = true
		return request(options).Watch(ctx)
	}, func(object runtime.Object) error {
		change, ok := object.(*metav1.Table)
		if !ok {
			return fmt.Errorf("the API server sends %T instead of a row; leave out --watch", object)
		}
		if err := written.addTable(s, change, f); err != nil {
			return err
		}
		return written.Flush()
	})
}

// tables is a client of the core API that can read tables.
func tables(s *session.Session) (*rest.RESTClient, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	api, err := rest.RESTClientFor(config)
	return api, s.Explain(err)
}

// podTitles are those of vcctl, by those of the API server.
var podTitles = map[string]string{"Restarts": "Restart"}

// podRows writes rows that the API server has made.
type podRows struct {
	*session.Rows
	isAny bool
}

// podRow is a row with the pod that it is about.
type podRow struct {
	runtime.Object
	pod   metav1.Object
	cells []any
}

func newPodRows(s *session.Session, scope string, definitions []metav1.TableColumnDefinition) (*podRows, error) {
	var columns []session.Column[runtime.Object]
	if scope == "" {
		columns = append(columns, session.Column[runtime.Object]{Title: "Namespace", Cell: func(o runtime.Object) string { return o.(podRow).pod.GetNamespace() }})
	}
	for i, definition := range definitions {
		if definition.Priority > 0 && s.Output.Format() != session.WideFormat {
			continue
		}
		title := definition.Name
		if other, ok := podTitles[title]; ok {
			title = other
		}
		columns = append(columns, session.Column[runtime.Object]{Title: strings.ReplaceAll(title, " ", ""), Cell: func(o runtime.Object) string {
			if cells := o.(podRow).cells; i < len(cells) {
				return fmt.Sprint(cells[i])
			}
			return ""
		}})
	}
	if !slices.ContainsFunc(definitions, func(d metav1.TableColumnDefinition) bool { return d.Name == "Name" }) {
		return nil, errors.New("the API server shows pods without their names; try --output=name")
	}
	return &podRows{Rows: session.NewRows(s, columns, session.PodSpace)}, nil
}

// addTable adds those rows of a table whose pods are to be shown.
func (r *podRows) addTable(s *session.Session, table *metav1.Table, f podFilter) error {
	for i := range table.Rows {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(table.Rows[i].Object.Raw); err != nil {
			return fmt.Errorf("the API server sends a row without its pod: %w", err)
		}
		pod, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		if !f.keep(pod) {
			continue
		}
		r.isAny = true
		if err := r.Add(s, podRow{Object: object, pod: pod, cells: table.Rows[i].Cells}); err != nil {
			return err
		}
	}
	return nil
}
