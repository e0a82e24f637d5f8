package apis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jobWith is a Job of one task "a" with three pods, plus lines in its spec and in its task.
func jobWith(spec, task string) string {
	return fmt.Sprintf(`
metadata: {name: a}
spec:
  %s
  tasks:
  - name: a
    replicas: 3
    template: {spec: {containers: [{name: a, image: b}]}}
    %s`, indent(spec, 2), indent(task, 4))
}

// tasks is a Job with the given tasks, each in YAML flow style.
func tasks(items ...string) string {
	return fmt.Sprintf("metadata: {name: a}\nspec: {tasks: [%s]}", strings.Join(items, ", "))
}

func indent(text string, columns int) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", columns))
}

// cronJob is a CronJob of one task, plus lines in its spec.
func cronJob(name, schedule, spec string) string {
	return fmt.Sprintf(`
metadata: {name: %s}
spec:
  schedule: %s
  %s
  jobTemplate: {spec: {tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]}}`, name, schedule, spec)
}

func queue(spec string) string    { return "metadata: {name: q}\nspec: " + spec }
func podGroup(spec string) string { return "metadata: {name: g}\nspec: " + spec }

func hyperNode(spec string) string { return "metadata: {name: h}\nspec: " + spec }
func member(member string) string  { return hyperNode("{tier: 1, members: [" + member + "]}") }

