package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator"
)

const contested = `
apiVersion: v1
kind: Node
metadata: {name: n1, creationTimestamp: "2026-03-02T06:00:00Z"}
status: {allocatable: {cpu: '2', memory: 4Gi, pods: '9'}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, creationTimestamp: "2026-03-02T06:00:00Z"}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: q, creationTimestamp: "2026-03-02T06:00:01Z"}
spec: {schedulerName: mine, containers: [{name: main, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: old, deletionTimestamp: "2026-03-02T06:00:09Z"}
spec: {schedulerName: other, nodeName: n1, containers: [{name: main, resources: {requests: {cpu: '2'}}}]}
status: {phase: Running}
`

func configMap(text string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  volcano-scheduler.conf: |\n    " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
}

// run runs hekla simulate in this process and returns its exit code and what it printed.
func run(t *testing.T, stdin string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runHekla(t, stdin, append([]string{"simulate"}, arguments...)...)
}

// runHekla runs hekla in this process, and returns its exit code and what it printed.
func runHekla(t *testing.T, stdin string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	command := newCommand()
	var out, errs bytes.Buffer
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetErr(&errs)
	command.SetArgs(arguments)
	if err := command.Execute(); err != nil {
		return exitCode(err), out.String(), errs.String() + "hekla: " + err.Error() + "\n"
	}
	return 0, out.String(), errs.String()
}

func report(t *testing.T, stdout string) *simulator.Report {
	t.Helper()
	r := &simulator.Report{}
	if err := json.Unmarshal([]byte(stdout), r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	return r
}

func TestSimulateExitsWithTheCodeThatIsPromised(t *testing.T) {
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
		code      int
		want      string // in what is said to the person
	}{
		"one cycle":                {contested, []string{"-f", "-"}, 0, ""},
		"until rest":               {contested, []string{"-f", "-", "--until-stable"}, 0, ""},
		"no rest in time":          {contested, []string{"-f", "-", "--until-stable", "--max-cycles", "2"}, 3, "not stable within 2 cycles"},
		"no file":                  {"", nil, 1, "no file is given"},
		"a file that is not there": {"", []string{"-f", "nowhere.yaml"}, 1, "nowhere.yaml"},
		"an unknown kind":          {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", []string{"-f", "-"}, 1, "knows no kind Secret"},
		"an unknown flag":          {contested, []string{"-f", "-", "--fast"}, 1, "--fast"},
		"an argument":              {contested, []string{"-f", "-", "more"}, 1, "more"},
		"an unknown output":        {contested, []string{"-f", "-", "-o", "xml"}, 1, `--output "xml"`},
		"explanations as text":     {contested, []string{"-f", "-", "--explain"}, 1, "--explain needs --output json"},
		"no cycles":                {contested, []string{"-f", "-", "--cycles", "0"}, 1, "--cycles"},
		"no most cycles":           {contested, []string{"-f", "-", "--until-stable", "--max-cycles", "0"}, 1, "--max-cycles"},
		"cycles until rest":        {contested, []string{"-f", "-", "--cycles", "2", "--until-stable"}, 1, "until-stable"},
		"a time that is none":      {contested, []string{"-f", "-", "--now", "today"}, 1, `--now "today"`},
		"a bad configuration":      {contested + configMap("actions: allocate\ntears: []"), []string{"-f", "-"}, 1, "standard input, document 5, ConfigMap c: "},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := run(t, test.stdin, test.arguments...)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("the code is %d, said is %q; want %d and %q", code, stderr, test.code, test.want)
			}
			if (code == 1) != (stdout == "") {
				t.Errorf("with the code %d it prints %q", code, stdout)
			}
		})
	}
}

