package framework

// Action is one step of the pipeline. It lives as long as its configuration is in force.
type Action interface {
	// Name is the name in the configuration.
	Name() string
	// Execute decides. It finds what waits in the session, places and lets in through it, and leaves a verdict with every
	// job it looked at in vain. It must leave no transaction open.
	Execute(s *Session)
}

// AllocatingAction is an action that hands out free room in the order of service, as Volcano's allocate does. While it has its turn
// still to come, an evicting action that finds free room for pods beyond a job's minimum leaves it to this action.
type AllocatingAction interface {
	Action
	AllocatesFreeRoom()
}
