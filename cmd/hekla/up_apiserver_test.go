package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"hekla.sh/hekla/internal/answers/api"
	"hekla.sh/hekla/internal/answers/publish"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/internal/localcluster/supervisor"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/client/clientset/versioned"
	"hekla.sh/hekla/test/apitest"
)

// TestMain lets copies of the test's own executable stand for the executables that are installed side by side.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "hekla":
		main()
	case "hekla-scheduler", "hekla-controllers":
		if err := standIn(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

// standIn is a component that says who it is to the API server, and then that it is ready.
func standIn() error {
	flags := flag.NewFlagSet("stand-in", flag.ContinueOnError)
	kubeconfig, healthz := flags.String("kubeconfig", "", ""), flags.String("healthz-address", "", "")
	for _, name := range []string{"leader-elect", "enable-healthz", "enable-metrics", "enable-pprof"} {
		flags.Bool(name, false, "")
	}
	for _, name := range []string{"listen-address", "scheduler-configmap", "port", "webhook-url", "answers-address", "answers-service", "answers-endpoint", "web-address"} {
		flags.String(name, "", "")
	}
	arguments := os.Args[1:]
	isAdmission := arguments[0] == "admission"
	if isAdmission {
		arguments = arguments[1:]
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().Create(
		context.Background(), new(authenticationv1.SelfSubjectReview), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("I am", review.Status.UserInfo.Username)
	if filepath.Base(os.Args[0]) == "hekla-controllers" && !isAdmission { // hekla up waits for what they make
		queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: scheduling.DefaultQueue}, Spec: scheduling.QueueSpec{Weight: 1}}
		_, err := versioned.NewForConfigOrDie(config).SchedulingV1beta1().Queues().Create(context.Background(), queue, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(*healthz, nil)
}

// installation is a folder with the executables, and one for the clusters.
type installation struct {
	t       *testing.T
	bin     string
	cluster string
}

func install(t *testing.T, names ...string) installation {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in := installation{t: t, bin: t.TempDir(), cluster: filepath.Join(t.TempDir(), "cluster")}
	for _, name := range names {
		copyExecutable(t, own, filepath.Join(in.bin, name))
	}
	t.Cleanup(func() { in.run("down", "--dir", in.cluster) })
	return in
}

func copyExecutable(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}

// run runs hekla and returns all it says.
func (in installation) run(arguments ...string) (string, error) {
	var output bytes.Buffer
	command := exec.Command(filepath.Join(in.bin, "hekla"), arguments...)
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	return output.String(), err
}

// up runs hekla up and checks that it says what it should.
func (in installation) up(want string, arguments ...string) {
	in.t.Helper()
	output, err := in.run(append([]string{"up", "--dir", in.cluster}, arguments...)...)
	if err != nil {
		in.t.Fatalf("hekla up %v: %v\n%s", arguments, err, output)
	}
	if !strings.Contains(output, want) {
		in.t.Errorf("hekla up %v says\n%s\nwant %q in it", arguments, output, want)
	}
}

func (in installation) open() *localcluster.Cluster {
	in.t.Helper()
	cluster, err := localcluster.Open(in.cluster)
	if err != nil {
		in.t.Fatal(err)
	}
	return cluster
}

func (in installation) process(name string) *localcluster.Process {
	in.t.Helper()
	for _, process := range in.open().Processes() {
		if process.Name == name {
			return process
		}
	}
	in.t.Fatalf("there is no process %s", name)
	return nil
}

func (in installation) nodes() int {
	in.t.Helper()
	nodes, err := in.open().Nodes(in.t.Context())
	if err != nil {
		in.t.Fatal(err)
	}
	return len(nodes)
}

func TestUpKeepsAClusterRunningUntilDown(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	in := install(t, "hekla", "hekla-scheduler", "hekla-controllers")
	in.up("export KUBECONFIG="+in.cluster, "--components=", "--nodes=1", "--gpus=4")
	ensureServiceAccounts(t, in.open())
	client := kubernetes.NewForConfigOrDie(in.open().Config())
	if _, err := client.Discovery().ServerResourcesForGroupVersion("batch.volcano.sh/v1alpha1"); err != nil {
		t.Errorf("the installer's definitions: %v", err)
	}

	in.up("runs already")
	for _, process := range in.open().Processes() {
		if isComponent(process.Name) {
			t.Errorf("%s was left out, and a second up has started it", process.Name)
		}
	}
	in.up("Starting hekla-scheduler", "--components=scheduler,controllers,admission")
	for name, account := range map[string]string{"hekla-scheduler": "volcano-scheduler", "hekla-controllers": "volcano-controllers", "hekla-admission": "volcano-admission"} {
		log, err := os.ReadFile(in.process(name).LogPath)
		if err != nil {
			t.Fatal(err)
		}
		if want := "I am system:serviceaccount:" + systemNamespace + ":" + account; !strings.Contains(string(log), want) {
			t.Errorf("%s says %q, want %q", name, log, want)
		}
	}

	for _, version := range api.VisibilityVersions {
		path := "/apis/apiregistration.k8s.io/v1/apiservices/" + version + "." + api.VisibilityGroup
		if body, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context()); err != nil || !strings.Contains(string(body), publish.Service) {
			t.Errorf("Kueue's API for places of Workloads: %v, %s", err, body)
		}
	}

	in.up("Added node-2, node-3.", "--nodes=3")
	node, err := client.CoreV1().Nodes().Get(t.Context(), "node-3", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if gpus := node.Status.Allocatable[gpuResource]; gpus.Value() != 4 {
		t.Errorf("an added node has %s GPUs, want 4 as the first", gpus.String())
	}
	in.up("Removed node-3.", "--nodes=2")
	if got := in.nodes(); got != 2 {
		t.Errorf("%d nodes, want 2", got)
	}

	// What has died is started again; the rest goes on running, unless it is a part of the control plane.
	apiServer := in.process("kube-apiserver")
	kill(t, in.process("hekla-scheduler"))
	in.up("Starting hekla-scheduler")
	if !in.process("hekla-scheduler").IsAlive() || !apiServer.IsAlive() {
		t.Error("after a dead scheduler not everything runs that should")
	}
	// A component that ends is started again without hekla up, which then says so, and the page stays where it was.
	page := in.page()
	ended := in.status("hekla-scheduler", func(s supervisor.Status) bool { return s.PID > 0 })
	if err := syscall.Kill(ended.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	in.status("hekla-scheduler", func(s supervisor.Status) bool { return s.Ends == 1 && s.PID > 0 && s.PID != ended.PID })
	in.up("hekla-scheduler has ended once, at ")
	if got := in.page(); got != page {
		t.Errorf("the page was at %s, and is at %s", page, got)
	}
	kill(t, in.process("kwok"))
	in.up("no longer: kwok.", "--components=")
	if !in.process("kwok").IsAlive() || in.nodes() != 2 {
		t.Errorf("after a dead kwok it does not run, or the nodes are %d, want 2", in.nodes())
	}
	in.up("Starting hekla-scheduler", "--components=scheduler,controllers")
	if got := in.page(); got != page {
		t.Errorf("before the cluster was started again the page was at %s, and is at %s", page, got)
	}

	processes := in.open().Processes()
	if output, err := in.run("down", "--dir", in.cluster); err != nil || !strings.Contains(output, "Stopped") {
		t.Errorf("hekla down: %v\n%s", err, output)
	}
	for _, process := range processes {
		if process.IsAlive() {
			t.Errorf("%s outlived hekla down", process.Name)
		}
	}
	if _, err := os.Stat(in.cluster); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder after hekla down: %v", err)
	}
	if output, err := in.run("down", "--dir", in.cluster); err != nil || !strings.Contains(output, "There is no cluster") {
		t.Errorf("a second hekla down: %v\n%s", err, output)
	}
}

// page is the address of the web page.
func (in installation) page() string {
	in.t.Helper()
	address, err := os.ReadFile(pageFile(in.open()))
	if err != nil {
		in.t.Fatal(err)
	}
	return string(address)
}

// status waits until the status of a component is as it should be.
func (in installation) status(name string, holds func(supervisor.Status) bool) supervisor.Status {
	in.t.Helper()
	for deadline := time.Now().Add(apitest.Patience); ; time.Sleep(50 * time.Millisecond) {
		status, isKnown := statusOf(in.open(), name)
		if isKnown && holds(status) {
			return status
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("the status of %s is %+v, known: %t", name, status, isKnown)
		}
	}
}

// cutOff runs hekla up and kills it as soon as a process of the cluster is written down.
func (in installation) cutOff(process string, arguments ...string) {
	in.t.Helper()
	command := exec.Command(filepath.Join(in.bin, "hekla"), append([]string{"up", "--dir", in.cluster}, arguments...)...)
	if err := command.Start(); err != nil {
		in.t.Fatal(err)
	}
	for deadline := time.Now().Add(apitest.Patience); ; time.Sleep(10 * time.Millisecond) {
		cluster, err := localcluster.Open(in.cluster)
		isThere := err == nil && !cluster.IsComplete() && slices.ContainsFunc(cluster.Processes(), func(p *localcluster.Process) bool { return p.Name == process && p.IsAlive() })
		if isThere {
			break
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("%s was not started: %v", process, err)
		}
	}
	if err := command.Process.Kill(); err != nil {
		in.t.Fatal(err)
	}
	_ = command.Wait()
}

func TestUpRepairsAStartThatWasCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	in := install(t, "hekla", "hekla-scheduler", "hekla-controllers")
	components := []string{"--nodes=2", "--components=scheduler"}
	for _, process := range []string{"etcd", "kube-apiserver", "kwok", "hekla-scheduler"} {
		in.cutOff(process, components...)
		before := in.open().Processes()
		in.up("did not come to its end", components...)
		for _, p := range before {
			if p.IsAlive() {
				t.Errorf("cut off at %s: %s of the first start runs on", process, p.Name)
			}
		}
		if !in.open().IsComplete() || !in.process("hekla-scheduler").IsAlive() || in.nodes() != 2 {
			t.Errorf("cut off at %s: after the next start it is complete: %t, with %d nodes", process, in.open().IsComplete(), in.nodes())
		}
		in.up("runs already")
		if process == "kube-apiserver" { // further starts go on with what is there, this one begins anew
			if output, err := in.run("down", "--dir", in.cluster); err != nil {
				t.Fatalf("hekla down: %v\n%s", err, output)
			}
			continue
		}
		if err := in.open().Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpSucceedsOnABusyMachine keeps all cores busy by as many processes as HEKLA_BUSY says, such as thirty, with a
// higher priority than those of the cluster. It takes minutes in which the machine is of little use, so it is asked
// for.
func TestUpSucceedsOnABusyMachine(t *testing.T) {
	load, err := strconv.Atoi(os.Getenv("HEKLA_BUSY"))
	if err != nil {
		t.Skip("set HEKLA_BUSY to a number of busy processes to run it")
	}
	in := install(t, "hekla", "hekla-scheduler", "hekla-controllers")
	for range load {
		busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = busy.Wait() }) // the context has ended
	}
	begun := time.Now()
	output, err := exec.CommandContext(t.Context(), "nice", "-n", "5", filepath.Join(in.bin, "hekla"), "up", "--dir", in.cluster).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "Ready after") {
		t.Fatalf("hekla up: %v\n%s", err, output)
	}
	t.Logf("it took %s:\n%s", time.Since(begun).Round(time.Second), output)
}

func TestAFailedUpNamesDown(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	in := install(t, "hekla", "hekla-scheduler")
	if err := os.MkdirAll(in.cluster, 0o700); err != nil {
		t.Fatal(err)
	}
	// etcd refuses a data folder that is a file.
	if err := os.WriteFile(filepath.Join(in.cluster, "etcd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := in.run("up", "--dir", in.cluster, "--components=")
	if err == nil || !strings.Contains(output, "etcd has ended") || !strings.Contains(output, "hekla down --dir="+in.cluster+" removes it") {
		t.Errorf("%v: it says\n%s", err, output)
	}
	// What cannot be read is removed, too.
	if err := os.WriteFile(filepath.Join(in.cluster, "state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := in.run("down", "--dir", in.cluster); err != nil || !strings.Contains(output, "is damaged") {
		t.Errorf("hekla down of what is damaged: %v\n%s", err, output)
	}
	if _, err := os.Stat(in.cluster); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestAComponentThatDoesNotStartIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	in := install(t, "hekla", "hekla-scheduler")
	if err := os.WriteFile(filepath.Join(in.bin, "hekla-scheduler"), []byte("#!/bin/sh\necho it lacks a library\nexit 4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := in.run("up", "--dir", in.cluster, "--nodes=0", "--components=scheduler")
	if err == nil || !strings.Contains(output, "hekla-scheduler has ended 3 times") || !strings.Contains(output, "exit status 4: it lacks a library") {
		t.Errorf("%v: it says\n%s", err, output)
	}
}

func TestUpAttachesToAClusterThatIsThere(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	foreign, err := localcluster.Start(ctx, localcluster.Options{Name: "foreign", Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = foreign.Stop() })
	ensureServiceAccounts(t, foreign)
	in := install(t, "hekla", "hekla-scheduler", "hekla-controllers")
	in.up(foreign.Server(), "--attach", foreign.KubeconfigPath())
	if processes := in.open().Processes(); len(processes) != 2 {
		t.Errorf("%d processes, want the two of ours", len(processes))
	}
	if output, err := in.run("up", "--dir", in.cluster, "--nodes=1"); err == nil || !strings.Contains(output, "attached without nodes") {
		t.Errorf("adding nodes later: %v\n%s", err, output)
	} else if down := filepath.Join(in.bin, "hekla") + " down --dir=" + in.cluster; !strings.Contains(output, down) {
		t.Errorf("adding nodes later: it does not say %q\n%s", down, output)
	}
	if output, err := in.run("down", "--dir", in.cluster); err != nil {
		t.Errorf("hekla down: %v\n%s", err, output)
	}
	for _, process := range foreign.Processes() {
		if !process.IsAlive() {
			t.Errorf("hekla down has ended %s of the foreign cluster", process.Name)
		}
	}
}

// ensureServiceAccounts makes what the installer may have made already.
func ensureServiceAccounts(t *testing.T, cluster *localcluster.Cluster) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(cluster.Config())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, component := range components {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: component.serviceAccount, Namespace: systemNamespace}}
		if _, err := client.CoreV1().ServiceAccounts(systemNamespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func kill(t *testing.T, process *localcluster.Process) {
	t.Helper()
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestUpRefusesWhatCannotBeMeant(t *testing.T) {
	in := install(t, "hekla")
	for want, arguments := range map[string][]string{
		"--nodes":                    {"--nodes=-1"},
		"--cpu=many":                 {"--cpu=many"},
		"--memory=0":                 {"--memory=0"},
		`there is no "kubelet"`:      {"--components=kubelet"},
		"hekla-controllers is not":   {},
		"kubeconfig nowhere":         {"--components=", "--attach=nowhere"},
		`cannot be called "A name!"`: {"--name=A name!"},
		"unknown command":            {"more"},
		"not between 0 and 65535":    {"--components=", "--port=70000"},
		"no version of Kubernetes":   {"--components=", "--kubernetes=newest"},
		"not NAME=true":              {"--components=", "--feature-gates=All"},
		"leave them out with":        {"--components=", "--attach=nowhere", "--kubernetes=v1.35.0"},
	} {
		output, err := in.run(append([]string{"up", "--dir", in.cluster}, arguments...)...)
		if err == nil || !strings.Contains(output, want) {
			t.Errorf("hekla up %v: %v, says %q, want %q in it", arguments, err, output, want)
		}
	}
}

func TestManyNamesAreShortened(t *testing.T) {
	for want, names := range map[string][]string{
		"":                         nil,
		"a, b, c, d":               {"a", "b", "c", "d"},
		"node-1, node-2 … node-10": {"node-1", "node-2", "3", "4", "node-10"},
	} {
		if got := shorten(names); got != want {
			t.Errorf("shorten(%v) = %q, want %q", names, got, want)
		}
	}
}
