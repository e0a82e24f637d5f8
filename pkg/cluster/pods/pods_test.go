package pods_test

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/fixture"
)

// largePod has a bit of everything.
func largePod() *corev1.Pod {
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	always := corev1.ContainerRestartPolicyAlways
	container := corev1.Container{
		Name: "main", Image: "image", Command: []string{"run"}, Args: []string{"fast"},
		Env:           []corev1.EnvVar{{Name: "SECRET", Value: "1"}},
		Ports:         []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}},
		Resources:     corev1.ResourceRequirements{Requests: amount},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		RestartPolicy: &always,
	}
	status := corev1.ContainerStatus{Name: "main", ImageID: "sha", AllocatedResources: amount,
		Resources: &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
		State:     corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "scheduling.k8s.io/group-name": "g"},
			Labels:      map[string]string{"app": "a"},
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{container}, Containers: []corev1.Container{container},
			NodeName: "node", SchedulerName: "volcano", ServiceAccountName: "default", Overhead: amount,
			Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{status},
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestWhatDecisionsReadOfAPodStays(t *testing.T) {
	for name, keep := range map[string]func(*corev1.Pod) *pods.Pod{
		"alone":      pods.New,
		"in a table": func(pod *corev1.Pod) *pods.Pod { return pods.NewTable().Of(pod, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			before := largePod()
			kept := keep(before).Object()
			if diff := cmp.Diff(largePod(), before); diff != "" {
				t.Errorf("the object was changed (-before +after):\n%s", diff)
			}
			want := before.DeepCopy()
			want.ManagedFields = nil
			delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
			for _, containers := range [][]corev1.Container{want.Spec.InitContainers, want.Spec.Containers} {
				c := &containers[0]
				c.Command, c.Args, c.Env, c.VolumeMounts = nil, nil, nil, nil
			}
			want.Spec.ServiceAccountName, want.Spec.Volumes = "", want.Spec.Volumes[1:]
			want.Status.PodIP, want.Status.Conditions = "", want.Status.Conditions[:1]
			want.Status.ContainerStatuses[0].ImageID, want.Status.ContainerStatuses[0].State = "", corev1.ContainerState{}
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept, keep(kept).Object()); diff != "" {
				t.Errorf("kept twice (-once +twice):\n%s", diff)
			}
		})
	}
}

// drawPod draws a state of one of few pods, so that pods and states are often alike in much.
func drawPod(t *rapid.T) *corev1.Pod {
	pod := fixture.LivePod(rapid.IntRange(0, 2).Draw(t, "job"), rapid.IntRange(0, 2).Draw(t, "index"))
	yes := func(what string) bool { return rapid.Bool().Draw(t, what) }
	amount := func(what string) resource.Quantity {
		return resource.MustParse(rapid.SampledFrom([]string{"1", "1000m", "2", "1e2000000000"}).Draw(t, what))
	}
	if yes("bound") {
		pod = fixture.LiveOn(pod, rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"))
	}
	if yes("running") {
		pod = fixture.LiveRunning(pod)
		if yes("resized") {
			c := &pod.Status.ContainerStatuses[0]
			c.Resources.Requests[corev1.ResourceCPU] = amount("actual")
			if yes("allocated") {
				c.AllocatedResources[corev1.ResourceCPU] = amount("allocated")
			}
		}
		if yes("resize refused") {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible})
		}
	}
	if yes("spec changed") {
		pod.Generation++
		pod.Spec.Tolerations = pod.Spec.Tolerations[:1]
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = amount("requested")
	}
	if yes("not counted") {
		pod.Generation = 0
	}
	if yes("relabelled") {
		pod.Labels["app"], pod.Annotations[corev1.LastAppliedConfigAnnotation] = "a", "{}"
	}
	if yes("made again") {
		pod.UID += "-again"
	}
	if yes("leaving") {
		pod = fixture.LiveLeaving(pod)
	}
	if yes("has a claim") {
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "a", ResourceClaimName: new("b")}}
	}
	return pod
}

func TestATableShowsNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own, foreign, known := pods.NewTable(), pods.NewTable(), map[string][2]*pods.Pod{}
		own.OwnsObjects = true
		var shown, want []*corev1.Pod
		t.Repeat(map[string]func(*rapid.T){"": func(t *rapid.T) {
			pod := drawPod(t)
			before := known[pod.Name]
			now := [2]*pods.Pod{own.Of(pod.DeepCopy(), before[0]), foreign.Of(pod, before[1])}
			known[pod.Name] = now
			shown = append(shown, now[0].Object(), now[1].Object())
			alone := pods.New(pod).Object()
			want = append(want, alone, alone.DeepCopy())
			if diff := cmp.Diff(want, shown); diff != "" {
				t.Fatalf("all states so far (-alone +table):\n%s", diff)
			}
			options := resourcehelper.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
			clamped := pod.DeepCopy()
			for _, c := range clamped.Spec.Containers {
				resources.Clamp(c.Resources.Requests)
			}
			for _, c := range clamped.Status.ContainerStatuses {
				resources.Clamp(c.AllocatedResources, c.Resources.Requests)
			}
			asked, kept := resourcehelper.PodRequests(clamped, options), resourcehelper.PodRequests(alone, options)
			if !equality.Semantic.DeepEqual(asked, kept) {
				t.Fatalf("the pod requests %v, and what is kept of it %v", asked, kept)
			}
		}})
	})
}

