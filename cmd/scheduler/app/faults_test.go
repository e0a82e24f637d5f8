package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// failing is an API server that fails. Some writes of the scheduler about pods, PodGroups and queues are refused for
// now, and of others the answer is lost. Watches break off and cannot be resumed.
type failing struct {
	next *httputil.ReverseProxy

	isSlow bool // it fails nothing, and takes its time

	mutex   sync.Mutex
	writes  map[string]int // by method and path
	watches map[string]int
	faults  map[string]int
}

const watchLife = 700 * time.Millisecond

// writeFaults are what becomes of the writes to one path, one after the other. No more than two in a row fail: a server
// that fails for longer than a write is repeated is another test's.
var writeFaults = []string{"500", "lost", "", "429", "lost", "", "503", "429", ""}

// fault counts a request and says what becomes of it.
func (f *failing) fault(request *http.Request) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	fault := ""
	switch {
	case f.isSlow:
		if request.URL.Query().Get("dryRun") == "" {
			f.writes[request.Method+" "+request.URL.Path]++
		}
	case request.URL.Query().Get("watch") == "true" || request.URL.Query().Get("watch") == "1":
		f.watches[request.URL.Path]++
		fault = []string{"cut", "gone", "cut", ""}[f.watches[request.URL.Path]%4]
	case request.Method == http.MethodGet:
	default:
		path := request.Method + " " + request.URL.Path
		if _, isKnown := f.writes[path]; !isKnown {
			f.writes[path] = 3 * len(f.writes)
		}
		fault = writeFaults[f.writes[path]%len(writeFaults)]
		f.writes[path]++
	}
	f.faults[fault]++
	return fault
}

// How long a slow API server takes. A line of a watch is an event.
const slowRequest, slowBinding, slowEviction, slowEvent = 100 * time.Millisecond, time.Second, 3 * time.Second, 300 * time.Millisecond

// slowly delays a request, and the events of a watch.
func slowly(reply http.ResponseWriter, request *http.Request) http.ResponseWriter {
	switch {
	case request.URL.Query().Get("watch") != "":
		return slowReply{reply}
	case strings.HasSuffix(request.URL.Path, "/binding"):
		time.Sleep(slowBinding)
	case strings.HasSuffix(request.URL.Path, "/eviction"):
		time.Sleep(slowEviction)
	default:
		time.Sleep(slowRequest)
	}
	return reply
}

type slowReply struct{ http.ResponseWriter }

func (s slowReply) Write(text []byte) (int, error) {
	time.Sleep(slowEvent)
	return s.ResponseWriter.Write(text)
}

