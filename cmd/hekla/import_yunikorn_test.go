package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"hekla.sh/hekla/internal/simulator"
)

var rewrite = flag.Bool("rewrite", false, "rewrite what the import says and prints in testdata/yunikorn")

// Files of testdata/yunikorn: a queues.yaml with all keys, Namespaces, and what the import makes of them.
const (
	queuesFile     = "testdata/yunikorn/queues.yaml"
	namespacesFile = "testdata/yunikorn/namespaces.yaml"
	reportFile     = "testdata/yunikorn/report.txt"
	printedFile    = "testdata/yunikorn/printed/objects.yaml"
)

// everyLoss accepts what is lost of queuesFile.
var everyLoss = []string{"--accept=submitacl", "--accept=adminacl", "--accept=limits", "--accept=usergroupresolver", "--accept=placementrules",
	"--accept=partitions", "--accept=childtemplate", "--accept=namespaces"}

func importYuniKornOf(t *testing.T, stdin string, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runHekla(t, stdin, append([]string{"import", "yunikorn"}, arguments...)...)
}

// isFile compares a text with a file, or writes it there.
func isFile(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a test's data
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not what it was (-want +got), go test ./cmd/hekla -run YuniKorn -rewrite if it is right:\n%s", path, diff)
	}
}

func TestTheImportOfYuniKornSaysWhatBecomesOfEachKey(t *testing.T) {
	code, stdout, stderr := importYuniKornOf(t, "", queuesFile, "-f", namespacesFile)
	if code != 2 || stdout != "" {
		t.Errorf("with losses that are not accepted the code is %d, and it prints %q", code, stdout)
	}
	isFile(t, reportFile, stderr)
	content, err := os.ReadFile(queuesFile)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	values := 0
	eachScalar(document.Content[0], false, func(n *yaml.Node) {
		values++
		if !strings.Contains(stderr, fmt.Sprintf(" line %d, ", n.Line)) {
			t.Errorf("nothing is said of %q on line %d", n.Value, n.Line)
		}
	})
	if values < 60 {
		t.Errorf("only %d values were looked for", values)
	}
}

// eachScalar calls a function with each value below a node. Limits, a resolver and a partition that is not imported
// have one line for all of their keys.
func eachScalar(n *yaml.Node, isKey bool, visit func(n *yaml.Node)) {
	switch n.Kind {
	case yaml.ScalarNode:
		if !isKey {
			visit(n)
		}
	case yaml.SequenceNode:
		for _, child := range n.Content {
			eachScalar(child, false, visit)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			switch {
			case key == "limits" || key == "usergroupresolver":
			case key == "name" && value.Value == "gpu":
				visit(value)
				return
			default:
				eachScalar(value, false, visit)
			}
		}
	}
}

func TestTheImportOfYuniKornPrintsWhatIsToBeApplied(t *testing.T) {
	arguments := append([]string{queuesFile, "-f", namespacesFile}, everyLoss...)
	code, stdout, stderr := importYuniKornOf(t, "", arguments...)
	if code != 0 || !strings.Contains(stderr, "note    pods find queues, applications and task groups by YuniKorn's labels") {
		t.Errorf("the code is %d, and it says\n%s", code, stderr)
	}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "lost ") && !strings.HasSuffix(line, " (accepted)\n") {
			t.Errorf("it is not accepted: %s", line)
		}
	}
	isFile(t, printedFile, stdout)
	if _, again, _ := importYuniKornOf(t, "", arguments...); again != stdout {
		t.Error("the second time it prints something else")
	}
	code, inJSON, _ := importYuniKornOf(t, "", append(arguments, "-o", "json")...)
	list := struct{ Items []any }{}
	if err := json.Unmarshal([]byte(inJSON), &list); code != 0 || err != nil || len(list.Items) != strings.Count(stdout, "\n---\n")+1 {
		t.Errorf("as JSON: code %d, %v, %d objects", code, err, len(list.Items))
	}
}

const (
	small      = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - name: a\n      submitacl: bob\n"
	twoRefused = "partitions:\n- name: default\n  colour: red\n  queues:\n  - name: root\n    queues:\n    - {name: a, maxapplications: -1}\n"
	inConfig   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yunikorn-configs}\ndata:\n  log.level: DEBUG\n  queues.yaml: |\n    " +
		"partitions:\n    - name: default\n      queues: [{name: root, queues: [{name: a}]}]\n"
	twoBroken = `{apiVersion: v1, kind: Namespace, metadata: {name: team, annotations: {yunikorn.apache.org/namespace.maxApps: 3}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ok}}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace, metadata: {labels: {a: b}}}]}
---
[a, list]
`
)

