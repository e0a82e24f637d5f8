package main

import (
	"path/filepath"
	"regexp"
	"slices"
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
	var commands []string
	for _, command := range program.Commands() {
		commands = append(commands, command.Name())
	}
	callAs(program, typed, commands)
	program.SetArgs(rest)
	return program, called
}

// ownName is the program at the beginning of an example, or where another is piped into it.
var ownName = regexp.MustCompile(`(?m)(^  |\| )hekla `)

// ownCommand is the program with what may be one of its commands, in a sentence.
var ownCommand = regexp.MustCompile(`\bhekla [a-z]+\b`)

// callAs writes the examples and sentences of a command, and of those below it, as they are typed here. The program has
// the commands of these names.
func callAs(command *cobra.Command, typed string, commands []string) {
	command.Example = ownName.ReplaceAllString(command.Example, "${1}"+strings.ReplaceAll(typed, "$", "$$")+" ")
	command.Long = ownCommand.ReplaceAllStringFunc(command.Long, func(said string) string {
		if _, name, _ := strings.Cut(said, " "); slices.Contains(commands, name) {
			return typed + " " + name
		}
		return said
	})
	for _, below := range command.Commands() {
		callAs(below, typed, commands)
	}
}
