package cli

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newQueueCommand(s *session) *cobra.Command {
	return newGroup(s, "queue", []string{"queues", "q"}, "Create, list, get, operate and delete queues",
		newQueueCreateCommand(s), newQueueDeleteCommand(s), newQueueOperateCommand(s), newQueueListCommand(s), newQueueGetCommand(s))
}

// addQueueNameFlag adds the flag of a queue's name, which has the letter that other verbs have for the namespace: queues are
// in none.
func (s *session) addQueueNameFlag(command *cobra.Command) {
	s.addNameFlag(command, "n", "name of the queue")
}

// queueFlags describe a queue without a manifest.
type queueFlags struct {
	weight, priority                               int32
	state, parent, capability, deserved, guarantee string
	isReclaimable                                  bool
}

func newQueueCreateCommand(s *session) *cobra.Command {
	var f queueFlags
	command := &cobra.Command{
		Use: "create [NAME]", Short: "Create a queue", Args: cobra.MaximumNArgs(1),
		Example: "  " + s.program + " queue create research --deserved cpu=64,memory=256Gi --priority 10",
		RunE: func(command *cobra.Command, arguments []string) error {
			return createQueue(command.Context(), s, f, arguments)
		},
	}
	s.addQueueNameFlag(command)
	flags := command.Flags()
	flags.Int32VarP(&f.weight, "weight", "w", 1, "weight among its siblings, for the plugin proportion")
	flags.StringVarP(&f.state, "state", "S", string(scheduling.QueueStateOpen), "Open or Closed")
	flags.StringVar(&f.parent, "parent", "", `queue above it; without it "root"`)
	flags.Int32Var(&f.priority, "priority", 0, "rank: a higher one is served first and gives back last")
	flags.StringVar(&f.deserved, "deserved", "", "share, for the plugin capacity, such as cpu=8,memory=32Gi")
	flags.StringVar(&f.guarantee, "guarantee", "", "floor: what is kept free for it")
	flags.StringVar(&f.capability, "capability", "", "ceiling: what it never exceeds")
	flags.BoolVar(&f.isReclaimable, "reclaimable", true, "whether other queues may take back what it holds above its share")
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("parent", s.completeQueues)
	return command
}

func createQueue(ctx context.Context, s *session, f queueFlags, arguments []string) error {
	names, err := s.names("queue", arguments)
	switch {
	case err != nil && s.isVolcano && s.name == "":
		names = []string{"test"} // what vcctl calls it
	case err != nil && s.name == "":
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
		return s.create(ctx, queue, done)
	}
	// The state of a new object is not taken from who creates it, so a queue is closed like any other.
	return s.write(queue, done, func(api client.Client) error {
		if err := api.Create(ctx, queue); err != nil {
			return err
		}
		command, err := s.newCommand(queue, metav1.NamespaceDefault, bus.CloseQueueAction)
		if err == nil {
			err = api.Create(ctx, command)
		}
		if err != nil {
			return &explained{fmt.Sprintf("queue %q is created, but open: %s; close it with %q", queue.Name, message(err),
				s.program+" queue operate "+queue.Name+" -a close"), err}
		}
		return nil
	})
}

func (f *queueFlags) queue(name string) (*scheduling.Queue, error) {
	if f.state != string(scheduling.QueueStateOpen) && f.state != string(scheduling.QueueStateClosed) {
		return nil, fmt.Errorf("--state=%s: it must be Open or Closed", f.state)
	}
	capability, err := parseResources("--capability", f.capability)
	if err != nil {
		return nil, err
	}
	deserved, err := parseResources("--deserved", f.deserved)
	if err != nil {
		return nil, err
	}
	guarantee, err := parseResources("--guarantee", f.guarantee)
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

func newQueueDeleteCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "delete NAME...", Short: "Delete queues", ValidArgsFunction: s.completeQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.names("queue", arguments)
			if err != nil {
				return err
			}
			var problems []error
			for _, name := range names {
				queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}}
				problems = append(problems, s.delete(command.Context(), queue, fmt.Sprintf("delete queue %s successfully", name)))
			}
			return errors.Join(problems...)
		},
	}
	s.addQueueNameFlag(command)
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	return command
}

