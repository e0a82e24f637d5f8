package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/importer/yunikorn"
	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// importYuniKornFlags are the flags of `hekla import yunikorn`.
type importYuniKornFlags struct {
	partition, parent, output string
	files, accepted           []string
}

func newImportYuniKornCommand() *cobra.Command {
	f := &importYuniKornFlags{}
	command := &cobra.Command{
		Use:   "yunikorn QUEUES.YAML",
		Short: "Turn queues.yaml of YuniKorn into Queues, Namespaces and a configuration of the scheduler",
		Long: `Reads queues.yaml, or a ConfigMap yunikorn-configs that holds it, and prints what is to be applied: Queues, the Namespaces of -f
with the queue of their pods, and the ConfigMap of the scheduler. QUEUES.YAML is a file or - for the standard input.

The error output has a line for each key: kept, changed, or lost. What is lost has to be accepted by --accept, with the key or the
path of the line. Keys that may be lost: ` + strings.Join(yunikorn.Losable(), ", ") + `.

The exit code is 0 if nothing is lost that is not accepted, 2 if something is, and then nothing is printed, and 1 if YuniKorn itself
would refuse the file.`,
		Example: `  hekla import yunikorn queues.yaml | kubectl apply -f -
  kubectl get namespaces -o yaml | hekla import yunikorn queues.yaml -f - --accept submitacl`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return importYuniKorn(command, f, arguments[0])
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.partition, "partition", "default", "the partition to import")
	flags.StringVar(&f.parent, "parent", schedulingv1beta1.RootQueue, "the Queue that takes the place of root")
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file with the Namespaces that get queues, and with the Queue of --parent (may be repeated)")
	flags.StringArrayVar(&f.accepted, "accept", nil, "a key, or the path of a line, whose loss is accepted (may be repeated)")
	flags.StringVarP(&f.output, "output", "o", "yaml", "yaml or json")
	return command
}

func importYuniKorn(command *cobra.Command, f *importYuniKornFlags, path string) error {
	if f.output != "yaml" && f.output != "json" {
		return fmt.Errorf("--output %q: it must be yaml or json", f.output)
	}
	if path == "-" && slices.Contains(f.files, "-") {
		return errors.New("the standard input can be read once; give queues.yaml, or the manifests, as a file")
	}
	text, err := readInput(command, path)
	if err != nil {
		return err
	}
	options := yunikorn.Options{Partition: f.partition, Parent: f.parent, Accepted: f.accepted}
	others, problems := 0, []error(nil)
	for _, file := range f.files {
		manifests, err := readInput(command, file)
		if err != nil {
			return err
		}
		skipped, err := readManifests(manifests, f.parent, &options)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s cannot be read:\n%w", file, err))
		}
		others += skipped
	}
	result, err := yunikorn.Import(string(text), options)
	if err != nil {
		problems = append(problems, fmt.Errorf("%s cannot be imported:\n%w", path, err))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	errOut := command.ErrOrStderr()
	for _, line := range result.Lines {
		fmt.Fprintln(errOut, line)
	}
	if unused := result.Unused(f.accepted); len(unused) > 0 {
		fmt.Fprintf(errOut, "note    --accept %s: nothing of that is lost\n", strings.Join(unused, ", "))
	}
	if others > 0 {
		fmt.Fprintf(errOut, "note    -f has other objects than Namespaces and the Queue %s, which are not printed: %d\n", f.parent, others)
	}
	if result.IsLossy() {
		return lossy{errors.New("something is lost and nothing is printed; accept it by --accept with the key or the path of its line")}
	}
	for _, note := range result.Notes {
		fmt.Fprintln(errOut, "note   ", note)
	}
	return printObjects(command.OutOrStdout(), result.Objects, f.output)
}

// readManifests puts the Namespaces of a file, and the Queue of a name, into the options. It returns how many objects
// are neither. The error lists all objects that cannot be read.
func readManifests(text []byte, parent string, options *yunikorn.Options) (others int, err error) {
	var problems []error
	for document, err := range bounds.Documents(bytes.NewReader(text)) {
		if err != nil {
			problems = append(problems, err)
			continue
		}
		take := func(object *unstructured.Unstructured) {
			isTaken, err := takeManifest(object, parent, options)
			switch {
			case err != nil:
				problems = append(problems, document.Problem(err))
			case !isTaken:
				others++
			}
		}
		object := &unstructured.Unstructured{}
		switch err := bounds.UnmarshalKubernetesJSON(document.JSON, &object.Object); {
		case err != nil:
			problems = append(problems, document.Problem(err))
		case len(object.Object) == 0: // an empty document
		case object.IsList():
			if err := eachItem(object, take); err != nil {
				problems = append(problems, document.Problem(err))
			}
		default:
			take(object)
		}
	}
	return others, errors.Join(problems...)
}

// eachItem calls a function with each object of a list.
func eachItem(list *unstructured.Unstructured, take func(object *unstructured.Unstructured)) error {
	return list.EachListItem(func(item runtime.Object) error {
		take(item.(*unstructured.Unstructured))
		return nil
	})
}

func takeManifest(object *unstructured.Unstructured, parent string, options *yunikorn.Options) (isTaken bool, err error) {
	switch object.GroupVersionKind().String() {
	case corev1.SchemeGroupVersion.WithKind("Namespace").String():
		namespace := &corev1.Namespace{}
		if err := convert(object, namespace); err != nil {
			return false, fmt.Errorf("reading Namespace %s: %w", object.GetName(), err)
		}
		if namespace.Name == "" {
			return false, errors.New("reading a Namespace: metadata.name is missing")
		}
		options.Namespaces = append(options.Namespaces, namespace)
		return true, nil
	case schedulingv1beta1.SchemeGroupVersion.WithKind("Queue").String():
		if object.GetName() != parent {
			return false, nil
		}
		queue := &schedulingv1beta1.Queue{}
		if err := convert(object, queue); err != nil {
			return false, fmt.Errorf("reading Queue %s: %w", parent, err)
		}
		options.ParentQueue = queue
		return true, nil
	}
	return false, nil
}

// convert reads an object as one of a type. The error names the field.
func convert(object *unstructured.Unstructured, into any) error {
	text, err := object.MarshalJSON()
	if err == nil {
		err = bounds.UnmarshalJSON(text, into)
	}
	return err
}
