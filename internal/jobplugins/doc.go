// Package jobplugins equips the pods of a Job for their programs. They get their own number (env), addresses of their
// peers (svc), keys to log in to them (ssh), and what frameworks read to find their ranks (tensorflow, pytorch, mpi,
// ray, hcclrank). A Job names its plugins under spec.plugins, each with arguments as on a command line.
//
// Main types: Plugin edits pods; a Provider asks for objects besides the pods, each a Resource; a Set is the plugins of
// one Job, made by New. Names of objects, files, variables and ports are those that images made for Volcano read.
//
// Invariants:
//
//  1. The plugins of a Job act in one order, whatever the order in its spec: a later one may read what an earlier one
//     wrote (hcclrank reads RANK).
//  2. An unknown plugin or argument, or a value that cannot be used, is an error with its path; never a guess.
//  3. The same Job, task and index give the same pod. A variable that the template already has is overwritten in its
//     place, so no container has a variable twice.
//  4. Bringing a Resource up to date twice changes nothing the second time. Keys of ssh, once made, stay.
//
// It must not know the API server, phases, or when a pod is made.
package jobplugins
