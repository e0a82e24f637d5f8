package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func newImportCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "import", Short: "Turn the configuration of another scheduler into objects of Hekla", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newImportKueueCommand(), newImportYuniKornCommand())
	return command
}

// lossy makes the exit code 2.
type lossy struct{ error }

func (lossy) ExitCode() int { return 2 }

func readInput(command *cobra.Command, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(command.InOrStdin())
	}
	return os.ReadFile(path)
}

func printObjects(out io.Writer, objects []runtime.Object, output string) error {
	items := make([]any, len(objects))
	for i, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		if spec, ok := content["spec"].(map[string]any); ok {
			// The API server would take an empty guarantee of the root as a change of its resources, and refuse it.
			if guarantee, ok := spec["guarantee"].(map[string]any); ok && len(guarantee) == 0 {
				delete(spec, "guarantee")
			}
			if len(spec) == 0 {
				delete(content, "spec")
			}
		}
		items[i] = content
	}
	if output == "json" {
		text, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, "", "  ")
		if err == nil {
			_, err = fmt.Fprintln(out, string(text))
		}
		return err
	}
	for i, item := range items {
		text, err := yaml.Marshal(item)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out, "---")
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
