package localcluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/internal/localcluster/binaries"
	"hekla.sh/hekla/internal/localcluster/cache"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// state is what a cluster's folder says about it: enough to use it, extend it and stop all of it from another process.
type state struct {
	Name         string              `json:"name"`
	IsAttached   bool                `json:"isAttached"`
	IsDetached   bool                `json:"isDetached"`
	WasReady     bool                `json:"wasReady"`
	IsComplete   bool                `json:"isComplete"`
	Kubeconfig   string              `json:"kubeconfig"`
	MergedInto   string              `json:"mergedInto,omitempty"`
	Port         int                 `json:"port,omitempty"`
	EtcdPort     int                 `json:"etcdPort,omitempty"`
	Kubernetes   string              `json:"kubernetes,omitempty"`   // "" for the version that is built anyway
	FeatureGates []string            `json:"featureGates,omitempty"` // NAME=true or NAME=false
	Binaries     *binaries.Binaries  `json:"binaries,omitempty"`
	NodeCapacity corev1.ResourceList `json:"nodeCapacity,omitempty"`
	Processes    []*Process          `json:"processes"`
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

func readState(dir string) (*state, error) {
	content, err := os.ReadFile(statePath(dir))
	if err != nil {
		return nil, err
	}
	result := new(state)
	if err := bounds.UnmarshalJSON(content, result); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", statePath(dir), err)
	}
	return result, nil
}

// write replaces the state file in one step: a reader sees one state or the other.
func (s *state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the state of the cluster: %w", err)
	}
	return replaceFile(statePath(dir), content)
}

// replaceFile writes a file that only its owner may read, and puts it into its place when it is complete.
func replaceFile(path string, content []byte) error {
	work := path + ".new"
	if err := os.WriteFile(work, content, 0o600); err != nil {
		return err
	}
	return os.Rename(work, path)
}

// ClusterDir returns the folder of the cluster called name among those that a user keeps.
func ClusterDir(name string) (string, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("a cluster cannot be called %q: %s", name, strings.Join(problems, "; "))
	}
	return cache.Dir("clusters", name)
}
