// Package workloads measures, on a fresh local cluster, how many Workloads of Jobs hekla-scheduler and
// hekla-controllers admit in a second, compared with a loop of requests that decides nothing.
//
// Main types: [Options] and [Run]. [Report] is all that was measured, as JSON and as text.
//
// Invariants:
//
//  1. Both contenders work on as many equal Jobs and Workloads in one cluster, under ServiceAccounts of Hekla. Which of
//     them begins alternates from run to run.
//  2. The loop sends [WritesEach] requests for each Workload, as many at once as make it fastest. Hekla sends what it
//     sends: all requests of all clients are counted by the API server.
//  3. A Workload counts as admitted when a watch shows that its Job may make pods.
//  4. No controller manages the Jobs, so that they get no pods: what is measured is admission.
//
// It must not know how the scheduler and the controllers work: to it, they are processes that functions start.
package workloads
