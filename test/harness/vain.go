package harness

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/decision"
)

// Vain finds pods that get the room of a plan that has ended, and are evicted for the same job right after, though
// nothing has happened in between. It is no such thing if the pod was promised the room before the plan ended, or if a
// pod of the job was gone and another has come in its place. Nor is it if pods were evicted for another job since:
// these may have left more room than that job needs. A job that loses its room to pods of other schedulers twice in a
// row pauses, and others may use the room meanwhile. The same holds for a job that loses its room to one whose pod
// could not be bound: others may use what that one had. And others may use the room while a pod may not be evicted that
// the API server has refused to evict: the job may get it when it asks again.
type Vain struct {
	nodes    map[string][]string    // of the plans of jobs, by the names of the jobs
	placed   map[string][]types.UID // the pods of these plans
	ended    map[string]planEnd     // the last plans of jobs that ended
	bound    map[string]int         // when pods were bound
	promised map[string]int         // since when pods are promised nodes
	evicts   map[string]bool        // whether the plans of jobs evict pods
	losses   map[string]int         // how often in a row jobs lost the room of such plans
	evicted  []evictedFor
}

// evictedFor says for which job pods were evicted in a cycle.
type evictedFor struct {
	cycle int
	job   string
}

// planEnd is when a plan ended, whether it was because pods that it placed were gone, and which of its victims the API
// server had refused to evict.
type planEnd struct {
	cycle    int
	lostPods bool
	refused  []types.UID
}

// soon is within how many cycles.
const soon = 3

// Forget says that something has happened.
func (v *Vain) Forget() { v.ended, v.bound = map[string]planEnd{}, map[string]int{} }

// ForgetJob says that something has happened to a job.
func (v *Vain) ForgetJob(name string) { delete(v.ended, name) }

// Observe looks at the decisions of a cycle, and says which pod was evicted in vain, "" if none was.
func (v *Vain) Observe(cycle int, d *decision.Decisions) string {
	if v.nodes == nil {
		v.nodes, v.placed, v.promised = map[string][]string{}, map[string][]types.UID{}, map[string]int{}
		v.evicts, v.losses = map[string]bool{}, map[string]int{}
	}
	if v.ended == nil {
		v.Forget()
	}
	taken := map[string]bool{} // why plans end whose room goes to jobs whose pods could not be bound
	for _, e := range d.Ended {
		if taken[e.Why] {
			delete(v.ended, e.Job.Name)
			continue
		}
		switch e.Why {
		case "the pod could not be bound": // the job pauses, and others may use the room meanwhile
			taken["job "+e.Job.Namespace+"/"+e.Job.Text()+" of higher priority takes the room that was promised"] = true
			continue
		case "the job is gone": // one that comes back under its name is new, and has no plan
			continue
		case "the room that was promised is not there any more":
			if v.evicts[e.Job.Name] {
				v.losses[e.Job.Name]++
			}
			if v.losses[e.Job.Name] > 1 { // the job pauses
				delete(v.ended, e.Job.Name)
				continue
			}
		}
		end := planEnd{cycle: cycle, lostPods: e.Why == "pods that room was made for are gone"}
		for _, spared := range e.Spared {
			if spared.Refused != "" {
				end.refused = append(end.refused, spared.UID)
			}
		}
		v.ended[e.Job.Name] = end
	}
	for _, p := range d.Plans {
		end, hadPlan := v.ended[p.Job.Name]
		isNewPod := func(n decision.Nomination) bool { return !slices.Contains(v.placed[p.Job.Name], n.UID) }
		isOther := func(e evictedFor) bool { return e.job != p.Job.Name && e.cycle > end.cycle && e.cycle < cycle }
		wasRefused := func(e decision.Eviction) bool { return slices.Contains(end.refused, e.UID) }
		if hadPlan && (end.lostPods && slices.ContainsFunc(p.Nominations, isNewPod) || slices.ContainsFunc(v.evicted, isOther) || slices.ContainsFunc(p.Evictions, wasRefused)) {
			hadPlan = false
			v.ForgetJob(p.Job.Name) // a scheduler that starts now may make the same plan once more
		}
		var nodes []string
		var placed []types.UID
		for _, e := range p.Evictions {
			bound, isNew := v.bound[e.Pod.Name]
			if hadPlan && isNew && bound >= end.cycle && cycle-bound <= soon && !v.wasPromised(e.Pod.Name, end.cycle) && slices.Contains(v.nodes[p.Job.Name], e.Node) {
				return fmt.Sprintf("pod %s was bound in cycle %d after a plan of job %s had ended in cycle %d, and is evicted for it in cycle %d",
					e.Pod.Name, bound, p.Job.Name, end.cycle, cycle)
			}
			nodes = append(nodes, e.Node)
		}
		for _, n := range p.Nominations {
			nodes, placed = append(nodes, n.Node), append(placed, n.UID)
			v.promised[n.Pod.Name] = cycle
		}
		v.nodes[p.Job.Name], v.placed[p.Job.Name], v.evicts[p.Job.Name] = nodes, placed, len(p.Evictions) > 0
		if len(p.Evictions) > 0 {
			v.evicted = append(v.evicted, evictedFor{cycle, p.Job.Name})
		}
	}
	for _, b := range d.Binds {
		v.bound[b.Pod.Name] = cycle
		v.losses[b.Job.Name] = 0
	}
	return ""
}

// wasPromised reports whether a pod was promised a node before a cycle.
func (v *Vain) wasPromised(pod string, cycle int) bool {
	since, ok := v.promised[pod]
	return ok && since < cycle
}
