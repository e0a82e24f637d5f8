package quota

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// NewCommands returns the verbs create, list, stop, resume and tree. Lists of other kinds are listed, too.
func NewCommands(s *session.Session, others ...*cobra.Command) []*cobra.Command {
	return []*cobra.Command{
		session.NewGroup(s, "create", nil, "Create a ClusterQueue, LocalQueue or ResourceFlavor",
			newCreateClusterQueue(s), newCreateLocalQueue(s), newCreateFlavor(s)),
		session.NewGroup(s, "list", nil, "List ClusterQueues, LocalQueues, Workloads, ResourceFlavors or pods",
			append([]*cobra.Command{newListClusterQueues(s), newListLocalQueues(s), newListWorkloads(s), newListFlavors(s)}, others...)...),
		session.NewGroup(s, "stop", nil, "Stop a ClusterQueue, LocalQueue or Workload",
			newSwitch(s, "stop", "clusterqueue", false), newSwitch(s, "stop", "localqueue", true), newSwitch(s, "stop", "workload", true)),
		session.NewGroup(s, "resume", nil, "Resume a ClusterQueue, LocalQueue or Workload",
			newSwitch(s, "resume", "clusterqueue", false), newSwitch(s, "resume", "localqueue", true), newSwitch(s, "resume", "workload", true)),
		NewTreeCommand(s),
	}
}

// aliases are other names of the kinds, those of kubectl.
var aliases = map[string][]string{
	"clusterqueue": {"cq", "clusterqueues"}, "localqueue": {"lq", "localqueues"}, "workload": {"wl", "kwl", "workloads"},
	"resourceflavor": {"rf", "resourceflavors"},
}

// newSwitch returns the verb that stops or resumes objects of a kind.
func newSwitch(s *session.Session, verb, kind string, isNamespaced bool) *cobra.Command {
	var keeps bool
	short := map[string]string{
		"stop clusterqueue": "Admit nothing more in ClusterQueues, and evict what is admitted", "resume clusterqueue": "Admit workloads in ClusterQueues again",
		"stop localqueue": "Admit nothing more of LocalQueues, and evict what is admitted", "resume localqueue": "Admit workloads of LocalQueues again",
		"stop workload": "Make Workloads inactive, which evicts them", "resume workload": "Make Workloads active again",
	}[verb+" "+kind]
	command := &cobra.Command{
		Use: kind + " NAME...", Aliases: aliases[kind], Short: short, Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			namespace := ""
			if isNamespaced {
				var err error
				if namespace, err = s.Namespace(); err != nil {
					return err
				}
			}
			var problems []error
			for _, name := range names {
				problems = append(problems, set(command.Context(), s, verb, kind, keeps, metav1.ObjectMeta{Namespace: namespace, Name: name}))
			}
			return errors.Join(problems...)
		},
	}
	if isNamespaced {
		s.AddNamespaceFlag(command, session.VcctlShorthands)
	}
	if verb == "stop" && kind != "workload" {
		command.Flags().BoolVar(&keeps, "keep-already-running", false, "leave what is admitted as it is")
	}
	s.AddDryRunFlag(command)
	s.AddOutputFlag(command, "")
	return command
}

// set writes the field by which an object is stopped or resumed.
func set(ctx context.Context, s *session.Session, verb, kind string, keeps bool, of metav1.ObjectMeta) error {
	policy, isActive := v1beta2.StopNone, verb == "resume"
	if verb == "stop" {
		policy = v1beta2.HoldAndDrain
		if keeps {
			policy = v1beta2.Hold
		}
	}
	var object, before client.Object
	switch kind {
	case "clusterqueue":
		q := &v1beta2.ClusterQueue{ObjectMeta: of}
		before = q.DeepCopy()
		q.Spec.StopPolicy, object = &policy, q
	case "localqueue":
		q := &v1beta2.LocalQueue{ObjectMeta: of}
		before = q.DeepCopy()
		q.Spec.StopPolicy, object = &policy, q
	default:
		w := &v1beta2.Workload{ObjectMeta: of}
		before = w.DeepCopy()
		w.Spec.Active, object = &isActive, w
	}
	done := fmt.Sprintf("%s %s %s successfully", verb, kind, of.Name)
	return s.Write(object, done, func(api client.Client) error { return api.Patch(ctx, object, client.MergeFrom(before)) })
}
