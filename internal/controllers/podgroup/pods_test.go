package podgroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

var (
	lonePod    = fixture.LonePod
	controlled = fixture.Controlled
)

func TestAPodGroupIsMadeForItsPods(t *testing.T) {
	t.Run("only pods that need a PodGroup get one", func(t *testing.T) {
		withScheduler := func(pod *corev1.Pod, name string) *corev1.Pod {
			pod.Spec.SchedulerName = name
			return pod
		}
		for _, test := range []struct {
			name string
			pod  *corev1.Pod
			want string
		}{
			{"a lone pod", lonePod(nil), "podgroup-p-1"},
			{"a pod of our second scheduler", withScheduler(lonePod(nil), "second"), "podgroup-p-1"},
			{"a pod of another scheduler", withScheduler(lonePod(nil), "default-scheduler"), ""},
			{"a pod of a ReplicaSet", controlled(lonePod(nil), "apps/v1", "ReplicaSet"), "podgroup-r-1"},
			{"a pod of a Kubernetes Job", controlled(lonePod(nil), "batch/v1", "Job"), "podgroup-r-1"},
			{"a pod of a batch Job", controlled(lonePod(nil), "batch.volcano.sh/v1alpha1", "Job"), ""},
			{"a pod that was given its PodGroup", lonePod(map[string]string{scheduling.KubeGroupNameAnnotationKey: "podgroup-p-1"}), "podgroup-p-1"},
			{"a pod that somebody put elsewhere", lonePod(map[string]string{scheduling.KubeGroupNameAnnotationKey: "mine"}), ""},
		} {
			t.Run(test.name, func(t *testing.T) {
				if got := keptGroup(test.pod, []string{"volcano", "second"}, false); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
	})
	t.Run("the newest living pod has it made", func(t *testing.T) {
		pod := func(name string, minute int, phase corev1.PodPhase) *corev1.Pod {
			return &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))},
				Status:     corev1.PodStatus{Phase: phase},
			}
		}
		leaving := pod("leaving", 9, corev1.PodRunning)
		leaving.DeletionTimestamp = &metav1.Time{}
		pods := []*corev1.Pod{
			pod("b", 2, corev1.PodPending), pod("a", 2, corev1.PodPending), pod("old", 1, corev1.PodRunning),
			pod("done", 8, corev1.PodSucceeded), pod("broken", 8, corev1.PodFailed), leaving,
		}
		if got := newest(pods); got.Name != "b" {
			t.Errorf("got %s, want b", got.Name)
		}
		if got := newest(pods[3:]); got != nil {
			t.Errorf("got %s, want none: nobody lives", got.Name)
		}
	})
	t.Run("it is managed only if its controller gave it its name", func(t *testing.T) {
		group, _ := groupbuilder.PodGroup(lonePod(nil), groupbuilder.Surroundings{})
		if !isOurs(group) {
			t.Error("what Build makes is not ours")
		}
		group.OwnerReferences[0].UID = "p-2"
		if isOurs(group) {
			t.Error("podgroup-p-1 of p-2 is ours")
		}
		group.OwnerReferences = nil
		if isOurs(group) {
			t.Error("podgroup-p-1 of nobody is ours")
		}
	})
}
