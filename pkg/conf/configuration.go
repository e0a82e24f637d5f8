package conf

import (
	"bytes"
	"fmt"
)

// Configuration is what the scheduler runs by: complete, checked, and not to be changed.
type Configuration struct {
	// Actions are run in this order in every cycle. There is at least one, each only once; aliases are resolved.
	Actions []string
	// Tiers hold the plugins; what an earlier tier decides is not put to a later one.
	Tiers []Tier
	// ActionArguments has an entry for each of Actions and for no other.
	ActionArguments map[string]Arguments
	// Metrics says where plugins that look at real load find it, under Volcano's keys. It is nil if none looks.
	Metrics map[string]string
	// Compatibility holds the switches for users who come from Volcano.
	Compatibility Compatibility
	// Notices are what the file says to no effect, by line.
	Notices []Notice
}

// Tier is a group of plugins that decide together.
type Tier struct {
	Plugins []Plugin
}

// Plugin is one plugin, at its place in the configuration. No plugin stands in two places.
type Plugin struct {
	Name      string // as the catalogue has it, aliases resolved
	Switches  Switches
	Arguments Arguments
	Line      int // where the file names it
}

// Compatibility restores, one by one, what Volcano does and the eviction rules do not. The zero value is the rules.
type Compatibility struct {
	// PreemptableByDefault lets a pod be a victim that does not say whether it may be (rule P2).
	PreemptableByDefault bool
	// QueuePriority is what a queue's priority is worth against another queue (rule Q1).
	QueuePriority QueuePriority
	// VictimVote is what an empty answer means when plugins vote on victims (rule T1).
	VictimVote VictimVote
}

// QueuePriority is what a queue's priority is worth against another queue. Anything but QueuePriorityOrder is strict.
type QueuePriority string

// The values of `compatibility.queuePriority`.
const (
	QueuePriorityStrict QueuePriority = "strict" // a queue of higher priority takes even from within a share
	QueuePriorityOrder  QueuePriority = "order"  // priority orders queues; only what is above a share may be taken
)

// VictimVote is what an empty answer to a vote on victims means. Anything but VictimVoteUpstream is strict.
type VictimVote string

// The values of `compatibility.victimVote`.
const (
	VictimVoteStrict   VictimVote = "strict"   // an empty answer is a no
	VictimVoteUpstream VictimVote = "upstream" // an empty answer is no answer
)

// Notice is something in the file that is well formed and changes nothing, or not until something else is there.
type Notice struct {
	Line int
	Text string
}

// String is the notice as one line.
func (n Notice) String() string { return fmt.Sprintf("line %d: %s", n.Line, n.Text) }

// Equal reports whether c and d configure the same, wherever it is written. So a file whose comments have changed is
// no new configuration.
func (c *Configuration) Equal(d *Configuration) bool {
	if c == nil || d == nil {
		return c == d
	}
	// What is printed is all that is in force (invariant 4), and prints in one order.
	return bytes.Equal(c.YAML(), d.YAML())
}
