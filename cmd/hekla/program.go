package main

import (
	"path/filepath"
	"regexp"
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

// typedAs is what a person types for an executable: kubectl itself starts its plugin.
func typedAs(executable string) (typed string, isPlugin bool) {
	switch strings.TrimSuffix(filepath.Base(executable), ".exe") {
	case pluginName, completionName:
		return pluginProgram, true
	}
	return executable, false
}

// newProgram returns the program that this executable is when it was started like this, and what it is called before
// its errors: under the name of a link to it, it is another than hekla. What it says to type next begins as it was
// typed itself, with its folder.
func newProgram(arguments []string, streams genericiooptions.IOStreams) (program *cobra.Command, called string) {
	name, rest := strings.TrimSuffix(filepath.Base(arguments[0]), ".exe"), arguments[1:]
	if program := cli.ForName(name, streams); program != nil {
		cli.PointToHelp(program)
		program.SetArgs(rest)
		return program, name
	}
	typed, isPlugin := typedAs(arguments[0])
	if called = "hekla"; isPlugin {
		called = typed
	}
	if name == completionName {
		rest = append([]string{cobra.ShellCompRequestCmd}, rest...)
	}
	program = newCommand()
	if typed != program.Name() {
		program.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: typed}
	}
	cli.AddCommands(program, typed, streams)
	cli.Group(program)
	cli.PointToHelp(program)
	callAs(program, typed, ownCommand(program))
	program.SetArgs(rest)
	return program, called
}

// ownName is the program at the beginning of an example, or where another is piped into it.
var ownName = regexp.MustCompile(`(?m)(^  |\| )hekla `)

// ownCommand is the program with one of its commands, as sentences name them.
func ownCommand(program *cobra.Command) *regexp.Regexp {
	var names []string
	for _, command := range program.Commands() {
		names = append(names, regexp.QuoteMeta(command.Name()))
	}
	return regexp.MustCompile(`\bhekla (` + strings.Join(names, "|") + `)\b`)
}

// callAs writes the examples and sentences of a command, and of those below it, as they are typed here.
func callAs(command *cobra.Command, typed string, named *regexp.Regexp) {
	literal := strings.ReplaceAll(typed, "$", "$$")
	command.Example = ownName.ReplaceAllString(command.Example, "${1}"+literal+" ")
	command.Long = named.ReplaceAllString(command.Long, literal+" ${1}")
	for _, below := range command.Commands() {
		callAs(below, typed, named)
	}
}
