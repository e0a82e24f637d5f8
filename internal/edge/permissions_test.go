package edge

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

// permissions lists what rules give, one verb of one resource a line.
func permissions(rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					lines = append(lines, strings.Join([]string{verb, group, resource, strings.Join(rule.ResourceNames, " ")}, " "))
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestTheInstallerGrantsWhatIsDocumentedAndNoMore(t *testing.T) {
	forCluster, forNamespace := documentedRules(t)
	want := map[string][]string{"ClusterRole": permissions(forCluster), "Role": permissions(forNamespace)}
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, object := range objects {
		kind := object.GetKind()
		if object.GetName() != "volcano-scheduler" || want[kind] == nil {
			continue
		}
		// A Role reads as a ClusterRole without its namespace: only the rules count here.
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[kind], permissions(role.Rules)); diff != "" {
			t.Errorf("%s (-documented +installed):\n%s", kind, diff)
		}
		found[kind] = true
	}
	if len(found) != len(want) {
		t.Errorf("the installer has only %v", found)
	}
}
