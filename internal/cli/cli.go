package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/version"
)

// AddCommands adds the verbs to the command hekla, or to what else it is called: job, queue, jobflow, jobtemplate, pod and
// version. The program is what a person types to start the command.
func AddCommands(root *cobra.Command, program string, streams genericiooptions.IOStreams) {
	addVerbs(root, newSession(program, false, streams))
}

func addVerbs(root *cobra.Command, s *session) {
	root.AddCommand(newJobCommand(s), newQueueCommand(s), newFlowCommand(s, jobFlow), newFlowCommand(s, jobTemplate), newPodCommand(s),
		newVersionCommand(s))
}

// newGroup returns the verbs about one kind of object.
func newGroup(s *session, use string, aliases []string, short string, verbs ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Aliases: aliases, Short: short, Args: cobra.NoArgs, RunE: showHelp}
	group.AddCommand(verbs...)
	if s.isVolcano { // where each verb has them, and the program those of the log
		for _, verb := range verbs {
			s.addConnectionFlags(verb.Flags())
		}
	} else {
		s.addConnectionFlags(group.PersistentFlags())
		addLogFlags(group)
	}
	addSynonyms(group)
	return group
}

// showHelp is what a command does that needs a verb and got none.
func showHelp(command *cobra.Command, _ []string) error { return command.Help() }

// Names are the programs, besides hekla, that the executable is when it is linked under their names.
var Names = []string{"vcctl", "vsub", "vjobs", "vqueues", "vcancel", "vsuspend", "vresume"}

// ForName returns the program of one of the Names, nil for any other name.
func ForName(name string, streams genericiooptions.IOStreams) *cobra.Command {
	s := newSession("vcctl", true, streams)
	var command *cobra.Command
	switch name {
	case "vcctl":
		command = &cobra.Command{Use: name, Args: cobra.NoArgs, RunE: showHelp}
		command.SilenceUsage, command.SilenceErrors = true, true
		addVerbs(command, s)
		addLogFlags(command)
		addSynonyms(command)
		speakAsVolcano(command)
		return command
	case "vsub":
		s.defaultNamespace = os.Getenv("VOLCANO_DEFAULT_JOB_NAMESPACE")
		command = newJobRunCommand(s, runDefaults{
			image:     cmp.Or(os.Getenv("VOLCANO_DEFAULT_IMAGE"), defaultImage),
			scheduler: cmp.Or(os.Getenv("VOLCANO_SCHEDULER_NAME"), defaultScheduler),
		}, slurmShorthands)
		command.Use = "vsub [NAME]"
	case "vjobs":
		command = newJobsCommand(s)
	case "vqueues":
		command = newQueuesCommand(s)
	case "vcancel":
		command = newJobActionCommand(s, deleteJob, name, slurmShorthands)
	case "vsuspend":
		command = newJobActionCommand(s, suspendJob, name, slurmShorthands)
	case "vresume":
		command = newJobActionCommand(s, resumeJob, name, slurmShorthands)
	default:
		return nil
	}
	command.Aliases, command.Example = nil, ""
	command.SilenceUsage, command.SilenceErrors = true, true
	s.addConnectionFlags(command.Flags())
	addLogFlags(command)
	addSynonyms(command)
	speakAsVolcano(command)
	return command
}

// newJobsCommand returns vjobs: with a name it is job view, without job list.
func newJobsCommand(s *session) *cobra.Command {
	var filter jobFilter
	command := &cobra.Command{
		Use: "vjobs [NAME]", Short: "List jobs, or show one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeJobs,
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.name == "" && len(arguments) == 0 {
				return listJobs(command.Context(), s, filter)
			}
			if s.allNamespaces || filter != (jobFilter{}) {
				return errors.New("a job is shown by its name, and the other flags are for lists; leave out the name, or them")
			}
			names, err := s.names("job", arguments)
			if err != nil {
				return err
			}
			return viewJob(command.Context(), s, names[0])
		},
	}
	s.addNamespaceFlag(command, slurmShorthands)
	s.addNameFlag(command, slurmShorthands.name, "name of the job to show")
	filter.addFlags(s, command)
	s.addTableFlags(command)
	return command
}

// newQueuesCommand returns vqueues: with a name it is queue get, without queue list.
func newQueuesCommand(s *session) *cobra.Command {
	var isWatch bool
	command := &cobra.Command{
		Use: "vqueues [NAME]", Short: "List queues, or show one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: s.completeQueues,
		RunE: func(command *cobra.Command, arguments []string) error {
			if s.name == "" && len(arguments) == 0 {
				return listQueues(command.Context(), s, "", "", isWatch)
			}
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

func newVersionCommand(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.Out, "Version: %s\nGo Version: %s\nGo OS/Arch: %s/%s\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
