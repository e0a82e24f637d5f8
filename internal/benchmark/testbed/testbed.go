package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/localcluster"
)

// What a node has and a pod asks for, as on the rig on which Volcano, Kueue and YuniKorn are compared with each other.
const (
	NodeCPUs, NodeMemory, NodePods = 32, "256Gi", 110
	PodCPUs, PodMemory             = 1, "1Gi"
)

// unlimited is a rate that no API server reaches.
const unlimited = 1_000_000

// Component is a program of Hekla that is measured.
type Component struct {
	// Manifests are what the installer applies: our kinds, and the component's rights and configuration.
	Manifests []*unstructured.Unstructured
	// ServiceAccount is the one that the component runs as. What it is compared with uses it too.
	ServiceAccount types.NamespacedName
	// Start starts the component and returns when it is ready.
	Start func(context.Context, *localcluster.Cluster) (*localcluster.Process, error)
	// Version is the component's.
	Version string
}

// Options say what the cluster is like.
type Options struct {
	Component
	// Nodes is how many nodes there are, 0 for none.
	Nodes int
	// PodsRun lets kwok make every bound pod Running. It takes from the API server what kubelets would. Without, bound
	// pods stay Pending.
	PodsRun bool
	// Progress receives sentences for a person.
	Progress io.Writer
}

// Testbed is a fresh cluster with all that stays the same through the measurements.
type Testbed struct {
	Options
	Cluster *localcluster.Cluster
	// Clients have all rights, Restricted have those of the component. Neither has a limit of requests.
	Clients, Restricted *apiserver.Clients
	// NodeNames are the names of the nodes.
	NodeNames []string
	// About is the machine and the versions.
	About About

	proc procfs.FS
	// controlPlane is the processes of the cluster.
	controlPlane []*localcluster.Process
}

// Start brings up the cluster.
func Start(ctx context.Context, options Options) (*Testbed, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("the benchmark reads CPU times from /proc, which Linux has: %w", err)
	}
	t := &Testbed{Options: options, proc: proc}
	t.Say("Starting a cluster of %d nodes …", t.Nodes)
	t.Cluster, err = localcluster.Start(ctx, localcluster.Options{
		Name: "bench", Nodes: t.Nodes, WithoutKwok: !t.PodsRun, Manifests: t.Manifests, Progress: t.Progress,
		NodeTemplate: localcluster.NodeTemplate{Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(NodeCPUs, resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse(NodeMemory),
			corev1.ResourcePods:   *resource.NewQuantity(NodePods, resource.DecimalSI),
		}},
	})
	if err != nil {
		return nil, err
	}
	if err := t.prepare(ctx); err != nil {
		return nil, errors.Join(err, t.Cluster.Stop())
	}
	return t, nil
}

func (t *Testbed) prepare(ctx context.Context) (err error) {
	t.controlPlane = t.Cluster.Processes()
	if t.Clients, err = apiserver.Connect(t.Cluster.Config(), unlimited, unlimited); err != nil {
		return err
	}
	restricted, err := t.Cluster.ServiceAccountConfig(ctx, t.ServiceAccount.Namespace, t.ServiceAccount.Name)
	if err != nil {
		return err
	}
	if t.Restricted, err = apiserver.Connect(restricted, unlimited, unlimited); err != nil {
		return err
	}
	if t.NodeNames, err = t.Cluster.Nodes(ctx); err != nil {
		return err
	}
	t.About, err = t.about()
	return err
}

// Stop ends the cluster.
func (t *Testbed) Stop() error { return t.Cluster.Stop() }

// Say tells a person how far the benchmark is.
func (t *Testbed) Say(format string, values ...any) {
	_, _ = fmt.Fprintf(t.Progress, format+"\n", values...)
}
