// Package jobflow runs flow.volcano.sh JobFlows. It creates the Job <JobFlow>-<JobTemplate> of each flow when the
// flow's dependencies are met. It keeps the lists of Jobs in the status, and says why a JobFlow waits.
//
// The package is two halves. The pure half is functions of a JobFlow and its objects. flow/validation reads the spec,
// specOf merges a patch into a template, and buildJob says what a Job looks like. decide says which Jobs to create and
// what to wait for, and observe works out the status. The other half fetches, asks pods (prober), and writes
// (Reconciler). Add puts it into a manager.
//
// What a flow waits for: each target must be Completed. With a probe, a target must instead satisfy every entry of the
// probe that is about one of its tasks (Volcano accepts probes and ignores them). Of a task without pods, an entry
// holds.
//
//	httpGetList     each pod of the task has answered a GET to its address with a status of 200 to 399
//	tcpSocketList   each pod of the task has accepted a connection to its address
//	taskStatusList  all pods of the task are in the phase: Pending means that the target's Job exists, Running that they run
//	                or have succeeded
//
// Invariants:
//
//  1. A Job is made only when all that its flow depends on has been seen to hold, and never while the spec is invalid.
//  2. A Job belongs to a JobFlow by its controller reference (UID), never by its name or labels. What belongs to
//     another stays as it is, and the JobFlow says so.
//  3. No Job is made twice. What decides is a JobFlow read from the API server itself; one that is on record as
//     Completed counts as that for good, though it may be gone. Any other that is gone is made again. Those whose time
//     to live is over stay until they are on record (package garbagecollector).
//  4. Each Job that belongs to the JobFlow stands in exactly one list of the status, and one that was Completed stays.
//  5. Succeed and Failed are final: no Job is made after them. Jobs are deleted only after Succeed is on record, and
//     only if spec.jobRetainPolicy says so.
//  6. A worker never waits for a pod to answer. Probes run apart from the workers: at most proberWorkers at a time,
//     each for probeTimeout at most, at most maxOpen for one JobFlow, and one that has failed not before a delay that
//     grows. A pod that has answered is not asked again.
//  7. What is to be corrected is told once, in status.state and in an Event, with flow, field and value. A mistake in
//     one flow that the spec alone does not show (no such template, a patch that does not fit) stops that flow only.
//
// It must not know how Jobs run: their phases and counts are all it sees of them, and their pods' addresses.
package jobflow
