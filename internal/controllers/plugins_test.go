package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// resourcesOf returns the objects of the plugins svc and ssh of a Job, by name only.
func resourcesOf(job *batch.Job) []client.Object {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: job.Namespace, Name: name} }
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta(job.Name + "-svc")},
		&corev1.Service{ObjectMeta: meta(job.Name)},
		&networkingv1.NetworkPolicy{ObjectMeta: meta(job.Name)},
		&corev1.Secret{ObjectMeta: meta(job.Name + "-ssh")},
	}
}

// awaitGone waits until none of the objects is there.
func awaitGone(t *testing.T, objects ...client.Object) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		for _, object := range objects {
			if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s is there: %v", object, object.GetName(), err)
			}
		}
		return nil
	})
}

// equippedJob starts a Job with the plugins svc, ssh and env, whose PodGroup is admitted.
func equippedJob(t *testing.T, namespace string, tasks ...batch.TaskSpec) *batch.Job {
	t.Helper()
	job := newJob(namespace, "sim", tasks...)
	job.Spec.Plugins = map[string][]string{"svc": {}, "ssh": {}, "env": {}}
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	return job
}

func TestAJobWithPluginsRunsWithAllItsObjectsAndTakesThemAlong(t *testing.T) {
	namespace := namespaceFor(t, "plugins")
	job := equippedJob(t, namespace, task("master", 1), task("worker", 2))
	pods := awaitPods(t, namespace, "sim-master-0", "sim-worker-0", "sim-worker-1")

	resources := resourcesOf(job)
	for _, object := range resources {
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatalf("the pods exist before what they need: %v", err)
		}
		if !metav1.IsControlledBy(object, job) {
			t.Errorf("%T %s belongs to %v", object, object.GetName(), object.GetOwnerReferences())
		}
	}
	hosts, secret := resources[0].(*corev1.ConfigMap), resources[3].(*corev1.Secret)
	if got := hosts.Data["worker.host"]; got != "sim-worker-0.sim\nsim-worker-1.sim" {
		t.Errorf("the hosts are %q", got)
	}
	if _, err := ssh.ParsePrivateKey(secret.Data["id_rsa"]); err != nil {
		t.Error(err)
	}
	spec := pods["sim-worker-1"].Spec
	if spec.Hostname != "sim-worker-1" || spec.Subdomain != "sim" || len(spec.Containers[0].VolumeMounts) < 2 {
		t.Errorf("the pod is %+v", spec)
	}
	if last := spec.Containers[0].Env[1]; last.Name != "VC_TASK_INDEX" || last.Value != "1" {
		t.Errorf("the environment is %v", spec.Containers[0].Env)
	}
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.ControlledResources["plugin-ssh"] == "ssh" })

	// Grown, the Job has more hosts and the same keys.
	change(t, job, func(job *batch.Job) { job.Spec.Tasks[1].Replicas = 3 })
	awaitPods(t, namespace, "sim-master-0", "sim-worker-0", "sim-worker-1", "sim-worker-2")
	key := string(secret.Data["id_rsa"])
	for _, object := range []client.Object{hosts, secret} {
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	if hosts.Data["VC_WORKER_NUM"] != "3" || string(secret.Data["id_rsa"]) != key {
		t.Errorf("after growing: %v, same key %t", hosts.Data, string(secret.Data["id_rsa"]) == key)
	}

	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	if err := api.Delete(apitest.Context(t), job, foreground); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, append(resources, job)...)
}

func TestWhatPluginsMadeGoesWhenTheJobHasEnded(t *testing.T) {
	namespace := namespaceFor(t, "plugins-end")
	job := equippedJob(t, namespace, task("a", 1))
	pods := awaitPods(t, namespace, "sim-a-0")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.ControlledResources["plugin-svc"] == "svc" })
	finish(t, corev1.PodSucceeded, pods["sim-a-0"])
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Completed && len(status.ControlledResources) == 0
	})
	awaitGone(t, resourcesOf(job)...)
}

func TestPluginsUseTheUsersOwnServiceButNoForeignObject(t *testing.T) {
	namespace := namespaceFor(t, "plugins-foreign")
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	service := &corev1.Service{ObjectMeta: meta("sim"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	create(t, service)
	secret := &corev1.Secret{ObjectMeta: meta("sim-ssh"), Data: map[string][]byte{"id_rsa": []byte("mine")}}
	create(t, secret)
	job := equippedJob(t, namespace, task("a", 1))
	awaitEvent(t, job, "PluginError", "Secret "+namespace+"/sim-ssh: it exists and has no owner")
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Reason == "PluginError" })
	if pods, err := podsIn(apitest.Context(t), namespace); err != nil || len(pods) > 0 {
		t.Errorf("pods without keys: %v, %v", pods, err)
	}
	if err := api.Delete(apitest.Context(t), secret); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, namespace, "sim-a-0")
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(service), service); err != nil {
		t.Fatal(err)
	}
	if service.Spec.Ports[0].Port != 80 || metav1.GetControllerOf(service) != nil {
		t.Errorf("the user's Service was changed: %+v", service)
	}
}

func TestAnUnknownPluginIsToldAndStartsNothing(t *testing.T) {
	namespace := namespaceFor(t, "plugins-unknown")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.Plugins = map[string][]string{"svcc": {}, "ssh": {"--ssh-port=many"}}
	create(t, job)
	awaitEvent(t, job, "InvalidSpec", "unable to find job plugin: svcc")
	awaitEvent(t, job, "InvalidSpec", `spec.plugins[ssh]: Invalid value: invalid value "many" for flag -ssh-port`)
}