func TestCreationIsCheckedByTheDefinition(t *testing.T) {
	tests := []struct {
		name, kind, object string
		// refusal is part of the error, or empty if the object is accepted.
		refusal string
	}{
		{"a job needs a spec", "Job", `metadata: {name: a}`, "spec: Required value"},
		{"a job needs tasks", "Job", "metadata: {name: a}\nspec: {}", "spec.tasks: Required value"},
		{"a job needs at least one task", "Job", tasks(), "spec.tasks: Required value: No task specified in job spec"},
		{"the gang may be the whole job", "Job", jobWith("minAvailable: 3", ""), ""},
		{"the gang cannot exceed the job", "Job", jobWith("minAvailable: 4", ""),
			"spec.minAvailable: Invalid value: job 'minAvailable' should not be greater than total replicas in tasks: it is 4, and they are 3"},
		{"the gang counts the replicas of all tasks", "Job",
			"metadata: {name: a}\nspec: {minAvailable: 5, tasks: [{name: a, replicas: 2}, {name: b, replicas: 3}]}", ""},
		{"the gang cannot be negative", "Job", jobWith("minAvailable: -1", ""), "spec.minAvailable: Invalid value: -1"},
		{"retries cannot be negative", "Job", jobWith("maxRetry: -1", ""), "spec.maxRetry: Invalid value: -1"},
		{"time to live cannot be negative", "Job", jobWith("ttlSecondsAfterFinished: -1", ""),
			"spec.ttlSecondsAfterFinished: Invalid value: -1"},
		{"a finished job may go at once", "Job", jobWith("ttlSecondsAfterFinished: 0", ""), ""},
		{"success needs at least one pod", "Job", jobWith("minSuccess: 0", ""), "spec.minSuccess: Invalid value: 0"},
		{"a queue name is a name", "Job", jobWith("queue: Research!", ""), "spec.queue: Invalid value"},
		{"an empty queue is the default", "Job", jobWith(`queue: ""`, ""), ""},
		{"only one way to name a tier", "Job", jobWith("networkTopology: {highestTierAllowed: 1, highestTierName: rack}", ""),
			"spec.networkTopology: Invalid value: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"},
		{"a tier by number", "Job", jobWith(`networkTopology: {highestTierAllowed: 1, highestTierName: ""}`, ""), ""},
		{"a topology is hard or soft", "Job", jobWith("networkTopology: {mode: firm}", ""), "spec.networkTopology.mode: Unsupported value"},

		{"replicas cannot be negative", "Job", tasks("{replicas: -1}"), "spec.tasks[0].replicas: Invalid value: -1"},
		{"a task without replicas has none", "Job", tasks("{name: a}"), ""},
		{"a task's minimum may be zero", "Job", jobWith("", "minAvailable: 0"), ""},
		{"a task's minimum cannot be negative", "Job", jobWith("", "minAvailable: -1"), "minAvailable: Invalid value: -1"},
		{"a task's minimum cannot exceed its replicas", "Job", jobWith("", "minAvailable: 4"),
			"spec.tasks[0].minAvailable: Invalid value: 'minAvailable' is greater than 'replicas' in task: a; it is 4, and they are 3"},
		{"several tasks may leave their names out", "Job", tasks("{replicas: 1}", "{replicas: 1}", `{name: ""}`, `{name: ""}`), ""},
		{"a task name is part of a host name", "Job", tasks("{name: ps_0}"), "spec.tasks[0].name: Invalid value"},
		{"a container needs a name", "Job", tasks("{template: {spec: {containers: [{image: b}]}}}"),
			"spec.tasks[0].template.spec.containers[0].name: Required value"},
		{"a dependency is any or all", "Job", jobWith("", "dependsOn: {name: [b], iteration: some}"), "iteration: Unsupported value"},
		{"a NUMA policy is known", "Job", jobWith("", "topologyPolicy: strict"), "topologyPolicy: Unsupported value"},

		{"partitions fill the task", "Job", jobWith("", "partitionPolicy: {totalPartitions: 3, partitionSize: 1}"), ""},
		{"partitions that do not fill the task", "Job", jobWith("", "partitionPolicy: {totalPartitions: 2, partitionSize: 2}"),
			"'Replicas' are not equal to TotalPartitions*PartitionSize in task: a"},
		{"a partition holds a pod", "Job", jobWith("", "partitionPolicy: {totalPartitions: 3, partitionSize: 0}"),
			"partitionSize: Invalid value: 0"},
		{"the minimum in partitions is the minimum in pods", "Job",
			jobWith("", "minAvailable: 2\npartitionPolicy: {totalPartitions: 3, partitionSize: 1, minPartitions: 2}"), ""},
		{"the minimum in partitions contradicts the one in pods", "Job",
			jobWith("", "minAvailable: 1\npartitionPolicy: {totalPartitions: 3, partitionSize: 1, minPartitions: 2}"),
			"'MinAvailable' is not equal to MinPartitions*PartitionSize in task: a"},
		{"partitions have one way to name a tier", "Job",
			jobWith("", "partitionPolicy: {totalPartitions: 3, partitionSize: 1, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}"),
			"exclude each other"},

		{"a policy by event", "Job", jobWith("policies: [{event: PodFailed, action: RestartJob}]", ""), ""},
		{"a policy by exit code", "Job", jobWith("policies: [{exitCode: 3, action: RestartJob}]", ""), ""},
		{"a policy needs an action", "Job", jobWith("policies: [{event: PodFailed}]", ""), "spec.policies[0].action: Required value"},
		{"an unknown event", "Job", jobWith("policies: [{event: PodBored, action: RestartJob}]", ""), "spec.policies[0].event: Unsupported value"},
		{"an unknown event among several", "Job", jobWith("policies: [{events: [PodBored], action: RestartJob}]", ""),
			"spec.policies[0].events[0]: Unsupported value"},
		{"an internal event", "Job", jobWith("policies: [{event: OutOfSync, action: RestartJob}]", ""), "Unsupported value"},
		{"an unknown action", "Job", jobWith("policies: [{event: PodFailed, action: Cry}]", ""), "spec.policies[0].action: Unsupported value"},
		{"an internal action", "Job", jobWith("policies: [{event: PodFailed, action: SyncJob}]", ""), "Unsupported value"},
		{"any event and an exit code", "Job",
			jobWith("policies: [{event: '*', action: RestartJob}, {exitCode: 3, action: AbortJob}]", ""), ""},

		{"a volume needs a place", "Job", jobWith("volumes: [{volumeClaimName: a}]", ""), "mountPath: Required value"},
		{"a volume needs a place that is not empty", "Job", jobWith(`volumes: [{mountPath: "", volumeClaimName: a}]`, ""), "spec.volumes[0].mountPath: Invalid value"},
		{"two volumes at one place", "Job", jobWith("volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /a, volumeClaimName: b}]", ""),
			"spec.volumes[1]: Duplicate value"},
		{"a volume needs a claim", "Job", jobWith("volumes: [{mountPath: /a}]", ""), "either VolumeClaim or VolumeClaimName must be specified"},
		{"a volume has one claim", "Job", jobWith("volumes: [{mountPath: /a, volumeClaimName: a, volumeClaim: {accessModes: [ReadWriteOnce]}}]", ""),
			"conflict: If you want to use an existing PVC, just specify VolumeClaimName"},

		{"a schedule is needed", "CronJob", "metadata: {name: a}\nspec: {jobTemplate: {}}", "spec.schedule: Required value"},
		{"a schedule that is empty", "CronJob", cronJob("a", `""`, ""), "spec.schedule: Invalid value"},
		{"a schedule of five fields", "CronJob", cronJob("a", `"*/5 9-17 * * MON-FRI"`, ""), ""},
		{"a schedule with its time zone", "CronJob", cronJob("a", `"CRON_TZ=Asia/Tokyo 0 9 * * *"`, ""),
			"spec.schedule: Invalid value: \"CRON_TZ=Asia/Tokyo 0 9 * * *\": schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"},
		{"a time zone", "CronJob", cronJob("a", `"@daily"`, "timeZone: America/Argentina/ComodRivadavia"), ""},
		{"a time zone without a name", "CronJob", cronJob("a", `"@daily"`, `timeZone: ""`), "spec.timeZone: Invalid value"},
		{"the time zone of who knows where", "CronJob", cronJob("a", `"@daily"`, "timeZone: local"), "timeZone can't be Local"},
		{"a policy of concurrency is known", "CronJob", cronJob("a", `"@daily"`, "concurrencyPolicy: Queue"),
			"spec.concurrencyPolicy: Unsupported value"},
		{"a deadline is not negative", "CronJob", cronJob("a", `"@daily"`, "startingDeadlineSeconds: -1"),
			"spec.startingDeadlineSeconds: Invalid value: -1"},
		{"no history at all", "CronJob", cronJob("a", `"@daily"`, "successfulJobsHistoryLimit: 0\n  failedJobsHistoryLimit: 0"), ""},
		{"a history is not negative", "CronJob", cronJob("a", `"@daily"`, "failedJobsHistoryLimit: -1"),
			"spec.failedJobsHistoryLimit: Invalid value: -1"},
		{"the longest name of a cron job", "CronJob", cronJob(strings.Repeat("a", 52), `"@daily"`, ""), ""},
		{"a name of a cron job that leaves no room", "CronJob", cronJob(strings.Repeat("a", 53), `"@daily"`, ""),
			"cronJob name must be no more than 52 characters"},

		{"a queue is not its own parent", "Queue", queue("{parent: q}"), "spec.parent: Invalid value: queue q cannot use itself as parent"},
		{"a queue below another", "Queue", queue("{parent: research}"), ""},
		{"a weight is at least one", "Queue", queue("{weight: 0}"), "spec.weight: Invalid value: 0"},
		{"a weight cannot be negative", "Queue", queue("{weight: -1}"), "spec.weight: Invalid value: -1"},
		{"a priority cannot be negative", "Queue", queue("{priority: -1}"), "spec.priority: Invalid value: -1"},
		{"a dequeue strategy is known", "Queue", queue("{dequeueStrategy: lifo}"), "spec.dequeueStrategy: Unsupported value"},
		{"floor, share and ceiling may be equal", "Queue",
			queue("{guarantee: {resource: {cpu: 4}}, deserved: {cpu: '4'}, capability: {cpu: 4000m}}"), ""},
		{"what only one names is not compared", "Queue",
			queue("{guarantee: {resource: {cpu: 4}}, deserved: {memory: 1Gi}, capability: {nvidia.com/gpu: 1}}"), ""},
		{"the floor cannot exceed the share", "Queue", queue("{guarantee: {resource: {cpu: 4, memory: 1Gi}}, deserved: {cpu: 3900m, memory: 1024Mi}}"),
			`spec.guarantee: Invalid value: guarantee should less equal than deserved: ["deserved[cpu]=3900m must be >= guarantee[cpu]=4"]`},
		{"the floor cannot exceed the ceiling", "Queue", queue("{guarantee: {resource: {memory: 2Gi}}, capability: {memory: 2G}}"),
			`spec.guarantee: Invalid value: guarantee should less equal than capability: ["guarantee[memory]=2Gi must be <= capability[memory]=2G"]`},
		{"the share cannot exceed the ceiling", "Queue", queue("{deserved: {cpu: 10, nvidia.com/gpu: 2}, capability: {cpu: 10, nvidia.com/gpu: 1}}"),
			`spec.deserved: Invalid value: deserved should less equal than capability: ["deserved[nvidia.com/gpu]=2 must be <= capability[nvidia.com/gpu]=1"]`},
		{"a ceiling cannot be negative", "Queue", queue("{capability: {cpu: -1}}"), "spec.capability: Invalid value: quantities cannot be negative"},
		{"a share cannot be negative", "Queue", queue("{deserved: {cpu: -1m}}"), "spec.deserved: Invalid value: quantities cannot be negative"},
		{"a floor cannot be negative", "Queue", queue("{guarantee: {resource: {cpu: '-1'}}}"), "spec.guarantee.resource: Invalid value: quantities cannot be negative"},
		{"a quantity is a quantity", "Queue", queue("{capability: {cpu: many}}"), "spec.capability.cpu: Invalid value"},
		{"a queue in a state that is none", "Queue", queue("{}") + "\nstatus: {state: Ajar}", "status.state: Unsupported value"},
		{"the status of a queue may say nothing of what it holds", "Queue", queue("{}") + "\nstatus: {state: Open}", ""},

		{"a gang of no minimum", "PodGroup", podGroup("{minMember: 0}"), ""},
		{"a gang cannot be negative", "PodGroup", podGroup("{minMember: -1}"), "spec.minMember: Invalid value: -1"},
		{"a task of a gang cannot be negative", "PodGroup", podGroup("{minTaskMember: {a: 1, b: -1}}"),
			"spec.minTaskMember: Invalid value: a task's minimum cannot be negative"},
		{"what a gang needs cannot be negative", "PodGroup", podGroup("{minResources: {cpu: -1}}"),
			"spec.minResources: Invalid value: quantities cannot be negative"},
		{"a gang has one way to name a tier", "PodGroup", podGroup("{networkTopology: {highestTierAllowed: 1, highestTierName: rack}}"),
			"spec.networkTopology: Invalid value: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"},
		{"a part of a gang has one way to name a tier", "PodGroup",
			podGroup("{subGroupPolicy: [{networkTopology: {highestTierAllowed: 1, highestTierName: rack}}]}"),
			"spec.subGroupPolicy[0].networkTopology: Invalid value: must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"},
		{"a group of no pods", "PodGroup", podGroup("{subGroupPolicy: [{subGroupSize: 0}]}"), "subGroupSize: Invalid value: 0"},
		{"as many parts of a gang as there are", "PodGroup", podGroup("{subGroupPolicy: [" + strings.Repeat("{name: a},", 256) + "]}"), ""},
		{"more parts of a gang", "PodGroup", podGroup("{subGroupPolicy: [" + strings.Repeat("{name: a},", 257) + "]}"), "spec.subGroupPolicy: Too many: 257"},
		{"the largest selector of a part", "PodGroup", podGroup("{subGroupPolicy: [{labelSelector: {matchExpressions: [" +
			strings.Repeat("{key: a, operator: Exists},", 64) + "]}}]}"), ""},
		{"a larger selector of a part", "PodGroup", podGroup("{subGroupPolicy: [{labelSelector: {matchExpressions: [" +
			strings.Repeat("{key: a, operator: Exists},", 65) + "]}}]}"), "must have at most 64 matchExpressions and 64 matchLabels"},
		{"a part by too many labels", "PodGroup", podGroup("{subGroupPolicy: [{matchLabelKeys: [" + strings.Repeat("a,", 65) + "]}]}"),
			"spec.subGroupPolicy[0].matchLabelKeys: Too many: 65"},
		{"a HyperNode of everything there is", "HyperNode", hyperNode(`{tier: 2, tierName: spine, members: [
			{type: HyperNode, selector: {exactMatch: {name: s0}}}, {type: Node, selector: {exactMatch: {name: node-1.example}}},
			{type: Node, selector: {regexMatch: {pattern: "^n-[0-9]+$"}}},
			{type: Node, selector: {labelMatch: {matchLabels: {rack: a}, matchExpressions: [{key: b, operator: Exists}]}}}]}`), ""},
		{"a HyperNode of nothing yet", "HyperNode", hyperNode("{tier: 1}"), ""},
		{"a HyperNode needs a tier", "HyperNode", hyperNode("{members: []}"), "spec.tier: Required value"},
		{"a tier cannot be negative", "HyperNode", hyperNode("{tier: -1}"), "spec.tier: Invalid value: -1"},
		{"a member is selected", "HyperNode", member("{type: Node}"), "spec.members[0].selector: Required value"},
		{"a member is selected in some way", "HyperNode", member("{type: Node, selector: {}}"),
			"exactly one of exactMatch, regexMatch and labelMatch is needed"},
		{"a member is selected in one way", "HyperNode", member("{type: Node, selector: {exactMatch: {name: a}, regexMatch: {pattern: a}}}"),
			"exactly one of exactMatch, regexMatch and labelMatch is needed"},
		{"a member is of a kind there is", "HyperNode", member("{type: Rack, selector: {exactMatch: {name: a}}}"),
			"spec.members[0].type: Unsupported value"},
		{"a HyperNode is a member by name", "HyperNode", member("{type: HyperNode, selector: {regexMatch: {pattern: a}}}"),
			"spec.members[0]: Invalid value: HyperNodes are members by exactMatch only"},
		{"an expression can be read", "HyperNode", member("{type: Node, selector: {regexMatch: {pattern: 'n-('}}}"),
			"spec.members[0].selector.regexMatch.pattern"},
		{"a name is a name", "HyperNode", member("{type: Node, selector: {exactMatch: {name: N_1}}}"),
			"spec.members[0].selector.exactMatch.name: Invalid value"},
		{"a gang in a phase that is none", "PodGroup", podGroup("{}") + "\nstatus: {phase: Bored}", "status.phase: Unsupported value"},
	}
	definitions := loadDefinitions(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, unknown, errs := definitions[test.kind].create(parse(t, test.object))
			if len(unknown) > 0 {
				t.Errorf("the example has unknown fields: %v", unknown)
			}
			expectRefusal(t, errs.ToAggregate(), test.refusal)
		})
	}
}

