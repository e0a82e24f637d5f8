package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hekla.sh/hekla/internal/localcluster/binaries"
)

// Options describe a cluster to start. The zero value is a control plane with its controllers and kwok, without nodes,
// in a temporary folder, on a free port.
type Options struct {
	// Name tells clusters apart in kubeconfigs; "local" when empty.
	Name string
	// Dir keeps data, keys, kubeconfigs and logs. When it holds a cluster that was stopped, that one is continued. When
	// empty it is a temporary folder, which Stop removes.
	Dir string
	// Detached processes live on when this one ends; otherwise they die with it where the platform allows.
	Detached bool
	// Attach is the kubeconfig of a cluster that is there already: no control plane is started, and Port, AuditLog,
	// Fsync, Serve and WithoutControllers must be unset. kwok runs only if Nodes is above zero.
	Attach string
	// Port is the API server's; a free one is chosen when it is 0.
	Port int
	// Nodes is how many kwok nodes to make, each after NodeTemplate.
	Nodes        int
	NodeTemplate NodeTemplate
	// WithoutKwok leaves bound pods Pending for ever.
	WithoutKwok bool
	// WithoutControllers leaves out kube-controller-manager; pods are then admitted without a ServiceAccount.
	WithoutControllers bool
	// Manifests are applied as soon as the API server is ready; see Cluster.Apply.
	Manifests []*unstructured.Unstructured
	// AuditLog is a file that receives a line for every request; none when empty.
	AuditLog string
	// Serve are API versions, or resources of them, that the API server does not serve unless it is told to, as its
	// flag --runtime-config names them: "resource.k8s.io/v1beta2".
	Serve []string
	// Kubernetes is a version of the API server, the controller manager and kubectl, such as v1.35.1. "" is that of the
	// cluster if it is continued, else the one that this module requires.
	Kubernetes string
	// FeatureGates are those of Kubernetes, each as NAME=true or NAME=false. A cluster that is continued keeps its own.
	FeatureGates []string
	// Verbosity is the log level (-v) of the Kubernetes components; above 0 kwok logs every pod.
	Verbosity int
	// Fsync makes etcd wait for the disk with every write. It costs most of the speed and helps only after a crash of
	// the machine itself.
	Fsync bool
	// MergeInto is a kubeconfig file to which a context for this cluster is added and made current; Delete takes it
	// out.
	MergeInto string
	// Progress receives sentences for a person; nil discards them.
	Progress io.Writer
}

func (o *Options) validate() error {
	if o.Nodes < 0 {
		return fmt.Errorf("a cluster cannot have %d nodes", o.Nodes)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("port %d is not between 0 and 65535", o.Port)
	}
	if o.WithoutKwok && o.Nodes > 0 && o.Attach != "" {
		return errors.New("nodes in an attached cluster need kwok to keep them Ready")
	}
	if o.Attach != "" && (o.Port != 0 || o.AuditLog != "" || o.Fsync || len(o.Serve) > 0 || o.WithoutControllers || o.Kubernetes != "" || len(o.FeatureGates) > 0) {
		return errors.New("port, audit log, fsync, served versions, feature gates and controllers belong to a control plane, and an attached cluster has its own")
	}
	for _, gate := range o.FeatureGates {
		name, value, _ := strings.Cut(gate, "=")
		if _, err := strconv.ParseBool(value); err != nil || name == "" {
			return fmt.Errorf("the feature gate %q is not NAME=true or NAME=false", gate)
		}
	}
	return nil
}

