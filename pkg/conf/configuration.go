package conf

import (
	"bytes"
	"fmt"
)

// Configuration is a complete and checked configuration. It must not be changed.
type Configuration struct {
	// Actions run in this order in every cycle. There is at least one, and none twice. Aliases are resolved.
	Actions []string
	// Tiers hold the plugins. If an earlier tier decides a question, later tiers are not asked.
	Tiers []Tier
	// ActionArguments has an entry for each of Actions and for no other.
	ActionArguments map[string]Arguments
	// Metrics says where plugins find loads, by Volcano's keys. It is nil if no plugin reads them.
	Metrics map[string]string
	// Compatibility has the settings for users of Volcano.
	Compatibility Compatibility
	// Notices are the parts of the file without effect, by line.
	Notices []Notice
}

// Tier is a group of plugins that decide together.
type Tier struct {
	Plugins []Plugin
}

// Plugin is one plugin in a tier. No plugin is configured twice.
type Plugin struct {
	Name      string // as in the catalogue, aliases resolved
	Switches  Switches
	Arguments Arguments
	Line      int // where the file names it
}

// Compatibility restores behaviour of Volcano that differs from the eviction rules. The zero value follows the rules.
type Compatibility struct {
	// PreemptableByDefault allows evicting pods that are not marked (rule P2).
	PreemptableByDefault bool
	// QueuePriority is what the priority of a queue means for other queues (rule Q1).
	QueuePriority QueuePriority
	// VictimVote is what an empty answer means when plugins vote on victims (rule T1).
	VictimVote VictimVote
}

// QueuePriority is what the priority of a queue means for other queues. Any value but QueuePriorityOrder means strict.
type QueuePriority string

// The values of `compatibility.queuePriority`.
const (
	QueuePriorityStrict QueuePriority = "strict" // a queue of higher priority may take even what is within a share
	QueuePriorityOrder  QueuePriority = "order"  // priority only orders queues, and only what is above a share may be taken
)

// VictimVote is what an empty answer to a vote on victims means. Any value but VictimVoteUpstream means strict.
type VictimVote string

// The values of `compatibility.victimVote`.
const (
	VictimVoteStrict   VictimVote = "strict"   // an empty answer rejects
	VictimVoteUpstream VictimVote = "upstream" // an empty answer abstains
)

// Notice is a valid part of the file that changes nothing, or nothing until something else is configured.
type Notice struct {
	Line int
	Text string
}

// String formats the notice as one line.
func (n Notice) String() string { return fmt.Sprintf("line %d: %s", n.Line, n.Text) }

// Equal reports whether c and d configure the same, whatever their files look like. So a file with changed comments is
// no new configuration.
func (c *Configuration) Equal(d *Configuration) bool {
	if c == nil || d == nil {
		return c == d
	}
	// The text has all settings (invariant 4), in one order.
	return bytes.Equal(c.YAML(), d.YAML())
}
