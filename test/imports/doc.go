// Package imports checks the architecture. It reads the sources of the module and checks that imports only point down, from
// floor to floor. It checks that the packages which decide stay pure: no API calls, no clock, no goroutines, no
// package-level state. It holds the limits of size: lines of a package, methods of a type.
//
// It also holds the names of tests to a length that can be read, and the limits of packages and types.
//
// The floors are those of the architecture. A new package is refused until the table says on which floor it stands.
package imports