func TestSimulateExplainsIfItIsToldTo(t *testing.T) {
	const waits = `---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: large, namespace: default}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: large-0, namespace: default, annotations: {scheduling.k8s.io/group-name: large}}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: '64'}}}]}
`
	_, stdout, _ := run(t, contested+waits, "-f", "-", "--until-stable", "-o", "json")
	if strings.Contains(stdout, "explanations") || strings.Contains(stdout, "journal") {
		t.Errorf("it explains what nobody asked about: %s", stdout)
	}
	plain := report(t, stdout)
	_, stdout, stderr := run(t, contested+waits, "-f", "-", "--until-stable", "-o", "json", "--explain")
	r := report(t, stdout)
	if r.Explanations == nil {
		t.Fatalf("nothing is explained: %s", stderr)
	}
	i := slices.IndexFunc(r.Explanations.Jobs, func(j explain.Job) bool { return j.Job == "default/large" })
	if i < 0 || r.Explanations.Jobs[i].Verdict == nil || len(r.Explanations.Jobs[i].Refusals) != 1 || len(r.Explanations.Queues) != 2 ||
		len(r.Explanations.Nodes) != 1 {
		t.Errorf("the explanations are %+v", r.Explanations)
	}
	if !slices.ContainsFunc(r.Journal, func(e journal.Entry) bool {
		return e.Job == "default/large" && e.Reason == "TooLargeForAnyNode" && e.Cycle == 1
	}) || !slices.ContainsFunc(r.Journal, func(e journal.Entry) bool { return e.Kind == journal.Bound && e.Node == "n1" }) {
		t.Errorf("the journal is %+v", r.Journal)
	}
	r.Explanations, r.Journal = nil, nil
	if diff := cmp.Diff(plain, r); diff != "" {
		t.Errorf("with explanations it decides otherwise (-without +with):\n%s", diff)
	}
}

func TestSimulateHasAClockOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		cycle     int
	}{
		"leaving pods are gone at once":         {nil, 2},
		"or when their time is up":              {[]string{"--grace"}, 9},
		"as seen from when it is said to begin": {[]string{"--grace", "--now", "2026-03-02T06:00:07Z"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			_, stdout, stderr := run(t, contested, append(test.arguments, "-f", "-", "--until-stable", "-o", "json")...)
			r := report(t, stdout)
			if len(r.Binds) != 1 || r.Binds[0].Pod != "default/p" || r.Binds[0].Cycle != test.cycle {
				t.Errorf("bound %+v, want default/p in cycle %d; %s", r.Binds, test.cycle, stderr)
			}
		})
	}
}

func TestSimulateRunsAsManyCyclesAsItIsTold(t *testing.T) {
	_, stdout, _ := run(t, contested, "-f", "-", "--cycles", "4", "-o", "json")
	if r := report(t, stdout); r.Cycles != 4 || !r.Stable {
		t.Errorf("the report is %+v", r)
	}
}

func TestSimulateTellsAPersonUnlessItIsAskedForJSON(t *testing.T) {
	if _, stdout, _ := run(t, contested, "-f", "-", "--until-stable"); !strings.HasPrefix(stdout, "Cycle 2\n  bind  default/p") {
		t.Errorf("it prints\n%s", stdout)
	}
}

func TestSimulatePlacesThePodsOfTheSchedulersItIsNamed(t *testing.T) {
	_, stdout, _ := run(t, contested, "-f", "-", "--until-stable", "-o", "json", "--scheduler-name", "mine", "--scheduler-name", "volcano")
	if r := report(t, stdout); len(r.Binds) != 2 {
		t.Errorf("bound %+v", r.Binds)
	}
}

func TestTheConfigurationIsThatOfTheFileElseThatOfTheManifests(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.conf")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bound := func(contested string, arguments ...string) int {
		t.Helper()
		code, stdout, stderr := run(t, contested, append(arguments, "-f", "-", "--until-stable", "-o", "json")...)
		if code != 0 {
			t.Fatal(stderr)
		}
		return len(report(t, stdout).Binds)
	}
	const idle, busy = "actions: enqueue\ntiers: []", "actions: \"enqueue, allocate\"\ntiers: []"
	if got := bound(contested + configMap(idle)); got != 0 {
		t.Errorf("the configuration of the manifests does not count: %d bound", got)
	}
	write(busy)
	if got := bound(contested+configMap(idle), "--config", file); got != 1 {
		t.Errorf("the file does not win: %d bound", got)
	}
	write("")
	if code, _, stderr := run(t, contested, "-f", "-", "--config", file); code != 1 || !strings.Contains(stderr, file+": ") {
		t.Errorf("an empty file: the code is %d, said is %q", code, stderr)
	}
	write("actions: allocate\ntiers:\n- plugins:\n  - name: numa-aware")
	if _, _, stderr := run(t, contested, "-f", "-", "--config", file); !strings.Contains(stderr, "hekla: "+file+": ") || !strings.Contains(stderr, "numa-aware") {
		t.Errorf("of a plugin that has no effect it is said %q", stderr)
	}
	if code, _, _ := run(t, contested, "-f", "-", "--config", "nowhere.conf"); code != 1 {
		t.Errorf("of a file that is not there the code is %d", code)
	}
}
