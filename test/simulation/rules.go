package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/resource"
)

// rules are what may never be. They look at the state of the API server alone.
type rules struct {
	driver *driver
	// changed is when a node changed what it offers: a scheduler may not have seen that yet.
	changed   map[string]time.Time
	overQuota time.Time // since when more runs under quota than there is; zero if that is not so
	isDirty   bool      // a pod has changed since what runs was counted
	writes    []string  // the last ones that are not part of elections
	lastWrite time.Time
	lastEnd   time.Time      // of a pod that has succeeded
	evictions map[string]int // by the owner of the pod
}

// Tolerances.
const (
	// unseen is how long a scheduler may not have seen a change of a node.
	unseen = time.Minute
	// overQuotaFor is how long more may run than quotas allow: a user resumes a job, or an operator cuts a quota.
	overQuotaFor = 5 * time.Minute
	// restTime is how long nothing is written at rest.
	restTime = 10 * time.Minute
	// mostEvictions is how often pods of one owner may be evicted in a run.
	mostEvictions = 100
)

func (r *rules) violate(format string, arguments ...any) {
	d := r.driver
	v := fmt.Sprintf("step %d: ", d.step) + fmt.Sprintf(format, arguments...)
	d.note("VIOLATION %s", v)
	d.result.Violations = append(d.result.Violations, v)
}

// wrote takes in a write of a program.
func (r *rules) wrote(c *call) {
	r.lastWrite = time.Now()
	r.writes = append(r.writes, c.key+" "+clip(string(c.body)))
	if len(r.writes) > 12 {
		r.writes = r.writes[1:]
	}
	if p := placeOf(c.request.URL.Path); p.Subresource == "eviction" {
		if o := r.driver.observer.get(pods, p.Namespace, p.Name); o != nil {
			of := o.id()
			if ref := owner(o); ref != nil {
				of = ref.Kind + " " + p.Namespace + "/" + ref.Name
			}
			r.evictions[of]++
			if r.evictions[of] == mostEvictions {
				r.violate("evictions repeat: %d of pods of %s", mostEvictions, of)
			}
		}
	}
}

func clip(text string) string { return text[:min(len(text), 500)] }

// place is what a path of the API names.
type place struct{ Group, Resource, Subresource, Namespace, Name string }

func placeOf(path string) (p place) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.Group, parts = parts[1], parts[3:]
	default:
		return p
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		p.Namespace, parts = parts[1], parts[2:]
	}
	for i, to := range []*string{&p.Resource, &p.Name, &p.Subresource} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	return p
}

// seen looks at a change.
func (r *rules) seen(before, now *object) {
	switch {
	case now == nil && before.node != nil:
		r.changed[before.GetName()] = time.Now()
	case now != nil && now.node != nil:
		if before != nil && !sameOffer(before.node, now.node) {
			r.changed[now.GetName()] = time.Now()
		}
	case now != nil && now.pod != nil:
		r.pod(before, now)
		if before != nil && before.pod.Status.Phase != corev1.PodSucceeded && now.pod.Status.Phase == corev1.PodSucceeded {
			r.lastEnd = time.Now()
		}
	}
	if (now != nil && now.pod != nil) || (now == nil && before.pod != nil) {
		r.isDirty = true
	}
}

// check looks at what runs under quota, once after a step in which pods have changed.
func (r *rules) check() {
	if r.isDirty {
		r.isDirty = false
		r.quota()
	}
}

