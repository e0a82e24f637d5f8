package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/edge/leader"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/test/apitest"
)

const systemNamespace = apitest.SystemNamespace

var realCluster = apitest.Shared{Definitions: "../../../installer/crds", Nodes: 2}

func TestMain(m *testing.M) { realCluster.Main(m) }

// testCluster is what a test sees of the cluster. Names of objects end in suffix, so that tests can be repeated.
type testCluster struct {
	t       *testing.T
	suffix  string
	cluster *localcluster.Cluster
	core    kubernetes.Interface
	batch   versioned.Interface
}

func onCluster(t *testing.T) *testCluster {
	t.Helper()
	w := &testCluster{t: t, cluster: realCluster.Cluster(t), suffix: rand.String(5)}
	var err error
	w.core, err = kubernetes.NewForConfig(w.cluster.Config())
	must(t, err)
	w.batch, err = versioned.NewForConfig(w.cluster.Config())
	must(t, err)
	queue := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1beta1.QueueSpec{Weight: 1}}
	_, _ = w.batch.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{})
	return w
}

// instance is a scheduler that runs inside the test.
type instance struct {
	stop            context.CancelFunc
	result          chan error
	health, numbers string
}

func (w *testCluster) start(arguments ...string) *instance {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	p := &instance{stop: stop, result: make(chan error, 1), health: freeAddress(w.t), numbers: freeAddress(w.t)}
	command := NewCommand()
	command.SetArgs(append([]string{
		"--kubeconfig=" + w.cluster.KubeconfigPath(), "--enable-healthz", "--healthz-address=" + p.health,
		"--enable-metrics", "--listen-address=" + p.numbers, "--leader-elect-retry-period=200ms",
	}, arguments...))
	ended := make(chan struct{})
	go func() {
		p.result <- command.ExecuteContext(ctx)
		close(ended)
	}()
	w.t.Cleanup(func() { stop(); <-ended })
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := localcluster.FreePort()
	must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}

// shows waits until the metrics hold a line.
func (w *testCluster) shows(p *instance, line string) {
	w.t.Helper()
	apitest.Eventually(w.t, func(ctx context.Context) error {
		body, err := get(ctx, "http://"+p.numbers+"/metrics")
		if err == nil && !strings.Contains("\n"+body, "\n"+line+"\n") {
			return fmt.Errorf("the metrics do not show %s", line)
		}
		return err
	})
}

func (w *testCluster) ready(p *instance) {
	w.t.Helper()
	apitest.Eventually(w.t, func(ctx context.Context) error {
		_, err := get(ctx, "http://"+p.health+"/readyz")
		return err
	})
}

// ends waits for the end of a process and returns its error.
func (w *testCluster) ends(p *instance) error {
	w.t.Helper()
	select {
	case err := <-p.result:
		return err
	case <-time.After(apitest.Patience):
		w.t.Fatal("the process does not end")
		return nil
	}
}

// gang makes a PodGroup and its pods.
func (w *testCluster) gang(name string, size int) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.batch.SchedulingV1beta1().PodGroups("default").Create(ctx, &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.PodGroupSpec{MinMember: int32(size), Queue: "default"},
	}, metav1.CreateOptions{})
	must(w.t, err)
	for i := range size {
		_, err := w.core.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"gang": name},
				Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		}, metav1.CreateOptions{})
		must(w.t, err)
	}
}

// isBound waits until all pods of a gang have a node.
func (w *testCluster) isBound(name string, size int) {
	w.t.Helper()
	apitest.Eventually(w.t, func(ctx context.Context) error {
		pods, err := w.core.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "gang=" + name, FieldSelector: "spec.nodeName!="})
		if err == nil && len(pods.Items) != size {
			return fmt.Errorf("%d pods of %d of gang %s have a node", len(pods.Items), size, name)
		}
		return err
	})
}

