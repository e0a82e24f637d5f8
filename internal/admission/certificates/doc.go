// Package certificates makes the certificates of the webhook server and renews them before they expire, without a
// restart. At every moment the API servers trust the authority of the served certificate.
//
// Main types: [Life] says how long certificates last. [Renew] is the pure step from what is stored to what should be.
// [Keeper] takes that step on a Secret again and again, and serves the result. All state is in the Secret, under the
// keys of a TLS Secret and ca.key: any number of replicas that look at one Secret at different times come to the same
// certificates.
//
// Invariants:
//
//  1. A new authority is first only added to the bundle in ca.crt. It signs a serving certificate when it has been
//     there for Life.Settle, by when every API server has read it.
//  2. An authority stays in the bundle until it has expired.
//  3. Two replicas never overwrite each other: the Secret is written over the version that was read, and the loser
//     reads again.
//  4. What cannot be read in the Secret is replaced, never a reason to stop. What cannot be written leaves the
//     certificates that are served as they are.
//  5. A private key never leaves the Secret and the memory of the process: not into a log, an error or an Event.
//
// It must not know webhooks: the code that needs the bundle asks for it.
package certificates
