package validation

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

func TestPoliciesThatCannotBeFollowedAreRefusedByFieldAndValue(t *testing.T) {
	both := fixture.OnEvent(bus.AbortJobAction, bus.PodFailedEvent)
	both.ExitCode = new(int32(3))
	for _, test := range []struct {
		name     string
		policies batch.LifecyclePolicies
		want     string
	}{
		{"fine", batch.LifecyclePolicies{
			{Action: bus.AbortJobAction, Event: bus.PodFailedEvent, Events: []bus.Event{bus.PodEvictedEvent}},
			fixture.OnExitCode(bus.RestartJobAction, 3), fixture.OnExitCode(bus.RestartJobAction, 4),
			fixture.After(time.Hour, fixture.OnEvent(bus.AbortJobAction, bus.PodPendingEvent)),
		}, ""},
		{"pending for no time", batch.LifecyclePolicies{fixture.OnEvent(bus.AbortJobAction, bus.PodPendingEvent)}, ""},
		{"no event", batch.LifecyclePolicies{{Action: bus.AbortJobAction}}, "policies[0].event: Required value"},
		{"both", batch.LifecyclePolicies{both}, "policies[0].exitCode: Invalid value: 3: must not specify event and exitCode simultaneously"},
		{"an unknown action", batch.LifecyclePolicies{fixture.OnEvent("Dance", bus.PodFailedEvent)}, `policies[0].action: Invalid value: "Dance": invalid policy action`},
		{"an internal action", batch.LifecyclePolicies{fixture.OnEvent(bus.SyncJobAction, bus.PodFailedEvent)}, `policies[0].action: Invalid value: "SyncJob": invalid policy action`},
		{"an internal event", batch.LifecyclePolicies{fixture.OnEvent(bus.AbortJobAction, bus.OutOfSyncEvent)}, `policies[0].event: Invalid value: "OutOfSync": invalid policy event`},
		{"success", batch.LifecyclePolicies{fixture.OnExitCode(bus.AbortJobAction, 0)}, "policies[0].exitCode: Invalid value: 0"},
		{"an event twice", batch.LifecyclePolicies{fixture.OnEvent(bus.AbortJobAction, bus.PodFailedEvent), fixture.OnEvent(bus.RestartJobAction, bus.PodFailedEvent)},
			`policies[1].event: Duplicate value: "PodFailed"`},
		{"an exit code twice", batch.LifecyclePolicies{fixture.OnExitCode(bus.AbortJobAction, 3), fixture.OnExitCode(bus.RestartJobAction, 3)},
			`policies[1].exitCode: Duplicate value: "3"`},
		{"all events and one", batch.LifecyclePolicies{fixture.OnEvent(bus.AbortJobAction, bus.AnyEvent), fixture.OnEvent(bus.RestartJobAction, bus.PodFailedEvent)},
			`policies: Invalid value: "*"`},
		{"a negative timeout", batch.LifecyclePolicies{fixture.After(-time.Second, fixture.OnEvent(bus.AbortJobAction, bus.PodFailedEvent))},
			`policies[0].timeout: Invalid value: "-1s"`},
	} {
		for _, ofTask := range []bool{false, true} {
			job, prefix := fixture.BatchJob(fixture.BatchTask("a", 1, "")), "spec."
			if ofTask {
				job.Spec.Tasks[0].Policies, prefix = test.policies, "spec.tasks[0]."
			} else {
				job.Spec.Policies = test.policies
			}
			problems := ValidateJob(job)
			switch {
			case test.want == "" && len(problems) > 0:
				t.Errorf("%s: %v", test.name, problems)
			case test.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), prefix+test.want)):
				t.Errorf("%s: %v, want %s", test.name, problems, prefix+test.want)
			}
		}
	}
}

