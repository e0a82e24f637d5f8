package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// sim is a Job of one task with three pods, plus lines in its spec, its task and its container, in YAML flow style.
func sim(spec, task, container string) string {
	return fmt.Sprintf("metadata: {name: sim}\nspec: {%s tasks: [{%s name: a, replicas: 3, template: {spec: {containers: [{%s name: c, image: i}]}}}]}",
		spec, task, container)
}

func jobQueues(t testing.TB) *shelf {
	return &shelf{queues: queues(t,
		"{metadata: {name: root}}", "{metadata: {name: default}, spec: {parent: root}, status: {state: Open}}",
		"{metadata: {name: company}, status: {state: Open}}", "{metadata: {name: research}, spec: {parent: company}, status: {state: Open}}",
		"{metadata: {name: young}}", "{metadata: {name: closing}, status: {state: Closing}}", "{metadata: {name: closed}, status: {state: Closed}}",
		"{metadata: {name: theirs, labels: {scheduling.volcano.sh/queue-access: restricted}, annotations: {scheduling.volcano.sh/queue-namespaces: 'else, labs'}}, status: {state: Open}}",
		"{metadata: {name: ours, labels: {scheduling.volcano.sh/queue-access: restricted}, annotations: {scheduling.volcano.sh/queue-namespaces: 'else, lab'}}, status: {state: Open}}",
	)}
}

