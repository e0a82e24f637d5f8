package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli"
	"hekla.sh/hekla/internal/localcluster"
)

// The tests share one API server, on which they play the controllers and the scheduler.
var (
	cluster *localcluster.Cluster
	api     client.Client
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	manifests, err := localcluster.ReadManifests(os.DirFS(filepath.Join("..", "..", "installer", "crds")))
	if err != nil {
		return 1, err
	}
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		WithoutKwok: true, WithoutControllers: true, Manifests: manifests, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if api, err = apitest.Client(cluster.Config()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Program returns a program as a link of this name starts it.
func program(name string, streams genericiooptions.IOStreams) *cobra.Command {
	if command := cli.ForName(name, streams); command != nil {
		return command
	}
	root := &cobra.Command{Use: name, SilenceErrors: true, SilenceUsage: true}
	cli.AddCommands(root, name, streams)
	return root
}

// result is what an execution has said.
type result struct {
	out, errOut string
	err         error
}

// run runs a program; the line is split at blanks, and a ~ in a word stands for one.
func run(t *testing.T, line string) result {
	t.Helper()
	return runWithInput(t, line, "")
}

func runWithInput(t *testing.T, line, input string) result {
	t.Helper()
	if os.Getenv("KUBECONFIG") != cluster.KubeconfigPath() {
		t.Setenv("KUBECONFIG", cluster.KubeconfigPath())
	}
	var out, errOut bytes.Buffer
	words := strings.Fields(line)
	command := program(words[0], genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &errOut})
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "~", " ")
	}
	command.SetArgs(words[1:])
	command.SetOut(&out)
	command.SetErr(io.Discard)
	err := command.ExecuteContext(t.Context())
	return result{out: out.String(), errOut: errOut.String(), err: err}
}

// mustSay runs a program that succeeds, and compares what it says, but for dates, ages and the width of columns.
func mustSay(t *testing.T, line, want string) {
	t.Helper()
	got := run(t, line)
	if got.err != nil {
		t.Fatalf("%s: %v", line, got.err)
	}
	if said := normal(got.out + got.errOut); said != normal(want) {
		t.Errorf("%s says\n%s\nwant\n%s", line, said, normal(want))
	}
}

// mustFail runs a program that fails, and looks for parts of its sentence.
func mustFail(t *testing.T, line string, parts ...string) {
	t.Helper()
	got := run(t, line)
	if got.err == nil {
		t.Fatalf("%s succeeds and says\n%s", line, got.out)
	}
	if got.out != "" {
		t.Errorf("%s fails, and yet says %q", line, got.out)
	}
	for _, part := range parts {
		if !strings.Contains(got.err.Error(), part) {
			t.Errorf("%s says %q, want a sentence with %q", line, got.err, part)
		}
	}
}

var (
	date   = regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d UTC)?`)
	since  = regexp.MustCompile(`\b\d+s\b`)
	uid    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	blanks = regexp.MustCompile(` +`)
	// A new kind may be busy at first, and a busy machine slow.
	patience = regexp.MustCompile(`(?m)^(still waiting for|\S+ is busy and answers) .*\n`)
)

// normal leaves out what differs between executions.
func normal(text string) string {
	text = date.ReplaceAllString(patience.ReplaceAllString(text, ""), "DATE")
	text = since.ReplaceAllString(text, "AGE")
	text = uid.ReplaceAllString(text, "UID")
	var rows []string
	for row := range strings.Lines(text) {
		row = strings.TrimRight(row, " \n")
		indent := len(row) - len(strings.TrimLeft(row, " "))
		rows = append(rows, row[:indent]+blanks.ReplaceAllString(row[indent:], " "))
	}
	return strings.Trim(strings.Join(rows, "\n"), "\n")
}

// Namespace makes a namespace for one test.
func namespace(t *testing.T) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, n)
	return n.Name
}

// Create creates objects for one test. No controller empties a namespace here, so they are deleted one by one.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if _, isNamespace := object.(*corev1.Namespace); isNamespace {
			continue
		}
		t.Cleanup(func() {
			if err := api.Delete(context.Background(), object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

func updateStatus(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, namespace, name string, into client.Object) {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
}

// running is a program that runs until it is stopped.
type running struct {
	mutex sync.Mutex
	text  strings.Builder
	stop  func()
	ended chan error
}

// start starts a program that does not end by itself.
func start(t *testing.T, line string) *running {
	t.Helper()
	t.Setenv("KUBECONFIG", cluster.KubeconfigPath())
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, ended: make(chan error, 1)}
	words := strings.Fields(line)
	command := program(words[0], genericiooptions.IOStreams{In: strings.NewReader(""), Out: r, ErrOut: io.Discard})
	command.SetArgs(words[1:])
	go func() { r.ended <- command.ExecuteContext(ctx) }()
	return r
}

func (r *running) Write(text []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.text.Write(text)
}

// said is what it has written so far.
func (r *running) said() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return normal(r.text.String())
}

// await waits until it has written something.
func (r *running) await(t *testing.T, want string) {
	t.Helper()
	apitest.Eventually(t, func(context.Context) error {
		if said := r.said(); !strings.Contains(said, want) {
			return fmt.Errorf("no %q in\n%s", want, said)
		}
		return nil
	})
}

// end interrupts it, which is no error.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}
