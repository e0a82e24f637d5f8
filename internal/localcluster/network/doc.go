// Package network is a proxy between a program and the API server that delays, refuses or loses requests and answers,
// and that can be cut.
//
// Main types: a [Network] is an http.Handler in front of an API server. An [Effect] is what it does to one request.
//
// Invariants:
//
//  1. Without an effect, and unless it is cut, it changes nothing: credentials, answers and the order of events are as
//     they were sent.
//  2. While it is cut nothing passes, also of what has begun, and neither side is told.
//  3. What is refused has not reached the API server. What is lost has, and the client does not see the answer.
//
// It must not know who uses it, nor what is asked.
package network
