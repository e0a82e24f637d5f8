package peers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/audit/live"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(func() (int, error) { return m.Run(), nil }) }

// deployment is one of pods with a CPU each, on nodes that have four.
func deployment(t *testing.T, name, class string, replicas int32) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	text := fmt.Sprintf(`
metadata: {name: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      priorityClassName: %[2]s
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
`, name, class, replicas)
	if err := yaml.UnmarshalStrict([]byte(text), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// running awaits how many pods of a Deployment run.
func running(t *testing.T, core kubernetes.Interface, name string, want int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := core.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err
		}
		is := 0
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				is++
			}
		}
		if is != want {
			return fmt.Errorf("of %s %d pods run, want %d", name, is, want)
		}
		return nil
	})
}

// startCluster starts one of nodes that have four CPUs each, without a scheduler.
func startCluster(t *testing.T, nodes int, log string) *localcluster.Cluster {
	t.Helper()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Nodes: nodes, AuditLog: log, Progress: os.Stderr,
		NodeTemplate: localcluster.NodeTemplate{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// startKubeScheduler starts a cluster whose only scheduler it is. The audit log is in the folder of the test.
func startKubeScheduler(t *testing.T) (cluster *localcluster.Cluster, log string) {
	t.Helper()
	ctx, folder := t.Context(), t.TempDir()
	log = filepath.Join(folder, "audit.log")
	program := apitest.Path(folder, "kube-scheduler")
	if err := apitest.BuildPackage(ctx, program, "k8s.io/kubernetes/cmd/kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	cluster = startCluster(t, 2, log)
	runKubeScheduler(t, cluster, cluster.KubeconfigPath(), program)
	return cluster, log
}

func runKubeScheduler(t *testing.T, cluster *localcluster.Cluster, kubeconfig, program string) {
	t.Helper()
	run(t, cluster, "kube-scheduler", program, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port="+freePort(t),
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
}

// run starts a program of another scheduler.
func run(t *testing.T, cluster *localcluster.Cluster, name, program string, args ...string) {
	t.Helper()
	if _, err := cluster.Run(t.Context(), localcluster.Program{Name: name, Path: program, Args: args}); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := localcluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// kube-scheduler may evict a pod for one that finds room otherwise before it is bound: then more pods are evicted than
// have come, and each of these is in vain.
func TestKubeSchedulerBreaksNoRuleButEvictsTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	cluster, log := startKubeScheduler(t)
	watched := audit.New(audit.Options{})
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan bool), make(chan error, 1)
	go func() {
		ended <- live.Watch(ctx, cluster.Config(), watched, live.Told{
			Began: func([]schema.GroupVersionResource) { close(began) }, Proven: func([]audit.Violation) {}})
	}()
	t.Cleanup(stop)
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	time.Sleep(12 * time.Second) // nodes that have just come excuse an eviction in vain
	letItWork(t, kubernetes.NewForConfigOrDie(cluster.Config()))
	time.Sleep(3 * time.Second) // until watches have shown the end
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	judge(t, "watches", watched.End())

	logged := audit.New(audit.Options{})
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := logged.Read(file); err != nil {
		t.Fatal(err)
	}
	judge(t, "the log", logged.End())
}

// letItWork fills the cluster with pods of low priority, has pods of high priority come that need three of their
// places, and gives the places back.
func letItWork(t *testing.T, core kubernetes.Interface) {
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]int32{"low": 1, "high": 100} {
		must(core.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{}))
	}
	least := intstr.FromInt32(5)
	must(core.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "low"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}}}, metav1.CreateOptions{}))
	must(core.AppsV1().Deployments("default").Create(ctx, deployment(t, "low", "low", 10), metav1.CreateOptions{}))
	running(t, core, "low", 8)
	must(core.AppsV1().Deployments("default").Create(ctx, deployment(t, "high", "high", 3), metav1.CreateOptions{}))
	running(t, core, "high", 3)
	running(t, core, "low", 5)
	must(core.AppsV1().Deployments("default").Patch(ctx, "high", types.MergePatchType, []byte(`{"spec": {"replicas": 0}}`), metav1.PatchOptions{}))
	running(t, core, "low", 8)
}

func judge(t *testing.T, by string, r *audit.Report) {
	t.Helper()
	tooMuch := r.Evictions - 3
	for i := range r.Violations {
		if v := &r.Violations[i]; v.Rule == audit.RuleEvictionInVain && tooMuch > 0 {
			tooMuch--
			t.Logf("by %s: %s", by, v)
		} else {
			t.Errorf("by %s: %s", by, v)
		}
	}
	if r.Bindings < 14 || r.Evictions < 3 || r.Unreadable > 0 {
		t.Errorf("by %s there were %d bindings and %d evictions, want 14 and 3; %d lines were unreadable: %s", by, r.Bindings, r.Evictions, r.Unreadable, r.Problem)
	}
	t.Logf("by %s: %d bindings, %d evictions by %v; not judged: %v", by, r.Bindings, r.Evictions, r.Schedulers, r.Unknown)
}
