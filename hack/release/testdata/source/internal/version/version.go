package version

var Version = "unknown"
