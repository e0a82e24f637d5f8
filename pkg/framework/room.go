package framework

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
)

// rooms is what a session knows about jobs that wait for room on nodes.
type rooms struct {
	session *Session
	roomed  map[*cluster.Job]bool           // only room has helped them, see LacksRoom
	behind  map[*cluster.Job][]*cluster.Job // others of the same queue that wait for the same room and have not joined
	counted map[*cluster.Class]counted      // the room on nodes
}

func newRooms(s *Session) rooms {
	return rooms{session: s, roomed: map[*cluster.Job]bool{}, behind: map[*cluster.Job][]*cluster.Job{}, counted: map[*cluster.Class]counted{}}
}

// join adds the first job of each queue to the session, of jobs that wait for the same room. The others join when it has
// not taken the room, see JoinBehind. In a long backlog most do not.
func (r *rooms) join(jobs []*cluster.Job) {
	queues := map[*cluster.Queue][]*cluster.Job{}
	for _, j := range jobs {
		if j.Queue == nil {
			r.joinOne(j)
			continue
		}
		queues[j.Queue] = append(queues[j.Queue], j)
	}
	for _, jobs := range queues {
		first := 0
		for i := 1; i < len(jobs); i++ {
			if r.session.CompareJobs(jobs[i], jobs[first]) < 0 {
				first = i
			}
		}
		jobs[0], jobs[first] = jobs[first], jobs[0]
		if r.joinOne(jobs[0]) {
			r.behind[jobs[0]] = jobs[1:]
			continue
		}
		for _, j := range jobs[1:] { // what is wrong with the first may be wrong with all
			r.joinOne(j)
		}
	}
}

func (r *rooms) joinOne(j *cluster.Job) bool {
	r.session.Cluster.Look(j, r.session.Now)
	if !r.session.join(j) {
		return false
	}
	r.roomed[j] = true
	return true
}

// hasRoomFor reports whether there is still as much room as a job waited for.
func (r *rooms) hasRoomFor(j *cluster.Job) bool {
	w := r.session.Cluster.RoomWait(j)
	amount, _ := r.count(&w)
	return amount >= w.Amount
}

// JoinBehind adds to the session the jobs that are behind another in their queue and wait for the same room, unless there
// is no longer enough. It returns them. An action calls it when it has done with a job of FirstJobs.
func (s *Session) JoinBehind(first *cluster.Job) []*cluster.Job {
	behind := s.rooms.behind[first]
	if len(behind) == 0 || !s.rooms.hasRoomFor(first) {
		return nil
	}
	delete(s.rooms.behind, first)
	slices.SortFunc(behind, cluster.CompareJobs) // the backlog has them in no order
	return slices.DeleteFunc(behind, func(j *cluster.Job) bool { return !s.rooms.joinOne(j) })
}

// FirstJobs returns the jobs of a queue to look at, but of those that wait for the same room only the first, see JoinBehind.
// The order does not say which is served first.
func (s *Session) FirstJobs(q *cluster.Queue) []*cluster.Job { return s.jobs[q] }

// counted is the room for a class at a position of [model.Cluster.Changes].
type counted struct {
	position, version uint64
	pods              int64
}

// count counts what a job waits for. The Placer must be a [RoomCounter].
func (r *rooms) count(w *cluster.RoomWait) (amount int64, version uint64) {
	if w.Stock == nil {
		return r.onNodes(w.Class)
	}
	left := w.Stock.Left()
	return left, uint64(left)
}

// onNodes counts the room on nodes now and in the outlook. Jobs of one class ask one after the other, so it keeps what it
// has counted until a node changes.
func (r *rooms) onNodes(k *cluster.Class) (pods int64, version uint64) {
	s := r.session
	_, position, _ := s.Cluster.Changes(0)
	if known, ok := r.counted[k]; ok && known.position == position {
		return known.pods, known.version
	}
	pods, version = s.Placer.(RoomCounter).Room(k)
	if outlook, ok := s.Outlook.(RoomCounter); ok {
		later, laterVersion := outlook.Room(k)
		pods, version = max(pods, later), version+laterVersion
	}
	r.counted[k] = counted{position: position, pods: pods, version: version}
	return pods, version
}

// WaitForRoom notes that a job cannot start unless nodes have room for so many pods of a class, if they have less now. It
// reports whether that is so. Then [verdict.HelpRoom] takes the place of HelpNode in the verdict.
func (s *Session) WaitForRoom(j *cluster.Job, k *cluster.Class, pods int) bool {
	now, ok := s.Placer.(RoomCounter)
	if !ok || s.trial || s.Cluster.DependsOnPods(k) || k.NeedsSupplies() {
		return false
	}
	if there, _ := now.Room(k); there >= int64(pods) {
		return false
	}
	_, version := s.rooms.onNodes(k)
	s.Cluster.WaitForRoom(j, cluster.RoomWait{Class: k, Amount: int64(pods), Version: version})
	return true
}

// WaitForAdmission notes what a job that was not admitted waits for, if it lacks an amount without which no plugin can admit it.
// It reports whether that is so. Then [verdict.HelpRoom] takes the place of the plugin's help in the verdict.
func (s *Session) WaitForAdmission(j *cluster.Job) bool {
	if _, ok := s.Placer.(RoomCounter); !ok || s.trial {
		return false
	}
	stock, needed := s.lacking(j)
	if stock == nil {
		return false
	}
	w := cluster.RoomWait{Stock: stock, Amount: needed}
	_, w.Version = s.rooms.count(&w)
	s.Cluster.WaitForRoom(j, w)
	return true
}

// LacksRoom reports whether a job is in the session only because there was room for it, and other jobs have got the room
// since. What its verdict says still holds.
func (s *Session) LacksRoom(j *cluster.Job) bool {
	return s.rooms.roomed[j] && !s.judged[j] && !s.rooms.hasRoomFor(j)
}
