package simulation

import "math/rand/v2"

const webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

// disturbances are what administrators break for a while: a webhook of another product that does not answer, and a
// definition that is removed with all its objects.
type disturbances struct {
	driver       *driver
	webhookTo    int // the step at which the webhook is taken away; 0 if there is none
	definition   map[string]any
	definitionAt int // the step at which the definition is created again
}

// isAny reports whether there is a disturbance now.
func (s *disturbances) isAny() bool { return s.webhookTo > 0 || s.definition != nil }

// pass ends what is over.
func (s *disturbances) pass() {
	if s.webhookTo > 0 && s.driver.step >= s.webhookTo {
		s.webhookTo = 0
		must(s.driver.delete("admin", webhooks+"/policy", nil), "webhooks")
	}
	if s.definition != nil && s.driver.step >= s.definitionAt {
		s.restore()
	}
}

// end lets what is broken be over now.
func (s *disturbances) end() {
	s.webhookTo, s.definitionAt = min(s.webhookTo, s.driver.step), 0
	s.pass()
}

// guarded are the resources that webhooks of other products look at: those that the programs write all the time.
var guarded = [][]any{
	{rule("", "pods", "pods/binding", "pods/eviction", "pods/status")},
	{rule("batch", "jobs", "jobs/status"), rule("batch.volcano.sh", "jobs", "jobs/status")},
	{rule("kueue.x-k8s.io", "workloads", "workloads/status")},
	{rule("scheduling.volcano.sh", "podgroups", "podgroups/status", "queues/status")},
	{rule("", "pods"), rule("batch", "jobs"), rule("batch.volcano.sh", "jobs"), rule("kueue.x-k8s.io", "workloads"), rule("scheduling.volcano.sh", "podgroups")},
}

// rule has a webhook be asked about all writes of resources of a group.
func rule(group string, resources ...any) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": resources, "operations": []any{"*"}}
}

// failWebhook makes a webhook that must be asked about some requests, and does not answer.
func failWebhook(d *driver, random *rand.Rand) bool {
	if d.disturbances.webhookTo > 0 {
		return false
	}
	d.disturbances.webhookTo = d.step + 50 + random.IntN(250)
	return d.create("admin", webhooks, map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "policy"}, "webhooks": []any{map[string]any{
			"name": "policy.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": 1,
			"clientConfig": map[string]any{"url": "https://policy.example.com/"}, "rules": some(random, guarded...)}}})
}

// removable are the definitions that are removed: the objects of all others are made once, before a run.
var removable = map[string]bool{
	"workloads.kueue.x-k8s.io": true, "podgroups.scheduling.volcano.sh": true, "jobs.batch.volcano.sh": true, "cronjobs.batch.volcano.sh": true,
	"commands.bus.volcano.sh": true, "jobflows.flow.volcano.sh": true, "jobtemplates.flow.volcano.sh": true,
}

// removeDefinition deletes a definition, with it all its objects, and creates it again after a while.
func removeDefinition(d *driver, random *rand.Rand) bool {
	definition, ok := pick(random, d.definitions)
	for !removable[nameOf(definition)] {
		definition, ok = pick(random, d.definitions)
	}
	s := &d.disturbances
	if !ok || s.definition != nil {
		return false
	}
	s.definition, s.definitionAt = definition, d.step+20+random.IntN(200)
	return d.delete("admin", definitions+"/"+nameOf(definition), nil)
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

// restore creates the definition again, once finalizers of its objects do not hold it any more.
func (s *disturbances) restore() {
	if !s.driver.create("admin", definitions, s.definition) {
		s.definitionAt = s.driver.step + 20
		return
	}
	s.definition = nil
	s.driver.count("definitions created again")
	s.driver.api.Lock()
	defer s.driver.api.Unlock()
	s.driver.observer.openAgain()
}
