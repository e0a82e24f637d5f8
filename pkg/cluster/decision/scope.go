package decision

// Scope says between which queues, jobs or pods a plan preempts, and so which rules apply (rule A1). The search that
// makes a plan sets it. It is recorded with the plan, and later checks use it, whatever the name of the action that
// made the plan.
type Scope uint8

// The scopes.
const (
	// NoScope is the scope of a plan without a preemptor, or of one whose scope is unknown.
	NoScope Scope = iota
	// BetweenQueues: the victims are in other queues than the preemptor, as in Volcano's reclaim.
	BetweenQueues
	// BetweenJobs: the victims are in other jobs of the preemptor's queue, as in the first phase of Volcano's preempt.
	BetweenJobs
	// Anywhere: the preemptor is a lone pod, and the victims are in jobs of lower priority in any queue (rule A3).
	Anywhere
	// WithinJob: the victims are tasks of the preemptor with lower task priority, as in the second phase of Volcano's
	// preempt.
	WithinJob
)

// scopeNames are the names in records. Later versions must be able to read them.
var scopeNames = [...]string{NoScope: "", BetweenQueues: "BetweenQueues", BetweenJobs: "BetweenJobs", Anywhere: "Anywhere", WithinJob: "WithinJob"}

// String returns the name of the scope in records, "" for NoScope.
func (s Scope) String() string { return scopeNames[s] }

// ParseScope returns the scope with a name, NoScope if there is none.
func ParseScope(name string) Scope {
	for s, known := range scopeNames {
		if known == name {
			return Scope(s)
		}
	}
	return NoScope
}

// CrossesQueues reports whether victims may be in other queues than the preemptor.
func (s Scope) CrossesQueues() bool { return s == BetweenQueues || s == Anywhere }

// Scopes is a set of scopes.
type Scopes uint8

// ScopesOf returns a set of scopes.
func ScopesOf(scopes ...Scope) Scopes {
	var set Scopes
	for _, s := range scopes {
		set |= 1 << s
	}
	return set
}

// Has reports whether a scope is in the set.
func (s Scopes) Has(scope Scope) bool { return s&(1<<scope) != 0 }
