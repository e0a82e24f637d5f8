package ask

import (
	"strings"

	"hekla.sh/hekla/internal/explain"
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
}

// next returns the command that shows more about a cause, or mends it.
func (p *printer) next(c *explain.Cause, queue string) string {
	command, ok := next[c.Code]
	if !ok {
		command = "HEKLA job view JOB -n NAMESPACE"
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
	if c.Code == explain.PromisedToOthers && len(c.Promised) > 0 {
		ahead = strings.TrimPrefix(c.Promised[0].Reason, "promised to ")
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
