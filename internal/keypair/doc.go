// Package keypair makes private keys and certificates for them.
//
// Main type: a [Pair]. [Issue] makes one from a template, [Serving] makes one for a server.
//
// Invariants:
//
//  1. Each certificate has a key of its own, on the curve P-256. To make one takes less than a millisecond; an RSA key
//     would take a tenth of a second.
//  2. A certificate is valid from a little before it was made, for the sake of clocks that are late.
//
// It must not know where certificates are stored, or when they are renewed.
package keypair
