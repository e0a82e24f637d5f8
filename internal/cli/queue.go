package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newQueueCommand(s *session.Session) *cobra.Command {
	return session.NewGroup(s, "queue", []string{"queues", "q"}, "Create, list, get, operate and delete queues",
		newQueueCreateCommand(s), newQueueDeleteCommand(s), newQueueOperateCommand(s), newQueueListCommand(s), newQueueGetCommand(s))
}

// addQueueNameFlag adds the flag of a queue's name, which has the letter that other verbs have for the namespace:
// queues are in none.
func addQueueNameFlag(s *session.Session, command *cobra.Command) {
	s.AddNameFlag(command, "n", "name of the queue")
}

// queueFlags describe a queue without a manifest.
type queueFlags struct {
	weight, priority                               int32
	state, parent, capability, deserved, guarantee string
	isReclaimable                                  bool
}

func newQueueCreateCommand(s *session.Session) *cobra.Command {
	var f queueFlags
	command := &cobra.Command{
		Use: "create [NAME]", Short: "Create a queue", Args: cobra.MaximumNArgs(1),
		Example: "  " + s.Program + " queue create research --deserved cpu=64,memory=256Gi --priority 10",
		RunE: func(command *cobra.Command, arguments []string) error {
			return createQueue(command.Context(), s, f, arguments)
		},
	}
	addQueueNameFlag(s, command)
	flags := command.Flags()
	flags.Int32VarP(&f.weight, "weight", "w", 1, "weight among its siblings, for the plugin proportion")
	flags.StringVarP(&f.state, "state", "S", string(scheduling.QueueStateOpen), "Open or Closed")
	flags.StringVar(&f.parent, "parent", "", `queue above it; without it "root"`)
	flags.Int32Var(&f.priority, "priority", 0, "a queue of higher priority is served first and gives back last")
	flags.StringVar(&f.deserved, "deserved", "", "share, for the plugin capacity, such as cpu=8,memory=32Gi")
	flags.StringVar(&f.guarantee, "guarantee", "", "what is kept free for it, such as cpu=8,memory=32Gi")
	flags.StringVar(&f.capability, "capability", "", "the most that it may hold, such as cpu=8,memory=32Gi")
	flags.BoolVar(&f.isReclaimable, "reclaimable", true, "whether other queues may take back what it holds above its share")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("parent", s.CompleteQueues)
	return command
}

func createQueue(ctx context.Context, s *session.Session, f queueFlags, arguments []string) error {
	names, err := s.Names("queue", arguments)
	switch {
	case err != nil && s.IsVolcano && s.Name == "":
		names = []string{"test"} // what vcctl calls it
	case err != nil && s.Name == "":
		return errors.New("a queue needs a name, as an argument or by --name")
	case err != nil:
		return err
	}
	queue, err := f.queue(names[0])
	if err != nil {
		return err
	}
	done := fmt.Sprintf("create queue %s successfully", queue.Name)
	if f.state == string(scheduling.QueueStateOpen) {
		return s.Create(ctx, queue, done)
	}
	// The state of a new object is not taken from who creates it, so a queue is closed like any other.
	return s.Write(queue, done, func(api client.Client) error {
		if err := api.Create(ctx, queue); err != nil {
			return err
		}
		command, err := s.BusCommand(queue, metav1.NamespaceDefault, bus.CloseQueueAction)
		if err == nil {
			err = api.Create(ctx, command)
		}
		if err != nil {
			return &session.Explained{Sentence: fmt.Sprintf("queue %q is created, but open: %s; close it with %q", queue.Name, session.Message(err),
				s.Program+" queue operate "+queue.Name+" -a close"), Cause: err}
		}
		return nil
	})
}

