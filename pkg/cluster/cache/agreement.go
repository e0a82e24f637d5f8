package cache

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

func compare(found []string, what string, have, want int) []string {
	if have != want {
		found = append(found, fmt.Sprintf("%s is %d, should be %d", what, have, want))
	}
	return found
}

// checkPlans checks that the plans in force, their jobs and their victims know of each other, and what evictions take
// of disruption budgets.
func checkPlans(k *model.Cluster, tasks []*cluster.Task, jobs []*cluster.Job, isInTransaction bool) (found []string) {
	for _, p := range k.Plans().All() {
		id := p.ID
		if k.Plans().Get(id) != p || p.Job != nil && (k.Job(p.Job.ID) != p.Job || p.Job.Plan != p) {
			found = append(found, "plan "+id+" is listed and not in force")
		}
		for _, t := range p.Victims {
			stays := !t.Status.Leaves() && t.Status != cluster.Lingering && !isInTransaction
			if t.Evicts != p || k.Task(t.Key()) != t || stays {
				found = append(found, "task "+t.Key().String()+" is a victim of a plan that it does not leave for")
			}
		}
	}
	for _, j := range jobs {
		id := j.ID
		if j.Plan != nil && k.Plans().Get(j.Plan.ID) != j.Plan {
			found = append(found, "job "+id.String()+" has a plan that is not in force")
		}
	}
	for _, t := range tasks {
		key := t.Key()
		if t.Evicts != nil && !slices.Contains(t.Evicts.Victims, t) {
			found = append(found, "task "+key.String()+" leaves for a plan that does not list it")
		}
		if t.Status == cluster.Pipelined && t.Job == nil && t.Pod.Status.NominatedNodeName == t.NodeName() {
			continue // by another scheduler
		}
		if t.Status == cluster.Pipelined && (t.Job == nil || t.Job.Plan == nil) && !isInTransaction {
			found = append(found, "task "+key.String()+" is promised room and has no plan")
		}
		if t.Status == cluster.Evicting && t.Evicts == nil && !isInTransaction {
			found = append(found, "task "+key.String()+" is evicted and by no plan")
		}
		if k.IsLeaving(t) != t.Status.Leaves() {
			found = append(found, "task "+key.String()+" is "+t.Status.String()+", and not listed so")
		}
	}
	spent := map[*cluster.Budget]int{}
	for _, t := range tasks {
		for _, b := range k.BudgetsIn(t.Pod.Namespace) {
			if spent[b] += 0; t.Status == cluster.Evicting && b.Covers(t.Pod) {
				spent[b]++
			}
		}
	}
	for b, count := range spent {
		found = compare(found, "evictions under way of budget "+b.Namespace+"/"+b.Name, b.Spent(), count)
	}
	return found
}

// checkReservations compares the reservations of volumes and devices with those of the tasks.
func checkReservations(k *model.Cluster, tasks []*cluster.Task) (found []string) {
	reserved := map[supplies.Key]int{}
	for _, t := range tasks {
		if t.Reservation == nil {
			continue
		}
		if !model.Reserves(t, t.Status) {
			found = append(found, fmt.Sprintf("task %s is %s and holds a reservation", t.Key(), t.Status))
		}
		for _, key := range t.Reservation.Keys() {
			reserved[key]++
		}
	}
	for key, holders := range k.Supplies().Holders() {
		found = compare(found, fmt.Sprintf("number of holders of %s", key.NamespacedName), holders, reserved[key])
		delete(reserved, key)
	}
	found = compare(found, "objects that are reserved and have no holder", len(reserved), 0)
	return found
}
