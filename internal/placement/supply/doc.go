// Package supply shows the kube-scheduler's plugins the volumes and devices of the model, in the types that they read them
// from.
//
// Main types: a [Shelf] keeps listers beside the model. [Devices] are what the plugin for resource claims asks for. A
// [Ledger] is the client that the plugins get. It writes nothing, and records what they would write.
//
// Invariants:
//
//  1. What is shown is what [supplies.Store.Get] says: what the API shows, with all that is reserved laid over it. So what
//     the plugins assume themselves is needed no longer than it takes to ask them, and nothing stays assumed here.
//  2. Nothing is connected to anything. The informers are never started, and are filled by hand.
//     For the resources of a pod that DeviceClasses stand for a claim is shown as if it were there, without devices. Else
//     the plugin would make one under a random name.
//  3. Equal models give equal lists, in the same order.
//
// It must not know nodes, tasks or policy.
package supply
