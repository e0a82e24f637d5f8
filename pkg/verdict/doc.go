// Package verdict says why a job waits: a typed reason with its subject, its numbers and what could help.
//
// Main types: [Code] is one of a closed, documented list. [Verdict] is a code with everything needed to explain it.
// [Shortage] is the need and the amount available of one resource. [NodeReason] counts the nodes that refuse for one
// reason, [Spared] the pods that may not be evicted for one reason. The sentence that users read is made from these. It
// is never parsed or compared.
//
// Invariants:
//
//  1. Codes have an order, [Code.Precedes]: what must be put right first comes first.
//  2. Every verdict says what could help ([Help]). A job is not tried again until something of that kind has happened.
//  3. Equal verdicts have the same sentence. A verdict contains nothing that changes by itself, such as a time or a
//     count of attempts. It is written only when it has changed.
//
// This package must not know the model or the API. Names and amounts come in as plain values.
package verdict
