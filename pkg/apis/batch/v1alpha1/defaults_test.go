package v1alpha1

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestDefaultsFillWhatTheUserLeftOpen(t *testing.T) {
	tests := []struct {
		name string
		spec JobSpec
		want JobSpec
	}{
		{
			name: "a bare job becomes one gang of all its pods in the default queue",
			spec: JobSpec{Tasks: []TaskSpec{{Replicas: 3}, {Name: "worker", Replicas: 4}}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3, MinAvailable: 7,
				Tasks: []TaskSpec{
					{Name: "default0", Replicas: 3, MinAvailable: number(3), MaxRetry: 3},
					{Name: "worker", Replicas: 4, MinAvailable: number(4), MaxRetry: 3},
				},
			},
		},
		{
			name: "the gang is the sum of the tasks' minimums",
			spec: JobSpec{Tasks: []TaskSpec{{Name: "a", Replicas: 3, MinAvailable: number(2)}, {Name: "b", Replicas: 1}}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3, MinAvailable: 3,
				Tasks: []TaskSpec{
					{Name: "a", Replicas: 3, MinAvailable: number(2), MaxRetry: 3},
					{Name: "b", Replicas: 1, MinAvailable: number(1), MaxRetry: 3},
				},
			},
		},
		{
			name: "what the user wrote stays",
			spec: JobSpec{
				SchedulerName: "other", Queue: "research", MaxRetry: 1, MinAvailable: 1,
				Tasks: []TaskSpec{{Name: "a", Replicas: 3, MinAvailable: number(0), MaxRetry: 9}},
			},
			want: JobSpec{
				SchedulerName: "other", Queue: "research", MaxRetry: 1, MinAvailable: 1,
				Tasks: []TaskSpec{{Name: "a", Replicas: 3, MinAvailable: number(0), MaxRetry: 9}},
			},
		},
		{
			name: "a task with a minimum of partitions needs their pods",
			spec: JobSpec{Tasks: []TaskSpec{{
				Name: "a", Replicas: 8,
				PartitionPolicy: &PartitionPolicySpec{TotalPartitions: 4, PartitionSize: 2, MinPartitions: 3},
			}}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3, MinAvailable: 6,
				Tasks: []TaskSpec{{
					Name: "a", Replicas: 8, MinAvailable: number(6), MaxRetry: 3,
					PartitionPolicy: &PartitionPolicySpec{TotalPartitions: 4, PartitionSize: 2, MinPartitions: 3},
				}},
			},
		},
		{
			name: "pods on the host network resolve names in the cluster",
			spec: JobSpec{Tasks: []TaskSpec{{
				Name: "a", Replicas: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}},
			}}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3, MinAvailable: 1,
				Tasks: []TaskSpec{{
					Name: "a", Replicas: 1, MinAvailable: number(1), MaxRetry: 3,
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						HostNetwork: true, DNSPolicy: corev1.DNSClusterFirstWithHostNet,
					}},
				}},
			},
		},
		{
			name: "mpi brings svc and ssh, and keeps their arguments if they are there",
			spec: JobSpec{Plugins: map[string][]string{"mpi": {"--port=22"}, "svc": {"--disable-network-policy=true"}}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3,
				Plugins: map[string][]string{
					"mpi": {"--port=22"}, "svc": {"--disable-network-policy=true"}, "ssh": {},
				},
			},
		},
		{
			name: "pytorch brings svc",
			spec: JobSpec{Plugins: map[string][]string{"pytorch": nil}},
			want: JobSpec{
				SchedulerName: "volcano", Queue: "default", MaxRetry: 3,
				Plugins: map[string][]string{"pytorch": nil, "svc": {}},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := &Job{Spec: test.spec}
			SetDefaults(job)
			if diff := cmp.Diff(test.want, job.Spec); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
			again := job.DeepCopy()
			SetDefaults(again)
			if diff := cmp.Diff(job, again); diff != "" {
				t.Errorf("a second time changes the job:\n%s", diff)
			}
		})
	}
}

func number(value int32) *int32 { return &value }

func TestSumsOfManyPodsDoNotOverflow(t *testing.T) {
	most := int32(math.MaxInt32)
	job := &Job{Spec: JobSpec{Tasks: []TaskSpec{{Name: "a", Replicas: most}, {Name: "b", Replicas: most}}}}
	SetDefaults(job)
	if job.Spec.MinAvailable != most || job.TotalReplicas() != most || job.TotalMinAvailable() != most {
		t.Errorf("minAvailable is %d, the pods are %d, their minimums %d", job.Spec.MinAvailable, job.TotalReplicas(), job.TotalMinAvailable())
	}
}
