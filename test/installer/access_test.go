package installer

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/controllers/queue"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// tooMuch says what a rule gives that nothing here needs, or that would let its holder get more than it was given.
func tooMuch(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, field := range []struct {
		name      string
		values    []string
		forbidden []string
	}{
		{"apiGroups", rule.APIGroups, []string{"*", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"}},
		{"resources", rule.Resources, []string{"*", "secrets", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "nodes/proxy", "serviceaccounts", "serviceaccounts/token"}},
		{"verbs", rule.Verbs, []string{"*", "escalate", "bind", "impersonate"}},
	} {
		for _, value := range field.values {
			if slices.Contains(field.forbidden, value) || strings.Contains(value, "*") {
				found = append(found, field.name+": "+value)
			}
		}
	}
	if len(rule.NonResourceURLs) > 0 {
		found = append(found, "nonResourceURLs")
	}
	return found
}

// unnamed says what a rule of a namespace gives for every object although the names are known.
func unnamed(rule rbacv1.PolicyRule) []string {
	var found []string
	for _, resource := range rule.Resources {
		isCreateOnly := len(rule.Verbs) == 1 && rule.Verbs[0] == "create"
		if (resource == "configmaps" || resource == "leases" && !isCreateOnly) && len(rule.ResourceNames) == 0 {
			found = append(found, resource+" without resourceNames")
		}
	}
	return found
}

func TestNoRoleGivesMoreThanItsHolderNeeds(t *testing.T) {
	for _, role := range read(t).clusterRoles {
		for i, rule := range role.Rules {
			if role.Name == "volcano-controllers" && (isForJobPlugins(rule, "configmaps", "services") || isForCommands(rule)) ||
				role.Name == forSSH && isForJobPlugins(rule, "secrets") || role.Name == admissionServer && isForItsOwn(rule) {
				continue
			}
			for _, problem := range tooMuch(rule) {
				t.Errorf("ClusterRole %s, rule %d gives %s", role.Name, i, problem)
			}
			if slices.Contains(rule.Resources, "configmaps") || slices.Contains(rule.Resources, "leases") && !isForKueue(rule) {
				t.Errorf("ClusterRole %s, rule %d gives %v in all namespaces", role.Name, i, rule.Resources)
			}
		}
		if role.AggregationRule != nil {
			t.Errorf("ClusterRole %s gathers rules that cannot be seen here", role.Name)
		}
	}
	for _, role := range read(t).roles {
		if role.Namespace != "volcano-system" {
			t.Errorf("Role %s is in namespace %q", role.Name, role.Namespace)
		}
		for i, rule := range role.Rules {
			if role.Name == admissionServer && isForItsOwn(rule) {
				continue
			}
			for _, problem := range append(tooMuch(rule), unnamed(rule)...) {
				t.Errorf("Role %s, rule %d gives %s", role.Name, i, problem)
			}
		}
	}
}

// forSSH is the role for the Secrets of the job plugin ssh, which the installer binds nowhere.
const forSSH = "volcano-controllers-ssh"

// isForJobPlugins reports whether a rule is the one for these objects of job plugins, such as SSH keys and the list of
// hosts. The controllers know their names. The rule allows no list and no watch, so it does not show which Secrets
// exist.
func isForJobPlugins(rule rbacv1.PolicyRule, resources ...string) bool {
	return slices.Equal(rule.Resources, resources) && len(rule.APIGroups) == 1 &&
		!slices.ContainsFunc(rule.Verbs, func(verb string) bool {
			return !slices.Contains([]string{"get", "create", "patch", "delete"}, verb)
		})
}

// isForKueue reports whether a rule is the one by which the controllers see whether Kueue itself runs, in whichever
// namespace: by the name of its Lease.
func isForKueue(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.ResourceNames, []string{v1beta2.LeaseName}) && slices.Equal(rule.Verbs, []string{"list"}) && slices.Equal(rule.Resources, []string{"leases"})
}

// isForCommands reports whether a rule is the one by which the controllers see whether the policy about Commands for
// queues is in force.
func isForCommands(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.ResourceNames, []string{queue.CommandPolicy}) && slices.Equal(rule.Verbs, []string{"get"}) && !slices.Contains(rule.Resources, "*")
}