// Unwrap lets the proxy flush.
func (s slowReply) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (f *failing) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	if f.isSlow {
		reply = slowly(reply, request)
	}
	refuse := func(code int, reason metav1.StatusReason) {
		reply.Header().Set("Content-Type", "application/json")
		reply.WriteHeader(code)
		_, _ = fmt.Fprintf(reply, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"the test says so"}`, reason, code)
	}
	switch f.fault(request) {
	case "500":
		refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case "503":
		refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case "429":
		reply.Header().Set("Retry-After", "1")
		refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	case "gone":
		refuse(http.StatusGone, metav1.StatusReasonExpired)
	case "lost":
		f.next.ServeHTTP(httptest.NewRecorder(), request)
		panic(http.ErrAbortHandler)
	case "cut":
		ctx, cancel := context.WithTimeout(request.Context(), watchLife)
		defer cancel()
		f.next.ServeHTTP(reply, request.WithContext(ctx))
	default:
		f.next.ServeHTTP(reply, request)
	}
}

// failingServer puts such a server before the real one, and returns a kubeconfig for it.
func (w *testCluster) failingServer() (f *failing, kubeconfig string) {
	w.t.Helper()
	transport, err := rest.TransportFor(w.cluster.Config())
	must(w.t, err)
	target, err := url.Parse(w.cluster.Config().Host)
	must(w.t, err)
	f = &failing{writes: map[string]int{}, watches: map[string]int{}, faults: map[string]int{}, next: httputil.NewSingleHostReverseProxy(target)}
	f.next.Transport, f.next.FlushInterval = transport, -1
	f.next.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(f)
	w.t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["failing"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["failing"] = &clientcmdapi.Context{Cluster: "failing"}
	config.CurrentContext = "failing"
	kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	must(w.t, clientcmd.WriteToFile(*config, kubeconfig))
	return f, kubeconfig
}

// single makes a PodGroup of one pod that takes most of a node.
func (w *testCluster) single(name, class string, cpu resource.Quantity) {
	w.t.Helper()
	_, err := w.batch.SchedulingV1beta1().PodGroups("default").Create(w.t.Context(), &v1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: "default", PriorityClassName: class}}, metav1.CreateOptions{})
	must(w.t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"gang": name}, Annotations: map[string]string{
		v1beta1.KubeGroupNameAnnotationKey: name, v1beta1.PreemptableKey: "true"}},
		Spec: corev1.PodSpec{SchedulerName: "volcano", PriorityClassName: class, Containers: []corev1.Container{{Name: "main", Image: "image",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu}}}}}}
	_, err = w.core.CoreV1().Pods("default").Create(w.t.Context(), pod, metav1.CreateOptions{})
	must(w.t, err)
	w.t.Cleanup(func() {
		_ = w.core.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
}

const preempting = `actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
`

// makesRoom fills all nodes through such an API server, and creates a higher job. It gets its room, and no more than
// the one pod that is in its way leaves.
func (w *testCluster) makesRoom(kubeconfig string) {
	t := w.t
	t.Helper()
	nodes, err := w.core.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	cpu := *nodes.Items[0].Status.Allocatable.Cpu()
	for _, class := range []string{"low", "high"} {
		value := map[string]int32{"low": 10, "high": 1000}[class]
		_, err := w.core.SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class + "-" + w.suffix}, Value: value}, metav1.CreateOptions{})
		must(t, err)
	}
	configuration := filepath.Join(t.TempDir(), "conf")
	must(t, os.WriteFile(configuration, []byte(preempting), 0o644))
	p := w.start("--leader-elect=false", "--kubeconfig="+kubeconfig, "--scheduler-conf="+configuration)
	w.ready(p)
	var victims []string
	for i := range nodes.Items {
		name := fmt.Sprintf("low-%d-%s", i, w.suffix)
		w.single(name, "low-"+w.suffix, cpu)
		victims = append(victims, name)
	}
	for _, name := range victims {
		w.isBound(name, 1)
	}
	high := "high-" + w.suffix
	w.single(high, "high-"+w.suffix, cpu)
	apitest.Eventually(w.t, func(ctx context.Context) error {
		// The kubelet of these nodes.
		pods, err := w.core.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		bound := ""
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp != nil {
				_ = w.core.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID}})
			}
			if pod.Name == high {
				bound = pod.Spec.NodeName
			}
		}
		if bound == "" {
			return errors.New("the higher job has no node")
		}
		return nil
	})
	pods, err := w.core.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	left := 0
	for i := range pods.Items {
		if strings.HasPrefix(pods.Items[i].Name, "low-") && pods.Items[i].DeletionTimestamp == nil {
			left++
		}
	}
	if left != len(victims)-1 {
		t.Errorf("%d of %d lower pods are left, and one was in the way", left, len(victims))
	}
	w.reaches(high, v1beta1.PodGroupRunning)
}

func TestRoomIsMadeAlthoughTheAPIServerFails(t *testing.T) {
	w := onCluster(t)
	f, kubeconfig := w.failingServer()
	w.makesRoom(kubeconfig)
	apitest.Eventually(w.t, func(context.Context) error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		for _, fault := range []string{"500", "503", "429", "lost", "cut", "gone"} {
			if f.faults[fault] == 0 {
				return fmt.Errorf("the API server never failed by %s: %v", fault, f.faults)
			}
		}
		return nil
	})
}

// Nothing is decided twice because the answer, or the event, comes late: each pod is bound by one request, and evicted
// by one.
func TestASlowAPIServerGetsEachRequestOnce(t *testing.T) {
	w := onCluster(t)
	f, kubeconfig := w.failingServer()
	f.isSlow = true
	w.makesRoom(kubeconfig)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	bindings, evictions := 0, 0
	for write, count := range f.writes {
		isBinding, isEviction := strings.HasSuffix(write, "/binding"), strings.HasSuffix(write, "/eviction")
		if (isBinding || isEviction) && count > 1 {
			t.Errorf("%d requests: %s", count, write)
		}
		if isBinding {
			bindings++
		}
		if isEviction {
			evictions++
		}
	}
	if evictions != 1 || bindings == 0 {
		t.Errorf("%d pods were bound and %d evicted, want 1 eviction", bindings, evictions)
	}
}
