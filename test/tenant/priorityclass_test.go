package tenant

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAPodGroupHasNoPriorityClassOfWhichItsNamespaceMayHaveNoPods(t *testing.T) {
	tenant := tenantOf(t, "team-quota")
	const quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %NAME}\n" +
		"spec: {hard: {%HARD}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [%CLASS]}]}}"
	for name, hard := range map[string]string{"none": "pods: 0", "few": "count/pods: 2"} {
		create(t, admin, "team-quota", strings.NewReplacer("%NAME", name, "%HARD", hard, "%CLASS", name).Replace(quota))
	}
	group := func(class, members string) string {
		return strings.NewReplacer("%N", members, "%CLASS", class).Replace(
			"apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: %N, priorityClassName: '%CLASS'}")
	}
	apitest.Eventually(t, func(ctx context.Context) error { // API servers learn of a quota a moment later
		for _, group := range []string{group("none", "1"), group("few", "3")} {
			if err := tenant.Create(ctx, apitest.Object(t, "team-quota", group), client.DryRunAll); err == nil {
				return errors.New("it is let in: " + group)
			}
		}
		return nil
	})
	for _, test := range []struct{ class, members, want string }{
		{"none", "1", "PriorityClass none: ResourceQuota none allows fewer pods of it than the 1 that the PodGroup needs"},
		{"none", "0", "ResourceQuota none allows fewer pods"},
		{"few", "3", "ResourceQuota few allows fewer pods of it than the 3 that the PodGroup needs"},
		{"few", "2", ""}, {"other", "9", ""}, {"", "9", ""},
	} {
		err := tenant.Create(apitest.Context(t), apitest.Object(t, "team-quota", group(test.class, test.members)), client.DryRunAll)
		expect(t, test.members+" pods of class "+test.class, err, test.want)
	}
	made := create(t, tenant, "team-quota", group("", "1"))
	err := tenant.Patch(apitest.Context(t), made, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"priorityClassName": "none"}}`)))
	expect(t, "a PodGroup that is given the class later", err, "ResourceQuota none allows fewer pods")
	expect(t, "a namespace without quotas", tenantOf(t, "team-free").Create(apitest.Context(t), apitest.Object(t, "team-free", group("none", "9")), client.DryRunAll), "")
}