// A template has the spec of a Job and may yet be changed: nothing runs from it.
func TestATemplateIsCheckedAsAJobIsAndMayBeChanged(t *testing.T) {
	definition := loadDefinitions(t)["JobTemplate"]
	stored, _, errs := definition.create(parse(t, jobWith("queue: research\nminSuccess: 1", "policies: [{event: PodFailed, action: RestartJob}]")))
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	another := "metadata: {name: a}\nspec: {queue: production, tasks: [{name: b, replicas: 1}, {name: c, replicas: 1}]}"
	if err := definition.update(parse(t, another), stored).ToAggregate(); err != nil {
		t.Error(err)
	}
	for object, refusal := range map[string]string{
		"metadata: {name: a}":                     "spec: Required value",
		jobWith("minAvailable: 4", ""):            "job 'minAvailable' should not be greater than total replicas in tasks: it is 4, and they are 3",
		jobWith("volumes: [{mountPath: /a}]", ""): "either VolumeClaim or VolumeClaimName must be specified",
	} {
		_, _, errs := definition.create(parse(t, object))
		expectRefusal(t, errs.ToAggregate(), refusal)
	}
}

func TestFlowsAreCheckedByTheDefinition(t *testing.T) {
	definition := loadDefinitions(t)["JobFlow"]
	for spec, refusal := range map[string]string{
		"{}":                                     "",
		"{flows: [{name: a}, {name: a}]}":        `spec.flows[1]: Duplicate value`,
		"{flows: [{dependsOn: {targets: [a]}}]}": "spec.flows[0].name: Required value",
		"{jobRetainPolicy: keep}":                `Unsupported value: "keep"`,
		"{flows: [{name: a, dependsOn: {targets: [b], probe: {tcpSocketList: [{taskName: a}]}}}]}":            "tcpSocketList[0].port: Required value",
		"{flows: [{name: a, dependsOn: {targets: [b], probe: {tcpSocketList: [{port: 65536}]}}}]}":            "tcpSocketList[0].port: Invalid value: 65536",
		"{flows: [{name: a, dependsOn: {targets: [b], probe: {httpGetList: [{httpHeader: {name: Host}}]}}}]}": "httpHeader.value: Required value",
		"{flows: [{name: a, patch: {jobSpec: {queue: null, anything: {goes: [here]}}}}]}":                     "",
		"{flows: [{name: a, patch: {jobSpec: [queue]}}]}":                                                     "patch.jobSpec: Invalid value",
	} {
		stored, unknown, errs := definition.create(parse(t, "metadata: {name: a}\nspec: "+spec))
		expectRefusal(t, errs.ToAggregate(), refusal)
		if len(unknown) > 0 {
			t.Errorf("%s: fields unknown to the schema: %v", spec, unknown)
		}
		if strings.Contains(spec, "null") && !strings.Contains(fmt.Sprint(stored), "queue:<nil>") {
			t.Errorf("the null of %s is lost: %v", spec, stored)
		}
	}
}

