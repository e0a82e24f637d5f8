package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"hekla.sh/hekla/internal/cli"
)

// start starts the executable under a name, and returns how it is called and what it says.
func start(t *testing.T, arguments ...string) (called, out string, err error) {
	t.Helper()
	var text bytes.Buffer
	program, called := newProgram(arguments, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &text, ErrOut: &text})
	program.SetOut(&text)
	program.SetErr(&text)
	err = program.ExecuteContext(context.Background())
	return called, text.String(), err
}

func TestALinkIsTheProgramOfItsName(t *testing.T) {
	for _, name := range cli.Names {
		called, out, err := start(t, "/usr/local/bin/"+name, "--help")
		if err != nil || called != name || !strings.Contains(out, "  "+name+" [") && !strings.Contains(out, "  "+name+" NAME") {
			t.Errorf("%s is %s: %v\n%s", name, called, err, out)
		}
		if strings.Contains(out, "simulate") {
			t.Errorf("%s offers what is hekla's own", name)
		}
	}
}

func TestThePluginOfKubectlIsAllOfHekla(t *testing.T) {
	called, out, err := start(t, "kubectl-hekla.exe", "job", "list", "--help")
	if err != nil || called != "kubectl hekla" || !strings.Contains(out, "  kubectl hekla job list [flags]") {
		t.Errorf("it is %s: %v\n%s", called, err, out)
	}
	if _, out, err := start(t, "kubectl_complete-hekla", "simul"); err != nil || !strings.HasPrefix(out, "simulate\t") {
		t.Errorf("its completion: %v\n%s", err, out)
	}
}

func TestThePluginSaysToTypeWhatWasTyped(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"import", "kueue", "--help"}, "-o yaml | kubectl hekla import kueue - > configuration.yaml"},
		{[]string{"import", "yunikorn", "--help"}, "\n  kubectl hekla import yunikorn queues.yaml | kubectl apply -f -"},
		{[]string{"jobs", "--help"}, "kubectl hekla why explains: kubectl hekla why TYPE/NAME"},
		{[]string{"down", "--help"}, "kubectl hekla up has started"},
		{[]string{"replay", "testdata/missing.json"}, "; kubectl hekla snapshot -f testdata/missing.json writes one"},
		{[]string{"replay", "testdata/../program.go"}, "; kubectl hekla snapshot -f FILE writes one"},
	} {
		_, out, err := start(t, append([]string{"kubectl-hekla"}, test.arguments...)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, test.want) {
			t.Errorf("%v says\n%s, want %q in it", test.arguments, out, test.want)
		}
	}
}

func TestAnInstructionBeginsAsItWasTyped(t *testing.T) {
	was := os.Args
	t.Cleanup(func() { os.Args = was })
	for typed, want := range map[string]string{"/usr/bin/kubectl-hekla": "kubectl hekla down --name=a", "./hekla": "./hekla down --name=a", "hekla.exe": "hekla.exe down --name=a"} {
		os.Args = []string{typed}
		if got := instruction("down", []string{"--name=a"}); got != want {
			t.Errorf("as %s it is %q", typed, got)
		}
	}
}

func TestAnyOtherNameIsHekla(t *testing.T) {
	for _, name := range []string{"hekla", "./hekla-v2", "hekla.exe"} {
		called, out, err := start(t, name, "version")
		if err != nil || called != "hekla" || !strings.HasPrefix(out, "Version: ") {
			t.Errorf("%s is %s: %v\n%s", name, called, err, out)
		}
		if _, out, err := start(t, name, "why", "--help"); err != nil || !strings.Contains(out, "\n  "+name+" why job/train") || !strings.Contains(out, "\n  "+name+" why (") ||
			name != "hekla" && strings.Contains(out, " hekla why job") {
			t.Errorf("typed as %s it says to type (%v)\n%s", name, err, out)
		}
	}
	if _, _, err := start(t, "hekla", "job", "veiw"); err == nil || !strings.Contains(err.Error(), "veiw") {
		t.Errorf("a verb that is not there: %v", err)
	}
}

func TestTheHelpHasTheCommandsInGroups(t *testing.T) {
	program, _ := newProgram([]string{"hekla"}, genericiooptions.NewTestIOStreamsDiscard())
	for _, command := range program.Commands() {
		if command.GroupID == "" && !command.Hidden {
			t.Errorf("%s is in no group", command.Name())
		}
	}
	_, out, err := start(t, "hekla", "--help")
	if err != nil || strings.Contains(out, "Additional Commands") || !strings.Contains(out, "\nJobs:\n") || !strings.Contains(out, "\nWhy and what if:\n") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestAnUnknownCommandNamesTheListOfCommands(t *testing.T) {
	_, _, err := start(t, "hekla", "wyh")
	if err == nil || !strings.HasSuffix(cli.Explain(err).Error(), "\nhekla --help lists the commands") || !strings.Contains(cli.Explain(err).Error(), "\twhy") {
		t.Errorf("%v", cli.Explain(err))
	}
}

func TestErrorsOfUsageEndInTheCommandThatHelps(t *testing.T) {
	for help, arguments := range map[string][]string{
		"hekla why job --help": {"hekla", "why", "job"}, "hekla why --help": {"hekla", "why", "jobb"}, "hekla diag --help": {"hekla", "diag", "--gnag"},
		"kubectl hekla replay --help": {"kubectl-hekla", "replay"}, "vcctl job view --help": {"vcctl", "job", "view", "--fast"},
		"vsub --help": {"vsub", "--fast"}, "hekla why pod --help": {"hekla", "why", "pod", "a/b/c", "--master=https://127.0.0.1:1"},
	} {
		if _, _, err := start(t, arguments...); err == nil || !strings.HasSuffix(err.Error(), `"`+help+`" shows how it is used`) {
			t.Errorf("%v: %v", arguments, err)
		}
	}
}
