package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	// metricsURL is where the scheduler serves its metrics, controllersURL the controllers.
	metricsURL, controllersURL string
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
	controllers, err := system.Run(ctx, installed.Controllers)
	if err != nil {
		return 1, err
	}
	program, err := system.Run(ctx, installed.Scheduler)
	if err != nil {
		return 1, err
	}
	metricsURL, controllersURL = program.MetricsURL, controllers.MetricsURL
	code = m.Run()
	return code, scraped(ctx)
}

// scrape reads the metrics of a program.
func scrape(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}

// scraped is an error if the scheduler or the controllers do not show all their metrics.
func scraped(ctx context.Context) error {
	for _, url := range []string{metricsURL, controllersURL} {
		text, err := scrape(ctx, url)
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		for line := range strings.Lines(text) {
			if count, is := strings.CutPrefix(line, `promhttp_metric_handler_errors_total{cause="gathering"} `); is && strings.TrimSpace(count) != "0" {
				return fmt.Errorf("%s: %s scrapes lacked series", url, strings.TrimSpace(count))
			}
		}
	}
	return nil
}

func kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := system.Kubectl(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// haveNodes brings the cluster to that many nodes. When the test ends it looks whether all metrics are shown.
func haveNodes(t *testing.T, count int) {
	t.Helper()
	t.Cleanup(func() {
		// A program that the test has ended begins again.
		if err := apitest.Await(context.WithoutCancel(t.Context()), scraped); err != nil {
			t.Error(err)
		}
	})
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