func TestAnUnknownArgumentOfAPluginIsToldAndPassedOver(t *testing.T) {
	namespace := namespaceFor(t, "arguments-unknown")
	job := newJob(namespace, "sim", task("a", 1))
	job.Spec.Plugins = map[string][]string{"ssh": {"--no-root"}}
	create(t, job)
	awaitEvent(t, job, "FieldNotHonoured", "spec.plugins[ssh]: --no-root")
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitPods(t, namespace, "sim-a-0")
}

// variablesOf returns the variables of the first container of a pod that have a value of their own.
func variablesOf(pod *corev1.Pod) map[string]string {
	variables := map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Value != "" {
			variables[variable.Name] = variable.Value
		}
	}
	return variables
}

// frameworks are the examples by file, and for each of their pods the variables, or else the command, that the
// framework needs.
var frameworks = map[string]struct {
	variables map[string]map[string]string
	commands  map[string]string
}{
	"pytorch-ddp.yaml": {variables: map[string]map[string]string{
		"pytorch-ddp-master-0": {"MASTER_ADDR": "pytorch-ddp-master-0.pytorch-ddp", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "0"},
		"pytorch-ddp-worker-0": {"MASTER_ADDR": "pytorch-ddp-master-0.pytorch-ddp", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "1"},
		"pytorch-ddp-worker-1": {"MASTER_ADDR": "pytorch-ddp-master-0.pytorch-ddp", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"},
	}},
	"tensorflow-ps.yaml": {variables: map[string]map[string]string{
		"tensorflow-ps-ps-0":     {"TF_CONFIG": tensorflowConfig("ps", 0)},
		"tensorflow-ps-worker-0": {"TF_CONFIG": tensorflowConfig("worker", 0)},
		"tensorflow-ps-worker-1": {"TF_CONFIG": tensorflowConfig("worker", 1)},
	}},
	"mpi.yaml": {variables: map[string]map[string]string{
		"mpi-master-0": {"MPI_HOST": "mpi-worker-0.mpi,mpi-worker-1.mpi"},
		"mpi-worker-0": {},
		"mpi-worker-1": {},
	}},
	"ray.yaml": {
		variables: map[string]map[string]string{"ray-head-0": {}, "ray-worker-0": {}, "ray-worker-1": {}},
		commands: map[string]string{
			"ray-head-0":   "ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001",
			"ray-worker-0": "ray start --block --address=ray-head-0.ray:6379",
			"ray-worker-1": "ray start --block --address=ray-head-0.ray:6379",
		},
	},
}

func tensorflowConfig(role string, index int) string {
	return fmt.Sprintf(`{"cluster":{"ps":["tensorflow-ps-ps-0.tensorflow-ps:2222"],`+
		`"worker":["tensorflow-ps-worker-0.tensorflow-ps:2222","tensorflow-ps-worker-1.tensorflow-ps:2222"]},`+
		`"task":{"type":%q,"index":%d}}`, role, index)
}

// The commands on the page of job plugins name the examples; each is applied, and its pods are looked at.
func TestExamplesOfFrameworksGetWhatTheFrameworkReads(t *testing.T) {
	page, err := os.ReadFile("../../docs/job-plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	files := regexp.MustCompile(`kubectl apply -f example/frameworks/(\S+)`).FindAllStringSubmatch(string(page), -1)
	if len(files) != len(frameworks) {
		t.Errorf("the page has %d commands for %d examples", len(files), len(frameworks))
	}
	for _, match := range files {
		t.Run(match[1], func(t *testing.T) { theFrameworkStarts(t, match[1]) })
	}
}

func theFrameworkStarts(t *testing.T, file string) {
	namespace := namespaceFor(t, "framework")
	content, err := os.ReadFile(filepath.Join("..", "..", "example", "frameworks", file))
	if err != nil {
		t.Fatal(err)
	}
	job, want := &batch.Job{}, frameworks[file]
	if err := yaml.UnmarshalStrict(content, job.Plain()); err != nil {
		t.Fatal(err)
	}
	job.Namespace = namespace
	create(t, job)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	for name, pod := range awaitPods(t, namespace, slices.Collect(maps.Keys(want.variables))...) {
		if diff := cmp.Diff(want.variables[name], variablesOf(pod)); diff != "" {
			t.Errorf("variables of %s (-want +got):\n%s", name, diff)
		}
		if command := want.commands[name]; command != "" && !slices.Equal(pod.Spec.Containers[0].Command, []string{"sh", "-c", command}) {
			t.Errorf("%s runs %q", name, pod.Spec.Containers[0].Command)
		}
		if pod.Spec.Hostname != name || pod.Spec.Subdomain != job.Name {
			t.Errorf("%s is %s.%s", name, pod.Spec.Hostname, pod.Spec.Subdomain)
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job.Name}}
	if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(service), service); err != nil {
		t.Errorf("nobody can find the pods: %v", err)
	}
}

func TestWhatPluginsMadeGoesWithAnAbortAndComesBackWithAResume(t *testing.T) {
	namespace := namespaceFor(t, "plugins-abort")
	job := equippedJob(t, namespace, task("a", 1))
	pods := awaitPods(t, namespace, "sim-a-0")
	finish(t, corev1.PodRunning, pods["sim-a-0"])
	awaitJob(t, job, func(status *batch.JobStatus) bool { return status.State.Phase == batch.Running })
	command(t, job, bus.AbortJobAction)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Aborted && len(status.ControlledResources) == 0
	})
	resources := resourcesOf(job)
	awaitGone(t, resources...)

	command(t, job, bus.ResumeJobAction)
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	awaitPods(t, namespace, "sim-a-0")
	for _, object := range resources {
		if err := api.Get(apitest.Context(t), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("the Job is resumed without: %v", err)
		}
	}
}
