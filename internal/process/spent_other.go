//go:build !linux

package process

import "time"

var started = time.Now()

// threadTime is the time that passes, where that of a thread is not known.
func threadTime() time.Duration { return time.Since(started) }
