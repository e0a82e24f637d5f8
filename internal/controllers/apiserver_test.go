package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
)

const (
	// patience bounds every wait: long enough for two busy cores, and only ever reached by a failure.
	patience = 60 * time.Second

	poll = 20 * time.Millisecond

	system         = "volcano-system"
	serviceAccount = "volcano-controllers"
)

// The tests share one cluster, in which they play the scheduler and the kubelets, and one process of the controllers,
// which runs as a user would run it: the real binary with the documented permissions.
var (
	cluster  *localcluster.Cluster
	api      client.Client
	program  localcluster.Program
	process  *localcluster.Process
	auditLog string
	// numbersURL is where the process shows its metrics.
	numbersURL string
)

func TestMain(m *testing.M) {
	apitest.Main(func() (int, error) { return runWithCluster(m) })
}

func runWithCluster(m *testing.M) (code int, err error) {
	ctx := context.Background()
	manifests, err := localcluster.ReadManifests(os.DirFS(filepath.Join("..", "..", "installer", "crds")))
	if err != nil {
		return 1, err
	}
	scratch, err := os.MkdirTemp("", "hekla-controllers-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	auditLog = filepath.Join(scratch, "audit.log")
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		WithoutKwok: true, Manifests: manifests, Progress: os.Stderr, AuditLog: auditLog,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if api, err = apitest.Client(cluster.Config()); err != nil {
		return 1, err
	}
	if err := grantDocumentedPermissions(ctx); err != nil {
		return 1, err
	}
	if err := prepareProgram(ctx, scratch); err != nil {
		return 1, err
	}
	if err := admitWorkloads(ctx); err != nil {
		return 1, err
	}
	if process, err = cluster.Run(ctx, program); err != nil {
		return 1, err
	}
	if code := m.Run(); code != 0 {
		return code, nil
	}
	return 0, apitest.NothingForbidden(process.LogPath)
}

// admitWorkloads makes the configuration of a scheduler that admits workloads.
func admitWorkloads(ctx context.Context) error {
	return api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "volcano-scheduler-configmap"}, Data: map[string]string{
		"volcano-scheduler.conf": "actions: enqueue, admit, allocate\ntiers: [{plugins: [{name: cohorts, arguments: {waitForPodsReady: {enable: true}, " +
			"manageJobsWithoutQueueName: true, managedJobsNamespaceSelector: {matchLabels: {unnamed: held}}}}]}]",
	}})
}

// prepareProgram builds the binary and decides how it is run: everything on but the election of a leader, which has a
// test of its own.
func prepareProgram(ctx context.Context, scratch string) error {
	if err := apitest.Build(ctx, scratch, "controllers"); err != nil {
		return err
	}
	kubeconfig, _, err := cluster.ServiceAccountKubeconfig(ctx, system, serviceAccount)
	if err != nil {
		return err
	}
	health, err := localcluster.FreePort()
	if err != nil {
		return err
	}
	numbers, err := localcluster.FreePort()
	if err != nil {
		return err
	}
	numbersURL = fmt.Sprintf("http://127.0.0.1:%d/metrics", numbers)
	program = localcluster.Program{
		Name: "hekla-controllers",
		Path: apitest.Path(scratch, "controllers"),
		Args: []string{
			"--kubeconfig=" + kubeconfig,
			"--allow-unchecked-queue-commands", // only the definitions are installed; test/tenant tries the policy
			fmt.Sprintf("--healthz-address=127.0.0.1:%d", health), "--enable-healthz",
			fmt.Sprintf("--listen-address=127.0.0.1:%d", numbers), "--enable-metrics",
			"--shortest-cronjob-interval=2s",
			"--yunikorn-labels",
			// A short lease is lost on a busy machine, and a long one would delay every test that kills the
			// process. The one test with leaders waits for one.
			"--leader-elect=false",
			"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=200ms",
		},
		ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
	}
	return nil
}

