package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// refill submits a gang that needs all CPUs of all nodes, and a Job that needs all quota, and lets them run. It is
// called when all else has ended, so each of them must end: if it does not, a program still counts what is gone.
func (d *driver) refill() {
	byCPUs := map[int64]int{}
	for _, o := range d.observer.all(nodes) {
		byCPUs[o.node.Status.Allocatable.Name(corev1.ResourceCPU, "").Value()]++
	}
	var tasks []any
	pods := 0
	for i, cpus := range slices.Sorted(maps.Keys(byCPUs)) {
		tasks = append(tasks, map[string]any{"name": fmt.Sprintf("t%d", i), "replicas": byCPUs[cpus], "template": shortPod(fmt.Sprint(cpus))})
		pods += byCPUs[cpus]
	}
	must(d.create("user", pathOf(volcanoJobs, tenants[0], ""), map[string]any{
		"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": map[string]any{"name": "all-nodes", "namespace": tenants[0]},
		"spec": map[string]any{"schedulerName": "volcano", "queue": "default", "minAvailable": pods, "tasks": tasks},
	}), "a gang for all nodes")
	const parts = 4
	must(d.create("user", pathOf(jobs, tenants[0], ""), map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "all-quota", "namespace": tenants[0], "labels": map[string]any{queueLabel: "lq"}},
		"spec": map[string]any{"suspend": true, "parallelism": parts, "completions": parts, "template": shortPod(fmt.Sprintf("%dm", d.allQuotas()/parts))},
	}), "a Job for all quota")
	d.look()
	for begin := time.Now(); !d.isBroken(); d.step++ {
		d.goOn()
		gang, job := d.observer.get(volcanoJobs, tenants[0], "all-nodes"), d.observer.get(jobs, tenants[0], "all-quota")
		switch phase := text(gang, "status", "state", "phase"); {
		case phase == `"Completed"` && hasCondition(job, "Complete"):
			return
		case time.Since(begin) > refillTime:
			d.rules.violate("all else has ended, and %s after it was submitted not all that needs all CPUs and all quota has: the gang is %s, the Job %s",
				refillTime, text(gang, "status"), text(job, "status"))
		}
	}
}

// refillTime is how long that may take: a job that was refused several times in a row waits for some minutes.
const refillTime = 15 * time.Minute

// shortPod is a template of pods that request some CPUs and end soon.
func shortPod(cpus string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{runFor: "5s"}}, "spec": map[string]any{
		"schedulerName": "volcano", "restartPolicy": "Never",
		"containers": []any{map[string]any{"name": "main", "image": "busybox", "resources": map[string]any{"requests": map[string]any{"cpu": cpus}}}},
	}}
}
