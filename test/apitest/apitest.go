// Package apitest holds what the tests with a real API server have in common: how they wait, how they build and run
// our programs, and the cluster that the tests of one package share. How a cluster is started is package
// localcluster's.
//
// It must not know what is tested, nor any package of the scheduler or of the controllers.
package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/pkg/apis"
)

const (
	// Patience bounds every wait. Only a failure reaches it.
	Patience = time.Minute
	// poll is how often [Eventually] looks.
	poll = 20 * time.Millisecond
)

// Main runs the tests of a package together with what they need; run returns their exit code.
func Main(run func() (code int, err error)) {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Context ends when the test does, and after [Patience] at the latest.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Eventually looks until there is nothing to complain about, and fails the test after [Patience].
func Eventually(t testing.TB, complaint func(context.Context) error) {
	t.Helper()
	if err := Await(t.Context(), complaint); err != nil {
		t.Fatal(err)
	}
}

// Await is the same for those who have no test. An error names the last complaint that is not of the wait's own end.
func Await(ctx context.Context, complaint func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var last error
	for {
		err := complaint(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", Patience, last)
		case <-time.After(poll):
		}
	}
}

// Client returns a client that knows our kinds and those of Kubernetes, and waits for no rate limit.
func Client(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apis.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	return client.New(config, client.Options{Scheme: scheme})
}

// Object reads an object in a namespace, or in none.
func Object(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &read.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if namespace != "" {
		read.SetNamespace(namespace)
	}
	return read
}

// NothingForbidden reads the log of a program and says which right it lacked, if any.
func NothingForbidden(logPath string) error {
	log, err := os.ReadFile(logPath)
	if err != nil {
		return err
	}
	if len(log) == 0 {
		return fmt.Errorf("%s is empty: nothing can be concluded from it", logPath)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "is forbidden: User") {
			return fmt.Errorf("a right is missing: %s", line)
		}
	}
	return nil
}
