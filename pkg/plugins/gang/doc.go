// Package gang is the plugin that starts the pods of a job together or not at all: at least minMember of them, and of
// each task at least its own minimum (minTaskMember).
//
// As in Volcano the minimums of the tasks do not bind when minMember is smaller than their sum: then any pods will do.
// Jobs that have not started are served before those that have, and of those the ones that have lost pods and are below
// their minimum first: a broken gang holds room for nothing.
package gang