// The events of one policy are a set, however often they are named, as in Volcano; in two policies they are a mistake.
func TestTheSameEventTwiceInOnePolicyIsMeantOnce(t *testing.T) {
	twice := batch.LifecyclePolicy{Action: bus.AbortJobAction, Event: bus.PodFailedEvent, Events: []bus.Event{bus.PodFailedEvent, bus.PodEvictedEvent, bus.PodFailedEvent}}
	for _, ofTask := range []bool{false, true} {
		job := fixture.BatchJob(fixture.BatchTask("a", 1, ""))
		at := &job.Spec.Policies
		if ofTask {
			at = &job.Spec.Tasks[0].Policies
		}
		*at = batch.LifecyclePolicies{twice}
		if problems := ValidateJob(job); len(problems) > 0 {
			t.Errorf("of a task %t: %v", ofTask, problems)
		}
		*at = batch.LifecyclePolicies{twice, fixture.OnEvent(bus.RestartJobAction, bus.PodFailedEvent)}
		if problems := ValidateJob(job); len(problems) != 1 || !strings.Contains(problems[0].Error(), "duplicate event PodFailed  across different policy") {
			t.Errorf("of a task %t, in two policies: %v", ofTask, problems)
		}
	}
}

func TestVolumesAndPartitionsAreRefusedByFieldAndValue(t *testing.T) {
	partitioned := func(total, size, minimum, minAvailable int32) *batch.Job {
		a := fixture.WithMinAvailable(fixture.BatchTask("a", 4, ""), minAvailable)
		a.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: total, PartitionSize: size, MinPartitions: minimum}
		return fixture.BatchJob(a)
	}
	mounting := func(volumes ...batch.VolumeSpec) *batch.Job {
		job := fixture.BatchJob(fixture.BatchTask("a", 1, ""))
		job.Spec.Volumes = volumes
		return job
	}
	claim := &corev1.PersistentVolumeClaimSpec{}
	for _, test := range []struct {
		job  *batch.Job
		want string
	}{
		{partitioned(2, 2, 1, 2), ""},
		{partitioned(0, 2, 0, 4), "spec.tasks[0].partitionPolicy.totalPartitions: Invalid value: 0"},
		{partitioned(2, -1, 0, 4), "spec.tasks[0].partitionPolicy.partitionSize: Invalid value: -1"},
		{partitioned(3, 2, 0, 4), `spec.tasks[0].partitionPolicy: Invalid value: "3 × 2": 'Replicas' are not equal to TotalPartitions*PartitionSize in task: a, job: sim: they are 4`},
		{partitioned(2, 2, 1, 3), "spec.tasks[0].partitionPolicy.minPartitions: Invalid value: 1: 'MinAvailable' is not equal to MinPartitions*PartitionSize in task: a, job: sim: it is 3"},
		{partitioned(2, 2, -1, 4), "spec.tasks[0].partitionPolicy.minPartitions: Invalid value: -1"},
		{mounting(batch.VolumeSpec{MountPath: "/a", VolumeClaim: claim}, batch.VolumeSpec{MountPath: "/b", VolumeClaimName: "b"}), ""},
		{mounting(batch.VolumeSpec{VolumeClaim: claim}), "spec.volumes[0].mountPath: Required value"},
		{mounting(batch.VolumeSpec{MountPath: "/a", VolumeClaim: claim}, batch.VolumeSpec{MountPath: "/a", VolumeClaimName: "b"}),
			`spec.volumes[1].mountPath: Duplicate value: "/a"`},
		{mounting(batch.VolumeSpec{MountPath: "/a"}), "spec.volumes[0]: Required value"},
		{mounting(batch.VolumeSpec{MountPath: "/a", VolumeClaimName: "No Name"}), `spec.volumes[0].volumeClaimName: Invalid value: "No Name"`},
	} {
		problems := ValidateJob(test.job)
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.want)) {
			t.Errorf("got %v, want %q", problems, test.want)
		}
	}
}

func TestAnEstimateIsRefusedThatHasPassedBeforeTheStart(t *testing.T) {
	job := fixture.BatchJob(fixture.BatchTask("a", 1, ""))
	for estimate, want := range map[time.Duration]string{0: "", time.Hour: "", -1: `spec.runningEstimate: Invalid value: "-1ns": must not be negative`} {
		job.Spec.RunningEstimate = &metav1.Duration{Duration: estimate}
		if problems := ValidateJob(job); want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || problems[0].Error() != want) {
			t.Errorf("%s: got %v, want %q", estimate, problems, want)
		}
	}
}

func TestTheMinimumOfTooManyPartitionsIsBounded(t *testing.T) {
	task := fixture.BatchTask("a", 4, "")
	task.MinAvailable, task.PartitionPolicy = nil, &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 1 << 16, MinPartitions: 1 << 16}
	job := fixture.BatchJob(task)
	batch.SetDefaults(job)
	if got := *job.Spec.Tasks[0].MinAvailable; got != math.MaxInt32 {
		t.Errorf("65536 partitions of 65536 pods have the minimum %d", got)
	}
}

