package tenant

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/admission"
	"hekla.sh/hekla/internal/localcluster"
)

const (
	system = "volcano-system"
	// patience bounds every wait. It is reached only by a failure.
	patience = time.Minute
	poll     = 20 * time.Millisecond
)

// The tests share one cluster. It has a scheduler only in tests that call schedule.
var (
	cluster *localcluster.Cluster
	admin   client.Client        // who runs the cluster
	again   localcluster.Program // the controllers, to be run a second time
	hooks   webhookServer
)

// webhookServer is the process that answers webhooks.
type webhookServer struct {
	*localcluster.Process
	url string
}

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	apitest.Main(func() (int, error) { return runAll(m) })
}

func runAll(m *testing.M) (code int, err error) {
	ctx := context.Background()
	manifests, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		return 1, err
	}
	cluster, err = localcluster.Start(ctx, localcluster.Options{WithoutKwok: true, Manifests: localcluster.WithoutPods(manifests), Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if admin, err = clientFor(""); err != nil {
		return 1, err
	}
	scratch, err := os.MkdirTemp("", "hekla-tenant-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err := startPrograms(ctx, scratch); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// clientFor acts as a user; empty is who runs the cluster.
func clientFor(user string) (client.Client, error) {
	config := cluster.Config()
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	return apitest.Client(config)
}

// startPrograms runs the controllers and the webhook server as the installer does, but on the loopback interface.
func startPrograms(ctx context.Context, scratch string) error {
	if err := apitest.Build(ctx, scratch, "controllers"); err != nil {
		return err
	}
	for name, arguments := range map[string][]string{
		"volcano-controllers": {"--leader-elect=false"},
		"volcano-admission":   {"admission", "--enabled-admission=" + strings.Join(admission.Paths(), ","), "--listen-address=127.0.0.1"},
	} {
		kubeconfig, _, err := cluster.ServiceAccountKubeconfig(ctx, system, name)
		if err != nil {
			return err
		}
		port, err1 := localcluster.FreePort()
		health, err2 := localcluster.FreePort()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		url := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if arguments[0] == "admission" {
			arguments = append(arguments, fmt.Sprintf("--port=%d", port), "--webhook-url="+url)
		}
		started := localcluster.Program{
			Name: name, Path: apitest.Path(scratch, "controllers"),
			Args:     append(arguments, "--kubeconfig="+kubeconfig, "--enable-healthz", fmt.Sprintf("--healthz-address=127.0.0.1:%d", health)),
			ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
		}
		process, err := cluster.Run(ctx, started)
		if err != nil {
			return err
		}
		if name == "volcano-controllers" {
			again = started
		} else {
			hooks = webhookServer{process, url}
		}
	}
	return nil
}

// tenantOf makes a namespace, if it is not there yet, and returns a client for a user who may edit it and nothing else.
func tenantOf(t *testing.T, namespace string) client.Client {
	t.Helper()
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := admin.Create(apitest.Context(t), made); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, func(ctx context.Context) error {
		return admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
	tenant := userOf(t, namespace, "tenant-of-"+namespace, "edit")
	// The role gathers the rights of the installer's, and API servers learn of a binding, a moment later.
	apitest.Eventually(t, func(ctx context.Context) error {
		return tenant.Create(ctx, apitest.Object(t, namespace, gang("probe", "")), client.DryRunAll)
	})
	return tenant
}

// userOf returns a client for a user who has a ClusterRole in a namespace, and no other right.
func userOf(t *testing.T, namespace, user, role string) client.Client {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := admin.Create(apitest.Context(t), binding); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	as, err := clientFor(user)
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// create creates an object and removes it after the test.
func create(t *testing.T, as client.Client, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	made := apitest.Object(t, namespace, text)
	if err := as.Create(apitest.Context(t), made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), made) })
	return made
}

// expect compares what an API server says with what it should say; nothing is success.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: refused: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v\nwant %s", what, err, want)
	}
}

// gang is a Job of two pods.
func gang(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  %s
  tasks:
  - replicas: 2
    template: {spec: {containers: [{name: a, image: b}]}}
`, name, spec)
}

// queue is a Queue with metadata besides its name, such as ", labels: {a: b}".
func queue(name, metadata, spec string) string {
	return fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s%s}\nspec: %s\n", name, metadata, spec)
}

// awaitEvent waits for an Event about an object that contains the words.
func awaitEvent(t *testing.T, about client.Object, words string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		list := &corev1.EventList{}
		if err := admin.List(ctx, list); err != nil {
			return err
		}
		var said []string
		for i := range list.Items {
			if event := &list.Items[i]; event.InvolvedObject.UID == about.GetUID() {
				if strings.Contains(event.Message, words) {
					return nil
				}
				said = append(said, event.Message)
			}
		}
		return fmt.Errorf("the Events of %s say %q, and not %q", about.GetName(), said, words)
	})
}
