package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/supervisor"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// systemNamespace is where the installer puts Hekla.
const systemNamespace = "volcano-system"

// configuration is the ConfigMap of the scheduler's configuration.
var configuration = types.NamespacedName{Namespace: systemNamespace, Name: "volcano-scheduler-configmap"}

// component is an executable of ours that runs on the machine of the control plane, with the rights of its
// ServiceAccount only.
type component struct {
	name           string // as in --components
	program        string // of the installation, "" if it has the name of the component
	serviceAccount string // in systemNamespace
	lease          string // in systemNamespace, by which one of several leads; "" if all work
	servesMetrics  bool
	servesWebhooks bool
	makesQueues    bool // at its start
	answers        bool // questions, by way of the API server
	arguments      []string
	forYuniKorn    []string // further arguments, for users of YuniKorn
}

// components are in the order of their start. The controllers make the queues that the scheduler asks for.
var components = [...]component{
	{
		name: "controllers", serviceAccount: "volcano-controllers", lease: "vc-controller-manager", servesMetrics: true, makesQueues: true,
		forYuniKorn: []string{"--yunikorn-labels", ownPods, podsOfYuniKorn},
	},
	{
		name: "scheduler", serviceAccount: "volcano-scheduler", lease: schedulingv1beta1.DefaultSchedulerName, servesMetrics: true, answers: true,
		arguments: []string{"--scheduler-configmap=" + configuration.String()},
		// By default the Lease has the names of the scheduler, and the ServiceAccount may use this one only.
		forYuniKorn: []string{ownPods, podsOfYuniKorn, "--leader-elect-resource-name=" + schedulingv1beta1.DefaultSchedulerName},
	},
	{
		name: "admission", program: "controllers", serviceAccount: "volcano-admission", servesWebhooks: true,
		forYuniKorn: []string{ownPods, podsOfYuniKorn},
	},
}

// Whose pods are placed.
const (
	ownPods        = "--scheduler-name=" + schedulingv1beta1.DefaultSchedulerName
	podsOfYuniKorn = "--scheduler-name=yunikorn"
)

// process is the name of the process.
func (c component) process() string { return "hekla-" + c.name }

// executable is the name of the program.
func (c component) executable() string { return "hekla-" + cmp.Or(c.program, c.name) }

// path returns the executable, which is in the same folder as our own.
func (c component) path() (string, error) {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return "", fmt.Errorf("find the folder of this executable: %w", err)
	}
	path := filepath.Join(filepath.Dir(own), c.executable())
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is not there; build it into the folder of this executable with make build, or leave it out with --components", path)
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// run starts the component as one that may be killed, and stands for election, and returns when it says that it is
// ready, with where it serves its metrics, "" if nowhere.
func (c component) run(ctx context.Context, cluster *localcluster.Cluster) (metricsURL string, err error) {
	program, metricsURL, err := c.prepare(ctx, cluster, 0)
	if err == nil {
		_, err = cluster.Run(ctx, program)
	}
	return metricsURL, err
}

// mostEarlyEnds is how often a component may end before it is ready: then it will not become ready.
const mostEarlyEnds = 3

// keep starts the component under a supervisor, which starts it again whenever it ends, and returns when it says that
// it is ready. The port is that of the web page, 0 for the one before.
func (c component) keep(ctx context.Context, cluster *localcluster.Cluster, pagePort int) error {
	program, _, err := c.prepare(ctx, cluster, pagePort)
	if err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this executable: %w", err)
	}
	if c.lease != "" && !cluster.IsAttached() {
		// There is one of it, and so a Lease that is renewed late need not end it.
		program.Args = append(program.Args, "--leader-elect=false")
	}
	ready := program.ReadyURL
	program.Args = append([]string{superviseName, "--name=" + program.Name, "--status=" + cluster.Dir(), program.Path}, program.Args...)
	program.Path, program.ReadyURL = own, ""
	if _, err := cluster.Run(ctx, program); err != nil {
		return err
	}
	return cluster.Await(ctx, program.Name, func(ctx context.Context) error {
		err := localcluster.AnswersOK(ctx, ready)
		if status, isKnown := statusOf(cluster, program.Name); err != nil && isKnown && status.Ends >= mostEarlyEnds {
			return localcluster.Final(fmt.Errorf("%s; its log is in %s", &status, cluster.LogDir()))
		}
		return err
	}, program.Name)
}

// statusOf is what the supervisor says of a component.
func statusOf(cluster *localcluster.Cluster, name string) (supervisor.Status, bool) {
	all, err := supervisor.Read(cluster.Dir())
	i := slices.IndexFunc(all, func(s supervisor.Status) bool { return s.Name == name })
	if err != nil || i < 0 {
		return supervisor.Status{}, false
	}
	return all[i], true
}