func TestTheSecondProcessTakesOverWhenTheFirstStops(t *testing.T) {
	w := onCluster(t)
	lease, one, two := "--leader-elect-resource-name=volcano-"+w.suffix, "one-"+w.suffix, "two-"+w.suffix
	first := w.start(lease)
	w.shows(first, "hekla_leading 1")
	w.ready(first)
	second := w.start(lease)
	w.ready(second)
	w.gang(one, 3)
	w.isBound(one, 3)
	w.shows(first, `hekla_binds_total{result="bound"} 3`)
	w.shows(second, "hekla_leading 0")
	apitest.Eventually(w.t, func(ctx context.Context) error {
		group, err := w.batch.SchedulingV1beta1().PodGroups("default").Get(ctx, one, metav1.GetOptions{})
		if err == nil && group.Status.Phase != v1beta1.PodGroupRunning {
			return fmt.Errorf("the PodGroup is %s", group.Status.Phase)
		}
		return err
	})
	w.gang(two, 2)
	first.stop()
	if err := w.ends(first); err != nil {
		t.Errorf("the first ended with %v", err)
	}
	w.shows(second, "hekla_leading 1")
	w.isBound(two, 2)
	if _, err := get(t.Context(), "http://"+second.health+"/healthz"); err != nil {
		t.Error(err)
	}
}

