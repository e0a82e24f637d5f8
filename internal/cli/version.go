package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"hekla.sh/hekla/internal/cli/ask"
	"hekla.sh/hekla/internal/cli/session"
	"hekla.sh/hekla/internal/version"
)

// versionPatience is how long the API server may take to say its version: the own one is said in any case.
const versionPatience = 5 * time.Second

func newVersionCommand(s *session.Session) *cobra.Command {
	var isClientOnly bool
	command := &cobra.Command{
		Use: "version", Short: "Say which version this is, and which the cluster has", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return sayVersions(command.Context(), s, !isClientOnly && !s.IsVolcano)
		},
	}
	if !s.IsVolcano {
		command.Flags().BoolVar(&isClientOnly, "client", false, "only the version of this program")
		s.AddConnectionFlags(command.Flags())
		session.AddLogFlags(command)
		session.AddSynonyms(command)
	}
	return command
}

// addVersionFlag adds --version to the program itself: the same as its verb.
func addVersionFlag(root *cobra.Command, s *session.Session) {
	var isAsked bool
	root.Flags().BoolVar(&isAsked, "version", false, "say which version this is, and which the cluster has")
	root.RunE = func(command *cobra.Command, _ []string) error {
		if !isAsked {
			return command.Help()
		}
		return sayVersions(command.Context(), s, true)
	}
}

// sayVersions says the version of this program and, with the cluster, those of the API server and of the scheduler that
// leads. What cannot be found out is said on the error output.
func sayVersions(ctx context.Context, s *session.Session, withCluster bool) error {
	if _, err := fmt.Fprintf(s.Out, "Version: %s\nGo Version: %s\nGo OS/Arch: %s/%s\n", version.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil || !withCluster {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, versionPatience)
	defer cancel()
	for _, side := range []struct {
		name string
		ask  func(context.Context, *session.Session) (string, error)
	}{{"Kubernetes", kubernetesVersion}, {"Scheduler", ask.SchedulerVersion}} {
		said, err := side.ask(ctx, s)
		if err != nil {
			_, _ = fmt.Fprintf(s.ErrOut, "The version of the %s of the cluster is not known: %v\n", map[string]string{"Kubernetes": "API server", "Scheduler": "scheduler"}[side.name], s.Explain(err))
			continue
		}
		if _, err := fmt.Fprintf(s.Out, "%s Version: %s\n", side.name, said); err != nil {
			return err
		}
	}
	return nil
}

func kubernetesVersion(_ context.Context, s *session.Session) (string, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return "", err
	}
	config.Timeout = versionPatience
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	info, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}
