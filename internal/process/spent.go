package process

import (
	"runtime"
	"time"
)

// Spend measures the processor time of the calling goroutine, which keeps its thread until end is called: work on a
// machine that is busy with others takes no more of it. isOver reports whether more than a limit is spent.
func Spend(limit time.Duration) (isOver func() bool, end func()) {
	runtime.LockOSThread()
	begun := threadTime()
	return func() bool { return threadTime()-begun > limit }, runtime.UnlockOSThread
}