func newQueueOperateCommand(s *session) *cobra.Command {
	var weight int32
	var action string
	command := &cobra.Command{
		Use: "operate NAME --action=open|close|update", Short: "Open or close queues, or change their weight", ValidArgsFunction: s.completeQueues,
		Example: "  " + s.program + " queue operate research -a close\n  " + s.program + " queue operate research -a update -w 4",
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.names("queue", arguments)
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
	s.addQueueNameFlag(command)
	command.Flags().Int32VarP(&weight, "weight", "w", 0, "new weight, for --action=update")
	command.Flags().StringVarP(&action, "action", "a", "", "open, close or update")
	s.addDryRunFlag(command)
	s.addOutputFlag(command, "")
	_ = command.RegisterFlagCompletionFunc("action", cobra.FixedCompletions([]string{"open", "close", "update"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func operateQueue(ctx context.Context, s *session, name, action string, weight int32) error {
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
		return s.write(queue, done, func(api client.Client) error { return api.Patch(ctx, queue, client.MergeFrom(before)) })
	default:
		return fmt.Errorf("queue %s: --action=%s: it must be open, close or update", name, action)
	}
	if weight != 0 {
		return fmt.Errorf("queue %s: --weight=%d goes with --action=update only", name, weight)
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(queue), queue); err != nil {
		return s.explain(err)
	}
	request, err := s.newCommand(queue, metav1.NamespaceDefault, command)
	if err != nil {
		return err
	}
	return s.create(ctx, request, done)
}

func newQueueListCommand(s *session) *cobra.Command {
	var labels string
	var isWatch bool
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List queues: state, jobs, what they hold and what they may hold", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return listQueues(command.Context(), s, "", labels, isWatch)
		},
	}
	command.Flags().StringVarP(&labels, "selector", "l", "", "only queues with these labels")
	addWatchFlag(command, &isWatch)
	s.addTableFlags(command)
	return command
}

func newQueueGetCommand(s *session) *cobra.Command {
	var isWatch bool
	command := &cobra.Command{
		Use: "get NAME", Short: "Show a queue", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			names, err := s.names("queue", arguments)
			if err != nil {
				return err
			}
			return getQueue(command.Context(), s, names[0], isWatch)
		},
	}
	s.addQueueNameFlag(command)
	addWatchFlag(command, &isWatch)
	s.addTableFlags(command)
	return command
}

func getQueue(ctx context.Context, s *session, name string, isWatch bool) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	queue := &scheduling.Queue{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, queue); err != nil {
		return s.explain(err)
	}
	if !s.output.isTable() && !isWatch {
		return s.output.print(s, queue)
	}
	return listQueues(ctx, s, name, "", isWatch)
}

// listQueues lists the queues with some labels, or the one of a name.
func listQueues(ctx context.Context, s *session, name, labels string, isWatch bool) error {
	options, err := labelOption(labels)
	if err != nil {
		return err
	}
	if name != "" {
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)})
	}
	return show(ctx, s, listing[*scheduling.Queue]{
		kind: "queue", list: &scheduling.QueueList{}, columns: queueColumns, options: options, isWatch: isWatch,
	})
}

var queueColumns = []column[*scheduling.Queue]{
	{title: "Name", width: 25, cell: func(q *scheduling.Queue) string { return q.Name }},
	{title: "Weight", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Spec.Weight) }},
	{title: "State", width: 8, cell: func(q *scheduling.Queue) string { return string(q.Status.State) }},
	{title: "Parent", width: 8, cell: func(q *scheduling.Queue) string { return q.Spec.Parent }},
	{title: "Inqueue", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Status.Inqueue) }},
	{title: "Pending", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Status.Pending) }},
	{title: "Running", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Status.Running) }},
	{title: "Unknown", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Status.Unknown) }},
	{title: "Completed", width: 8, cell: func(q *scheduling.Queue) string { return number(q.Status.Completed) }},
	{title: "Priority", cell: func(q *scheduling.Queue) string { return number(q.Spec.Priority) }},
	{title: "Share", cell: func(q *scheduling.Queue) string { return share(q) }},
	{title: "Allocated", cell: func(q *scheduling.Queue) string { return amounts(q.Status.Allocated) }},
	{title: "Deserved", cell: func(q *scheduling.Queue) string { return amounts(q.Spec.Deserved) }},
	{title: "Guarantee", isWide: true, cell: func(q *scheduling.Queue) string { return amounts(q.Spec.Guarantee.Resource) }},
	{title: "Capability", isWide: true, cell: func(q *scheduling.Queue) string { return amounts(q.Spec.Capability) }},
	{title: "Reclaimable", isWide: true, cell: func(q *scheduling.Queue) string {
		if q.Spec.Reclaimable != nil && !*q.Spec.Reclaimable {
			return "false"
		}
		return "true"
	}},
	{title: "Age", isWide: true, cell: func(q *scheduling.Queue) string { return age(q.CreationTimestamp) }},
}

// share is how much of what it deserves a queue holds, of the resource of which it holds most; "" if it deserves nothing by
// name.
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
