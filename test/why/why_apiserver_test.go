package why

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla"
	controllers "hekla.sh/hekla/cmd/controllers/app"
	scheduler "hekla.sh/hekla/cmd/scheduler/app"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/cli"
	"hekla.sh/hekla/internal/localcluster"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	kueue "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/browser"
)

const folder, systemNamespace = "../../example/why", apitest.SystemNamespace

var (
	cluster        *localcluster.Cluster
	kube           client.Client
	metricsAddress string
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return 1, err
	}
	configuration, err := localcluster.ReadManifests(os.DirFS(folder))
	if err != nil {
		return 1, err
	}
	manifests = localcluster.WithoutPods(manifests)
	for _, object := range configuration {
		if object.GetKind() == "ConfigMap" {
			manifests = append(manifests, object)
		}
	}
	// One node, because a cluster without any starts no kwok; no pod uses it.
	cluster, err = localcluster.Start(ctx, localcluster.Options{Nodes: 1, Manifests: manifests, Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if kube, err = apitest.Client(cluster.Config()); err != nil {
		return 1, err
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return 1, err
	}
	for _, name := range nodes {
		if err := cluster.RemoveNode(ctx, name); err != nil {
			return 1, err
		}
	}
	if err := cluster.Apply(ctx, publish.Local(systemNamespace)); err != nil {
		return 1, err
	}
	port, err := localcluster.FreePort()
	if err != nil {
		return 1, err
	}
	metricsPort, err := localcluster.FreePort()
	if err != nil {
		return 1, err
	}
	metricsAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(metricsPort))
	kubeconfig := "--kubeconfig=" + cluster.KubeconfigPath()
	start := func(command *cobra.Command, arguments ...string) {
		command.SetArgs(append(arguments, kubeconfig, "--leader-elect=false"))
		go func() { _ = command.ExecuteContext(ctx) }()
	}
	start(controllers.NewCommand())
	if pageAddress, pageToken, err = page(ctx); err != nil {
		return 1, err
	}
	start(scheduler.NewCommand(), "--web-address="+pageAddress, fmt.Sprintf("--answers-address=127.0.0.1:%d", port), "--answers-service="+systemNamespace+"/"+publish.Service,
		"--scheduler-configmap="+systemNamespace+"/volcano-scheduler-configmap", "--enable-metrics", "--listen-address="+metricsAddress)
	return m.Run(), nil
}

// said is what a command of hekla says.
func said(ctx context.Context, line string) (string, error) {
	return run(ctx, append(strings.Fields(line), "--kubeconfig="+cluster.KubeconfigPath())...)
}

