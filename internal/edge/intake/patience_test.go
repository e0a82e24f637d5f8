package intake

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func TestUpdatesThatChangeNothingToDecideCanWait(t *testing.T) {
	pod := func(change func(*corev1.Pod)) func() object {
		return func() object {
			p := newPod("a", "1", "")
			p.ResourceVersion, p.Labels = "1", map[string]string{"app": "a"}
			p.Spec.Containers = []corev1.Container{{Name: "main"}}
			change(p)
			return p
		}
	}
	group := func(change func(*schedulingv1beta1.PodGroup)) func() object {
		return func() object {
			g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g", UID: "2", Generation: 3}}
			change(g)
			return g
		}
	}
	workload := func(change func(*v1beta2.Workload)) func() object {
		return func() object {
			w := &v1beta2.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w", UID: "4", Generation: 1},
				Status: v1beta2.WorkloadStatus{AdmissionChecks: []v1beta2.AdmissionCheckState{{Name: "c", State: v1beta2.CheckPending}}}}
			change(w)
			return w
		}
	}
	reserved := func(w *v1beta2.Workload) { conditions.Reserve(w, "cq", time.Time{}) }
	admitted := func(w *v1beta2.Workload) { reserved(w); conditions.Admit(w, time.Time{}) }
	also := func(change func(*v1beta2.Workload)) func(*v1beta2.Workload) {
		return func(w *v1beta2.Workload) { admitted(w); change(w) }
	}
	ready := func(w *v1beta2.Workload) {
		conditions.Set(w, v1beta2.PodsReady, true, v1beta2.ReasonStarted, "", time.Time{})
	}
	before, beforeGroup, beforeWorkload := pod(func(*corev1.Pod) {}), group(func(*schedulingv1beta1.PodGroup) {}), workload(func(*v1beta2.Workload) {})
	for name, test := range map[string]struct {
		before, now func() object
		want        bool
	}{
		"a pod has its node":       {before, pod(func(p *corev1.Pod) { p.Spec.NodeName = "n1" }), true},
		"a pod runs":               {before, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), true},
		"a pod has ended":          {before, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false},
		"a pod has failed":         {before, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"a pod is to go":           {before, pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), false},
		"a gate of a pod is gone":  {pod(gated), before, false},
		"a pod has another label":  {before, pod(func(p *corev1.Pod) { p.Labels["app"] = "b" }), false},
		"another pod has its name": {before, pod(func(p *corev1.Pod) { p.UID = "3" }), false},
		"a pod has a mark":         {before, pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"volcano.sh/preemptable": "true"} }), false},
		"the status of a group":    {beforeGroup, group(func(g *schedulingv1beta1.PodGroup) { g.Status.Running = 2 }), true},
		"the minimum of a group":   {beforeGroup, group(func(g *schedulingv1beta1.PodGroup) { g.Generation++ }), false},
		"a group without generation": {group(func(g *schedulingv1beta1.PodGroup) { g.Generation = 0 }),
			group(func(g *schedulingv1beta1.PodGroup) { g.Generation = 0 }), false},
		"a Workload has quota":      {beforeWorkload, workload(reserved), true},
		"a Workload is admitted":    {workload(reserved), workload(admitted), true},
		"a Workload waits":          {beforeWorkload, workload(func(w *v1beta2.Workload) { conditions.Pend(w, "why", "", time.Time{}) }), false},
		"a Workload is to stop":     {workload(admitted), workload(also(func(w *v1beta2.Workload) { conditions.Evict(w, "why", "", "", time.Time{}) })), false},
		"a Workload has ended":      {workload(admitted), workload(also(func(w *v1beta2.Workload) { conditions.Finish(w, "why", "", time.Time{}) })), false},
		"a Workload has lost quota": {workload(admitted), beforeWorkload, false},
		"a check of a Workload":     {workload(reserved), workload(func(w *v1beta2.Workload) { reserved(w); w.Status.AdmissionChecks[0].State = v1beta2.CheckReady }), false},
		"a pod of a Workload has ended": {workload(admitted), workload(also(func(w *v1beta2.Workload) {
			w.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: 1}}
		})), false},
		"the pods of a Workload are ready": {workload(admitted), workload(also(ready)), false},
		"another priority of a Workload":   {workload(admitted), workload(also(func(w *v1beta2.Workload) { w.Generation++ })), false},
		"a node":                           {func() object { return &corev1.Node{} }, func() object { return &corev1.Node{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			slimmer, objects := newSlimmer(), []object{}
			for _, o := range []object{test.before(), test.now()} {
				slim, err := slimmer.slim(o)
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, slim.(object))
			}
			if got := canWait(objects[0], objects[1]); got != test.want {
				t.Errorf("it can wait: %v, want %v", got, test.want)
			}
		})
	}
}

func gated(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}} }

func TestAnEventThatCanWaitWakesTheReaderInTheEnd(t *testing.T) {
	isAwake := func(q *eventQueue) bool {
		select {
		case <-q.wake:
			return true
		default:
			return false
		}
	}
	synctest.Test(t, func(t *testing.T) {
		q := newEventQueue()
		for range 2 {
			q.setLater(newPod("a", "1", "n"))
			time.Sleep(patience - time.Millisecond)
			synctest.Wait()
			if isAwake(q) {
				t.Fatal("the reader is awake at once")
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if !isAwake(q) || len(q.take()) != 1 {
				t.Fatal("the event is not there when its patience has ended")
			}
		}
		q.setLater(newPod("a", "1", "n"))
		q.set(newPod("b", "2", ""))
		if !isAwake(q) || len(q.take()) != 2 {
			t.Fatal("an event that cannot wait does not bring the other along")
		}
		time.Sleep(patience)
		synctest.Wait()
		if isAwake(q) {
			t.Fatal("the reader is awake though there is no event")
		}
	})
}
