package jobplugins

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func podName(job, task string, index int) string { return fmt.Sprintf("%s-%s-%d", job, task, index) }

// outcome is what the plugins of a Job make of it: what a golden file holds.
type outcome struct {
	Pods      []equippedPod   `json:"pods"`
	Resources []client.Object `json:"resources,omitempty"`
}

type equippedPod struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        corev1.PodSpec    `json:"spec"`
}

// outcomeOf builds all pods and objects of a Job, with a word for keys that are new each time.
func outcomeOf(t *testing.T, job *batch.Job) outcome {
	t.Helper()
	set, problems := New(job, podName)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var result outcome
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		for index := range int(task.Replicas) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: podName(job.Name, task.Name, index)},
				Spec:       *task.Template.Spec.DeepCopy(),
			}
			set.EditPod(pod, task, index)
			result.Pods = append(result.Pods, equippedPod{pod.Name, pod.Annotations, pod.Spec})
		}
	}
	for _, resource := range set.Resources() {
		object := resource.Object
		if err := resource.Update(object); err != nil {
			t.Fatal(err)
		}
		before := object.DeepCopyObject()
		if err := resource.Update(object); err != nil || !cmp.Equal(before, object) {
			t.Errorf("a second update of %T changes it: %v %s", object, err, cmp.Diff(before, object))
		}
		if secret, is := object.(*corev1.Secret); is {
			object = told(secret)
		}
		result.Resources = append(result.Resources, object)
	}
	return result
}

// told is the Secret with its content as text and a word for each key.
func told(secret *corev1.Secret) client.Object {
	text := map[string]string{}
	for name, content := range secret.Data {
		text[name] = string(content)
		if name != configFile {
			text[name], _, _ = strings.Cut(string(content), " ")
		}
	}
	return &corev1.Secret{ObjectMeta: secret.ObjectMeta, StringData: text}
}

// read reads a Job as the controller would see it.
func read(t *testing.T, path string) *batch.Job {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	job := &batch.Job{}
	if err := yaml.UnmarshalStrict(content, job.Plain()); err != nil {
		t.Fatal(err)
	}
	return job
}

