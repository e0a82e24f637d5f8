package cohorts

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
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

// below has a Cohort or ClusterQueue that is set name the Queue, mostly.
func (w *walk) below(kind, text string) string {
	if w.limits == nil || kind != "Cohort" && kind != "ClusterQueue" || w.limits.IntN(3) == 0 {
		return text
	}
	return strings.Replace(text, `"metadata":{`, fmt.Sprintf(`"metadata":{"annotations":{%q:%q},`, v1beta2.QueueAnnotation, research), 1)
}

// editQueue has the Queue have another capability, or be gone.
func (w *walk) editQueue() {
	w.edited = w.step
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
	held, leave := int64(0), w.leaving()
	for _, o := range w.Workloads() {
		switch {
		case leave[o.Name]: // it may be admitted for a moment after others were promised what it has
			continue
		case o.Name == instead.Name:
			o = instead
		case heldBy(o) == "":
			o = planned(o)
		}
		if !conditions.Is(o, v1beta2.Evicted) && o.DeletionTimestamp == nil && w.isBelow(heldBy(o)) { // pods that leave count no more
			held += w.held(o)
		}
	}
	if most := q.Spec.Capability.Cpu().Value(); held > most {
		return fmt.Sprintf("the Queue then holds %d of %d: %s", held, most, w.holders(instead))
	}
	return ""
}

// held is how many cores the pods of a Workload hold or are to get. Other than quota, a Queue has back at once what pods held that have
// ended.
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
