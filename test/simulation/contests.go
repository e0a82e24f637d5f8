package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// contests are what users and an administrator do at the worst moment. About quota: a Job of a higher priority asks for
// what a Job holds that stops slowly, and the quotas may be cut while that one leaves. Or one of the same priority asks
// for it, and while it waits, its user resumes it, or the user of the other one deletes that without its pods. About
// nodes: a gang of a higher priority asks for a part of what another holds. About the lead: a pod comes just when
// another scheduler begins to lead, and the one before goes on.
type contests struct {
	driver *driver
	rivals map[string]rival // by the id of the Job that must run first
	cuts   int              // how many preemptions are waited for
	isDue  bool
	trials []trial

	isTakenOver bool // another scheduler leads, and the one that led before runs
}

// rival is a Job that is submitted when another one runs, and what its user does then, or the user of the other.
type rival struct {
	submission
	cutsQuota bool // the quotas are cut when it preempts
	attempt
}

// attempt is what happens once: when pods of one Job run, and the other one waits. The zero value is nothing.
type attempt struct {
	try          func(d *driver, holder, rival *object) bool // false if it could not happen yet
	needsSuccess bool                                        // it happens when a pod of the first one has succeeded
}

// trial is an attempt with two Jobs.
type trial struct {
	holder, rival string // their ids
	attempt
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
	if c.isTakenOver {
		all = append(all, option{8, "submit a pod to two schedulers", c.submitToBoth})
	}
	for _, id := range sortedKeys(c.rivals) {
		o := c.driver.observer.objects[id]
		if !hasPodsThatRun(o) {
			continue
		}
		all = append(all, option{4, "submit the rival of " + id, func() { c.submit(id) }})
	}
	for i, t := range c.trials {
		holder, rival := c.driver.observer.objects[t.holder], c.driver.observer.objects[t.rival]
		if holder != nil && rival != nil && hasPodsThatRun(holder) && c.waits(rival) && (!t.needsSuccess || hasSuccess(holder)) {
			all = append(all, option{4, "try what " + t.rival + " waits for", func() {
				if t.try(c.driver, holder, rival) {
					c.trials = slices.Delete(c.trials, i, i+1)
				}
			}})
		}
	}
	return all
}

// waits reports whether the Workload of a Job says that it waits for quota.
func (c *contests) waits(job *object) bool {
	suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	return suspended && slices.ContainsFunc(c.driver.observer.all(workloads), func(o *object) bool {
		ref := owner(o)
		return ref != nil && ref.UID == job.GetUID() && !hasCondition(o, "QuotaReserved") && !changedAt(o, "QuotaReserved").IsZero()
	})
}

// resumeRival resumes the Job that waits. When it has been stopped and waits again, the other one may be deleted.
func resumeRival(d *driver, holder, rival *object) bool {
	d.contests.trials = append(d.contests.trials, trial{holder.id(), rival.id(), attempt{try: leaveHolderBehind}})
	d.count("Job that waits for quota resumed")
	return d.merge("user", rival.path(), map[string]any{"spec": map[string]any{"suspend": false}})
}

// leaveHolderBehind deletes the Job that holds the quota, and not its pods.
func leaveHolderBehind(d *driver, holder, _ *object) bool {
	d.count("pods with contested quota left behind")
	return d.delete("user", holder.path(), map[string]any{"propagationPolicy": "Orphan"})
}

// failPodOfHolder has a pod fail of the Job that holds the quota.
func failPodOfHolder(d *driver, holder, _ *object) bool {
	if !d.failPod(func(o *object) bool {
		ref := owner(o)
		return ref != nil && ref.UID == holder.GetUID()
	}, nil) {
		return false
	}
	d.count("pod with contested quota failed")
	return true
}

func hasSuccess(job *object) bool {
	n, _, _ := unstructured.NestedFieldNoCopy(job.Object, "status", "succeeded")
	return n != nil && fmt.Sprint(n) != "0"
}

// hasPodsThatRun reports whether a Job, or a Volcano Job, says that pods of it run.
func hasPodsThatRun(o *object) bool {
	for _, field := range []string{"ready", "running"} {
		if n, _, _ := unstructured.NestedFieldNoCopy(fieldsOf(o), "status", field); n != nil && fmt.Sprint(n) != "0" {
			return true
		}
	}
	return false
}