func TestAJobOfTooManyPodsIsRefusedAtTheTaskThatIsTooMuch(t *testing.T) {
	const most = math.MaxInt32
	for name, test := range map[string]struct {
		replicas []int32
		want     string
	}{
		"as many as there may be":     {[]int32{400_000, 600_000}, ""},
		"one more":                    {[]int32{400_000, 600_000, 1}, "spec.tasks[2].replicas: Invalid value: 1: makes 1000001 pods"},
		"by one task":                 {[]int32{most}, "spec.tasks[0].replicas: Invalid value: 2147483647: makes 2147483647 pods"},
		"whose sum is beyond 32 bits": {[]int32{1, most, most}, "spec.tasks[1].replicas: Invalid value: 2147483647: makes 2147483648 pods"},
	} {
		var tasks []batch.TaskSpec
		for i, replicas := range test.replicas {
			tasks = append(tasks, fixture.BatchTask("task-"+strconv.Itoa(i), replicas, ""))
		}
		problems := ValidateJob(fixture.BatchJob(tasks...))
		switch {
		case test.want == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case test.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.want)):
			t.Errorf("%s: %v, want %s", name, problems, test.want)
		}
	}
}

func TestTasksThatWaitForEachOtherAreNamed(t *testing.T) {
	for want, job := range map[string]*batch.Job{
		"":        fixture.BatchJob(fixture.BatchTask("a", 1, ""), fixture.DependingOn(fixture.BatchTask("b", 1, ""), "", "a"), fixture.DependingOn(fixture.BatchTask("c", 1, ""), "", "a", "b")),
		"a a":     fixture.BatchJob(fixture.DependingOn(fixture.BatchTask("a", 1, ""), "", "a")),
		"b c d b": fixture.BatchJob(fixture.DependingOn(fixture.BatchTask("a", 1, ""), "", "b"), fixture.DependingOn(fixture.BatchTask("b", 1, ""), "", "c"), fixture.DependingOn(fixture.BatchTask("c", 1, ""), "", "d"), fixture.DependingOn(fixture.BatchTask("d", 1, ""), "", "b")),
	} {
		if got := strings.Join(dependencyCycle(job), " "); got != want {
			t.Errorf("the cycle is %q, want %q", got, want)
		}
	}
	missing := ValidateJob(fixture.BatchJob(fixture.BatchTask("a", 1, ""), fixture.DependingOn(fixture.BatchTask("b", 1, ""), "", "a", "z")))
	if len(missing) != 1 || !strings.HasPrefix(missing[0].Error(), `spec.tasks[1].dependsOn.name[1]: Not found: "z"`) {
		t.Errorf("a dependency that does not exist: %v", missing)
	}
	cyclic := ValidateJob(fixture.BatchJob(fixture.DependingOn(fixture.BatchTask("a", 1, ""), "", "b"), fixture.DependingOn(fixture.BatchTask("b", 1, ""), "", "a")))
	if len(cyclic) != 1 || !strings.Contains(cyclic[0].Error(), `"a → b → a": job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG): these tasks wait for each other`) {
		t.Errorf("a cycle: %v", cyclic)
	}
}

