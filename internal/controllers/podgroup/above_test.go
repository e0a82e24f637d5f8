package podgroup

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestOfSeveralOwnersTheTopmostSaysTheMinimum(t *testing.T) {
	owner := func(kind string, pairs ...string) ancestor {
		annotations := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			annotations[pairs[i]] = pairs[i+1]
		}
		return ancestor{metav1.OwnerReference{Kind: kind, Name: "x"}, annotations}
	}
	const minimum, queue = scheduling.GroupMinMemberAnnotationKey, scheduling.QueueNameAnnotationKey
	pod := lonePod(map[string]string{minimum: "9"})
	for name, test := range map[string]struct {
		line    lineage
		maker   int
		minimum string
		queue   string
		ignored int
	}{
		"no owner says one":       {lineage{owners: []ancestor{owner("Job"), owner("JobSet", queue, "q")}}, 0, "", "q", 0},
		"the controller says one": {lineage{owners: []ancestor{owner("Job", minimum, "3"), owner("JobSet")}}, 0, "3", "", 0},
		"one above says one":      {lineage{owners: []ancestor{owner("Job", queue, "a"), owner("JobSet", minimum, "4", queue, "b")}}, 1, "4", "a", 1},
		"several say one": {lineage{owners: []ancestor{owner("Job", minimum, "3"), owner("JobSet", minimum, "4"), owner("TrainJob", minimum, "5"), owner("App", queue, "q")}},
			2, "5", "q", 3},
	} {
		t.Run(name, func(t *testing.T) {
			maker := test.line.maker()
			all := test.line.annotations(maker)
			if maker != test.maker || all[minimum] != test.minimum || all[queue] != test.queue {
				t.Errorf("owner %d makes it, with %v", maker, all)
			}
			if ignored := test.line.ignored(pod, maker); len(ignored) != test.ignored {
				t.Errorf("what does not count: %q", ignored)
			}
		})
	}
}

func TestAPodGroupOfPodsOfSeveralKindsNeedsWhatTheyNeedTogether(t *testing.T) {
	large, small := lonePod(nil), lonePod(nil)
	large.Spec.PriorityClassName, small.Spec.PriorityClassName, small.Name = "high", "low", "small"
	done := lonePod(nil)
	done.Status.Phase = corev1.PodSucceeded
	wanted, _ := groupbuilder.PodGroup(large, groupbuilder.Surroundings{Owner: map[string]string{scheduling.GroupMinMemberAnnotationKey: "4"},
		Maker: &metav1.OwnerReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "s", UID: "s-1", Controller: ptr.To(true)}})
	if wanted.Name != "podgroup-s-1" || wanted.Spec.MinMember != 4 || !isOurs(wanted) {
		t.Fatalf("the PodGroup is %+v", wanted)
	}
	(&gang{}).join(wanted, []*corev1.Pod{large, small, done})
	if wanted.Spec.PriorityClassName != "" || wanted.Spec.MinResources.Pods().Value() != 2 || !hasMinimum(wanted) {
		t.Errorf("it is of class %q and needs %v", wanted.Spec.PriorityClassName, wanted.Spec.MinResources)
	}
}

func TestAGroupOfKubernetesIsNamed(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	r := &Reconciler{events: recorder}
	pod := lonePod(nil)
	r.tellSchedulingGroup(pod)
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("theirs")}
	r.tellSchedulingGroup(pod)
	close(recorder.Events)
	told := ""
	for event := range recorder.Events {
		told += event
	}
	if strings.Count(told, ReasonSchedulingGroup) != 1 || !strings.Contains(told, `"theirs"`) {
		t.Errorf("the Events are %q", told)
	}
}
