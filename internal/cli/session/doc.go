// Package session has what the verbs of the command line share: flags for the cluster and the namespace, the client,
// files with manifests, tables and other output, shell completion, and errors in words.
//
// Main types: a [Session] is one execution of a program; a [Listing] says how a list of one kind is read and printed;
// [Rows] writes a table.
//
// Invariants:
//
//  1. Data goes to the standard output, everything else to the error output.
//  2. With a dry run on the client's side no request that changes something is sent.
//  3. An error of the API server is explained in a sentence that names the object and says what to do next. It wraps
//     its cause.
//  4. No cell of a table is empty, and no two touch.
//
// It must not know any verb.
package session
