// Package app is the controllers and the webhook server as processes: flags, leader election, servers, and the manager
// that runs them.
//
// Main functions: [NewCommand] is the whole command, [Run] the same on a given connection. A program with controllers
// of its own passes a [Setup] for each.
//
// Invariants:
//
//  1. Flags are checked before anything is connected; each problem names its flag and value.
//  2. Whatever Volcano's vc-controller-manager and vc-webhook-manager accept on the command line is accepted. What has
//     no meaning here is named in a warning.
//  3. The manager stops in good order when the context ends. Lost leadership ends the process with an error.
//
// It must not know what any controller does.
package app
