package operators

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"
)

// root is the folder of the module.
const root = "../.."

// withPreemption is the default configuration with the actions that evict pods.
const withPreemption = `{"data": {"volcano-scheduler.conf": "actions: \"enqueue, admit, allocate, preempt, reclaim, backfill\"\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}, {name: cohorts}]\n"}}`

// The cluster and what talks to it.
var (
	cluster *localcluster.Cluster
	core    kubernetes.Interface
	volcano versioned.Interface
	system  *installed.System
	// programs is the folder of Hekla's executables, and of the operators' files.
	programs string
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if err := buildOperators(ctx); err != nil {
		return 1, err
	}
	// One node, so that what does not fit into the queue does not fit at all.
	node := localcluster.NodeTemplate{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}}
	if system, err = installed.Start(ctx, root, localcluster.Options{Nodes: 1, NodeTemplate: node, Progress: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	cluster, core, volcano, programs = system.Cluster, system.Core, system.Volcano, system.Folder
	// The default evicts no pods.
	if _, err := system.Kubectl(ctx, "patch", "configmap", "volcano-scheduler-configmap", "-n", installed.Namespace, "--type=merge", "-p", withPreemption); err != nil {
		return 1, err
	}
	for _, deployment := range []string{installed.Controllers, installed.Scheduler} {
		if _, err := system.Run(ctx, deployment); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

// buildOperators builds the tools of the module of programs into the build cache, and notes where they are there.
func buildOperators(ctx context.Context) error {
	for _, o := range operators {
		build := exec.CommandContext(ctx, "go", "tool", "-n", o.program)
		build.Dir, build.Env, build.Stderr = "programs", append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		path, err := build.Output()
		if err != nil {
			return fmt.Errorf("build %s: %w", o.program, err)
		}
		o.path = strings.TrimSpace(string(path))
	}
	return nil
}

// moduleFolder is where the go command keeps a module of the programs.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = "programs"
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// kubectl runs kubectl, with a text as its input.
func kubectl(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	output, err := system.KubectlWith(context.WithoutCancel(t.Context()), input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// processOf is the running process of a program.
func processOf(t *testing.T, name string) *localcluster.Process {
	t.Helper()
	processes := cluster.Processes()
	i := slices.IndexFunc(processes, func(p *localcluster.Process) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("%s does not run", name)
	}
	return processes[i]
}
