package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/audit"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/test/apitest"
)

const (
	// Namespace is where the installer puts everything.
	Namespace = "volcano-system"
	// Scheduler and Controllers are the Deployments whose programs run.
	Scheduler   = "volcano-scheduler"
	Controllers = "volcano-controllers"
)

// System is an installation on a local cluster.
type System struct {
	Cluster *localcluster.Cluster
	// Folder has the programs.
	Folder string
	// Core and Volcano are clients with all rights.
	Core    kubernetes.Interface
	Volcano versioned.Interface
	// auditLog is the file of the requests that the API server has served.
	auditLog string
}

// Program is a program of the installation, as a process outside the cluster.
type Program struct {
	localcluster.Program
	// MetricsURL is where it serves its metrics.
	MetricsURL string
	// addresses are those that it listens on.
	addresses []string
}

// Start starts a cluster, and installs what the installer's files say, which stand in the module's root. No program
// runs yet. The API server keeps an audit log, by which Stop judges the scheduler. It goes with the programs, unless
// options say where it is to be.
func Start(ctx context.Context, root string, options localcluster.Options) (*System, error) {
	folder, err := os.MkdirTemp("", "hekla-installed-")
	if err != nil {
		return nil, err
	}
	options.AuditLog = cmp.Or(options.AuditLog, filepath.Join(folder, "audit.log"))
	cluster, err := localcluster.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	s := &System{Cluster: cluster, Folder: folder, auditLog: options.AuditLog}
	if err := s.install(ctx, root); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop stops the cluster, and what runs with it. It is an error if the audit log proves that the scheduler broke a rule
// at any time.
func (s *System) Stop() error {
	return errors.Join(s.Cluster.Stop(), s.audit(), os.RemoveAll(s.Folder))
}

// audit reads the audit log. Only the scheduler is judged: tests bind and delete pods themselves.
func (s *System) audit() (err error) {
	file, err := os.Open(s.auditLog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	auditor := audit.New(audit.Options{Schedulers: []string{"system:serviceaccount:" + Namespace + ":" + Scheduler}})
	if err := auditor.Read(file); err != nil {
		return err
	}
	report := auditor.End()
	fmt.Fprintf(os.Stderr, "audit: %d lines, %d bindings, %d evictions, %d violations\n", report.Lines, report.Bindings, report.Evictions, len(report.Violations))
	for i := range report.Violations {
		v := &report.Violations[i]
		fmt.Fprintln(os.Stderr, "audit:", v)
		if !audit.NeedsPromptness(v.Rule) { // on a machine that is busy with other tests the scheduler is late
			err = errors.Join(err, fmt.Errorf("%s", v))
		}
	}
	if err != nil { // the folder goes
		kept := filepath.Join(os.TempDir(), "hekla-audit.log")
		err = errors.Join(err, os.Rename(file.Name(), kept), fmt.Errorf("the audit log is kept as %s", kept))
	}
	if report.Requests == 0 || report.Unreadable > 0 {
		err = errors.Join(err, fmt.Errorf("the audit log shows %d changes, and %d lines of it are unreadable", report.Requests, report.Unreadable))
	}
	return err
}

func (s *System) install(ctx context.Context, root string) (err error) {
	if s.Core, err = kubernetes.NewForConfig(s.Cluster.Config()); err != nil {
		return err
	}
	if s.Volcano, err = versioned.NewForConfig(s.Cluster.Config()); err != nil {
		return err
	}
	if err := apitest.Build(ctx, s.Folder, "hekla", "scheduler", "controllers"); err != nil {
		return err
	}
	for _, file := range []string{"installer/hekla.yaml", "installer/configuration.yaml", "installer/ssh.yaml", "installer/visibility.yaml"} {
		if _, err := s.Kubectl(ctx, "apply", "-f", filepath.Join(root, file)); err != nil {
			return err
		}
	}
	// The scheduler is a process next to the API server, and no pod behind a Service.
	for _, object := range []string{"service/" + publish.Service, "apiservice/" + publish.APIService} {
		if _, err := s.Kubectl(ctx, "delete", "-n", Namespace, object); err != nil {
			return err
		}
	}
	return s.Cluster.Apply(ctx, publish.Local(Namespace))
}

// Program returns what a Deployment of the installer says, with further arguments.
func (s *System) Program(ctx context.Context, deployment string, arguments ...string) (Program, error) {
	spec, err := podOf(deployment)
	if err != nil {
		return Program{}, err
	}
	kubeconfig, _, err := s.Cluster.ServiceAccountKubeconfig(ctx, Namespace, spec.serviceAccount)
	if err != nil {
		return Program{}, err
	}
	addresses := map[string]string{}
	for _, flag := range []string{"--healthz-address", "--listen-address", "--answers-address"} {
		if addresses[flag], err = FreeAddress(); err != nil {
			return Program{}, err
		}
	}
	all := []string{"--kubeconfig=" + kubeconfig}
	for _, argument := range spec.arguments {
		flag, _, _ := strings.Cut(argument, "=")
		if address, isAddress := addresses[flag]; isAddress {
			argument = flag + "=" + address
		}
		if flag != "--answers-endpoint" { // the address of a pod
			all = append(all, argument)
		}
	}
	if deployment == Controllers {
		all = append(all, "--yunikorn-labels") // as the chart does with yunikorn.labels
	}
	return Program{addresses: slices.Collect(maps.Values(addresses)), MetricsURL: "http://" + addresses["--listen-address"] + "/metrics", Program: localcluster.Program{
		Name: deployment, Path: filepath.Join(s.Folder, spec.command), Args: append(all, arguments...),
		ReadyURL: "http://" + addresses["--healthz-address"] + "/readyz",
	}}, nil
}

// Run starts the program of a Deployment, with further arguments. Its ports are free when they are chosen; if another
// process takes one before the program does, others are chosen.
func (s *System) Run(ctx context.Context, deployment string, arguments ...string) (Program, error) {
	for attempt := 1; ; attempt++ {
		program, err := s.Program(ctx, deployment, arguments...)
		if err == nil {
			_, err = s.Cluster.Run(ctx, program.Program)
		}
		if err == nil || attempt == 3 || !program.isAnyTaken() {
			return program, err
		}
	}
}

// isAnyTaken reports whether another process uses one of the addresses. The program has ended by now, and its log would
// say so only in words.
func (p *Program) isAnyTaken() bool {
	return slices.ContainsFunc(p.addresses, func(address string) bool {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			err = listener.Close()
		}
		return errors.Is(err, syscall.EADDRINUSE)
	})
}

// Kubectl runs kubectl with all rights, and returns what it prints. An error has that in it.
func (s *System) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	return s.KubectlWith(ctx, "", arguments...)
}

// KubectlWith is the same, with a text as its input.
func (s *System) KubectlWith(ctx context.Context, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, s.Cluster.Kubectl(), arguments...)
	command.Env, command.Stdin = append(os.Environ(), "KUBECONFIG="+s.Cluster.KubeconfigPath()), strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output), nil
}

// FreeAddress returns an address on the loopback interface that is free.
func FreeAddress() (string, error) {
	port, err := localcluster.FreePort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// pod is what a Deployment of the installer says of its pods.
type pod struct {
	command, serviceAccount string
	arguments               []string
}

func podOf(name string) (pod, error) {
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return pod{}, err
	}
	var deployment appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
				return pod{}, err
			}
		}
	}
	spec := deployment.Spec.Template.Spec
	if len(spec.Containers) != 1 || len(spec.Containers[0].Command) != 1 {
		return pod{}, fmt.Errorf("the Deployment %s has not one container with a command", name)
	}
	return pod{command: spec.Containers[0].Command[0], serviceAccount: spec.ServiceAccountName, arguments: spec.Containers[0].Args}, nil
}
