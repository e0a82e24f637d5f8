package controllers

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"hekla.sh/hekla/internal/controllers/cronjob"
	"hekla.sh/hekla/internal/controllers/garbagecollector"
	"hekla.sh/hekla/internal/controllers/hypernode"
	"hekla.sh/hekla/internal/controllers/hypernode/discovery"
	"hekla.sh/hekla/internal/controllers/job"
	"hekla.sh/hekla/internal/controllers/jobflow"
	"hekla.sh/hekla/internal/controllers/jobtemplate"
	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/controllers/podgroup"
	"hekla.sh/hekla/internal/controllers/queue"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/resources"
)

// Options say how each controller works. The zero value of a controller's workers leaves that controller out.
type Options struct {
	// How many objects each controller works on at a time; 0 switches the controller off.
	JobWorkers, PodGroupWorkers, QueueWorkers, CronJobWorkers, GarbageWorkers, JobFlowWorkers, JobTemplateWorkers, WorkloadWorkers int

	// ShortestCronJobInterval is how close together the runs of a CronJob may be, a minute at most; zero allows all.
	ShortestCronJobInterval time.Duration

	// HyperNodes switches the controller of HyperNodes on. It has one worker: all of them are looked at together.
	HyperNodes bool

	// DiscoveryConfigMap says what HyperNodes are made of, if it exists and HyperNodes is on.
	DiscoveryConfigMap client.ObjectKey

	// SchedulerConfigMap has the configuration of the scheduler, which says whether it admits workloads.
	SchedulerConfigMap client.ObjectKey

	// SchedulerNames are the names our scheduler goes by; pods that ask for one of them are ours. The first is given to
	// pods of Jobs that ask for none.
	SchedulerNames []string

	// InheritOwnerAnnotations lets lone pods take queue, minimum and the like from their owner's annotations.
	InheritOwnerAnnotations bool

	// YuniKornLabels lets the labels and annotations of YuniKorn's users name applications and queues.
	YuniKornLabels bool

	// DefaultQueue is the queue of lone pods for which nothing names one.
	DefaultQueue string

	// AllowUncheckedQueueCommands is that of queue.Options.
	AllowUncheckedQueueCommands bool

	// Registerer is where the numbers of the controllers are shown; nil shows none.
	Registerer prometheus.Registerer
}

