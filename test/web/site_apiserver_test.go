package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla"
	scheduler "hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// source is the folder of the page's source.
const source = "../../web"

// configuration evicts, so that there is something to see.
const configuration = `apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, admit, allocate, preempt, reclaim, backfill"
    tiers:
    - plugins: [{name: priority}, {name: gang}, {name: conformance}]
    - plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}, {name: cohorts}]
`

// site is a cluster with the scheduler, and what readers of the page need.
type site struct {
	cluster        *localcluster.Cluster
	api            client.Client
	address        string
	operator, user string // tokens: of all, and of the namespace research
	jobs, ofUser   int    // how many there are, and how many of the user's namespace
	stop           func() // ends the scheduler
}

// here is the site of all tests of the package.
var here *site

func TestMain(m *testing.M) {
	apitest.Main(func() (code int, err error) {
		code = m.Run()
		if here != nil {
			here.stop()
			err = here.cluster.Stop()
		}
		return code, err
	})
}

// onSite returns the site, and makes it for the first test that needs it.
func onSite(t *testing.T) *site {
	t.Helper()
	if here != nil {
		return here
	}
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	must(t, err)
	manifests = append(localcluster.WithoutPods(manifests), apitest.Object(t, apitest.SystemNamespace, configuration))
	cluster, err := localcluster.Start(context.Background(), localcluster.Options{Nodes: 1, Manifests: manifests, Progress: os.Stderr})
	must(t, err)
	w := &site{cluster: cluster, stop: func() {}}
	here = w
	w.api, err = apitest.Client(cluster.Config())
	must(t, err)
	port, err := localcluster.FreePort()
	must(t, err)
	w.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.lead()
	w.fill(t)
	w.operator, w.user = w.reader(t, "operator", "ClusterRoleBinding", "volcano-ask-all", ""), w.reader(t, "user", "RoleBinding", "view", "research")
	return w
}

// lead runs a scheduler that serves the page, until stop is called.
func (w *site) lead() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	command := scheduler.NewCommand()
	command.SetArgs([]string{"--web-address=" + w.address, "--kubeconfig=" + w.cluster.KubeconfigPath(), "--leader-elect=false",
		"--scheduler-configmap=" + apitest.SystemNamespace + "/volcano-scheduler-configmap"})
	go func() {
		defer close(ended)
		_ = command.ExecuteContext(ctx)
	}()
	w.stop = func() {
		stop()
		<-ended
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *site) make(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		// An API server that has just started refuses objects until it has read its policies.
		apitest.Eventually(t, func(ctx context.Context) error { return w.api.Create(ctx, object) })
	}
}

// reader returns the token of a new account with a role.
func (w *site) reader(t *testing.T, name, kind, role, namespace string) string {
	t.Helper()
	w.make(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	binding := map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "page-" + name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": name}}}
	object := &unstructured.Unstructured{Object: binding}
	object.SetNamespace(namespace)
	w.make(t, object)
	config, err := w.cluster.ServiceAccountConfig(t.Context(), "default", name)
	must(t, err)
	return config.BearerToken
}

func amounts(cpu, memory, gpus string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpus)}
}

func queue(name, parent string, guarantee, deserved, capability corev1.ResourceList) *v1beta1.Queue {
	return &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.QueueSpec{Parent: parent, Deserved: deserved, Capability: capability,
		Guarantee: v1beta1.Guarantee{Resource: guarantee}}}
}

// fill makes nodes, queues and jobs as they may stand in a cluster of two teams.
func (w *site) fill(t *testing.T) {
	t.Helper()
	nodes, err := w.cluster.AddNodes(t.Context(), 31, localcluster.NodeTemplate{Capacity: func() corev1.ResourceList {
		capacity := amounts("32", "256Gi", "8")
		capacity[corev1.ResourcePods] = resource.MustParse("110")
		return capacity
	}()})
	must(t, err)
	if len(nodes) != 31 {
		t.Fatalf("%d nodes were added", len(nodes))
	}
	for _, name := range []string{"research", "production"} {
		w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.make(t, queue("ai", "", nil, amounts("900", "7000Gi", "220"), amounts("1000", "8000Gi", "256")),
		queue("ai-training", "ai", amounts("100", "800Gi", "40"), amounts("500", "4000Gi", "120"), amounts("900", "7000Gi", "240")),
		queue("ai-inference", "ai", amounts("50", "400Gi", "16"), amounts("300", "2400Gi", "80"), amounts("400", "3200Gi", "96")),
		queue("analytics", "", nil, amounts("64", "512Gi", "8"), amounts("128", "1Ti", "16")))
	w.make(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
		"metadata": map[string]any{"name": "urgent"}, "value": int64(1000)}})
	const trainings, services = 24, 8
	for i := range trainings {
		w.job(t, "research", fmt.Sprintf("train-llm-%02d", i), "ai-training", 2, amounts("12", "96Gi", strconv.Itoa(5+i%3)), i%2 == 0, "")
	}
	w.job(t, "research", "too-large", "ai-training", 1, amounts("64", "128Gi", "0"), false, "")
	w.job(t, "research", "nowhere", "missing-queue", 1, amounts("1", "1Gi", "0"), false, "")
	apitest.Eventually(t, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := w.api.List(ctx, pods, client.InNamespace("research")); err != nil {
			return err
		}
		bound := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		if bound < trainings {
			return fmt.Errorf("%d pods have nodes", bound)
		}
		return nil
	})
	// Now no node has eight GPUs left: the next job needs victims.
	w.job(t, "production", "confidential", "ai-training", 3, amounts("16", "64Gi", "8"), false, "urgent")
	for i := range services {
		w.job(t, "production", fmt.Sprintf("serve-%02d", i), "ai-inference", 1, amounts("6", "48Gi", "1"), false, "")
	}
	for i := range etls {
		w.job(t, "research", fmt.Sprintf("etl-%02d", i), "analytics", 2, amounts("16", "128Gi", "0"), false, "", endingAfter(etlDeadline))
	}
	w.quotas(t)
	w.job(t, "research", "mistyped", "analytics", 1, amounts("1", "1Gi", "0"), false, "", func(p *corev1.Pod) { p.Spec.SchedulerName = "vulcano" })
	w.jobs, w.ofUser = trainings+services+etls+workloads+4, trainings+etls+workloads-1+3
}

