// Package jobtemplate writes into the status of each flow.volcano.sh JobTemplate which Jobs were made from it. The
// Reconciler does; Add puts it into a manager.
//
// Invariants:
//
//  1. status.jobDependsOnList is the sorted names of those Jobs of the template's namespace whose annotation
//     volcano.sh/createdByJobTemplate names the template. A Job that is gone is not in it.
//  2. Nothing else of a template is ever written.
//
// It must not know what makes Jobs from templates.
package jobtemplate