func TestTheImportOfYuniKornExitsWithTheCodeThatIsPromised(t *testing.T) {
	folder := t.TempDir()
	broken, parent := filepath.Join(folder, "broken.yaml"), filepath.Join(folder, "parent.yaml")
	for path, text := range map[string]string{
		broken: twoBroken,
		parent: "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: tenants, labels: {kept: 'yes'}}\nspec: {parent: company, capability: {cpu: 9}}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		stdin     string
		arguments []string
		code      int
		wants     []string // in what is said and printed
	}{
		"nothing is lost":  {strings.Replace(small, "bob", `"*"`, 1), []string{"-"}, 0, []string{"\n  name: a\n"}},
		"lost":             {small, []string{"-"}, 2, []string{"lost    line 7, queues[root.a].submitacl = bob", "nothing is printed"}},
		"accepted by key":  {small, []string{"-", "--accept", "submitacl"}, 0, []string{"(accepted)", "\n  name: a\n"}},
		"accepted by path": {small, []string{"-", "--accept", "queues[root.a].submitacl"}, 0, []string{"(accepted)"}},
		"accepted, and not lost": {small, []string{"-", "--accept", "submitacl", "--accept", "limits"}, 0,
			[]string{"note    --accept limits: nothing of that is lost"}},
		"a ConfigMap": {inConfig, []string{"-", "--accept", "log"}, 0, []string{"lost    line 5, data[log.level] = DEBUG", "line 9, queues[root.a].name"}},
		"another partition": {"partitions:\n- {name: gpu, queues: [{name: root, queues: [{name: b}]}]}\n", []string{"-", "--partition", "gpu"}, 0,
			[]string{"\n  name: b\n"}},
		"another parent":       {small, []string{"-", "--accept=submitacl", "--parent=tenants"}, 0, []string{"parent: tenants", `subtrees: ["tenants"]`, "Queue tenants is printed as a new one below root"}},
		"a parent that exists": {small, []string{"-", "--accept=submitacl", "--parent=tenants", "-f", parent}, 0, []string{"kept: \"yes\"", "parent: company"}},
		"problems, all of them": {twoRefused, []string{"-"}, 1, []string{"- cannot be imported:", "line 3: partitions[default].colour: there is no such key",
			"line 7: queues[root.a].maxapplications: is \"-1\", allowed is a number from 0 up"}},
		"problems in all files": {twoRefused, []string{"-", "-f", broken}, 1, []string{broken + " cannot be read:", "document 1: reading Namespace team: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations",
			"document 3: reading a Namespace: metadata.name is missing", "document 4: ", "line 3: partitions[default].colour"}},
		"no such partition":     {small, []string{"-", "--partition", "gpu"}, 1, []string{`there is no partition "gpu"; there are default`}},
		"no YAML":               {"partitions: [", []string{"-"}, 1, []string{"not valid YAML"}},
		"no file":               {"", []string{"nowhere.yaml"}, 1, []string{"nowhere.yaml"}},
		"no manifests":          {small, []string{"-", "-f", "nowhere.yaml"}, 1, []string{"nowhere.yaml"}},
		"no argument":           {"", nil, 1, []string{"accepts 1 arg(s), received 0"}},
		"an unknown output":     {small, []string{"-", "-o", "xml"}, 1, []string{`--output "xml": it must be yaml or json`}},
		"an unknown flag":       {small, []string{"-", "--fast"}, 1, []string{"--fast"}},
		"one input for two":     {small, []string{"-", "-f", "-"}, 1, []string{"the standard input can be read once"}},
		"Namespaces from above": {"apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n", []string{queuesFile, "-f", "-"}, 2, []string{"Namespace team: Queue scratch"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := importYuniKornOf(t, test.stdin, test.arguments...)
			if code != test.code || (code == 0) != (stdout != "") {
				t.Errorf("the code is %d, want %d, and %q is printed", code, test.code, stdout)
			}
			for _, want := range test.wants {
				if !strings.Contains(stderr+stdout, want) {
					t.Errorf("it does not say %q:\n%s%s", want, stderr, stdout)
				}
			}
		})
	}
}

