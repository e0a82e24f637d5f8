package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/supervisor"
	"hekla.sh/hekla/pkg/apis/bounds"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
)

// gpuResource is what --gpus counts.
const gpuResource = corev1.ResourceName("nvidia.com/gpu")

// place says which local cluster is meant.
type place struct{ name, dir string }

func (p *place) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&p.name, "name", "default", "name of the cluster, to keep several")
	command.Flags().StringVar(&p.dir, "dir", "", "folder of the cluster's data, keys and logs (default: in the user's cache folder, by name)")
}

// lock returns the cluster's folder and keeps other executions of hekla out of it.
func (p *place) lock(ctx context.Context, progress io.Writer) (dir string, unlock func(), err error) {
	if dir, err = localcluster.ClusterDir(p.name); err != nil {
		return "", nil, err
	}
	if p.dir != "" {
		if dir, err = filepath.Abs(p.dir); err != nil {
			return "", nil, err
		}
	}
	unlock, err = localcluster.Lock(ctx, dir, func() {
		_, _ = fmt.Fprintln(progress, "Another hekla is at work on this cluster; waiting for it.")
	})
	return dir, unlock, err
}

// upCommand is one execution of `hekla up`.
type upCommand struct {
	place
	nodes             int
	cpu, memory       string
	pods, gpus        int
	kubeconfig        string
	port, pagePort    int
	kubernetes        string
	featureGates      []string
	attach            string
	components        []string
	yunikorn          bool
	verbosity         int
	isGiven           func(flag string) bool
	output, progress  io.Writer
	started           time.Time
	selected          []component
	capacity          corev1.ResourceList
	isCapacityChanged bool
}

