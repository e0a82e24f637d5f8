package quota

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// listFlags are those of all lists.
type listFlags struct {
	labels  string
	isWatch bool
}

func (f *listFlags) add(s *session.Session, command *cobra.Command, isNamespaced bool) {
	command.Flags().StringVarP(&f.labels, "selector", "l", "", "only those with these labels")
	session.AddWatchFlag(command, &f.isWatch)
	if isNamespaced {
		s.AddNamespaceFlag(command, session.VcctlShorthands)
		s.AddAllNamespacesFlag(command)
	}
	s.AddTableFlags(command)
}

func isActive(of []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(of, v1beta2.ActiveCondition)
}

func newListClusterQueues(s *session.Session) *cobra.Command {
	var f listFlags
	var active []bool
	command := &cobra.Command{
		Use: "clusterqueue", Aliases: aliases["clusterqueue"], Short: "List ClusterQueues: cohort, workloads, and whether they are in use", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := session.LabelOption(f.labels)
			if err != nil {
				return err
			}
			return session.Show(command.Context(), s, session.Listing[*v1beta2.ClusterQueue]{
				Kind: "clusterqueue", List: &v1beta2.ClusterQueueList{}, Columns: clusterQueueColumns, Options: options, IsWatch: f.isWatch,
				Keep: func(q *v1beta2.ClusterQueue) bool {
					return len(active) == 0 || slices.Contains(active, isActive(q.Status.Conditions))
				},
			})
		},
	}
	command.Flags().BoolSliceVar(&active, "active", nil, "true or false: only those that are in use, or are not")
	f.add(s, command, false)
	return command
}

var clusterQueueColumns = []session.Column[*v1beta2.ClusterQueue]{
	{Title: "Name", Cell: func(q *v1beta2.ClusterQueue) string { return q.Name }},
	{Title: "Cohort", Cell: func(q *v1beta2.ClusterQueue) string { return settings.OfClusterQueue(q).Cohort }},
	{Title: "Pending-Workloads", Cell: func(q *v1beta2.ClusterQueue) string { return session.Number(q.Status.PendingWorkloads) }},
	{Title: "Admitted-Workloads", Cell: func(q *v1beta2.ClusterQueue) string { return session.Number(q.Status.AdmittedWorkloads) }},
	{Title: "Active", Cell: func(q *v1beta2.ClusterQueue) string { return strconv.FormatBool(isActive(q.Status.Conditions)) }},
	{Title: "Age", Cell: func(q *v1beta2.ClusterQueue) string { return session.Age(q.CreationTimestamp) }},
	{Title: "Used", IsWide: true, Cell: func(q *v1beta2.ClusterQueue) string { return used(q.Status.FlavorsReservation) }},
	{Title: "Message", IsWide: true, Cell: func(q *v1beta2.ClusterQueue) string { return message(q.Status.Conditions) }},
}

// used is what is held of each flavor and resource of which something is.
func used(flavors []v1beta2.FlavorUsage) string {
	var parts []string
	for _, f := range flavors {
		for _, r := range f.Resources {
			if !r.Total.IsZero() {
				parts = append(parts, fmt.Sprintf("%s/%s=%s", f.Name, r.Name, r.Total.String()))
			}
		}
	}
	return strings.Join(parts, ",")
}

func message(of []metav1.Condition) string {
	if c := meta.FindStatusCondition(of, v1beta2.ActiveCondition); c != nil {
		return c.Message
	}
	return ""
}

func newListLocalQueues(s *session.Session) *cobra.Command {
	var f listFlags
	var clusterQueue string
	command := &cobra.Command{
		Use: "localqueue", Aliases: aliases["localqueue"], Short: "List LocalQueues: their ClusterQueue and workloads", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := session.LabelOption(f.labels)
			if err != nil {
				return err
			}
			return session.Show(command.Context(), s, session.Listing[*v1beta2.LocalQueue]{
				Kind: "localqueue", List: &v1beta2.LocalQueueList{}, Columns: localQueueColumns, Options: options, IsWatch: f.isWatch, IsNamespaced: true,
				Keep: func(q *v1beta2.LocalQueue) bool { return clusterQueue == "" || q.Spec.ClusterQueue == clusterQueue },
			})
		},
	}
	command.Flags().StringVarP(&clusterQueue, "clusterqueue", "c", "", "only those of this ClusterQueue")
	f.add(s, command, true)
	return command
}

var localQueueColumns = []session.Column[*v1beta2.LocalQueue]{
	{Title: "Name", Cell: func(q *v1beta2.LocalQueue) string { return q.Name }},
	{Title: "ClusterQueue", Cell: func(q *v1beta2.LocalQueue) string { return q.Spec.ClusterQueue }},
	{Title: "Pending-Workloads", Cell: func(q *v1beta2.LocalQueue) string { return session.Number(q.Status.PendingWorkloads) }},
	{Title: "Admitted-Workloads", Cell: func(q *v1beta2.LocalQueue) string { return session.Number(q.Status.AdmittedWorkloads) }},
	{Title: "Age", Cell: func(q *v1beta2.LocalQueue) string { return session.Age(q.CreationTimestamp) }},
	{Title: "Message", IsWide: true, Cell: func(q *v1beta2.LocalQueue) string { return message(q.Status.Conditions) }},
}

// statuses are the states of a Workload that kueuectl knows.
var statuses = []string{"all", "pending", "quotareserved", "admitted", "finished"}