// workloads is the number of Workloads, of which one is not in research.
const workloads = 4

// quotas makes ClusterQueues of one Cohort, one of which borrows of the other, and Workloads.
func (w *site) quotas(t *testing.T) {
	t.Helper()
	objects := []string{"{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: standard}}"}
	for name, quota := range map[string]int{"batch": 2, "reports": 4} {
		objects = append(objects, fmt.Sprintf(`{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {name: %s}, spec: {namespaceSelector: {}, cohortName: shared,
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: standard, resources: [{name: cpu, nominalQuota: %d}]}]}]}}`, name, quota))
		for _, namespace := range []string{"research", "production"} {
			objects = append(objects, fmt.Sprintf("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: %s, namespace: %s}, spec: {clusterQueue: %[1]s}}", name, namespace))
		}
	}
	for _, text := range objects {
		w.make(t, apitest.Object(t, "", text))
	}
	w.make(t, workload("research", "borrows", "batch", 4))
	w.awaitWorkload(t, "research", "borrows")
	w.make(t, workload("research", "waits", "batch", 3), workload("research", "too-much", "reports", 7), workload("production", "confidential-report", "reports", 1))
}

func workload(namespace, name, queue string, cpus int) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"queueName": queue, "podSets": []any{map[string]any{"name": "main", "count": int64(1), "template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "example.com/report",
				"resources": map[string]any{"requests": map[string]any{"cpu": strconv.Itoa(cpus)}}}}}}}}}}}
}

// awaitWorkload waits until a Workload holds quota.
func (w *site) awaitWorkload(t *testing.T, namespace, name string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload"}}
		if err := w.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		if _, holds, _ := unstructured.NestedMap(o.Object, "status", "admission"); !holds {
			return fmt.Errorf("Workload %s says %v", name, o.Object["status"])
		}
		return nil
	})
}

// job makes a PodGroup and its pods.
func (w *site) job(t *testing.T, namespace, name, queue string, size int, requests corev1.ResourceList, isPreemptable bool, class string, options ...func(*corev1.Pod)) {
	t.Helper()
	w.make(t, &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.PodGroupSpec{MinMember: int32(size), Queue: queue, PriorityClassName: class}})
	for i := range size {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-worker-%d", name, i),
			Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name}},
			Spec: corev1.PodSpec{SchedulerName: "volcano", PriorityClassName: class, Containers: []corev1.Container{{Name: "c", Image: "example.com/train",
				Resources: corev1.ResourceRequirements{Requests: requests, Limits: corev1.ResourceList{"nvidia.com/gpu": requests["nvidia.com/gpu"]}}}}}}
		if isPreemptable {
			pod.Annotations["volcano.sh/preemptable"] = "true"
		}
		for _, option := range options {
			option(pod)
		}
		w.make(t, pod)
	}
}

// etls is the number of jobs of analytics.
const etls = 6

// etlDeadline is after how many seconds the pods of the jobs of analytics are ended.
const etlDeadline = 3600

func endingAfter(seconds int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}

// many makes PodGroups without pods and as many Workloads, many at once.
func (w *site) many(t *testing.T, count int) {
	t.Helper()
	w.make(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "sweep"}},
		apitest.Object(t, "sweep", "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: batch}, spec: {clusterQueue: batch}}"))
	errs, next := make(chan error), make(chan int)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const writers = 16
	for range writers {
		go func() {
			var problems []error
			for i := range next {
				name := fmt.Sprintf("trial-%05d", i)
				if i%2 == 0 {
					problems = append(problems, w.api.Create(ctx, workload("sweep", name, "batch", 3)))
					continue
				}
				problems = append(problems, w.api.Create(ctx, &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "sweep", Name: name},
					Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: []string{"analytics", "ai-training", "default"}[i%3]}}))
			}
			errs <- errors.Join(problems...)
		}()
	}
	for i := range count {
		next <- i
	}
	close(next)
	for range writers {
		must(t, <-errs)
	}
}
