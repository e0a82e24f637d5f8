package why

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/test/apitest"
)

var (
	caseOf  = regexp.MustCompile(`\]\(\.\./\.\./example/why/([^)]+)\)`)
	command = regexp.MustCompile("(?s)```sh\n(hekla [^\n]+)\n```")
	shown   = regexp.MustCompile("(?s)```text\n(.*?)\n```")
	given   = regexp.MustCompile("(?s)```yaml\n(.*?)\n```")
	spaces  = regexp.MustCompile(`\s+`)
)

// plain is a line with single spaces, so that tables may be wider.
func plain(line string) string { return strings.TrimSpace(spaces.ReplaceAllString(line, " ")) }

// has reports whether a line matches that of a page, in which … stands for anything.
func has(line, wanted string) bool {
	line = plain(line)
	for i, part := range strings.Split(plain(wanted), "…") {
		part = strings.TrimSpace(part)
		at := strings.Index(line, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		line = line[at+len(part):]
	}
	return true
}

// missing returns the first line of a page that a text does not have, in the order of the page; "" if it has all.
func missing(text, page string) string {
	lines := strings.Split(text, "\n")
	for _, wanted := range strings.Split(page, "\n") {
		for len(lines) > 0 && !has(lines[0], wanted) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return wanted
		}
		lines = lines[1:]
	}
	return ""
}

// ready is what `hekla why job stuck` says once an example is as its header says.
func ready(t *testing.T, example string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, example))
	if err != nil {
		t.Fatal(err)
	}
	says(t, "hekla why job stuck -n default", ": "+code.FindStringSubmatch(string(text))[1]+"\n")
}

func TestThePagesOfTheQuestionsSayWhatIsSaid(t *testing.T) {
	all, err := filepath.Glob("../../docs/why/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string][]byte{}
	for _, page := range all {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(text, []byte("# Q")) {
			pages[filepath.Base(page)] = text
		}
	}
	if len(pages) != 16 {
		t.Fatalf("there are %d pages, want one for each of sixteen questions", len(pages))
	}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		t.Run(page, func(t *testing.T) {
			text := pages[page]
			example, line, output := caseOf.FindSubmatch(text), command.FindSubmatch(text), shown.FindSubmatch(text)
			if example == nil || line == nil || output == nil {
				t.Fatal("it has no example, command or output")
			}
			apply(t, string(example[1]))
			ready(t, string(example[1]))
			arguments := strings.Fields(string(line[1]))
			if content := given.FindSubmatch(text); content != nil {
				at := len(arguments) - 1 // the file
				arguments[at] = filepath.Join(t.TempDir(), arguments[at])
				if err := os.WriteFile(arguments[at], content[1], 0o600); err != nil {
					t.Fatal(err)
				}
			}
			kubeconfig := cluster.KubeconfigPath()
			if page == "without-admin-rights.md" {
				kubeconfig = viewer(t)
			}
			if arguments[1] == "why" && arguments[2] == "job" {
				arguments = append(arguments, "--namespace=default")
			}
			apitest.Eventually(t, func(ctx context.Context) error {
				said, err := run(ctx, append(arguments, "--kubeconfig="+kubeconfig)...)
				if line := missing(said, string(output[1])); err == nil && line != "" {
					err = fmt.Errorf("no %q in its order in\n%s", line, said)
				}
				return err
			})
		})
	}
}

// viewer returns the kubeconfig of a ServiceAccount that has view in the namespace default, as the installer extends
// it.
func viewer(t *testing.T) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "viewer"}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "viewer"}}}
	if err := kube.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if err := kube.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(t.Context(), "default", "viewer")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"hekla why node why-1", "hekla diag", "hekla snapshot", "hekla why job stuck -n kube-system"} {
		if text, err := run(t.Context(), append(strings.Fields(line), "--kubeconfig="+kubeconfig)...); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v, want forbidden\n%s", line, err, text)
		}
	}
	return kubeconfig
}

func TestLinesOfPagesAreComparedAsTheyRead(t *testing.T) {
	text := "Job a waits: X\n  Queue   q: place 1 of 2\n          after b\nNext: c"
	for page, want := range map[string]string{
		"Job a waits: X\nNext: …": "", "  Queue …place 1 of 2\n  after b": "", "Job b": "Job b", "Next: c\nJob a …": "Job a …", "waits: X": "waits: X", "…waits: X": "",
	} {
		if got := missing(text, page); got != want {
			t.Errorf("%q misses %q, want %q", page, got, want)
		}
	}
}