// newUpCommand returns `hekla up`.
func newUpCommand() *cobra.Command {
	u := new(upCommand)
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a local Kubernetes cluster with Hekla in it",
		Long: `Starts etcd, kube-apiserver, kube-controller-manager and kwok (which plays the nodes) on this machine, on
the loopback interface only, with Hekla's objects, scheduler and controllers. The first time it builds the
Kubernetes programs, which takes minutes; after that it takes seconds. They go on running when the command
ends, until hekla down.

If the cluster runs already, says so, starts what has died, and changes the number of nodes if --nodes is given.
A start that was cut off is taken up again. Scheduler and controllers are started again when they end.

With --kubernetes the API server, the controller manager and kubectl are of another version, which is built from the
Go module proxy, once.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			u.isGiven = command.Flags().Changed
			u.output, u.progress = command.OutOrStdout(), command.ErrOrStderr()
			return u.run(command.Context())
		},
	}
	u.addFlags(command)
	flags := command.Flags()
	flags.IntVar(&u.nodes, "nodes", 3, "number of nodes")
	flags.StringVar(&u.cpu, "cpu", "8", "CPUs of a node")
	flags.StringVar(&u.memory, "memory", "32Gi", "memory of a node")
	flags.IntVar(&u.pods, "pods", 110, "number of pods a node holds")
	flags.IntVar(&u.gpus, "gpus", 0, "GPUs ("+string(gpuResource)+") of a node")
	flags.StringVar(&u.kubeconfig, "kubeconfig", "", "kubeconfig file to which the cluster is added as the current context, besides the cluster's own")
	flags.IntVar(&u.port, "port", 0, "port of the API server (default: one that is free)")
	flags.IntVar(&u.pagePort, "page-port", 0, "port of the web page (default: the one before, else one that is free)")
	flags.StringVar(&u.kubernetes, "kubernetes", "", "version of Kubernetes, such as v1.35.1, for a new cluster (default: the one that Hekla is built with)")
	flags.StringSliceVar(&u.featureGates, "feature-gates", nil, "feature gates of Kubernetes as NAME=true or NAME=false, for a new cluster")
	flags.StringVar(&u.attach, "attach", "", "kubeconfig of a cluster that is there already: only apply Hekla's objects and run its scheduler and controllers; nodes are added only if --nodes is given")
	flags.StringSliceVar(&u.components, "components", componentNames(), "parts of Hekla to run; empty for none, to run them elsewhere")
	flags.BoolVar(&u.yunikorn, "yunikorn", false, "also place pods with the schedulerName yunikorn, and let labels and annotations of YuniKorn name their applications and queues")
	flags.IntVarP(&u.verbosity, "verbosity", "v", 0, "log level of the Kubernetes programs")
	return command
}

func (u *upCommand) run(ctx context.Context) error {
	u.started = time.Now()
	if err := u.validate(); err != nil {
		return err
	}
	dir, unlock, err := u.lock(ctx, u.progress)
	if err != nil {
		return err
	}
	defer unlock()
	if err := u.bring(ctx, dir); err != nil {
		return u.saysWhatNext(dir, err)
	}
	return nil
}

// saysWhatNext adds to an error what can be done, once there is something of a cluster.
func (u *upCommand) saysWhatNext(dir string, err error) error {
	if _, missing := os.Stat(dir); missing != nil {
		return err
	}
	return fmt.Errorf("%w\nThe cluster is in %s, with its logs. %s goes on with it, %s removes it", err, dir,
		instruction("up", u.which()), instruction("down", u.which()))
}

// bring brings the cluster in a folder to what was asked for, whatever there is of it.
func (u *upCommand) bring(ctx context.Context, dir string) error {
	cluster, err := localcluster.Open(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return u.start(ctx, dir)
	case err != nil:
		return err
	}
	cluster.Tell(u.progress)
	if !u.isGiven("name") {
		u.name = cluster.Name()
	}
	var dead, deadComponents []string
	for _, process := range cluster.Processes() {
		switch {
		case process.IsAlive():
		case isComponent(process.Name):
			deadComponents = append(deadComponents, process.Name)
		default:
			dead = append(dead, process.Name)
		}
	}
	switch {
	case len(cluster.Processes()) > 0 && !cluster.IsComplete():
		u.say("The last start of the cluster %s did not come to its end; starting it again.", u.name)
		return u.resume(ctx, cluster)
	case len(cluster.Processes()) > 0 && len(dead) == 0:
		return u.adjust(ctx, cluster, deadComponents)
	}
	if dead = append(dead, deadComponents...); len(dead) > 0 {
		u.say("Of the cluster %s there run no longer: %s.", u.name, strings.Join(dead, ", "))
	}
	u.say("Continuing the cluster %s with the data it had.", u.name)
	return u.resume(ctx, cluster)
}

// resume starts a cluster again as it was: with its own nodes, unless another number is asked for, and attached if it
// was attached.
func (u *upCommand) resume(ctx context.Context, cluster *localcluster.Cluster) error {
	if err := cluster.Stop(); err != nil {
		return err
	}
	if !u.isGiven("nodes") && cluster.WasReady() {
		u.nodes = 0
	}
	if cluster.IsAttached() {
		if u.attach == "" {
			u.attach = cluster.KubeconfigPath()
		}
		nodes, err := cluster.Nodes(ctx)
		if err != nil {
			return err
		}
		u.nodes = max(u.nodes, len(nodes))
	}
	return u.start(ctx, cluster.Dir())
}

// validate turns the flags into what is needed, before anything is started.
func (u *upCommand) validate() error {
	var err error
	if u.selected, err = selectComponents(u.components); err != nil {
		return err
	}
	if u.attach != "" { // its API server may be on another machine, and find no webhooks here
		u.selected = slices.DeleteFunc(u.selected, func(c component) bool { return c.servesWebhooks })
	}
	for i := range u.selected {
		if u.yunikorn {
			u.selected[i].arguments = slices.Concat(u.selected[i].arguments, u.selected[i].forYuniKorn)
		}
	}
	if u.attach != "" && !u.isGiven("nodes") {
		u.nodes = 0
	}
	if u.nodes < 0 || u.pods < 0 || u.gpus < 0 || u.port < 0 || u.pagePort < 0 {
		return errors.New("--nodes, --pods, --gpus, --port and --page-port cannot be negative")
	}
	if u.attach != "" && (u.kubernetes != "" || len(u.featureGates) > 0) {
		return errors.New("--kubernetes and --feature-gates are of a cluster that is started here; leave them out with --attach")
	}
	u.capacity = corev1.ResourceList{
		corev1.ResourcePods:             *resource.NewQuantity(int64(u.pods), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	for _, given := range []struct {
		flag, value string
		name        corev1.ResourceName
	}{{"cpu", u.cpu, corev1.ResourceCPU}, {"memory", u.memory, corev1.ResourceMemory}} {
		quantity, err := bounds.ParseQuantity(given.value)
		if err != nil || quantity.Sign() <= 0 {
			return fmt.Errorf("--%s=%s is not a quantity above zero such as 8, 500m or 32Gi", given.flag, given.value)
		}
		u.capacity[given.name] = quantity
	}
	if u.gpus > 0 {
		u.capacity[gpuResource] = *resource.NewQuantity(int64(u.gpus), resource.DecimalSI)
	}
	u.isCapacityChanged = slices.ContainsFunc([]string{"cpu", "memory", "pods", "gpus"}, u.isGiven)
	return nil
}

// start starts a cluster that does not run.
func (u *upCommand) start(ctx context.Context, dir string) error {
	manifests, err := installer(u.attach != "")
	if err != nil {
		return err
	}
	for _, component := range u.selected {
		if _, err := component.path(); err != nil {
			return err
		}
	}
	u.say("Starting the cluster %s …", u.name)
	options := localcluster.Options{
		Name: u.name, Dir: dir, Detached: true, Attach: u.attach, Port: u.port, Nodes: u.nodes,
		Manifests: manifests, MergeInto: u.kubeconfig, Verbosity: u.verbosity, Progress: u.progress,
		Kubernetes: u.kubernetes, FeatureGates: u.featureGates,
	}
	if u.isCapacityChanged {
		options.NodeTemplate.Capacity = u.capacity
	}
	cluster, err := localcluster.Start(ctx, options)
	if err != nil {
		return err
	}
	for _, component := range u.selected {
		if err := component.keep(ctx, cluster, u.pagePort); err != nil {
			return err
		}
	}
	if u.isGiven("nodes") {
		if err := u.scale(ctx, cluster); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(u.selected, func(c component) bool { return c.makesQueues }) {
		if err := awaitDefaultQueue(ctx, cluster); err != nil {
			return err
		}
	}
	if err := cluster.Complete(); err != nil {
		return err
	}
	u.say("Ready after %.1f s.", time.Since(u.started).Seconds())
	return u.report(ctx, cluster)
}

// awaitDefaultQueue waits until the controllers have made the queue of jobs that name none: the webhooks refuse such a
// job before.
func awaitDefaultQueue(ctx context.Context, cluster *localcluster.Cluster) error {
	client, err := versioned.NewForConfig(cluster.Config())
	if err != nil {
		return err
	}
	return cluster.Await(ctx, "the queue "+scheduling.DefaultQueue, func(ctx context.Context) error {
		_, err := client.SchedulingV1beta1().Queues().Get(ctx, scheduling.DefaultQueue, metav1.GetOptions{})
		return err
	}, "hekla-controllers")
}

// adjust brings a running cluster to what was asked for, as far as that can be changed.
func (u *upCommand) adjust(ctx context.Context, cluster *localcluster.Cluster, dead []string) error {
	u.say("The cluster %s runs already.", u.name)
	for _, flag := range []string{"port", "attach", "kubeconfig", "verbosity", "yunikorn", "kubernetes", "feature-gates"} {
		if u.isGiven(flag) {
			u.say("--%s is not changed on a running cluster; %s first.", flag, instruction("down", u.which()))
		}
	}
	running := make(map[string]bool)
	for _, process := range cluster.Processes() {
		running[process.Name] = process.IsAlive()
	}
	if u.isGiven("page-port") && running["hekla-scheduler"] {
		u.say("--page-port is not changed while the scheduler runs; %s first.", instruction("down", u.which()))
	}
	for _, component := range u.selected {
		// One that never ran was left out on purpose, unless it is asked for now.
		isWanted := slices.Contains(dead, component.process()) || u.isGiven("components")
		if running[component.process()] || !isWanted {
			continue
		}
		u.say("Starting %s, which does not run.", component.process())
		if err := component.keep(ctx, cluster, u.pagePort); err != nil {
			return err
		}
	}
	if u.isGiven("nodes") {
		if err := u.scale(ctx, cluster); err != nil {
			return err
		}
	}
	return u.report(ctx, cluster)
}

// scale adds nodes, or removes nodes that are not in use.
func (u *upCommand) scale(ctx context.Context, cluster *localcluster.Cluster) error {
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	switch surplus := len(nodes) - u.nodes; {
	case surplus < 0:
		if cluster.IsAttached() && cluster.Kubectl() == "" {
			return fmt.Errorf("this cluster was attached without nodes, so nothing here keeps nodes Ready; %s, then %s with --attach and --nodes",
				instruction("down", u.which()), instruction("up", u.which()))
		}
		var template localcluster.NodeTemplate
		if u.isCapacityChanged {
			template.Capacity = u.capacity
		}
		added, err := cluster.AddNodes(ctx, -surplus, template)
		if err != nil {
			return err
		}
		u.say("Added %s.", shorten(added))
	case surplus > 0:
		removed, busy, err := cluster.RemoveIdleNodes(ctx, surplus)
		if err != nil {
			return err
		}
		if len(removed) > 0 {
			u.say("Removed %s.", shorten(removed))
		}
		if len(removed) < surplus {
			u.say("Kept %s: pods run there.", shorten(busy))
		}
	}
	return nil
}

// report says what runs and how to use it.
func (u *upCommand) report(ctx context.Context, cluster *localcluster.Cluster) error {
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(u.output, 0, 0, 2, ' ', 0)
	line := func(label, value string) { _, _ = fmt.Fprintf(table, "%s\t%s\n", label, value) }
	line("API server", cluster.Server())
	if len(nodes) > 0 {
		line("Nodes", fmt.Sprintf("%d (%s)", len(nodes), shorten(nodes)))
	}
	var processes []string
	for _, process := range cluster.Processes() {
		processes = append(processes, fmt.Sprintf("%s (%d)", process.Name, process.PID))
	}
	line("Processes", strings.Join(processes, ", "))
	ended, err := supervisor.Read(cluster.Dir())
	if err != nil {
		return err
	}
	for i := range ended {
		if text := ended[i].String(); text != "" {
			line("Ended", text)
		}
	}
	line("Logs", cluster.LogDir())
	if cluster.Kubectl() != "" {
		line("kubectl", cluster.Kubectl())
	}
	page, err := pageAddress(ctx, cluster)
	if err != nil {
		return err
	}
	if page != "" {
		line("Web page", page)
	}
	line("Use it", "export KUBECONFIG="+cluster.KubeconfigPath())
	line("Stop it", instruction("down", u.which()))
	return table.Flush()
}

// which repeats the flags that say which cluster is meant.
func (u *upCommand) which() []string {
	var flags []string
	for _, flag := range []struct{ name, value string }{{"name", u.name}, {"dir", u.dir}} {
		if u.isGiven(flag.name) {
			flags = append(flags, "--"+flag.name+"="+flag.value)
		}
	}
	return flags
}

func (u *upCommand) say(format string, values ...any) {
	_, _ = fmt.Fprintf(u.progress, format+"\n", values...)
}

func isComponent(process string) bool {
	return slices.ContainsFunc(components[:], func(c component) bool { return c.process() == process })
}

// shorten lists names, and of many only the first and the last.
func shorten(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, %s … %s", names[0], names[1], names[len(names)-1])
}
