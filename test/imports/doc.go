// Package imports checks the architecture. It reads the sources of the module and checks that imports only point down,
// from floor to floor. It checks that the packages which decide stay pure: no API calls, no clock, no goroutines, no
// package-level state.
//
// It also holds the names of tests to a length that can be read. It measures packages and types as a reader meets them:
// lines, exported names, and methods with those that are embedded. What is over a mark needs a reason, and no split.
//
// The floors are those of the architecture. A new package is refused until the table says on which floor it stands.
package imports
