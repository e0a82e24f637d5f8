package admission

import (
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Scripts match what Volcano's webhooks say. Whether the definition, a policy or the webhook is the first to refuse
// something here, the message has Volcano's phrase.
func TestARefusalHasThePhraseOfVolcano(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "phrases", nil)
	create(t, "", queue("firm", "{capability: {cpu: 10}, deserved: {cpu: 8}, guarantee: {resource: {cpu: 4}}}"))
	create(t, "", queue("lab", "{parent: firm, deserved: {cpu: 5}, capability: {cpu: 6}}"))
	create(t, "", strings.Replace(queue("path", "{}"), "name: path", "name: path, annotations: {volcano.sh/hierarchy: root/a/b, volcano.sh/hierarchy-weights: 1/2/3}", 1))
	parent := "root"
	for _, name := range []string{"d1", "d2", "d3", "d4", "d5"} {
		create(t, "", queue(name, "{parent: "+parent+"}"))
		parent = name
	}
	create(t, "", queue("closed", "{}"))
	setState(t, "closed", scheduling.QueueStateClosed)
	const container = "template: {spec: {containers: [{name: a, image: b}]}}"
	job := func(spec, tasks string) string {
		return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {" + spec + "tasks: [" + tasks + "]}"
	}
	one := func(spec string) string { return job(spec, "{name: t, replicas: 2, "+container+"}") }
	task := func(fields string) string { return job("", "{name: t, replicas: 2, "+fields+container+"}") }
	cron := func(name, spec string) string {
		return "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: " + name + "}\nspec: {" + spec +
			", jobTemplate: {spec: {tasks: [{replicas: 1, " + container + "}]}}}"
	}
	hyperNode := func(member string) string {
		return "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: h}\nspec: {tier: 1, members: [" + member + "]}"
	}
	hierarchy := func(path, weights string) string {
		return strings.Replace(queue("new", "{}"), "name: new", "name: new, annotations: {volcano.sh/hierarchy: '"+path+"', volcano.sh/hierarchy-weights: '"+weights+"'}", 1)
	}
	const tiers = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
	const both = "networkTopology: {highestTierAllowed: 1, highestTierName: rack}"
	const notDAG = "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
	for _, test := range []struct{ text, phrase string }{
		{job("", "{name: t, replicas: 1, "+container+"}, {name: t, replicas: 1, "+container+"}"), "duplicated task name t"},
		{one("minAvailable: 3, "), "job 'minAvailable' should not be greater than total replicas in tasks"},
		{task("minAvailable: 3, "), "'minAvailable' is greater than 'replicas' in task: t"},
		{one("plugins: {dance: []}, "), "unable to find job plugin: dance"},
		{one("queue: nowhere, "), `unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found`},
		{one("queue: closed, "), "can only submit job to queue with state `Open`, queue `closed` status is `Closed`"},
		{one("queue: root, "), "can not submit job to root queue"},
		{one("queue: firm, "), "can only submit job to leaf queue, queue `firm` has 1 child queues"},
		{one(both + ", "), tiers},
		{task("partitionPolicy: {totalPartitions: 2, partitionSize: 1, " + both + "}, "), tiers},
		{task("partitionPolicy: {totalPartitions: 3, partitionSize: 1}, "), "'Replicas' are not equal to TotalPartitions*PartitionSize in task: t"},
		{task("minAvailable: 2, partitionPolicy: {totalPartitions: 2, partitionSize: 1, minPartitions: 1}, "), "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: t"},
		{task("dependsOn: {name: [t]}, "), notDAG},
		{task("dependsOn: {name: [nobody]}, "), notDAG},
		{task("topologyPolicy: single-numa-node, "), "the cpu request isn't  an integer"},
		{one("policies: [{event: PodFailed, exitCode: 3, action: AbortJob}], "), "must not specify event and exitCode simultaneously"},
		{one("policies: [{action: AbortJob}], "), "either event and exitCode should be specified"},
		{one("policies: [{event: PodFailed, action: AbortJob}, {event: PodFailed, action: RestartJob}], "), "duplicate event PodFailed  across different policy"},
		{one("policies: [{event: '*', action: AbortJob}, {event: PodFailed, action: RestartJob}], "), "if there's * here, no other policy should be here"},
		{one("policies: [{exitCode: 0, action: AbortJob}], "), "0 is not a valid error code"},
		{one("policies: [{exitCode: 3, action: AbortJob}, {exitCode: 3, action: RestartJob}], "), "duplicate exitCode 3"},
		{one("policies: [{event: PodFailed, action: Dance}], "), "invalid policy action"},
		{one("policies: [{event: OutOfSync, action: AbortJob}], "), "invalid policy event"},
		{task("policies: [{events: [PodFailed, Dancing], action: AbortJob}], "), "invalid policy event"},
		{one("volumes: [{mountPath: /a}], "), "either VolumeClaim or VolumeClaimName must be specified"},
		{one("volumes: [{mountPath: /a, volumeClaimName: c, volumeClaim: {accessModes: [ReadWriteOnce]}}], "), "conflict: If you want to use an existing PVC, just specify VolumeClaimName"},

		{one("volumes: [{mountPath: /a, volumeClaimName: c}, {mountPath: /a, volumeClaimName: d}], "), "duplicated mountPath: /a"},
		{one("volumes: [{mountPath: /a, volumeClaimName: C_}], "), "invalid VolumeClaimName C_ : "},
		{one("plugins: {mpi: []}, "), "The specified mpi master task was not found"},
		{one("plugins: {mpi: [--master=chief, --worker=t]}, "), "The specified mpi master task was not found"},
		{strings.Replace(one(""), "name: a", "name: "+strings.Repeat("a", 64), 1), "create job with name " + strings.Repeat("a", 64) + " validate failed"},
		{strings.Replace(one(""), "name: a", "name: "+strings.Repeat("a.", 126)+"a", 1), "create pod with name " + strings.Repeat("a.", 126) + "a-t-1 validate failed"},
		{job("", ""), "No task specified in job spec"},
		{strings.Replace(job("", ""), ", tasks: []", "", 1), "No task specified in job spec"},
		{job("", "{name: t, replicas: 1, template: {spec: {containers: [{name: a}]}}}"), "template.spec.containers[0].image: Required value"},

		{queue("new", "{parent: new}"), "queue new cannot use itself as parent"},
		{queue("new", "{parent: nowhere}"), "failed to get parent queue of queue new"},
		{queue("new", "{parent: d5}"), "queue new exceeds the maximum allowed depth of 5"},
		{queue("new", "{guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1}}"), "guarantee should less equal than deserved"},
		{queue("new", "{guarantee: {resource: {cpu: 2}}, capability: {cpu: 1}}"), "guarantee should less equal than capability"},
		{queue("new", "{deserved: {cpu: 2}, capability: {cpu: 1}}"), "deserved should less equal than capability"},
		{queue("new", "{guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1}}"), "deserved[cpu]=1 must be >= guarantee[cpu]=2"},
		{queue("new", "{guarantee: {resource: {cpu: 2, memory: 3Gi}}, deserved: {cpu: 2, memory: 1Gi}}"), "must be >= guarantee"},
		{queue("new", "{guarantee: {resource: {cpu: 2, memory: 3Gi}}, capability: {cpu: 1, memory: 1Gi}}"), "must be <= capability"},
		{queue("new", "{deserved: {cpu: 2}, capability: {cpu: 1}}"), "deserved[cpu]=2 must be <= capability[cpu]=1"},
		{queue("new", "{parent: firm, capability: {cpu: 11}}"), "queue new capability[cpu]=11 exceeds its ancestor's capability=10"},
		{queue("new", "{parent: firm, deserved: {cpu: 4}}"), "parent queue firm validation failed: sum of children's deserved"},
		{queue("new", "{parent: firm, guarantee: {resource: {cpu: 5}}}"), "parent queue firm validation failed: sum of children's guarantee"},
		{hierarchy("root/x", "1"), "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights"},
		{hierarchy("root/x", "1/y"), "y in the 1/y is invalid number"},
		{hierarchy("root/x", "1/0"), "0 in the 1/0 must be larger than 0"},
		{hierarchy("root/a", "1/2"), "root/a is not allowed to be in the sub path of root/a/b of queue path"},

		{podGroup("{queue: nowhere}"), `unable to find queue: queue.scheduling.volcano.sh "nowhere" not found`},
		{podGroup("{queue: closed}"), "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`"},
		{podGroup("{" + both + "}"), tiers},
		{podGroup("{subGroupPolicy: [{name: s, " + both + "}]}"), tiers},
		{pod("a", `{volcano.sh/jdb-min-available: "0"}`, "schedulerName: volcano"), `invalid value <"0"> for volcano.sh/jdb-min-available, it must be a positive integer`},
		{pod("a", `{volcano.sh/jdb-min-available: "100%"}`, "schedulerName: volcano"), "it must be a valid percentage which between 1% ~ 99%"},
		{pod("a", `{volcano.sh/jdb-min-available: "1", volcano.sh/jdb-max-unavailable: "1"}`, "schedulerName: volcano"),
			"not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time"},

		{cron("a", "schedule: ''"), "schedule is required, but got empty"},
		{cron("a", "schedule: '@daily', timeZone: ''"), "timeZone must be nil or non-empty string, got empty string"},
		{cron("a", "schedule: '@daily', timeZone: -x"), "unknown timeZone"},
		{cron("a", "schedule: never"), "schedule is not a valid cron expression"},
		{cron("a", "schedule: 'TZ=UTC @daily'"), "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"},
		{cron("a", "schedule: '@daily', timeZone: Local"), "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"},
		{cron("a", "schedule: '@daily', timeZone: Mars/North"), "invalid timeZone"},
		{cron(strings.Repeat("a", 53), "schedule: '@daily'"), "cronJob name must be no more than 52 characters to accommodate job name suffix"},
		{"apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: {flows: [{name: a, dependsOn: {targets: [a]}}]}", "jobflow Flow is not DAG"},
		{"apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: {flows: [{name: a, dependsOn: {targets: [b]}}]}", "jobflow Flow is not DAG: vertex is not defined: b"},
		{hyperNode("{type: Node, selector: {}}"), "member selector must have one of regexMatch or exactMatch"},
		{hyperNode("{type: Node, selector: {exactMatch: {name: node}, regexMatch: {pattern: node}}}"), "member selector cannot have both regexMatch and exactMatch"},
		{hyperNode("{type: Node, selector: {}}"), "Either ExactMatch or RegexMatch or LabelMatch must be specified"},
		{hyperNode("{type: Node, selector: {exactMatch: {name: node}, labelMatch: {}}}"), "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"},
		{hyperNode("{type: Node, selector: {regexMatch: {pattern: 'n-('}}}"), "member regexMatch pattern is invalid"},
		{hyperNode("{type: Node, selector: {regexMatch: {pattern: ''}}}"), "member regexMatch pattern is required"},
		{hyperNode("{type: Node, selector: {exactMatch: {name: ''}}}"), "member exactMatch name is required"},
		{hyperNode("{type: Node, selector: {exactMatch: {}}}"), "exactMatch.name"},
		{hyperNode(""), "member must have at least one member"},
	} {
		t.Run(test.phrase, func(t *testing.T) {
			at := namespace
			if strings.Contains(test.text, "kind: Queue") || strings.Contains(test.text, "kind: HyperNode") {
				at = ""
			}
			expect(t, api.Create(apitest.Context(t), apitest.Object(t, at, test.text), client.DryRunAll), test.phrase)
		})
	}
	// The events of one policy are a set: nothing is refused that names one twice.
	for _, text := range []string{one("policies: [{events: [PodFailed, PodFailed], action: AbortJob}], "),
		one("policies: [{event: PodFailed, events: [PodFailed, PodEvicted], action: AbortJob}], "),
		task("policies: [{events: [PodFailed, PodFailed], action: AbortJob}], "),
		"apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: {flows: []}"} {
		expect(t, api.Create(apitest.Context(t), apitest.Object(t, namespace, text), client.DryRunAll), "")
	}
	for name, phrase := range map[string]string{
		"default": "`default` queue can not be deleted", "root": "`root` queue can not be deleted",
		"firm": "queue firm can not be deleted because it has 1 child queues",
	} {
		expect(t, api.Delete(apitest.Context(t), apitest.Object(t, "", queue(name, "{}")), client.DryRunAll), phrase)
	}
}