// prepare makes what the component needs, and returns how it is run and where it serves its metrics.
func (c component) prepare(ctx context.Context, cluster *localcluster.Cluster, pagePort int) (program localcluster.Program, metricsURL string, err error) {
	path, err := c.path()
	if err != nil {
		return program, "", err
	}
	kubeconfig, expires, err := cluster.ServiceAccountKubeconfig(ctx, systemNamespace, c.serviceAccount)
	if err != nil {
		return program, "", err
	}
	health, err := freeAddress()
	if err != nil {
		return program, "", err
	}
	arguments, err := c.flags(kubeconfig, health)
	if err != nil {
		return program, "", err
	}
	if c.servesMetrics {
		address, err := freeAddress()
		if err != nil {
			return program, "", err
		}
		arguments = append(arguments, "--enable-metrics=true", "--enable-pprof=true", "--listen-address="+address)
		metricsURL = "http://" + address + "/metrics"
	}
	if c.answers && !cluster.IsAttached() { // a foreign API server does not reach this host
		address, err := freeAddress()
		if err != nil {
			return program, "", err
		}
		visibility, err := localcluster.ReadManifests(hekla.Visibility) // no Kueue runs here
		if err != nil {
			return program, "", fmt.Errorf("the embedded visibility API: %w", err)
		}
		if err := cluster.Apply(ctx, append(publish.Local(systemNamespace), visibility...)); err != nil {
			return program, "", err
		}
		page, err := preparePage(ctx, cluster, pagePort)
		if err != nil {
			return program, "", err
		}
		arguments = append(arguments, "--answers-address="+address, "--answers-service="+systemNamespace+"/"+publish.Service, page)
	}
	if cluster.IsAttached() {
		if err := checkExpiry(c.process(), expires); err != nil {
			return program, "", err
		}
	}
	return localcluster.Program{Name: c.process(), Path: path, Args: arguments, ReadyURL: "http://" + health + "/readyz"}, metricsURL, nil
}

// flags are the arguments of the process: what it is told on every cluster, its addresses, and its own.
func (c component) flags(kubeconfig, health string) ([]string, error) {
	arguments := []string{"--kubeconfig=" + kubeconfig, "--enable-healthz=true", "--healthz-address=" + health}
	if c.servesWebhooks {
		port, err := localcluster.FreePort()
		if err != nil {
			return nil, err
		}
		// The API server is on this machine, and there is no Service.
		arguments = append([]string{c.name}, append(arguments, "--listen-address=127.0.0.1", "--port="+strconv.Itoa(port),
			"--webhook-url=https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))...)
		return append(arguments, c.arguments...), nil
	}
	return append(append(arguments, "--leader-elect=true"), c.arguments...), nil
}

// checkExpiry refuses a token that would leave the component without rights before a working day is over.
func checkExpiry(name string, expires time.Time) error {
	const workingDay = 10 * time.Hour
	if left := time.Until(expires); left < workingDay {
		return fmt.Errorf("the attached cluster grants %s a token for %s only; raise --service-account-max-token-expiration of its API server, or install Hekla in it", name, left.Round(time.Minute))
	}
	return nil
}

func freeAddress() (string, error) {
	port, err := localcluster.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// selectComponents returns the components with these names, in the order of their start.
func selectComponents(names []string) ([]component, error) {
	for _, name := range names {
		if !slices.ContainsFunc(components[:], func(c component) bool { return c.name == name }) {
			return nil, fmt.Errorf("--components: there is no %q; there are %s", name, strings.Join(componentNames(), ", "))
		}
	}
	var selected []component
	for _, c := range components {
		if slices.Contains(names, c.name) {
			selected = append(selected, c)
		}
	}
	return selected, nil
}

func componentNames() []string {
	var names []string
	for _, c := range components {
		names = append(names, c.name)
	}
	return names
}

// installer returns what the installer puts onto a cluster, except what would run Hekla there a second time. A local
// cluster has no Secrets of others, and so the job plugin ssh works there at once; on a foreign one it is for the
// administrator to allow.
func installer(isForeign bool) ([]*unstructured.Unstructured, error) {
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return nil, fmt.Errorf("the embedded installer: %w", err)
	}
	configurations, err := localcluster.ReadManifests(hekla.Configuration)
	if err != nil {
		return nil, fmt.Errorf("the embedded configuration: %w", err)
	}
	objects = append(objects, configurations...)
	if !isForeign {
		forSSH, err := localcluster.ReadManifests(hekla.SSHRights)
		if err != nil {
			return nil, fmt.Errorf("the embedded rights of the job plugin ssh: %w", err)
		}
		objects = append(objects, forSSH...)
	}
	return localcluster.WithoutPods(objects), nil
}
