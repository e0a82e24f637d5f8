// Package bounds keeps what the text of an object costs its readers within bounds.
//
// Two things that users write in an object can stop a program that only reads it. The text of a quantity may have an
// exponent, and a quantity such as 1e-2000000000 takes hours and gigabytes to be parsed, compared or added. And an object
// that a Go type cannot hold, such as one with the timeout "soon", makes its whole list unreadable. So one user's object
// ends the watch of its kind for all. Schemas refuse both, but not in objects that are older than the schema.
//
//  1. No quantity is parsed before its text is known to be within [MaxQuantityLength] and an exponent of two digits.
//     [CheckQuantity] says so of one text, [CheckJSON] of all quantities of a document, by its Go type.
//  2. The kinds of pkg/apis decode themselves by [Decode], so that this holds for every client, cache and webhook alike.
//  3. An object that is stored and cannot be decoded is decoded all the same: without spec and status, and marked with
//     [UnreadableKey]. Readers ask [Unreadable] and leave it alone. One that is not stored is an error.
//  4. Of the problems of an object [Told] are those that are told, which are not more than a person reads.
//
// The package knows no kinds and does not talk to an API server.
package bounds