// The phrases of refused changes.
func TestARefusedChangeHasThePhraseOfVolcano(t *testing.T) {
	haveBuiltInQueues(t)
	namespace := namespaceFor(t, "changes", nil)
	stored := create(t, namespace, gang("a", "minAvailable: 2"))
	create(t, "", queue("house", "{capability: {cpu: 10}, deserved: {cpu: 8}, guarantee: {resource: {cpu: 4}}}"))
	create(t, "", queue("room", "{parent: house, capability: {cpu: 9}, deserved: {cpu: 7}, guarantee: {resource: {cpu: 3}}}"))
	const fields = "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`"
	task := func(text string) string {
		return `{"spec": {"tasks": [` + text + `{"replicas": 3, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}]}}`
	}
	for _, test := range []struct{ patch, phrase string }{
		{task(`{"name": "more", "replicas": 1, "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}, `), "job updates may not add or remove tasks"},
		{strings.Replace(task(""), `"image": "b"`, `"image": "c"`, 1), fields},
		{`{"spec": {"queue": "house"}}`, fields},
		{`{"spec": {"plugins": {"env": []}}}`, fields},
		{`{"spec": {"minAvailable": 4}}`, "job 'minAvailable' should not be greater than total replicas"},
	} {
		expect(t, api.Patch(apitest.Context(t), stored.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(test.patch)), client.DryRunAll), test.phrase)
	}
	for _, test := range []struct{ queue, patch, phrase string }{
		{"house", `{"spec": {"capability": {"cpu": 8}}}`, "queue house capability[cpu]=8 is smaller than its descendants' max capability=9"},
		{"house", `{"spec": {"deserved": {"cpu": 6}}}`, "queue house validation failed: sum of children's deserved"},
		{"house", `{"spec": {"guarantee": {"resource": {"cpu": 2}}}}`, "queue house validation failed: sum of children's guarantee"},
		{"root", `{"spec": {"capability": {"cpu": 6}}}`, "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"},
		{"house", `{"spec": {"parent": "house"}}`, "queue house cannot use itself as parent"},
	} {
		changed := apitest.Object(t, "", queue(test.queue, "{}"))
		expect(t, api.Patch(apitest.Context(t), changed, client.RawPatch(types.MergePatchType, []byte(test.patch)), client.DryRunAll), test.phrase)
	}
}
