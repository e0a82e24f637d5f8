package ask

import (
	"strings"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/verdict"
)

// Commands that show more or mend a cause, by its code. NAMESPACE, JOB, QUEUE, POD, NODE and HEKLA are replaced.
var next = map[string]string{
	"QueueNotFound":              "HEKLA queue create QUEUE",
	"QueueInvalid":               "HEKLA why queue QUEUE",
	"QueueNotLeaf":               "HEKLA why queue QUEUE, and submit the job to one of the queues below it",
	"QueueClosed":                "HEKLA queue operate QUEUE -a open",
	"NotEnoughTasks":             "kubectl -n NAMESPACE describe vcjob JOB",
	"NotEnoughPodsOfTask":        "kubectl -n NAMESPACE describe vcjob JOB",
	"FailedCreate":               "kubectl -n NAMESPACE describe resourcequota",
	"InvalidSpec":                "kubectl -n NAMESPACE edit vcjob JOB",
	"SchedulingGated":            "kubectl -n NAMESPACE get pods -o custom-columns=NAME:.metadata.name,GATES:.spec.schedulingGates[*].name",
	"ResourceReservationTimeout": "kubectl -n NAMESPACE get events --sort-by=.lastTimestamp",
	"TooLargeForQueue":           "HEKLA why queue QUEUE",
	"TooLargeForCluster":         "kubectl get nodes -o custom-columns=NAME:.metadata.name,CPU:.status.allocatable.cpu,MEMORY:.status.allocatable.memory",
	"TooManyApplications":        "HEKLA why queue QUEUE",
	"OverCapability":             "HEKLA why queue QUEUE",
	"OverCluster":                "HEKLA why queue QUEUE",
	"OverShare":                  "HEKLA why queue QUEUE",
	"OverCommitted":              "HEKLA why queue QUEUE",
	"HeldUp":                     "HEKLA why job AHEAD",
	"Preempting":                 "HEKLA why job JOB -n NAMESPACE -w",
	"Delayed":                    "HEKLA why job JOB -n NAMESPACE -w",
	"NotGuaranteed":              "HEKLA why queue QUEUE",
	"NotEnoughResources":         "HEKLA why node NODE",
	"GangShort":                  "HEKLA why node NODE",
	"PromisedToOthers":           "HEKLA why job AHEAD",
	"VictimsOptedOut":            "mark the pods that may leave: kubectl -n NAMESPACE annotate pod POD-THAT-MAY-LEAVE volcano.sh/preemptable=true",
	"BudgetSpent":                "kubectl get poddisruptionbudgets -A",
	"TooLargeForAnyNode":         "kubectl get nodes -o custom-columns=NAME:.metadata.name,CPU:.status.allocatable.cpu,MEMORY:.status.allocatable.memory",
	"NodeTaints":                 "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",
	"NodeMismatch":               "kubectl get nodes --show-labels",
	"PodAffinity":                "kubectl -n NAMESPACE get pod POD -o jsonpath={.spec.affinity}",
	"VolumeUnavailable":          "kubectl -n NAMESPACE get persistentvolumeclaims",
	"DeviceUnavailable":          "kubectl -n NAMESPACE get resourceclaims",
	"BackingOff":                 "kubectl -n NAMESPACE get events --sort-by=.lastTimestamp",
	"PodsMissing":                "kubectl -n NAMESPACE describe vcjob JOB",
	"Quarantined":                "kubectl -n volcano-system logs deployment/volcano-scheduler",
	"ForeignScheduler":           "kubectl -n NAMESPACE get podgroups -o yaml",
	"WaitsForWorkload":           "kubectl -n NAMESPACE get events --field-selector involvedObject.name=JOB",
}

// classes list the classes of a kind.
var classes = map[string]string{
	v1beta2.WorkloadPriorityClassKind: "kubectl get workloadpriorityclasses.kueue.x-k8s.io",
	v1beta2.PodPriorityClassKind:      "kubectl get priorityclasses",
}

// next returns the command that shows more about a cause, or mends it.
func (p *printer) next(c *explain.Cause, queue string) string {
	command, ok := next[c.Code]
	if !ok {
		command = "HEKLA job view JOB -n NAMESPACE"
	}
	if kind, _, _ := strings.Cut(c.Where, " "); c.Code == lifecycle.ReasonWaitsForWorkload && classes[kind] != "" {
		command = classes[kind]
	}
	node := ""
	for _, r := range c.Nodes {
		if node == "" || r.Kind == string(verdict.NodeRoom) {
			node = r.Example
		}
		if r.Kind == string(verdict.NodeRoom) {
			break
		}
	}
	ahead := c.Where
	if c.Code == string(verdict.PromisedToOthers) && len(c.Promised) > 0 {
		ahead = c.Promised[0].Job
	}
	if namespace, job, ok := strings.Cut(ahead, "/"); ok {
		ahead = job + " -n " + namespace
	}
	if command == next["NotEnoughResources"] && node == "" || strings.Contains(command, "AHEAD") && !strings.Contains(ahead, " -n ") {
		command = "HEKLA why queue QUEUE"
	}
	_, pod, _ := strings.Cut(c.Pod, "/")
	return strings.NewReplacer("HEKLA", p.program, "NAMESPACE", p.namespace, "JOB", p.name, "QUEUE", queue, "POD-THAT", "POD-THAT", "POD", pod, "NODE", node,
		"AHEAD", ahead).Replace(command)
}

// nextOfWorkload returns the command that shows more about a Workload, or mends why it waits.
func (p *printer) nextOfWorkload(c *explain.Cause, q *queued.Workload) string {
	why := func(other string) string {
		namespace, name, hasNamespace := strings.Cut(other, "/")
		if !hasNamespace { // another tenant's, of which the user may not know
			return p.program + " tree " + q.ClusterQueue
		}
		return p.program + " why workload " + name + " -n " + namespace
	}
	switch {
	case c.Code == explain.WorkloadsOff:
		return p.program + " diag"
	case c.Code == string(verdict.HeldUp):
		return why(q.Ahead[0].Workload)
	case len(q.WaitsFor) > 0:
		return why(q.WaitsFor[0].Workload)
	case c.Code == string(verdict.TooLargeForAnyNode) || c.Code == v1beta2.ReasonTopologyPlacementFailed:
		return next[string(verdict.TooLargeForAnyNode)]
	case q.State == queued.Waiting:
		return p.program + " tree " + q.ClusterQueue
	case q.State != queued.NotQueued || c.Code == explain.NotTriedYet:
	case c.Code == v1beta2.ReasonMisconfigured && q.Wants == "":
		return p.program + " list localqueue -n " + p.namespace
	case c.Code == v1beta2.ReasonMisconfigured:
		return p.program + " list clusterqueue"
	case q.Stopped != "":
		kind, name, _ := strings.Cut(q.Stopped, " ")
		if kind == "LocalQueue" {
			name += " -n " + p.namespace
		}
		return p.program + " resume " + strings.ToLower(kind) + " " + name
	case c.Code == v1beta2.ReasonDeactivated:
		return p.program + " resume workload " + p.name + " -n " + p.namespace
	case len(q.Inactive) > 0:
		return "kubectl describe clusterqueues.kueue.x-k8s.io " + q.Wants
	}
	return "kubectl -n " + p.namespace + " describe workloads.kueue.x-k8s.io " + p.name
}
