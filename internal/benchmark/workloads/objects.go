package workloads

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// queueName is that of the ClusterQueue and of the LocalQueue in each namespace, flavorName that of the only flavor.
const queueName, flavorName = "bench", "any"

// absentController is a controller of Jobs that does not exist.
const absentController = "example.com/absent"

// createQueues makes a ClusterQueue with quota for all Workloads.
func (b *bench) createQueues(ctx context.Context) error {
	api := b.Clients.Batch.KueueV1beta2()
	if _, err := api.ResourceFlavors().Create(ctx, &v1beta2.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: flavorName}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ResourceFlavor: %w", err)
	}
	quota := v1beta2.FlavorQuotas{Name: flavorName}
	group := v1beta2.ResourceGroup{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		most := testbed.PodRequests()[name]
		most.Mul(int64(b.options.Workloads))
		group.CoveredResources = append(group.CoveredResources, name)
		quota.Resources = append(quota.Resources, v1beta2.ResourceQuota{Name: name, NominalQuota: most})
	}
	group.Flavors = []v1beta2.FlavorQuotas{quota}
	queue := &v1beta2.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueName},
		Spec: v1beta2.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: []v1beta2.ResourceGroup{group}}}
	if _, err := api.ClusterQueues().Create(ctx, queue, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ClusterQueue: %w", err)
	}
	return nil
}

// createJobs makes suspended Jobs in a new namespace. They name a LocalQueue, or none.
func (b *bench) createJobs(ctx context.Context, namespace, queue string) error {
	if err := b.Cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	local := &v1beta2.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: queueName}, Spec: v1beta2.LocalQueueSpec{ClusterQueue: queueName}}
	_, err := b.Clients.Batch.KueueV1beta2().LocalQueues(namespace).Create(ctx, local, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the LocalQueue: %w", err)
	}
	return testbed.InParallel(ctx, testbed.Creators, b.options.Workloads, func(i int) error {
		_, err := b.Clients.Core.BatchV1().Jobs(namespace).Create(ctx, job(i, queue), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create a Job: %w", err)
		}
		return nil
	})
}

func jobName(number int) string { return fmt.Sprintf("job-%d", number) }

// job is a suspended Job of one pod.
func job(number int, queue string) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: jobName(number)},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1), ManagedBy: ptr.To(absentController),
			Template: template()},
	}
	if queue != "" {
		j.Labels = map[string]string{v1beta2.QueueNameLabel: queue}
	}
	return j
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
		Name: "work", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: testbed.PodRequests()}}}}}
}

// workload is that of a Job for the loop. It names a LocalQueue that does not exist.
func workload(number int) *v1beta2.Workload {
	return &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Name: jobName(number)}, Spec: v1beta2.WorkloadSpec{QueueName: "none",
		PodSets: []v1beta2.PodSet{{Name: v1beta2.DefaultPodSetName, Count: 1, Template: template()}}}}
}

// used is what one pod takes of the quota.
func used() map[corev1.ResourceName]resource.Quantity { return testbed.PodRequests() }
