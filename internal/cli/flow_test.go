package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster"
	flowapi "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	"hekla.sh/hekla/test/apitest"
)

func TestTemplatesAreCreatedShownAndDeleted(t *testing.T) {
	n := namespace(t)
	const template = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: NAME}\nspec: {minAvailable: 3, tasks: [{replicas: 3}]}\n---\n"
	path := filepath.Join(t.TempDir(), "templates.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(template, "NAME", "a", 1)+strings.Replace(template, "NAME", "b", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustFail(t, "vcctl jobtemplate create -n "+n, "--filename")
	mustSay(t, "vcctl jobtemplate create -n "+n+" --file "+path, "Created JobTemplate: "+n+"/a\nCreated JobTemplate: "+n+"/b")
	got := run(t, "hekla jobtemplate create -n "+n+" -f "+path)
	if got.err == nil || strings.Count(got.err.Error(), "already exists; choose another name") != 2 {
		t.Errorf("once more: %+v", got)
	}
	mustSay(t, "vcctl jobtemplate list -n "+n, "Name Namespace\na "+n+"\nb "+n)
	mustSay(t, "vcctl jobtemplate get -n "+n+" -N a", "Name Namespace\na "+n)
	mustSay(t, "vcctl jobtemplate describe -n "+n+" -N a -o jsonpath={.spec.minAvailable}", "3")
	if got := run(t, "vcctl jobtemplate describe -n "+n+" -N a"); got.err != nil || !strings.Contains(got.out, "minAvailable: 3\n") {
		t.Errorf("%+v", got)
	}
	if got := run(t, "vcctl jobtemplate describe -n "+n+" --format json"); got.err != nil || strings.Count(got.out, `"minAvailable": 3`) != 2 {
		t.Errorf("%+v", got)
	}
	mustFail(t, "hekla jobtemplate describe a -o wide", "not as a table")
	mustFail(t, "hekla jobtemplate get nobody -n "+n, `there is no jobtemplate "nobody" in namespace `+n, "hekla jobtemplate list")
	mustSay(t, "hekla jobtemplate delete a -n "+n, "Deleted JobTemplate: "+n+"/a")
	got = run(t, "vcctl jobtemplate delete -f "+path+" -n "+n)
	if got.out != "Deleted JobTemplate: "+n+"/b\n" || got.err == nil || !strings.Contains(got.err.Error(), `"a"`) {
		t.Errorf("%+v", got)
	}
}

const flowOfTwo = `apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: pipeline, labels: {team: red}}
spec: {flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}
`

func TestFlowsAreCreatedShownAndDeleted(t *testing.T) {
	n, other := namespace(t), namespace(t)
	path := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(path, []byte(flowOfTwo), 0o600); err != nil {
		t.Fatal(err)
	}
	mustSay(t, "hekla jobflow create --dry-run=server -n "+n+" -f "+path, "Created JobFlow: "+n+"/pipeline (server dry run)")
	mustSay(t, "hekla jobflow list -n "+n, "No jobflows found in namespace "+n)
	mustSay(t, "vcctl jobflow create -n "+n+" -f "+path, "Created JobFlow: "+n+"/pipeline")
	mustSay(t, "vcctl jobflow create -n "+other+" -f "+path, "Created JobFlow: "+other+"/pipeline")
	const titles = "Name Namespace Phase Age\n"
	mustSay(t, "vcctl jobflow list -n "+n, titles+"pipeline "+n+" - AGE")
	flow := &flowapi.JobFlow{}
	get(t, n, "pipeline", flow)
	flow.Status = flowapi.JobFlowStatus{CompletedJobs: []string{"pipeline-a"}, State: flowapi.State{
		Phase: flowapi.Running, Reason: flowapi.WaitingReason, Message: "b waits for a"}}
	updateStatus(t, flow)
	for line, want := range map[string]string{
		"vcctl jobflow get -N pipeline -n " + n: titles + "pipeline " + n + " Running AGE",
		"hekla jobflow list -o wide -n " + n: "Name Namespace Phase Age Completed Reason Message\n" +
			"pipeline " + n + " Running AGE 1/2 WaitingForDependencies b waits for a",
		"hekla jobflow get pipeline -o wide --no-headers -n " + other:                       "pipeline " + other + " - AGE 0/2 - -",
		"hekla jobflow list -l team=blue -n " + n:                                           "No jobflows found in namespace " + n,
		"hekla jobflow list -l team=red -o name -n " + n:                                    "jobflow.flow.volcano.sh/pipeline",
		"hekla jobflow get pipeline -n " + n + " -o jsonpath={.status.state.message}":       "b waits for a",
		"vcctl jobflow describe -N pipeline -n " + n + " -o jsonpath={.spec.flows[1].name}": "b",
	} {
		mustSay(t, line, want)
	}
	if got := run(t, "hekla jobflow list -A --no-headers"); got.err != nil || strings.Count(got.out, "pipeline ") != 2 {
		t.Errorf("in all namespaces: %+v", got)
	}
	mustSay(t, "hekla jobflow delete pipeline --dry-run -n "+n, "Deleted JobFlow: "+n+"/pipeline (dry run)")
	mustSay(t, "hekla jobflow delete pipeline -n "+n, "Deleted JobFlow: "+n+"/pipeline")
	mustSay(t, "vcctl jobflow delete -f "+path+" -n "+other, "Deleted JobFlow: "+other+"/pipeline")
}