// keep takes over what a cluster that is continued has been from its start.
func (o *Options) keep() error {
	if o.Dir == "" {
		return nil
	}
	before, err := readState(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.Kubernetes != "" && before.Kubernetes != o.Kubernetes || len(o.FeatureGates) > 0 && !slices.Equal(before.FeatureGates, o.FeatureGates) {
		return fmt.Errorf("the cluster in %s was made with Kubernetes %s and the feature gates %v, and keeps them; remove it first", o.Dir,
			cmp.Or(before.Kubernetes, "of Hekla's own version"), before.FeatureGates)
	}
	o.Kubernetes, o.FeatureGates = before.Kubernetes, before.FeatureGates
	return nil
}

// Start starts a cluster and returns when it is ready: the API server answers, the manifests are established, the
// default ServiceAccount is there, the nodes are Ready. When it fails, nothing of it runs.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if options.Name == "" {
		options.Name = "local"
	}
	if err := options.keep(); err != nil {
		return nil, err
	}
	var programs *binaries.Binaries
	if options.Attach == "" || options.Nodes > 0 {
		var err error
		if programs, err = binaries.EnsureVersion(ctx, options.Kubernetes, options.Progress); err != nil {
			return nil, err
		}
	}
	c, err := prepare(options, programs)
	if err != nil {
		return nil, err
	}
	c.Tell(options.Progress)
	if err := c.bringUp(ctx, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// prepare makes the folder and the state of a new cluster, or takes over what a stopped one has left there.
func prepare(options Options, programs *binaries.Binaries) (*Cluster, error) {
	c := &Cluster{dir: options.Dir}
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "hekla-cluster-")
		if err != nil {
			return nil, fmt.Errorf("make a temporary folder for the cluster: %w", err)
		}
		c.dir, c.isTemporary = dir, true
	}
	absolute, err := filepath.Abs(c.dir)
	if err != nil {
		return nil, err
	}
	c.dir = absolute
	if err := os.MkdirAll(c.LogDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the cluster: %w", err)
	}
	c.state, err = readState(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.state = new(state)
	case err != nil:
		return nil, err
	case c.state.Name != options.Name:
		return nil, fmt.Errorf("the folder %s belongs to the cluster %s, not to %s", c.dir, c.state.Name, options.Name)
	case c.state.IsAttached != (options.Attach != ""):
		return nil, fmt.Errorf("the folder %s belongs to a cluster that %s", c.dir, attachment(c.state.IsAttached))
	}
	for _, process := range c.state.Processes {
		if process.IsAlive() {
			return nil, fmt.Errorf("the cluster in %s runs already: %s has pid %d", c.dir, process.Name, process.PID)
		}
	}
	if err := endLeftovers(c.dir); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(removedDir(c.dir)); err != nil {
		return nil, fmt.Errorf("remove what is left of an earlier cluster: %w", err)
	}
	c.state.Name = options.Name
	c.state.IsAttached = options.Attach != ""
	c.state.IsDetached = options.Detached
	c.state.Kubernetes, c.state.FeatureGates = options.Kubernetes, options.FeatureGates
	c.state.Binaries = programs
	c.state.Processes = nil
	c.state.IsComplete = false
	if options.NodeTemplate.Capacity != nil || c.state.NodeCapacity == nil {
		c.state.NodeCapacity = options.NodeTemplate.capacity()
	}
	return c, nil
}

func attachment(isAttached bool) string {
	if isAttached {
		return "was attached to, and has no control plane here"
	}
	return "has its control plane here, and is not attached to another"
}

// bringUp starts everything, in the order in which one part needs another.
func (c *Cluster) bringUp(ctx context.Context, options Options) error {
	if c.state.IsAttached {
		if err := c.copyKubeconfig(options.Attach); err != nil {
			return err
		}
	} else if err := (controlPlane{c}).start(ctx, options); err != nil {
		return err
	}
	if err := c.Apply(ctx, options.Manifests); err != nil {
		return err
	}
	if !options.WithoutKwok && (!c.state.IsAttached || options.Nodes > 0) {
		if err := (controlPlane{c}).startKwok(ctx, options.Verbosity); err != nil {
			return err
		}
	}
	if !c.state.IsAttached && !options.WithoutControllers {
		if err := c.awaitServiceAccount(ctx, "default"); err != nil {
			return err
		}
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	if missing := options.Nodes - len(nodes); missing > 0 {
		if _, err := c.AddNodes(ctx, missing, options.NodeTemplate); err != nil {
			return err
		}
	}
	if options.MergeInto != "" {
		if err := c.mergeInto(options.MergeInto); err != nil {
			return fmt.Errorf("add the cluster to %s: %w", options.MergeInto, err)
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.state.WasReady = true
	if err := c.state.write(c.dir); err != nil {
		return fmt.Errorf("write the state of the cluster: %w", err)
	}
	return nil
}