func TestLosingTheLeaseEndsTheProcessWithAnError(t *testing.T) {
	w := onCluster(t)
	name := "lost-" + w.suffix
	p := w.start("--leader-elect-resource-name="+name, "--scheduler-name=nobody", "--leader-elect-renew-deadline=1s", "--leader-elect-lease-duration=2s")
	w.shows(p, "hekla_leading 1")
	must(t, w.core.CoordinationV1().Leases(systemNamespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	lease := leaseOf(name, "somebody", metav1.NowMicro())
	apitest.Eventually(w.t, func(ctx context.Context) error {
		_, err := w.core.CoordinationV1().Leases(systemNamespace).Create(ctx, lease, metav1.CreateOptions{})
		if err != nil {
			_ = w.core.CoordinationV1().Leases(systemNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
		return err
	})
	if err := w.ends(p); !errors.Is(err, leader.ErrLeadershipLost) {
		t.Errorf("got %v, want that leadership was lost", err)
	}
}

func TestAChangedConfigMapIsInForceAndAnInvalidOneIsExplained(t *testing.T) {
	w := onCluster(t)
	name := "conf-" + w.suffix
	maps := w.core.CoreV1().ConfigMaps(systemNamespace)
	write := func(text string) {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{configurationKey: text}}
		_, err := maps.Update(t.Context(), object, metav1.UpdateOptions{})
		must(t, err)
	}
	p := w.start("--leader-elect=false", "--scheduler-configmap="+systemNamespace+"/"+name, "--scheduler-name=nobody")
	w.ready(p)
	w.shows(p, "hekla_configuration_valid 1") // there is no ConfigMap: the default is meant
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	w.shows(p, "hekla_configuration_valid 0") // there is no key
	write(goodConfiguration)
	w.shows(p, "hekla_configuration_valid 1")
	// The action that it leaves out runs no more.
	apitest.Eventually(w.t, func(ctx context.Context) error {
		before, err := w.counts(ctx, p)
		for now := before; err == nil && now["allocate"] < before["allocate"]+2; now, err = w.counts(ctx, p) {
			if now["enqueue"] != before["enqueue"] {
				return errors.New("enqueue still runs")
			}
			time.Sleep(20 * time.Millisecond)
		}
		return err
	})
	write(badConfiguration)
	w.shows(p, "hekla_configuration_valid 0")
	w.shows(p, "hekla_configuration_reload_failures_total 2")
	apitest.Eventually(w.t, func(ctx context.Context) error {
		events, err := w.core.EventsV1().Events(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == name && strings.Contains(e.Note, `line 2: tiers: there is no plugin "gnag"`) {
				return nil
			}
		}
		return errors.New("no event explains the invalid configuration")
	})
	must(t, maps.Delete(t.Context(), name, metav1.DeleteOptions{}))
	w.shows(p, "hekla_configuration_valid 1")
	w.shows(p, "hekla_configuration_reload_failures_total 2")
	p.stop()
	if err := w.ends(p); err != nil {
		t.Error(err)
	}
}

// counts returns how often each action ran.
func (w *testCluster) counts(ctx context.Context, p *instance) (map[string]int, error) {
	body, err := get(ctx, "http://"+p.numbers+"/metrics")
	counts := map[string]int{}
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(line, `volcano_action_scheduling_latency_milliseconds_count{action="`)
		action, count, found := strings.Cut(strings.TrimSpace(rest), `"} `)
		if ok && found {
			counts[action], err = strconv.Atoi(count)
		}
	}
	return counts, err
}

func TestAStartThatCannotSucceedSaysWhy(t *testing.T) {
	w := onCluster(t)
	conf := filepath.Join(t.TempDir(), "conf")
	must(t, os.WriteFile(conf, []byte(badConfiguration), 0o644))
	taken := w.start("--leader-elect=false", "--scheduler-name=nobody")
	w.ready(taken)
	for _, test := range []struct{ argument, want string }{
		{"--disable-default-scheduler-config", "neither --scheduler-conf nor --scheduler-configmap"},
		{"--scheduler-conf=" + conf + " --disable-default-scheduler-config", `line 2: tiers: there is no plugin "gnag"`},
		{"--healthz-address=" + taken.health, "serve on " + taken.health},
		{"x", `argument "x" is not understood`},
		{"2>&1 --node-selector=x", `--node-selector: node selector "x": expected a label as key:value`},
		{"--resource-sync-timeout=1ns", "not within --resource-sync-timeout=1ns"},
		{"--tls-cert-file=none --tls-private-key-file=none", "--tls-cert-file=none"},
		{"--kubeconfig=none", "no way to the API server"},
	} {
		p := w.start(append(strings.Fields(test.argument), "--leader-elect=false")...)
		if err := w.ends(p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.argument, err, test.want)
		}
	}
}

func TestWhatIsPrintedIsWhatWouldBeInForce(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "conf")
	var warned bytes.Buffer
	printed := func(text string) (string, error) {
		must(t, os.WriteFile(conf, []byte(text), 0o644))
		var out bytes.Buffer
		command := NewCommand()
		command.SetOut(&out)
		command.SetErr(&warned)
		command.SetArgs([]string{"--print-config", "--scheduler-conf=" + conf})
		err := command.ExecuteContext(t.Context())
		return out.String(), err
	}
	once, err := printed(goodConfiguration)
	must(t, err)
	if !strings.HasPrefix(once, "actions: \"allocate\"\n") || !strings.Contains(once, "enablePredicate: true") {
		t.Errorf("printed\n%s", once)
	}
	twice, err := printed(once)
	must(t, err)
	if once != twice {
		t.Errorf("printed again:\n%s", twice)
	}
	if warned.Len() > 0 {
		t.Errorf("without a reason it says %s", &warned)
	}
	const unmeasured = "actions: allocate\ntiers:\n- plugins:\n  - name: usage\n"
	if text, err := printed(unmeasured); err != nil || !strings.Contains(text, "name: usage") {
		t.Errorf("of one with a plugin that does nothing yet: %v\n%s", err, text)
	}
	if want := "hekla-scheduler: file " + conf + ": line 4: plugin usage has no effect: "; !strings.HasPrefix(warned.String(), want) {
		t.Errorf("it says %q, want %q", &warned, want)
	}
	if _, err := printed(badConfiguration); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("of an invalid one: %v", err)
	}
}

func leaseOf(name, holder string, now metav1.MicroTime) *coordinationv1.Lease {
	seconds := int32(60)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now},
	}
}
