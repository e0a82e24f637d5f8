package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is how much processor time the calling thread has taken.
func threadTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
