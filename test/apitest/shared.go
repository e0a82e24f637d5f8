package apitest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"hekla.sh/hekla/internal/localcluster"
)

// SystemNamespace is where the programs run, and keep their configuration and leases.
const SystemNamespace = "volcano-system"

// Shared is a control plane that the tests of a package share: an API server with the project's definitions and the
// namespace [SystemNamespace], and no controllers. The first test that needs it starts it.
type Shared struct {
	Definitions string   // the folder installer/crds
	Nodes       int      // that are there from the start
	Serve       []string // further versions of APIs

	once    sync.Once
	cluster *localcluster.Cluster
	err     error
}

// Main runs the tests of a package, for its TestMain, and stops the cluster after the last one.
func (s *Shared) Main(m *testing.M) {
	Main(func() (int, error) {
		code := m.Run()
		if s.cluster == nil {
			return code, nil
		}
		return code, s.cluster.Stop()
	})
}

// Cluster returns the cluster. A short run skips the test that asks for it.
func (s *Shared) Cluster(t *testing.T) *localcluster.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) start() error {
	definitions, err := localcluster.ReadManifests(os.DirFS(s.Definitions))
	if err != nil {
		return err
	}
	ctx := context.Background()
	cluster, err := localcluster.Start(ctx, localcluster.Options{WithoutKwok: true, WithoutControllers: true, Manifests: definitions,
		Nodes: s.Nodes, Serve: s.Serve, Progress: os.Stderr})
	if err != nil {
		return err
	}
	if err := cluster.CreateNamespace(ctx, SystemNamespace); err != nil {
		return errors.Join(err, cluster.Stop())
	}
	s.cluster = cluster
	return nil
}
