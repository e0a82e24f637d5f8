// Package supply shows the kube-scheduler's plugins the volumes and devices of the model, in the types that they read
// them from.
//
// Main types: a [Shelf] keeps listers next to the model. [Devices] are what the plugin for resource claims asks for. A
// [Ledger] is the client that the plugins get. It writes nothing, and records what they would write.
//
// Invariants:
//
//  1. The plugins see what [supplies.Store.Get] returns: the objects of the API with all reservations. So what the
//     plugins assume themselves is only needed while they are asked, and nothing stays assumed here.
//  2. The informers are never started, and are filled from the model. For extended resources of a pod, a claim without
//     devices is shown as if it existed. Otherwise the plugin would create one with a random name.
//  3. The claims that are made for a pod, from the templates of its volumes and from ResourceClaimTemplates, are shown
//     for stand-ins as if they existed.
//  4. Equal models give equal lists, in the same order.
//
// This package must not know nodes or policy, and of tasks only which there are.
package supply
