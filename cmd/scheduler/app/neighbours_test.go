package app

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// group makes a PodGroup of two pods and, unless there are none yet, its pods.
func (w *testCluster) group(name, scheduler string, annotations map[string]string) *v1beta1.PodGroup {
	w.t.Helper()
	made, err := w.batch.SchedulingV1beta1().PodGroups("default").Create(w.t.Context(), &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: v1beta1.PodGroupSpec{MinMember: 2, Queue: "default"},
	}, metav1.CreateOptions{})
	must(w.t, err)
	for i := range 2 {
		if scheduler == "" {
			break
		}
		_, err := w.core.CoreV1().Pods("default").Create(w.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{"gang": name},
				Annotations: map[string]string{v1beta1.KubeGroupNameAnnotationKey: name}},
			Spec: corev1.PodSpec{SchedulerName: scheduler, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		}, metav1.CreateOptions{})
		must(w.t, err)
	}
	return made
}

// reaches waits until a PodGroup has a phase.
func (w *testCluster) reaches(name string, phase v1beta1.PodGroupPhase) *v1beta1.PodGroup {
	w.t.Helper()
	var group *v1beta1.PodGroup
	apitest.Eventually(w.t, func(ctx context.Context) (err error) {
		group, err = w.batch.SchedulingV1beta1().PodGroups("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && group.Status.Phase != phase {
			return fmt.Errorf("PodGroup %s is %q with %+v, not %s", name, group.Status.Phase, group.Status.Conditions, phase)
		}
		return err
	})
	return group
}

// isUntouched fails the test if a PodGroup was written after it was created.
func (w *testCluster) isUntouched(made *v1beta1.PodGroup) {
	w.t.Helper()
	now, err := w.batch.SchedulingV1beta1().PodGroups("default").Get(w.t.Context(), made.Name, metav1.GetOptions{})
	must(w.t, err)
	if now.ResourceVersion != made.ResourceVersion {
		w.t.Errorf("PodGroup %s was written: its status is %+v", made.Name, now.Status)
	}
}

func TestTwoSchedulersLeaveEachOthersPodGroupsAlone(t *testing.T) {
	w := onCluster(t)
	second := "second-" + w.suffix
	owned := map[string]string{v1beta1.SchedulerNameKey: second}
	withPods := w.group("theirs-"+w.suffix, second, nil)
	withoutPods := w.group("promised-"+w.suffix, "", owned)

	// The first runs alone: what is the second's stays as it was made, while its own gang is served.
	first := w.start("--leader-elect=false")
	w.ready(first)
	w.gang("own-"+w.suffix, 2)
	w.isBound("own-"+w.suffix, 2)
	w.reaches("own-"+w.suffix, v1beta1.PodGroupRunning)
	w.reaches(w.group("unsaid-"+w.suffix, "", nil).Name, v1beta1.PodGroupInqueue) // of a PodGroup that says nothing the default name decides
	w.isUntouched(withPods)
	w.isUntouched(withoutPods)

	// With both, each serves its own, and what the second admits the first does not take back.
	p := w.start("--leader-elect=false", "--scheduler-name="+second, "--resource-sync-timeout=0")
	w.ready(p)
	w.isBound(withPods.Name, 2)
	w.reaches(withPods.Name, v1beta1.PodGroupRunning)
	admitted := w.reaches(withoutPods.Name, v1beta1.PodGroupInqueue)
	w.shows(p, `hekla_binds_total{result="bound"} 2`)
	w.shows(first, `hekla_binds_total{result="bound"} 2`)

	// Once more the first has a job of its own to see to; then it has seen all that the second wrote.
	w.gang("last-"+w.suffix, 2)
	w.isBound("last-"+w.suffix, 2)
	for _, want := range []*v1beta1.PodGroup{w.reaches(withPods.Name, v1beta1.PodGroupRunning), w.reaches(admitted.Name, v1beta1.PodGroupInqueue)} {
		for _, c := range want.Status.Conditions {
			if c.Type == v1beta1.PodGroupUnschedulableType && want.Name == withPods.Name {
				t.Errorf("PodGroup %s is said to be unschedulable: %s", want.Name, c.Message)
			}
		}
	}
}
