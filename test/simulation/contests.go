package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// contests are what users and an administrator do about quota at the worst moment: a Job of a higher priority asks for
// what a Job holds that stops slowly, and the quotas are cut while that one leaves.
type contests struct {
	driver *driver
	rivals map[string]submission // by the id of the Job that must run first
	cuts   int                   // how many preemptions are waited for
	isDue  bool
}

// seen takes in a change.
func (c *contests) seen(before, now *object) {
	if now == nil {
		delete(c.rivals, before.id())
		return
	}
	if now.collection == workloads && c.cuts > 0 && isPreempted(now) && before != nil && !isPreempted(before) {
		c.isDue = true
	}
}

// isPreempted reports whether a Workload is to leave for another one.
func isPreempted(o *object) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m := c.(map[string]any)
		return m["type"] == "Evicted" && m["status"] == "True" && m["reason"] == "Preempted"
	})
}

func (c *contests) options() []option {
	var all []option
	if c.isDue && c.cuts > 0 {
		all = append(all, option{8, "cut the quotas", c.cut})
	}
	for _, id := range sortedKeys(c.rivals) {
		o := c.driver.observer.objects[id]
		if active, _, _ := unstructured.NestedFieldNoCopy(fieldsOf(o), "status", "ready"); active == nil || fmt.Sprint(active) == "0" {
			continue
		}
		all = append(all, option{4, "submit the rival of " + id, func() { c.submit(id) }})
	}
	return all
}

// submit submits the Job of the higher priority, and lets the quotas be cut when it preempts.
func (c *contests) submit(id string) {
	s := c.rivals[id]
	delete(c.rivals, id)
	if c.driver.create("user", s.path, s.object) {
		c.cuts++
	}
}

func (c *contests) cut() {
	c.cuts, c.isDue = c.cuts-1, false
	for _, tenant := range tenants {
		must(c.driver.setQuota("cq-"+tenant, 1), "quota")
	}
	c.driver.count("quotas cut at a preemption")
}

// end lets what is waited for not happen any more.
func (c *contests) end() { c.cuts, c.isDue, c.rivals = 0, false, map[string]submission{} }

// cutAtPreemption has an administrator cut the quotas when the next Workload is preempted: a plan waits for its pods
// then.
func cutAtPreemption(d *driver, _ *rand.Rand) bool {
	d.contests.cuts++
	return true
}

// contested is how many CPUs a Job holds that is to be preempted: after a cut there is less for all together.
const contested = 3

// contestQuota gives one tenant nearly all quota, and submits a Job that takes it and stops slowly. When its pods run,
// a Job of a higher priority asks for as much.
func contestQuota(d *driver, random *rand.Rand) bool {
	tenant := some(random, tenants...)
	for _, other := range tenants {
		nominal := 1
		if other == tenant {
			nominal = contested
		}
		if !d.setQuota("cq-"+other, nominal) {
			return false
		}
	}
	holder := d.contestant(tenant, "low", map[string]any{runFor: "300s", isSlow: "true"})
	if !d.create("user", holder.path, holder.object) {
		return false
	}
	d.look()
	name := holder.object["metadata"].(map[string]any)["name"].(string)
	d.contests.rivals[d.observer.get(jobs, tenant, name).id()] = d.contestant(tenant, "high", map[string]any{runFor: "20s"})
	return true
}

// contestant is a queued Job of a class, of pods of one CPU.
func (d *driver) contestant(tenant, class string, annotations map[string]any) submission {
	pod := map[string]any{
		"schedulerName": "volcano", "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "priorityClassName": class,
		"containers": []any{map[string]any{"name": "main", "image": "busybox", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
	}
	return submission{pathOf(jobs, tenant, ""), map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": d.name("contest"), "namespace": tenant, "labels": map[string]any{queueLabel: "lq"}},
		"spec": map[string]any{"suspend": true, "parallelism": contested, "completions": contested,
			"template": map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": pod}},
	}}
}