func TestASpecThatCannotRunIsRefusedByFieldAndValue(t *testing.T) {
	change := func(edit func(*batch.Job), tasks ...batch.TaskSpec) *batch.Job {
		job := fixture.BatchJob(tasks...)
		edit(job)
		return job
	}
	keep := func(*batch.Job) {}
	for _, test := range []struct {
		name string
		job  *batch.Job
		want []string
	}{
		{"a plain Job is fine", fixture.BatchJob(fixture.BatchTask("a", 2, "1")), nil},
		{"a Job of nothing yet is fine", fixture.BatchJob(fixture.BatchTask("a", 0, "1")), nil},
		{"no task", fixture.BatchJob(), []string{"spec.tasks: Required"}},
		{"two tasks of one name", fixture.BatchJob(fixture.BatchTask("a", 1, ""), fixture.BatchTask("a", 1, "")), []string{`spec.tasks[1].name: Duplicate value: "a"`}},
		{"negative replicas", change(keep, fixture.WithMinAvailable(fixture.BatchTask("a", -1, ""), 0)), []string{"spec.tasks[0].replicas: Invalid value: -1"}},
		{"a task's minimum above its replicas", fixture.BatchJob(fixture.WithMinAvailable(fixture.BatchTask("a", 2, ""), 3), fixture.BatchTask("b", 1, "")),
			[]string{"spec.tasks[0].minAvailable: Invalid value: 3: 'minAvailable' is greater than 'replicas' in task: a, job: sim: it has only 2"}},
		{"a negative minimum of a task", fixture.BatchJob(fixture.WithMinAvailable(fixture.BatchTask("a", 2, ""), -3), fixture.BatchTask("b", 4, "")),
			[]string{"spec.tasks[0].minAvailable: Invalid value: -3"}},
		{"a minimum above all replicas", change(func(job *batch.Job) { job.Spec.MinAvailable = 9 }, fixture.BatchTask("a", 2, ""), fixture.BatchTask("b", 1, "")),
			[]string{"spec.minAvailable: Invalid value: 9: job 'minAvailable' should not be greater than total replicas in tasks, which is 3"}},
		{"a negative minimum", change(func(job *batch.Job) { job.Spec.MinAvailable = -1 }, fixture.BatchTask("a", 2, "")),
			[]string{"spec.minAvailable: Invalid value: -1"}},
		{"a task name that is no label", fixture.BatchJob(fixture.BatchTask("A_b", 1, "")), []string{"spec.tasks[0].name: Invalid value"}},
		{"a Job name too long for a label", change(func(job *batch.Job) { job.Name = strings.Repeat("x", 64) }, fixture.BatchTask("a", 1, "")),
			[]string{"metadata.name: Invalid value"}},
		{"a queue name too long for a label", change(func(job *batch.Job) { job.Spec.Queue = strings.Repeat("q", 64) }, fixture.BatchTask("a", 1, "")),
			[]string{"spec.queue: Invalid value"}},
		{"a Job name no pod can have", change(func(job *batch.Job) { job.Name = "a..b" }, fixture.BatchTask("a", 3, "")),
			[]string{"spec.tasks[0].name: Invalid value: \"a\": create pod with name a..b-a-2 validate failed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			problems := ValidateJob(test.job)
			if len(problems) != len(test.want) {
				t.Fatalf("got %d problems, want %d: %v", len(problems), len(test.want), problems)
			}
			for i, want := range test.want {
				if got := problems[i].Error(); !strings.HasPrefix(got, want) {
					t.Errorf("problem %d is %q, want it to start with %q", i, got, want)
				}
			}
		})
	}
}

func TestEveryFieldThatIsNotHonouredIsNamed(t *testing.T) {
	job := &batch.Job{Spec: batch.JobSpec{
		Policies: batch.LifecyclePolicies{{Action: bus.AbortJobAction}, {Action: bus.ResumeJobAction}, fixture.OnEvent(bus.RestartJobAction, bus.PodPendingEvent),
			fixture.After(time.Minute, fixture.OnEvent(bus.RestartJobAction, bus.PodPendingEvent))},
		TTLSecondsAfterFinished: new(int32(60)),
		NetworkTopology:         &batch.NetworkTopologySpec{},
		Tasks: []batch.TaskSpec{
			{TopologyPolicy: batch.NumaPolicyNone, MaxRetry: 3,
				PartitionPolicy: &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2, MinPartitions: 2}},
			{
				Policies:       batch.LifecyclePolicies{{Action: bus.ResumeJobAction}},
				TopologyPolicy: batch.NumaPolicyRestricted,
				PartitionPolicy: &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2, MinPartitions: 1,
					NetworkTopology: &batch.NetworkTopologySpec{}},
			},
		},
	}}
	want := []string{
		"spec.policies[1].action", "spec.policies[2].event (PodPending without a timeout)", "spec.tasks[1].policies[0].action", "spec.tasks[1].topologyPolicy",
	}
	if got := IgnoredJobFields(job); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := IgnoredJobFields(fixture.BatchJob(fixture.BatchTask("a", 1, "1"))); got != nil {
		t.Errorf("a plain Job was said to use %v", got)
	}
}
