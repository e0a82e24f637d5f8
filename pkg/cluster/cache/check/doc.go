// Package check checks parts of a model: that its plans, and its reservations of volumes and devices, agree with its tasks and jobs.
//
// Main functions: [Plans] and [Reservations], which package cache uses in its audit. They return what is wrong, one sentence each.
//
// This package must not know events, and changes nothing.
package check