func TestTheJobOfACronJobIsCheckedAsAJobIsAndMayBeChanged(t *testing.T) {
	definition := loadDefinitions(t)["CronJob"]
	with := func(job string) map[string]any {
		return parse(t, "metadata: {name: a}\nspec: {schedule: '@daily', jobTemplate: {metadata: {labels: {a: b}}, spec: "+job+"}}")
	}
	stored, _, errs := definition.create(with("{queue: research, minSuccess: 1, tasks: [{name: a, replicas: 1}]}"))
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	another := "{queue: production, policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: b, replicas: 1}, {name: c, replicas: 1}]}"
	if err := definition.update(with(another), stored).ToAggregate(); err != nil {
		t.Error(err)
	}
	for job, refusal := range map[string]string{
		"{}": "spec.jobTemplate.spec.tasks: Required value",
		"{minAvailable: 2, tasks: [{replicas: 1}]}":            "job 'minAvailable' should not be greater than total replicas in tasks: it is 2, and they are 1",
		"{tasks: [{replicas: 1}], volumes: [{mountPath: /a}]}": "either VolumeClaim or VolumeClaimName must be specified",
	} {
		_, _, errs := definition.create(with(job))
		expectRefusal(t, errs.ToAggregate(), refusal)
	}
	// One that was stored before there was the rule can still be changed and, with that, deleted.
	long := parse(t, cronJob(strings.Repeat("a", 60), `"@daily"`, ""))
	if err := definition.update(long, long).ToAggregate(); err != nil {
		t.Error(err)
	}
}

