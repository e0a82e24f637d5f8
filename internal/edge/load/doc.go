// Package load reads the load of nodes. It asks a source of metrics at intervals, and passes the loads to the model as
// events.
//
// The `metrics` block of the scheduler's configuration names the source (type): a Prometheus that scrapes
// node_exporters, or an Elasticsearch that Metricbeat writes to. It may also be the metrics-server, or the custom
// metrics of a Prometheus adapter, through the API server.
//
// Main types: [Meter] asks a source as long as its block is in force. A source is a server that measures loads.
//
// Invariants:
//
//  1. A question covers all nodes at once. The number of requests does not grow with the number of nodes.
//  2. No question takes longer than [patience], no answer is read beyond [maxAnswer] bytes, and one question is under
//     way at a time. The scheduler does not wait for a source.
//  3. What is reported has the time at which it was measured, or asked for if the source does not say. So a load grows
//     old if no answer comes. The readers decide what follows from that.
//  4. A node for which CPU or memory is missing, or is no finite number, is left out. The others are reported.
//  5. A new block is in force at once, and the answer to a question of the block before it is dropped.
//  6. A source that fails is asked again after the interval. What is wrong is logged when it changes.
//
// It must not know which plugins read the loads.
package load