func sameOffer(a, b *corev1.Node) bool {
	if a.Spec.Unschedulable != b.Spec.Unschedulable || len(a.Status.Allocatable) != len(b.Status.Allocatable) {
		return false
	}
	for name, amount := range a.Status.Allocatable {
		other := b.Status.Allocatable[name]
		if amount.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// pod looks at a pod that has got a node.
func (r *rules) pod(before, now *object) {
	was := ""
	if before != nil && before.GetUID() == now.GetUID() {
		was = before.pod.Spec.NodeName
	}
	node := now.pod.Spec.NodeName
	if was == node {
		return
	}
	if was != "" {
		r.violate("double bind: pod %s was on %s and is on %s", now.id(), was, node)
		return
	}
	r.driver.result.Binds++
	if len(now.pod.Spec.SchedulingGates) > 0 {
		r.violate("pod %s is bound with gates", now.id())
	}
	if r.driver.isLate || time.Since(r.changed[node]) < unseen {
		return // no scheduler could have known
	}
	o := r.driver.observer.get(nodes, "", node)
	if o == nil {
		r.violate("pod %s is bound to node %s, which is not there", now.id(), node)
		return
	}
	if o.node.Spec.Unschedulable {
		r.violate("pod %s is bound to node %s, which is cordoned", now.id(), node)
	}
	r.node(o.node)
}

// node looks whether more is bound to a node than it offers.
func (r *rules) node(node *corev1.Node) {
	total, count := corev1.ResourceList{}, int64(0)
	for _, o := range r.driver.observer.all(pods) {
		if o.pod.Spec.NodeName == node.Name && isRunning(o.pod) {
			add(total, resource.PodRequests(o.pod, resource.PodResourcesOptions{}))
			count++
		}
	}
	for name, amount := range total {
		if offer := node.Status.Allocatable[name]; amount.Cmp(offer) > 0 {
			r.violate("over-commit: node %s offers %s %s, and its pods request %s", node.Name, offer.String(), name, amount.String())
		}
	}
	if offer := node.Status.Allocatable[corev1.ResourcePods]; count > offer.Value() {
		r.violate("over-commit: node %s offers %s pods, and has %d", node.Name, offer.String(), count)
	}
}

func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name]
		sum.Add(amount)
		to[name] = sum
	}
}

const queueLabel = "kueue.x-k8s.io/queue-name"

// allQuotas is what the quotas of CPUs are together, in thousandths. A sum is a limit for what runs only if each queue
// may use all of it: all ClusterQueues must be of one cohort.
func (d *driver) allQuotas() (sum int64) {
	cohort := ""
	for i, o := range d.observer.all(clusterQueues) {
		of := text(o, "spec", "cohortName")
		must(i == 0 || of == cohort, "ClusterQueues are of several cohorts, and the rules add up their quotas")
		cohort = of
		sum += nominal(o)
	}
	return sum
}

// quota counts what runs under quota from the pods. What ran before the quotas were cut may run on, so they are what
// they were when the last Workload was admitted of those whose pods run, or what they are now if that is more.
func (r *rules) quota() {
	d := r.driver
	used, last := corev1.ResourceList{}, admission{}
	for _, o := range d.observer.all(pods) {
		if !isRunning(o.pod) || o.pod.Spec.NodeName == "" || !d.isQueued(o) {
			continue
		}
		add(used, resource.PodRequests(o.pod, resource.PodResourcesOptions{}))
		if a := d.quotas.admissionOf(o); a.at.After(last.at) {
			last = a
		}
	}
	allowed := max(d.allQuotas(), last.allowed)
	cpu := used[corev1.ResourceCPU]
	switch {
	case cpu.MilliValue() <= allowed:
		r.overQuota = time.Time{}
	case r.overQuota.IsZero():
		r.overQuota = time.Now()
	case time.Since(r.overQuota) > overQuotaFor && d.isServed():
		r.violate("quota: pods that request %s CPUs run, and the quotas are %dm together, since %s", cpu.String(), allowed, time.Since(r.overQuota))
	}
}

// isServed reports whether nothing keeps the programs from working.
func (d *driver) isServed() bool {
	for _, p := range d.programs {
		if p.now == nil || p.now.isHeld() {
			return false
		}
	}
	return !time.Now().Before(d.outageTo) && !d.disturbances.isAny()
}

// isQueued reports whether a pod runs under quota: it, or the Job that made it, has a LocalQueue.
func (d *driver) isQueued(o *object) bool {
	if o.GetLabels()[queueLabel] != "" {
		return true
	}
	if ref := owner(o); ref != nil && ref.Kind == "Job" && ref.APIVersion == "batch/v1" {
		if job := d.observer.get(jobs, o.GetNamespace(), ref.Name); job != nil && job.GetUID() == ref.UID {
			return job.GetLabels()[queueLabel] != "" && !isChild(job)
		}
	}
	return false
}

