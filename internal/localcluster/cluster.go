package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// foreignPatience bounds the removal of nodes from a cluster that may be gone.
const foreignPatience = 30 * time.Second

// Cluster is a running local cluster, or a foreign one for which processes of ours run. Its methods may be called from
// several goroutines at once.
type Cluster struct {
	dir         string
	isTemporary bool
	config      *rest.Config
	progress    io.Writer // receives sentences for a person; nil discards them

	mutex sync.Mutex // guards what follows
	state *state
	// programs are those that this execution has launched, by name.
	programs map[string]Program
	// routes are the addresses of the API server for kubeconfigs of ServiceAccounts; see RouteServiceAccount.
	routes map[types.NamespacedName]string
}

// Open returns the cluster whose folder is dir, whether its processes run or not. When there is none the error is
// [fs.ErrNotExist].
func Open(dir string) (*Cluster, error) {
	state, err := readState(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, state: state}
	if err := c.loadConfig(); err != nil {
		return nil, err
	}
	return c, nil
}

// loadConfig makes the client configuration from the cluster's kubeconfig.
func (c *Cluster) loadConfig() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.state.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", c.state.Kubeconfig, err)
	}
	// The API server's own priority and fairness is the limit here, not the client's guess.
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	c.config = config
	return nil
}

// Tell lets waits say what they wait for.
func (c *Cluster) Tell(progress io.Writer) { c.progress = progress }

// Config returns a client configuration with all rights and without a client-side rate limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigPath returns the kubeconfig file with all rights.
func (c *Cluster) KubeconfigPath() string { return c.state.Kubeconfig }

// Name returns what the cluster is called.
func (c *Cluster) Name() string { return c.state.Name }

// Dir returns the folder with the cluster's data, keys and logs.
func (c *Cluster) Dir() string { return c.dir }

// LogDir returns the folder of the processes' log files.
func (c *Cluster) LogDir() string { return filepath.Join(c.dir, "logs") }

// Server returns the URL of the API server.
func (c *Cluster) Server() string { return c.config.Host }

// IsComplete reports whether the last start of the cluster went to its end; see Complete.
func (c *Cluster) IsComplete() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.state.IsComplete
}

// Complete writes down that all of the cluster was started, what the caller adds to it included. A cluster whose start
// was cut off before is to be stopped, and started again.
func (c *Cluster) Complete() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.state.IsComplete = true
	return c.state.write(c.dir)
}

// WasReady reports whether the cluster has been up completely, nodes included, since it was made.
func (c *Cluster) WasReady() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.state.WasReady
}

// IsAttached reports whether the control plane is a foreign one.
func (c *Cluster) IsAttached() bool { return c.state.IsAttached }

// Kubectl returns the path of a kubectl of the cluster's version; it is empty when attached without nodes, as then
// nothing was built.
func (c *Cluster) Kubectl() string {
	if c.state.Binaries == nil {
		return ""
	}
	return c.state.Binaries.Path("kubectl")
}

// Processes returns the processes that were started and not stopped, in the order of their start. Some may have died
// since: see [Process.IsAlive].
func (c *Cluster) Processes() []*Process {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.state.Processes)
}

// Run starts a program as a further process of the cluster and returns when it is ready. It replaces one of the same
// name that has ended; one that runs is an error. Stop ends it with the others.
func (c *Cluster) Run(ctx context.Context, program Program) (*Process, error) {
	if program.ReadyURL == "" {
		return c.run(ctx, program, func(context.Context) error { return nil })
	}
	return c.run(ctx, program, answersOK(http.DefaultClient, program.ReadyURL))
}

// run starts a program and waits until it is ready or it, or another process that it needs, has ended.
func (c *Cluster) run(ctx context.Context, program Program, isReady func(context.Context) error, needs ...*Process) (*Process, error) {
	process, err := c.launch(program)
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx, program.Name, isReady, append(needs, process)...); err != nil {
		return nil, errors.Join(err, process.Kill())
	}
	return process, nil
}