func TestPodsAndObjectsAreAsImagesExpectThem(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(outcomeOf(t, read(t, path)))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeUsedIsNamed(t *testing.T) {
	long := strings.Repeat("x", 60)
	for name, test := range map[string]struct {
		job     string
		plugins map[string][]string
		want    string
	}{
		"an unknown plugin": {plugins: map[string][]string{"mpi2": nil},
			want: `spec.plugins: Invalid value: "mpi2": unable to find job plugin: mpi2: there are env, svc, ssh, tensorflow, pytorch, mpi, ray, hcclrank`},
		"a key that is taken for an argument": {plugins: map[string][]string{"ssh": {"--ssh-port=23", "-----BEGIN PRIVATE KEY"}},
			want: `spec.plugins[ssh]: Invalid value: argument 2 does not begin with --; the arguments are --ssh-key-file-path, --ssh-port, --ssh-private-key, --ssh-public-key`},
		"a word that is no argument": {plugins: map[string][]string{"svc": {"--inject-hosts-env=false", "disable-network-policy"}},
			want: `spec.plugins[svc]: Invalid value: argument 2 does not begin with --; the arguments are --disable-network-policy, --inject-hosts-env, --publish-not-ready-addresses`},
		"a value of the wrong type": {plugins: map[string][]string{"pytorch": {"--port=many"}},
			want: `spec.plugins[pytorch]: Invalid value: invalid value "many" for flag -port: parse error; the arguments are --master, --port, --wait-master-enabled, --wait-master-image, --wait-master-timeout, --worker`},
		"no port": {plugins: map[string][]string{"tensorflow": {"--port=70000"}},
			want: `spec.plugins[tensorflow]: Invalid value: --port is 70000: must be between 1 and 65535, inclusive`},
		"no time to wait": {plugins: map[string][]string{"pytorch": {"--wait-master-timeout=0", "--wait-master-image="}},
			want: `spec.plugins[pytorch]: Invalid value: --wait-master-timeout is 0: must be a positive number of seconds; --wait-master-image is empty`},
		"mpi without its tasks": {plugins: map[string][]string{"mpi": {"--master=boss"}},
			want: `spec.plugins[mpi]: Invalid value: The specified mpi master task was not found: the Job has no task "boss"; --master names the task of the master; The specified mpi worker task was not found: the Job has no task "worker"; --worker names the task of the worker`},
		"ray without a head": {plugins: map[string][]string{"ray": {"--dashboardPort=0"}},
			want: `spec.plugins[ray]: Invalid value: the Job has no task "head"; --head names the task of the head; --dashboardPort is 0: must be between 1 and 65535, inclusive`},
		"a path that is none": {plugins: map[string][]string{"ssh": {"--ssh-key-file-path=.ssh"}},
			want: `spec.plugins[ssh]: Invalid value: --ssh-key-file-path is ".ssh": must be an absolute path without a colon`},
		"a public key alone": {plugins: map[string][]string{"ssh": {"--ssh-public-key=ssh-rsa AAAA"}},
			want: `spec.plugins[ssh]: Invalid value: --ssh-public-key is given without --ssh-private-key`},
		"a private key that is none": {plugins: map[string][]string{"ssh": {"--ssh-private-key=TOPSECRET"}},
			want: `spec.plugins[ssh]: Invalid value: --ssh-private-key cannot be read: ssh: no key found`},
		"a private key gone astray": {plugins: map[string][]string{"ssh": {"ssh-private-key=TOPSECRET"}},
			want: `spec.plugins[ssh]: Invalid value: argument 1 does not begin with --; the arguments are --ssh-key-file-path, --ssh-port, --ssh-private-key, --ssh-public-key`},
		"a name too long for a volume": {job: long, plugins: map[string][]string{"ssh": nil},
			want: `spec.plugins[ssh]: Invalid value: the name ` + long + `-ssh cannot be used: must be no more than 63 characters`},
		"a name too long for a host": {job: long[:58], plugins: map[string][]string{"svc": nil},
			want: `spec.plugins[svc]: Invalid value: the pod name ` + long[:58] + `-main-0 cannot be a host name: must be no more than 63 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: batch.JobSpec{Plugins: test.plugins}}
			if test.job != "" {
				job.Name = test.job
			}
			job.Spec.Tasks = []batch.TaskSpec{{Name: "main", Replicas: 1}}
			_, problems := New(job, podName)
			if len(problems) != 1 || problems[0].Error() != test.want {
				t.Errorf("got %v\nwant %s", problems, test.want)
			}
		})
	}
}

func TestPluginsActInOneOrder(t *testing.T) {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: batch.JobSpec{
		Tasks:   []batch.TaskSpec{{Name: "master"}, {Name: "worker"}, {Name: "head"}},
		Plugins: map[string][]string{},
	}}
	var want []string
	for _, entry := range catalogue() {
		job.Spec.Plugins[entry.name] = nil
		want = append(want, entry.name)
	}
	set, problems := New(job, podName)
	if got := set.Names(); len(problems) > 0 || !slices.Equal(got, want) {
		t.Errorf("%v act in the order %v, want %v", problems, got, want)
	}
	if slices.Index(want, "pytorch") > slices.Index(want, "hcclrank") {
		t.Error("hcclrank comes before the plugin whose RANK it reads")
	}
}

// Manifests that were written for other versions of the plugins have arguments that these do not know.
func TestArgumentsThatAPluginDoesNotKnowAreNamedAndPassedOver(t *testing.T) {
	job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: batch.JobSpec{
		Tasks: []batch.TaskSpec{{Name: "worker", Replicas: 1}},
		Plugins: map[string][]string{
			"env": {"--all"},
			"svc": {"--enable-networking", "--inject-hosts-env=false", "-old", "value", "-publish-not-ready-addresses"},
			"ssh": {"--no-root", "--ssh-port", "23", "--key=secret"},
		},
	}}
	set, problems := New(job, podName)
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	want := []string{"spec.plugins[env]: --all", "spec.plugins[svc]: --enable-networking", "spec.plugins[svc]: --old",
		"spec.plugins[ssh]: --no-root", "spec.plugins[ssh]: --key"}
	if got := set.Ignored(); !slices.Equal(got, want) {
		t.Errorf("passed over are %q, want %q", got, want)
	}
	svc, ssh := set.plugins[1].value.(*service), set.plugins[2].value.(*secureShell)
	if svc.injectHostsEnv || !svc.publishNotReadyAddresses || ssh.port != 23 {
		t.Errorf("the others are not in force: %+v, port %d", svc, ssh.port)
	}
}

// A Job may have a million pods. What lists them is refused before it is put together.
func TestListsOfMorePodsThanFitAreRefused(t *testing.T) {
	for plugin, want := range map[string]string{
		"svc":        "the ConfigMap of 1000000 hosts would have 21999995 bytes, and 524288 are the most",
		"ssh":        "the configuration of ssh of 1000000 hosts would have 40999995 bytes, and 524288 are the most",
		"tensorflow": "TF_CONFIG of 999999 hosts would have 29999970 bytes, and 131072 are the most",
		"mpi":        "MPI_HOST of 999999 hosts would have 21999978 bytes, and 131072 are the most",
	} {
		job := &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: batch.JobSpec{
			Tasks:   []batch.TaskSpec{{Name: "worker", Replicas: 999_999}, {Name: "master", Replicas: 1}},
			Plugins: map[string][]string{plugin: {}},
		}}
		before := testing.AllocsPerRun(1, func() {
			if _, problems := New(job, podName); len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
				t.Errorf("%s: %v, want %s", plugin, problems, want)
			}
		})
		if before > 1000 {
			t.Errorf("%s: it takes %v allocations to find out", plugin, before)
		}
	}
}
