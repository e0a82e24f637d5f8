// Package bounds keeps what the text of an object costs its readers within bounds.
//
// It is the gate that all text of others passes before it is decoded or parsed: objects, annotations, requests, answers
// of other programs. A test in test/imports finds every place of the module that decodes by other means, by the types
// of what it calls, and has it say whose text that is. What parses a text in time of its length, into a value of
// bounded size (strconv's whole numbers, durations, selectors that are decoded already), needs no gate.
//
// Three things that users write in an object can stop a program that only reads it. The text of a quantity may have an
// exponent, and a quantity such as 1e-2000000000 takes hours and gigabytes to be parsed, compared or added. A list of
// empty objects takes hundreds of times its length when it is decoded. And an object that a Go type cannot hold, such
// as one with the timeout "soon", makes its whole list unreadable. So one user's object ends the watch of its kind for
// all. Schemas refuse both, but not in objects that are older than the schema.
//
//  1. No quantity is parsed before its text is known to be within [MaxQuantityLength] and an exponent of two digits.
//     [CheckQuantity] says so of one text, [CheckJSON] of all quantities of a document, by its Go type.
//  2. No document is decoded before it is known that it takes no more than [MaxMemory] then. Its lists and objects are
//     counted by the type that they are decoded into.
//  3. The kinds of pkg/apis decode themselves by [Decode], so that this holds for every client, cache and webhook
//     alike.
//  4. An object that is stored and cannot be decoded is decoded all the same: without spec and status, and marked with
//     [UnreadableKey]. Readers ask [Unreadable] and leave it alone. One that is not stored is an error.
//  5. A text of several documents is split by [Documents], which numbers them for messages.
//  6. Of the problems of an object [Told] are those that are told, which are not more than a person reads.
//
// The package knows no kinds and does not talk to an API server.
package bounds
