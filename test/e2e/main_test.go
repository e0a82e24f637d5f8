package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

const (
	// root is the folder of the module.
	root = "../.."
	// systemNamespace is where the installer puts everything.
	systemNamespace = "volcano-system"
	// patience bounds every wait. It is reached only by a failure.
	patience = time.Minute
	// poll is how often is looked.
	poll = 50 * time.Millisecond
)

// The shared cluster and what talks to it.
var (
	cluster *localcluster.Cluster
	core    kubernetes.Interface
	batch   versioned.Interface
	// programs is the folder of our executables.
	programs string
	// metricsURL is where the scheduler serves its metrics.
	metricsURL string
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if programs, err = os.MkdirTemp("", "hekla-e2e-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	if err := apitest.Build(ctx, programs, "hekla", "scheduler", "controllers"); err != nil {
		return 1, err
	}
	if cluster, err = localcluster.Start(ctx, localcluster.Options{Nodes: 2, Serve: []string{"resource.k8s.io/v1beta2"}, Progress: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if core, err = kubernetes.NewForConfig(cluster.Config()); err != nil {
		return 1, err
	}
	if batch, err = versioned.NewForConfig(cluster.Config()); err != nil {
		return 1, err
	}
	for _, file := range []string{"installer/hekla.yaml", "installer/configuration.yaml"} {
		if output, err := runKubectl(ctx, "apply", "-f", filepath.Join(root, file)); err != nil {
			return 1, fmt.Errorf("%w\n%s", err, output)
		}
	}
	// The scheduler is a process beside the API server, and no pod behind a Service.
	for _, object := range []string{"service/" + publish.Service, "apiservice/" + publish.APIService} {
		if output, err := runKubectl(ctx, "delete", "-n", systemNamespace, object); err != nil {
			return 1, fmt.Errorf("%w\n%s", err, output)
		}
	}
	if err := cluster.Apply(ctx, publish.Local(systemNamespace)); err != nil {
		return 1, err
	}
	for _, name := range []string{"volcano-controllers", "volcano-scheduler"} {
		if err := runDeployment(ctx, name); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func runDeployment(ctx context.Context, name string) error {
	program, err := programOf(ctx, name)
	if err == nil {
		_, err = cluster.Run(ctx, program)
	}
	return err
}

// programOf returns what a Deployment of the installer says, as a process beside the cluster: its command, its arguments
// but for the addresses, its ServiceAccount.
func programOf(ctx context.Context, name string) (localcluster.Program, error) {
	failed := func(err error) (localcluster.Program, error) { return localcluster.Program{}, err }
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return failed(err)
	}
	var deployment appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
				return failed(err)
			}
		}
	}
	spec := deployment.Spec.Template.Spec
	if len(spec.Containers) != 1 || len(spec.Containers[0].Command) != 1 {
		return failed(fmt.Errorf("Deployment %s has not one container with a command", name))
	}
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(ctx, systemNamespace, spec.ServiceAccountName)
	if err != nil {
		return failed(err)
	}
	health, err := freeAddress()
	if err != nil {
		return failed(err)
	}
	metrics, err := freeAddress()
	if err != nil {
		return failed(err)
	}
	questions, err := freeAddress()
	if err != nil {
		return failed(err)
	}
	arguments := []string{"--kubeconfig=" + kubeconfig}
	for _, argument := range spec.Containers[0].Args {
		switch flag, _, _ := strings.Cut(argument, "="); flag {
		case "--healthz-address":
			argument = flag + "=" + health
		case "--listen-address":
			argument = flag + "=" + metrics
		case "--answers-address":
			argument = flag + "=" + questions
		case "--answers-endpoint":
			continue // the address of a pod
		}
		arguments = append(arguments, argument)
	}
	if name == "volcano-controllers" {
		arguments = append(arguments, "--yunikorn-labels") // as the chart does with yunikorn.labels
	}
	if name == "volcano-scheduler" {
		metricsURL = "http://" + metrics + "/metrics"
	}
	return localcluster.Program{
		Name: name, Path: filepath.Join(programs, spec.Containers[0].Command[0]), Args: arguments,
		ReadyURL: "http://" + health + "/readyz",
	}, nil
}

func freeAddress() (string, error) {
	port, err := localcluster.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

func runKubectl(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, cluster.Kubectl(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

// kubectlCommand is a call of kubectl, whose input the caller may set.
func kubectlCommand(t *testing.T, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(t.Context(), cluster.Kubectl(), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.KubeconfigPath())
	return command
}

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := runKubectl(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// haveNodes brings the cluster to that many nodes.
func haveNodes(t *testing.T, count int) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		nodes, err := cluster.Nodes(ctx)
		if err != nil {
			return err
		}
		if missing := count - len(nodes); missing > 0 {
			_, err := cluster.AddNodes(ctx, missing, localcluster.NodeTemplate{})
			return err
		}
		removed, busy, err := cluster.RemoveIdleNodes(ctx, len(nodes)-count)
		if err == nil && len(removed) < len(nodes)-count {
			err = fmt.Errorf("nodes in use: %v", busy)
		}
		return err
	})
}

// The API server forgets nothing that was refused: the programs write it to their logs.
func nothingWasForbidden(t *testing.T) {
	t.Helper()
	for _, process := range cluster.Processes() {
		if !slices.Contains([]string{"volcano-scheduler", "volcano-controllers"}, process.Name) {
			continue
		}
		log, err := os.ReadFile(process.LogPath)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(strings.ToLower(line), "forbidden") {
				t.Errorf("%s lacks a right: %s", process.Name, line)
			}
		}
	}
}
