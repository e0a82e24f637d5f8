package controllers_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
)

// permissions takes rules apart into what is allowed, one sorted line per group, resource, name and verb.
func permissions(rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"any"}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						lines = append(lines, verb+" "+resource+"."+group+" named "+name)
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestTheInstallerGrantsWhatIsDocumentedAndNoMore(t *testing.T) {
	forCluster, forNamespace, err := documentedRules()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"ClusterRole": permissions(forCluster), "Role": permissions(forNamespace)}
	objects, err := localcluster.ReadManifests(hekla.Installer)
	if err != nil {
		t.Fatal(err)
	}
	// The right to Secrets is a ClusterRole of its own, so that it can be bound in some namespaces only.
	granted := map[string][]string{}
	for _, object := range objects {
		if name := object.GetName(); name != serviceAccount && name != serviceAccount+"-ssh" || want[object.GetKind()] == nil {
			continue
		}
		// A Role reads as a ClusterRole without its namespace: only the rules count here.
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			t.Fatal(err)
		}
		granted[object.GetKind()] = append(granted[object.GetKind()], permissions(role.Rules)...)
	}
	for kind := range granted {
		slices.Sort(granted[kind])
	}
	if diff := cmp.Diff(want, granted); diff != "" {
		t.Errorf("rights (-documented +installed):\n%s", diff)
	}
}
