// Package apiserver has what all requests of the edge share: the connections to the API server, the bounds of a request, and how an
// answer is understood.
//
// Main types: [Clients] are the connections; [Connect] makes them. [PatchStatus], [ReadPod] and [OpenGate] are requests that
// several writers send. [IsFinal], [PauseAfter] and [ExplainRefusal] say what follows from an error.
//
// Invariants:
//
//  1. All clients share one HTTP/2 connection and one limit of requests.
//  2. Each request has a time limit, here and at the API server. The client library repeats none: the writers do, within a bound.
//  3. A patch names the UID of its object, so it never changes another object of the same name.
//
// It must not know why something is written.
package apiserver
