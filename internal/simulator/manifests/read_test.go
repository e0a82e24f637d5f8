package manifests

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeText = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '1', pods: '9'}}\n"
	podText  = "apiVersion: v1\nkind: Pod\nmetadata: {name: p1}\nspec: {containers: [{name: main}]}\n"
)

func config(name, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  volcano-scheduler.conf: |\n    " + text + "\n"
}

func read(text string) (*Input, error) { return Read([]string{"-"}, strings.NewReader(text)) }

// names lists all objects of an input, those that are added included.
func names(in *Input) []string {
	all := []string{}
	for _, p := range in.Pods {
		all = append(all, "pod "+p.Namespace+"/"+p.Name)
	}
	for _, g := range in.Groups {
		all = append(all, "group "+g.Namespace+"/"+g.Name)
	}
	for _, j := range in.Jobs {
		all = append(all, "job "+j.Namespace+"/"+j.Name)
	}
	for _, o := range in.Others {
		kind := strings.ToLower(reflect.TypeOf(o).Elem().Name())
		all = append(all, kind+" "+o.(metav1.Object).GetName())
	}
	return all
}

func TestWhatIsNotUnderstoodIsRefusedWithItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"an unknown kind": {nodeText + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
			"standard input, document 2: a simulation knows no kind Secret of v1"},
		"a known kind of an unknown version": {"apiVersion: batch/v2\nkind: Job\nmetadata: {name: j}\n",
			"standard input, document 1: a simulation knows no kind Job of batch/v2"},
		"an unknown field": {"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {unschedulabel: true}\n",
			`standard input, document 1, Node n1: unknown field "spec.unschedulabel"`},
		"an unknown field in a list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: q, namespace: w}\n  spec: {nodname: n}\n",
			`standard input, document 1, items[1], Pod w/q: unknown field "spec.nodname"`},
		"a value of the wrong type": {"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {unschedulable: maybe}\n",
			"standard input, document 1, Node n1: "},
		"a quantity that is none": {"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: much}}\n",
			"standard input, document 1, Node n1: "},
		"an object twice": {podText + "---\n" + nodeText + "---\n" + podText,
			"standard input, document 3, Pod p1: given twice, first in standard input, document 1, Pod p1"},
		"an object twice, once with its namespace": {podText + "---\n" + strings.Replace(podText, "name: p1", "name: p1, namespace: default", 1),
			"given twice"},
		"a key twice":        {nodeText + "kind: Pod\n", `standard input, document 1: yaml: unmarshal errors:`},
		"no name":            {strings.Replace(podText, "name: p1", "labels: {a: b}", 1), "metadata.name is missing"},
		"no kind":            {"apiVersion: v1\nmetadata: {name: p}\n", "standard input, document 1: apiVersion or kind is missing"},
		"no object":          {"- a\n- b\n", "standard input, document 1: this is no Kubernetes object"},
		"no YAML":            {"a: b: c\n", "standard input, document 1: "},
		"another ConfigMap":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n", "standard input, document 1, ConfigMap c: data has no key volcano-scheduler.conf"},
		"two configurations": {config("a", "x") + "---\n" + config("b", "y"), "ConfigMap b: the scheduler's configuration is also given in standard input, document 1, ConfigMap a"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
		})
	}
}

