package simulator

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/internal/simulator/workloads"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/cohorts"
	"hekla.sh/hekla/pkg/plugins/cohorts/arguments"
)

// queuedCluster is the simulation as the controllers of Workloads see it.
type queuedCluster struct{ *simulation }

var _ workloads.Cluster = queuedCluster{}

// newControllers returns the controllers of Workloads under a policy.
func newControllers(s *simulation, p *framework.Policy) *workloads.Controllers {
	c := &workloads.Controllers{Cluster: queuedCluster{s}, Schedulers: s.options.SchedulerNames}
	c.NamespaceLabels = func(name string) map[string]string {
		if n := s.input.Namespaces[name]; n != nil {
			return n.Labels
		}
		return map[string]string{corev1.LabelMetadataName: name}
	}
	if !p.AdmitsWorkloads() {
		return c
	}
	for _, tier := range p.Configuration.Tiers {
		for i := range tier.Plugins {
			if tier.Plugins[i].Name != cohorts.Name || c.Policy.IsOn {
				continue
			}
			if a, err := arguments.Of(tier.Plugins[i].Arguments); err == nil { // the plugin has read them
				c.Policy = queueing.PolicyOf(&a)
			}
		}
	}
	c.Evicted = func(w *v1beta2.Workload, by types.NamespacedName) {
		reason := conditions.Of(w, v1beta2.Evicted)
		row := Eviction{Cycle: s.report.Cycles, Workload: w.Namespace + "/" + w.Name, Reason: reason.Reason, Message: reason.Message}
		if by.Name != "" {
			row.Action, row.For, row.Reason = "admit", by.String(), conditions.Of(w, v1beta2.Preempted).Reason
		}
		s.report.Evictions = append(s.report.Evictions, row)
	}
	return c
}

// show shows an object of kueue.x-k8s.io.
func (s queuedCluster) show(o client.Object) {
	s.queued.Set(o)
	if _, is := o.(*v1beta2.WorkloadPriorityClass); !is { // the scheduler reads the priorities of Workloads
		s.set(o)
	}
}

// Now implements [workloads.Cluster].
func (s queuedCluster) Now() time.Time { return s.now }

// Write implements [workloads.Cluster].
func (s queuedCluster) Write(o client.Object) {
	if pod, is := o.(*corev1.Pod); is {
		s.supplies.prepare(pod)
		s.pods[keyOf(pod)] = pod
	}
	s.shown.write(o, true)
	s.simulation.tell(o)
}

// Drop implements [workloads.Cluster].
func (s queuedCluster) Drop(o client.Object) { s.drop(o) }

// Pods implements [workloads.Cluster].
func (s queuedCluster) Pods() map[types.NamespacedName]*corev1.Pod { return s.pods }

// MakePod implements [workloads.Cluster].
func (s queuedCluster) MakePod(pod *corev1.Pod) bool {
	key := keyOf(pod)
	if s.pods[key] != nil {
		return false
	}
	pod.UID = types.UID("Pod " + key.String())
	if s.returned[key]++; s.returned[key] > 1 {
		pod.UID = types.UID(fmt.Sprintf("Pod %s, made again %d", key, s.returned[key]-1))
	}
	pod.CreationTimestamp = metav1.NewTime(s.now)
	s.input.CreatePod(pod)
	s.setPod(pod)
	return true
}

// EndPod implements [workloads.Cluster].
func (s queuedCluster) EndPod(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		s.remove(pod)
		return
	}
	pod = pod.DeepCopy()
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	end := metav1.NewTime(s.now.Add(time.Duration(grace) * time.Second))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
	s.setPod(pod)
}

// PriorityClass implements [workloads.Cluster].
func (s queuedCluster) PriorityClass(name string) *schedulingv1.PriorityClass {
	if name == "" {
		return s.input.DefaultPriority()
	}
	return s.input.Priorities[name]
}