func (f *queueFlags) queue(name string) (*scheduling.Queue, error) {
	if f.state != string(scheduling.QueueStateOpen) && f.state != string(scheduling.QueueStateClosed) {
		return nil, fmt.Errorf("--state=%s: it must be Open or Closed", f.state)
	}
	capability, err := session.ParseResources("--capability", f.capability)
	if err != nil {
		return nil, err
	}
	deserved, err := session.ParseResources("--deserved", f.deserved)
	if err != nil {
		return nil, err
	}
	guarantee, err := session.ParseResources("--guarantee", f.guarantee)
	if err != nil {
		return nil, err
	}
	return &scheduling.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: scheduling.QueueSpec{
			Weight: f.weight, Priority: f.priority, Parent: f.parent, Reclaimable: &f.isReclaimable, Capability: capability,
			Deserved: deserved, Guarantee: scheduling.Guarantee{Resource: guarantee},
		},
	}, nil
}

func newQueueDeleteCommand(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete queues", ValidArgsFunction: s.CompleteQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names("queue", arguments)
			if err != nil {
				return err
			}
			var problems []error
			for _, name := range names {
				queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
				problems = append(problems, s.Delete(command.Context(), queue, fmt.Sprintf("delete queue %s successfully", name)))
			}
			return errors.Join(problems...)
		},
	}
	addQueueNameFlag(s, command)
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

func newQueueOperateCommand(s *session.Session) *cobra.Command {
	var weight int32
	var action string
	command := &cobra.Command{
		Use: "operate NAME --action=open|close|update", Short: "Open or close queues, or change their weight", ValidArgsFunction: s.CompleteQueues,
		Example: "  " + s.Program + " queue operate research -a close\n  " + s.Program + " queue operate research -a update -w 4",
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names("queue", arguments)
			if err != nil {
				return err
			}
			var problems []error
			for _, name := range names {
				problems = append(problems, operateQueue(command.Context(), s, name, action, weight))
			}
			return errors.Join(problems...)
		},
	}
	addQueueNameFlag(s, command)
	command.Flags().Int32VarP(&weight, "weight", "w", 0, "new weight, for --action=update")
	command.Flags().StringVarP(&action, "action", "a", "", "open, close or update")
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("action", cobra.FixedCompletions([]string{"open", "close", "update"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func operateQueue(ctx context.Context, s *session.Session, name, action string, weight int32) error {
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	done := fmt.Sprintf("%s queue %s successfully", action, name)
	var command bus.Action
	switch action {
	case "open":
		command = bus.OpenQueueAction
	case "close":
		command = bus.CloseQueueAction
	case "update":
		if weight <= 0 {
			return fmt.Errorf("queue %s: --action=update changes the weight; give a new one above 0 by --weight", name)
		}
		before := queue.DeepCopy()
		queue.Spec.Weight = weight
		return s.Write(queue, done, func(api client.Client) error { return api.Patch(ctx, queue, client.MergeFrom(before)) })
	default:
		return fmt.Errorf("queue %s: --action=%s: it must be open, close or update", name, action)
	}
	if weight != 0 {
		return fmt.Errorf("queue %s: --weight=%d goes with --action=update only", name, weight)
	}
	api, err := s.Client()
	if err != nil {
		return err
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
		return s.Explain(err)
	}
	request, err := s.BusCommand(queue, metav1.NamespaceDefault, command)
	if err != nil {
		return err
	}
	return s.Create(ctx, request, done)
}

func newQueueListCommand(s *session.Session) *cobra.Command {
	var labels, configMap string
	var isWatch bool
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List queues: state, jobs, what they hold and what they may hold", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return listQueues(command.Context(), s, "", labels, configMap, isWatch)
		},
	}
	addConfigMapFlag(command, &configMap)
	command.Flags().StringVarP(&labels, "selector", "l", "", "only queues with these labels")
	session.AddWatchFlag(command, &isWatch)
	s.AddTableFlags(command)
	return command
}

func newQueueGetCommand(s *session.Session) *cobra.Command {
	var configMap string
	var isWatch bool
	command := &cobra.Command{
		Use: "get NAME", Short: "Show a queue", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.CompleteQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.Names("queue", arguments)
			if err != nil {
				return err
			}
			return getQueue(command.Context(), s, names[0], configMap, isWatch)
		},
	}
	addQueueNameFlag(s, command)
	addConfigMapFlag(command, &configMap)
	session.AddWatchFlag(command, &isWatch)
	s.AddTableFlags(command)
	return command
}