func newListWorkloads(s *session.Session) *cobra.Command {
	var f listFlags
	var clusterQueue, localQueue string
	var wanted []string
	command := &cobra.Command{
		Use: "workload", Aliases: aliases["workload"], Short: "List Workloads: their job, queues, status and why they wait", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			for _, status := range wanted {
				if !slices.Contains(statuses, strings.ToLower(status)) {
					return fmt.Errorf("--status=%s: it must be one of %s", status, strings.Join(statuses, ", "))
				}
			}
			options, err := session.LabelOption(f.labels)
			if err != nil {
				return err
			}
			waiting, err := positionsIn(command.Context(), s)
			if err != nil {
				return err
			}
			return session.Show(command.Context(), s, session.Listing[*v1beta2.Workload]{
				Kind: "workload", List: &v1beta2.WorkloadList{}, Columns: workloadColumns(waiting), Options: options, IsWatch: f.isWatch, IsNamespaced: true,
				Keep: func(w *v1beta2.Workload) bool {
					return (clusterQueue == "" || reservedIn(w) == clusterQueue) && (localQueue == "" || w.Spec.QueueName == localQueue) && hasStatus(w, wanted)
				},
			})
		},
	}
	command.Flags().StringVarP(&clusterQueue, "clusterqueue", "c", "", "only those whose quota is reserved in this ClusterQueue")
	command.Flags().StringVarP(&localQueue, "localqueue", "q", "", "only those of this LocalQueue")
	command.Flags().StringArrayVar(&wanted, "status", nil, strings.Join(statuses, ", ")+"; may be repeated")
	f.add(s, command, true)
	return command
}

// statusOf is how far a Workload is, in the words of kueuectl.
func statusOf(w *v1beta2.Workload) string {
	for _, kind := range []string{v1beta2.Finished, v1beta2.Admitted, v1beta2.QuotaReserved} {
		if conditions.Is(w, kind) {
			return strings.ToUpper(kind)
		}
	}
	return "PENDING"
}

func hasStatus(w *v1beta2.Workload, wanted []string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(status string) bool {
		return strings.EqualFold(status, "all") || strings.EqualFold(status, statusOf(w))
	})
}

func reservedIn(w *v1beta2.Workload) string {
	if w.Status.Admission == nil {
		return ""
	}
	return w.Status.Admission.ClusterQueue
}

// job is the kind and the name of the first owner of a Workload.
func job(w *v1beta2.Workload) (kind, name string) {
	if len(w.OwnerReferences) == 0 {
		return "", ""
	}
	owner := w.OwnerReferences[0]
	group, _, isGrouped := strings.Cut(owner.APIVersion, "/")
	if kind = strings.ToLower(owner.Kind); isGrouped {
		kind += "." + group
	}
	return kind, owner.Name
}

// execTime is for how long a Workload has been admitted, or was until it finished.
func execTime(w *v1beta2.Workload) string {
	admitted := conditions.Of(w, v1beta2.Admitted)
	if admitted == nil || admitted.Status != metav1.ConditionTrue {
		return ""
	}
	if finished := conditions.Of(w, v1beta2.Finished); finished != nil {
		return finished.LastTransitionTime.Sub(admitted.LastTransitionTime.Time).Round(time.Second).String()
	}
	return session.Age(admitted.LastTransitionTime)
}

// why is what a Workload that is not admitted waits for.
func why(w *v1beta2.Workload) string {
	if c := conditions.Of(w, v1beta2.QuotaReserved); c != nil && c.Status == metav1.ConditionFalse && !conditions.Is(w, v1beta2.Finished) {
		return c.Message
	}
	return ""
}

func workloadColumns(waiting Positions) []session.Column[*v1beta2.Workload] {
	return []session.Column[*v1beta2.Workload]{
		{Title: "Name", Cell: func(w *v1beta2.Workload) string { return w.Name }},
		{Title: "Job-Type", Cell: func(w *v1beta2.Workload) string { kind, _ := job(w); return kind }},
		{Title: "Job-Name", Cell: func(w *v1beta2.Workload) string { _, name := job(w); return name }},
		{Title: "LocalQueue", Cell: func(w *v1beta2.Workload) string { return w.Spec.QueueName }},
		{Title: "ClusterQueue", Cell: reservedIn},
		{Title: "Status", Cell: statusOf},
		{Title: "Position", Cell: waiting.cell},
		{Title: "Exec-Time", Cell: execTime},
		{Title: "Age", Cell: func(w *v1beta2.Workload) string { return session.Age(w.CreationTimestamp) }},
		{Title: "Priority", Cell: func(w *v1beta2.Workload) string { return session.Number(settings.OfWorkload(w).Priority) }},
		{Title: "Message", IsWide: true, Cell: why},
	}
}

func newListFlavors(s *session.Session) *cobra.Command {
	var f listFlags
	command := &cobra.Command{
		Use: "resourceflavor", Aliases: aliases["resourceflavor"], Short: "List ResourceFlavors: the labels of their nodes", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := session.LabelOption(f.labels)
			if err != nil {
				return err
			}
			return session.Show(command.Context(), s, session.Listing[*v1beta2.ResourceFlavor]{
				Kind: "resourceflavor", List: &v1beta2.ResourceFlavorList{}, Columns: flavorColumns, Options: options, IsWatch: f.isWatch,
			})
		},
	}
	f.add(s, command, false)
	return command
}

var flavorColumns = []session.Column[*v1beta2.ResourceFlavor]{
	{Title: "Name", Cell: func(f *v1beta2.ResourceFlavor) string { return f.Name }},
	{Title: "Node-Labels", Cell: func(f *v1beta2.ResourceFlavor) string { return session.Pairs(f.Spec.NodeLabels) }},
	{Title: "Age", Cell: func(f *v1beta2.ResourceFlavor) string { return session.Age(f.CreationTimestamp) }},
}