// nominal is the quota of CPUs of a ClusterQueue, in thousandths.
func nominal(o *object) int64 {
	var sum int64
	groups, _, _ := unstructured.NestedSlice(o.Object, "spec", "resourceGroups")
	for _, g := range groups {
		flavors, _, _ := unstructured.NestedSlice(g.(map[string]any), "flavors")
		for _, f := range flavors {
			resources, _, _ := unstructured.NestedSlice(f.(map[string]any), "resources")
			for _, entry := range resources {
				sum += milli(entry.(map[string]any)["nominalQuota"])
			}
		}
	}
	return sum
}

// atRest looks at what must have come once faults are over and time has passed.
func (r *rules) atRest() {
	d := r.driver
	for _, o := range d.observer.all(jobs) {
		if !hasCondition(o, "Complete") && !hasCondition(o, "Failed") {
			r.violate("Job %s/%s does not end: %s", o.GetNamespace(), o.GetName(), text(o, "status"))
		}
	}
	for _, o := range d.observer.all(volcanoJobs) {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "state", "phase")
		if !slices.Contains([]string{"Completed", "Failed", "Terminated", "Aborted"}, phase) {
			r.violate("Volcano Job %s/%s does not end: %s", o.GetNamespace(), o.GetName(), text(o, "status"))
		}
	}
	for _, o := range d.observer.all(pods) {
		if isRunning(o.pod) {
			r.violate("pod %s/%s does not end: phase %s, node %q, gates %v, conditions %s", o.GetNamespace(), o.GetName(), o.pod.Status.Phase, o.pod.Spec.NodeName,
				o.pod.Spec.SchedulingGates, text(o, "status", "conditions"))
		}
	}
	r.countsAtRest()
	for _, collection := range observed {
		for _, o := range d.observer.all(collection) {
			if o.GetDeletionTimestamp() != nil {
				r.violate("%s was deleted at %s and is there, with finalizers %v", o.id(), o.GetDeletionTimestamp().Format(time.TimeOnly), o.GetFinalizers())
			}
		}
	}
	if d.disturbances.isAny() {
		r.violate("definition %s cannot be created again", nameOf(d.disturbances.definition))
		return
	}
	r.flowsAtRest()
	for _, name := range d.projects() {
		r.violate("namespace %s is there", name)
	}
	for _, o := range d.observer.all(resourceClaims) {
		if len(devicesOf(o)) > 0 {
			r.violate("%s holds devices, and nothing runs: %s", o.id(), text(o, "status"))
		}
	}
	for _, o := range d.observer.all(clusterQueues) {
		for _, field := range []string{"flavorsUsage", "flavorsReservation"} {
			usage, _, _ := unstructured.NestedSlice(o.Object, "status", field)
			for _, f := range usage {
				resources, _, _ := unstructured.NestedSlice(f.(map[string]any), "resources")
				for _, entry := range resources {
					if milli(entry.(map[string]any)["total"]) != 0 {
						r.violate("ClusterQueue %s holds quota, and nothing runs: %s", o.GetName(), text(o, "status"))
					}
				}
			}
		}
	}
}

// countsAtRest looks at what says of pods that they run, or have to be counted, when all have ended.
func (r *rules) countsAtRest() {
	d := r.driver
	for _, o := range d.observer.all(pods) {
		if !isRunning(o.pod) && slices.Contains(o.GetFinalizers(), managedFinalizer) {
			r.violate("pod %s/%s has ended and keeps its finalizer %s", o.GetNamespace(), o.GetName(), managedFinalizer)
		}
	}
	for _, o := range d.observer.all(podGroups) {
		running, _, _ := unstructured.NestedInt64(o.Object, "status", "running")
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); running > 0 || phase == "Running" {
			r.violate("PodGroup %s/%s says that pods run, and none does: %s", o.GetNamespace(), o.GetName(), text(o, "status"))
		}
	}
	for _, o := range d.observer.all(volcanoJobs) {
		for _, field := range []string{"running", "pending", "terminating"} {
			if n, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", field); n != nil && fmt.Sprint(n) != "0" {
				r.violate("Volcano Job %s/%s says that it has pods that are %s, and none is: %s", o.GetNamespace(), o.GetName(), field, text(o, "status"))
			}
		}
	}
}

// managedFinalizer is what keeps a queued pod until it has been counted.
const managedFinalizer = "kueue.x-k8s.io/managed"
