package installer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	answersapi "hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

const (
	// patience bounds every wait. It is reached only by a failure.
	patience = time.Minute
	poll     = 100 * time.Millisecond
)

// release is a cluster on which the chart comes and goes.
type release struct {
	cluster *localcluster.Cluster
	core    kubernetes.Interface
	ours    versioned.Interface
	dynamic dynamic.Interface
}

func startCluster(t *testing.T) *release {
	t.Helper()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{WithoutKwok: true, Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &release{
		cluster: cluster,
		core:    kubernetes.NewForConfigOrDie(cluster.Config()),
		ours:    versioned.NewForConfigOrDie(cluster.Config()),
		dynamic: dynamic.NewForConfigOrDie(cluster.Config()),
	}
}

// helm runs helm on the cluster, in the namespace of the release.
func (r *release) helm(t *testing.T, arguments ...string) {
	t.Helper()
	helm(t, append(arguments, "--kubeconfig="+r.cluster.KubeconfigPath(), "--namespace="+system)...)
}

// inCluster returns the names of all objects that clients have created in the cluster.
func (r *release) inCluster(ctx context.Context) ([]string, error) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(r.cluster.Config())
	if err != nil {
		return nil, err
	}
	lists, err := discoverer.ServerPreferredResources()
	// No scheduler runs here that would serve its group of the API. Nothing is stored in it.
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok && len(failed) == 1 && failed[answersapi.GroupVersion] != nil {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !slices.Contains([]string(resource.Verbs), "list") || resource.Name == "events" || resource.Name == "leases" {
				continue
			}
			found, err := r.dynamic.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, item := range found.Items {
				names = append(names, version.WithResource(resource.Name).GroupResource().String()+" "+item.GetNamespace()+"/"+item.GetName())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// olderChart is the chart as a version before this one may have been: of the queues' definition it knows no priority,
// and of Commands nothing.
func olderChart(t *testing.T) string {
	t.Helper()
	older := filepath.Join(t.TempDir(), "hekla")
	if output, err := exec.Command("cp", "-RL", chart, older).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.Remove(filepath.Join(older, "files/crds/bus.volcano.sh_commands.yaml")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(older, "files/crds/scheduling.volcano.sh_queues.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	field := regexp.MustCompile(`(?m)^                priority:\n(?:                  .*\n)+`)
	if found := field.FindAll(content, -1); len(found) != 1 {
		t.Fatalf("the definition of queues has %d fields priority, want one", len(found))
	}
	content = field.ReplaceAll(bytes.ReplaceAll(content, []byte("self.priority"), []byte("self.weight")), nil)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return older
}

// missing says which of the chart's objects the cluster has not.
func (r *release) missing(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	found, err := r.inCluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, object := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if name := resource.GroupResource().String() + " " + object.GetNamespace() + "/" + object.GetName(); !slices.Contains(found, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// deployment returns a program's Deployment in the cluster.
func (r *release) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d, err := r.core.AppsV1().Deployments(system).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// makeQueue asks for a queue with a priority and returns the priority that it has got.
func (r *release) makeQueue(ctx context.Context, name string) (int32, error) {
	queue, err := r.ours.SchedulingV1beta1().Queues().Create(ctx, &schedulingv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.QueueSpec{Weight: 1, Priority: 7},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	return queue.Spec.Priority, nil
}

// keepsWhatWasEdited checks that an upgrade does not change a configuration that a user has edited, unless a value says
// so.
func (r *release) keepsWhatWasEdited(t *testing.T) {
	t.Helper()
	const key, edited = "volcano-scheduler.conf", "actions: allocate"
	configMaps := r.core.CoreV1().ConfigMaps(system)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "volcano-scheduler-configmap"}, Data: map[string]string{key: edited}}
	if _, err := configMaps.Create(t.Context(), config, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if now, err := configMaps.Get(t.Context(), config.Name, metav1.GetOptions{}); err != nil || now.Data[key] != want {
			t.Errorf("the configuration is %q (%v), want %q", now.Data[key], err, want)
		}
	}
	r.helm(t, "upgrade", "hekla", chart)
	expect(edited)
	upgrade := []string{"upgrade", "hekla", chart, "--set=scheduler.configuration=actions: enqueue"}
	_, err := runHelm(t, append(upgrade, "--kubeconfig="+r.cluster.KubeconfigPath(), "--namespace="+system)...)
	if err == nil || !strings.Contains(err.Error(), config.Name) {
		t.Errorf("an upgrade over what was edited says: %v", err)
	}
	expect(edited)
	r.helm(t, append(upgrade, "--take-ownership", "--force-conflicts")...)
	expect("actions: enqueue")
}

func TestTheChartComesIsUpgradedGoesAndComesBack(t *testing.T) {
	r := startCluster(t)
	before, err := r.inCluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	r.helm(t, "install", "hekla", olderChart(t), "--create-namespace", "--set=scheduler.replicas=1")
	if d := r.deployment(t, "volcano-scheduler"); *d.Spec.Replicas != 1 {
		t.Errorf("%d replicas are installed, want 1", *d.Spec.Replicas)
	}
	if priority, err := r.makeQueue(t.Context(), "old"); err != nil || priority != 0 {
		t.Fatalf("the older definition knows the priority of a queue: %d, %v", priority, err)
	}

	r.helm(t, "upgrade", "hekla", chart, "--set=scheduler.replicas=3,image.tag=v2", `--set=controllers.extraArgs={--v=4}`)
	if missing := r.missing(t, render(t, "")); len(missing) > 0 {
		t.Errorf("after the upgrade there is no %v", missing)
	}
	scheduler, controllers := r.deployment(t, "volcano-scheduler"), r.deployment(t, "volcano-controllers")
	if *scheduler.Spec.Replicas != 3 || scheduler.Spec.Template.Spec.Containers[0].Image != "hekla:v2" {
		t.Errorf("the upgrade left the scheduler at %+v", scheduler.Spec)
	}
	if args := controllers.Spec.Template.Spec.Containers[0].Args; args[len(args)-1] != "--v=4" {
		t.Errorf("the upgrade left the controllers with %q", args)
	}
	// The API server takes a moment to serve the new definition.
	number := 0
	apitest.Eventually(t, func(ctx context.Context) error {
		number++
		priority, err := r.makeQueue(ctx, fmt.Sprintf("new-%d", number))
		if err == nil && priority != 7 {
			err = fmt.Errorf("the priority of a new queue is %d", priority)
		}
		return err
	})

	r.keepsWhatWasEdited(t)
	r.helm(t, "uninstall", "hekla")
	wanted := regexp.MustCompile(`^(customresourcedefinitions\.apiextensions\.k8s\.io /[a-z]+\.((batch|scheduling|bus|flow|topology|nodeinfo)\.volcano\.sh|kueue\.x-k8s\.io)|` +
		`apiservices\.apiregistration\.k8s\.io /v1(alpha1|beta1|beta2)\.((batch|scheduling|bus|flow|topology|nodeinfo)\.volcano\.sh|kueue\.x-k8s\.io)|` + // the API server's own
		`queues\.scheduling\.volcano\.sh /(old|new-\d+)|` +
		`namespaces /volcano-system|configmaps [a-z-]+/kube-root-ca\.crt|serviceaccounts [a-z-]+/default)$`) // Kubernetes' own, a while after each namespace
	apitest.Eventually(t, func(ctx context.Context) error {
		after, err := r.inCluster(ctx)
		if err != nil {
			return err
		}
		for _, name := range after {
			if !slices.Contains(before, name) && !wanted.MatchString(name) {
				return fmt.Errorf("left is %s", name)
			}
		}
		return nil
	})
	if queues, err := r.ours.SchedulingV1beta1().Queues().List(t.Context(), metav1.ListOptions{}); err != nil || len(queues.Items) != 1+number {
		t.Errorf("of the users' %d queues are left %v (%v)", 1+number, queues, err)
	}

	r.helm(t, "install", "hekla", chart)
	if missing := r.missing(t, render(t, "")); len(missing) > 0 {
		t.Errorf("installed a second time there is no %v", missing)
	}

	r.helm(t, "uninstall", "hekla", "--wait")
	kubectl := exec.CommandContext(t.Context(), r.cluster.Kubectl(),
		"--kubeconfig="+r.cluster.KubeconfigPath(), "apply", "-f", root+"/installer/hekla.yaml")
	if _, err := outputOf(kubectl); err != nil {
		t.Fatal(err)
	}
	r.helm(t, "install", "hekla", chart, "--take-ownership", "--force-conflicts", "--set=scheduler.replicas=4")
	if d := r.deployment(t, "volcano-scheduler"); *d.Spec.Replicas != 4 {
		t.Errorf("what was there before Helm has %d replicas, want 4", *d.Spec.Replicas)
	}
}
