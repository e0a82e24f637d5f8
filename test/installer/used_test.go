package installer

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// usedFile lists the rights that the end-to-end tests were seen to use, one a line: account, verb, and group with
	// resource.
	usedFile = "testdata/used.txt"
	// auditEnv names the audit log of a run of the end-to-end tests, which keep it if the variable is set. With it
	// usedFile is written again.
	auditEnv = "HEKLA_E2E_AUDIT"
)

// Why a right is given that no end-to-end test uses. What is said to be tested elsewhere is tested against an API
// server.
const (
	enforced     = "asked for by an API server that checks owner references which block deletion"
	ofOperators  = "of a kind of another project, which test/e2e does not install: the finders of owners in internal/queueing know them"
	ofCommands   = "for Commands, which the tests of internal/controllers give"
	ofChanges    = "for a Job whose plugins are to make something else than before: internal/controllers"
	ofOwners     = "for pods of this owner: internal/controllers"
	ofMetrics    = "where the configuration has metrics.type prometheus_adaptor"
	afterRefusal = "after a write was refused, to see why"
	ofWebhooks   = "for webhooks that test/admission has asked"
)

// unmet are the rights that no end-to-end test uses, with the reasons.
var unmet = func() map[string]string {
	all := map[string]string{
		"volcano-scheduler delete resource.k8s.io/resourceclaims":                 "for a claim that was made for a pod with an extended resource, which was not bound",
		"volcano-scheduler update resource.k8s.io/resourceclaims/binding":         "asked for by an API server when the status of a claim is written",
		"volcano-scheduler get scheduling.volcano.sh/queues":                      afterRefusal,
		"volcano-scheduler get custom.metrics.k8s.io/nodes/node_cpu_usage_avg":    ofMetrics,
		"volcano-scheduler get custom.metrics.k8s.io/nodes/node_memory_usage_avg": ofMetrics,

		"volcano-scheduler update /configmaps": "for the charts of the web page, every ten minutes and at the end: test/web",

		"volcano-controllers get scheduling.volcano.sh/podgroups":                                afterRefusal,
		"volcano-controllers patch /configmaps":                                                  ofChanges,
		"volcano-controllers patch /services":                                                    ofChanges,
		"volcano-controllers patch networking.k8s.io/networkpolicies":                            ofChanges,
		"volcano-controllers patch batch/jobs/status":                                            "for a Job that is stopped after it has begun: internal/controllers",
		"volcano-controllers patch kueue.x-k8s.io/admissionchecks/status":                        "for an AdmissionCheck, to say whether it is served: internal/controllers",
		"volcano-controllers get apps/daemonsets":                                                ofOwners,
		"volcano-controllers get apps/statefulsets":                                              ofOwners,
		"volcano-controllers get scheduling.volcano.sh/queues":                                   ofCommands,
		"volcano-controllers get bus.volcano.sh/commands":                                        ofCommands,
		"volcano-controllers delete bus.volcano.sh/commands":                                     ofCommands,
		"volcano-controllers update batch.volcano.sh/jobs/finalizers":                            enforced,
		"volcano-controllers update batch.volcano.sh/cronjobs/finalizers":                        enforced,
		"volcano-controllers update flow.volcano.sh/jobflows/finalizers":                         enforced,
		"volcano-controllers get admissionregistration.k8s.io/validatingadmissionpolicies":       ofCommands,
		"volcano-controllers get admissionregistration.k8s.io/validatingadmissionpolicybindings": ofCommands,

		"volcano-admission list /pods":                           ofWebhooks,
		"volcano-admission list scheduling.volcano.sh/podgroups": ofWebhooks,
		"volcano-admission get /namespaces":                      ofWebhooks,
		"volcano-admission list /namespaces":                     ofWebhooks,
		"volcano-admission watch /namespaces":                    ofWebhooks,
		"volcano-admission get batch/jobs":                       ofWebhooks,
	}
	for _, account := range []string{"volcano-controllers", admissionServer} {
		for _, kind := range []string{"jobset.x-k8s.io/jobsets", "kubeflow.org/jaxjobs", "kubeflow.org/mpijobs", "kubeflow.org/paddlejobs",
			"kubeflow.org/pytorchjobs", "kubeflow.org/tfjobs", "kubeflow.org/xgboostjobs", "leaderworkerset.x-k8s.io/leaderworkersets",
			"ray.io/rayclusters", "ray.io/rayjobs", "ray.io/rayservices", "sparkoperator.k8s.io/sparkapplications",
			"trainer.kubeflow.org/trainjobs", "workload.codeflare.dev/appwrappers"} {
			all[account+" get "+kind] = ofOperators
		}
	}
	return all
}()

// used are the rights that a log of the end-to-end tests shows.
func used(t *testing.T, log string) (lines []string) {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	met := map[string]bool{}
	read := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := read.ReadBytes('\n')
		if err != nil {
			break
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		account, isOurs := strings.CutPrefix(event.User.Username, "system:serviceaccount:"+system+":")
		if o := event.ObjectRef; isOurs && o != nil && o.Resource != "" {
			resource := o.Resource
			if o.Subresource != "" {
				resource += "/" + o.Subresource
			}
			met[right(account, event.Verb, o.APIGroup, resource)] = true
		}
	}
	return slices.Sorted(maps.Keys(met))
}

func right(account, verb, group, resource string) string {
	return account + " " + verb + " " + group + "/" + resource
}

// given are the rights of the programs by the roles of their names.
func given(in *manifests) (all []string) {
	add := func(name string, rules []rbacv1.PolicyRule) {
		if !slices.Contains([]string{"volcano-scheduler", "volcano-controllers", admissionServer}, name) {
			return
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, right(name, verb, group, resource))
					}
				}
			}
		}
	}
	for _, role := range in.clusterRoles {
		add(role.Name, role.Rules)
	}
	for _, role := range in.roles {
		add(role.Name, role.Rules)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unused are the rights that nothing was seen to use and that have no reason. Where a watch sends what there is,
// nothing is listed; where the API server cannot do that, it is.
func unused(given, used []string) (found []string) {
	for _, r := range given {
		_, hasReason := unmet[r]
		isUsed := slices.Contains(used, r) || slices.Contains(used, strings.Replace(r, " list ", " watch ", 1))
		if !isUsed && !hasReason {
			found = append(found, r)
		}
	}
	return found
}

// Who changes what a program asks for, or what a role gives, runs the end-to-end tests with the variable [auditEnv],
// and this test with it after them. A right that is left over goes, or gets a reason.
func TestEveryRightIsUsed(t *testing.T) {
	if log := os.Getenv(auditEnv); log != "" {
		if err := os.WriteFile(usedFile, []byte(strings.Join(used(t, log), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(usedFile)
	if err != nil {
		t.Fatal(err)
	}
	var met []string
	all := given(read(t))
	for line := range strings.Lines(string(content)) {
		met = append(met, strings.TrimSpace(line))
	}
	for _, r := range unused(all, met) {
		t.Errorf("no end-to-end test was seen to use %q: take it from the role, or say why it is needed", r)
	}
	for _, r := range slices.Sorted(maps.Keys(unmet)) {
		if !slices.Contains(all, r) || slices.Contains(met, r) {
			t.Errorf("%q needs no reason: no role gives it, or it is used", r)
		}
	}
}
