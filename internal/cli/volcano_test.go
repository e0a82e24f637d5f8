package cli_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/cli"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// logFlags are what the help of vcctl ends its lists of flags with.
const logFlags = `      --log-flush-frequency duration   Maximum number of seconds between log flushes (default 5s)
  -v, --v Level                        number for the log level verbosity
      --vmodule moduleSpec             comma-separated list of pattern=N settings for file-filtered logging (only works for the default text log format)
`

func TestTheHelpOfVcctlIsVolcanos(t *testing.T) {
	for line, want := range map[string]string{
		"vcctl --help": `Usage:
  vcctl [command]

Available Commands:
  help        Help about any command
  job         vcctl command line operation job
  jobflow     vcctl command line operation jobflow
  jobtemplate vcctl command line operation jobtemplate
  pod         vcctl command line operation pod
  queue       Queue Operations
  version     Print the version information

Flags:
  -h, --help                           help for vcctl
` + logFlags + `
Use "vcctl [command] --help" for more information about a command.
`,
		"vcctl job --help": `vcctl command line operation job

Usage:
  vcctl job [command]

Available Commands:
  delete      delete a job
  list        list job information
  resume      resume a job
  run         run job by parameters from the command line
  suspend     abort a job
  view        show job information

Flags:
  -h, --help   help for job

Global Flags:
` + logFlags + `
Use "vcctl job [command] --help" for more information about a command.
`,
		"vcctl job list --help": `list job information

Usage:
  vcctl job list [flags]

Flags:
      --all-namespaces      list jobs in all namespaces
  -h, --help                help for list
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -s, --master string       the address of apiserver
  -n, --namespace string    the namespace of job (default "default")
  -q, --queue string        list job with specified queue name
  -S, --scheduler string    list job with specified scheduler name
      --selector string     fuzzy matching jobName

Global Flags:
` + logFlags,
		"vcctl job suspend -n a --help": `abort a job

Usage:
  vcctl job suspend [flags]

Flags:
  -h, --help                help for suspend
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -s, --master string       the address of apiserver
  -N, --name string         the name of job
  -n, --namespace string    the namespace of job (default "default")

Global Flags:
` + logFlags,
		"vcctl job run --help": `run job by parameters from the command line

Usage:
  vcctl job run [flags]

Flags:
  -f, --filename string     the yaml file of job
  -h, --help                help for run
  -i, --image string        the container image of job (default "busybox")
  -k, --kubeconfig string   (optional) absolute path to the kubeconfig file
  -L, --limits string       the resource limit of the task (default "cpu=1000m,memory=100Mi")
  -s, --master string       the address of apiserver
  -m, --min int             the minimal available tasks of job (default 1)
  -N, --name string         the name of job
  -n, --namespace string    the namespace of job (default "default")
  -r, --replicas int        the total tasks of job (default 1)
  -R, --requests string     the resource request of the task (default "cpu=1000m,memory=100Mi")
  -S, --scheduler string    the scheduler for this job (default "volcano")

Global Flags:
` + logFlags,
	} {
		if got := run(t, line); got.err != nil || got.out != want {
			t.Errorf("%s (%v) says\n%s\nwant\n%s", line, got.err, got.out, want)
		}
	}
	for line, parts := range map[string][]string{
		"vcctl queue operate --help": {"operate queue\n", "\n  vcctl queue operate [flags]\n", " the name of queue\n"},
		"vjobs --help":               {"view information of a job with specified name", "\n  vjobs [flags]\n", "-n, --name string ", logFlags[:40]},
	} {
		got := run(t, line)
		for _, part := range parts {
			if got.err != nil || !strings.Contains(got.out, part) {
				t.Errorf("%s (%v) says\n%s\nwithout %q", line, got.err, got.out, part)
			}
		}
	}
}

func TestEveryProgramTakesTheFlagsOfTheLog(t *testing.T) {
	for _, name := range append([]string{"hekla job list"}, cli.Names...) {
		verb := map[string]string{"vcctl": " job list"}[name]
		for _, flags := range []string{"-v=0", "-v 0", "--v=0", "--vmodule=nobody=9", "--log-flush-frequency=1s", "--log_flush_frequency=1s"} {
			line := name + " " + flags + verb
			if strings.HasPrefix(name, "hekla") {
				line = name + " " + flags
			}
			if got := run(t, line+" --help"); got.err != nil {
				t.Errorf("%s: %v", line, got.err)
			}
		}
	}
}

func TestColumnsOfVcctlAreAsWideAsVolcanos(t *testing.T) {
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "padded"}, Spec: scheduling.QueueSpec{Weight: 3, Parent: "a-long-parent"}}
	create(t, queue)
	lines := strings.Split(run(t, "vcctl queue get -n padded").out, "\n")
	const format = "%-25s%-8s%-8s%-8s%-8s%-8s%-8s%-8s%-8s"
	titles := fmt.Sprintf(format, "Name", "Weight", "State", "Parent", "Inqueue", "Pending", "Running", "Unknown", "Completed")
	if !strings.HasPrefix(lines[0], titles) {
		t.Errorf("the titles are\n%q, want\n%q", lines[0], titles)
	}
	// What is wider than its column still ends before the next.
	if want := "padded                   3       -       a-long-parent 0       0       "; !strings.HasPrefix(lines[1], want) {
		t.Errorf("the row is\n%q, want\n%q", lines[1], want)
	}

	n := namespace(t)
	runningJob(t, n, "a-name-of-some-length", "research")
	lines = strings.Split(run(t, "vcctl job list -n "+n).out, "\n")
	titles = fmt.Sprintf("%-24s%-15s%-12s%-12s%-12s%-6s%-10s%-10s%-12s%-10s%-12s%-10s", "Name", "Creation", "Phase", "JobType", "Replicas", "Min",
		"Pending", "Running", "Succeeded", "Failed", "Unknown", "RetryCount")
	if lines[0] != titles {
		t.Errorf("the titles are\n%q, want\n%q", lines[0], titles)
	}
	if len(lines[1]) < 39 || strings.TrimSpace(lines[1][:24]) != "a-name-of-some-length" || strings.Contains(strings.TrimSpace(lines[1][24:39]), " ") {
		t.Errorf("the row is %q", lines[1])
	}
}
