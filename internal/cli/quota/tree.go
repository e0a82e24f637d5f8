package quota

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// NewTreeCommand returns the verb that shows Cohorts and ClusterQueues as trees.
func NewTreeCommand(s *session.Session) *cobra.Command {
	var hasNoHeaders bool
	command := &cobra.Command{
		Use: "tree [NAME]", Short: "Show Cohorts and their ClusterQueues as trees: quota, used, borrowed, share",
		Long: `Shows all trees, or those nodes that have the name with all below them. A row is a resource of a flavor.

Quota      of a ClusterQueue its nominal quota; of a Cohort its own and that of all below
Used       what is reserved in the ClusterQueue, or in all below
Borrowed   how much of it the ClusterQueues and Cohorts above lend
Available  how much more the ClusterQueue could use now, or the Cohort could lend
Share      the weighted share of fair sharing, in thousandths
Pending    Workloads that are not admitted`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			return showTree(command.Context(), s, strings.Join(names, ""), hasNoHeaders)
		},
	}
	command.Flags().BoolVar(&hasNoHeaders, "no-headers", false, "without titles")
	s.AddConnectionFlags(command.Flags())
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	return command
}

func showTree(ctx context.Context, s *session.Session, name string, hasNoHeaders bool) error {
	api, err := s.Client()
	if err != nil {
		return err
	}
	clusterQueues, cohorts := &v1beta2.ClusterQueueList{}, &v1beta2.CohortList{}
	if err := api.List(ctx, clusterQueues); err != nil {
		return s.Explain(err)
	}
	if err := api.List(ctx, cohorts); err != nil {
		return s.Explain(err)
	}
	t := newTable(queues.Grow(clusterQueues.Items, cohorts.Items), clusterQueues.Items)
	for _, root := range t.Roots {
		t.show(root.Root, name, 0)
	}
	if len(t.rows) == 0 {
		if name != "" {
			return fmt.Errorf("there is neither a cohort nor a clusterqueue %q", name)
		}
		return s.SayNothingFound("clusterqueue", "")
	}
	w := printers.GetNewTabWriter(s.Out)
	if !hasNoHeaders {
		t.rows = append([]string{"Name\tKind\tFlavor/Resource\tQuota\tUsed\tBorrowed\tAvailable\tShare\tPending"}, t.rows...)
	}
	for _, row := range t.rows {
		if _, err := fmt.Fprintln(w, row); err != nil {
			return err
		}
	}
	return w.Flush()
}

// table has the rows of the trees.
type table struct {
	*queues.Trees
	pending map[string]int64 // by ClusterQueue
	rows    []string
}

func newTable(all *queues.Trees, queues []v1beta2.ClusterQueue) *table {
	t := &table{Trees: all, pending: map[string]int64{}}
	for i := range queues {
		t.pending[queues[i].Name] = int64(queues[i].Status.PendingWorkloads)
	}
	return t
}

// show adds a node and all below it; with a name only from the nodes on that have it.
func (t *table) show(n *cohort.Node, name string, depth int) {
	if name == "" || n.Name == name {
		t.add(n, depth)
		name, depth = "", depth+1
	}
	for _, m := range n.Children() {
		t.show(m, name, depth)
	}
}

// sums are what a node and all below it have of a resource of a flavor.
type sums struct{ quota, used int64 }

func sum(n *cohort.Node, fr resources.FR) sums {
	s := sums{quota: n.Nominal(fr)}
	if n.IsQueue {
		s.used = n.Usage(fr)
	}
	for _, m := range n.Children() {
		of := sum(m, fr)
		s.quota, s.used = s.quota+of.quota, s.used+of.used
	}
	return s
}

func (t *table) add(n *cohort.Node, depth int) {
	kind, share := "Cohort", session.None
	if n.IsQueue {
		kind = "ClusterQueue"
	}
	if n.Parent() != nil {
		share = strconv.FormatInt(n.Share().Weighted(), 10)
		if n.Share().Weighted() == math.MaxInt64 {
			share = "infinite"
		}
	}
	begin := strings.Repeat("  ", depth) + printers.EscapeTerminal(n.Name) + "\t" + kind
	end := share + "\t" + strconv.FormatInt(t.waiting(n), 10)
	frs := slices.SortedFunc(slices.Values(n.Tree().FRs()), func(a, b resources.FR) int {
		return cmp.Or(cmp.Compare(t.Index.FlavorOf(a), t.Index.FlavorOf(b)), cmp.Compare(t.Index.ResourceOf(a), t.Index.ResourceOf(b)))
	})
	isAny := false
	for _, fr := range frs {
		s := sum(n, fr)
		if s == (sums{}) {
			continue
		}
		isAny = true
		amount := func(value int64) string {
			quantity := resources.Quantity(t.Index.ResourceOf(fr), max(0, value))
			return quantity.String()
		}
		borrowed := int64(0)
		if n.Parent() != nil {
			borrowed = n.Usage(fr) - n.Subtree(fr)
		}
		t.rows = append(t.rows, strings.Join([]string{begin, printers.EscapeTerminal(t.Index.FlavorOf(fr) + "/" + string(t.Index.ResourceOf(fr))),
			amount(s.quota), amount(s.used), amount(borrowed), amount(n.Available(fr)), end}, "\t"))
	}
	if !isAny {
		t.rows = append(t.rows, strings.Join([]string{begin, session.None, session.None, session.None, session.None, session.None, end}, "\t"))
	}
}

// waiting is how many Workloads are pending in a ClusterQueue, or in all below a Cohort.
func (t *table) waiting(n *cohort.Node) int64 {
	if n.IsQueue {
		return t.pending[n.Name]
	}
	count := int64(0)
	for _, m := range n.Children() {
		count += t.waiting(m)
	}
	return count
}