// run runs a command of hekla as it is.
func run(ctx context.Context, arguments ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "hekla", SilenceErrors: true, SilenceUsage: true}
	cli.AddCommands(root, "hekla", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	root.SetArgs(arguments[1:])
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// stuck are the examples, with what the answer must say in addition to the code in their header.
var stuck = map[string][]string{
	"01-missing-queue.yaml":              {"queue nowhere does not exist", "hekla queue create nowhere"},
	"02-closed-queue.yaml":               {"queue why is not open", "hekla queue operate why -a open"},
	"03-too-large-for-any-node.yaml":     {"cannot start as things are", "cpu: needs 12, has 8, short by 4"},
	"04-over-capability.yaml":            {"queue why: capability of cpu is 4, it holds 3, the job needs 3: 2 too much", "hekla why queue why", "Held    3 of 4 cpu of queue why are held", "cpu 1 instead of 3", "queue why needs the capability cpu 6 instead of 4; each of the pods has room on a node"},
	"05-gang-short-by-one.yaml":          {"7 of the 8 pods that must start together have a place", "with minAvailable 7 instead of 8 its first 7 pods would start now"},
	"06-taint.yaml":                      {"untolerated taint", "cannot start as things are"},
	"07-affinity.yaml":                   {"node affinity/selector", "cannot start as things are"},
	"08-volume.yaml":                     {"persistentvolumeclaim \"data\" not found"},
	"09-device.yaml":                     {"cannot allocate all claims"},
	"10-promised.yaml":                   {"1: promised to default/urgent (such as why-1)", "hekla why job urgent -n default"},
	"11-behind-a-bigger-job.yaml":        {"job default/bigger comes first", "hekla why job bigger -n default"},
	"12-victims-opted-out.yaml":          {"1 protected by rule P2 (not marked volcano.sh/preemptable)"},
	"13-disruption-budget.yaml":          {"their disruption budget is spent"},
	"14-namespace-quota.yaml":            {"exceeded quota: why"},
	"15-scheduling-gate.yaml":            {"pods are held by scheduling gates"},
	"16-two-mistakes.yaml":               {"did you mean accelerator?", "did you mean gpu, as in the taint gpu=yes:NoSchedule?"},
	"17-misspelled-resource.yaml":        {"no node offers nvidia.com/gpus; did you mean nvidia.com/gpu?", "cannot start as things are"},
	"18-full-parent.yaml":                {"capability of cpu is 4", "queue why-parent"},
	"19-inactive-clusterqueue.yaml":      {"ClusterQueue why is inactive: it references missing ResourceFlavor(s): spot"},
	"20-group-in-another-namespace.yaml": {"PodGroup default/stuck, which annotation scheduling.k8s.io/group-name names, does not exist; PodGroup why/stuck does"},
}

var code = regexp.MustCompile(`says ([A-Za-z]+)\.`)

func TestEachStuckJobIsExplainedByOneCommand(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "[0-9]*.yaml"))
	if err != nil || len(files) != len(stuck) {
		t.Fatalf("%d examples and %d expectations: %v", len(files), len(stuck), err)
	}
	reader := browser.StartIfThere(t, "../../web")
	openPage(t, reader)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, ok := stuck[filepath.Base(file)]
			if !ok {
				t.Fatal("nothing is expected of it")
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			named := code.FindStringSubmatch(string(text))
			if named == nil {
				t.Fatal("its header does not say which code it shows")
			}
			apply(t, filepath.Base(file))
			var last string
			apitest.Eventually(t, func(ctx context.Context) error {
				var err error
				if last, err = said(ctx, "hekla why job stuck -n default"); err != nil {
					return err
				}
				for _, part := range append([]string{": " + named[1] + "\n", "\nNext: "}, want...) {
					if !strings.Contains(last, part) {
						return fmt.Errorf("no %q in\n%s", part, last)
					}
				}
				return nil
			})
			t.Log("\n" + last)
			row := "default/stuck"
			switch isGrouped := named[1] != "PodGroupNotFound"; {
			case !isGrouped:
				findInPod(t, named[1])
			case strings.Contains(string(text), "kind: LocalQueue"):
				row = findInWorkload(t, named[1])
				findInMetrics(t, "hekla_cluster_queue_pending_workloads", named[1])
			default:
				findInStatus(t, named[1])
				findInMetrics(t, "hekla_queue_pending_jobs", named[1])
			}
			findInPage(t, reader, row, named[1])
		})
	}
}

// findInStatus finds the cause in the status of the PodGroup.
func findInStatus(t *testing.T, code string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		groups := &scheduling.PodGroupList{}
		if err := kube.List(ctx, groups, client.InNamespace("default")); err != nil {
			return err
		}
		for i := range groups.Items {
			g := &groups.Items[i]
			if !strings.HasPrefix(g.Name, "stuck-") {
				continue
			}
			for _, c := range g.Status.Conditions {
				if c.Type == scheduling.PodGroupUnschedulableType && c.Reason == code {
					return nil
				}
			}
			return fmt.Errorf("no condition of PodGroup %s says %s: %+v", g.Name, code, g.Status.Conditions)
		}
		return errors.New("the job has no PodGroup")
	})
}

