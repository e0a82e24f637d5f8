package allocate

import (
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// shape is what two gangs have in common if nodes refuse the second because they refused the first. In a long backlog
// most gangs are of a few shapes.
type shape struct {
	queue    *cluster.Queue
	class    *cluster.Class // of all their tasks
	tasks    int
	minimum  int
	finished int // of their tasks
}

// refusal is why nodes refused a gang, and what the session had decided before.
type refusal struct {
	decided framework.Decided
	verdict *verdict.Verdict
	room    cluster.RoomWait
}

// placeGang is [gang.Place] for a job that is not ready. A gang of the same shape as one that was refused is refused
// for the same reasons, as long as nothing was decided in between.
func (r *run) placeGang(j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	s := r.session
	of, isComparable := shapeOf(s, j, tasks)
	if !isComparable {
		return gang.Place(s, j, tasks)
	}
	decided := s.Decided()
	if known, ok := r.refused[of]; ok && known.decided == decided && s.MayAllocate(tasks[0]) == nil && s.MayBind(tasks[0]) == nil {
		v := *known.verdict
		if v.Help&verdict.HelpRoom != 0 {
			s.Cluster.WaitForRoom(j, known.room)
		}
		v.Fitting = nil
		for _, t := range tasks[:len(known.verdict.Fitting)] {
			v.Fitting = append(v.Fitting, t.Pod.Name)
		}
		return &v
	}
	v := gang.Place(s, j, tasks)
	if v != nil && v.Code == verdict.NotEnoughResources {
		r.refused[of] = refusal{decided: decided, verdict: v, room: s.Cluster.RoomWait(j)}
	}
	return v
}

// shapeOf returns the shape of a gang whose tasks are all of one class and have no node yet. Other gangs are not
// comparable. None is if plugins veto nodes, because these read the pod itself and not only its class.
func shapeOf(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) (of shape, ok bool) {
	finished := j.Count(cluster.Succeeded)
	if len(tasks) == 0 || len(s.Policy.Vetoers) > 0 || j.Proximity != nil || len(j.Subgroups()) > 0 || j.ChecksRoles() || j.Ready() > finished {
		return shape{}, false
	}
	class := tasks[0].Class
	for _, t := range tasks {
		if t.Class != class {
			return shape{}, false
		}
	}
	return shape{queue: j.Queue, class: class, tasks: len(tasks), minimum: j.MinMember, finished: finished}, !class.NeedsSupplies()
}
