// Package apiserver has what all requests of the edge share: the connections to the API server, the limits of a
// request, and the meaning of errors.
//
// Main types: [Clients] are the connections, which [Connect] makes. [PatchStatus], [ReadPod] and [OpenGate] are
// requests of several writers. [IsFinal], [PauseAfter] and [ExplainRefusal] interpret errors. [Clients.Latencies] says
// how long requests take.
//
// Invariants:
//
//  1. All clients share one limit of requests, and all but that for bindings one HTTP/2 connection.
//  2. Each request has a time limit, here and at the API server. The client library does not repeat requests. The
//     writers do, up to a limit.
//  3. A patch names the UID of its object, so it never changes another object of the same name.
//  4. PodGroups, lists of them, and Queues are decoded as the standard serializer decodes them, in fewer passes.
//
// This package must not know why something is written.
package apiserver
