package cohorts

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/world"
)

// research is the Queue of Volcano that trees of ClusterQueues hang below in every second walk (rule C22).
const research = "research"

// hang begins a walk in which trees may hang below a Queue. What happens to that has random numbers of its own.
func (w *walk) hang(seed uint64) {
	if seed%2 == 1 {
		return
	}
	w.limits = rand.New(rand.NewPCG(seed, 8))
	w.editQueue()
	for _, name := range w.Names("v1beta2.Cohort/") {
		o := w.Object(name).DeepCopyObject().(*v1beta2.Cohort)
		o.Annotations = map[string]string{v1beta2.QueueAnnotation: research}
		w.Replace(o)
	}
}

// below makes a Cohort or ClusterQueue that is set name the Queue, mostly.
func (w *walk) below(kind, text string) string {
	if w.limits == nil || kind != "Cohort" && kind != "ClusterQueue" || w.limits.IntN(3) == 0 {
		return text
	}
	return strings.Replace(text, `"metadata":{`, fmt.Sprintf(`"metadata":{"annotations":{%q:%q},`, v1beta2.QueueAnnotation, research), 1)
}

// editQueue gives the Queue another capability, or deletes it.
func (w *walk) editQueue() {
	if o := w.Object("v1beta1.Queue/" + research); o != nil && w.limits.IntN(5) == 0 {
		w.say("delete the Queue")
		w.Delete(o)
		return
	}
	capability := 2 + w.limits.IntN(14)
	w.say("the Queue has the capability %d", capability)
	w.Apply(fmt.Sprintf("{kind: Queue, metadata: {name: %s}, spec: {weight: 1, capability: {cpu: %d}}, status: {state: Open}}", research, capability))
}

// isBelow reports whether what a ClusterQueue holds counts in the Queue, by the objects.
func (w *walk) isBelow(queue string) bool {
	q, _ := w.Object("v1beta2.ClusterQueue/" + queue).(*v1beta2.ClusterQueue)
	if q == nil {
		return false
	}
	s := settings.OfClusterQueue(q)
	if s.Cohort == "" {
		return s.Queue == research
	}
	name := s.Cohort
	for range 10 {
		c, _ := w.Object("v1beta2.Cohort/" + name).(*v1beta2.Cohort)
		if c == nil {
			return false
		}
		s := settings.OfCohort(c)
		if s.Parent == "" {
			return s.Queue == research
		}
		name = s.Parent
	}
	return false // Cohorts in a circle
}

// overCapability says by how much the Queue is over its capability with a Workload that is admitted.
func (w *walk) overCapability(instead *v1beta2.Workload) string {
	q, _ := w.Object("v1beta1.Queue/" + research).(*schedulingv1beta1.Queue)
	if q == nil || !w.isBelow(heldBy(instead)) || w.held(instead) == 0 {
		return ""
	}
	most := q.Spec.Capability.Cpu().Value()
	now, held, leave := int64(0), int64(0), w.leaving()
	for _, o := range w.Workloads() {
		if w.isBelow(heldBy(o)) || o.Name == instead.Name {
			now += w.onNodes(o)
		}
		switch {
		case leave[o.Name]: // it may be admitted for a moment after others were promised what it has
			continue
		case o.Name == instead.Name:
			o = instead
		case heldBy(o) == "":
			o = w.promised(o)
		}
		if !conditions.Is(o, v1beta2.Evicted) && o.DeletionTimestamp == nil && w.isBelow(heldBy(o)) { // in the end, when all have left who are to leave
			held += w.held(o)
		}
	}
	if now += w.held(instead); now > most || held > most {
		return fmt.Sprintf("the Queue holds %d of %d then, and %d in the end: %s", now, most, held, w.holders(instead))
	}
	return ""
}

// onNodes is how many cores the pods of a Workload hold that have not ended.
func (w *walk) onNodes(o *v1beta2.Workload) (cores int64) {
	if j := w.Job(cluster.WorkloadID(world.Namespace, o.Name)); j != nil {
		for _, t := range j.Tasks() {
			if !t.IsStandIn && t.Status.Holds() {
				cores += t.Request().At(resources.CPU)
			}
		}
	}
	return cores / 1000
}

// held is how many cores the pods of a Workload hold or are to get. Other than quota, a Queue has back at once what
// pods held that have ended.
func (w *walk) held(o *v1beta2.Workload) (cores int64) {
	ended := w.Succeeded(o.Name)
	for i := range o.Status.Admission.PodSetAssignments {
		p := &o.Status.Admission.PodSetAssignments[i]
		if all := int64(*p.Count); all > 0 {
			usage := p.ResourceUsage[corev1.ResourceCPU]
			cores += usage.Value() / all * max(0, all-int64(ended[p.Name]))
		}
	}
	return cores
}

// belowResearch are two queues in a Cohort below a Queue that may hold less than their quotas.
const belowResearch = `
{kind: Queue, metadata: {name: research}, spec: {weight: 1, capability: {cpu: 4}}, status: {state: Open}}
---
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: Cohort, metadata: {name: c, annotations: {hekla.sh/queue: research}}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {cohortName: c, namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{kind: ClusterQueue, metadata: {name: r}, spec: {cohortName: c, namespaceSelector: {}, resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: r}, spec: {clusterQueue: r}}`

func TestPodsThatLeaveCountInACapabilityUntilTheyAreGone(t *testing.T) { // C22
	for _, c := range []struct {
		name, queue string
		isPromised  bool
	}{
		{"a Workload of another queue waits until they are gone", "r", false},
		{"one that may evict them is promised their room", "q", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=4").Apply(belowResearch)
			w.Grace = 5
			w.Apply(workloadOf("low", "q", 0, 1, "4")).Rest(20)
			w.Expect("low", "admitted")
			low := w.Workload("low").DeepCopy()
			inactive := false
			low.Spec.Active = &inactive
			w.Replace(low)
			w.Step()
			w.Apply(workloadOf("high", c.queue, 5, 1, "4"))
			promised := false
			for range 20 {
				w.Step()
				promised = promised || strings.HasPrefix(w.Says("high"), "WaitingForPreemptedWorkloads")
				if len(w.Pods("low")) > 0 && len(w.Pods("high")) > 0 {
					t.Fatal("both have pods")
				}
			}
			if w.Expect("high", "admitted"); promised != c.isPromised || w.Evictions > 0 {
				t.Errorf("promised is %t after %d evictions", promised, w.Evictions)
			}
		})
	}
}

func TestAPlanIsNotTakenUpBeforeItsVictimsWereTold(t *testing.T) { // C18
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=4").Apply(belowResearch)
	w.Apply(workloadOf("low", "q", 0, 1, "4")).Rest(20)
	activate := func(isActive bool) {
		low := w.Workload("low").DeepCopy()
		low.Spec.Active = &isActive
		w.Replace(low)
		w.Rest(20)
	}
	activate(false)
	activate(true)
	if w.Expect("low", "admitted"); conditions.Of(w.Workload("low"), v1beta2.Evicted) == nil {
		t.Fatal("it was never evicted")
	}
	w.Apply(workloadOf("high", "q", 5, 1, "4"))
	for w.Workload("high").Annotations[v1beta2.PlanAnnotation] == "" {
		w.Step()
	}
	w.Restart(nil)
	for range 20 {
		if w.Step(); len(w.Pods("low")) > 0 && len(w.Pods("high")) > 0 {
			t.Fatal("both have pods")
		}
	}
	if w.Expect("high", "admitted"); w.Evictions != 1 {
		t.Errorf("%d evictions", w.Evictions)
	}
}
