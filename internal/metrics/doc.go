// Package metrics is what the scheduler shows to Prometheus: under Volcano's names where Volcano has the number, so
// that dashboards and alerts stay as they are, and under hekla_ where it has none.
//
// Main types: [Metrics] has all of them and a registry of its own; its methods are called where the number is known.
//
// Invariants:
//
//  1. A number that is shown is true of some moment in the last [TotalsPeriod]; no number is shown that is not counted.
//  2. What is gone is not shown: series of queues and jobs are made again from the model each time.
//  3. The hot path pays for a few observations per cycle, per pod that comes and per binding, and for nothing per node
//     or per pod that is there. What belongs to one job is copied every [TotalsPeriod], and made into series when
//     metrics are scraped.
//  4. Every name is in docs/metrics.md.
//
// It must not decide anything, and nothing may be decided on it.
package metrics