func getQueue(ctx context.Context, s *session.Session, name, configMap string, isWatch bool) error {
	api, err := s.Client()
	if err != nil {
		return err
	}
	queue := &scheduling.Queue{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, queue); err != nil {
		return s.Explain(err)
	}
	if !s.Output.IsTable() && !isWatch {
		return s.Output.Print(s, queue)
	}
	return listQueues(ctx, s, name, "", configMap, isWatch)
}

// listQueues lists the queues with some labels, or the one of a name. Where guarantees are enforced it shows what is
// left of them, and explains the one of a name.
func listQueues(ctx context.Context, s *session.Session, name, labels, configMap string, isWatch bool) error {
	options, err := session.LabelOption(labels)
	if err != nil {
		return err
	}
	if name != "" {
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)})
	}
	guaranteed, err := readShares(ctx, s, configMap)
	if err != nil {
		return err
	}
	err = session.Show(ctx, s, session.Listing[*scheduling.Queue]{
		Kind: "queue", List: &scheduling.QueueList{}, Columns: slices.Concat(queueColumns, shareColumns(guaranteed)), Options: options, IsWatch: isWatch,
	})
	if err != nil || name == "" || isWatch || guaranteed == nil {
		return err
	}
	return explainShares(s, guaranteed, name)
}

var queueColumns = []session.Column[*scheduling.Queue]{
	{Title: "Name", Width: 25, Cell: func(q *scheduling.Queue) string { return q.Name }},
	{Title: "Weight", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Spec.Weight) }},
	{Title: "State", Width: 8, Cell: func(q *scheduling.Queue) string { return string(q.Status.State) }},
	{Title: "Parent", Width: 8, Cell: func(q *scheduling.Queue) string { return q.Spec.Parent }},
	{Title: "Inqueue", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Status.Inqueue) }},
	{Title: "Pending", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Status.Pending) }},
	{Title: "Running", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Status.Running) }},
	{Title: "Unknown", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Status.Unknown) }},
	{Title: "Completed", Width: 8, Cell: func(q *scheduling.Queue) string { return session.Number(q.Status.Completed) }},
	{Title: "Priority", Cell: func(q *scheduling.Queue) string { return session.Number(q.Spec.Priority) }},
	{Title: "Share", Cell: func(q *scheduling.Queue) string { return share(q) }},
	{Title: "Allocated", Cell: func(q *scheduling.Queue) string { return session.Amounts(q.Status.Allocated) }},
	{Title: "Deserved", Cell: func(q *scheduling.Queue) string { return session.Amounts(q.Spec.Deserved) }},
	{Title: "Guarantee", IsWide: true, Cell: func(q *scheduling.Queue) string { return session.Amounts(q.Spec.Guarantee.Resource) }},
	{Title: "Capability", IsWide: true, Cell: func(q *scheduling.Queue) string { return session.Amounts(q.Spec.Capability) }},
	{Title: "Reclaimable", IsWide: true, Cell: func(q *scheduling.Queue) string {
		if q.Spec.Reclaimable != nil && !*q.Spec.Reclaimable {
			return "false"
		}
		return "true"
	}},
	{Title: "Age", IsWide: true, Cell: func(q *scheduling.Queue) string { return session.Age(q.CreationTimestamp) }},
}

// share is how much of what it deserves a queue holds, of the resource of which it holds most; "" if it deserves
// nothing by name.
func share(q *scheduling.Queue) string {
	largest, isKnown := 0.0, false
	for name, deserved := range q.Spec.Deserved {
		if deserved.Sign() <= 0 {
			continue
		}
		allocated := q.Status.Allocated[name]
		largest, isKnown = max(largest, allocated.AsApproximateFloat64()/deserved.AsApproximateFloat64()), true
	}
	if !isKnown {
		return ""
	}
	return fmt.Sprintf("%.0f%%", math.Round(100*largest))
}
