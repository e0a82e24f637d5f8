// Package verdict says why a job waits: a typed reason with its subject, its numbers and what could help.
//
// Main types: [Code] is one of a closed, documented list; [Verdict] is a code with everything needed to explain it;
// [Shortage] is "need this much, have that much" of one resource; [NodeReason] counts the nodes that refused for one
// reason, [Spared] the pods that may not leave for the job for one. The sentence a person reads is rendered from these, never parsed or compared.
//
// Invariants:
//
//  1. Codes have an order, [Code.Precedes]: what must be put right first comes first.
//  2. Every verdict says what could help ([Help]); a job is not tried again until something of that kind has happened.
//  3. Two equal verdicts render the same sentence, and nothing that changes by itself (a time, a count of attempts) is
//     part of one: it is written only when it has changed.
//
// It must not know the model or the API: names and amounts come in as plain values.
package verdict
