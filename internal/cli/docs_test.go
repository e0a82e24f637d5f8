package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/cli"
)

// verbsOf are the commands below a command that do something, without those of cobra.
func verbsOf(command *cobra.Command) []*cobra.Command {
	if !command.HasSubCommands() {
		return []*cobra.Command{command}
	}
	var all []*cobra.Command
	for _, child := range command.Commands() {
		all = append(all, verbsOf(child)...)
	}
	return all
}

func TestEveryVerbAndFlagIsDescribed(t *testing.T) {
	content, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(content)
	verbs := verbsOf(program("hekla", genericiooptions.NewTestIOStreamsDiscard()))
	if len(verbs) != 48 {
		t.Errorf("there are %d verbs", len(verbs))
	}
	for _, verb := range verbs {
		path := strings.TrimPrefix(verb.CommandPath(), "hekla ")
		row := ""
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "| `") && strings.Contains(strings.SplitN(line, "|", 3)[1], "`"+path+"`") {
				row = line
			}
		}
		if row == "" {
			t.Errorf("docs/cli.md does not describe %s", path)
		}
		check := func(flag *pflag.Flag) {
			spelled := "--" + flag.Name
			if flag.Shorthand != "" {
				spelled = "-" + flag.Shorthand + "/" + spelled
			}
			general := page[strings.Index(page, "## Flags of all verbs"):]
			if !flag.Hidden && !strings.Contains(row, spelled) && !strings.Contains(general, spelled) && flag.Name != "help" &&
				!(strings.HasPrefix(path, "queue ") && flag.Name == "name") {
				t.Errorf("docs/cli.md does not describe %s of %s", spelled, path)
			}
		}
		verb.LocalNonPersistentFlags().VisitAll(check)
		verb.InheritedFlags().VisitAll(check)
	}
	for _, name := range cli.Names {
		if !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("docs/cli.md does not describe %s", name)
		}
	}
}

// The flags of vcctl and of its siblings, by the facts of its manual.
func TestEveryFlagOfVcctlIsThere(t *testing.T) {
	for name, flags := range map[string]string{
		"vcctl job run":              "i/image m/min r/replicas R/requests L/limits S/scheduler f/filename n/namespace N/name s/master k/kubeconfig",
		"vcctl job list":             "n/namespace S/scheduler q/queue /all-namespaces /selector s/master k/kubeconfig",
		"vcctl job view":             "n/namespace N/name s/master k/kubeconfig",
		"vcctl job suspend":          "n/namespace N/name s/master k/kubeconfig",
		"vcctl job resume":           "n/namespace N/name s/master k/kubeconfig",
		"vcctl job delete":           "n/namespace N/name s/master k/kubeconfig",
		"vcctl queue create":         "n/name w/weight S/state s/master k/kubeconfig",
		"vcctl queue delete":         "n/name s/master k/kubeconfig",
		"vcctl queue operate":        "n/name w/weight a/action s/master k/kubeconfig",
		"vcctl queue list":           "s/master k/kubeconfig",
		"vcctl queue get":            "n/name s/master k/kubeconfig",
		"vcctl jobflow create":       "f/file s/master k/kubeconfig",
		"vcctl jobflow list":         "n/namespace /all-namespaces s/master k/kubeconfig",
		"vcctl jobflow get":          "N/name n/namespace s/master k/kubeconfig",
		"vcctl jobflow describe":     "N/name n/namespace o/format s/master k/kubeconfig",
		"vcctl jobflow delete":       "N/name n/namespace f/file s/master k/kubeconfig",
		"vcctl jobtemplate create":   "f/file s/master k/kubeconfig",
		"vcctl jobtemplate list":     "n/namespace s/master k/kubeconfig",
		"vcctl jobtemplate get":      "N/name n/namespace s/master k/kubeconfig",
		"vcctl jobtemplate describe": "N/name n/namespace o/format s/master k/kubeconfig",
		"vcctl jobtemplate delete":   "N/name n/namespace f/file s/master k/kubeconfig",
		"vcctl pod list":             "q/queue j/job n/namespace /all-namespaces s/master k/kubeconfig",
		"vcctl version":              "",
		"vsub":                       "i/image m/min r/replicas R/requests L/limits S/scheduler c/command N/namespace n/name s/master k/kubeconfig",
		"vjobs":                      "N/namespace n/name S/scheduler /all-namespaces /selector s/master k/kubeconfig",
		"vqueues":                    "n/name s/master k/kubeconfig",
		"vcancel":                    "N/namespace n/name s/master k/kubeconfig",
		"vsuspend":                   "N/namespace n/name s/master k/kubeconfig",
		"vresume":                    "N/namespace n/name s/master k/kubeconfig",
	} {
		words := strings.Fields(name)
		command, rest, err := program(words[0], genericiooptions.NewTestIOStreamsDiscard()).Find(words[1:])
		if err != nil || len(rest) > 0 {
			t.Errorf("%s is not there: %v", name, err)
			continue
		}
		command.InheritedFlags()
		for _, flag := range strings.Fields(flags) {
			letter, long, _ := strings.Cut(flag, "/")
			switch found := command.Flag(long); {
			case found == nil:
				t.Errorf("%s has no --%s", name, long)
			case letter != "" && found.Shorthand != letter:
				t.Errorf("%s has -%s for --%s, want -%s", name, found.Shorthand, long, letter)
			}
		}
	}
}
