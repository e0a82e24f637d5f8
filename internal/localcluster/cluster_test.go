package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestStopLeavesNoProcessAndNoPort(t *testing.T) {
	c, err := Start(testContext(t), Options{Name: "second", Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	// Two clusters run side by side and do not see each other.
	for _, of := range []struct {
		c    *Cluster
		want []string
	}{{shared, []string{"node-1", "node-2", "node-3"}}, {c, []string{"node-1"}}} {
		names, err := of.c.Nodes(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if difference := cmp.Diff(of.want, names); difference != "" {
			t.Errorf("nodes of %s (-want +got):\n%s", of.c.Server(), difference)
		}
	}
	processes := c.Processes()
	if len(processes) != 4 {
		t.Errorf("runs %d processes, want etcd, kube-apiserver, kube-controller-manager and kwok", len(processes))
	}
	for _, process := range processes {
		if !process.IsAlive() {
			t.Errorf("%s does not run", process.Name)
		}
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		if process.IsAlive() {
			t.Errorf("%s still runs", process.Name)
		}
	}
	for _, port := range []int{c.state.Port, c.state.EtcdPort} {
		if err := TryPort(port); err != nil {
			t.Errorf("port %d is still taken: %v", port, err)
		}
	}
	if _, err := os.Stat(c.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary folder is still there: %v", err)
	}
}

func TestAStoppedClusterIsContinuedWithItsData(t *testing.T) {
	ctx := testContext(t)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(foreignKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	options := Options{Name: "kept", Dir: filepath.Join(t.TempDir(), "kept"), WithoutControllers: true, WithoutKwok: true, MergeInto: kubeconfig}
	first, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Stop() })
	if _, err := Start(ctx, options); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second start in the same folder: got %v, want that the cluster runs already", err)
	}
	for _, other := range []Options{
		{Name: "another", Dir: options.Dir},
		{Name: options.Name, Dir: options.Dir, Attach: kubeconfig},
	} {
		if _, err := Start(ctx, other); err == nil || !strings.Contains(err.Error(), "belongs to") {
			t.Errorf("a start of something else in the same folder: got %v, want whom it belongs to", err)
		}
	}
	if err := first.CreateNamespace(ctx, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Stop() })
	if second.Server() != first.Server() {
		t.Errorf("it is at %s, want %s as before", second.Server(), first.Server())
	}
	// The credentials that were given out still hold.
	client := clientOf(t, first)
	if _, err := client.CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace made before: %v", err)
	}

	opened, err := Open(options.Dir)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if merged.CurrentContext != "hekla-kept" || merged.Contexts["other"] == nil {
		t.Errorf("merged kubeconfig has current context %q and contexts %v", merged.CurrentContext, merged.Contexts)
	}
	if err := opened.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	for _, process := range second.Processes() {
		if process.IsAlive() {
			t.Errorf("%s outlived a delete by another handle", process.Name)
		}
	}
	if _, err := Open(options.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open after delete: got %v, want that it does not exist", err)
	}
	merged, err = clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if merged.Contexts["hekla-kept"] != nil || merged.Contexts["other"] == nil {
		t.Errorf("after delete the merged kubeconfig has contexts %v", merged.Contexts)
	}
}

const foreignKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: other, cluster: {server: "https://192.0.2.1"}}]
users: [{name: other, user: {token: secret}}]
contexts: [{name: other, context: {cluster: other, user: other}}]
current-context: other
`

func TestAFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	// etcd refuses a data folder that is a file.
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	_, err := Start(ctx, Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "etcd has ended") {
		t.Fatalf("got %v, want that etcd ended", err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range c.Processes() {
		if process.IsAlive() {
			t.Errorf("%s still runs", process.Name)
		}
	}
}

func TestOptionsThatContradictAreRefused(t *testing.T) {
	for name, options := range map[string]Options{
		"negative node count":    {Nodes: -1},
		"port out of range":      {Port: 70000},
		"attached with a port":   {Attach: "kubeconfig", Port: 1},
		"attached nodes no kwok": {Attach: "kubeconfig", Nodes: 1, WithoutKwok: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := Start(t.Context(), options); err == nil {
				_ = c.Stop()
				t.Error("started")
			}
		})
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	_, err := Start(testContext(t), Options{Port: shared.state.Port})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(shared.state.Port)) {
		t.Errorf("got %v, want an error that names port %d", err, shared.state.Port)
	}
}

func TestAttachedProcessesRunForAForeignCluster(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(t.TempDir(), "attached")
	c, err := Start(ctx, Options{Name: "attached", Dir: dir, Attach: shared.KubeconfigPath(), Nodes: 1, NodeTemplate: NodeTemplate{Prefix: "attached-"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if c.Server() != shared.Server() {
		t.Errorf("server is %s, want %s", c.Server(), shared.Server())
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff([]string{"attached-1"}, nodes); difference != "" {
		t.Errorf("its own nodes (-want +got):\n%s", difference)
	}
	if err := c.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, shared).CoreV1().Nodes().Get(ctx, "attached-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("attached-1 after delete: got %v, want not found", err)
	}
	if nodes, err := shared.Nodes(ctx); err != nil || len(nodes) != 3 {
		t.Errorf("the foreign cluster's own nodes: %v, %v", nodes, err)
	}
}

func TestWhatWasAttachedIsRemovedThoughTheForeignClusterIsGone(t *testing.T) {
	ctx := testContext(t)
	foreign := strings.Replace(foreignKubeconfig, "192.0.2.1", loopback+":1", 1)
	dir := filepath.Join(t.TempDir(), "attached")
	c := &Cluster{dir: dir, state: &state{Name: "attached", IsAttached: true, Kubeconfig: filepath.Join(dir, "kubeconfig")}}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.state.Kubeconfig, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.state.write(dir); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Delete(ctx); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("got %v, want that nodes are left", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestAServiceAccountHasItsOwnRightsOnly(t *testing.T) {
	ctx := testContext(t)
	config, err := shared.ServiceAccountConfig(ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	path, expires, err := shared.ServiceAccountKubeconfig(ctx, "default", "default")
	if err != nil {
		t.Fatal(err)
	}
	if expires.IsZero() {
		t.Error("the token does not say when it expires")
	}
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*kubernetes.Clientset{
		"configuration": kubernetes.NewForConfigOrDie(config),
		"kubeconfig":    kubernetes.NewForConfigOrDie(fromFile),
	} {
		_, err := config.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:default") {
			t.Errorf("listing nodes by %s: got %v, want that the ServiceAccount may not", name, err)
		}
	}
	for _, file := range []string{path, shared.KubeconfigPath()} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", file, info.Mode().Perm())
		}
	}
}

func TestOnlyIdleNodesAreRemoved(t *testing.T) {
	ctx := testContext(t)
	client := clientOf(t, shared)
	names, err := shared.AddNodes(ctx, 3, NodeTemplate{Labels: map[string]string{"pool": "spare"}})
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff([]string{"node-4", "node-5", "node-6"}, names); difference != "" {
		t.Fatalf("added nodes (-want +got):\n%s", difference)
	}
	createBound(t, client, newPod("idle-test", nil), "node-5")

	removed, busy, err := shared.RemoveIdleNodes(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff([]string{"node-6", "node-4"}, removed); difference != "" {
		t.Errorf("removed (-want +got):\n%s", difference)
	}
	if difference := cmp.Diff([]string{"node-5"}, busy); difference != "" {
		t.Errorf("kept as busy (-want +got):\n%s", difference)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "node-5", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Spec.Unschedulable || node.Labels["pool"] != "spare" {
		t.Errorf("node-5 is unschedulable %t with labels %v", node.Spec.Unschedulable, node.Labels)
	}
	if err := shared.RemoveNode(ctx, "node-5"); err != nil {
		t.Fatal(err)
	}
	// The garbage collector removes the pods of a node that is gone; here the test does, so as not to wait for it.
	if err := client.CoreV1().Pods("default").Delete(ctx, "idle-test", *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func TestANodeSetNotReadyStaysNotReady(t *testing.T) {
	ctx := testContext(t)
	client := clientOf(t, shared)
	if _, err := shared.AddNodes(ctx, 1, NodeTemplate{Prefix: "broken-"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.RemoveNode(context.Background(), "broken-1") })
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Test"}]}}`)
	if _, err := client.CoreV1().Nodes().Patch(ctx, "broken-1", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	// The taint says that the node-lifecycle controller runs and has seen it; kwok has had the same time.
	eventually(t, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, "broken-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) == 0 {
			return errors.New("the node has no taint")
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionFalse {
				t.Errorf("Ready is %s again", condition.Status)
			}
		}
		return nil
	})
}

