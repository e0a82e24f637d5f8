package edge

import (
	"bufio"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
)

var realCluster = apitest.Shared{Definitions: "../../installer/crds", Serve: []string{"resource.k8s.io/v1beta2"}}

func TestMain(m *testing.M) { realCluster.Main(m) }

// adminClients returns clients with all rights, and the cluster.
func adminClients(t *testing.T) (*apiserver.Clients, *localcluster.Cluster) {
	t.Helper()
	c := realCluster.Cluster(t)
	clients, err := apiserver.Connect(c.Config(), 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	return clients, c
}

// documentedRules reads the tables of permissions in the package comment: those of the ClusterRole, then those of the
// Role.
func documentedRules(t *testing.T) (cluster, namespaced []rbacv1.PolicyRule) {
	t.Helper()
	source, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	groups := []string{"events.k8s.io", "scheduling.volcano.sh", "kueue.x-k8s.io", "scheduling.k8s.io", "topology.volcano.sh", "coordination.k8s.io", "policy", `""`,
		"metrics.k8s.io", "custom.metrics.k8s.io", "storage.k8s.io", "node.k8s.io", "resource.k8s.io"}
	verbs := map[string]bool{"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true}
	rules := &cluster
	for lines := bufio.NewScanner(source); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "// Role in") {
			rules = &namespaced
		}
		words := strings.Fields(strings.TrimPrefix(lines.Text(), "//\t"))
		if !strings.HasPrefix(lines.Text(), "//\t") {
			continue
		}
		rule := rbacv1.PolicyRule{}
		for i, word := range words {
			switch {
			case i == 0:
				group := strings.Trim(word, `"`)
				if !strings.Contains(strings.Join(groups, " "), word) {
					t.Fatalf("group %s in %q", word, lines.Text())
				}
				rule.APIGroups = []string{group}
			case strings.HasPrefix(word, "--leader-elect-resource-name"):
				rule.ResourceNames = []string{"volcano"}
			case word == v1beta2.LeaseName, word == "hekla-charts":
				rule.ResourceNames = []string{word}
			case strings.HasPrefix(word, "--scheduler-configmap"):
				rule.ResourceNames = []string{"volcano-scheduler-configmap"}
			case verbs[word]:
				rule.Verbs = append(rule.Verbs, word)
			case word != "named" && word != "as" && word != "in":
				rule.Resources = append(rule.Resources, word)
			}
		}
		*rules = append(*rules, rule)
	}
	return cluster, namespaced
}

// confined returns the configuration of a ServiceAccount that has the documented permissions and no other.
func confined(t *testing.T, c *localcluster.Cluster, admin kubernetes.Interface, name string, clusterRules, rules []rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	ctx := apitest.Context(t)
	const namespace = "volcano-system"
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: namespace}}
	rbac := admin.RbacV1()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	must(err)
	_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: clusterRules}, metav1.CreateOptions{})
	must(err)
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
	}, metav1.CreateOptions{})
	must(err)
	_, err = rbac.Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	must(err)
	_, err = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	must(err)
	config, err := c.ServiceAccountConfig(ctx, namespace, name)
	must(err)
	return config
}
