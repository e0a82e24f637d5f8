package installer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster"
)

const (
	// root is the folder of the module.
	root = "../.."
	// chart is the folder of the chart.
	chart = root + "/installer/helm/hekla"
	// system is the namespace that everything is in unless another is asked for.
	system = "volcano-system"
)

// helmPath is the helm that hack/helm.mod pins.
var helmPath string

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runWithHelm(m) })
}

func runWithHelm(m *testing.M) (code int, err error) {
	// Run as hack/generate.sh runs it, helm is built once for both; asked for by -n, it is where that left it.
	if _, err := goTool("helm", "version"); err != nil {
		return 1, err
	}
	output, err := goTool("-n", "helm")
	if err != nil {
		return 1, err
	}
	helmPath = strings.TrimSpace(output)
	home, err := os.MkdirTemp("", "hekla-helm-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	// What the user of this machine has told helm is no part of the test.
	for _, variable := range []string{"HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"} {
		if err := os.Setenv(variable, filepath.Join(home, variable)); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

func goTool(arguments ...string) (string, error) {
	command := exec.Command("go", append([]string{"tool", "-modfile=hack/helm.mod"}, arguments...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return outputOf(command)
}

// outputOf runs a command. Its error says what the command complained of.
func outputOf(command *exec.Cmd) (string, error) {
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, complaints.String())
	}
	return string(output), nil
}

func runHelm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	return outputOf(exec.CommandContext(t.Context(), helmPath, arguments...))
}

func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := runHelm(t, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// valuesFile writes values and returns the flag that names them.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--values=" + path
}

// render returns what the chart makes of values.
func render(t *testing.T, values string, flags ...string) []*unstructured.Unstructured {
	t.Helper()
	arguments := append([]string{"template", "hekla", chart, "--namespace=" + system, valuesFile(t, values)}, flags...)
	return parse(t, helm(t, arguments...))
}

// parse reads a text of manifests.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "rendered.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := localcluster.ReadManifests(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