func TestAWatchOfFlowsGoesOn(t *testing.T) {
	n := namespace(t)
	list := start(t, "hekla jobflow list -w -n "+n)
	flow := &flowapi.JobFlow{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: "one"}, Spec: flowapi.JobFlowSpec{Flows: []flowapi.Flow{{Name: "a"}}}}
	create(t, flow)
	list.await(t, "one "+n+" - AGE")
	flow.Status.State.Phase = flowapi.Succeed
	updateStatus(t, flow)
	list.await(t, "one "+n+" Succeed AGE")
	list.end(t)
}

func TestAFlowWithAnUnknownFieldIsRefused(t *testing.T) {
	n := namespace(t)
	got := runWithInput(t, "hekla jobflow create -f - -n "+n, strings.Replace(flowOfTwo, "targets", "target", 1))
	if got.err == nil || !strings.Contains(got.err.Error(), `unknown field "spec.flows[1].dependsOn.target"`) {
		t.Errorf("%+v", got)
	}
}

func TestAKindThatIsNotInstalledIsToldSo(t *testing.T) {
	definitions, err := localcluster.ReadManifests(os.DirFS(filepath.Join("..", "..", "installer", "crds")))
	if err != nil {
		t.Fatal(err)
	}
	definitions = slices.DeleteFunc(definitions, func(d *unstructured.Unstructured) bool { return d.GetName() != "jobflows.flow.volcano.sh" })
	if err := api.Delete(t.Context(), definitions[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Apply(context.Background(), definitions); err != nil {
			t.Fatal(err)
		}
	})
	apitest.Eventually(t, func(context.Context) error {
		if run(t, "vcctl jobflow list").err == nil {
			return errors.New("the kind is still there")
		}
		return nil
	})
	mustFail(t, "vcctl jobflow list", "does not know JobFlow", "flow.volcano.sh", "not installed")
	mustFail(t, "hekla jobflow delete x", "does not know JobFlow")
}

func pod(namespace, name string, labels, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
}

func TestPodsAreListedByJobAndQueue(t *testing.T) {
	n := namespace(t)
	create(t, pod(n, "train-main-0", map[string]string{"volcano.sh/job-name": "train", "volcano.sh/queue-name": "research"}, nil),
		pod(n, "other-main-0", map[string]string{"volcano.sh/job-name": "other", "volcano.sh/queue-name": "default"}, nil),
		pod(n, "lone", map[string]string{"team": "red"}, map[string]string{"scheduling.volcano.sh/queue-name": "research"}), pod(n, "alien", nil, nil))
	const titles = "Name Ready Status Restart Age\n"
	const train, other, lone = "train-main-0 0/1 Pending 0 AGE\n", "other-main-0 0/1 Pending 0 AGE\n", "lone 0/1 Pending 0 AGE\n"
	for line, want := range map[string]string{
		"vcctl pod list -n " + n:                                 titles + other + train,
		"vcctl pod list -n " + n + " -j train":                   titles + train,
		"hekla pod list -n " + n + " -q research":                titles + lone + train,
		"hekla pod list -n " + n + " -j other -q research":       "No pods found in namespace " + n,
		"hekla pod list -n " + n + " -q research -l team":        titles + lone,
		"hekla pod list -n " + n + " -q research -o name":        "pod/lone\npod/train-main-0",
		"hekla pod list -A --no-headers -q research -l team=red": n + " " + lone,
		"hekla pod list -n " + n + " -j train -o wide": "Name Ready Status Restart Age IP Node NominatedNode ReadinessGates\n" +
			"train-main-0 0/1 Pending 0 AGE <none> <none> <none> <none>\n",
	} {
		t.Run(line, func(t *testing.T) { mustSay(t, line, want) })
	}
	mustFail(t, "vcctl pod list -l ==", "-l")
}

func TestAWatchOfPodsGoesOn(t *testing.T) {
	n := namespace(t)
	list := start(t, "hekla pod list -w -j train -n "+n)
	ofTrain := map[string]string{"volcano.sh/job-name": "train"}
	create(t, pod(n, "one", ofTrain, nil))
	list.await(t, "one 0/1 Pending 0 AGE")
	create(t, pod(n, "alien", nil, nil), pod(n, "two", ofTrain, nil))
	list.await(t, "two 0/1 Pending 0 AGE")
	list.end(t)
	if text := list.said(); strings.Count(text, "Name Ready") != 1 || strings.Contains(text, "alien") {
		t.Errorf("it shows\n%s", text)
	}
}

func TestNamesAreCompleted(t *testing.T) {
	n := namespace(t)
	runningJob(t, n, "train", "research")
	for line, want := range map[string]string{
		"hekla __complete job view -n " + n + " tr":           "train\n",
		"hekla __complete job view -n " + n + " x":            ":4\n",
		"vcctl __complete queue operate q -a c":               "open\nclose\nupdate\n:4\n",
		"hekla __complete job list -o j":                      "json\nyaml\n",
		"hekla __complete jobflow get x":                      ":4\n",
		"vjobs __complete -N " + n + " t":                     "train\n",
		"hekla __complete job view -n x --kubeconfig /none t": ":4\n",
	} {
		if got := run(t, line); got.err != nil || !strings.HasPrefix(got.out, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
}
