// Package chaos runs a local cluster under load while it breaks what is around the scheduler and the controllers, and
// then checks that nothing is wrong or left over: `hekla chaos`.
//
// Main types: [Options] and [Run]. A [Component] is a program that is started, and broken. [Report] is what was done
// and what was found. A fault is a row of a table: its name, what it does, how often, for how long, and what undoes it.
//
// How it works:
//
//   - The plan of faults is made before the run, from the seed alone: which fault, when. It is carried out in order,
//     and each line of the log says the time, the fault and what it met. What cannot be done is tried again.
//   - The churn creates jobs of several kinds as long as few enough are unfinished, deletes some of them early, evicts
//     pods and cordons nodes. It counts jobs that have ended, and removes them.
//   - What has ended is launched again without waiting, as a kubelet does.
//   - Without faults each component is asked every minute what it holds: its heap, goroutines, descriptors and series
//     of metrics, see [Usage]. After a warm-up none of these may grow.
//   - Each component talks to the API server through a network of its own, see package network.
//   - Then all faults are undone. The jobs must end, their removal must leave no object that was not there before, and
//     the components must write nothing more. In the end package audit reads the log of the API server.
//
// Invariants:
//
//  1. The same seed, duration and choice of faults give the same plan. What it meets depends on time.
//  2. Every fault that lasts is undone before it is repeated, and all are undone before anything is judged by its end.
//  3. What is judged is read from the API server and its audit log. No component is asked but for what it holds.
//  4. The API server is stopped in order and not killed: its log would lack requests that it had carried out, and the
//     audit would not know of them. etcd is killed.
//
// It must not know how anything is decided, nor how a component is started: to it, that is a function.
package chaos
