package decision

// Scope says between whom a plan moves room, and so which laws its evictions are under (rule A1). The search that makes a plan sets
// it, it is recorded with the plan, and later checks of the plan go by it, whatever the name of the action that made it.
type Scope uint8

// The scopes.
const (
	// NoScope is that of a plan that is for no job, and of one of which the scope is not known.
	NoScope Scope = iota
	// BetweenQueues: the victims are of other queues than the preemptor; Volcano's reclaim.
	BetweenQueues
	// BetweenJobs: the victims are of other jobs of the preemptor's queue; the first phase of Volcano's preempt.
	BetweenJobs
	// Anywhere: the preemptor is a lone pod, and the victims are of any job of lower priority, whatever its queue (rule A3).
	Anywhere
	// WithinJob: the victims are of the preemptor itself, with lower task priority; the second phase of Volcano's preempt.
	WithinJob
)

// scopeNames are how scopes are recorded. They are part of what one version writes and the next one reads.
var scopeNames = [...]string{NoScope: "", BetweenQueues: "BetweenQueues", BetweenJobs: "BetweenJobs", Anywhere: "Anywhere", WithinJob: "WithinJob"}

// String is the name of the scope, as it is recorded; "" for NoScope.
func (s Scope) String() string { return scopeNames[s] }

// ParseScope returns the scope of a name that was recorded, NoScope if there is none of that name.
func ParseScope(name string) Scope {
	for s, known := range scopeNames {
		if known == name {
			return Scope(s)
		}
	}
	return NoScope
}

// CrossesQueues reports whether victims may be of other queues than the preemptor.
func (s Scope) CrossesQueues() bool { return s == BetweenQueues || s == Anywhere }

// Scopes is a set of scopes.
type Scopes uint8

// ScopesOf returns the set of some scopes.
func ScopesOf(scopes ...Scope) Scopes {
	var set Scopes
	for _, s := range scopes {
		set |= 1 << s
	}
	return set
}

// Has reports whether a scope is in the set.
func (s Scopes) Has(scope Scope) bool { return s&(1<<scope) != 0 }