// launch starts the program and writes it down before anything else can go wrong.
func (c *Cluster) launch(program Program) (*Process, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, other := range c.state.Processes {
		if other.Name == program.Name && other.IsAlive() {
			return nil, fmt.Errorf("%s runs already (pid %d)", other.Name, other.PID)
		}
	}
	process, err := start(program, c.LogDir(), c.state.IsDetached, c.dir)
	if err != nil {
		return nil, err
	}
	c.state.Processes = slices.DeleteFunc(c.state.Processes, func(other *Process) bool { return other.Name == program.Name })
	c.state.Processes = append(c.state.Processes, process)
	if c.programs == nil {
		c.programs = map[string]Program{}
	}
	c.programs[program.Name] = program
	if err := c.state.write(c.dir); err != nil {
		return nil, errors.Join(fmt.Errorf("write down that %s runs: %w", program.Name, err), process.Kill())
	}
	return process, nil
}

// Relaunch starts a program again whose process has ended, as it was started before by this execution, and does not
// wait until it is ready.
func (c *Cluster) Relaunch(name string) error {
	c.mutex.Lock()
	program, isKnown := c.programs[name]
	c.mutex.Unlock()
	if !isKnown {
		return fmt.Errorf("%s was not started by this execution", name)
	}
	_, err := c.launch(program)
	return err
}

// Stop ends all processes, the last started first. A cluster in a temporary folder is removed; any other keeps its
// data, and Start with the same folder continues it. What cannot be stopped does not keep the rest from being stopped.
func (c *Cluster) Stop() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var failures []error
	var left []*Process
	for _, process := range slices.Backward(c.state.Processes) {
		if err := process.Stop(); err != nil {
			failures = append(failures, err)
			left = append(left, process)
		}
	}
	slices.Reverse(left)
	c.state.Processes = left
	if c.isTemporary && len(left) == 0 {
		return os.RemoveAll(c.dir)
	}
	// A cluster that failed before it had a process has no state, and is to leave none.
	if _, err := os.Stat(statePath(c.dir)); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(failures...)
	}
	if err := c.state.write(c.dir); err != nil {
		failures = append(failures, fmt.Errorf("write down what still runs: %w", err))
	}
	return errors.Join(failures...)
}

// Delete ends all processes and removes the cluster's data, its context in the kubeconfig it was merged into, and, from
// a foreign cluster, the nodes this one has added there. A foreign cluster that does not answer keeps nothing else from
// being removed; the error says that its nodes are left.
func (c *Cluster) Delete(ctx context.Context) error {
	var nodesLeft error
	if c.state.IsAttached {
		ctx, cancel := context.WithTimeout(ctx, foreignPatience)
		defer cancel()
		if err := c.removeAllNodes(ctx); err != nil {
			nodesLeft = fmt.Errorf("the nodes that were added to %s are left there (label %s=%s): %w", c.Server(), clusterLabel, c.state.Name, err)
		}
	}
	if err := c.Stop(); err != nil {
		return err
	}
	if c.state.MergedInto != "" {
		if err := removeContext(c.state.MergedInto, contextName(c.state.Name)); err != nil {
			return fmt.Errorf("remove the cluster from %s: %w", c.state.MergedInto, err)
		}
	}
	return errors.Join(nodesLeft, discard(c.dir))
}

// Discard removes the folder of a cluster whose state cannot be read, and ends the processes of it that are found.
func Discard(dir string) error {
	if state, err := readState(dir); err == nil { // what cannot be read is something else, such as the kubeconfig
		if err := (&Cluster{dir: dir, state: state}).Stop(); err != nil {
			return err
		}
	}
	if err := endLeftovers(dir); err != nil {
		return err
	}
	return discard(dir)
}

// discard removes the folder of a cluster. It is renamed first: a folder that is removed in part could be taken for the
// cluster.
func discard(dir string) error {
	removed := removedDir(dir)
	if err := os.RemoveAll(removed); err != nil {
		return err
	}
	if err := os.Rename(dir, removed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(removed)
}

// removedDir is what a folder is called while it is removed.
func removedDir(dir string) string { return filepath.Clean(dir) + ".removed" }

// endLeftovers ends processes of the cluster that were started and not written down, because what started them was
// ended at that moment.
func endLeftovers(dir string) error {
	var failures []error
	for _, process := range leftovers(dir) {
		failures = append(failures, process.Kill())
	}
	return errors.Join(failures...)
}
