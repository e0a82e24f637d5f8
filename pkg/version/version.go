// Package version holds what the build says of itself.
package version

// Version is the version of the build, set by the linker.
var Version = "unknown"
