package client_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/pkg/client/informers/externalversions"
)

const (
	definitions = "../../installer/crds"
	manifests   = "../apis/testdata/manifests.yaml"
	command     = "../apis/testdata/command.yaml"

	// patience bounds every wait; only a failure reaches it.
	patience = time.Minute
)

// cluster is a real API server with the shipped definitions, applied as a user applies them.
var cluster *localcluster.Cluster

func TestMain(m *testing.M) {
	code, err := runWithCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithCluster(m *testing.M) (code int, err error) {
	cluster, err = localcluster.Start(context.Background(), localcluster.Options{
		WithoutKwok: true, WithoutControllers: true, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	for _, arguments := range [][]string{
		{"apply", "-f", definitions},
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", definitions},
		{"create", "namespace", "research"},
	} {
		if output, err := kubectl(arguments...); err != nil {
			return 1, fmt.Errorf("%w: %s", err, output)
		}
	}
	return m.Run(), nil
}

func kubectl(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, cluster.Kubectl(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	output, err := command.CombinedOutput()
	return string(output), err
}

// mustKubectl returns what kubectl prints.
func mustKubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := kubectl(arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return output
}

func clientset(t *testing.T) *versioned.Clientset {
	t.Helper()
	clients, err := versioned.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestApplyingTheDefinitionsAgainChangesNothing(t *testing.T) {
	output := strings.TrimSpace(mustKubectl(t, "apply", "-f", definitions))
	for line := range strings.Lines(output) {
		if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") {
			t.Error(line)
		}
	}
}

func TestManifestsOfVolcanoUsersApplyUnchanged(t *testing.T) {
	mustKubectl(t, "apply", "--validate=strict", "-f", manifests)
	mustKubectl(t, "apply", "--validate=strict", "-f", manifests)
	generations := strings.Fields(mustKubectl(t, "get", "-f", manifests, "-o", "jsonpath={.items[*].metadata.generation}"))
	if len(generations) == 0 {
		t.Error("nothing was applied")
	}
	for _, generation := range generations {
		if generation != "1" {
			t.Errorf("generations %v: applying again must change nothing", generations)
		}
	}
	mustKubectl(t, "create", "--validate=strict", "-f", command)
}

func TestAMisspeltFieldIsRefusedByKubectl(t *testing.T) {
	create := exec.Command(cluster.Kubectl(), "create", "--validate=strict", "-f", "-")
	create.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	create.Stdin = strings.NewReader(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: misspelt}
spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b, resources: {request: {cpu: 1}}}]}}}]}`)
	output, err := create.CombinedOutput()
	want := `unknown field "spec.tasks[0].template.spec.containers[0].resources.request"`
	if err == nil || !strings.Contains(string(output), want) {
		t.Errorf("got %v: %s, want %s", err, output, want)
	}
}

func TestKubectlShowsAndExplainsJobs(t *testing.T) {
	ctx, clients := t.Context(), clientset(t)
	job := newJob("shown")
	if _, err := clients.BatchV1alpha1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(mustKubectl(t, "get", "vcjob", "shown", "-o", "wide"), "\n")
	want := []string{"NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE", "QUEUE"}
	if diff := cmp.Diff(want, strings.Fields(header)); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for _, short := range []string{"vj", "pg", "podgroup-v1beta1", "q", "queue-v1beta1"} {
		mustKubectl(t, "get", short)
	}
	if text := mustKubectl(t, "explain", "vcjob.spec.minAvailable"); !strings.Contains(text, "The size of the gang") {
		t.Errorf("explained as:\n%s", text)
	}
}

func TestTheStatusIsWrittenApartFromTheSpec(t *testing.T) {
	ctx, clients := t.Context(), clientset(t)
	groups := clients.SchedulingV1beta1().PodGroups("default")
	group, err := groups.Create(ctx, &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "apart"},
		Spec:       schedulingv1beta1.PodGroupSpec{MinMember: 2},
		Status:     schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupRunning},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if group.Status.Phase != "" {
		t.Errorf("created in phase %s, but only the scheduler writes the status", group.Status.Phase)
	}
	group.Spec.MinMember = 9
	group.Status = schedulingv1beta1.PodGroupStatus{
		Phase: schedulingv1beta1.PodGroupPending,
		Conditions: []schedulingv1beta1.PodGroupCondition{{
			Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue,
			TransitionID: "7", LastTransitionTime: metav1.Now().Rfc3339Copy(),
			Reason: schedulingv1beta1.NotEnoughResourcesReason, Message: "2 pods need 4 CPUs, 3 are free",
		}},
	}
	updated, err := groups.UpdateStatus(ctx, group, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Spec.MinMember != 2 || updated.Generation != 1 {
		t.Errorf("minMember %d, generation %d after a change of the status", updated.Spec.MinMember, updated.Generation)
	}
	if diff := cmp.Diff(group.Status, updated.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestARuleThatIsBrokenIsNamedToTheClient(t *testing.T) {
	ctx, jobs := t.Context(), clientset(t).BatchV1alpha1().Jobs("default")
	tooLarge := newJob("too-large")
	tooLarge.Spec.MinAvailable = 9
	_, err := jobs.Create(ctx, tooLarge, metav1.CreateOptions{})
	expectInvalid(t, err, "spec.minAvailable: Invalid value: job 'minAvailable' should not be greater than total replicas in tasks: it is 9, and they are 2")

	moved, err := jobs.Create(ctx, newJob("moved"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	moved.Spec.Queue = "other"
	_, err = jobs.Update(ctx, moved, metav1.UpdateOptions{})
	expectInvalid(t, err, `: a Job cannot be moved to another queue`)

	moved.Spec.Queue = "default"
	moved.Spec.Tasks[0].Replicas = 5
	if _, err = jobs.Update(ctx, moved, metav1.UpdateOptions{}); err != nil {
		t.Errorf("scaling was refused: %v", err)
	}
}

func expectInvalid(t *testing.T, err error, message string) {
	t.Helper()
	if !errors.IsInvalid(err) || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want %s", err, message)
	}
}

func TestInformersFillTheListers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	clients := clientset(t)
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	queues := factory.Scheduling().V1beta1().Queues()
	seen := make(chan string, 16)
	if _, err := queues.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { seen <- object.(*schedulingv1beta1.Queue).Name },
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			t.Fatalf("%v was not listed", kind)
		}
	}
	queue := &schedulingv1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}
	if _, err := clients.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name := ""; name != "watched"; {
		select {
		case name = <-seen:
		case <-ctx.Done():
			t.Fatal("the new queue was never seen")
		}
	}
	listed, err := queues.Lister().Get("watched")
	if err != nil {
		t.Fatal(err)
	}
	if listed.Spec.Weight != 1 || listed.Spec.Reclaimable == nil || !*listed.Spec.Reclaimable {
		t.Errorf("listed without defaults: %+v", listed.Spec)
	}
	if all, err := queues.Lister().List(labels.Everything()); err != nil || len(all) == 0 {
		t.Errorf("listed %d queues: %v", len(all), err)
	}
}

// newJob is a Job of one task with two pods.
func newJob(name string) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1alpha1.JobSpec{Tasks: []batchv1alpha1.TaskSpec{{
			Name: "worker", Replicas: 2,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "worker", Image: "registry.k8s.io/pause:3.10"}},
			}},
		}}},
	}
}
