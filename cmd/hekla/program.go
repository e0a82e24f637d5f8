package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/cli"
)

const (
	// pluginName is what kubectl starts for `kubectl hekla`, and completionName what it asks for completions of it.
	pluginName, completionName = "kubectl-hekla", "kubectl_complete-hekla"
	pluginProgram              = "kubectl hekla"
)

// newProgram returns the program that this executable is when it was started like this, and how a person calls it:
// under the name of a link to it, it is another than hekla.
func newProgram(arguments []string, streams genericiooptions.IOStreams) (program *cobra.Command, called string) {
	name, rest := strings.TrimSuffix(filepath.Base(arguments[0]), ".exe"), arguments[1:]
	if program := cli.ForName(name, streams); program != nil {
		cli.PointToHelp(program)
		program.SetArgs(rest)
		return program, name
	}
	called = "hekla"
	switch name {
	case pluginName:
		called = pluginProgram
	case completionName:
		called, rest = pluginProgram, append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	program = newCommand()
	if called != program.Name() {
		program.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called}
	}
	cli.AddCommands(program, called, streams)
	cli.Group(program)
	cli.PointToHelp(program)
	program.SetArgs(rest)
	return program, called
}
