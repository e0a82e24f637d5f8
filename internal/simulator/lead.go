package simulator

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/simulator/manifests"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

// Led is a simulation that is led from outside, cycle by cycle, and in which objects change in between. It is for
// tests.
type Led struct{ s *simulation }

// Lead begins a simulation that is led from outside. Of the options, how long it is to last has no effect.
func Lead(input *manifests.Input, policy *framework.Policy, options Options) (*Led, error) {
	s, err := newSimulation(input, policy, options)
	if err != nil {
		return nil, err
	}
	return &Led{s}, nil
}

// Cycle runs a cycle, a second of the cluster's time; see [Options.Observe] for what is decided in it.
func (l *Led) Cycle() error {
	_, err := l.s.cycle()
	return err
}

// Scheduler is the scheduler that is led.
func (l *Led) Scheduler() *scheduler.Scheduler { return l.s.scheduler }

// HasNews reports whether anything has happened that the scheduler has not heard of yet.
func (l *Led) HasNews() bool { return len(l.s.events)+len(l.s.delayed) > 0 }

// Terminate tells a pod to end, as a client does. One without a node is gone at once, any other when its time is up.
func (l *Led) Terminate(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		l.Delete(pod)
		return
	}
	pod = pod.DeepCopy()
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if given := pod.Spec.TerminationGracePeriodSeconds; given != nil {
		seconds = *given
	}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: l.s.now.Add(time.Duration(seconds) * time.Second)}, &seconds
	l.s.setPod(pod)
}

// Now is the time of the next cycle.
func (l *Led) Now() time.Time { return l.s.now }

// IsDue reports whether the scheduler has asked to be woken by the time of the next cycle: what that decides follows
// from time alone.
func (l *Led) IsDue() bool { return !l.s.wake.IsZero() && !l.s.wake.After(l.s.now) }

// Pass lets time go by, in which what is due happens.
func (l *Led) Pass(d time.Duration) {
	l.s.now = l.s.now.Add(d)
	l.s.clearAway()
	l.s.count()
}

// Forget drops what is kept for the report, and what is known of PodGroups that are gone and of pods whose names will
// not be used again, so that a long simulation needs no more memory from day to day.
func (l *Led) Forget(isOver func(pod types.NamespacedName) bool) {
	s := l.s
	s.report.Binds, s.report.Evictions, s.report.Nominations = nil, nil, nil
	for name := range s.returned {
		if isOver(name) {
			delete(s.returned, name)
		}
	}
	for id := range s.names {
		if s.groups[id] == nil {
			delete(s.names, id)
		}
	}
}

// Measure sets the measured load of a node. The scheduler is told it again and again, as by a source of metrics.
func (l *Led) Measure(load cache.Measured) {
	loads := slices.DeleteFunc(slices.Clone(l.s.loads), func(old cache.Measured) bool { return old.Node == load.Node })
	l.s.loads = append(loads, load)
}

// Loads are the loads of nodes as they were measured last.
func (l *Led) Loads() []cache.Measured { return l.s.loads }

// Objects returns all objects as they are now. The caller must not change them.
func (l *Led) Objects() []runtime.Object { return l.s.shown.all() }

// Get returns an object as it is now, of the kind of a specimen, nil if there is none. The caller must not change it.
func (l *Led) Get(specimen runtime.Object, namespace, name string) runtime.Object {
	return l.s.shown.objects[shownKey{kind: kindOf(specimen), NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}]
}

// Set writes an object as a client would, which is the simulation's from then on.
func (l *Led) Set(o runtime.Object) error {
	s := l.s
	m := o.(metav1.Object)
	if m.GetUID() == "" {
		m.SetUID(types.UID(kindOf(o) + " " + keyOf(m).String()))
	}
	if pod, ok := o.(*corev1.Pod); ok {
		pod = applications{s}.grouped(pod)
		s.supplies.prepare(pod)
		o = pod
	}
	s.shown.write(o, true)
	s.events = append(s.events, cache.Set{Object: o})
	s.queued.Set(o.(client.Object))
	switch o := o.(type) {
	case *corev1.Pod:
		s.pods[keyOf(o)] = o
	case *schedulingv1beta1.PodGroup:
		s.groups[groupID(o)], s.names[groupID(o)] = o, o.Namespace+"/"+nameOf(o)
	case *policyv1.PodDisruptionBudget:
		b, err := manifests.NewBudget(o)
		if err != nil {
			return err
		}
		s.budgets = append(without(s.budgets, o, budgetKey), b)
	case *corev1.ResourceQuota:
		given := corev1.ResourceList{}
		for _, q := range s.quotas {
			if keyOf(q.object) == keyOf(o) {
				given = q.given
			}
		}
		s.quotas = append(without(s.quotas, o, quotaKey), &quota{object: o, given: given})
	default:
		if supplies.KindOf(o) != supplies.None {
			s.supplies.known[supplyKey(o.(supplies.Object))] = o.(supplies.Object)
			s.supplies.bindAll()
		}
	}
	s.count()
	return nil
}

// Delete removes an object at once, whatever its grace period. A pod that has a controller comes back.
func (l *Led) Delete(o runtime.Object) {
	s := l.s
	s.queued.Unset(o.(client.Object))
	switch o := o.(type) {
	case *corev1.Pod:
		s.remove(o)
	case *schedulingv1beta1.PodGroup:
		delete(s.groups, groupID(o))
		s.drop(o)
	case *policyv1.PodDisruptionBudget:
		s.budgets = without(s.budgets, o, budgetKey)
		s.drop(o)
	case *corev1.ResourceQuota:
		s.quotas = without(s.quotas, o, quotaKey)
		s.drop(o)
	default:
		if supplies.KindOf(o) != supplies.None {
			delete(s.supplies.known, supplyKey(o.(supplies.Object)))
		}
		s.drop(o)
	}
	s.count()
}

func budgetKey(b *manifests.Budget) types.NamespacedName { return keyOf(b.Object) }
func quotaKey(q *quota) types.NamespacedName             { return keyOf(q.object) }

// without returns a list without what is of the name of an object.
func without[T any](all []T, o metav1.Object, key func(T) types.NamespacedName) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return key(one) == keyOf(o) })
}