func TestANodeAppliedByHandBecomesReady(t *testing.T) {
	ctx := testContext(t)
	client := clientOf(t, shared)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Annotations: map[string]string{nodeAnnotation: "fake"}}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.RemoveNode(context.Background(), "by-hand") })
	eventually(t, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, "by-hand", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && !node.Status.Allocatable.Cpu().IsZero() {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", node.Status)
	})
}

// etcdChange changes what etcd holds under a key, past the API server.
func etcdChange(t *testing.T, c *Cluster, key string, change func(value string) string) {
	t.Helper()
	pki := controlPlane{c}.pki()
	config, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(pki, "ca.crt"),
		CertFile: filepath.Join(pki, "etcd-client.crt"), KeyFile: filepath.Join(pki, "etcd-client.key")}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{fmt.Sprintf("https://%s:%d", loopback, c.state.EtcdPort)}, TLS: config, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	found, err := client.Get(testContext(t), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("etcd has %+v of %s, %v", found, key, err)
	}
	changed := change(string(found.Kvs[0].Value))
	if changed == string(found.Kvs[0].Value) {
		t.Fatalf("nothing is changed in %s", changed)
	}
	if _, err := client.Put(testContext(t), key, changed); err != nil {
		t.Fatal(err)
	}
}

// An API server that was killed while it installed a definition leaves it like this, and the next does not go on.
func TestADefinitionThatIsInstalledForEverIsRepaired(t *testing.T) {
	ctx := testContext(t)
	options := Options{Name: "installing", Dir: filepath.Join(t.TempDir(), "installing"), WithoutControllers: true, WithoutKwok: true}
	var err error
	if options.Manifests, err = parseManifests([]byte(smallDefinition)); err != nil {
		t.Fatal(err)
	}
	c, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	for _, process := range c.Processes() {
		if process.Name == "kube-apiserver" {
			if err := process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	etcdChange(t, c, "/registry/apiextensions.k8s.io/customresourcedefinitions/things.example.org", func(value string) string {
		established := regexp.MustCompile(`"reason":"InitialNamesAccepted","message":"[^"]*"`)
		value = established.ReplaceAllString(value, `"reason":"Installing","message":"the initial names have been accepted"`)
		return regexp.MustCompile(`"type":"Established","status":"True"`).ReplaceAllString(value, `"type":"Established","status":"False"`)
	})
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	again, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Stop() })
}

const smallDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// What starts a process may be killed before it has written that down.
func TestProcessesThatWereNotWrittenDownAreEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "orphans")
	lost, err := start(Program{Name: "lost", Path: pathOf(t, "sleep"), Args: []string{"600"}}, t.TempDir(), true, dir)
	if err != nil {
		t.Fatal(err)
	}
	other := startSleep(t)
	if len(leftovers(dir)) == 0 {
		t.Skip("the environment of other processes cannot be read on this platform")
	}
	if _, err := prepare(Options{Dir: dir}, nil); err != nil {
		t.Fatal(err)
	}
	if lost.IsAlive() || !other.IsAlive() {
		t.Errorf("the lost process is alive: %t, one of another cluster: %t", lost.IsAlive(), other.IsAlive())
	}
}

func TestAFolderThatIsRemovedInPartIsNotTakenForACluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.MkdirAll(filepath.Join(removedDir(dir), "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(Options{Dir: dir}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(removedDir(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is left of the one before is there: %v", err)
	}
	if err := Discard(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after its removal: %v", err)
	}
}

func TestAContinuedClusterKeepsWhatItWasMadeWith(t *testing.T) {
	dir := t.TempDir()
	if err := (&state{Name: "kept", Kubernetes: "v1.35.1", FeatureGates: []string{"A=true"}}).write(dir); err != nil {
		t.Fatal(err)
	}
	options := Options{Dir: dir}
	if err := options.keep(); err != nil || options.Kubernetes != "v1.35.1" || len(options.FeatureGates) != 1 {
		t.Errorf("continued with %q and %v: %v", options.Kubernetes, options.FeatureGates, err)
	}
	for _, other := range []Options{{Dir: dir, Kubernetes: "v1.34.0"}, {Dir: dir, FeatureGates: []string{"A=false"}}} {
		if err := other.keep(); err == nil || !strings.Contains(err.Error(), "v1.35.1") {
			t.Errorf("got %v, want what it was made with", err)
		}
	}
}
