package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/importer/kueue"
)

func newImportKueueCommand() *cobra.Command {
	var accepted, objects []string
	var output string
	command := &cobra.Command{
		Use:   "kueue CONFIGURATION.YAML",
		Short: "Turn a Configuration of Kueue into a configuration of the scheduler",
		Long: `Reads a Configuration of config.kueue.x-k8s.io, v1beta1 or v1beta2, or the ConfigMap kueue-manager-config that holds it, and prints the
ConfigMap of the scheduler. CONFIGURATION.YAML is a file or - for the standard input. The objects of kueue.x-k8s.io stay as they are.

The error output has a line for each key: kept, changed, or lost. What is lost has to be accepted by --accept with the path of its line.

With --objects, which is a file as kubectl get -o yaml prints it, there is a line for each object with the label kueue.x-k8s.io/queue-name
of which no Workload is made, such as a Deployment or a JobSet. It is lost unless its pod templates have the label, too, since its pods
would run outside all quotas. --accept unmanaged accepts all of these.

The exit code is 0 if nothing is lost that is not accepted, 2 if something is, and then nothing is printed, and 1 if the text is no
Configuration.`,
		Example: `  kubectl -n kueue-system get configmap kueue-manager-config -o yaml | hekla import kueue - > configuration.yaml
  kubectl get deployments,statefulsets,jobsets -A -l kueue.x-k8s.io/queue-name -o yaml > labelled.yaml
  hekla import kueue kueue-configuration.yaml --objects labelled.yaml > configuration.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return importKueue(command, arguments[0], objects, output, accepted)
		},
	}
	command.Flags().StringArrayVar(&accepted, "accept", nil, "the path of a line whose loss is accepted (may be repeated)")
	command.Flags().StringArrayVar(&objects, "objects", nil, "a file of objects that have the label kueue.x-k8s.io/queue-name (may be repeated)")
	command.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return command
}

func importKueue(command *cobra.Command, path string, objects []string, output string, accepted []string) error {
	if output != "yaml" && output != "json" {
		return fmt.Errorf("--output %q: it must be yaml or json", output)
	}
	text, err := readInput(command, path)
	if err != nil {
		return err
	}
	options := kueue.Options{Accepted: accepted}
	for _, file := range objects {
		content, err := readInput(command, file)
		if err != nil {
			return err
		}
		read, err := kueue.ReadObjects(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("--objects %s: %w", file, err)
		}
		options.Objects = append(options.Objects, read...)
	}
	result, err := kueue.Import(string(text), options)
	if err != nil {
		return fmt.Errorf("%s cannot be imported:\n%w", path, err)
	}
	errOut := command.ErrOrStderr()
	for _, line := range result.Lines {
		fmt.Fprintln(errOut, line)
	}
	if result.IsLossy() {
		return lossy{errors.New("something is lost and nothing is printed; accept it by --accept with the path of its line")}
	}
	for _, note := range result.Notes {
		fmt.Fprintln(errOut, "note   ", note)
	}
	return printObjects(command.OutOrStdout(), []runtime.Object{result.ConfigMap}, output)
}
