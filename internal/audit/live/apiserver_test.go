package live_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/audit/live"
	"hekla.sh/hekla/test/apitest"
)

var realCluster = apitest.Shared{Definitions: "../../../installer/crds"}

func TestMain(m *testing.M) { realCluster.Main(m) }

// watching is an audit that runs.
type watching struct {
	mutex sync.Mutex
	found []string
	began chan []schema.GroupVersionResource
	stop  context.CancelFunc
	ended chan error
	of    *audit.Auditor
}

func watch(t *testing.T, config *rest.Config) *watching {
	ctx, stop := context.WithCancel(t.Context())
	w := &watching{began: make(chan []schema.GroupVersionResource, 1), ended: make(chan error, 1), stop: stop, of: audit.New(audit.Options{})}
	go func() {
		w.ended <- live.Watch(ctx, config, w.of, live.Told{
			Began: func(absent []schema.GroupVersionResource) { w.began <- absent },
			Proven: func(violations []audit.Violation) {
				w.mutex.Lock()
				defer w.mutex.Unlock()
				for i := range violations {
					w.found = append(w.found, violations[i].Rule+": "+strings.Join(violations[i].Objects, ", ")+", by "+violations[i].User)
				}
			},
		})
	}()
	t.Cleanup(stop)
	return w
}

// await waits until a violation is told.
func (w *watching) await(t *testing.T, violation string) {
	t.Helper()
	apitest.Eventually(t, func(context.Context) error {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if !slices.Contains(w.found, violation) {
			return fmt.Errorf("found is %q", w.found)
		}
		return nil
	})
}

// work makes pods and does what schedulers do to them.
type work struct {
	t    *testing.T
	core kubernetes.Interface
}

func (w *work) pod(name, cpu string, change ...func(*corev1.Pod)) {
	w.t.Helper()
	zero := int64(0)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{SchedulerName: "wild", TerminationGracePeriodSeconds: &zero,
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	for _, c := range change {
		c(p)
	}
	if _, err := w.core.CoreV1().Pods("default").Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) bind(pod, node string) {
	w.t.Helper()
	err := w.core.CoreV1().Pods("default").Bind(w.t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) delete(pod string) {
	w.t.Helper()
	if err := w.core.CoreV1().Pods("default").Delete(w.t.Context(), pod, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) finalize(pod, finalizers string) {
	w.t.Helper()
	_, err := w.core.CoreV1().Pods("default").Patch(w.t.Context(), pod, types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *work) status(pod string, change func(*corev1.PodStatus)) {
	w.t.Helper()
	p, err := w.core.CoreV1().Pods("default").Get(w.t.Context(), pod, metav1.GetOptions{})
	if err == nil {
		change(&p.Status)
		_, err = w.core.CoreV1().Pods("default").UpdateStatus(w.t.Context(), p, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A scheduler that this test plays fills a node beyond what it offers, with a pod that was there before the audit
// began, and evicts one that may not be.
func TestWhatASchedulerDoesWrongIsToldWhileItWatches(t *testing.T) {
	cluster := realCluster.Cluster(t)
	w := &work{t, kubernetes.NewForConfigOrDie(cluster.Config())}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("110")}}}
	if _, err := w.core.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.pod("before", "2")
	w.bind("before", "n1")
	w.pod("gone", "2")
	w.bind("gone", "n1")
	audited := watch(t, cluster.Config())
	select {
	case absent := <-audited.began:
		if len(absent) != 1 || absent[0].Resource != "topologies" { // of which Hekla has no definition
			t.Errorf("%v are not watched", absent)
		}
	case err := <-audited.ended:
		t.Fatal(err)
	}

	w.delete("gone")
	w.pod("fits", "2")
	w.bind("fits", "n1")
	w.pod("excess", "1", func(p *corev1.Pod) { p.Annotations = map[string]string{"volcano.sh/preemptable": "false"} })
	w.bind("excess", "n1")
	audited.await(t, "over-commit: Node n1, Pod default/excess, by wild")

	w.status("excess", func(s *corev1.PodStatus) {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler})
	})
	// Until it is gone a finalizer keeps it, so that watches show it as it leaves.
	w.finalize("excess", `["example.com/wait"]`)
	w.delete("excess")
	audited.await(t, "forbidden-eviction: Pod default/excess, by wild")
	w.finalize("excess", `null`)

	w.pod("again", "1") // in place of none: two of four CPUs are taken by "before", and two by "fits"
	w.delete("fits")
	w.bind("again", "n1")
	time.Sleep(3 * time.Second)
	audited.stop()
	if err := <-audited.ended; err != nil {
		t.Error(err)
	}
	report := audited.of.End()
	if len(audited.found) != 2 || len(report.Violations) != 2 || report.Bindings != 3 || report.Evictions != 1 {
		t.Errorf("told %q; reported %+v", audited.found, report)
	}
}

// An audit that lacks a right says which, rather than seeing nothing.
func TestARightThatLacksIsNamed(t *testing.T) {
	config := rest.CopyConfig(realCluster.Cluster(t).Config())
	config.Impersonate.UserName = "nobody"
	err := <-watch(t, config).ended
	if err == nil || !strings.Contains(err.Error(), "list nodes") {
		t.Errorf("the error is %v", err)
	}
}