// submit submits a rival.
func (c *contests) submit(id string) {
	r := c.rivals[id]
	delete(c.rivals, id)
	if !c.driver.create("user", r.path, r.object) {
		return
	}
	if r.cutsQuota {
		c.cuts++
	}
	if r.try != nil {
		c.trials = append(c.trials, trial{id, jobs + " " + r.namespace() + "/" + r.name(), r.attempt})
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
func (c *contests) end() {
	c.cuts, c.isDue, c.isTakenOver, c.rivals, c.trials = 0, false, false, map[string]rival{}, nil
}

// tookOver notes that another scheduler leads than before. Which it was matters only if it runs, and what it sends is
// served: it may believe that it leads.
func (c *contests) tookOver(before *incarnation) {
	c.isTakenOver = !before.isDead && !before.isHeld()
}

func (c *contests) submitToBoth() {
	c.isTakenOver = false
	if submitPod(c.driver, c.driver.random) {
		c.driver.count("pod submitted when the lead had changed")
	}
}

// cutAtPreemption has an administrator cut the quotas when the next Workload is preempted: a plan waits for its pods
// then.
func cutAtPreemption(d *driver, _ *rand.Rand) bool {
	d.contests.cuts++
	return true
}

// contested is how many CPUs a Job holds that is to be preempted: after a cut there is less for all together.
const contested = 3

// contestQuota gives one tenant nearly all quota, and submits a Job that takes it and stops slowly. When its pods run,
// another Job asks for as much.
func contestQuota(d *driver, random *rand.Rand) bool {
	against, class, length, waves := rival{}, "low", "300s", 1
	switch random.IntN(6) {
	case 0, 1:
		class = "high" // and the first one holds its quota until its last pod is gone
	case 2, 3:
		against.try = resumeRival
	case 4:
		against.try = leaveHolderBehind
	case 5: // its pods have successors, so that it needs its quota for several times their length
		length, waves, against.attempt = "40s", 4, attempt{failPodOfHolder, true}
	}
	return d.contestQuota(some(random, tenants...), against, class, length, waves)
}

// cutContested has the quotas cut while the first Job leaves.
func cutContested(d *driver, random *rand.Rand) bool {
	return d.contestQuota(some(random, tenants...), rival{cutsQuota: true}, "high", "300s", 1)
}

func (d *driver) contestQuota(tenant string, against rival, class, length string, waves int) bool {
	for _, other := range tenants {
		nominal := 1
		if other == tenant {
			nominal = contested
		}
		if !d.setQuota("cq-"+other, nominal) {
			return false
		}
	}
	if len(d.observer.all(nodes)) < mostNodes { // so that it is the quota that both cannot have
		d.addNode(d.name("node"), 8)
	}
	holder := d.contestant(tenant, "low", waves, map[string]any{runFor: length, isSlow: "true"})
	if !d.create("user", holder.path, holder.object) {
		return false
	}
	d.look()
	against.submission = d.contestant(tenant, class, 1, map[string]any{runFor: "60s"})
	d.contests.rivals[d.observer.get(jobs, tenant, holder.name()).id()] = against
	return true
}

// contestant is a queued Job of a class, of pods of one CPU, each of which has so many successors.
func (d *driver) contestant(tenant, class string, waves int, annotations map[string]any) submission {
	pod := map[string]any{
		"schedulerName": "volcano", "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "priorityClassName": class,
		"containers": []any{map[string]any{"name": "main", "image": "busybox", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
	}
	return submission{pathOf(jobs, tenant, ""), map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": d.name("contest"), "namespace": tenant, "labels": map[string]any{queueLabel: "lq"}},
		"spec": map[string]any{"suspend": true, "parallelism": contested, "completions": contested * waves,
			"template": map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": pod}},
	}}
}

// contestNodes submits a gang that takes all CPUs there are, as far as they are free. When pods of it run, a gang of a
// higher priority in the same queue asks for a fifth of them: that is less than the plugin overcommit lets in when no
// CPU is free, and so pods of the first are evicted.
func contestNodes(d *driver, random *rand.Rand) bool {
	var cpus int64
	for _, o := range d.observer.all(nodes) {
		if !o.node.Spec.Unschedulable {
			cpus += o.node.Status.Allocatable.Name(corev1.ResourceCPU, "").Value()
		}
	}
	fifth := int(cpus / 5)
	if fifth == 0 {
		return false
	}
	namespace, queue := some(random, tenants...), some(random, "q1", "q2")
	annotations := map[string]any{runFor: "300s", "volcano.sh/preemptable": "true"}
	if random.IntN(2) == 0 {
		annotations[isSlow] = "true"
	}
	// A gang that needs few of its pods loses some of them, and one that needs all loses all.
	holder := d.gangOf(namespace, queue, "low", int(cpus), some(random, 1, max(int(cpus)-fifth, 1), int(cpus)), annotations)
	if !d.create("user", holder.path, holder.object) {
		return false
	}
	d.look()
	d.contests.rivals[d.observer.get(volcanoJobs, namespace, holder.name()).id()] =
		rival{submission: d.gangOf(namespace, queue, "high", fifth, 1+random.IntN(fifth), map[string]any{runFor: "20s"})}
	return true
}

// gangOf is a Volcano Job of a class, of pods of one CPU.
func (d *driver) gangOf(namespace, queue, class string, pods, minimum int, annotations map[string]any) submission {
	pod := map[string]any{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "priorityClassName": class,
		"containers": []any{map[string]any{"name": "main", "image": "busybox", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
	}
	return submission{pathOf(volcanoJobs, namespace, ""), map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
		"metadata": map[string]any{"name": d.name("gang"), "namespace": namespace},
		"spec": map[string]any{"schedulerName": "volcano", "queue": queue, "minAvailable": minimum, "maxRetry": 2, "priorityClassName": class,
			"policies": []any{map[string]any{"event": "PodEvicted", "action": "RestartTask"}},
			"tasks":    []any{map[string]any{"name": "t", "replicas": pods, "template": map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": pod}}}},
	}}
}
