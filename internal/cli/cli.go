package cli

import (
	"cmp"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/cli/ask"
	"hekla.sh/hekla/internal/cli/job"
	"hekla.sh/hekla/internal/cli/jobs"
	"hekla.sh/hekla/internal/cli/quota"
	"hekla.sh/hekla/internal/cli/session"
)

// AddCommands adds the verbs to the command hekla, or to what else it is called. The program is what a person types to
// start the command.
func AddCommands(root *cobra.Command, program string, streams genericiooptions.IOStreams) {
	addVerbs(root, session.New(program, false, streams))
}

func addVerbs(root *cobra.Command, s *session.Session) {
	root.AddCommand(job.NewCommand(s), newQueueCommand(s), newFlowCommand(s, jobFlow), newFlowCommand(s, jobTemplate), newPodCommand(s),
		newVersionCommand(s))
	if !s.IsVolcano {
		root.AddCommand(quota.NewCommands(s, newListPodsCommand(s))...)
		root.AddCommand(ask.NewCommands(s)...)
		root.AddCommand(jobs.NewCommand(s))
		addVersionFlag(root, s)
	}
}

// groups are the groups of commands in the help, in its order, with the commands in them.
var groups = []struct {
	title    string
	commands []string
}{
	{"Jobs:", []string{"jobs", "job", "jobflow", "jobtemplate", "pod"}},
	{"Queues and quota:", []string{"queue", "tree", "create", "list", "stop", "resume"}},
	{"Why and what if:", []string{"why", "try", "diag", "simulate", "snapshot", "replay"}},
	{"A cluster on this machine:", []string{"up", "down", "demo"}},
	{"Migration and checks:", []string{"import", "audit", "bench", "chaos"}},
	{"Other commands:", []string{"version", "completion", "help"}},
}

// Group puts the commands of hekla into the groups of its help.
func Group(root *cobra.Command) {
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, command := range root.Commands() {
			if slices.Contains(group.commands, command.Name()) {
				command.GroupID = group.title
			}
		}
	}
	last := groups[len(groups)-1].title
	root.SetHelpCommandGroupID(last)
	root.SetCompletionCommandGroupID(last)
}

// Names are the programs, besides hekla, that the executable is when it is linked under their names.
var Names = []string{"vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"}

// ForName returns the program of one of the Names, nil for any other name.
func ForName(name string, streams genericiooptions.IOStreams) *cobra.Command {
	s := session.New("vcctl", true, streams)
	var command *cobra.Command
	switch name {
	case "vcctl":
		command = &cobra.Command{Use: name, Args: cobra.NoArgs, RunE: session.ShowHelp}
		command.SilenceUsage, command.SilenceErrors = true, true
		addVerbs(command, s)
		session.AddLogFlags(command)
		session.AddSynonyms(command)
		speakAsVolcano(command)
		return command
	case "vsub":
		s.DefaultNamespace = os.Getenv("VOLCANO_DEFAULT_JOB_NAMESPACE")
		command = job.NewRunCommand(s, job.RunDefaults{
			Image:     cmp.Or(os.Getenv("VOLCANO_DEFAULT_IMAGE"), job.DefaultImage),
			Scheduler: cmp.Or(os.Getenv("VOLCANO_SCHEDULER_NAME"), job.DefaultScheduler),
		}, session.SlurmShorthands)
		command.Use = "vsub [NAME]"
	case "vjobs":
		command = job.NewVjobsCommand(s)
	case "vqueues":
		command = newQueuesCommand(s)
	case "vcancel":
		command = job.NewActionCommand(s, job.Delete, name, session.SlurmShorthands)
	case "vsuspend":
		command = job.NewActionCommand(s, job.Suspend, name, session.SlurmShorthands)
	case "vresume":
		command = job.NewActionCommand(s, job.Resume, name, session.SlurmShorthands)
	default:
		return nil
	}
	command.Aliases, command.Example = nil, ""
	command.SilenceUsage, command.SilenceErrors = true, true
	s.AddConnectionFlags(command.Flags())
	session.AddLogFlags(command)
	session.AddSynonyms(command)
	speakAsVolcano(command)
	return command
}

// newQueuesCommand returns vqueues: with a name it is queue get, without queue list.
func newQueuesCommand(s *session.Session) *cobra.Command {
	var isWatch bool
	command := &cobra.Command{
		Use: "vqueues [NAME]", Short: "List queues, or show one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.CompleteQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.Name == "" && len(arguments) == 0 {
				return listQueues(command.Context(), s, "", "", "", isWatch)
			}
			names, err := s.Names("queue", arguments)
			if err != nil {
				return err
			}
			return getQueue(command.Context(), s, names[0], "", isWatch)
		},
	}
	addQueueNameFlag(s, command)
	session.AddWatchFlag(command, &isWatch)
	s.AddTableFlags(command)
	return command
}
