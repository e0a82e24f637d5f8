package localcluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// testPatience bounds every wait of these tests: long enough for two busy cores, and only ever reached by a failure.
const testPatience = 60 * time.Second

// shared is the cluster of the tests that leave it as they found it.
var shared *Cluster

func TestMain(m *testing.M) {
	code, err := runWithCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithCluster(m *testing.M) (int, error) {
	c, err := Start(context.Background(), Options{Nodes: 3, Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	shared = c
	code := m.Run()
	return code, c.Stop()
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(cancel)
	return ctx
}

func clientOf(t *testing.T, c *Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually polls condition until it returns nil.
func eventually(t *testing.T, condition func(context.Context) error) {
	t.Helper()
	ctx := testContext(t)
	for {
		err := condition(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", testPatience, err)
		case <-time.After(processPoll):
		}
	}
}