// grantDocumentedPermissions makes the ServiceAccount and gives it what the table in doc.go says, and nothing else. So
// the table is true, or these tests fail.
func grantDocumentedPermissions(ctx context.Context) error {
	clusterRules, namespaceRules, err := documentedRules()
	if err != nil {
		return err
	}
	if err := cluster.CreateNamespace(ctx, system); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: serviceAccount}
	namespaced := metav1.ObjectMeta{Name: serviceAccount, Namespace: system}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: serviceAccount, Namespace: system}}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: namespaced},
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: clusterRules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: serviceAccount}},
		&rbacv1.Role{ObjectMeta: namespaced, Rules: namespaceRules},
		&rbacv1.RoleBinding{ObjectMeta: namespaced, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: serviceAccount}},
	} {
		if err := api.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// documentedRules reads the table of permissions in doc.go: for the whole cluster, and for the Lease's namespace.
func documentedRules() (forCluster, forNamespace []rbacv1.PolicyRule, err error) {
	content, err := os.ReadFile("doc.go")
	if err != nil {
		return nil, nil, err
	}
	_, table, found := strings.Cut(string(content), "// ClusterRole (verbs per resource):")
	clusterTable, namespaceTable, foundToo := strings.Cut(table, "// Role in the namespace of the Lease")
	if !found || !foundToo {
		return nil, nil, fmt.Errorf("doc.go has no table of permissions")
	}
	return rulesOf(clusterTable), rulesOf(namespaceTable), nil
}

// rulesOf reads the lines "//<tab>group  resources…  [named name]  verbs…".
func rulesOf(table string) []rbacv1.PolicyRule {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	var rules []rbacv1.PolicyRule
	for line := range strings.Lines(table) {
		line, isRow := strings.CutPrefix(line, "//\t")
		if !isRow {
			continue
		}
		words := strings.Fields(line)
		rule := rbacv1.PolicyRule{APIGroups: []string{strings.Trim(words[0], `"`)}}
		for i := 1; i < len(words); i++ {
			switch {
			case words[i] == "named":
				i++
				rule.ResourceNames = []string{words[i]}
			case slices.Contains(verbs, words[i]):
				rule.Verbs = append(rule.Verbs, words[i])
			default:
				rule.Resources = append(rule.Resources, words[i])
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// namespaces numbers the namespaces, so that a test can run again while its last namespace is still going.
var namespaces atomic.Int32

// namespaceFor makes a namespace for one test and removes it after it.
func namespaceFor(t *testing.T, name string) string {
	t.Helper()
	name = fmt.Sprintf("%s-%d", name, namespaces.Add(1))
	if err := cluster.CreateNamespace(apitest.Context(t), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
	return name
}

// create creates the object or fails the test.
func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Create(apitest.Context(t), object); err != nil {
		t.Fatal(err)
	}
}

// change reads the object, edits it and writes it, and repeats that if another client has written it in between.
func change[T client.Object](t *testing.T, object T, edit func(T)) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object)
		return api.Update(ctx, object)
	})
}

// changeStatus is change for the status.
func changeStatus[T client.Object](t *testing.T, object T, edit func(T)) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object)
		return api.Status().Update(ctx, object)
	})
}

// request is a line of the audit log: what the controllers asked of the API server, and the status code of the answer.
type request struct {
	verb, resource string
	code           int32
}

// requestsIn counts what the controllers have asked for in a namespace so far.
func requestsIn(t *testing.T, namespace string) map[request]int {
	t.Helper()
	requests := map[request]int{}
	for _, request := range requestLog(t, namespace) {
		requests[request]++
	}
	return requests
}

// requestLog is what the controllers have asked for in a namespace so far, in the order of the answers.
func requestLog(t *testing.T, namespace string) []request {
	t.Helper()
	return requestsFor(t, func(object *auditv1.ObjectReference) bool { return object.Namespace == namespace })
}

// requestsFor is what the controllers have asked for so far of the objects that are wanted.
func requestsFor(t *testing.T, isWanted func(*auditv1.ObjectReference) bool) []request {
	t.Helper()
	log, err := os.ReadFile(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	var requests []request
	for line := range strings.Lines(string(log)) {
		var entry auditv1.Event
		if !strings.HasSuffix(line, "\n") {
			// The server is writing this one just now.
			continue
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		object := entry.ObjectRef
		if entry.Stage == auditv1.StageResponseComplete && entry.UserAgent == "hekla-controllers" && object != nil && isWanted(object) {
			resource := strings.TrimSuffix(object.Resource+"/"+object.Subresource, "/")
			requests = append(requests, request{entry.Verb, resource, entry.ResponseStatus.Code})
		}
	}
	return requests
}
