package job

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func TestPoliciesThatCannotBeFollowedAreRefusedByFieldAndValue(t *testing.T) {
	both := onEvent(bus.AbortJobAction, bus.PodFailedEvent)
	both.ExitCode = pointer[int32](3)
	for _, test := range []struct {
		name     string
		policies batch.LifecyclePolicies
		want     string
	}{
		{"fine", batch.LifecyclePolicies{
			{Action: bus.AbortJobAction, Event: bus.PodFailedEvent, Events: []bus.Event{bus.PodEvictedEvent}},
			onExitCode(bus.RestartJobAction, 3), onExitCode(bus.RestartJobAction, 4),
			after(time.Hour, onEvent(bus.AbortJobAction, bus.PodPendingEvent)),
		}, ""},
		{"pending for no time", batch.LifecyclePolicies{onEvent(bus.AbortJobAction, bus.PodPendingEvent)}, ""},
		{"no event", batch.LifecyclePolicies{{Action: bus.AbortJobAction}}, "policies[0].event: Required value"},
		{"both", batch.LifecyclePolicies{both}, "policies[0].exitCode: Invalid value: 3: must not specify event and exitCode simultaneously"},
		{"an unknown action", batch.LifecyclePolicies{onEvent("Dance", bus.PodFailedEvent)}, `policies[0].action: Invalid value: "Dance": invalid policy action`},
		{"an internal action", batch.LifecyclePolicies{onEvent(bus.SyncJobAction, bus.PodFailedEvent)}, `policies[0].action: Invalid value: "SyncJob": invalid policy action`},
		{"an internal event", batch.LifecyclePolicies{onEvent(bus.AbortJobAction, bus.OutOfSyncEvent)}, `policies[0].event: Invalid value: "OutOfSync": invalid policy event`},
		{"success", batch.LifecyclePolicies{onExitCode(bus.AbortJobAction, 0)}, "policies[0].exitCode: Invalid value: 0"},
		{"an event twice", batch.LifecyclePolicies{onEvent(bus.AbortJobAction, bus.PodFailedEvent), onEvent(bus.RestartJobAction, bus.PodFailedEvent)},
			`policies[1].event: Duplicate value: "PodFailed"`},
		{"an exit code twice", batch.LifecyclePolicies{onExitCode(bus.AbortJobAction, 3), onExitCode(bus.RestartJobAction, 3)},
			`policies[1].exitCode: Duplicate value: "3"`},
		{"all events and one", batch.LifecyclePolicies{onEvent(bus.AbortJobAction, bus.AnyEvent), onEvent(bus.RestartJobAction, bus.PodFailedEvent)},
			`policies: Invalid value: "*"`},
		{"a negative timeout", batch.LifecyclePolicies{after(-time.Second, onEvent(bus.AbortJobAction, bus.PodFailedEvent))},
			`policies[0].timeout: Invalid value: "-1s"`},
	} {
		for _, ofTask := range []bool{false, true} {
			job, prefix := jobOf(task("a", 1, "")), "spec."
			if ofTask {
				job.Spec.Tasks[0].Policies, prefix = test.policies, "spec.tasks[0]."
			} else {
				job.Spec.Policies = test.policies
			}
			problems := Validate(job)
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
		job := jobOf(task("a", 1, ""))
		at := &job.Spec.Policies
		if ofTask {
			at = &job.Spec.Tasks[0].Policies
		}
		*at = batch.LifecyclePolicies{twice}
		if problems := Validate(job); len(problems) > 0 {
			t.Errorf("of a task %t: %v", ofTask, problems)
		}
		*at = batch.LifecyclePolicies{twice, onEvent(bus.RestartJobAction, bus.PodFailedEvent)}
		if problems := Validate(job); len(problems) != 1 || !strings.Contains(problems[0].Error(), "duplicate event PodFailed  across different policy") {
			t.Errorf("of a task %t, in two policies: %v", ofTask, problems)
		}
	}
}

func TestVolumesAndPartitionsAreRefusedByFieldAndValue(t *testing.T) {
	partitioned := func(total, size, minimum, minAvailable int32) *batch.Job {
		a := withMin(task("a", 4, ""), minAvailable)
		a.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: total, PartitionSize: size, MinPartitions: minimum}
		return jobOf(a)
	}
	mounting := func(volumes ...batch.VolumeSpec) *batch.Job {
		job := jobOf(task("a", 1, ""))
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
		problems := Validate(test.job)
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.want)) {
			t.Errorf("got %v, want %q", problems, test.want)
		}
	}
}

func TestNoSpecHoweverBadStopsTheController(t *testing.T) {
	name := rapid.SampledFrom([]string{"", "a", "b", "B_", strings.Repeat("x", 70)})
	number := rapid.Int32Range(-3, 5)
	rapid.Check(t, func(t *rapid.T) {
		stored := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "sim", UID: "1f2e"}}
		stored.Spec.MinAvailable = number.Draw(t, "minAvailable")
		for range rapid.IntRange(0, 3).Draw(t, "tasks") {
			task := batch.TaskSpec{Name: name.Draw(t, "name"), Replicas: number.Draw(t, "replicas"), MaxRetry: number.Draw(t, "maxRetry")}
			if rapid.Bool().Draw(t, "has minimum") {
				task.MinAvailable = pointer(number.Draw(t, "minimum"))
			}
			if rapid.Bool().Draw(t, "depends") {
				task.DependsOn = &batch.DependsOn{Name: rapid.SliceOfN(name, 0, 3).Draw(t, "on")}
			}
			if rapid.Bool().Draw(t, "divided") {
				task.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: number.Draw(t, "total"), PartitionSize: number.Draw(t, "size"),
					MinPartitions: number.Draw(t, "minimum of partitions")}
			}
			stored.Spec.Tasks = append(stored.Spec.Tasks, task)
		}
		for range rapid.IntRange(0, 2).Draw(t, "volumes") {
			stored.Spec.Volumes = append(stored.Spec.Volumes, batch.VolumeSpec{MountPath: name.Draw(t, "path"), VolumeClaimName: name.Draw(t, "claim")})
		}
		stored.Status.State.Phase = rapid.SampledFrom(allPhases).Draw(t, "phase")
		job := defaulted(stored, "volcano")
		if problems := Validate(job); len(problems) > 0 {
			observe(job, nil, nil, trouble{ReasonInvalidSpec, problems.ToAggregate().Error()}, noon)
			observe(job, nil, nil, trouble{}, noon)
			return
		}
		(&machine{job: job, group: groupIn("Inqueue", ""), now: noon}).reconcile(t, bus.AbortJobAction, false)
	})
}

func TestAJobOfMorePodsThanAnyClusterHoldsIsRefusedWithTheTaskThatIsTooMuch(t *testing.T) {
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
			tasks = append(tasks, task("task-"+strconv.Itoa(i), replicas, ""))
		}
		problems := Validate(jobOf(tasks...))
		switch {
		case test.want == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case test.want != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), test.want)):
			t.Errorf("%s: %v, want %s", name, problems, test.want)
		}
	}
}
