// Package load finds out how busy the nodes are. It asks who measures them, at intervals, and what it is told goes to the model
// as events.
//
// The `metrics` block of the scheduler's configuration says who is asked (type): a Prometheus that scrapes node_exporters, an
// Elasticsearch that Metricbeat writes to, or through the API server the custom metrics of a Prometheus adapter or the
// metrics-server.
//
// Main types: [Meter] asks, for as long as its block is in force; a source is a server that can be asked.
//
// Invariants:
//
//  1. A question covers all nodes at once: what asking costs does not grow with their number.
//  2. No question takes longer than [patience], no answer is read beyond [maxAnswer] bytes, and one question is under way at a
//     time. A source that does not answer costs the scheduler nothing but the knowledge.
//  3. What is reported has the time at which it was measured, or asked for if the source does not say. So knowledge ages where
//     no answer comes; nothing here says what follows from that.
//  4. A node for which CPU or memory is missing, or is no finite number, is left out. The others are reported.
//  5. A new block is in force at once, and the answer to a question of the block before it is dropped.
//  6. A source that fails is asked again after the interval. What is wrong is logged when it changes.
//
// It must not know who reads the loads.
package load