func TestWhatIsEqualIsKeptOnce(t *testing.T) {
	table := pods.NewTable()
	table.OwnsObjects = true
	first, second := table.Of(fixture.LivePod(1, 1), nil), table.Of(fixture.LivePod(1, 2), nil)
	if first.Template != second.Template || !first.RequestsAlike(second) || &first.OwnerReferences[0] != &second.OwnerReferences[0] {
		t.Error("pods of one job share no template or owner")
	}
	if other := table.Of(fixture.LivePod(2, 1), nil); other.Template == first.Template || other.RequestsAlike(first) {
		t.Error("pods of two jobs share a template")
	}
	last := first
	for _, pod := range []*corev1.Pod{fixture.LiveOn(fixture.LivePod(1, 1), "n"), fixture.LiveRunning(fixture.LiveOn(fixture.LivePod(1, 1), "n"))} {
		now := table.Of(pod, last)
		if now.Template != first.Template || unsafe.StringData(string(now.UID)) != unsafe.StringData(string(first.UID)) ||
			reflect.ValueOf(now.Labels).Pointer() != reflect.ValueOf(first.Labels).Pointer() {
			t.Errorf("a later state shares nothing: %v", now)
		}
		last = now
	}
	leaving := last.DeepCopy()
	leaving.Status.Conditions = append(leaving.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	last = table.Of(leaving, last)
	if beat := table.Of(fixture.LiveBeat(last.DeepCopy()), last); beat.Template != last.Template || &beat.Status.Conditions[0] != &last.Status.Conditions[0] {
		t.Error("a heartbeat shares nothing with the state before")
	}
}

// When a pod got its node and when it started is kept, in less memory than the API's objects take.
func TestTimesAreKept(t *testing.T) {
	bound, started := metav1.NewTime(fixture.Birth.Add(time.Minute)), metav1.NewTime(fixture.Birth.Add(2*time.Minute))
	pod := fixture.Pod("a", fixture.On("n"), func(p *corev1.Pod) {
		p.Status.StartTime = &started
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: bound}}
	})
	kept := pods.New(pod)
	if at, ok := kept.Status.Scheduled(); !ok || !at.Equal(bound.Time) || len(kept.Status.Conditions) != 0 {
		t.Errorf("it got its node at %v, %v; conditions %v", at, ok, kept.Status.Conditions)
	}
	if at, ok := kept.Status.Started(); !ok || !at.Equal(started.Time) {
		t.Errorf("it started at %v, %v", at, ok)
	}
	if again := kept.Object(); !again.Status.StartTime.Equal(&started) || len(again.Status.Conditions) != 1 ||
		!again.Status.Conditions[0].LastTransitionTime.Equal(&bound) || again.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("its object has the status %v", again.Status)
	}
	pod.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}}
	waits := pods.New(pod)
	if _, ok := waits.Status.Scheduled(); ok || len(waits.Status.Conditions) != 1 {
		t.Errorf("a pod without a node has the status %v", waits.Status)
	}
	if _, ok := waits.Status.Started(); ok {
		t.Error("a pod without a node has started")
	}
}

func TestTheEndOfAPodIsKept(t *testing.T) {
	ended := metav1.NewTime(fixture.Birth.Add(time.Hour))
	pod := fixture.Pod("a", fixture.On("n"), func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ended}}}}
	})
	kept := pods.New(pods.New(pod).Object())
	if at, ok := kept.Status.Ended(); !ok || !at.Equal(ended.Time) {
		t.Errorf("it ended at %v, %v", at, ok)
	}
	pod.Status.Phase = corev1.PodRunning // and the container starts again
	if at, ok := pods.New(pod).Status.Ended(); ok {
		t.Errorf("a pod that runs ended at %v", at)
	}
}

func TestATableDoesNotGrowWithoutBounds(t *testing.T) {
	table := pods.NewTable()
	first := table.Of(fixture.LivePod(0, 0), nil)
	for job := range 5_000 {
		table.Of(fixture.LivePod(job+1, 0), nil)
	}
	if table.Of(fixture.LivePod(0, 0), nil).Template == first.Template {
		t.Error("5,000 templates are known")
	}
}
