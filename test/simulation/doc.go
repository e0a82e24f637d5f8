// Package simulation runs the real scheduler and the real controllers against an API server in memory, in one process
// with a virtual clock, and breaks what is around them in an order that one number decides: the seed.
//
// Main types: a [Plan] says what happens in a run, apart from what the programs do. [Run] carries it out with some
// [Program] and returns a [Result]. [Shrink] makes a plan that fails smaller.
//
// How it works:
//
//   - A run is a bubble of testing/synctest. Time passes only when everything in it waits. Nothing listens or dials:
//     the programs get a transport that keeps each request until the driver serves it.
//   - The driver waits until all goroutines wait. Then it puts what could happen next into an order that does not
//     depend on goroutines: requests by program, verb, path and body; events by program and watch; what kubelets,
//     operators and a provisioner of volumes do; time. It takes one by the seed, carries it out, and waits again. That
//     is a step.
//   - The programs are started by the functions that their commands use (cmd/scheduler/app.Run,
//     cmd/controllers/app.Run), with leader election by the API. A program that is killed gets no answers from that
//     moment on. The request that it has sent last is carried out or not.
//   - Faults and the moves of actors (users, operators) are a list that is made of the seed before the run, each with
//     the step at which it happens. So one of them can be left out and the rest stays: that is how a failing plan
//     shrinks. How often each kind comes differs by phase, and half of the faults of writes wait for one kind of write
//     of ours: bindings and evictions are few.
//   - The rules look at the state of the API server alone: after each step that changed it at what may never be, and
//     at what must come when faults and moves have ended and everything had time to rest. What quotas allow is judged
//     by what the process that writes was told of them when it decided. The log of all requests goes to package audit,
//     which proves what it can from it. What is broken for some seconds in which nothing is in the way of the programs
//     is a violation, too: that pods of a queued Job run while its Workload is not admitted.
//   - When faults and moves end the run goes on for a while before it is healed, mostly with a contest for quota: what
//     only shows when nothing else happens for some time is seen then. At rest, no object waits for its deletion, no
//     pod that has ended keeps a finalizer, and nothing says of pods that they run, or holds quota or devices for them.
//   - On the way to the rest of most runs writes are still lost or refused, and events come late or not at all: a later
//     write or event often makes good what was not done about an earlier one, and none makes good the last.
//   - At the end a gang comes that needs all CPUs, and a Job that needs all quota. They must run: what a program still
//     counts though it is gone would be in their way.
//   - Some rules look at requests and not at their results, since it takes luck that these go wrong: that the scheduler
//     which leads writes alone, that pods are deleted by their UIDs, that plans are recorded before their evictions.
//
// Invariants:
//
//  1. Only the driver's goroutine talks to the API server in memory, apart from discovery, which programs ask for while
//     they hold locks.
//  2. The driver decides by the seed and by sorted lists only: the same programs make the same steps. What is left to
//     chance is within a program, and none of it takes a seed: the order of iterations over maps; which of several
//     ready cases a select takes; timers of the same instant; and where the runtime interrupts a goroutine, which it
//     does after ten milliseconds of real time, also on one processor. What parts two runs first, after some hundred
//     steps, is in client-go: AddEventHandler of an informer that has its list already tells the new handler of the
//     objects in the order of a map (List of the thread-safe store), and in that order a controller writes them. To
//     sort there would only let the next of these part them. So a seed that fails may have to run several times until
//     it fails again; HEKLA_SIMULATION_TRACE and HEKLA_SIMULATION_AUDIT keep the run that did.
//  3. What programs do is not stubbed. What is simulated is said here: kubelets (a bound pod starts, ends as its
//     annotations say, and goes when it is deleted), nodes with their devices, the provisioner of volumes, the
//     operator that makes the Jobs of JobSets and lets them run, users who replace the lost pods of a group, and what
//     the admission webhooks make of pods of groups. The controllers of Jobs, Deployments, ReplicaSets,
//     StatefulSets, budgets, namespaces, claims of devices and ephemeral volumes, the protection of claims, and the
//     garbage collector are those of Kubernetes.
//
// The environment of the tests: HEKLA_SIMULATION_SEED is the first seed, HEKLA_SIMULATION_RUNS how many there are, and
// HEKLA_SIMULATION_STEPS how many steps each has before it comes to rest. HEKLA_SIMULATION_TRACE names a file for the
// steps of the last run, and HEKLA_SIMULATION_AUDIT one for its audit log. HEKLA_SIMULATION_SHRINK is how many runs may
// be used to make a failing plan smaller, and with HEKLA_SIMULATION_LOG the programs log to standard error.
//
// It must not know how anything is decided.
package simulation