func TestAMisspeltFieldIsNoticedWhereverItIs(t *testing.T) {
	definition := loadDefinitions(t)["Job"]
	_, unknown, _ := definition.create(parse(t, `
metadata: {name: a}
spec:
  minAvailible: 1
  tasks:
  - replicas: 1
    template: {spec: {contaners: [], containers: [{name: a, image: b, resources: {request: {cpu: 1}}}]}}`))
	want := []string{
		"spec.minAvailible",
		"spec.tasks[0].template.spec.containers[0].resources.request",
		"spec.tasks[0].template.spec.contaners",
	}
	slices.Sort(unknown)
	if diff := cmp.Diff(want, unknown); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
}

func TestChangesOfAJobAreCheckedByTheDefinition(t *testing.T) {
	before := jobWith(`minAvailable: 2
schedulerName: mine
plugins: {svc: []}
policies: [{event: PodFailed, action: RestartJob}]
volumes: [{mountPath: /a, volumeClaim: {accessModes: [ReadWriteOnce]}}, {mountPath: /b, volumeClaimName: b}]`, "minAvailable: 1")
	tests := []struct {
		name, old, new, refusal string
	}{
		{"nothing", "", "", ""},
		{"the size of the gang", "minAvailable: 2", "minAvailable: 3", ""},
		{"a larger gang than there are pods", "minAvailable: 2", "minAvailable: 4", "spec.minAvailable: Invalid value: job 'minAvailable' should not be greater than total replicas in tasks: it is 4"},
		{"the size of a task", "replicas: 3", "replicas: 5", ""},
		{"a task smaller than its minimum", "replicas: 3", "replicas: 0", "spec.tasks[0].minAvailable: Invalid value: 'minAvailable' is greater than 'replicas' in task: a; it is 1, and they are 0"},
		{"a task's minimum", "    minAvailable: 1", "    minAvailable: 3", ""},
		{"the priority class", "spec:", "spec:\n  priorityClassName: high", ""},
		{"the time to live", "spec:", "spec:\n  ttlSecondsAfterFinished: 5", ""},
		{"the name of a claim that was made", "{mountPath: /a,", "{mountPath: /a, volumeClaimName: made,", ""},
		{"the queue", "spec:", "spec:\n  queue: other", `spec.queue: Invalid value: "other": job updates may not change fields other than ` + "`" + `minAvailable` + "`" + `, ` + "`" + `tasks[*].replicas under spec` + "`" + ` and ` + "`" + `PriorityClassName` + "`" + `: a Job cannot be moved to another queue`},
		{"the scheduler", "schedulerName: mine", "schedulerName: other", "spec.schedulerName: Invalid value"},
		{"who knows which scheduler", "  schedulerName: mine\n", "", "schedulerName, volumes, policies, plugins, minSuccess and networkTopology cannot be added or removed"},
		{"a policy", "PodFailed", "PodEvicted", "spec.policies: Invalid value: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: policies cannot be changed after creation"},
		{"an additional property", "spec:", "spec:\n  minSuccess: 1", "minSuccess and networkTopology cannot be added or removed"},
		{"a plugin", "{svc: []}", "{svc: [], env: []}", "spec.plugins: Invalid value: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: plugins cannot be changed after creation"},
		{"a volume", "/b", "/c", "volumes cannot be added, removed or reordered"},
		{"a claim", "ReadWriteOnce", "ReadWriteMany", "volumeClaim cannot be changed after creation"},
	}
	definition := loadDefinitions(t)["Job"]
	stored, _, errs := definition.create(parse(t, before))
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(before, test.old) {
				t.Fatalf("%q is not in the example", test.old)
			}
			after := strings.Replace(before, test.old, test.new, 1)
			expectRefusal(t, definition.update(parse(t, after), stored).ToAggregate(), test.refusal)
		})
	}
}

func TestTheLargestJobStaysWithinTheBudgetOfTheRules(t *testing.T) {
	const largest = 256
	var items []string
	for i := range largest {
		items = append(items, fmt.Sprintf("{name: a%062d, replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}", i))
	}
	definition := loadDefinitions(t)["Job"]
	stored, _, errs := definition.create(parse(t, tasks(items...)))
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	if err := definition.update(stored, stored).ToAggregate(); err != nil {
		t.Error(err)
	}
	_, _, errs = definition.create(parse(t, tasks(append(items, "{name: b}")...)))
	expectRefusal(t, errs.ToAggregate(), "spec.tasks: Too many: 257: must have at most 256 items")
}

func expectRefusal(t *testing.T, err error, refusal string) {
	t.Helper()
	switch {
	case refusal == "" && err != nil:
		t.Errorf("refused: %v", err)
	case refusal != "" && err == nil:
		t.Errorf("accepted, want %q", refusal)
	case refusal != "" && !strings.Contains(err.Error(), refusal):
		t.Errorf("refused with %q, want %q", err, refusal)
	}
}
