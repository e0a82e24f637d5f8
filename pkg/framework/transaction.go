package framework

import "hekla.sh/hekla/pkg/cluster"

// Transaction brackets what an action tries. It ends with [Transaction.Undo] or, if it is not inside another, with
// [Transaction.Commit].
type Transaction struct {
	session *Session
	mark    int // in the undo log of the model
	first   int // in Session.placed
}

// Begin opens a transaction. One inside another ends before it; committing the outer one keeps both.
func (s *Session) Begin() Transaction {
	return Transaction{session: s, mark: s.Cluster.Mark(), first: len(s.placed)}
}

// Place puts a waiting task on a node.
func (x Transaction) Place(t *cluster.Task, n *cluster.Node) {
	s := x.session
	s.Cluster.Place(t, n)
	s.placed = append(s.placed, t)
	for _, plugin := range s.Policy.followers {
		plugin.TaskPlaced(t)
	}
}

// Placed is the number of tasks placed in the transaction so far.
func (x Transaction) Placed() int { return len(x.session.placed) - x.first }

// Undo takes back everything since Begin.
func (x Transaction) Undo() {
	s := x.session
	for i := len(s.placed) - 1; i >= x.first; i-- {
		for _, plugin := range s.Policy.followers {
			plugin.TaskTakenBack(s.placed[i])
		}
	}
	s.placed = s.placed[:x.first]
	s.Cluster.Undo(x.mark)
}

// Commit turns what was placed into decisions.
func (x Transaction) Commit() {
	s := x.session
	if x.mark != 0 {
		panic("invariant: a transaction inside another is committed, which the other could not undo")
	}
	for _, t := range s.placed[x.first:] {
		s.Cluster.Commit(t)
		s.Binds = append(s.Binds, cluster.Bind{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, Job: t.Job.ID})
	}
	s.placed = s.placed[:x.first]
	s.Cluster.Keep()
}

// LetIn moves a job through the door, for good.
func (s *Session) LetIn(j *cluster.Job) {
	s.Cluster.LetIn(j)
	s.Cluster.Keep()
}
