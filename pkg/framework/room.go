package framework

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// rooms is what a session knows about jobs that wait for enough room on nodes, or of a stock.
type rooms struct {
	session *Session
	roomed  map[*cluster.Job]cluster.RestKey // those that are in the session only because there is enough, see LacksRoom
	behind  map[*cluster.Job][]*cluster.Job  // others of the same queue that wait for the same and have not joined
	counted map[*cluster.Class]counted       // the room on nodes
	had     map[*cluster.Class]bool          // classes of jobs that did not get room although it was there
}

func newRooms(s *Session) rooms {
	return rooms{session: s, roomed: map[*cluster.Job]cluster.RestKey{}, behind: map[*cluster.Job][]*cluster.Job{}, counted: map[*cluster.Class]counted{},
		had: map[*cluster.Class]bool{}}
}

// join adds the first job of each queue to the session, of jobs that wait for the same. The others join when it has
// left enough, see JoinBehind. In a long backlog most do not.
func (r *rooms) join(key cluster.RestKey, jobs []*cluster.Job) {
	queues := map[*cluster.Queue][]*cluster.Job{}
	for _, j := range jobs {
		if j.Queue == nil {
			r.joinOne(key, j)
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
		if r.joinOne(key, jobs[0]) {
			r.behind[jobs[0]] = jobs[1:]
			continue
		}
		for _, j := range jobs[1:] { // what is wrong with the first may be wrong with all
			r.joinOne(key, j)
		}
	}
}

func (r *rooms) joinOne(key cluster.RestKey, j *cluster.Job) bool {
	r.session.Cluster.Look(j, r.session.Now)
	if !r.session.join(j) {
		return false
	}
	r.roomed[j] = key
	return true
}

// hasRoomFor reports whether there is still as much as a job waited for when the session began.
func (r *rooms) hasRoomFor(j *cluster.Job) bool {
	key := r.roomed[j]
	if key.Lacks.AnyIsMet() {
		return true
	}
	if key.Class == nil {
		return false
	}
	pods, _ := r.onNodes(key.Class)
	return pods >= key.Pods
}

// JoinBehind adds to the session the jobs that are behind another in their queue and wait for the same, unless there
// is no longer enough. It returns them. An action calls it when it has done with a job of FirstJobs.
func (s *Session) JoinBehind(first *cluster.Job) []*cluster.Job {
	behind := s.rooms.behind[first]
	if len(behind) == 0 || !s.rooms.hasRoomFor(first) {
		return nil
	}
	delete(s.rooms.behind, first)
	slices.SortFunc(behind, cluster.CompareJobs) // the backlog has them in no order
	return slices.DeleteFunc(behind, func(j *cluster.Job) bool { return !s.rooms.joinOne(s.rooms.roomed[first], j) })
}

// FirstJobs returns the jobs of a queue to look at, but of those that wait for the same only the first, see JoinBehind.
// The order does not say which is served first.
func (s *Session) FirstJobs(q *cluster.Queue) []*cluster.Job { return s.jobs[q] }

// counted is the room for a class at a position of [model.Cluster.Changes].
type counted struct {
	position, version uint64
	pods              int64
}

// onNodes counts the room on nodes now and in the outlook. Jobs of one class ask one after the other, so it keeps what
// it has counted until a node changes.
func (r *rooms) onNodes(k *cluster.Class) (pods int64, version uint64) {
	s := r.session
	position := s.Cluster.Position()
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

// WaitForRoom makes a job wait, by its verdict, until nodes have room for so many pods of a class, if they have less
// now. It reports whether that is so. Where as much is on its way and does not help, a job with pods of one class waits
// for more.
func (s *Session) WaitForRoom(j *cluster.Job, v *verdict.Verdict, k *cluster.Class, pods int) bool {
	now, ok := s.Placer.(RoomCounter)
	if !ok || s.trial || s.Cluster.DependsOnPods(k) || k.NeedsSupplies() {
		return false
	}
	var places verdict.Help
	if len(v.Fitting) > 0 {
		places = verdict.HelpPlaces
	}
	bound := eitherRoom{now: now.RoomBound(k)}
	if later, ok := s.Outlook.(RoomCounter); ok {
		bound.later = later.RoomBound(k)
	}
	if bound.Left() < int64(pods) { // usually, if the nodes are full
		*v = *v.Await(verdict.Lack{Stock: bound, Needed: int64(pods)}, 0)
		v.Help |= places
		return true
	}
	if there, _ := now.Room(k); there >= int64(pods) {
		return false
	}
	there, version := s.rooms.onNodes(k)
	if there >= int64(pods) {
		if pods < s.LacksToStart(j) {
			return false // room for pods of other classes may be what it lacks
		}
		s.rooms.had[k] = true
	}
	s.Cluster.WaitForRoom(j, cluster.RoomWait{Class: k, Pods: int64(pods), Version: version, Had: there >= int64(pods)})
	v.Help = verdict.HelpRoom | places
	return true
}

// Close ends the session when all actions have run. Room that is on its way, or that a job could not use, may have gone
// to others since that job was refused. So it is counted once more: as much that becomes free before the next session
// is more than what is left now.
func (s *Session) Close() {
	if _, ok := s.Placer.(RoomCounter); !ok {
		return
	}
	for k := range s.rooms.had {
		s.rooms.onNodes(k)
	}
	s.Cluster.Recount(s.rooms.onNodes)
}

// eitherRoom is the room on nodes now or in the outlook, if there is one.
type eitherRoom struct{ now, later verdict.Stock }

// Source is the nodes.
func (eitherRoom) Source() verdict.Help { return verdict.HelpNode }

func (r eitherRoom) Left() int64 {
	left := r.now.Left()
	if r.later != nil {
		left = max(left, r.later.Left())
	}
	return left
}

// NoteRefused keeps why nodes refuse a job, for [Session.StillRefused].
func (s *Session) NoteRefused(j *cluster.Job, v *verdict.Verdict) {
	if lack := v.Lacks[0]; lack.Stock != nil && lack.Stock.Source() == verdict.HelpNode && v.Lacks[1].Stock == nil && len(v.Fitting) == 0 && v.RetryAt.IsZero() {
		s.Cluster.NoteRefused(j, v)
	}
}

// StillRefused returns why nodes refused a job when they were asked last, if they must refuse it again for the same
// reason: nothing has happened that this refusal lists, and they have no more room. Such a job is in the session
// because something else may help, such as what its queue may reclaim, or pods that may be evicted. Nil says that nodes
// have to be asked.
func (s *Session) StillRefused(j *cluster.Job) *verdict.Verdict {
	v := s.Cluster.Refused(j)
	if v == nil || s.judged[j] || j.Verdict == nil {
		return nil
	}
	if _, isRoomed := s.rooms.roomed[j]; !isRoomed && !s.Cluster.HelpsOnlyRest(j, v) {
		return nil
	}
	if lack := v.Lacks[0]; lack.IsMet() || !slices.Contains(j.Verdict.Lacks[:], lack) {
		return nil
	}
	return v
}

// LacksRoom reports whether a job is in the session only because there was enough for it, and other jobs have got it
// since. What its verdict says still holds.
func (s *Session) LacksRoom(j *cluster.Job) bool {
	_, isRoomed := s.rooms.roomed[j]
	return isRoomed && !s.judged[j] && !s.rooms.hasRoomFor(j)
}