// pods are pods of one CPU each in a queue of YuniKorn, each an application of its own.
func podsIn(queue, name string, count int, isRunning bool) string {
	var text strings.Builder
	for i := range count {
		state, created := "", "2026-03-02T08:00:00Z"
		if isRunning {
			state, created = "status: {phase: Running, startTime: '2026-03-02T07:00:00Z'}\n", fmt.Sprintf("2026-03-02T07:00:%02dZ", i)
		}
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, namespace: default, creationTimestamp: '%s', uid: %s-%d, "+
			"labels: {applicationId: %s-%d, queue: %s}}\n", name, i, created, name, i, name, i, queue)
		node := ""
		if isRunning {
			node = "nodeName: n1, "
		}
		fmt.Fprintf(&text, "spec: {schedulerName: volcano, %scontainers: [{name: main, resources: {requests: {cpu: '1'}}}]}\n%s", node, state)
	}
	return text.String()
}

// What the file promises to each queue is what happens in the simulation of what is printed.
func TestImportedQueuesGetWhatTheyAreGuaranteedAndNoMore(t *testing.T) {
	_, printed, _ := importYuniKornOf(t, "", append([]string{queuesFile, "-f", namespacesFile}, everyLoss...)...)
	const node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, creationTimestamp: '2026-03-02T06:00:00Z'}\nstatus: {allocatable: {cpu: '16', memory: 64Gi, pods: '110'}}\n"
	for name, test := range map[string]struct {
		pods    string
		victims string // whose pods are evicted, by the beginning of their names
		count   int
		says    string // of the pods that wait
	}{
		// sales.reports is guaranteed 6. Inside sales it takes from ad-hoc, which has no guarantee.
		"a queue below its guarantee takes within its fence": {podsIn("root.sales.ad_hoc", "adhoc", 12, true) + podsIn("root.scratch", "other", 4, true) +
			podsIn("root.sales.reports", "report", 2, false), "adhoc-", 2, ""},
		"the fence of sales stops it from taking elsewhere": {podsIn("root.scratch", "other", 16, true) + podsIn("root.sales.reports", "report", 2, false), "", 0, "outside the fence of queue sales"},
		// science is guaranteed 4, and nothing stops it.
		"the queue without a guarantee gives": {podsIn("root.sales.reports", "report", 6, true) + podsIn("root.scratch", "other", 10, true) +
			podsIn("root.science", "study", 3, false), "other-", 3, ""},
		"no queue takes more than it is guaranteed": {podsIn("root.science", "held", 4, true) + podsIn("root.scratch", "other", 12, true) +
			podsIn("root.science", "study", 2, false), "", 0, "NotGuaranteed"},
		"a queue without a guarantee takes nothing": {podsIn("root.science", "study", 16, true) + podsIn("root.scratch", "other", 1, false), "", 0, "NotGuaranteed"},
		// The Queue of the Namespace market is guaranteed half a CPU.
		"a Queue made of a template takes no more than it says": {podsIn("root.sales.ad_hoc", "adhoc", 12, true) + podsIn("root.scratch", "other", 4, true) +
			podsIn("root.sales.market", "stall", 1, false), "", 0, "12 by rule G4 (the job's own queue has what it is guaranteed)"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runHekla(t, printed+node+test.pods, "simulate", "-f", "-", "--until-stable", "-o", "json")
			if code != 0 {
				t.Fatal(stderr)
			}
			r := report(t, stdout)
			var victims []string
			for _, eviction := range r.Evictions {
				victims = append(victims, eviction.Pod)
			}
			isOther := func(pod string) bool { return !strings.HasPrefix(pod, "default/"+test.victims) }
			if len(victims) != test.count || slices.ContainsFunc(victims, isOther) {
				t.Errorf("%v are evicted, want %d of %q\n%s", victims, test.count, test.victims, stdout)
			}
			isSaid := func(j simulator.Job) bool { return strings.Contains(j.Reason+": "+j.Message, test.says) }
			if !slices.ContainsFunc(r.Jobs, isSaid) {
				t.Errorf("no job is said to wait because of %q:\n%s", test.says, stdout)
			}
		})
	}
}