// findInWorkload finds the cause in the condition of the Workload, which it returns as namespace/name.
func findInWorkload(t *testing.T, code string) (name string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		workloads := &kueue.WorkloadList{}
		if err := kube.List(ctx, workloads, client.InNamespace("default")); err != nil {
			return err
		}
		for i := range workloads.Items {
			if c := meta.FindStatusCondition(workloads.Items[i].Status.Conditions, kueue.QuotaReserved); c != nil && c.Reason == code {
				name = workloads.Items[i].Namespace + "/" + workloads.Items[i].Name
				return nil
			}
		}
		return fmt.Errorf("no condition of a Workload says %s: %+v", code, workloads.Items)
	})
	return name
}

// findInPod finds the cause in the condition of the pod.
func findInPod(t *testing.T, code string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: "stuck-0"}, pod); err != nil {
			return err
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == code {
				return nil
			}
		}
		return fmt.Errorf("no condition of the pod says %s: %+v", code, pod.Status.Conditions)
	})
}

// findInMetrics finds the cause among the reasons for which jobs wait.
func findInMetrics(t *testing.T, name, code string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metricsAddress+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err == nil && !regexp.MustCompile(name+`\{[^}]*reason="`+code+`"\} [1-9]`).Match(text) {
			err = fmt.Errorf("no metric says %s: %q", code, regexp.MustCompile(name+`\{.*`).FindAllString(string(text), -1))
		}
		return err
	})
}

func TestAJobIsTriedWithoutBeingSubmitted(t *testing.T) {
	apply(t, "07-affinity.yaml")
	for name, want := range map[string][]string{
		"15-scheduling-gate.yaml":   {"Job default/stuck would wait", "SchedulingGated", "place 1 of 1; the queue is 1 of 1"},
		"04-over-capability.yaml":   {"Job default/first would wait for admission", "QueueNotFound"},
		"12-victims-opted-out.yaml": {"Job default/first would start now", "default/first-worker-0 on why-1"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			var jobs []string
			for _, document := range strings.Split(string(text), "\n---\n") {
				if strings.Contains(document, "kind: Job\n") && !strings.Contains(document, "priorityClassName") {
					jobs = append(jobs, strings.ReplaceAll(document, "stuck}", "tried}"))
				}
			}
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, []byte(strings.Join(jobs, "\n---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := said(t.Context(), "hekla try -n default -f "+file)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range want {
				if part = strings.ReplaceAll(part, "stuck", "tried"); !strings.Contains(said, part) {
					t.Errorf("no %q in\n%s", part, said)
				}
			}
		})
	}
	jobs := &batch.JobList{}
	if err := kube.List(t.Context(), jobs, client.InNamespace("default")); err != nil || len(jobs.Items) != 1 {
		t.Errorf("%d jobs are there, want the one that was submitted: %v", len(jobs.Items), err)
	}
}