// Add puts the controllers into the manager, whose cache must have been made with CacheOptions.
func Add(mgr manager.Manager, options Options) error {
	if len(options.SchedulerNames) == 0 {
		return fmt.Errorf("no scheduler name given: pods could not be told from those of other schedulers")
	}
	numbers, err := metrics.New(options.Registerer)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := watchDefinitions(mgr); err != nil {
		return err
	}
	var holder *workload.Holder
	if options.WorkloadWorkers > 0 {
		var without queueing.Kinds
		if options.JobWorkers == 0 {
			without = queueing.Kinds{queueing.VolcanoJobs}
		}
		if holder, err = workload.Add(mgr, workload.Options{Workers: options.WorkloadWorkers, Configuration: options.SchedulerConfigMap,
			SchedulerNames: options.SchedulerNames, Metrics: numbers, Kinds: queueing.AllKinds(), Without: without}); err != nil {
			return fmt.Errorf("%s: %w", workload.Name, err)
		}
	}
	if options.JobWorkers > 0 {
		err := job.Add(mgr, job.Options{Workers: options.JobWorkers, SchedulerName: options.SchedulerNames[0], Metrics: numbers, Queues: holder})
		if err != nil {
			return fmt.Errorf("%s: %w", job.Name, err)
		}
	}
	if options.PodGroupWorkers > 0 {
		err := podgroup.Add(mgr, podgroup.Options{
			Workers:                 options.PodGroupWorkers,
			SchedulerNames:          options.SchedulerNames,
			InheritOwnerAnnotations: options.InheritOwnerAnnotations,
			YuniKornLabels:          options.YuniKornLabels,
			DefaultQueue:            options.DefaultQueue,
			Workloads:               holder,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", podgroup.Name, err)
		}
	}
	if options.QueueWorkers > 0 {
		if err := queue.Add(mgr, queue.Options{
			Workers: options.QueueWorkers, AllowUncheckedCommands: options.AllowUncheckedQueueCommands, Metrics: numbers,
		}); err != nil {
			return fmt.Errorf("%s: %w", queue.Name, err)
		}
	}
	if options.HyperNodes {
		if err := errors.Join(hypernode.Add(mgr), discovery.Add(mgr, options.DiscoveryConfigMap)); err != nil {
			return fmt.Errorf("%s: %w", hypernode.Name, err)
		}
	}
	if options.CronJobWorkers > 0 {
		if err := cronjob.Add(mgr, cronjob.Options{Workers: options.CronJobWorkers, ShortestInterval: options.ShortestCronJobInterval}); err != nil {
			return fmt.Errorf("%s: %w", cronjob.Name, err)
		}
	}
	if options.GarbageWorkers > 0 {
		if err := garbagecollector.Add(mgr, garbagecollector.Options{Workers: options.GarbageWorkers}); err != nil {
			return fmt.Errorf("%s: %w", garbagecollector.Name, err)
		}
	}
	if options.JobFlowWorkers > 0 {
		if err := jobflow.Add(mgr, jobflow.Options{Workers: options.JobFlowWorkers, Metrics: numbers}); err != nil {
			return fmt.Errorf("%s: %w", jobflow.Name, err)
		}
	}
	if options.JobTemplateWorkers > 0 {
		if err := jobtemplate.Add(mgr, jobtemplate.Options{Workers: options.JobTemplateWorkers}); err != nil {
			return fmt.Errorf("%s: %w", jobtemplate.Name, err)
		}
	}
	return watchKinds(mgr, &options, holder)
}

// CacheOptions shape the cache of the manager: of every object without the record of who manages which field, and of
// pods only what the controllers read.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slim}},
	}
}

// slim drops from a pod what no controller reads, which is most of it: the cache holds every pod of the cluster. What
// stays is the metadata, what the requests are counted from, the phase, the address, and how the containers fare.
func slim(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Spec = corev1.PodSpec{
		InitContainers:    slimContainers(pod.Spec.InitContainers),
		Containers:        slimContainers(pod.Spec.Containers),
		Overhead:          pod.Spec.Overhead,
		Resources:         pod.Spec.Resources,
		NodeName:          pod.Spec.NodeName,
		SchedulerName:     pod.Spec.SchedulerName,
		PriorityClassName: pod.Spec.PriorityClassName,
		SchedulingGates:   pod.Spec.SchedulingGates,
		NodeSelector:      hostOf(pod.Spec.NodeSelector),
	}
	pod.Status = corev1.PodStatus{
		Reason:                pod.Status.Reason,
		Phase:                 pod.Status.Phase,
		PodIP:                 pod.Status.PodIP,
		InitContainerStatuses: slimStatuses(pod.Status.InitContainerStatuses),
		ContainerStatuses:     slimStatuses(pod.Status.ContainerStatuses),
	}
	return pod, nil
}

// hostOf keeps the name of the node from a selector.
func hostOf(selector map[string]string) map[string]string {
	if host := selector[corev1.LabelHostname]; host != "" {
		return map[string]string{corev1.LabelHostname: host}
	}
	return nil
}

// slimStatuses keeps what lifecycle policies and task dependencies ask about.
func slimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var slimmed []corev1.ContainerStatus
	for i := range statuses {
		status := corev1.ContainerStatus{Ready: statuses[i].Ready, RestartCount: statuses[i].RestartCount}
		if ended := statuses[i].State.Terminated; ended != nil {
			status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, FinishedAt: ended.FinishedAt}
		}
		slimmed = append(slimmed, status)
	}
	return slimmed
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slimmed := make([]corev1.Container, len(containers))
	for i := range containers {
		resources.Clamp(containers[i].Resources.Requests, containers[i].Resources.Limits)
		slimmed[i] = corev1.Container{
			Name:          containers[i].Name,
			Resources:     containers[i].Resources,
			RestartPolicy: containers[i].RestartPolicy,
		}
	}
	return slimmed
}
