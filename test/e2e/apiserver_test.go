package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"
)

const (
	// root is the folder of the module.
	root = "../.."
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
	system  *installed.System
	// programs is the folder of our executables.
	programs string
	// metricsURL is where the scheduler serves its metrics.
	metricsURL string
)

// auditEnv names the file that gets the audit log, if any is to be kept. A test of test/installer reads from it which
// rights of the roles are used.
const auditEnv = "HEKLA_E2E_AUDIT"

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	if system, err = installed.Start(ctx, root, localcluster.Options{Nodes: 2, Serve: []string{"resource.k8s.io/v1beta2"},
		AuditLog: os.Getenv(auditEnv), Progress: os.Stderr}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	cluster, core, batch, programs = system.Cluster, system.Core, system.Volcano, system.Folder
	if _, err := system.Run(ctx, installed.Controllers); err != nil {
		return 1, err
	}
	program, err := system.Run(ctx, installed.Scheduler)
	if err != nil {
		return 1, err
	}
	metricsURL = program.MetricsURL
	return m.Run(), nil
}

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := system.Kubectl(t.Context(), arguments...)
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