func TestEveryWayOfWritingObjectsIsRead(t *testing.T) {
	want := []string{"pod default/p1", "node n1", "queue root", "queue default"}
	for name, text := range map[string]string{
		"several documents":            nodeText + "---\n" + podText,
		"separators around":            "---\n" + nodeText + "---\n---\n" + podText + "---\n",
		"comments between documents":   "# one\n---\n" + nodeText + "---\n# nothing here\n---\n# two\n" + podText,
		"a list":                       "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(nodeText), "\n", "\n  ") + "\n- " + strings.ReplaceAll(strings.TrimSpace(podText), "\n", "\n  ") + "\n",
		"a list of one kind and a pod": "apiVersion: v1\nkind: NodeList\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(nodeText), "\n", "\n  ") + "\n---\n" + podText,
		"JSON":                         `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1"}}]}`,
		"line ends of Windows":         strings.ReplaceAll(nodeText+"---\n"+podText, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, names(in)); diff != "" {
				t.Errorf("what is read differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesAreGenerated(t *testing.T) {
	unnamed := strings.Replace(podText, "name: p1", "generateName: p-", 1)
	long := strings.Repeat("x", 80)
	in, err := read(unnamed + "---\n" + strings.Replace(podText, "p1", "p-00002", 1) + "---\n" + unnamed + "---\n" + strings.Replace(unnamed, "p-", long, 1) +
		"---\n" + strings.Replace(unnamed, "kind: Pod", "kind: PersistentVolumeClaim", 1)[:strings.Index(unnamed, "spec:")+len("PersistentVolumeClaim")-len("Pod")])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pod default/p-00001", "pod default/p-00002", "pod default/p-00003", "pod default/" + long[:58] + "00001", "queue root", "queue default"}
	if diff := cmp.Diff(want, names(in)); diff != "" || in.Supplies[0].GetName() != "p-00001" {
		t.Errorf("what is read differs (-want +got):\n%s\nand the claim is %s", diff, in.Supplies[0].GetName())
	}
}

func TestTheNumberOfADocumentCountsNoEmptyOnes(t *testing.T) {
	_, err := read("# nothing\n---\n" + nodeText + "---\n# nothing\n---\nkind: Pod\n")
	if err == nil || !strings.HasPrefix(err.Error(), "standard input, document 2:") {
		t.Errorf("the error is %v", err)
	}
}

func TestFilesAndFoldersAreRead(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("cluster/nodes.yaml", nodeText)
	write("cluster/deeper/pods.yml", podText)
	write("cluster/deeper/more.json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}}`)
	write("cluster/README.md", "not for us")
	single := write("single.yaml", strings.Replace(nodeText, "n1", "n3", 1))
	in, err := Read([]string{filepath.Join(folder, "cluster"), single, "-"}, strings.NewReader(strings.Replace(nodeText, "n1", "n4", 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pod default/p1", "node n1", "node n2", "node n3", "node n4", "queue root", "queue default"}
	if diff := cmp.Diff(want, names(in)); diff != "" {
		t.Errorf("what is read differs (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "nowhere"): "no such file", write("empty/notes.txt", ""): "",
	} {
		if want == "" {
			path, want = filepath.Dir(path), "holds no .yaml, .yml or .json file"
		}
		if _, err := Read([]string{path}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", path, err, want)
		}
	}
	if _, err := Read([]string{single, single}, nil); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("a file given twice: %v", err)
	}
	if _, err := Read(nil, nil); err == nil {
		t.Error("no file at all is no error")
	}
}

func TestDefaultsAreFilledInAsTheAPIServerWould(t *testing.T) {
	in, err := read(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 5
globalDefault: true
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 9
preemptionPolicy: Never
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  hostNetwork: true
  containers:
  - name: main
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: '2', memory: 1Gi}, requests: {cpu: '1'}}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {priorityClassName: high, containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: c}
spec: {priority: 7, priorityClassName: high, containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: d, namespace: kube-system}
spec: {priorityClassName: system-node-critical, containers: [{name: main}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	for _, p := range in.Pods {
		pods[p.Name] = p
	}
	a := pods["a"]
	if a.Spec.SchedulerName != "default-scheduler" || a.Status.Phase != corev1.PodPending || a.Namespace != "default" || a.UID == "" {
		t.Errorf("the pod is %+v", a)
	}
	requests := a.Spec.Containers[0].Resources.Requests
	if requests.Cpu().Value() != 1 || requests.Memory().Value() != 1<<30 || a.Spec.Containers[0].Ports[0].HostPort != 80 {
		t.Errorf("the container is %+v", a.Spec.Containers[0])
	}
	for name, want := range map[string]int32{"a": 5, "b": 9, "c": 7, "d": 2_000_001_000} {
		if got := *pods[name].Spec.Priority; got != want {
			t.Errorf("the priority of %s is %d, want %d", name, got, want)
		}
	}
	if policy := pods["b"].Spec.PreemptionPolicy; policy == nil || *policy != corev1.PreemptNever {
		t.Errorf("the preemption policy of b is %v", policy)
	}
}

func TestAConfigurationIsReadFromItsConfigMap(t *testing.T) {
	const text = "actions: allocate\ntiers: []\n"
	for content, want := range map[string]string{
		text: text,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  volcano-scheduler.conf: |\n    actions: allocate\n    tiers: []\n": text,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {other: a}\n":                                                         "data of ConfigMap c has no key volcano-scheduler.conf",
		" \n":        "is empty",
		"actions: [": "actions: [",
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		read, err := ReadConfiguration(file)
		if got := string(read); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v", content, got, err)
		}
	}
}
