package conditions

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// Preemption is what the condition Preempted says. Kueue's API has its message and no fields for it:
// [Preemption.String] writes the message that Kueue's users and programs know, and [PreemptionOf] reads it, also what
// Kueue itself has written. No other code reads or writes it.
type Preemption struct {
	UID, JobUID string // of the Workload for which the other was preempted, and of its job
	Reason      string // in words, such as "prioritization in the ClusterQueue"
	// Preemptor and Preemptee are the paths of the two ClusterQueues from the root of their cohorts.
	Preemptor, Preemptee string
}

// unknown stands for what is empty.
const unknown = "UNKNOWN"

const (
	beforeUID       = "Preempted to accommodate a workload (UID: "
	beforePreemptor = "; preemptor path: "
	beforePreemptee = "; preemptee path: "
)

// String is the message.
func (p Preemption) String() string {
	return fmt.Sprintf(beforeUID+"%s, JobUID: %s) due to %s"+beforePreemptor+"%s"+beforePreemptee+"%s", p.UID, cmp.Or(p.JobUID, unknown), p.Reason,
		cmp.Or(p.Preemptor, unknown), cmp.Or(p.Preemptee, unknown))
}

// PreemptionOf reads a message. What it does not say is empty.
func PreemptionOf(message string) (p Preemption) {
	between := func(before, after string) string {
		_, rest, _ := strings.Cut(message, before)
		value, _, found := strings.Cut(rest+"\n", after)
		if value = strings.TrimSuffix(value, "\n"); !found || value == unknown {
			return ""
		}
		return value
	}
	return Preemption{UID: between("(UID: ", ","), JobUID: between(", JobUID: ", ")"), Reason: between(" due to ", ";"),
		Preemptor: between("preemptor path: ", ";"), Preemptee: between("preemptee path: ", "\n")}
}

// PreemptorQueue is the name of the ClusterQueue of the preemptor, UNKNOWN if it is not known.
func (p Preemption) PreemptorQueue() string {
	if p.Preemptor == "" {
		return unknown
	}
	return path.Base(p.Preemptor)
}
