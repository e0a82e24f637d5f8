package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/localcluster"
)

const system = "volcano-system"

// The tests share one cluster without a scheduler and controllers, and one process of the webhook server.
var (
	cluster *localcluster.Cluster
	api     client.Client
	program localcluster.Program
	process *localcluster.Process
	// address is where the server listens.
	address string
	// metricsAddress is where it shows its metrics, to those who may see them.
	metricsAddress string
	// groups is the file with the resource groups.
	groups string
)

const resourceGroups = `
resourceGroups:
- resourceGroup: gold
  object: {key: namespace, value: [gold-mine]}
  labels: {tier: gold}
  tolerations: [{key: gold, operator: Exists, effect: NoSchedule}]
  schedulerName: volcano
- resourceGroup: silver
  object: {value: []}
  labels: {tier: silver}
  affinity: '{"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}'
`

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard()) // of the servers in this process
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return 1, err
	}
	cluster, err = localcluster.Start(ctx, localcluster.Options{WithoutKwok: true, Manifests: localcluster.WithoutPods(manifests), Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if api, err = apitest.Client(cluster.Config()); err != nil {
		return 1, err
	}
	scratch, err := os.MkdirTemp("", "hekla-admission-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := prepare(ctx, scratch); err != nil {
		return 1, err
	}
	if err := startProgram(ctx); err != nil {
		return 1, err
	}
	if code := m.Run(); code != 0 {
		return code, nil
	}
	return 0, apitest.NothingForbidden(process.LogPath)
}

// prepare builds the program and decides how it is run: as the installer does, but on the loopback interface.
func prepare(ctx context.Context, scratch string) error {
	if err := apitest.Build(ctx, scratch, "controllers"); err != nil {
		return err
	}
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(ctx, system, "volcano-admission")
	if err != nil {
		return err
	}
	groups = filepath.Join(scratch, "volcano-admission.conf")
	if err := os.WriteFile(groups, []byte(resourceGroups), 0o600); err != nil {
		return err
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = localcluster.FreePort(); err != nil {
			return err
		}
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0]))
	metricsAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[2]))
	program = localcluster.Program{
		Name: "hekla-admission", Path: apitest.Path(scratch, "controllers"),
		Args: []string{
			"admission", "--kubeconfig=" + kubeconfig, "--admission-conf=" + groups,
			"--feature-gates=SchedulingGatesQueueAdmission=true", "--enable-queue-allocated-pods-check",
			"--listen-address=127.0.0.1", fmt.Sprintf("--port=%d", ports[0]), "--webhook-url=https://" + address,
			"--enabled-admission=" + strings.Join(admission.Paths(), ","), "--scheduler-name=mine,volcano",
			fmt.Sprintf("--healthz-address=127.0.0.1:%d", ports[1]), "--enable-healthz",
			"--metrics-address=" + metricsAddress, "--enable-metrics", "--authenticate-metrics",
		},
		ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[1]),
	}
	return nil
}

// startProgram starts the server and waits until the API server asks it.
func startProgram(ctx context.Context) (err error) {
	if process, err = cluster.Run(ctx, program); err != nil {
		return err
	}
	if err := apitest.Await(ctx, isAsked); err != nil {
		return fmt.Errorf("the server is not asked: %w", err)
	}
	return nil
}

// isAsked tries what only the server refuses.
func isAsked(ctx context.Context) error {
	job, err := parse[*unstructured.Unstructured](gang("probe", "queue: no-such-queue"))
	if err != nil {
		return err
	}
	job.SetNamespace("default")
	err = api.Create(ctx, job, client.DryRunAll)
	if err == nil || !strings.Contains(err.Error(), "no-such-queue") {
		return fmt.Errorf("a Job in a queue that does not exist: %w", errors.Join(err, errors.New("nobody says so")))
	}
	return nil
}

// namespaceFor makes a namespace for one test.
func namespaceFor(t *testing.T, name string, annotations map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	if err := api.Create(apitest.Context(t), namespace); err != nil {
		t.Fatal(err)
	}
	// Without its ServiceAccount a namespace admits no pods.
	apitest.Eventually(t, func(ctx context.Context) error {
		return api.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
	t.Cleanup(func() { _ = api.Delete(context.Background(), namespace) })
	return name
}

// parse reads an object from YAML.
func parse[T any](text string) (T, error) {
	var object T
	err := yaml.UnmarshalStrict([]byte(text), &object)
	return object, err
}

// create creates an object and removes it after the test.
func create(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	made := apitest.Object(t, namespace, text)
	if err := api.Create(apitest.Context(t), made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Delete(context.Background(), made) })
	return made
}

// expect compares what an API server says with what it should say; nothing is success.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// gang is a Job of three pods.
func gang(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  %s
  tasks:
  - replicas: 3
    template: {spec: {containers: [{name: a, image: b}]}}
`, name, spec)
}

func queue(name, spec string) string {
	return fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: %s\n", name, spec)
}

func pod(name, annotations, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: %s}
spec:
  %s
  containers: [{name: a, image: b}]
`, name, annotations, spec)
}

// registered returns the webhooks that are registered, by name, with what they do when no server answers.
func registered(t *testing.T) map[string]admissionregistrationv1.FailurePolicyType {
	t.Helper()
	policies := map[string]admissionregistrationv1.FailurePolicyType{}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	name := client.ObjectKey{Name: admission.ConfigurationName}
	if err := errors.Join(api.Get(apitest.Context(t), name, mutating), api.Get(apitest.Context(t), name, validating)); err != nil {
		t.Fatal(err)
	}
	for _, hook := range mutating.Webhooks {
		policies[hook.Name] = *hook.FailurePolicy
	}
	for _, hook := range validating.Webhooks {
		policies[hook.Name] = *hook.FailurePolicy
	}
	return policies
}
