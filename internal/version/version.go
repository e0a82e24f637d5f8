package version

// Version is the version of the build, set by the linker.
var Version = "unknown"
