package process

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// logAs makes a child process of these tests log in a format, and ask the API server that the second variable names.
const logAs, logAbout = "HEKLA_TEST_LOG", "HEKLA_TEST_LOG_SERVER"

const secretToken, secretPassword = "token-of-the-scheduler", "cGFzc3dvcmQ="

func TestMain(m *testing.M) {
	format := os.Getenv(logAs)
	if format == "" {
		os.Exit(m.Run())
	}
	logger, err := Log(10, format)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	logger.Info("Evicted a pod", "pod", "team/a-0")
	logger.V(10).Info("Everything")
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: os.Getenv(logAbout), BearerToken: secretToken})
	_, err = client.CoreV1().Secrets("team").Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"},
		StringData: map[string]string{"key": secretPassword}}, metav1.CreateOptions{})
	logger.Error(err, "Asked")
}

// logged returns what a process logs at the highest level that asks an API server for a Secret.
func logged(t *testing.T, format string) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"key": %q}}`, secretPassword)
	}))
	defer server.Close()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), logAs+"="+format, logAbout+"="+server.URL)
	said, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var lines []string
	for scanner := bufio.NewScanner(strings.NewReader(string(said))); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}

func TestALogIsTextOrJSON(t *testing.T) {
	// Standard error of the child is no terminal.
	for _, format := range []string{JSONFormat, AutomaticFormat} {
		var line struct{ Msg, Pod string }
		if err := json.Unmarshal([]byte(logged(t, format)[0]), &line); err != nil || line.Msg != "Evicted a pod" || line.Pod != "team/a-0" {
			t.Errorf("%s: %+v, %v", format, line, err)
		}
	}
	text := logged(t, TextFormat)
	if !strings.HasPrefix(text[0], "I") || !strings.HasSuffix(text[0], `"Evicted a pod" pod="team/a-0"`) {
		t.Errorf("as text it is %q", text[0])
	}
}

// At the highest level the libraries would log the bodies of requests and answers.
func TestSecretsAreNotLoggedAtAnyLevel(t *testing.T) {
	for _, format := range []string{JSONFormat, TextFormat} {
		lines := logged(t, format)
		has := func(text string) bool {
			return slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, text) })
		}
		if !has("Everything") || !has("/api/v1/namespaces/team/secrets") {
			t.Errorf("%s: of a level above 7 of our own, or of the request, nothing is said:\n%s", format, strings.Join(lines, "\n"))
		}
		if has(secretToken) || has(secretPassword) {
			t.Errorf("%s: a secret is in the log:\n%s", format, strings.Join(lines, "\n"))
		}
	}
}

func TestFlagsOfTheLogAreChecked(t *testing.T) {
	if problems := CheckLog(10, TextFormat); len(problems) > 0 {
		t.Error(problems)
	}
	if problems := CheckLog(11, "xml"); len(problems) != 2 || !strings.Contains(problems[1].Error(), "--log-format=xml") {
		t.Errorf("got %v", problems)
	}
}
