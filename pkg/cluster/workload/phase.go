package workload

// Phase is where a Workload is on its way.
//
//	           ┌─────────────── its victims do not leave ───────────────┐
//	           ▼                                                        │
//	Outside ◄──► Waiting ──── others must leave first ───────────► Planned
//	   ▲           │                                                  │
//	   │           │ fits now                        they have left   │
//	   │           ▼                                                  │
//	   │        Reserved ◄────────────────────────────────────────────┘
//	   │           │ all checks are ready
//	   │           ▼
//	   │        Admitted ──── all its pods have ended ──► Finished
//	   │           │
//	   │           │ preempted, stopped, or its nodes are gone; Reserved, too
//	   │           ▼
//	   └─────── Evicting, until its last pod is gone
//
// From Planned on it is charged, and holds nodes or the promise of them. Any phase ends in Finished if its object says
// so, and in Outside if it is deactivated or deleted. What was decided counts at once, before the object says it.
type Phase uint8

// The phases.
const (
	// PhaseOutside is that of a Workload that neither waits nor holds anything: no ClusterQueue may admit it now, or it
	// is in backoff.
	PhaseOutside Phase = iota
	// PhaseWaiting is in the line of a ClusterQueue, or refused until something changes.
	PhaseWaiting
	// PhasePlanned is charged and promised nodes, and others must leave before it starts. It is not evicted for others.
	PhasePlanned
	// PhaseReserved is charged and holds nodes, and has not passed its checks yet.
	PhaseReserved
	// PhaseAdmitted is that of a Workload whose job may run.
	PhaseAdmitted
	// PhaseEvicting is told to leave, or is to be. It holds what it has until its pods are gone.
	PhaseEvicting
	// PhaseFinished holds nothing, and never will.
	PhaseFinished
)

// Holds reports whether a Workload in this phase is charged for quota.
func (p Phase) Holds() bool { return p >= PhasePlanned && p <= PhaseEvicting }

// String is the name of the phase.
func (p Phase) String() string {
	return [...]string{"Outside", "Waiting", "Planned", "Reserved", "Admitted", "Evicting", "Finished"}[p]
}
