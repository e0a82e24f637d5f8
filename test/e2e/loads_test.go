package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// load is how busy a node is said to be, in percent.
type load struct{ cpu, memory int64 }

// loads are what those say who stand in for a metrics-server and for a Prometheus: kwok's nodes use nothing.
type loads struct {
	mutex sync.Mutex
	nodes map[string]load
	at    time.Time // when it was measured; zero means just now
	asked int       // number of requests since the load was last set
	// live, if set, finds out what to say each time.
	live func(context.Context) (map[string]load, error)
}

// say is what is measured from now on.
func (l *loads) say(at time.Time, nodes map[string]load) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.nodes, l.at, l.asked = nodes, at, 0
}

func (l *loads) tell(ctx context.Context) (map[string]load, time.Time, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.asked++
	at := l.at
	if at.IsZero() {
		at = time.Now()
	}
	if l.live != nil {
		nodes, err := l.live(ctx)
		return nodes, at, err
	}
	return l.nodes, at, nil
}

// awaitHeard waits until the scheduler knows what was said: once it asks again, it has taken the answer before.
func (l *loads) awaitHeard(t *testing.T) {
	t.Helper()
	apitest.Eventually(t, func(context.Context) error {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if l.asked < 3 {
			return fmt.Errorf("the scheduler has asked %d times", l.asked)
		}
		return nil
	})
}

// aggregation makes the API server forward metrics.k8s.io to a port of this machine.
const aggregation = `
apiVersion: v1
kind: Service
metadata:
  name: metrics-server
  namespace: kube-system
spec:
  type: ExternalName
  externalName: localhost
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service:
    name: metrics-server
    namespace: kube-system
    port: %s
`

// serveMetricsAPI makes the loads an API of the cluster, and returns the metrics block that reads it.
func serveMetricsAPI(t *testing.T, l *loads) string {
	t.Helper()
	const path = "/apis/metrics.k8s.io/v1beta1"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case path: // The API server checks whether the server is there.
			answer(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "metrics.k8s.io/v1beta1",
				APIResources: []metav1.APIResource{{Name: "nodes", Kind: "NodeMetrics", Verbs: metav1.Verbs{"get", "list"}}}}, nil)
		case path + "/nodes":
			nodes, at, err := l.tell(r.Context())
			list := metricsv1beta1.NodeMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "NodeMetricsList"}}
			for name, load := range nodes {
				list.Items = append(list.Items, metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: name}, Timestamp: metav1.NewTime(at),
					Usage: corev1.ResourceList{
						corev1.ResourceCPU:    *resource.NewMilliQuantity(load.cpu*8000/100, resource.DecimalSI),
						corev1.ResourceMemory: *resource.NewQuantity(load.memory*(32<<30)/100, resource.BinarySI),
					}})
			}
			answer(w, list, err)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := localcluster.ReadManifests(fstest.MapFS{"aggregation.yaml": {Data: fmt.Appendf(nil, aggregation, address.Port())}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, arguments := range [][]string{{"delete", "apiservice", "v1beta1.metrics.k8s.io"}, {"delete", "service", "-n=kube-system", "metrics-server"}} {
			if _, err := system.Kubectl(context.Background(), arguments...); err != nil {
				t.Error(err)
			}
		}
	})
	if err := cluster.Apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "wait", "apiservice", "v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout=60s")
	return "  type: metrics_server"
}

// servePrometheus answers as a Prometheus that scrapes node_exporters, and returns the metrics block that reads it.
func servePrometheus(t *testing.T, l *loads) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/query" {
			http.NotFound(w, r)
			return
		}
		nodes, at, err := l.tell(r.Context())
		samples := []any{}
		for name, load := range nodes {
			value := load.memory
			if strings.Contains(r.FormValue("query"), "node_cpu_seconds_total") {
				value = load.cpu
			}
			samples = append(samples, map[string]any{"metric": map[string]string{"instance": name + ":9100"},
				"value": []any{float64(at.UnixMilli()) / 1000, fmt.Sprint(value)}})
		}
		answer(w, map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": samples}}, err)
	}))
	t.Cleanup(server.Close)
	return "  type: prometheus\n  address: " + server.URL
}

