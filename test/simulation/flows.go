package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	jobFlows     = "/apis/flow.volcano.sh/v1alpha1/jobflows"
	jobTemplates = "/apis/flow.volcano.sh/v1alpha1/jobtemplates"
	cronJobs     = "/apis/batch.volcano.sh/v1alpha1/cronjobs"
)

// submitJobFlow submits a JobFlow of two or three Jobs, of which later ones wait for some before them.
func submitJobFlow(d *driver, random *rand.Rand) bool {
	namespace, name := d.someNamespace(random), d.name("flow")
	var flows []any
	var before []any
	for i := range 2 + random.IntN(2) {
		template := fmt.Sprintf("%s-%d", name, i)
		if !d.create("user", pathOf(jobTemplates, namespace, ""), map[string]any{"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate",
			"metadata": map[string]any{"name": template, "namespace": namespace}, "spec": volcanoJobSpec(random)}) {
			return false
		}
		flow := map[string]any{"name": template}
		if len(before) > 0 && random.IntN(4) > 0 {
			flow["dependsOn"] = map[string]any{"targets": slices.Clone(before[random.IntN(len(before)):])}
		}
		flows, before = append(flows, flow), append(before, template)
	}
	return d.create("user", pathOf(jobFlows, namespace, ""), map[string]any{"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"jobRetainPolicy": some(random, "retain", "delete"), "flows": flows}})
}

// submitCronJob submits a CronJob of Volcano Jobs, one each minute or two.
func submitCronJob(d *driver, random *rand.Rand) bool {
	if len(d.observer.all(cronJobs)) > 2 {
		return false
	}
	namespace, spec := d.someNamespace(random), volcanoJobSpec(random)
	delete(spec, "ttlSecondsAfterFinished")
	return d.create("user", pathOf(cronJobs, namespace, ""), map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob",
		"metadata": map[string]any{"name": d.name("cron"), "namespace": namespace},
		"spec": map[string]any{"schedule": some(random, "* * * * *", "*/2 * * * *"), "concurrencyPolicy": some(random, "Allow", "Forbid", "Replace"),
			"startingDeadlineSeconds": 10 + random.IntN(60), "successfulJobsHistoryLimit": random.IntN(3), "failedJobsHistoryLimit": random.IntN(2),
			"jobTemplate": map[string]any{"spec": spec}}})
}

// changeCronJob suspends a CronJob, lets it go on, or deletes it.
func changeCronJob(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, cronJobs)
	if !ok {
		return false
	}
	if random.IntN(3) == 0 {
		return d.delete("user", o.path(), map[string]any{"propagationPolicy": some(random, "Background", "Foreground", "Orphan")})
	}
	return d.suspend(o, random.IntN(2) == 0)
}

func (d *driver) suspend(o *object, suspend bool) bool {
	return d.merge("user", o.path(), map[string]any{"spec": map[string]any{"suspend": suspend}})
}

// deleteJobFlow deletes a JobFlow, and its Jobs unless they are left behind.
func deleteJobFlow(d *driver, random *rand.Rand) bool {
	o, ok := d.someObject(random, jobFlows)
	return ok && d.delete("user", o.path(), map[string]any{"propagationPolicy": some(random, "Background", "Foreground", "Orphan")})
}

// flowsAtRest looks at what starts Volcano Jobs when all of these have ended.
func (r *rules) flowsAtRest() {
	for _, o := range r.driver.observer.all(jobFlows) {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "state", "phase"); phase != "Succeed" && phase != "Failed" && !r.isHeldByUser(o) && !r.lacksTemplate(o) {
			r.violate("JobFlow %s/%s does not end: %s", o.GetNamespace(), o.GetName(), text(o, "status"))
		}
	}
	for _, o := range r.driver.observer.all(cronJobs) {
		if active, _, _ := unstructured.NestedSlice(o.Object, "status", "active"); len(active) > 0 && !r.isHeldByUser(o) {
			r.violate("CronJob %s/%s names Jobs that have ended: %s", o.GetNamespace(), o.GetName(), text(o, "status"))
		}
	}
}

// lacksTemplate reports whether a JobFlow names a JobTemplate that is gone, with the definition of its kind: it waits
// until there is one again.
func (r *rules) lacksTemplate(o *object) bool {
	flows, _, _ := unstructured.NestedSlice(o.Object, "spec", "flows")
	return slices.ContainsFunc(flows, func(flow any) bool {
		return r.driver.observer.get(jobTemplates, o.GetNamespace(), flow.(map[string]any)["name"].(string)) == nil
	})
}

// isHeldByUser reports whether a Job of an object is aborted: it goes on when its user wants it to.
func (r *rules) isHeldByUser(o *object) bool {
	return slices.ContainsFunc(r.driver.observer.all(volcanoJobs), func(job *object) bool {
		phase, _, _ := unstructured.NestedString(job.Object, "status", "state", "phase")
		ref := owner(job)
		return phase == "Aborted" && ref != nil && ref.UID == o.GetUID()
	})
}