// isForItsOwn reports whether a rule is one by which the webhook server keeps its certificates, or says where it is to
// be found: by name, in objects that were installed for that.
func isForItsOwn(rule rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) == 1 && slices.Contains([]string{"volcano-admission-secret", admissionServer}, rule.ResourceNames[0]) &&
		slices.Equal(rule.Verbs, []string{"get", "update"}) && !slices.Contains(rule.Resources, "*")
}

func TestARoleThatGivesTooMuchIsFound(t *testing.T) {
	for name, rule := range map[string]rbacv1.PolicyRule{
		"any group":          {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		"any resource":       {APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"get"}},
		"any subresource":    {APIGroups: []string{""}, Resources: []string{"*/status"}, Verbs: []string{"get"}},
		"any verb":           {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		"secrets":            {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		"a shell":            {APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		"roles":              {APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}, Verbs: []string{"get"}},
		"rights of others":   {APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}},
		"URLs":               {NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		"every ConfigMap":    {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		"the Lease of any":   {APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "update"}},
		"tokens of accounts": {APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
	} {
		if len(tooMuch(rule))+len(unnamed(rule)) == 0 {
			t.Errorf("%s: %v passes", name, rule)
		}
	}
}

// What lets the scheduler answer questions, and the Role of Kubernetes by which it knows whom the API server passes on.
const answers, proxyReader = "volcano-scheduler-answers", "extension-apiserver-authentication-reader"

func TestBindingsStayWithinTheInstaller(t *testing.T) {
	in := read(t)
	check := func(binding string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		isOurs := ref.Kind == "ClusterRole" && slices.ContainsFunc(in.clusterRoles, func(r rbacv1.ClusterRole) bool { return r.Name == ref.Name }) ||
			ref.Kind == "Role" && slices.ContainsFunc(in.roles, func(r rbacv1.Role) bool { return r.Name == ref.Name }) ||
			ref.Kind == "Role" && ref.Name == proxyReader && binding == "RoleBinding "+answers
		if !isOurs {
			t.Errorf("%s binds %s %s, which the installer does not define", binding, ref.Kind, ref.Name)
		}
		for _, subject := range subjects {
			isOurs := slices.ContainsFunc(in.accounts, func(a metav1.ObjectMeta) bool {
				return subject.Kind == "ServiceAccount" && a.Name == subject.Name && a.Namespace == subject.Namespace
			})
			if !isOurs {
				t.Errorf("%s gives rights to %s %s/%s", binding, subject.Kind, subject.Namespace, subject.Name)
			}
		}
	}
	for _, b := range in.clusterRoleBindings {
		check("ClusterRoleBinding "+b.Name, b.RoleRef, b.Subjects)
	}
	for _, b := range in.roleBindings {
		check("RoleBinding "+b.Name, b.RoleRef, b.Subjects)
	}
	if len(in.clusterRoleBindings) != 4 || len(in.roleBindings) != 5 {
		t.Errorf("%d ClusterRoleBindings and %d RoleBindings, want one per program, and one and two for answers", len(in.clusterRoleBindings), len(in.roleBindings))
	}
}

func TestOnlyTheFeatureGateBringsTheRightToPatchPods(t *testing.T) {
	mayPatch := func(in *manifests) bool {
		return slices.ContainsFunc(in.clusterRoles, func(r rbacv1.ClusterRole) bool {
			return strings.HasPrefix(r.Name, "volcano-scheduler") && slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Resources, "pods") && slices.Contains(rule.Verbs, "patch")
			})
		})
	}
	if mayPatch(read(t)) || !mayPatch(sortByKind(t, render(t, "queueAdmissionGates: true"))) {
		t.Error("the right to patch pods does not go with the gate")
	}
}