func answer(w http.ResponseWriter, object any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

// configure puts a configuration in force, until the test ends.
func configure(t *testing.T, text string) {
	t.Helper()
	maps := core.CoreV1().ConfigMaps(installed.Namespace)
	m, err := maps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Data["volcano-scheduler.conf"] = text
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// haveNewNodes brings the cluster to two nodes of which nothing is known yet.
func haveNewNodes(t *testing.T) (busy, idle string) {
	t.Helper()
	haveNodes(t, 0)
	haveNodes(t, 2)
	names := nodeNames(t)
	return names[0], names[1]
}

func TestPodsKeepOffBusyNodesByAnySourceOfLoads(t *testing.T) {
	for name, serve := range map[string]func(*testing.T, *loads) string{
		"a metrics-server, behind the API server": serveMetricsAPI,
		"a Prometheus": servePrometheus,
	} {
		t.Run(name, func(t *testing.T) {
			tidyUp(t)
			busy, idle := haveNewNodes(t)
			l := &loads{}
			full := map[string]load{busy: {cpu: 90, memory: 10}, idle: {cpu: 10, memory: 90}}
			l.say(time.Now().Add(-6*time.Minute), full)
			configure(t, `
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: usage
metrics:
`+serve(t, l)+"\n  interval: 200ms\n")
			l.awaitHeard(t)
			create(t, gangJob("stale", 2, "1", nil))
			awaitRunning(t, "stale", 2)

			l.say(time.Time{}, full)
			l.awaitHeard(t)
			create(t, gangJob("refused", 2, "1", nil))
			awaitReason(t, "refused", "NodeMismatch", "1 node(s) had a CPU load above the threshold of usage",
				"1 node(s) had a memory load above the threshold of usage")

			l.say(time.Time{}, map[string]load{busy: {cpu: 90, memory: 10}, idle: {cpu: 10, memory: 79}})
			awaitRunning(t, "refused", 2)
			if nodes := nodesOf(t, "refused"); nodes[idle] != 2 {
				t.Errorf("one node is busy, and the pods are on %v, want both on %s", nodes, idle)
			}

			l.say(time.Time{}, map[string]load{busy: {cpu: 75, memory: 20}, idle: {cpu: 5, memory: 5}})
			l.awaitHeard(t)
			create(t, gangJob("draws", 2, "1", nil))
			awaitRunning(t, "draws", 2)
			if nodes := nodesOf(t, "draws"); nodes[idle] != 2 {
				t.Errorf("one node is idle, and the pods are on %v, want both on %s", nodes, idle)
			}
			nothingWasForbidden(t)
		})
	}
}

// average says how busy pods make nodes that use all they request, over the time of window.
func average(window time.Duration) func(context.Context) (map[string]load, error) {
	type sample struct {
		at    time.Time
		nodes map[string]int64 // millicores
	}
	var samples []sample
	return func(ctx context.Context) (map[string]load, error) {
		pods, err := allPods(ctx)
		if err != nil {
			return nil, err
		}
		names, err := cluster.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		now := sample{at: time.Now(), nodes: map[string]int64{}}
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning {
				now.nodes[pods[i].Spec.NodeName] += pods[i].Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
		samples = slices.DeleteFunc(append(samples, now), func(s sample) bool { return now.at.Sub(s.at) > window })
		found := map[string]load{}
		for _, name := range names {
			var sum int64
			for _, s := range samples {
				sum += s.nodes[name]
			}
			found[name] = load{cpu: sum / int64(len(samples)) * 100 / 8000}
		}
		return found, nil
	}
}

// deployment is one whose pods may be evicted.
func deployment(name string, size int32, cpu string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &size,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{schedulingv1beta1.PreemptableKey: "true"}},
			Spec: corev1.PodSpec{SchedulerName: "volcano", TerminationGracePeriodSeconds: ptr.To(int64(0)), Containers: []corev1.Container{{Name: "main", Image: "busybox",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}}}
}

// departures counts the pods that are deleted from now on and had a node. kwok deletes by name what leaves a node,
// sometimes twice, and then meets the replacement, which waits.
func departures(t *testing.T) func() int {
	t.Helper()
	stream, err := core.CoreV1().Pods(metav1.NamespaceDefault).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	gone := map[types.UID]bool{}
	var reader sync.WaitGroup
	reader.Go(func() {
		for event := range stream.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && (event.Type == watch.Deleted || pod.DeletionTimestamp != nil) {
				mutex.Lock()
				gone[pod.UID] = true
				mutex.Unlock()
			}
		}
	})
	t.Cleanup(func() { stream.Stop(); reader.Wait() })
	return func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(gone)
	}
}

// awaitSpread waits until so many pods run on the two nodes.
func awaitSpread(t *testing.T, first string, onFirst int, second string, onSecond int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := allPods(ctx)
		if err != nil {
			return err
		}
		running := map[string]int{}
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp == nil {
				running[pods[i].Spec.NodeName]++
			}
		}
		if running[first] != onFirst || running[second] != onSecond {
			return fmt.Errorf("the pods run on %v, want %d on %s and %d on %s", running, onFirst, first, onSecond, second)
		}
		return nil
	})
}

func TestPodsMoveFromABusyNodeToAnIdleOneOnceAndThenItIsCalm(t *testing.T) {
	const period = 2 * time.Second
	tidyUp(t)
	busy, idle := haveNewNodes(t)
	l := &loads{live: average(period)}
	configure(t, `
actions: "enqueue, allocate, backfill, shuffle"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: usage
    enablePredicate: false
  - name: rescheduling
    arguments:
      interval: 500ms
      metricsPeriod: 2s
      strategies:
      - name: lowNodeUtilization
        params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}
metrics:
`+serveMetricsAPI(t, l)+"\n  interval: 100ms\n")
	kubectl(t, "cordon", idle)
	// Of a Job and of a Deployment three pods each, of one of eight CPUs: three in four are in use.
	create(t, elastic(marked(gangJob("batch", 3, "1", nil))))
	if _, err := core.AppsV1().Deployments(metav1.NamespaceDefault).Create(t.Context(), deployment("served", 3, "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := system.Kubectl(context.Background(), "delete", "deployment", "served", "--cascade=foreground"); err != nil {
			t.Error(err)
		}
	})
	awaitSpread(t, busy, 6, idle, 0)
	gone := departures(t)
	kubectl(t, "uncordon", idle)
	// Two that go leave a half. The other node has a quarter then, and would have taken more.
	awaitSpread(t, busy, 4, idle, 2)
	for end := time.Now().Add(3 * period); time.Now().Before(end); time.Sleep(poll) {
		if count := gone(); count != 2 {
			t.Fatalf("%d pods have been evicted, want 2 and no more", count)
		}
	}
	awaitSpread(t, busy, 4, idle, 2)
	if job, err := jobOf(t.Context(), "batch"); err != nil || job.Status.Running != 3 {
		t.Errorf("of the Job %d pods run, want 3 (%v)", job.Status.Running, err)
	}
	nothingWasForbidden(t)
}
