package admission

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/admission/held"
	"hekla.sh/hekla/internal/queueing"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
)

// kueueServices are the webhooks for the kinds of kueue.x-k8s.io, and for the jobs and pods that wait for their quota.
// The API server sends objects of an older version converted, which for these kinds means as they are.
func kueueServices() []*service {
	return []*service{
		kueueCheck("clusterqueues", "ClusterQueue", alone(func(o *v1beta2.ClusterQueue, _ *settings) field.ErrorList { return validation.ClusterQueue(o) })),
		kueueCheck("cohorts", "Cohort", alone(func(o *v1beta2.Cohort, _ *settings) field.ErrorList { return validation.Cohort(o) })),
		kueueCheck("localqueues", "LocalQueue", alone(func(o *v1beta2.LocalQueue, _ *settings) field.ErrorList { return validation.LocalQueue(o) })),
		kueueCheck("resourceflavors", "ResourceFlavor", alone(func(o *v1beta2.ResourceFlavor, _ *settings) field.ErrorList { return validation.ResourceFlavor(o) })),
		kueueCheck("workloads", "Workload", judgeWorkload),
		{
			path: "/kueue/jobs/mutate", name: "mutatequeuedjob.hekla.sh",
			resource: batchv1.SchemeGroupVersion.WithResource("jobs"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Ignore, conditions: isQueuedJob, handle: mutates(holdJob),
		}, {
			path: "/kueue/pods/mutate", name: "mutatequeuedpod.hekla.sh",
			resource: corev1.SchemeGroupVersion.WithResource("pods"), operations: []admissionregistrationv1.OperationType{create},
			failurePolicy: admissionregistrationv1.Ignore, conditions: isQueuedPod, handle: mutates(holdPod),
		},
		relabelled(batchv1.SchemeGroupVersion.WithResource("jobs"), "jobs", "Job", func(o *batchv1.Job) bool { return queueing.BatchJob{Job: o}.IsSuspended() }),
		relabelled(batch.GroupVersion.WithResource("jobs"), "volcanojobs", "Job", func(o *batch.Job) bool { return queueing.VolcanoJob{Job: o}.IsSuspended() }),
		relabelled(corev1.SchemeGroupVersion.WithResource("pods"), "pods", "Pod", queueing.IsGated),
	}
}

// relabelled is the webhook that checks changes of what jobs and pods say of how they are queued.
func relabelled[T client.Object](resource schema.GroupVersionResource, path, kind string, isSuspended func(T) bool) *service {
	return &service{
		path: "/kueue/" + path + "/validate", name: "validatequeued" + path + ".hekla.sh",
		resource: resource, operations: []admissionregistrationv1.OperationType{update},
		failurePolicy: admissionregistrationv1.Ignore,
		conditions: func(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
			return held.Relabelled(validation.JobLabels, validation.JobAnnotations), s.workloads.AreAdmitted()
		},
		handle: validates(resource.GroupVersion().WithKind(kind).GroupKind(), func(ctx context.Context, s *server, _ client.Reader, asked change[T]) (ruling, error) {
			mustName, err := held.HasDefaultQueue(ctx, s.cached, asked.after.GetNamespace())
			return ruling{problems: validation.QueuedUpdate(asked.after, asked.before, isSuspended(asked.before), isSuspended(asked.after), mustName)}, err
		}),
	}
}

// kueueCheck is the webhook that checks a kind. Kueue itself may run in the cluster and own these kinds, and
// controllers write Workloads: without an answer they are stored, and are inactive if something is wrong with them.
func kueueCheck[T client.Object](resource, kind string, rules func(context.Context, *server, client.Reader, change[T]) (ruling, error)) *service {
	return &service{
		path: "/kueue/" + resource + "/validate", name: "validate" + resource + ".hekla.sh",
		resource: v1beta2.GroupVersion.WithResource(resource), operations: []admissionregistrationv1.OperationType{create, update},
		failurePolicy: admissionregistrationv1.Ignore, conditions: unlessKueueRuns,
		handle: validates(v1beta2.GroupVersion.WithKind(kind).GroupKind(), rules),
	}
}

// judgeWorkload says what is wrong with a Workload. While its quota is reserved, podsets and queue stay as they are.
func judgeWorkload(_ context.Context, _ *server, _ client.Reader, asked change[*v1beta2.Workload]) (ruling, error) {
	if asked.operation == admissionv1.Update {
		return ruling{problems: validation.WorkloadUpdate(asked.after, asked.before)}, nil
	}
	return ruling{problems: validation.Workload(asked.after)}, nil
}

// holdJob suspends a Job that is submitted to a LocalQueue, until its workload is admitted. A Job that names none is
// submitted to the LocalQueue default of its namespace, if there is one. Otherwise it waits until it names one, if the
// configuration says so.
func holdJob(ctx context.Context, s *server, asked change[*batchv1.Job]) error {
	job, known := asked.after, s.settings.Load().workloads
	if isMade, err := s.owners.IsMade(ctx, known, job); err != nil || isMade {
		return err
	}
	if job.Labels[v1beta2.QueueNameLabel] == "" {
		is, err := known.Manages(ctx, s.cached, job.Namespace)
		if err != nil || !is {
			return err
		}
		hasDefault, err := held.HasDefaultQueue(ctx, s.cached, job.Namespace)
		switch {
		case err != nil:
			return err
		case hasDefault:
			metav1.SetMetaDataLabel(&job.ObjectMeta, v1beta2.QueueNameLabel, v1beta2.DefaultLocalQueueName)
		case !known.HoldsUnnamed:
			return nil
		}
	}
	if err := refuse(validation.Queued(job)); err != nil {
		return err
	}
	suspended := true
	job.Spec.Suspend = &suspended
	s.takeOver(&job.Spec.Template.Spec)
	return nil
}

// holdPod puts the gate of admission on a pod that is submitted to a LocalQueue by itself, and the finalizer that keeps
// it.
func holdPod(ctx context.Context, s *server, asked change[*corev1.Pod]) error {
	pod := asked.after
	if pod.Spec.NodeName != "" {
		return nil
	}
	if is, err := s.owners.IsByItsOwner(ctx, s.settings.Load().workloads, pod); err != nil || is {
		return err
	}
	if err := refuse(append(validation.Queued(pod), validation.GroupedPod(pod)...)); err != nil {
		return err
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, v1beta2.ManagedLabel, v1beta2.ManagedValue)
	queueing.KeepPod(&pod.ObjectMeta)
	s.takeOver(&pod.Spec)
	gate(pod, v1beta2.AdmissionGate)
	if !slices.Contains(s.settings.Load().schedulerNames, pod.Spec.SchedulerName) {
		gate(pod, v1beta2.TopologyGate) // its scheduler has to be told which node it gets, and a gate cannot be added later
	}
	return nil
}

func gate(pod *corev1.Pod, name string) {
	if g := (corev1.PodSchedulingGate{Name: name}); !slices.Contains(pod.Spec.SchedulingGates, g) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, g)
	}
}

// takeOver gives pods that do not choose a scheduler to ours.
func (s *server) takeOver(spec *corev1.PodSpec) {
	if spec.SchedulerName == "" || spec.SchedulerName == corev1.DefaultSchedulerName {
		spec.SchedulerName = s.settings.Load().schedulerNames[0]
	}
}

// unlessKueueRuns sends what changes a spec, and nothing while the objects are Kueue's.
func unlessKueueRuns(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
	conditions, _ := specChanges(s)
	return conditions, !s.workloads.KueueRuns
}

// isQueuedJob sends Jobs that may have to wait, and none while no scheduler would admit them.
func isQueuedJob(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
	return s.workloads.Jobs(), s.workloads.AreAdmitted()
}

// isQueuedPod does the same for pods.
func isQueuedPod(s *settings) ([]admissionregistrationv1.MatchCondition, bool) {
	return held.Pods(), s.workloads.AreAdmitted()
}