func TestTheRightToSecretsIsBoundWhereItIsWantedOnly(t *testing.T) {
	for values, want := range map[string]string{
		"":                                 "",
		"sshPlugin: {allNamespaces: true}": "everywhere",
		"sshPlugin: {namespaces: [team-a, team-b]}": "team-a team-b",
	} {
		in := sortByKind(t, render(t, values))
		var where []string
		for _, b := range in.clusterRoleBindings {
			if b.RoleRef.Name == forSSH {
				where = append(where, "everywhere")
			}
		}
		for _, b := range in.roleBindings {
			if b.RoleRef.Name == forSSH {
				where = append(where, b.Namespace)
			}
		}
		if got := strings.Join(where, " "); got != want {
			t.Errorf("with %q the right to Secrets is bound in %q, want %q", values, got, want)
		}
		for _, role := range in.clusterRoles {
			if role.Name != forSSH && slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") }) {
				t.Errorf("with %q ClusterRole %s gives Secrets", values, role.Name)
			}
		}
	}
}

// The packages that need the rights write them down, with the reasons. What is shipped is exactly that.
func TestRolesAreWhatThePackagesSayTheyNeed(t *testing.T) {
	in := read(t)
	for name, file := range map[string]string{
		"volcano-scheduler":   "../../internal/edge/doc.go",
		"volcano-controllers": "../../internal/controllers/doc.go",
		admissionServer:       "../../internal/admission/doc.go",
		answers:               "../../internal/answers/doc.go",
	} {
		wanted := documented(t, file)
		var shipped []string
		for _, role := range in.clusterRoles {
			if role.Name == name || role.Name == forSSH && name == "volcano-controllers" {
				shipped = append(shipped, grants("cluster", role.Rules)...)
			}
		}
		for _, role := range in.roles {
			if role.Name == name {
				shipped = append(shipped, grants("namespace", role.Rules)...)
			}
		}
		slices.Sort(shipped)
		if difference := cmp.Diff(wanted, shipped); difference != "" {
			t.Errorf("%s: documented in %s (-), shipped (+):\n%s", name, file, difference)
		}
	}
}

// grants writes every single right of some rules as a line.
func grants(scope string, rules []rbacv1.PolicyRule) []string {
	var lines []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					suffix := ""
					if len(rule.ResourceNames) > 0 {
						suffix = " by name"
					}
					lines = append(lines, fmt.Sprintf("%s: %s %s/%s%s", scope, verb, group, resource, suffix))
				}
			}
		}
	}
	return lines
}

// verbs are all that RBAC knows and a documentation may list.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// documented reads the tables below "# Permissions" of a package's documentation: group, resources, verbs. Words
// between them say by which name.
func documented(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, tables, isThere := strings.Cut(string(content), "# Permissions")
	if !isThere {
		t.Fatalf("%s does not say which permissions it needs", file)
	}
	scope := ""
	var lines []string
	for line := range strings.Lines(tables) {
		text, isRow := strings.CutPrefix(line, "//\t")
		switch {
		case strings.HasPrefix(line, "// ClusterRole"):
			scope = "cluster"
		case strings.HasPrefix(line, "// Role"):
			scope = "namespace"
		}
		if !isRow {
			continue
		}
		words := strings.Fields(text)
		group, suffix := strings.Trim(words[0], `"`), ""
		var resources, allowed []string
		for _, word := range words[1:] {
			switch {
			case slices.Contains(verbs, word):
				allowed = append(allowed, word)
			case word == "named":
				suffix = " by name"
			case suffix == "":
				resources = append(resources, word)
			}
		}
		for _, resource := range resources {
			for _, verb := range allowed {
				lines = append(lines, fmt.Sprintf("%s: %s %s/%s%s", scope, verb, group, resource, suffix))
			}
		}
	}
	slices.Sort(lines)
	return lines
}
