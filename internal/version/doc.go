// Package version holds what the build says of itself.
//
// Main types: none; [Version] is a variable, since the linker can set nothing else.
//
// Invariants:
//
//  1. The linker sets it, and nothing changes it after that.
//
// It must not know any other package: all may name the version they are of.
package version
