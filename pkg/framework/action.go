package framework

import "hekla.sh/hekla/pkg/cluster"

// Action is one step of the pipeline. An action is built when its configuration comes into force, and serves until the
// next one does.
type Action interface {
	// Name is the name of the action in the configuration.
	Name() string
	// Execute runs the action once in a cycle. It places, admits or plans for jobs of the session through transactions.
	// It notes a verdict on every job for which it could do nothing. It must leave no transaction open.
	Execute(s *Session)
}

// AllocatingAction is an action that places pods on free nodes in the order of queues and jobs, as Volcano's allocate
// does. While such an action is still to run in the cycle, an evicting action does not use free room for the surplus of
// a job.
type AllocatingAction interface {
	Action
	// PlaceFirst places up to so many pods of a job on free nodes before other jobs have their turn, or as many as it
	// needs to start.
	PlaceFirst(s *Session, j *cluster.Job, pods int)
}
