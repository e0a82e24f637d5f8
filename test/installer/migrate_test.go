package installer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// volcanoChart returns a chart that installs what Hekla's objects meet where Volcano was: objects of the same names,
// some with other fields that cannot change, and the definitions among them.
func volcanoChart(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "volcano")
	for _, copied := range [][]string{{"-R", "testdata/volcano", folder}, {"-RL", root + "/installer/crds", folder + "/definitions"}} {
		if output, err := exec.Command("cp", copied...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	return folder
}

// stepsOfTheMove returns the blocks of commands that tell how a cluster moves over.
func stepsOfTheMove(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/migrate-from-volcano.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Moving a cluster over\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var steps []string
	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		steps = append(steps, match[1])
	}
	if len(steps) != 6 {
		t.Fatalf("the page has %d blocks of commands, want six", len(steps))
	}
	return steps
}

// reader is a person in front of the pages, in the folder of the module after make build.
type reader struct {
	*release
	folder string
}

func (r *release) newReader(t *testing.T) reader {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"installer", "example"} {
		target, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := apitest.Build(t.Context(), filepath.Join(folder, "bin"), "scheduler"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(helmPath, filepath.Join(folder, "bin", "helm")); err != nil {
		t.Fatal(err)
	}
	return reader{release: r, folder: folder}
}

// types runs what stands on a page.
func (r reader) types(t *testing.T, commands string) string {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir = r.folder
	path := []string{filepath.Join(r.folder, "bin"), filepath.Dir(r.cluster.Kubectl()), os.Getenv("PATH")}
	shell.Env = append(os.Environ(), "KUBECONFIG="+r.cluster.KubeconfigPath(), "PATH="+strings.Join(path, string(os.PathListSeparator)))
	output, err := outputOf(shell)
	if err != nil {
		t.Fatalf("%s\n%v", commands, err)
	}
	return output
}

// theirs is what users have, and what they have written.
type theirs struct {
	Configurations map[string]map[string]string
	Job, Queue     string
}

func (r *release) theirs(t *testing.T) theirs {
	t.Helper()
	found := theirs{Configurations: map[string]map[string]string{}}
	for _, name := range []string{"volcano-scheduler-configmap", "volcano-admission-configmap", "volcano-controller-configmap"} {
		config, err := r.core.CoreV1().ConfigMaps(system).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found.Configurations[name] = config.Data
	}
	job, err := r.ours.BatchV1alpha1().Jobs(metav1.NamespaceDefault).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := r.ours.SchedulingV1beta1().Queues().Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Job, found.Queue = string(job.UID), string(queue.UID)
	return found
}

// hasJobs makes a Job and a Queue, as soon as the definitions are served.
func (r *release) hasJobs(t *testing.T) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		_, err := r.ours.SchedulingV1beta1().Queues().Create(ctx, &schedulingv1beta1.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Spec: schedulingv1beta1.QueueSpec{Weight: 1},
		}, metav1.CreateOptions{})
		return err
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		_, err := r.ours.BatchV1alpha1().Jobs(metav1.NamespaceDefault).Create(ctx, &batchv1alpha1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "kept"},
			Spec: batchv1alpha1.JobSpec{MinAvailable: 1, Tasks: []batchv1alpha1.TaskSpec{{Name: "a", Replicas: 1, Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, RestartPolicy: corev1.RestartPolicyNever},
			}}}},
		}, metav1.CreateOptions{})
		return err
	})
}

// isInForce starts the scheduler with the flags that it is installed with, and waits until it names the actions.
func (r reader) isInForce(t *testing.T, actions string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	scheduler := exec.CommandContext(ctx, filepath.Join(r.folder, "bin", "hekla-scheduler"), "--kubeconfig="+r.cluster.KubeconfigPath(),
		"--scheduler-configmap="+system+"/volcano-scheduler-configmap", "--leader-elect=false")
	log, err := scheduler.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = scheduler.Wait() }()
	var seen strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(seen.String(), actions) {
		n, err := log.Read(buffer)
		seen.Write(buffer[:n])
		if err != nil {
			t.Fatalf("the scheduler never says that %s is in force (%v):\n%s", actions, err, seen.String())
		}
	}
}

// edit changes the configuration of the scheduler as a person does, so that it is no longer what an installer wrote.
func (r *release) edit(t *testing.T) {
	t.Helper()
	configMaps := r.core.CoreV1().ConfigMaps(system)
	config, err := configMaps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const key = "volcano-scheduler.conf"
	edited := strings.Replace(config.Data[key], "enqueue, allocate, backfill", "allocate, preempt, reclaim", 1)
	if edited == config.Data[key] {
		t.Fatal("there is nothing to edit")
	}
	config.Data[key] = edited
	if _, err := configMaps.Update(t.Context(), config, metav1.UpdateOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
}

func TestFollowingThePageKeepsJobsAndConfiguration(t *testing.T) {
	const editedActions = `["allocate","preempt","reclaim"]`
	steps := stepsOfTheMove(t)
	for name, move := range map[string]struct {
		begin func(r reader)
		steps []string
	}{
		"both by kubectl": {
			func(r reader) {
				r.types(t, "kubectl create namespace volcano-system; helm template volcano "+volcanoChart(t)+" --namespace volcano-system > v.yaml")
				r.types(t, "until kubectl apply -f v.yaml; do sleep 1; done")
			},
			[]string{steps[0], steps[1], "kubectl apply -f installer/hekla.yaml", "kubectl apply -f installer/hekla.yaml", steps[4]},
		},
		"both by Helm": {
			func(r reader) { r.helm(t, "install", "volcano", volcanoChart(t), "--create-namespace") },
			[]string{steps[0], steps[1], steps[2], steps[3], steps[4], "helm upgrade hekla installer/helm/hekla --namespace volcano-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := startCluster(t).newReader(t)
			move.begin(r)
			r.hasJobs(t)
			r.edit(t)
			before := r.theirs(t)
			for _, step := range move.steps {
				r.types(t, step)
			}
			if difference := cmp.Diff(before, r.theirs(t)); difference != "" {
				t.Errorf("before the move (-), after it (+):\n%s", difference)
			}
			if missing := r.missing(t, render(t, "")); len(missing) > 0 {
				t.Errorf("after the move there is no %v", missing)
			}
			r.isInForce(t, editedActions)
			for _, kind := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "jobs.batch", "secrets"} {
				left := r.types(t, "kubectl -n volcano-system get -o name "+kind)
				if regexp.MustCompile("volcano-admission-service|admission-init|release.v1.volcano").MatchString(left) {
					t.Errorf("of Volcano are left %s", left)
				}
			}
		})
	}
}
