package e2e

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Pods that are deleted without grace, as those of a node that is lost, go all at once, and a Job of one pod has none
// left. Each Job gets its pod again in seconds, whether the controllers or the scheduler heard first that it was gone.
func TestJobsThatLoseAllTheirPodsGetThemAgain(t *testing.T) {
	const jobs = 60
	ofTest := labels.Set{"lost": "and-found"}
	for i := range jobs {
		job := batchJob(fmt.Sprintf("lost-%d", i), 1, "1m")
		job.Spec.Tasks[0].Template.Labels = ofTest
		submit(t, job)
	}
	pods := core.CoreV1().Pods("default")
	running := func(ctx context.Context, before map[types.UID]bool) error {
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: ofTest.String()})
		if err != nil {
			return err
		}
		var number int
		for i := range list.Items {
			if pod := &list.Items[i]; pod.Status.Phase == corev1.PodRunning && !before[pod.UID] {
				number++
			}
		}
		if number != jobs {
			return fmt.Errorf("%d of %d pods run", number, jobs)
		}
		return nil
	}
	gone := map[types.UID]bool{}
	for range 3 {
		apitest.Eventually(t, func(ctx context.Context) error { return running(ctx, gone) })
		list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: ofTest.String()})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			gone[list.Items[i].UID] = true
			if err := pods.Delete(t.Context(), list.Items[i].Name, *metav1.NewDeleteOptions(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	apitest.Eventually(t, func(ctx context.Context) error { return running(ctx, gone) })
	for i := range jobs {
		job, err := batch.BatchV1alpha1().Jobs("default").Get(t.Context(), fmt.Sprintf("lost-%d", i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if job.Status.State.Phase == batchv1alpha1.Failed || job.Status.RetryCount > 0 {
			t.Errorf("Job %s is %s after %d retries", job.Name, job.Status.State.Phase, job.Status.RetryCount)
		}
	}
}
