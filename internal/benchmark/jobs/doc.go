// Package jobs measures, on a fresh local cluster, how many pods a second hekla-controllers makes of Jobs, compared
// with a loop of concurrent requests that makes the same objects.
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text.
//
// Invariants:
//
//  1. Both contenders make as many equal pods and PodGroups in one cluster, under the same ServiceAccount and with the
//     same client settings. Which of them begins alternates from run to run.
//  2. Rates are taken from outside: from when a watch shows the pods.
//  3. No scheduler runs. The benchmark admits each PodGroup when it is seen, as the scheduler would.
//
// It must not know how the controllers work: to it, they are a process that a function starts.
package jobs