func TestANewJobIsRefusedWithFieldAndValue(t *testing.T) {
	const invalid = `Job.batch.volcano.sh "sim" is invalid: `
	for _, test := range []struct{ name, job, want string }{
		{"what can run", sim("", "", ""), ""},
		{"no tasks", "metadata: {name: sim}\nspec: {queue: default}", "spec.tasks: Required value: No task specified in job spec: a Job needs at least one task"},
		{"an mpi master that is no task", sim("plugins: {mpi: [--master=x, --worker=a]},", "", ""),
			`spec.plugins[mpi]: Invalid value: The specified mpi master task was not found: the Job has no task "x"; --master names the task of the master`},
		{"two names for a tier", sim("networkTopology: {highestTierAllowed: 1, highestTierName: rack},", "", ""),
			`spec.networkTopology: Invalid value: "rack": must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other`},
		{"two names for a tier of partitions", sim("", "partitionPolicy: {totalPartitions: 3, partitionSize: 1, networkTopology: {highestTierAllowed: 1, highestTierName: rack}},", ""),
			`spec.tasks[0].partitionPolicy.networkTopology: Invalid value: "rack": must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other`},
		{"a minimum above the replicas", sim("", "minAvailable: 4,", ""), "spec.tasks[0].minAvailable: Invalid value: 4: 'minAvailable' is greater than 'replicas' in task: a, job: sim: it has only 3"},
		{"tasks of one name", "metadata: {name: sim}\nspec: {tasks: [{name: a, template: {spec: {containers: [{name: c, image: i}]}}}, {name: a, template: {spec: {containers: [{name: c, image: i}]}}}]}",
			`spec.tasks[1].name: Duplicate value: "a"`},
		{"an event twice", sim("policies: [{event: PodFailed, action: AbortJob}, {event: PodFailed, action: RestartJob}],", "", ""),
			`spec.policies[1].event: Duplicate value: "PodFailed"`},
		{"an action that is none", sim("", "policies: [{event: PodFailed, action: Cry}],", ""), `spec.tasks[0].policies[0].action: Invalid value: "Cry": invalid policy action: valid actions are [CompleteJob TerminateJob AbortJob RestartJob RestartTask RestartPartition RestartPod ResumeJob]`},
		{"a template that no pod can be made from", sim("", "", "ports: [{containerPort: 0}],"),
			"spec.tasks[0].template.spec.containers[0].ports[0].containerPort: Required value"},
		{"no containers", "metadata: {name: sim}\nspec: {tasks: [{name: a, replicas: 1}]}", "spec.tasks[0].template.spec.containers: Required value"},
		{"a volume mount without a volume", sim("", "", "volumeMounts: [{name: v, mountPath: /v}],"),
			`spec.tasks[0].template.spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"requests above limits", sim("", "", "resources: {requests: {cpu: 2}, limits: {cpu: 1}},"),
			`spec.tasks[0].template.spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{"half a CPU on a NUMA node", sim("", "topologyPolicy: restricted,", "resources: {requests: {cpu: 1500m}},"),
			`spec.tasks[0].template.spec.containers[0].resources.requests[cpu]: Invalid value: "1500m": the cpu request isn't  an integer: a task with a topologyPolicy needs whole CPUs, at least 1 for each container`},
		{"whole CPUs by their limit", sim("", "topologyPolicy: restricted,", "resources: {limits: {cpu: 2}},"), ""},
		{"no NUMA policy", sim("", "topologyPolicy: none,", ""), ""},
		{"partitions that do not fill the task", sim("", "partitionPolicy: {totalPartitions: 2, partitionSize: 2},", ""),
			`spec.tasks[0].partitionPolicy: Invalid value: "2 × 2": 'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: sim: they are 3`},
		{"a gang above all replicas", sim("minAvailable: 4,", "", ""), "spec.minAvailable: Invalid value: 4: job 'minAvailable' should not be greater than total replicas in tasks, which is 3"},
		{"a name that makes those of pods too long", strings.Replace(sim("", "", ""), "name: a,", "name: "+strings.Repeat("a", 64)+",", 1),
			`spec.tasks[0].name: Invalid value: "` + strings.Repeat("a", 64) + `": must be no more than 63 characters`},
		{"a plugin that is none", sim("plugins: {dance: []},", "", ""), `spec.plugins: Invalid value: "dance": unable to find job plugin: dance`},
		{"a volume at no place", sim("volumes: [{mountPath: '', volumeClaimName: v}],", "", ""), "spec.volumes[0].mountPath: Required value: mountPath is required"},
		{"two volumes at one place", sim("volumes: [{mountPath: /a, volumeClaimName: v}, {mountPath: /a, volumeClaimName: w}],", "", ""),
			`spec.volumes[1].mountPath: Duplicate value: "/a"`},
		{"a volume without a claim", sim("volumes: [{mountPath: /a}],", "", ""), "spec.volumes[0]: Required value: either VolumeClaim or VolumeClaimName must be specified: one to be made, or one that exists"},
		{"a volume with two claims", sim("volumes: [{mountPath: /a, volumeClaimName: v, volumeClaim: {}}],", "", ""),
			`spec.volumes[0].volumeClaimName: Invalid value: "v": conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName`},
		{"a claim that is no name", sim("volumes: [{mountPath: /a, volumeClaimName: V_}],", "", ""), `spec.volumes[0].volumeClaimName: Invalid value: "V_"`},
		{"a queue that is not there", sim("queue: nowhere,", "", ""), `spec.queue: Not found: "nowhere"`},
		{"a closed queue", sim("queue: closed,", "", ""), "spec.queue: Forbidden: can only submit job to queue with state `Open`, queue `closed` status is `Closed`: it takes no jobs"},
		{"a queue that is closing", sim("queue: closing,", "", ""), "spec.queue: Forbidden: can only submit job to queue with state `Open`, queue `closing` status is `Closing`: it takes no jobs"},
		{"a queue for other namespaces", sim("queue: theirs,", "", ""), "spec.queue: Forbidden: queue theirs is for some namespaces only, and lab is not one of them; they are in its annotation scheduling.volcano.sh/queue-namespaces"},
		{"a queue for this namespace", sim("queue: ours,", "", ""), ""},
		{"a queue that nobody has seen yet", sim("queue: young,", "", ""), ""},
		{"the queue root", sim("queue: root,", "", ""), "spec.queue: Forbidden: can not submit job to root queue: queue root is above all others and takes no jobs itself"},
		{"a queue with queues below it", sim("queue: company,", "", ""), "spec.queue: Forbidden: can only submit job to leaf queue, queue `company` has 1 child queues: queue company has queues below it, such as research, and takes no jobs itself"},
		{"a queue at the end of the tree", sim("queue: research,", "", ""), ""},
		{"tasks that wait for each other", sim("", "dependsOn: {name: [a]},", ""), "spec.tasks: Invalid value: \"a → a\": job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): these tasks wait for each other and could never start"},
		{"a task that waits for none", sim("", "dependsOn: {name: [b]},", ""), `spec.tasks[0].dependsOn.name[0]: Not found: "b"`},
		{"retries below zero, left to the schema", sim("maxRetry: -1,", "", ""), ""},
		{"two things at once, in order", sim("queue: nowhere, minAvailable: 4,", "", ""),
			`[spec.minAvailable: Invalid value: 4: job 'minAvailable' should not be greater than total replicas in tasks, which is 3, spec.queue: Not found: "nowhere": unable to find job queue: queue.scheduling.volcano.sh "nowhere" not found]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, jobQueues(t), nil)
			got := refusal(ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Create, namespace: "lab", object: test.job}))
			if test.want == "" && got != "" || test.want != "" && !strings.HasPrefix(got, invalid+test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWhatHasNoEffectIsToldWithoutRefusing(t *testing.T) {
	_, handler := newServer(t, jobQueues(t), nil)
	response := ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Create,
		object: sim("policies: [{event: PodFailed, action: ResumeJob}],", "", "")})
	want := []string{"spec.policies[0].action has no effect yet: the Job runs as if it were not there"}
	if diff := cmp.Diff(want, response.Warnings); diff != "" || !response.Allowed {
		t.Errorf("allowed: %t, warnings (-want +got):\n%s", response.Allowed, diff)
	}
}

func TestOfAJobOnlySizesMayChange(t *testing.T) {
	before := `{metadata: {name: sim}, spec: {minAvailable: 2, queue: default, schedulerName: volcano, plugins: {env: []},
  policies: [{event: PodFailed, action: RestartJob}], volumes: [{mountPath: /a, volumeClaim: {}}],
  tasks: [{name: a, replicas: 3, minAvailable: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}}`
	for _, test := range []struct{ name, from, to, want string }{
		{"nothing", "sim", "sim", ""},
		{"the gang", "{minAvailable: 2", "{minAvailable: 3", ""},
		{"replicas", "replicas: 3", "replicas: 7", ""},
		{"a task's minimum", "minAvailable: 1", "minAvailable: 2", ""},
		{"the priority class", "spec: {minAvailable", "spec: {priorityClassName: high, minAvailable", ""},
		{"the name of the claim that was made", "mountPath: /a,", "mountPath: /a, volumeClaimName: sim-pvc-1,", ""},
		{"replicas below the minimum", "replicas: 3", "replicas: 0", "spec.tasks[0].minAvailable: Invalid value: 1: 'minAvailable' is greater than 'replicas' in task: a, job: sim: it has only 0"},
		{"replicas below zero", "replicas: 3", "replicas: -1", "spec.tasks[0].replicas: Invalid value: -1: 'replicas' < 0 in task: a, job: sim"},
		{"a gang above all replicas", "{minAvailable: 2", "{minAvailable: 4", "spec.minAvailable: Invalid value: 4: job 'minAvailable' should not be greater than total replicas in tasks, which is 3"},
		{"the queue", "queue: default", "queue: research", "spec.queue: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"the scheduler", "schedulerName: volcano", "schedulerName: other", "spec.schedulerName: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"a plugin", "{env: []}", "{svc: []}", "spec.plugins: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"a policy", "RestartJob", "AbortJob", "spec.policies: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"a volume", "mountPath: /a", "mountPath: /b", "spec.volumes: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"success", "spec: {minAvailable", "spec: {minSuccess: 1, minAvailable", "spec.minSuccess: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"the topology", "spec: {minAvailable", "spec: {networkTopology: {mode: soft}, minAvailable", "spec.networkTopology: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"another task", "tasks: [", "tasks: [{name: b, replicas: 1}, ", "spec.tasks: Forbidden: job updates may not add or remove tasks: they cannot be changed after creation"},
		{"a task's name", "{name: a,", "{name: b,", "spec.tasks[0].name: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"the image", "image: i", "image: j", "spec.tasks[0].template: Forbidden: job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: this one cannot be changed after creation"},
		{"a task's policies", "replicas: 3", "replicas: 3, policies: [{event: PodFailed, action: AbortJob}]", "spec.tasks[0].policies: Forbidden"},
		{"what a task waits for", "replicas: 3", "replicas: 3, dependsOn: {name: []}", "spec.tasks[0].dependsOn: Forbidden"},
		{"partitions", "replicas: 3", "replicas: 3, partitionPolicy: {totalPartitions: 3, partitionSize: 1}", "spec.tasks[0].partitionPolicy: Forbidden"},
		{"the NUMA policy", "replicas: 3", "replicas: 3, topologyPolicy: none", "spec.tasks[0].topologyPolicy: Forbidden"},
		{"anything of a Job that goes", "image: i", "image: j}]}}}]}, metadata: {name: sim, deletionTimestamp: '2026-01-01T00:00:00Z'}, x: {y: [{z: {z: {z: [{z: a", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(before, test.from) {
				t.Fatalf("%q is not in the Job", test.from)
			}
			after := strings.Replace(before, test.from, test.to, 1)
			if strings.Contains(after, "deletionTimestamp") {
				after = strings.Replace(before, "name: sim", "name: sim, deletionTimestamp: '2026-01-01T00:00:00Z'", 1)
				after = strings.Replace(after, "image: i", "image: j", 1)
			}
			_, handler := newServer(t, jobQueues(t), nil)
			got := refusal(ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Update, object: after, before: before}))
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAJobIsWrittenDownAsTheControllerReadsIt(t *testing.T) {
	for _, test := range []struct{ name, job, want string }{
		{"all that is open", "{metadata: {name: sim}, spec: {tasks: [{replicas: 2}, {name: b, replicas: 3, minAvailable: 1}]}}",
			"{schedulerName: volcano, queue: default, maxRetry: 3, minAvailable: 3, tasks: [{name: default0, replicas: 2, minAvailable: 2, maxRetry: 3}, {name: b, replicas: 3, minAvailable: 1, maxRetry: 3}]}"},
		{"nothing that is said", "{metadata: {name: sim}, spec: {schedulerName: other, queue: q, maxRetry: 1, minAvailable: 1, tasks: [{name: a, replicas: 2, minAvailable: 0, maxRetry: 9}]}}",
			"{schedulerName: other, queue: q, maxRetry: 1, minAvailable: 1, tasks: [{name: a, replicas: 2, minAvailable: 0, maxRetry: 9}]}"},
		{"the minimum of partitions", "{metadata: {name: sim}, spec: {tasks: [{name: a, replicas: 6, partitionPolicy: {totalPartitions: 3, partitionSize: 2, minPartitions: 2}}]}}",
			"{schedulerName: volcano, queue: default, maxRetry: 3, minAvailable: 4, tasks: [{name: a, replicas: 6, minAvailable: 4, maxRetry: 3, partitionPolicy: {totalPartitions: 3, partitionSize: 2, minPartitions: 2}}]}"},
		{"how peers are found on the network of the node", "{metadata: {name: sim}, spec: {tasks: [{name: a, template: {spec: {hostNetwork: true}}}]}}",
			"{schedulerName: volcano, queue: default, maxRetry: 3, tasks: [{name: a, minAvailable: 0, maxRetry: 3, template: {spec: {hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}}}]}"},
		{"the plugins that others need", "{metadata: {name: sim}, spec: {plugins: {mpi: [--master=a]}, tasks: [{name: a}]}}",
			"{schedulerName: volcano, queue: default, maxRetry: 3, plugins: {mpi: [--master=a], svc: [], ssh: []}, tasks: [{name: a, minAvailable: 0, maxRetry: 3}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, handler := newServer(t, jobQueues(t), nil)
			request := asked{path: "/jobs/mutate", operation: admissionv1.Create, object: test.job}
			got := patched[batch.Job](t, request, ask(t, handler, request))
			var want batch.JobSpec
			if err := yaml.UnmarshalStrict([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAManifestAppliedAgainChangesNothingThatCannotChange(t *testing.T) {
	manifest := "{metadata: {name: sim}, spec: {plugins: {mpi: [--master=default0]}, tasks: [{replicas: 2, template: {spec: {hostNetwork: true}}}, {name: b}]}}"
	_, handler := newServer(t, jobQueues(t), nil)
	request := asked{path: "/jobs/mutate", operation: admissionv1.Create, object: manifest}
	stored := patched[batch.Job](t, request, ask(t, handler, request))
	before, err := yaml.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	request = asked{path: "/jobs/mutate", operation: admissionv1.Update, object: manifest, before: string(before)}
	again := patched[batch.Job](t, request, ask(t, handler, request))
	for i := range stored.Spec.Tasks { // sizes and retries may change, and these follow the replicas
		stored.Spec.Tasks[i].MinAvailable, stored.Spec.Tasks[i].MaxRetry = nil, 0
	}
	stored.Spec.MinAvailable, stored.Spec.MaxRetry = 0, 0
	if diff := cmp.Diff(stored.Spec, again.Spec); diff != "" {
		t.Errorf("applied again (-stored +got):\n%s", diff)
	}

	// A Job of the time before the webhook has no such names, and gets none.
	request = asked{path: "/jobs/mutate", operation: admissionv1.Update, object: manifest, before: manifest}
	if response := ask(t, handler, request); len(response.Patch) > 2 {
		t.Errorf("an update of what was never written down is patched with %s", response.Patch)
	}
}

func TestAPatchNamesOnlyWhatItChanges(t *testing.T) {
	_, handler := newServer(t, jobQueues(t), nil)
	response := ask(t, handler, asked{path: "/jobs/mutate", operation: admissionv1.Create,
		object: "{metadata: {name: sim}, spec: {newField: 1, schedulerName: volcano, queue: q, minAvailable: 2, maxRetry: 1, tasks: [{name: a, replicas: 2, minAvailable: 2, future: {a: b}}]}}"})
	if want := `[{"op":"add","path":"/spec/tasks/0/maxRetry","value":3}]`; string(response.Patch) != want {
		t.Errorf("the patch is %s, want %s", response.Patch, want)
	}
}

func TestBeforeAJobIsRefusedTheAPIServerItselfIsAsked(t *testing.T) {
	s, handler := newServer(t, &shelf{}, nil) // the cache has not seen a queue yet
	s.live = jobQueues(t)
	if got := refusal(ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Create, object: sim("", "", "")})); got != "" {
		t.Errorf("refused by an old cache: %s", got)
	}
	if got := refusal(ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Create, object: sim("queue: closed,", "", "")})); got == "" {
		t.Error("admitted to a closed queue")
	}
}

func TestAnErrorCountsAsNoAnswer(t *testing.T) {
	broken := &shelf{err: errors.New("no way to the API server")}
	_, handler := newServer(t, broken, nil)
	response := ask(t, handler, asked{path: "/jobs/validate", operation: admissionv1.Create, object: sim("", "", "")})
	if want := "/jobs/validate could not answer: listing queues: no way to the API server"; refusal(response) != want {
		t.Errorf("got %q, want %q", refusal(response), want)
	}
	group := "{metadata: {name: g}, spec: {queue: default}}"
	for _, path := range []string{"/podgroups/validate", "/podgroups/mutate"} {
		response := ask(t, handler, asked{path: path, operation: admissionv1.Create, object: group})
		if !response.Allowed || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "no way to the API server") {
			t.Errorf("%s: allowed %t with %q", path, response.Allowed, response.Warnings)
		}
	}
}

func TestPodGroupsAndPodsAreJudged(t *testing.T) {
	pod := func(annotations, scheduler string) string {
		return fmt.Sprintf("{metadata: {name: p, annotations: {%s}}, spec: {schedulerName: %s}}", annotations, scheduler)
	}
	const min, max = scheduling.JDBMinAvailableKey, scheduling.JDBMaxUnavailableKey
	const must = "a number of pods from 1 up, or a percentage from 1% to 99%"
	type row struct{ path, object, want string }
	rows := []row{
		{"/podgroups/validate", "{metadata: {name: g}, spec: {queue: default}}", ""},
		{"/podgroups/validate", "{metadata: {name: g}}", ""},
		{"/podgroups/validate", "{metadata: {name: g}, spec: {queue: nowhere}}", `PodGroup.scheduling.volcano.sh "g" is invalid: spec.queue: Not found: "nowhere"`},
		{"/podgroups/validate", "{metadata: {name: g}, spec: {queue: closed}}", "spec.queue: Forbidden: can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`: it takes no jobs"},
		{"/podgroups/validate", "{metadata: {name: g}, spec: {networkTopology: {highestTierAllowed: 1, highestTierName: rack}}}",
			`spec.networkTopology: Invalid value: "rack": must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other`},
		{"/podgroups/validate", "{metadata: {name: g}, spec: {subGroupPolicy: [{}, {networkTopology: {highestTierAllowed: 1, highestTierName: rack}}]}}",
			`spec.subGroupPolicy[1].networkTopology: Invalid value: "rack": in subGroupPolicy '': must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other`},
		{"/pods/validate", pod(min+": '1', "+max+": '1'", "volcano"), `Pod "p" is invalid: metadata.annotations: Forbidden: not allow configure multiple annotations <[` + min + " " + max + "]> at same time"},
		{"/pods/validate", pod(min+": '0'", "third"), ""},
	}
	for value, fine := range map[string]bool{"1": true, "20": true, "1%": true, "99%": true, "0": false, "-1": false, "0%": false, "100%": false,
		"": false, "half": false, "5%%": false, "1.5": false, "9999999999999999999999": false, "00": false, "1%5": false} {
		for _, key := range []string{min, max} {
			volcano := "it must be a positive integer"
			if strings.Contains(value, "%") {
				volcano = "it must be a valid percentage which between 1% ~ 99%"
			}
			want := fmt.Sprintf("metadata.annotations[%s]: Invalid value: %q: invalid value <%q> for %s, %s: %s", key, value, value, key, volcano, must)
			if fine {
				want = ""
			}
			rows = append(rows, row{"/pods/validate", pod(key+": '"+value+"'", "other"), want})
		}
	}
	_, handler := newServer(t, jobQueues(t), nil)
	for _, test := range rows {
		got := refusal(ask(t, handler, asked{path: test.path, operation: admissionv1.Create, namespace: "lab", object: test.object}))
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s %s:\ngot  %s\nwant %s", test.path, test.object, got, test.want)
		}
	}
}

func TestAPodGroupWithoutAQueueTakesThatOfItsNamespace(t *testing.T) {
	shown := &shelf{namespaces: map[string]map[string]string{"lab": {scheduling.QueueNameAnnotationKey: "research"}, "plain": nil}}
	_, handler := newServer(t, shown, nil)
	for _, test := range []struct{ namespace, spec, want string }{
		{"lab", "{}", "research"}, {"lab", "{queue: default}", "research"}, {"lab", "{queue: other}", "other"},
		{"plain", "{queue: default}", "default"}, {"plain", "{}", "default"},
	} {
		request := asked{path: "/podgroups/mutate", operation: admissionv1.Create, namespace: test.namespace, object: "{metadata: {name: g}, spec: " + test.spec + "}"}
		if got := patched[scheduling.PodGroup](t, request, ask(t, handler, request)).Spec.Queue; got != test.want {
			t.Errorf("in %s %s becomes queue %s, want %s", test.namespace, test.spec, got, test.want)
		}
	}
}

func TestAnUpdateThatEmptiesTheQueueOfAPodGroup(t *testing.T) {
	shown := &shelf{namespaces: map[string]map[string]string{"lab": {scheduling.QueueNameAnnotationKey: "research"}, "plain": nil}}
	_, handler := newServer(t, shown, nil)
	for _, test := range []struct{ namespace, before, after, want string }{
		{"lab", "{queue: research}", "{}", "research"}, {"lab", "{queue: other}", "{queue: default}", "research"}, {"lab", "{queue: research}", "{queue: other}", "other"},
		{"lab", "{queue: default}", "{queue: default, minMember: 2}", "default"}, // it was there before the namespace named another
		{"plain", "{queue: other}", "{}", "default"},
	} {
		request := asked{path: "/podgroups/mutate", operation: admissionv1.Update, namespace: test.namespace, object: "{metadata: {name: g}, spec: " + test.after + "}",
			before: "{metadata: {name: g}, spec: " + test.before + "}"}
		if got := patched[scheduling.PodGroup](t, request, ask(t, handler, request)).Spec.Queue; got != test.want {
			t.Errorf("in %s %s becomes queue %s, want %s", test.namespace, test.after, got, test.want)
		}
	}
}

func TestAPodOfNoResourceGroupStaysAsItIs(t *testing.T) {
	groups, err := parseGroups([]byte("resourceGroups: [{resourceGroup: gold, labels: {tier: gold}}]"))
	if err != nil {
		t.Fatal(err)
	}
	_, handler := newServer(t, &shelf{}, func(s *settings) { s.groups = groups })
	for annotations, want := range map[string]int{"{}": 0, "{volcano.sh/resource-group: gold}": 1} {
		request := asked{path: "/pods/mutate", operation: admissionv1.Create, object: "{metadata: {name: p, annotations: " + annotations + "}}"}
		if got := patched[corev1.Pod](t, request, ask(t, handler, request)); len(got.Spec.NodeSelector) != want {
			t.Errorf("%s: nodes %v", annotations, got.Spec.NodeSelector)
		}
	}
}

// The schema would refuse it, too, in other words than Volcano's: so it is refused where defaults are set, which is
// before.
func TestVolumesInOnePlaceAreRefusedBeforeTheSchemaIsAsked(t *testing.T) {
	_, handler := newServer(t, jobQueues(t), nil)
	got := refusal(ask(t, handler, asked{path: "/jobs/mutate", operation: admissionv1.Create, namespace: "lab",
		object: sim("volumes: [{mountPath: /a, volumeClaimName: c}, {mountPath: /b, volumeClaimName: c}, {mountPath: /a, volumeClaimName: d}],", "", "")}))
	if want := `spec.volumes[2].mountPath: Duplicate value: "/a": duplicated mountPath: /a`; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
