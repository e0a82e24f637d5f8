// Package web serves the web page of the scheduler: a read-only view of jobs, queues, nodes, evictions and cycles, in a
// browser.
//
// Main type: [Handler] serves the files of the page, and the answers that the page asks for. The files are
// made by make web of the folder web, in TypeScript, and are committed in dist, so that a build needs no Node. CI
// checks that they are what make web makes.
//
// Invariants:
//
//  1. Files of the page are public. They hold nothing of the cluster: all that the page shows it gets from package
//     answers, with the credentials of the reader.
//  2. The page asks no other host, runs no script but its own file, and is shown in no frame: the header
//     Content-Security-Policy says so to the browser.
//
// It must not know who may ask what, nor what answers say.
package web