// steps are what the header of an example says is to be done after an object.
var steps = map[string]func(t *testing.T){
	"02-closed-queue.yaml why": func(t *testing.T) {
		t.Helper()
		// A Command of the first ten seconds after the installation is ignored, with an Event that says so: the policy
		// that checks its author may not have been in force. So it is made again.
		apitest.Eventually(t, func(ctx context.Context) error {
			text, err := said(ctx, "hekla why queue why")
			if err != nil || strings.Contains(text, "Queue why is Closed") {
				return err
			}
			if said, err := said(ctx, "hekla queue operate why -a close"); err != nil {
				return fmt.Errorf("%s: %w", said, err)
			}
			time.Sleep(time.Second)
			return errors.New(text)
		})
	},
	"10-promised.yaml first": func(t *testing.T) {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first-worker-0"}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/slow"]}}`))
		if err := kube.Patch(t.Context(), pod, patch); err != nil {
			t.Fatal(err)
		}
	},
}

// apply makes the objects of an example, one after the other, and removes them when the test ends.
func apply(t *testing.T, name string) {
	t.Helper()
	objects, err := localcluster.ReadManifests(only{os.DirFS(folder), name})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if isNamespaced(object) && object.GetNamespace() == "" {
			object.SetNamespace("default")
		}
		if err := cluster.Apply(t.Context(), []*unstructured.Unstructured{object}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
		if object.GetKind() == "Job" && object.GetName() != "stuck" {
			waitFor(t, object.GetName())
		}
		if step := steps[name+" "+object.GetName()]; step != nil {
			step(t)
		}
		if object.GetKind() == "Node" {
			waitForNode(t, object.GetName())
		}
	}
}

func isNamespaced(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Node", "Queue", "PriorityClass", "DeviceClass", "Namespace", "ClusterQueue":
		return false
	}
	return true
}

// waitFor waits until a job runs, or the scheduler says why it does not.
func waitFor(t *testing.T, name string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		job := &batch.Job{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, job); err != nil {
			return err
		}
		text, err := said(ctx, "hekla why job "+name+" -n default")
		if err == nil && job.Status.Running == 0 && !strings.Contains(text, "Preempting") && !strings.Contains(text, "VictimsOptedOut") {
			err = fmt.Errorf("job %s does not run: %s", name, text)
		}
		return err
	})
	time.Sleep(1100 * time.Millisecond) // the age of jobs has seconds
}

func waitForNode(t *testing.T, name string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := kube.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not Ready", name)
	})
}

// remove deletes an object, and what became of a job.
func remove(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := kube.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	if object.GetKind() != "Job" {
		return
	}
	pods := &corev1.PodList{}
	for deadline := time.Now().Add(apitest.Patience); ; time.Sleep(50 * time.Millisecond) {
		if err := kube.List(ctx, pods, client.InNamespace("default"), client.MatchingLabels{batch.JobNameKey: object.GetName()}); err != nil {
			t.Error(err)
		}
		if len(pods.Items) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pods of job %s are left", len(pods.Items), object.GetName())
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if len(pod.Finalizers) > 0 {
				pod.Finalizers = nil
				_ = kube.Update(ctx, pod) // it is tried again
			}
			if err := kube.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
}

// A pod that names nearly this scheduler is told so, also though the scheduler does not know it.
func TestAPodOfAMistypedSchedulerNameNamesTheOneThatWasMeant(t *testing.T) {
	pod := apitest.Object(t, "default", "{apiVersion: v1, kind: Pod, metadata: {name: mistyped}, spec: {schedulerName: volcanoo, containers: [{name: a, image: b}]}}")
	if err := cluster.Apply(t.Context(), []*unstructured.Unstructured{pod}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, pod) })
	apitest.Eventually(t, func(ctx context.Context) error {
		text, err := said(ctx, "hekla why pod mistyped -n default")
		if err == nil || !strings.Contains(err.Error(), "its schedulerName is volcanoo, and this scheduler places those of volcano; did you mean volcano?") {
			return fmt.Errorf("it says %v, %s", err, text)
		}
		return nil
	})
}

// A Job that is stopped, and cannot be resumed before a pod has ended, names the pod and its finalizer.
func TestAStoppedJobNamesThePodThatDoesNotEnd(t *testing.T) {
	node, err := localcluster.ReadManifests(only{os.DirFS(folder), "01-missing-queue.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	job := apitest.Object(t, "default", `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: stopped}, spec: {schedulerName: volcano, queue: default, minAvailable: 1,
  tasks: [{name: worker, replicas: 1, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}]}}`)
	for _, object := range []*unstructured.Unstructured{node[0], job} {
		if err := cluster.Apply(t.Context(), []*unstructured.Unstructured{object}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
	waitFor(t, "stopped")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stopped-worker-0"}}
	hold := func(finalizers string) {
		t.Helper()
		if err := kube.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	hold(`["example.com/hold"]`)
	if text, err := said(t.Context(), "hekla job suspend -N stopped -n default"); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	says(t, "hekla why job stopped -n default", "pod default/stopped-worker-0 is being deleted and has the finalizer example.com/hold")
	hold("null")
	says(t, "hekla why job stopped -n default", "does not wait: Aborted")
}
